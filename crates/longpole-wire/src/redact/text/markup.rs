//! Values between tags.

use super::scan::{Pair, Scan};
use crate::redact::bytes::{floor, position};
use crate::redact::names::Meaning;
use crate::redact::value_forms::{is_name_of_pair, is_nothing, is_value_of_pair, names_or_tells};

/// Bytes before `>` in which its tag is looked for.
const TAG_BYTES_MAX: usize = 256;

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
        if !meaning.is_sure() || matches!(meaning, Meaning::Pass | Meaning::Pwd) {
            return None;
        }
        let mut start = at + 1;
        if self.text[start..].starts_with("<![CDATA[") {
            start += "<![CDATA[".len();
        }
        let end = start + self.text[start..].find(['<', ']']).unwrap_or(self.text.len() - start);
        let value = self.text[start..end].trim();
        // `Vec<Token> = …`.
        let is_code = value.starts_with('=') && open > 0 && self.bytes[open - 1].is_ascii_alphanumeric();
        if is_code || is_nothing(value) || told && names_or_tells(value) { None } else { self.hide(start..end) }
    }
}
