//! Objects that name a field beside the value that is refused or set there, in any order and with other pairs between.
//!
//! ```text
//! {"value":"hunter2","msg":"…","path":"password"}          the name is the text of `path`, `param`, `loc` or `instancePath`
//! {"input":"hunter2","loc":["body","tokens",0]}            or the last of a list that is no index
//! {"value":"hunter2","op":"add","path":"/user/password"}   or the last part of a pointer
//! ```
//!
//! A path of several parts may be one of a server (`"path":"/oauth/token"`), so it counts only beside the operation of a JSON Patch.

use std::ops::Range;

use super::name::NAME_BYTES_MAX;
use super::scan::{NamedField, ObjectFields, Pair, Scan};
use crate::redact::bytes::starts_with_ignoring_case;
use crate::redact::names::Meaning;

/// Operations of a JSON Patch that have a value.
const OPERATIONS: &[&str] = &["add", "replace", "test"];

/// Whether this key of an object says which field the object is about.
fn says_field(key: &[u8]) -> bool {
    matches!(key, b"loc" | b"param" | b"instancePath" | b"path")
}

/// `0`, `-`, and nothing behind a last comma: what stands for a place in a list.
fn is_index(part: &[u8]) -> bool {
    part == b"-" || part.iter().all(u8::is_ascii_digit)
}

/// The last part that is no index: `password` of `"body", "password"` and of `/users/0/password`, `tokens` of `/tokens/-`.
fn last_part(inside: &[u8], is_list: bool) -> Option<Range<usize>> {
    // `~1` is a slash in a part of a pointer.
    let parts = |at: usize| match inside[at] {
        b',' => is_list,
        b'/' => !is_list,
        b'1' => !is_list && inside[..at].ends_with(b"~"),
        _ => false,
    };
    let is_around = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\');
    let mut behind = inside.len();
    loop {
        let mut start = (0..behind).rev().find(|at| parts(*at)).map_or(0, |at| at + 1);
        let (begin, mut end) = (start, behind);
        while end > start && is_around(inside[end - 1]) {
            end -= 1;
        }
        while start < end && is_around(inside[start]) {
            start += 1;
        }
        if !is_index(&inside[start..end]) {
            return Some(start..end);
        }
        behind = begin.checked_sub(1)?;
    }
}

/// Whether a pointer has a slash behind its first byte, which JSON may escape.
fn is_deep(pointer: &[u8]) -> bool {
    let first = pointer.iter().position(|byte| *byte != b'\\').unwrap_or(0);
    pointer.iter().skip(first + 1).any(|byte| *byte == b'/')
}

