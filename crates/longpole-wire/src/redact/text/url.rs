//! Passwords in URLs and in what Go has in their place.

use super::name::NAME_BYTES_MAX;
use super::scan::Scan;
use crate::redact::bytes::{floor, position};
use crate::redact::token_formats;
use crate::redact::value_forms::{LONG_BYTES_MIN, is_key, is_nothing};

/// Bytes behind `scheme://user:` in which the `@` is looked for when the password has a slash.
const PASSWORD_BYTES_MAX: usize = 1024;

pub(super) fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`<>\\?#),;".contains(&byte)
}

impl Scan<'_> {
    /// `password` of `scheme://user:password@host`, or all before the `@` where that is long enough to be a token.
    pub(super) fn url(&mut self, start: usize) -> Option<usize> {
        let ends_text = |c: char| c.is_whitespace() || "\"'`<>\\".contains(c);
        let rest = &self.text[start..];
        let authority = &rest[..rest.find(|c: char| ends_text(c) || "/?#".contains(c)).unwrap_or(rest.len())];
        let user_info = match authority.rfind('@') {
            Some(at) => &authority[..at],
            None => {
                // A password with a slash that nobody encoded: what stands behind the colon is no port then.
                let (_, port) = authority.split_once(':')?;
                if port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) || port.starts_with(['{', '$', '%', '<', '[', ':']) {
                    return None;
                }
                if self.is_spent() {
                    return Some(self.bytes.len());
                }
                let (text, bytes) = (self.text, self.bytes);
                let find = || text[start..].find(|c: char| ends_text(c) || c == ',').map_or(text.len(), |length| start + length);
                let end = self.names.memo.url_end.next(start, &mut self.names.steps, find);
                let near = &text[start..end.min(start + floor(rest, PASSWORD_BYTES_MAX))];
                let sign = self.names.memo.at_sign.next(start, &mut self.names.steps, || position(bytes, start, |byte| byte == b'@'));
                if sign >= start + near.len() {
                    return None;
                }
                self.names.steps.spend(near.len());
                &near[..near.rfind('@')?]
            }
        };
        let end = start + user_info.len();
        match user_info.find(':') {
            Some(colon) if is_nothing(&user_info[colon + 1..]) => None,
            // `TOKEN:x-oauth-basic@`.
            Some(colon) if colon >= LONG_BYTES_MIN && is_key(&user_info[..colon]) => self.hide(start..end),
            Some(colon) => self.hide(start + colon + 1..end),
            None if user_info.len() >= LONG_BYTES_MIN || token_formats::begins_with_token(user_info.as_bytes()) => self.hide(start..end),
            None => None,
        }
    }

    /// `user:password@tcp(host)/db` of Go, `user:password@host:5432/db`.
    pub(super) fn before_at_sign(&mut self, at: usize) -> Option<usize> {
        let behind = &self.bytes[at + 1..];
        let host = behind.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte)).count();
        let is_server = match behind.get(host)? {
            b'(' => [&b"tcp"[..], b"tcp6", b"unix"].contains(&&behind[..host]),
            b':' => {
                let port = behind[host + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                host > 0 && (2..=5).contains(&port) && behind.get(host + 1 + port).is_none_or(|byte| b"/ \"'".contains(byte))
            }
            _ => false,
        };
        if !is_server {
            return None;
        }
        let is_of_user = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'`/=<>(),;\\".contains(byte);
        let length = self.bytes[self.hidden_to..at].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_user(byte)).count();
        let start = floor(self.text, at - length);
        let colon = self.text[start..at].find(':')?;
        if colon == 0 || is_nothing(&self.text[start + colon + 1..at]) { None } else { self.hide(start + colon + 1..at) }
    }
}
