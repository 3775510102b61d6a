//! The state of a scan over a text: where it is, what it found, which half of a pair it has seen.

use std::ops::Range;

use super::literal::Literal;
use crate::redact::known_names::Names;
use crate::redact::mask::is_redacted;

/// The last key of each kind that was read.
#[derive(Default)]
pub(super) struct ObjectFields {
    pub(super) field: Option<NamedField>,
    /// Where the text of `value` began, and that of `input` or `data`, if no field before it said that it is a credential.
    pub(super) values: [Option<Start>; 2],
    /// The operation of a JSON Patch.
    pub(super) operation: Option<Pair>,
}

/// A field that an object names.
pub(super) struct NamedField {
    pub(super) name: Range<usize>,
    pub(super) pair: Pair,
    /// A validator names it: `input` and `data` beside it are its value, too.
    pub(super) is_refused: bool,
    /// Its path has several parts.
    pub(super) is_deep: bool,
}

/// Bytes that the name and the value of a pair are apart.
const PAIR_BYTES_MAX: usize = 1024;

/// Where a value begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Its first byte.
    pub(super) at: usize,
    /// The quote before it, and how many backslashes before that.
    pub(super) quote: Option<(u8, usize)>,
    /// It is the first of a list: `["a", "b"]`, or `[a b]` as Go prints one.
    pub(super) in_list: bool,
    /// There are three quotes before it.
    pub(super) triple: bool,
}

impl Start {
    /// Whether this key stands behind it, and as near as the halves of a pair are.
    pub(super) fn is_near(self, key: usize) -> bool {
        (self.at..=self.at + PAIR_BYTES_MAX).contains(&key)
    }
}

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `=`, `=>`, `:=`.
    Equals,
    /// `: `, which prose has, too.
    Colon,
    /// `:` in what Go prints of a struct.
    Struct,
}

pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) names: &'a mut Names,
    pub(super) found: &'a mut Vec<Range<usize>>,
    /// What stands before is hidden.
    pub(super) hidden_to: usize,
    /// There are escapes.
    pub(super) escaped: bool,
    /// There are options of a command line.
    pub(super) commands: bool,
    /// There is a mark behind which another command may begin.
    pub(super) breaks: bool,
    /// A brace or a bracket of what Go prints was seen.
    pub(super) braces: bool,
    /// Whether the text is SQL, once something needed to know.
    pub(super) is_sql: Option<bool>,
    /// The literal of SQL that is open, as far as somebody asked.
    pub(super) literal: Literal,
    /// Whether there is a map of Go's, once something needed to know.
    pub(super) is_map: Option<bool>,
    /// The last `name=` or `key:` of a pair.
    pub(super) pair: Option<Pair>,
    /// The value of a pair whose name did not stand before it.
    pub(super) lone: Option<Start>,
    /// What an object says of the field that it is about.
    pub(super) fields: ObjectFields,
    /// Objects up to here have nothing in them that could be a credential.
    pub(super) harmless_to: usize,
    /// What stands between two braces, and whether it is a JSON Web Key.
    pub(super) jwk: (Range<usize>, bool),
    /// Values of an INSERT up to here were read.
    pub(super) values_to: usize,
    /// Statements up to here were read for their parameters.
    pub(super) parameters_to: usize,
    /// Base64 up to here was judged.
    pub(super) encoded_to: usize,
}

/// One half of a pair: `"name": "TOKEN"` of `{"name": "TOKEN", "value": "…"}`.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    /// What stands behind its mark.
    pub(super) behind: usize,
    /// Up to here it is known how many brackets are open.
    pub(super) seen_to: usize,
    pub(super) open: i32,
}

impl Pair {
    pub(super) fn of(behind: usize) -> Self {
        Pair { behind, seen_to: behind, open: 0 }
    }

    /// Whether it stands in the same brackets or element as this place. Each byte is read once, however often this is called.
    pub(super) fn is_beside(&mut self, bytes: &[u8], at: usize) -> bool {
        if at < self.behind || at - self.behind > PAIR_BYTES_MAX {
            return false;
        }
        while self.seen_to < at && self.open >= 0 {
            let rest = &bytes[self.seen_to..at];
            self.open += match rest {
                [b'{' | b'(', ..] => 1,
                [b'}' | b')', ..] | [b'<', b'/', ..] | [b'/', b'>', ..] => -1,
                [b'<', byte, ..] if byte.is_ascii_alphabetic() => 1,
                // The next of a list of YAML.
                [b'\n', line @ ..] if line.iter().find(|byte| **byte != b' ') == Some(&b'-') => -1,
                _ => 0,
            };
            self.seen_to += 1;
        }
        self.open >= 0
    }
}

impl Scan<'_> {
    /// Whether the text took all its steps. Whoever is about to take some asks, and then goes to the end of the text at once.
    pub(super) fn is_spent(&self) -> bool {
        self.names.steps.is_spent()
    }

    /// Notes a credential; the place behind it, or `None` where there is none or it is hidden already.
    pub(super) fn hide(&mut self, range: Range<usize>) -> Option<usize> {
        let range = range.start.max(self.hidden_to)..range.end;
        if range.is_empty() || is_redacted(self.text, &range) {
            return None;
        }
        self.hidden_to = range.end;
        // Nobody looks into it again: read without its escapes it may end earlier, and the next name stand in it.
        self.escaped |= self.bytes[range.clone()].iter().any(|byte| matches!(byte, b'\\' | b'%'));
        self.found.push(range.clone());
        Some(range.end)
    }
}
