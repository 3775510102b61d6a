//! Values that a validator or a database refuses, in its message.
//!
//! ```text
//! "password" with value "hunter2" fails to match …                     the name before, in quotes
//! password\n  String should have … [type=…, input_value='hunter2', …]   the name alone on the line above
//! Key (api_token)=(hunter2) already exists.                            the name of a column
//! Duplicate entry 'hunter2' for key 'users.api_token'                  the name behind
//! 'hunter2' is too short⏎⏎Failed validating … in schema['password']     the name two lines below
//! ```
//!
//! Objects that name the field are in `fields.rs`.

use std::ops::Range;

use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::Scan;
use crate::redact::bytes::floor;
use crate::redact::mask::is_redacted;
use crate::redact::names::Meaning;
use crate::redact::quotes::closing;
use crate::redact::value_forms::is_nothing;

/// What stands between the name of a field and `value`.
const BEFORE_VALUE: &[&str] = &["with ", "got invalid ", "has invalid ", "rejected "];

/// What PostgreSQL says of values, behind their bracket.
const BEHIND_VALUES: &[&str] = &[" already exists", " is not present", " is still referenced", " conflicts with"];

/// Bytes of values in such a message.
const VALUES_BYTES_MAX: usize = 256;

/// Bytes of a message of a validator, and of a value that MySQL repeats.
const MESSAGE_BYTES_MAX: usize = 512;

/// The words of jsonschema behind a value that it refuses.
const BEHIND_REFUSED: &[&str] = &[" is ", " does ", " has ", " should ", " was ", " expected ", " cannot ", " do "];

/// Quotes in a message of jsonschema at which the refused value may begin.
const QUOTES_MAX: usize = 8;

