//! Values of HTTP headers: `Authorization`, `Cookie`, `Bearer …` in any text.

use super::keywords::SCHEMES_OF_KEYS;
use super::name::{NAME_BYTES_MAX, is_of_name};
use super::scan::{Scan, Start};
use crate::redact::names::Meaning;
use crate::redact::value_forms::{LONG_BYTES_MIN, is_key, is_nothing, is_random, is_user_and_password, scheme_length};

/// Attributes of a cookie, which are no secret.
const OF_COOKIES: &[&str] =
    &["path", "domain", "expires", "max-age", "secure", "httponly", "samesite", "priority", "partitioned", "version"];

pub(super) fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The length of `name="value"` at the beginning of a header's line, 0 if it begins with none.
fn quoted_pair_length(line: &str) -> usize {
    let name = line.bytes().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(*byte)).count();
    let Some(inside) = line.as_bytes()[name..].strip_prefix(b"=\"") else { return 0 };
    inside.iter().position(|byte| *byte == b'"').map_or(0, |length| name + length + 3)
}

impl Scan<'_> {
    /// `Authorization: SCHEME credential`: the scheme stays.
    pub(super) fn authorization(&mut self, start: Start) -> Option<usize> {
        let rest = &self.text[start.at..];
        let bounded = start.quote.is_some() || start.in_list;
        let scheme = scheme_length(rest);
        let from = start.at + scheme;
        let end = match (bounded, scheme) {
            (true, _) => self.value_end(start),
            (false, 0) => {
                let end = self.unquoted_end(start.at);
                let next = end + self.bytes[end..].iter().take_while(|byte| **byte == b' ').count();
                let second = self.unquoted_end(next);
                // A scheme that nobody knows.
                if next > end && is_random(&self.text[next..second]) { second } else { end }
            }
            (false, _) => self.credentials_end(from),
        };
        if from >= end || is_nothing(&self.text[from..end]) {
            return None;
        }
        self.hide(from..end)
    }

    /// The end of a credential as headers have it: one word, or `name="value", name=value`.
    fn credentials_end(&mut self, start: usize) -> usize {
        let mut at = start;
        loop {
            let name = self.bytes[at..].iter().take_while(|byte| is_of_name(**byte)).count();
            let quoted = match self.bytes[at + name..] {
                [b'=', ..] => Some(at + name + 1),
                // A quote around the header stands before no letter.
                [b'"', letter, ..] if name == 0 && letter.is_ascii_alphanumeric() => Some(at),
                _ => None,
            };
            let quote = quoted.and_then(|at| self.value_start(at)).filter(|value| value.quote.is_some());
            at = match quote {
                Some(value) => {
                    let end = self.value_end(value);
                    // Letters may stand behind the quote, and be part of the value.
                    let quote = value.quote.filter(|(quote, slashes)| self.bytes.get(end + slashes) == Some(quote));
                    end + quote.map_or(0, |(_, slashes)| slashes + 1)
                }
                None => self.unquoted_end(at),
            };
            let blanks = |from: usize| from + self.bytes[from..].iter().take_while(|byte| **byte == b' ').count();
            if self.bytes.get(at) != Some(&b',') {
                return at;
            }
            let next = blanks(at + 1);
            let name = self.bytes[next..].iter().take_while(|byte| is_of_name(**byte)).count();
            if name == 0 || self.bytes.get(next + name) != Some(&b'=') {
                return at;
            }
            at = next;
        }
    }

    /// `Cookie: a=1; b=2` is hidden as a whole; of `Set-Cookie: sid=1; Path=/` what is no attribute.
    pub(super) fn cookies(&mut self, start: Start, meaning: Meaning) -> Option<usize> {
        let bounded = start.quote.is_some() || start.in_list;
        let limit = if bounded { self.value_end(start) } else { self.line_end(start.at) };
        if bounded && meaning == Meaning::Cookie {
            return if is_nothing(&self.text[start.at..limit]) { None } else { self.hide(start.at..limit) };
        }
        let mut last = None;
        let (mut at, mut open) = (start.at, None);
        while at < limit {
            let pair = &self.text[at..limit];
            let quoted = if bounded { 0 } else { quoted_pair_length(pair) };
            let ends = |at: usize, c: char| {
                // A quote around the header stands before no letter.
                let is_outer = || !pair.as_bytes().get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
                c == ';' || c == ',' && meaning == Meaning::SetCookie || !bounded && (c.is_whitespace() || "\"'`".contains(c) && is_outer())
            };
            let end = pair[quoted..].char_indices().find(|(from, c)| ends(quoted + from, *c));
            let end = at + end.map_or(pair.len(), |(from, _)| quoted + from);
            let name = self.text[at..end].split('=').next().unwrap_or("").trim();
            let harmless = meaning == Meaning::SetCookie && OF_COOKIES.iter().any(|word| word.eq_ignore_ascii_case(name));
            // Days of an `Expires` have a comma and blanks.
            let dated = harmless && name.eq_ignore_ascii_case("expires");
            let end = if dated { at + self.text[at..limit].find([';', '"', '\'']).unwrap_or(limit - at) } else { end };
            self.names.steps.spend(end - at);
            if harmless || is_nothing(&self.text[at..end]) {
                last = open.take().and_then(|from| self.hide(from..at.min(limit))).or(last);
            } else if meaning == Meaning::SetCookie {
                last = self.hide(at..end).or(last);
            } else {
                open.get_or_insert(at);
            }
            let next = self.text[end..limit].trim_start_matches([' ', ';', ',']);
            let next = limit - next.len();
            // Behind a blank stands the next pair, or what is no cookie.
            if self.bytes.get(end).is_none_or(|byte| !b";,".contains(byte)) || next >= limit {
                last = open.take().and_then(|from| self.hide(from..end)).or(last);
                break;
            }
            at = next;
        }
        if let Some(from) = open {
            last = self.hide(from..at.min(limit)).or(last);
        }
        last
    }

    /// `Bearer 0123…` in any text, and what else says that a key follows.
    pub(super) fn behind_scheme(&mut self, at: usize, scheme: &str) -> Option<usize> {
        let behind = at + scheme.len();
        let blanks = self.bytes[behind..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'+')).count();
        let start = behind + blanks;
        if blanks == 0 || start >= self.bytes.len() {
            return None;
        }
        let word = &self.text[start..self.unquoted_end(start)];
        let is_one = match scheme {
            "basic" => is_random(word) || is_user_and_password(word),
            "digest" => {
                let begins = ["username", "realm", "nonce", "response"].iter().any(|name| word.starts_with(name));
                begins && word.as_bytes()[..word.len().min(NAME_BYTES_MAX)].contains(&b'=')
            }
            "aws4-hmac-sha256" => word.starts_with("Credential="),
            _ if SCHEMES_OF_KEYS.contains(&scheme) => word.len() >= LONG_BYTES_MIN && is_key(word),
            _ => is_random(word),
        };
        if !is_one || is_nothing(word) {
            return None;
        }
        let end = self.credentials_end(start);
        self.hide(start..end)
    }
}
