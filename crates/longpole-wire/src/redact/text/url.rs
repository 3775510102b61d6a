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

/// Bytes of a scheme before `://`.
const SCHEME_BYTES_MAX: usize = 32;

/// What stands before a URL in quotes or between tags, and what ends it.
pub(super) const CLOSERS: [(u8, u8); 5] = [(b'"', b'"'), (b'\'', b'\''), (b'`', b'`'), (b'<', b'>'), (b'>', b'<')];

/// Whether a quote has a mark of JSON or of code beside it, as none inside of a password has: `","`, `':`, `"}`.
fn is_structured(text: &[u8]) -> bool {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`');
    text.windows(2).any(|two| is_quote(two[0]) && b",:;)]}".contains(&two[1]) || b",:([{".contains(&two[0]) && is_quote(two[1]))
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
                let find = || text[start..].find(|c: char| c.is_whitespace() || c == ',').map_or(text.len(), |length| start + length);
                let end = self.names.memo.url_end.next(start, &mut self.names.steps, find);
                // A quote or a tag ends the text of a URL that stands behind one.
                let end = match self.closer_around(start) {
                    Some((which, closer)) => {
                        let find = || position(bytes, start, |byte| byte == closer);
                        end.min(self.names.memo.url_closers[which].next(start, &mut self.names.steps, find))
                    }
                    None => end,
                };
                let near = &text[start..end.min(start + floor(rest, PASSWORD_BYTES_MAX))];
                let sign = self.names.memo.at_sign.next(start, &mut self.names.steps, || position(bytes, start, |byte| byte == b'@'));
                if sign >= start + near.len() {
                    return None;
                }
                self.names.steps.spend(near.len());
                let user_info = &near[..near.rfind('@')?];
                if is_structured(&user_info.as_bytes()[authority.len()..]) {
                    return None;
                }
                user_info
            }
        };
        let end = start + user_info.len();
        match user_info.find(':') {
            // `TOKEN:x-oauth-basic@`, `TOKEN:@`.
            Some(colon) if colon >= LONG_BYTES_MIN && is_key(&user_info[..colon]) => self.hide(start..end),
            Some(colon) if is_nothing(&user_info[colon + 1..]) => None,
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
        if let Some(password) = self.behind_user(at) {
            return if is_nothing(&self.text[password..at]) { None } else { self.hide(password..at) };
        }
        let is_of_user = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'`/=<>(),;\\".contains(byte);
        let length = self.bytes[self.hidden_to..at].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_user(byte)).count();
        let start = floor(self.text, at - length);
        let colon = self.text[start..at].find(':')?;
        if colon == 0 || is_nothing(&self.text[start + colon + 1..at]) { None } else { self.hide(start + colon + 1..at) }
    }

    /// What closes the quote or the tag that stands before the scheme of a URL, and which one of [`CLOSERS`] it is.
    fn closer_around(&self, authority: usize) -> Option<(usize, u8)> {
        let before = &self.bytes[..authority - "://".len()];
        let scheme =
            before.iter().rev().take(SCHEME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.:".contains(byte)).count();
        let opener = before[..before.len() - scheme].last()?;
        let which = CLOSERS.iter().position(|(open, _)| open == opener)?;
        Some((which, CLOSERS[which].1))
    }

    /// Where the password begins that ends here and may have any mark in it: behind the first `user:` of what has no blank.
    fn behind_user(&self, at: usize) -> Option<usize> {
        let bytes = &self.bytes[..at];
        let is_of_word = |byte: &&u8| !byte.is_ascii_whitespace() && !byte.is_ascii_control();
        let length = bytes[self.hidden_to..].iter().rev().take(NAME_BYTES_MAX).take_while(is_of_word).count();
        let from = at - length;
        let begins = |at: &usize| *at == from || b"\"'`([{<>=,;&".contains(&bytes[*at - 1]);
        let password = (from..at).filter(begins).find_map(|user| {
            let is_first = bytes[user].is_ascii_alphabetic() || bytes[user] == b'_';
            let length = bytes[user..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.%-".contains(byte)).count();
            let behind = user + length + 1;
            (is_first && bytes.get(behind - 1) == Some(&b':') && !bytes[behind..].starts_with(b"//")).then_some(behind)
        })?;
        (!is_structured(&bytes[password..]) && password < at).then_some(password)
    }
}
