//! Objects behind the name of a credential: `{"value": "…"}`, `Secret { inner: "…" }`, `map[value:…]`.

use std::ops::Range;

use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::{Scan, Start};
use crate::redact::bytes::position;
use crate::redact::names::Meaning;
use crate::redact::quotes::closing;
use crate::redact::value_forms::{KIND_OF_JWK, is_kind, is_names};

/// What stands before the bracket of a map or a list that Go prints: `map[a:b]`, `map[string]interface {}{"a":"b"}`, `[]string{"a"}`.
pub(super) fn go_type_length(rest: &[u8]) -> Option<usize> {
    let behind = match rest.strip_prefix(b"map[") {
        Some(key) => {
            let length = key.iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            key[length..].strip_prefix(b"]").filter(|_| length > 0)
        }
        None => Some(rest.strip_prefix(b"[]")?),
    };
    let of_value = behind.and_then(|behind| {
        let is_any = behind.starts_with(b"interface {}");
        let of_name = behind.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || b"_.*[]".contains(byte)).count();
        let length = if is_any { "interface {}".len() } else { of_name };
        (length > 0 && behind.get(length) == Some(&b'{')).then(|| rest.len() - behind.len() + length)
    });
    of_value.or_else(|| rest.starts_with(b"map[").then_some("map".len()))
}

/// Whether a key in quotes begins here that each JSON Web Key has.
fn is_kind_of_jwk(rest: &[u8]) -> bool {
    let is_edge = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\'' | b'\\'));
    is_edge(rest.first()) && rest[1..].starts_with(KIND_OF_JWK.as_bytes()) && is_edge(rest.get(1 + KIND_OF_JWK.len()))
}

impl Scan<'_> {
    /// Whether this key in quotes stands in a JSON Web Key, which has no objects in it. The text between two braces is read once.
    pub(super) fn is_in_jwk(&mut self, key: &Range<usize>) -> bool {
        if !matches!(self.bytes.get(key.end), Some(b'"' | b'\'' | b'\\')) {
            return false;
        }
        if !self.jwk.0.contains(&key.start) {
            let is_brace = |byte: &u8| matches!(byte, b'{' | b'}');
            let start = self.bytes[..key.start].iter().rposition(is_brace).unwrap_or(0);
            let end = position(self.bytes, key.start, |byte| is_brace(&byte));
            self.names.steps.spend(end - start);
            self.jwk = (start..end, (start..end).any(|at| is_kind_of_jwk(&self.bytes[at..end])));
        }
        self.jwk.1
    }

    /// Whether the value is an object: `{"value": "…"}`, `Secret { inner: "…" }`, `map[value:…]`. Where it begins and where it opens.
    pub(super) fn object_at(&self, meaning: Meaning, behind: usize, start: Start) -> Option<(usize, usize)> {
        if start.quote.is_some() || !meaning.is_sure() {
            return None;
        }
        if start.in_list {
            let list = self.past_blanks(behind);
            return (self.bytes[start.at] == b'{').then_some((list, list));
        }
        let rest = &self.bytes[start.at..];
        if let Some(of_type) = go_type_length(rest) {
            return Some((start.at, start.at + of_type));
        }
        let name = rest.iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"_:&.*".contains(byte)).count();
        let name = if rest.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'&') { name } else { 0 };
        let blank = usize::from(name > 0 && rest.get(name) == Some(&b' '));
        let at = start.at + name + blank;
        // `{{ .Values.password }}` is none.
        let is_open = self.bytes.get(at) == Some(&b'{') && (name > 0 || self.bytes.get(at + 1) != Some(&b'{'));
        is_open.then_some((start.at, at))
    }

    /// An object behind the name of a credential: everything in it is one, unless it only describes the kind of the credential.
    pub(super) fn object(&mut self, from: usize, open: usize, meaning: Meaning) -> Option<usize> {
        if open < self.harmless_to {
            return None;
        }
        let (text, bytes) = (self.text, self.bytes);
        let is_kind = |range: Range<usize>| is_kind(&text[range.clone()]) || meaning == Meaning::Tokens && is_names(&text[range]);
        let (mut at, mut depth, mut harmless) = (open, 0u32, true);
        while at < bytes.len() {
            match bytes[at] {
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        at += 1;
                        break;
                    }
                }
                quote @ (b'"' | b'\'' | b'`') => {
                    let slashes = bytes[open..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                    let closed = closing(&bytes[at + 1..], quote, slashes);
                    let end = at + 1 + closed.unwrap_or_else(|stop| stop);
                    harmless &= self.is_name_in_object((end + slashes + 1).min(bytes.len())) || is_kind(at + 1..end);
                    // No backslashes stand before the end of a line.
                    at = end + if closed.is_ok() { slashes } else { 0 };
                }
                byte if is_of_name(byte) => {
                    let end = position(bytes, at, |byte| !is_of_name(byte) && !b"+/~!@#%^*?".contains(&byte));
                    let is_type = bytes[end..].trim_ascii_start().first().is_some_and(|byte| b"{(".contains(byte));
                    harmless &= is_type || self.is_name_in_object(end) || is_kind(at..end);
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        let end = at.min(bytes.len());
        self.names.steps.spend(end - open);
        if harmless {
            self.harmless_to = end;
            return None;
        }
        self.hide(from..end)
    }
}
