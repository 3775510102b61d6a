//! Values that begin, or go on, on the lines below their name.

use std::ops::Range;

use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::{Operator, Scan, Start};
use crate::redact::bytes::position;
use crate::redact::mask::is_redacted;
use crate::redact::names::Meaning;
use crate::redact::value_forms::is_nothing;

/// Lines below a name that are read as its parts.
const LINES_MAX: usize = 64;

/// From this length on a line of base64 may go on in the next one.
const BASE64_LINE_BYTES_MIN: usize = 40;

/// Whether nothing of the value stands on this line: it is at its end, or there is a sign that a block follows (`|`, `>-`).
pub(super) fn goes_on_in_next_line(rest: &[u8]) -> bool {
    let sign = match rest.first() {
        Some(b'|' | b'>') => 1 + rest[1..].iter().take(3).take_while(|byte| byte.is_ascii_digit() || b"+-".contains(byte)).count(),
        _ => 0,
    };
    let blanks = if sign > 0 { rest[sign..].iter().take(8).take_while(|byte| **byte == b' ').count() } else { 0 };
    matches!(rest.get(sign + blanks), Some(b'\n' | b'\r'))
}

/// `value: x` in a line: the name, and what stands behind its colon.
pub(super) fn member(line: &str) -> Option<(&str, usize)> {
    let name = line.strip_prefix("- ").unwrap_or(line).trim_start();
    let start = line.len() - name.len();
    let length = name.bytes().take_while(|byte| is_of_name(*byte)).count();
    let is_one = length > 0 && name[length..].starts_with(':') && matches!(name.as_bytes().get(length + 1), None | Some(b' ' | b'\r'));
    is_one.then(|| (&name[..length], start + length + 1))
}

/// Lines that stand deeper than a column, without the blanks before them. Those without anything are passed over.
struct Lines<'a> {
    pub(super) bytes: &'a [u8],
    /// The end of the last one.
    pub(super) at: usize,
    pub(super) column: usize,
}

impl Lines<'_> {
    fn next_at_any_column(&mut self) -> Option<Range<usize>> {
        let before = self.bytes.get(self.at..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = self.at + before;
        let end = position(self.bytes, start, |byte| byte == b'\n' || byte == b'\r');
        self.at = end;
        (start < end).then_some(start..end)
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let line = self.next_at_any_column()?;
        let column = self.bytes[..line.start].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| b" \t".contains(byte)).count();
        (column > self.column).then_some(line)
    }
}

impl Scan<'_> {
    /// A value that begins on the line behind its name: as JSON is printed, or deeper than the name as YAML has it.
    pub(super) fn on_next_lines(&mut self, meaning: Meaning, name: Range<usize>, at: usize, operator: Operator) -> Option<usize> {
        let bytes = self.bytes;
        let is_block = !bytes[at].is_ascii_whitespace();
        let from = name.start.saturating_sub(NAME_BYTES_MAX);
        let line = bytes[from..name.start].iter().rposition(|byte| *byte == b'\n').map_or(from, |before| from + before + 1);
        if line > 0 && bytes[line - 1] != b'\n' {
            return None;
        }
        let column = bytes[line..name.start].iter().take_while(|byte| b" \t-".contains(byte)).count();
        let mut lines = Lines { bytes, at: self.line_end(at), column };
        if !is_block && matches!(bytes.get(name.end), Some(b'"' | b'\'' | b'\\')) {
            lines.column = 0;
            let first = lines.next_at_any_column()?;
            let start = self.value_start(first.start)?;
            return if start.quote.is_some() || start.in_list || bytes[start.at] == b'{' {
                self.value_or_object(meaning, first.start, start, operator)
            } else {
                None
            };
        }
        let first = lines.next()?;
        self.names.steps.spend(lines.at - at);
        if is_block {
            let end = lines.by_ref().last().map_or(first.end, |last| last.end);
            self.names.steps.spend(lines.at - first.end);
            return self.hide(first.start..end);
        }
        let start = self.value_start(first.start)?;
        if start.quote.is_some() || start.in_list {
            return self.value_at(meaning, start, Operator::Equals);
        }
        if member(&self.text[first.clone()]).is_some() {
            self.members(name, first, lines);
            return None;
        }
        // Several words are a message, or a stack.
        let word = |line: &Range<usize>| {
            let text = self.text[line.clone()].trim_end();
            let item = text.strip_prefix("- ").unwrap_or(text).trim_start();
            (!item.contains(char::is_whitespace) && member(text).is_none())
                .then_some(line.start + text.len() - item.len()..line.start + text.len())
        };
        let value = word(&first)?;
        let end = lines.by_ref().map_while(|line| word(&line)).last().map_or(value.end, |last| last.end);
        self.names.steps.spend(lines.at - first.end);
        let start = Start { at: value.start, quote: None, in_list: false, triple: false };
        if is_nothing(&self.text[value.clone()]) || !self.is_credential(meaning, start, value.end, operator) {
            return None;
        }
        self.hide(value.start..end)
    }

    /// What stands below a name: `password:`, `  value: …`. It is a credential if both names together say so.
    fn members(&mut self, name: Range<usize>, first: Range<usize>, lines: Lines<'_>) {
        let text = self.text;
        for line in std::iter::once(first).chain(lines).take(LINES_MAX) {
            self.names.steps.spend(line.len());
            let Some((key, behind)) = member(&text[line.clone()]) else { continue };
            let of_key = self.names.meaning(key);
            let of_both = self.names.meaning(&format!("{}.{key}", &text[name.clone()]));
            let start = self.value_start(line.start + behind).filter(|start| start.at < line.end);
            let Some(start) = start.filter(|_| of_key == Meaning::Plain && of_both.is_sure()) else {
                continue;
            };
            let value = start.at..self.value_end(start).min(line.end).max(start.at);
            let is_one = !is_nothing(&text[value.clone()]) && self.is_credential(of_both, start, value.end, Operator::Equals);
            if is_one && !is_redacted(text, &value) {
                self.found.push(value);
            }
        }
    }

    /// Where a value ends that is base64 and goes on in the lines below.
    pub(super) fn past_base64(&mut self, start: usize, mut end: usize) -> usize {
        let bytes = self.bytes;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
        let mut length = end - start;
        while length >= BASE64_LINE_BYTES_MIN
            && matches!(bytes.get(end), Some(b'\n' | b'\r'))
            && bytes[end - length..end].iter().all(is_base64)
        {
            let next = end + bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            length = bytes[next..].iter().take_while(|byte| is_base64(byte)).count();
            self.names.steps.spend(length);
            let is_line = length > 0 && bytes.get(next + length).is_none_or(|byte| byte.is_ascii_control() || b",;\"'`<&)".contains(byte));
            if !is_line {
                break;
            }
            end = next + length;
        }
        end
    }
}
