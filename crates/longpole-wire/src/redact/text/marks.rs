//! Marks inside of a value without quotes: each may end it, or be one of its characters.
//!
//! ```text
//! ?password=Kd8&1Zq7&next=a          ends before `next=`
//! Pwd=Kd8;1Zq7;Encrypt=yes           ends before `Encrypt=`
//! password: Kd8<1Zq7<br>             ends before the tag
//! DB_PASSWORD=Kd8'1Zq7               goes on: no quote is open
//! ```

use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::Scan;
use crate::redact::bytes::position;
use crate::redact::escapes::ENTITY_BYTES_MAX;
use crate::redact::quotes::which_quote;

/// The longest name of a parameter behind a mark: `;Application Name=`.
const PARAMETER_BYTES_MAX: usize = 64;

/// The longest tag behind a value.
const TAG_BYTES_MAX: usize = 64;

/// Bytes between the beginning of a line and the name that is the first there: blanks, `- `, `export `.
const BEFORE_NAME: &[&[u8]] = &[b"export ", b"- ", b"set "];

/// Whether a name and a sign stand here: the next parameter.
fn is_parameter(rest: &[u8], blanks: bool) -> bool {
    let is_first = rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_$[".contains(byte));
    let is_of = |byte: &&u8| is_of_name(**byte) || b"[]".contains(byte) || blanks && **byte == b' ';
    let name = rest.iter().take(PARAMETER_BYTES_MAX).take_while(is_of).count();
    is_first && (rest[name..].starts_with(b"=") || rest[name..].starts_with(b"%3D"))
}

/// Whether nothing, or what closes a text stands here.
fn is_closed(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"\"'`,;:)]}&|\\+.<>".contains(byte))
}

/// `amp;`, `#61;`: the rest of an entity.
fn is_entity(rest: &[u8]) -> bool {
    let is_of = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'#';
    let length = rest.iter().take(ENTITY_BYTES_MAX).take_while(is_of).count();
    length > 1 && rest.get(length) == Some(&b';')
}

/// `/a>`, `br>`, `a href=`: the rest of a tag.
fn is_tag(rest: &[u8]) -> bool {
    let name = rest.iter().take(TAG_BYTES_MAX).take_while(|byte| byte.is_ascii_alphabetic() || b"/!:".contains(byte)).count();
    name > 0 && rest[name..].iter().take(TAG_BYTES_MAX).any(|byte| *byte == b'>')
}

impl Scan<'_> {
    /// The end of a value without quotes that was found to be a credential, past the marks that are characters of it.
    pub(super) fn past_marks(&mut self, start: usize, mut end: usize) -> usize {
        while end < self.bytes.len() && !self.is_spent() && self.goes_on(start, end) {
            end = self.unquoted_end(end + 1);
        }
        end
    }

    /// Whether the value that begins there goes on behind this mark.
    fn goes_on(&mut self, start: usize, at: usize) -> bool {
        let rest = &self.bytes[at + 1..];
        match self.bytes[at] {
            b'&' => !is_closed(rest) && !is_entity(rest) && !is_parameter(rest, false),
            b';' => !is_closed(rest) && !is_parameter(rest, true),
            b'<' => !is_closed(rest) && !is_tag(rest),
            b'>' => !is_closed(rest),
            // `parts['password']`: a text of code opens here.
            _ if matches!(self.bytes[at - 1], b'[' | b'(') => false,
            quote @ (b'"' | b'\'' | b'`') => !is_closed(rest) && (!self.is_open(quote, start) || self.begins_line(start)),
            _ => false,
        }
    }

    /// Whether such a quote stands before this place.
    fn is_open(&mut self, quote: u8, at: usize) -> bool {
        let bytes = self.bytes;
        let first =
            self.names.memo.first_quotes[which_quote(quote)].next(0, &mut self.names.steps, || position(bytes, 0, |byte| byte == quote));
        first < at
    }

    /// Whether the name of the value that begins here is the first on its line.
    fn begins_line(&mut self, value: usize) -> bool {
        let before = &self.bytes[..value];
        let near = &before[before.len().saturating_sub(NAME_BYTES_MAX)..];
        let near = near.trim_ascii_end();
        let near = near.strip_suffix(b"=").or_else(|| near.strip_suffix(b":")).unwrap_or(near).trim_ascii_end();
        let name = near.iter().rev().take_while(|byte| is_of_name(**byte)).count();
        let mut near = &near[..near.len() - name];
        self.names.steps.spend(name);
        for word in BEFORE_NAME {
            near = near.strip_suffix(*word).unwrap_or(near);
        }
        let blanks = near.iter().rev().take_while(|byte| b" \t".contains(byte)).count();
        let near = &near[..near.len() - blanks];
        near.last().map_or(value <= NAME_BYTES_MAX, |byte| *byte == b'\n')
    }
}
