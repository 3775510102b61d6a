//! The name that stands before a mark, and what it says of the value behind.

use std::ops::Range;

use super::scan::Scan;
use crate::redact::bytes::{colour_before, ends_with_ignoring_case};
use crate::redact::names::Meaning;
use crate::redact::value_forms::{is_private_of_jwk, is_value_of_pair};

/// Bytes before a mark in which its name is looked for.
pub(super) const NAME_BYTES_MAX: usize = 256;

#[inline]
pub(super) fn is_of_name(byte: u8) -> bool {
    OF_NAMES[byte as usize]
}

static OF_NAMES: [bool; 256] = {
    let mut of_names = [false; 256];
    let mut byte = 0u8;
    loop {
        of_names[byte as usize] = byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'_' | b'-' | b'.' | b'$');
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    of_names
};

/// `Authorization`, `X-Api-Key`: so no word of a URN is written.
pub(super) fn is_header(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization") || name.contains('-') && !name.contains(['.', '/'])
}

impl Scan<'_> {
    /// The name that stands before a mark, and whether in quotes.
    pub(super) fn name_before(&self, mark: usize) -> Option<(Range<usize>, bool)> {
        let bytes = &self.bytes[..mark];
        let blanks = |bytes: &[u8]| bytes.iter().rev().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let mut end = mark - blanks(bytes);
        while let Some(length) = colour_before(&bytes[..end]) {
            end -= length;
            end -= blanks(&bytes[..end]);
        }
        // `password?: string`, `PASSWORD ?= x` of make.
        if bytes[..end].ends_with(b"?") {
            end -= 1;
            end -= blanks(&bytes[..end]);
        }
        // `char password[32] = "…"`.
        if let Some(rest) = bytes[..end].strip_suffix(b"]") {
            let digits = rest.iter().rev().take(8).take_while(|byte| byte.is_ascii_digit()).count();
            end -= if digits > 0 && rest[..rest.len() - digits].ends_with(b"[") { digits + 2 } else { 0 };
        }
        let closers =
            self.bytes[..end].iter().rev().take(8).take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b']' | b'[')).count();
        let quoted = self.bytes[end - closers..end].iter().any(|byte| b"\"'`".contains(byte));
        end -= closers;
        let length = self.bytes[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
        let mut start = end - length;
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        // The last letter of a colour is none of the name behind it.
        if start > 0 && b"[;".contains(&self.bytes[start - 1]) {
            let digits = self.bytes[start..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let behind = (start + digits + 1).min(end);
            start = if colour_before(&self.bytes[..behind]).is_some() { behind } else { start };
        }
        (start < end).then_some((start..end, quoted))
    }

    /// What a name says, with the word before it (`API key: …`) and the name whose value it is (`"name": "TOKEN", "value": …`).
    pub(super) fn meaning_at(&mut self, name: &Range<usize>, behind: usize) -> Meaning {
        let text = self.text;
        let of_name = self.names.meaning(&text[name.clone()]);
        if of_name != Meaning::Plain {
            return of_name;
        }
        let word = &self.bytes[name.clone()];
        if (word.eq_ignore_ascii_case(b"key") || word.eq_ignore_ascii_case(b"string"))
            && name.start > 1
            && self.bytes[name.start - 1] == b' '
        {
            let before =
                self.bytes[..name.start - 1].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            return self.names.meaning(&text[name.start - 1 - before..name.end]);
        }
        if word.len() <= 2 {
            return self.meaning_of_short(name, behind);
        }
        // `mot de passe`.
        if word.eq_ignore_ascii_case(b"passe") && ends_with_ignoring_case(&self.bytes[..name.start], b"mot de ") {
            return Meaning::Password;
        }
        if word == b"input_value" {
            return self.meaning_of_input(name, behind);
        }
        if matches!(word, b"input" | b"data") {
            return self.meaning_of_field(name.start, behind, true);
        }
        if !is_value_of_pair(word) {
            return Meaning::Plain;
        }
        match self.meaning_of_pair(name.start, behind) {
            Meaning::Plain => self.meaning_of_field(name.start, behind, false),
            meaning => meaning,
        }
    }

    /// The same of one or two letters or digits, which say nothing on their own.
    fn meaning_of_short(&mut self, name: &Range<usize>, behind: usize) -> Meaning {
        let word = &self.bytes[name.clone()];
        if is_private_of_jwk(word) && self.is_in_jwk(name) {
            return Meaning::Token;
        }
        // `Secret ID = …`, as Nomad prints it.
        if word.eq_ignore_ascii_case(b"id") && ends_with_ignoring_case(&self.bytes[..name.start], b"secret ") {
            return Meaning::SecretId;
        }
        // `Unseal Key 1: …`.
        if word.iter().all(u8::is_ascii_digit) && name.start > 1 && self.bytes[name.start - 1] == b' ' {
            let end = name.start - 1;
            let before = self.bytes[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            return if before > 2 { self.meaning_at(&(end - before..end), behind) } else { Meaning::Plain };
        }
        Meaning::Plain
    }

    /// Whether what ends here is a name and not a value.
    pub(super) fn is_name_in_object(&self, end: usize) -> bool {
        let behind = self.bytes[end..].iter().take(8).find(|byte| !byte.is_ascii_whitespace());
        behind.is_some_and(|byte| b":=".contains(byte))
    }
}