impl Scan<'_> {
    /// What the field before this key says of its value. The place of the value is kept if that is nothing: a field may stand behind it.
    pub(super) fn meaning_of_field(&mut self, key: usize, behind: usize, is_input: bool) -> Meaning {
        let start = self.value_start(behind).filter(|start| start.quote.is_some());
        // A whole body is no value of a field that is missing from it.
        if is_input && start.is_none() {
            return Meaning::Plain;
        }
        let meaning = if self.has_field(key, is_input) { self.meaning_of_last_field() } else { Meaning::Plain };
        if meaning == Meaning::Plain {
            self.fields.values[usize::from(is_input)] = start;
        }
        meaning
    }

    /// Whether a field stands beside this place that may say something of such a value.
    fn has_field(&mut self, at: usize, is_input: bool) -> bool {
        let bytes = self.bytes;
        let ObjectFields { field: Some(field), operation, .. } = &mut self.fields else { return false };
        (field.is_refused || !is_input)
            && field.pair.is_beside(bytes, at)
            && (!field.is_deep || operation.as_mut().is_some_and(|operation| operation.is_beside(bytes, at)))
    }

    fn meaning_of_last_field(&mut self) -> Meaning {
        let text = self.text;
        self.fields.field.as_ref().map_or(Meaning::Plain, |field| self.names.meaning_of_any(&text[field.name.clone()]))
    }

    /// The field that was named last and stands in this range.
    pub(super) fn field_in(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let field = self.fields.field.as_ref().filter(|field| !field.is_deep && range.contains(&field.name.start))?;
        Some(field.name.clone())
    }

    /// A key that may name a field, or the operation of a patch. Judges the values before it.
    pub(super) fn key_of_field(&mut self, key: &Range<usize>, behind: usize) {
        let name = &self.bytes[key.clone()];
        let is_operation = name == b"op";
        if !is_operation && !says_field(name) || self.is_spent() {
            return;
        }
        if !is_operation {
            let Some(field) = self.field_at(name == b"path", behind) else { return };
            self.fields.field = Some(field);
        } else if self.is_operation(behind) {
            self.fields.operation = Some(Pair::of(behind));
        }
        for is_input in [false, true] {
            let value = self.fields.values[usize::from(is_input)].filter(|start| start.is_near(key.start));
            let Some(start) = value.filter(|_| self.has_field(behind, is_input)) else { continue };
            let meaning = self.meaning_of_last_field();
            if meaning == Meaning::Plain || self.is_spent() {
                continue;
            }
            // Each value is searched for its end once.
            self.fields.values[usize::from(is_input)] = None;
            self.hide_before(meaning, start, key.start);
        }
    }

    /// The field that is the value of a key: the last of a list, or the last part of a pointer.
    fn field_at(&mut self, is_path: bool, behind: usize) -> Option<NamedField> {
        let near = &self.bytes[behind..self.bytes.len().min(behind + NAME_BYTES_MAX)];
        let first = near.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let open = first + near[first..].iter().take_while(|byte| **byte == b'\\').count();
        let is_list = matches!(near[first], b'[' | b'(');
        let quote = near.get(open).filter(|byte| is_list || matches!(byte, b'"' | b'\''))?;
        let closes = |byte: &u8| if is_list { matches!(byte, b']' | b')') } else { byte == quote };
        let length = near[open + 1..].iter().position(closes);
        self.names.steps.spend(length.unwrap_or(near.len()));
        let close = open + 1 + length?;
        let inside = &near[open + 1..close];
        let name = last_part(inside, is_list)?;
        let at = behind + open + 1;
        Some(NamedField {
            name: at + name.start..at + name.end,
            pair: Pair { seen_to: behind + close + 1, ..Pair::of(behind) },
            is_refused: is_list || !is_path,
            is_deep: is_path && !is_list && is_deep(inside),
        })
    }

    /// Whether the value of `op` is an operation of a JSON Patch that has a value.
    fn is_operation(&self, behind: usize) -> bool {
        let Some(start) = self.value_start(behind).filter(|start| start.quote.is_some()) else { return false };
        let rest = &self.bytes[start.at..];
        let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\'' | b'\\'));
        OPERATIONS.iter().any(|word| starts_with_ignoring_case(rest, word) && is_quote(rest.get(word.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::{is_deep, last_part};

    #[test]
    fn the_last_part_that_is_no_index_names_the_field() {
        for (inside, is_list, name) in [
            ("\"body\", \"password\"", true, Some("password")),
            ("'password',", true, Some("password")),
            ("\n  \"body\",\n  \"tokens\",\n  0\n", true, Some("tokens")),
            ("\\\"body\\\",\\\"password\\\"", true, Some("password")),
            ("\"a/b\"", true, Some("a/b")),
            ("0, 1", true, None),
            ("", true, None),
            ("password", false, Some("password")),
            ("/user/password", false, Some("password")),
            ("\\/user\\/password\\", false, Some("password")),
            ("/tokens/-", false, Some("tokens")),
            ("/tokens/0/", false, Some("tokens")),
            ("/annotations/a.example~1token", false, Some("token")),
            ("/a,b", false, Some("a,b")),
            ("/", false, None),
        ] {
            let part = last_part(inside.as_bytes(), is_list);
            assert_eq!(part.map(|part| &inside[part]), name, "{inside}");
        }
    }

    #[test]
    fn a_pointer_of_one_part_is_not_deep() {
        assert!(!is_deep(b"password") && !is_deep(b"/password") && !is_deep(b"\\/password"));
        assert!(is_deep(b"/user/password") && is_deep(b"\\/user\\/password") && is_deep(b"user/password"));
    }
}
