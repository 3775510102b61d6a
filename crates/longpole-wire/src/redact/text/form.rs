//! Fields of a form as it is sent, and of what PHP serializes.
//!
//! ```text
//! Content-Disposition: form-data; name="password"⏎⏎hunter2⏎--boundary     behind the blank line, up to the boundary
//! s:8:"password";s:7:"hunter2";                                           the text behind the name, with its length before it
//! ```

use super::scan::Scan;
use crate::redact::bytes::position;
use crate::redact::names::Meaning;
use crate::redact::value_forms::is_nothing;

/// What stands before the name of a field.
const DISPOSITION: &[u8] = b"form-data; ";

/// Lines of a field's header.
const HEADER_LINES_MAX: usize = 8;

/// The longest field that may be a credential: twice a key of 4096 bits.
const FIELD_BYTES_MAX: usize = 8192;

/// Digits of the length of a serialized text.
const LENGTH_DIGITS_MAX: usize = 6;

impl Scan<'_> {
    /// Whether the name that begins here is that of a field in a form.
    pub(super) fn is_of_form(&self, name: usize) -> bool {
        self.bytes[..name].ends_with(DISPOSITION)
    }

    /// A field of a form whose name stands behind this place.
    pub(super) fn form_field(&mut self, behind: usize) -> Option<usize> {
        let meaning = self.meaning_of_name_at(behind);
        if meaning == Meaning::Plain || self.is_spent() {
            return None;
        }
        let start = self.behind_header(behind)?;
        let text = self.text;
        let find = || text[start..].find("\n--").map_or(text.len(), |length| start + length);
        let end = self.names.memo.form_end.next(start, &mut self.names.steps, find);
        let end = if end - start <= FIELD_BYTES_MAX { end } else { self.line_end(start) };
        let value = text[start..end].trim_end_matches(['\r', '\n']);
        self.names.steps.spend(value.len());
        if is_nothing(value) || !meaning.is_of(value) { None } else { self.hide(start..start + value.len()) }
    }

    /// The place behind the blank line that ends the header which this place is in.
    fn behind_header(&mut self, at: usize) -> Option<usize> {
        let past_end = |bytes: &[u8], at: usize| match bytes[at..] {
            [b'\r', b'\n', ..] => Some(at + 2),
            [b'\n', ..] => Some(at + 1),
            _ => None,
        };
        let mut end = self.line_end(at);
        for _ in 0..HEADER_LINES_MAX {
            let next = past_end(self.bytes, end)?;
            if let Some(body) = past_end(self.bytes, next) {
                return Some(body);
            }
            end = self.line_end(next);
        }
        None
    }

    /// A value of PHP's `serialize`: `s:7:"hunter2"` or `a:1:{…}`, whose last colon stands here, behind the name of a credential.
    pub(super) fn serialized(&mut self, colon: usize) -> Option<usize> {
        let before = &self.bytes[..colon];
        let digits = before.iter().rev().take(LENGTH_DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
        let length: usize = self.text[colon - digits..colon].parse().ok()?;
        let before = before[..colon - digits].strip_suffix(b":")?;
        let (kind, before) = before.split_last()?;
        // `"password";s:…` in a list, `password|s:…` in a session.
        let name = before.strip_suffix(b"\";").or_else(|| before.strip_suffix(b"|"))?.len();
        let (name, _) = self.name_before(name)?;
        let meaning = self.names.meaning(&self.text[name]);
        if meaning == Meaning::Plain {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let start = colon + 2;
        match (kind, self.bytes[colon + 1]) {
            (b'a', b'{') if meaning.is_sure() => self.object(colon + 1, colon + 1, meaning),
            (b's', b'"') => {
                let ends = start + length <= self.bytes.len() && self.bytes.get(start + length).is_none_or(|byte| *byte == b'"');
                let end = if ends { start + length } else { position(self.bytes, start, |byte| byte == b'"' || byte == b'\n') };
                self.names.steps.spend(end - start);
                let value = self.text.get(start..end)?;
                if is_nothing(value) || !meaning.is_of(value) { None } else { self.hide(start..end) }
            }
            _ => None,
        }
    }
}