impl Scan<'_> {
    /// `value "hunter2"` behind the name of a field in quotes.
    pub(super) fn refused_value(&mut self, at: usize, behind: usize) -> Option<usize> {
        if self.bytes.get(behind) != Some(&b' ') {
            return None;
        }
        let words = BEFORE_VALUE.iter().find(|words| self.bytes[..at].ends_with(words.as_bytes()))?;
        let before = self.bytes[..at - words.len()].strip_suffix(b" ")?;
        let before = before.strip_suffix(b":").unwrap_or(before);
        let (name, _) = self.name_before(before.len()).filter(|(_, quoted)| *quoted)?;
        let meaning = self.names.meaning(&self.text[name]);
        if meaning == Meaning::Plain {
            return None;
        }
        let start = self.value_start(behind).filter(|start| start.quote.is_some() || start.in_list)?;
        let end = self.value_end(start);
        self.hide_refused(meaning, start.at, end)
    }

    /// Whether a colon stands here before such a value, and not before a value of its own.
    pub(super) fn is_before_refused(&self, colon: usize) -> bool {
        self.bytes[colon + 1..].starts_with(b" rejected value [")
    }

    pub(super) fn hide_refused(&mut self, meaning: Meaning, start: usize, end: usize) -> Option<usize> {
        let value = &self.text[start..end];
        if meaning.is_of(value) && !is_nothing(value) { self.hide(start..end) } else { None }
    }

    /// What the name of the field says of `input_value`, if that is a text, and not a whole body from which the field is missing.
    pub(super) fn meaning_of_input(&mut self, name: &Range<usize>, behind: usize) -> Meaning {
        if self.value_start(behind).is_none_or(|start| start.quote.is_none()) {
            return Meaning::Plain;
        }
        self.meaning_of_line_above(name.start)
    }

    /// What the line above says of `input_value`, if it is a name and nothing else.
    fn meaning_of_line_above(&mut self, at: usize) -> Meaning {
        let from = floor(self.text, at.saturating_sub(MESSAGE_BYTES_MAX));
        let near = &self.text[from..at];
        self.names.steps.spend(near.len());
        let mut lines = near.rsplit('\n').skip(1);
        match (lines.next(), lines.next()) {
            (Some(line), above) if above.is_some() || from == 0 => {
                let line = line.trim_end();
                if !line.is_empty() && line.bytes().all(is_of_name) { self.names.meaning(line) } else { Meaning::Plain }
            }
            _ => Meaning::Plain,
        }
    }

    /// `Key (user_id, api_token)=(5, hunter2) already exists`: the sign stands here.
    pub(super) fn behind_columns(&mut self, at: usize) -> Option<usize> {
        let before = self.bytes[..at].strip_suffix(b")")?;
        let inside = self.bytes[at + 1..].strip_prefix(b"(")?;
        let length = before.iter().rev().take(NAME_BYTES_MAX).position(|byte| *byte == b'(')?;
        let open = before.len() - length;
        let values = &inside[..inside.len().min(VALUES_BYTES_MAX)];
        self.names.steps.spend(length);
        if !before[..open - 1].ends_with(b"Key ") {
            return None;
        }
        self.names.steps.spend(values.len());
        let columns = self.text.get(open..before.len())?;
        let meaning = columns.split(',').map(|column| self.names.meaning(column.trim())).find(|meaning| *meaning != Meaning::Plain)?;
        let mut closers = (0..values.len()).filter(|at| values[*at] == b')');
        let ends = |close: &usize| BEHIND_VALUES.iter().any(|words| values[close + 1..].starts_with(words.as_bytes()));
        let close = closers.clone().find(ends).or_else(|| closers.next())?;
        self.hide_refused(meaning, at + 2, at + 2 + close)
    }

    /// `Duplicate entry 'hunter2' for key 'users.api_token'` of MySQL, which escapes no quote there.
    pub(super) fn duplicate_entry(&mut self, behind: usize) -> Option<usize> {
        let inside = self.text[behind..].strip_prefix(" '")?;
        let near = &inside[..floor(inside, MESSAGE_BYTES_MAX)];
        self.names.steps.spend(near.len());
        const FOR_KEY: &str = "' for key '";
        let length = near.find(FOR_KEY)?;
        let key = near[length + FOR_KEY.len()..].split('\'').next()?;
        // As MySQL Workbench names an index.
        let meaning = self.names.meaning(key.strip_suffix("_UNIQUE").unwrap_or(key));
        let start = behind + " '".len();
        self.hide_refused(meaning, start, start + length)
    }

    /// `Failed validating 'minLength' in schema['properties']['password']:` of jsonschema, whose message is the line before the blank one:
    /// `'hunter2' is too short`.
    pub(super) fn failed_validating(&mut self, at: usize) -> Option<usize> {
        let end = self.line_end(at);
        let near = &self.text[at..end.min(floor(self.text, at + MESSAGE_BYTES_MAX))];
        self.names.steps.spend(near.len());
        let path = near.split_once(" in schema[")?.1;
        let mut parts = path.split(['[', ']']).filter_map(|part| part.strip_prefix('\'')?.strip_suffix('\''));
        // Other parts are words of the schema, or names of its definitions.
        let mut meaning = Meaning::Plain;
        while let Some(part) = parts.next().filter(|_| meaning == Meaning::Plain) {
            if part == "properties" {
                meaning = parts.next().map_or(Meaning::Plain, |name| self.names.meaning(name));
            }
        }
        if meaning == Meaning::Plain {
            return None;
        }
        let above = self.text[..at].trim_end();
        if above.len() == at || self.is_spent() {
            return None;
        }
        let from = floor(self.text, above.len().saturating_sub(MESSAGE_BYTES_MAX));
        self.names.steps.spend(above.len() - from);
        let line = above[from..].rfind('\n').map_or(from, |line| from + line + 1);
        // A name of JSON or a file may stand before it.
        let quotes = (line..above.len()).filter(|at| matches!(self.bytes[*at], b'\'' | b'"')).take(QUOTES_MAX);
        let mut value = None;
        for open in quotes {
            let closed = closing(&self.bytes[open + 1..above.len()], self.bytes[open], 0);
            self.names.steps.spend(closed.unwrap_or_else(|stop| stop));
            let Ok(length) = closed else { continue };
            let end = open + 1 + length;
            if BEHIND_REFUSED.iter().any(|word| above[end + 1..].starts_with(word)) {
                value = Some(open + 1..end);
                break;
            }
        }
        let value = value?;
        let text = &self.text[value.clone()];
        if meaning.is_of(text) && !is_nothing(text) && !is_redacted(self.text, &value) {
            self.found.push(value);
        }
        None
    }
}
