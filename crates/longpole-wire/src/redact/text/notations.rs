//! Notations of single programs in which a name stands before its value.
//!
//! ```text
//! ~ password = "old" -> "hunter2"               Terraform: the value before and behind
//! password = <<EOF⏎hunter2⏎EOF                  the lines up to the word
//! {password,<<"hunter2">>}                      Erlang: a tuple of a name and a text
//! jdbc:oracle:thin:ann/hunter2@//db:1521/x      Oracle: behind the slash
//! ::add-mask::hunter2                           GitHub: all of the line
//! requirepass hunter2                           Redis: the word behind
//! ```

use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::{Operator, Scan, Start};
use crate::redact::bytes::{floor, position};
use crate::redact::value_forms::{is_nothing, is_password};

/// Bytes of the lines of a value.
const LINES_BYTES_MAX: usize = 8192;

/// Bytes of a user and a password before the server of Oracle.
const LOGIN_BYTES_MAX: usize = 256;

/// The length of what PHP prints before a text: `string(15) `.
pub(super) fn php_type_length(bytes: &[u8]) -> usize {
    let Some(inside) = bytes.strip_prefix(b"string(") else { return 0 };
    let digits = inside.iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && inside[digits..].starts_with(b") \"") { "string() ".len() + digits } else { 0 }
}

/// What Terraform prints in the place of a value.
const IN_PLANS: &[&[u8]] = &[b"(sensitive", b"(known after apply)", b"(write-only"];

/// Whether this begins with a word of Terraform that stands for a value.
pub(super) fn is_of_plan(bytes: &[u8]) -> bool {
    IN_PLANS.iter().any(|words| bytes.starts_with(words))
}

impl Scan<'_> {
    /// What a value becomes whose end is here: `"old" -> "hunter2"`.
    pub(super) fn changed_to(&mut self, old: Start, end: usize) -> Option<usize> {
        let behind = end + old.quote.map_or(0, |(_, slashes)| slashes + 1);
        let rest = self.bytes.get(behind..)?;
        let rest = rest.strip_prefix(b" -> ").or_else(|| rest.strip_prefix(b" => "))?;
        let start = self.value_start(self.bytes.len() - rest.len()).filter(|start| start.quote.is_some() && !start.in_list)?;
        let end = self.value_end(start);
        if is_nothing(&self.text[start.at..end]) { None } else { self.hide(start.at..end) }
    }

    /// The lines behind `<<EOF`, if the value is such.
    pub(super) fn here_lines(&mut self, at: usize) -> Option<usize> {
        let inside = self.bytes[at..].strip_prefix(b"<<")?;
        let marks = inside.iter().take(2).take_while(|byte| b"-~'\"".contains(byte)).count();
        let word = inside[marks..].iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
        let word_at = at + "<<".len() + marks;
        let line = self.line_end(word_at + word);
        let start = line + self.bytes[line..].iter().take(2).take_while(|byte| byte.is_ascii_whitespace()).count();
        if word == 0 || start == line {
            return None;
        }
        let word = &self.text[word_at..word_at + word];
        let near = &self.text[start..floor(self.text, start + LINES_BYTES_MAX)];
        let mut end = 0;
        for line in near.split_inclusive('\n') {
            if line.trim() == word {
                break;
            }
            end += line.len();
        }
        self.names.steps.spend(end);
        let end = start + near[..end].trim_end().len();
        if is_nothing(&self.text[start..end]) { None } else { self.hide(start..end) }
    }

    /// `{password,"hunter2"}` and `{password,<<"hunter2">>}` of Erlang, whose comma stands here.
    pub(super) fn tuple_of_erlang(&mut self, comma: usize) -> Option<usize> {
        let rest = &self.bytes[comma + 1..];
        let binary = if rest.starts_with(b"<<\"") { 2 } else { 0 };
        if rest.get(binary) != Some(&b'"') {
            return None;
        }
        let (name, quoted) = self.name_before(comma)?;
        if quoted || name.start == 0 || self.bytes[name.start - 1] != b'{' || name.end != comma {
            return None;
        }
        let meaning = self.names.meaning(&self.text[name]);
        let start = self.value_start(comma + 1 + binary).filter(|_| meaning.is_sure())?;
        self.value_at(meaning, start, Operator::Equals)
    }

    /// `ann/hunter2@` behind `jdbc:oracle:thin:`.
    pub(super) fn login_of_oracle(&mut self, at: usize) -> Option<usize> {
        let near = &self.bytes[at..self.bytes.len().min(at + LOGIN_BYTES_MAX)];
        let length = near.iter().take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`<>".contains(byte)).count();
        self.names.steps.spend(length);
        let slash = near[..length].iter().position(|byte| *byte == b'/')?;
        let sign = near[..length].iter().rposition(|byte| *byte == b'@').filter(|sign| *sign > slash + 1)?;
        let is_user = near[..slash].iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$#.[]".contains(byte));
        if is_user && slash > 0 { self.hide(at + slash + 1..at + sign) } else { None }
    }

    /// A directive of a file with settings, which is a line: `requirepass hunter2`, `password    hunter2`. Behind a name that may begin a
    /// sentence, the word has letters and digits.
    pub(super) fn directive(&mut self, at: usize, behind: usize, is_sentence: bool) -> Option<usize> {
        let before = &self.bytes[..at];
        let blanks = before.iter().rev().take(NAME_BYTES_MAX).take_while(|byte| b" \t".contains(byte)).count();
        if !before[..at - blanks].last().is_none_or(|byte| byte.is_ascii_control() || *byte == b'|') {
            return None;
        }
        let mut start = self.past_blanks(behind);
        // A table of psql.
        if start > behind && self.bytes[start..].starts_with(b"| ") {
            start = self.past_blanks(start + 1);
        }
        let bytes = self.bytes;
        let end = self.names.memo.control.next(start, &mut self.names.steps, || position(bytes, start, |byte| byte.is_ascii_control()));
        let value = self.text[start..end].trim_end_matches([' ', '|']);
        self.names.steps.spend(value.len());
        let is_one = start > behind && !value.contains(char::is_whitespace) && (!is_sentence || is_password(value));
        let inside = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let start = start + usize::from(inside.is_some());
        let value = inside.unwrap_or(value);
        if !is_one || is_nothing(value) || value.contains(['=', ':', '(', '"']) { None } else { self.hide(start..start + value.len()) }
    }

    /// `proxy_set_header X-Api-Key hunter2;`: a directive whose first word is the name of a header.
    pub(super) fn header_directive(&mut self, behind: usize) -> Option<usize> {
        let name = self.past_blanks(behind);
        let length = self.bytes[name..].iter().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
        let value = self.past_blanks(name + length);
        let meaning = self.names.meaning(self.text.get(name..name + length)?);
        if name == behind || length == 0 || value == name + length || !meaning.is_sure() {
            return None;
        }
        let start = self.value_start(value).filter(|start| !matches!(self.bytes[start.at], b'$' | b'%' | b'{'))?;
        self.value_at(meaning, start, Operator::Equals)
    }
}
