//! Values between tags.

use super::scan::{Pair, Scan};
use crate::redact::bytes::{floor, position};
use crate::redact::names::Meaning;
use crate::redact::value_forms::{is_name_of_pair, is_nothing, is_value_of_pair, names_or_tells};

/// Bytes before `>` in which its tag is looked for.
const TAG_BYTES_MAX: usize = 256;

/// What begins a text in which marks have no meaning.
const CDATA: &str = "<![CDATA[";

impl Scan<'_> {
    /// `<password>x</password>`, `<ns:Password Type="…">x</ns:Password>`.
    pub(super) fn behind_tag(&mut self, at: usize) -> Option<usize> {
        let from = floor(self.text, at.saturating_sub(TAG_BYTES_MAX));
        let open = from + self.text[from..at].rfind(['<', '>'])?;
        let tag = &self.text[open + 1..at];
        if self.bytes[open] != b'<' || tag.starts_with(['/', '!', '?']) || tag.ends_with('/') {
            return None;
        }
        let name = tag.split(|c: char| c.is_ascii_whitespace()).next()?;
        let name = name.rsplit(':').next()?;
        let mut meaning = self.names.meaning(name);
        let mut told = false;
        if meaning == Meaning::Plain {
            let (bytes, name) = (self.bytes, name.as_bytes());
            if let Some(pair) = self.pair.filter(|pair| (open + 1..at).contains(&pair.behind)) {
                // `<entry key="password">`; others than data have texts there.
                meaning = self.meaning_of_name_at(pair.behind);
                told = true;
            } else if let Some(field) = self.field_in(&(open + 1..at)) {
                meaning = self.names.meaning_of_any(&self.text[field]);
                told = true;
            } else if is_value_of_pair(name) || name.eq_ignore_ascii_case(b"string") {
                // `<name>password</name><value>`.
                let of_pair = self.pair.as_mut().and_then(|pair| pair.is_beside(bytes, open).then_some(pair.behind));
                meaning = of_pair.map_or(Meaning::Plain, |behind| self.meaning_of_name_at(behind));
            } else if is_name_of_pair(name) {
                let behind = position(bytes, at + 1, |byte| byte == b'<' || byte == b'\n');
                let closed = position(bytes, behind, |byte| byte == b'>' || byte == b'\n');
                self.names.steps.spend(closed - at);
                self.pair = Some(Pair { behind: at + 1, seen_to: closed, open: 0 });
            }
        }
        if meaning == Meaning::Plain {
            return None;
        }
        let (text, bytes) = (self.text, self.bytes);
        let (start, end) = if text[at + 1..].starts_with(CDATA) {
            let start = at + 1 + CDATA.len();
            let find = || text[start..].find("]]>").map_or(text.len(), |length| start + length);
            (start, self.names.memo.cdata_end.next(start, &mut self.names.steps, find))
        } else {
            (at + 1, position(bytes, at + 1, |byte| byte == b'<'))
        };
        let value = self.text[start..end].trim();
        // `Vec<Token> = …`.
        let is_code = open > 0 && bytes[open - 1].is_ascii_alphanumeric() && !text[end..].starts_with("</");
        let is_one = meaning.is_of(value) && !is_nothing(value);
        if is_code || !is_one || told && names_or_tells(value) { None } else { self.hide(start..end) }
    }
}
