//! The loop of a scan over the bytes of a text: at each word and each mark it asks which rule recognises something there.

use std::ops::Range;

use super::header::is_of_scheme;
use super::keywords::{KEYWORD_BEGINNINGS, KeywordKind, TOKEN_BEGINNINGS, keywords};
use super::name::{NAME_BYTES_MAX, is_header};
use super::scan::{Operator, Scan};
use super::url::ends_path;
use crate::redact::bytes::{colour_length, position, starts_with_ignoring_case};
use crate::redact::escapes::ENTITY_BYTES_MAX;
use crate::redact::names::Meaning;
use crate::redact::token_formats;
use crate::redact::value_forms::{is_mixed, is_nothing};

/// What a byte means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Word,
    Mark,
    /// A command may begin behind it.
    Break,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    // No other bytes are letters or digits.
    let mut byte = 0u8;
    while byte.is_ascii() {
        if byte.is_ascii_alphanumeric() {
            classes[byte as usize] = Class::Word;
        }
        byte += 1;
    }
    let breaks = b";\n|`";
    let mut at = 0;
    while at < breaks.len() {
        classes[breaks[at] as usize] = Class::Break;
        at += 1;
    }
    // The last begins the wide forms of `=` and `:`.
    let marks = b"=:>@~%\\&-({,\xef";
    let mut at = 0;
    while at < marks.len() {
        classes[marks[at] as usize] = Class::Mark;
        at += 1;
    }
    classes
};

/// Bytes of a secret key of AWS.
const SECRET_OF_AWS_BYTES: usize = 40;

impl Scan<'_> {
    pub(super) fn run(&mut self) {
        let bytes = self.bytes;
        let mut at = 0;
        while at < bytes.len() {
            match CLASSES[bytes[at] as usize] {
                Class::Other if bytes[at] != b'\x1b' => at += 1,
                Class::Other => at += colour_length(&bytes[at..]).max(1),
                Class::Word => {
                    if let Some(end) = self.word(at) {
                        at = end;
                        continue;
                    }
                    let start = at;
                    at += bytes[at..].iter().position(|byte| CLASSES[*byte as usize] != Class::Word).unwrap_or(bytes.len() - at);
                    if at - start >= token_formats::HEX_BYTES {
                        self.inside(start..at);
                    }
                }
                Class::Mark => at = self.mark(at).unwrap_or(at + 1),
                Class::Break => {
                    self.breaks = true;
                    at += 1;
                }
            }
        }
    }

    /// A word begins here. The end of the credential that it is or that follows it.
    pub(super) fn word(&mut self, at: usize) -> Option<usize> {
        let bytes = &self.bytes[at..];
        let &[a, b, c, ..] = bytes else { return None };
        if (token_formats::has(&TOKEN_BEGINNINGS, a, b, c) || a.is_ascii_digit() && b.is_ascii_digit())
            && bytes.len() >= token_formats::TOKEN_BYTES_MIN
        {
            if self.is_spent() {
                return Some(self.bytes.len());
            }
            if let Some(end) = token_formats::token_at(self.bytes, at, &mut self.names.memo.tokens, &mut self.names.steps) {
                let hidden = self.hide(at..end);
                let is_aws = bytes.starts_with(b"AKIA") || bytes.starts_with(b"ASIA");
                return if is_aws { self.secret_of_aws(end).or(hidden) } else { hidden };
            }
        }
        if !token_formats::has(&KEYWORD_BEGINNINGS, a, b, c) {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let (kind, word) = keywords(a).find(|(kind, word)| {
            // A scheme is a word of its own; the others may go on.
            starts_with_ignoring_case(bytes, word)
                && (!matches!(kind, KeywordKind::Scheme) || !bytes.get(word.len()).is_some_and(|byte| is_of_scheme(*byte)))
        })?;
        match kind {
            KeywordKind::Scheme => return self.behind_scheme(at, word),
            KeywordKind::Address => {
                let start = at + word.len();
                let path = &bytes[word.len()..];
                return self.hide(start..start + path.iter().position(|byte| ends_path(*byte)).unwrap_or(path.len()));
            }
            KeywordKind::Other => {}
        }
        match &word {
            &"identified" => self.identified_by(at + "identified".len()),
            word @ (&"password" | &"passphrase" | &"secret_access_key") => {
                self.password_literal(at, at + word.len()).or_else(|| self.directive(at, at + word.len(), true))
            }
            // `config set`, `configure", "set"`.
            &"config" | &"configure" => {
                let near = &bytes[..bytes.len().min(24)];
                self.commands |= near.windows(3).any(|word| word.eq_ignore_ascii_case(b"set"));
                None
            }
            &"auth" => self.auth_command(at),
            &"setuser" => self.set_user(at),
            &"values" => self.inserted(at, at + "values".len(), 0),
            &"value" => self.refused_value(at, at + "value".len()),
            &"convertto-securestring" => self.secure_string(at),
            &"oracle:thin:" => self.login_of_oracle(at + "oracle:thin:".len()),
            &"add-mask::" => {
                let start = at + "add-mask::".len();
                let end = self.line_end(start);
                if is_nothing(&self.text[start..end]) { None } else { self.hide(start..end) }
            }
            &"failed validating" => self.failed_validating(at),
            word @ (&"requirepass" | &"masterauth") => self.directive(at, at + word.len(), false),
            word @ (&"proxy_set_header" | &"set-header") => self.header_directive(at + word.len()),
            &"param" | &"args" | &"bind" => self.parameters(at),
            &"duplicate entry" => self.duplicate_entry(at + "duplicate entry".len()),
            // `INSERT INTO t (a, b) SELECT …`: a tuple without brackets.
            &"select" => self.inserted(at, at + "select".len(), 1),
            &"atlasv1" => self.inside_at(at.checked_sub(15)?, at),
            &"mmk" => self.inside_at(at.checked_sub(37)?, at),
            // The mark behind it sees the rest.
            &"private-lines" => {
                let start = self.line_end(at);
                let end = self.end_of_key(start, 0, "Private-MAC");
                self.hide(start..start + self.text[start..end].trim_end().len())
            }
            // Discord's, at whatever host and version of its API.
            &"webhooks/" => {
                let start = at + "webhooks/".len();
                let path = &self.bytes[start..];
                let id = path.iter().take(21).take_while(|byte| byte.is_ascii_digit()).count();
                let token = path.get(id + 1..).unwrap_or_default().iter().take(200).take_while(|byte| is_of_scheme(**byte)).count();
                let is_one = (15..=20).contains(&id) && path.get(id) == Some(&b'/') && token >= 40;
                if is_one { self.hide(start..start + id + 1 + token) } else { None }
            }
            &"hooks/" => {
                let path = &bytes["hooks/".len()..];
                let length = path.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(path.len());
                let start = at + "hooks/".len();
                if length == 26 && is_mixed(&path[..length]) { self.hide(start..start + length) } else { None }
            }
            _ => None,
        }
    }

    /// The secret key beside the id of an access key: `AKIA…:…` of s3fs, `'AKIA…', '…'` of ClickHouse.
    fn secret_of_aws(&mut self, behind: usize) -> Option<usize> {
        let start = behind + self.bytes[behind..].iter().take(4).take_while(|byte| b"\"', :".contains(byte)).count();
        let is_of_secret = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
        let length = self.bytes[start..].iter().take(SECRET_OF_AWS_BYTES + 1).take_while(is_of_secret).count();
        let end = start + length;
        (start > behind && length == SECRET_OF_AWS_BYTES && is_mixed(&self.bytes[start..end])).then(|| self.hide(start..end)).flatten()
    }

    /// A long word may have a known part inside, or behind it.
    pub(super) fn inside(&mut self, word: Range<usize>) {
        if token_formats::INSIDE_LENGTHS.contains(&word.len()) && token_formats::token_inside(&self.bytes[word.clone()]) {
            self.hide(word);
        } else if word.len() == token_formats::HEX_BYTES
            && self.bytes.get(word.end) == Some(&b'-')
            && let Some(length) = token_formats::behind_hex(&self.bytes[word.start..])
        {
            self.hide(word.start..word.start + length);
        } else {
            self.encoded(word);
        }
    }

    /// The same where the part was seen: all characters of a key around it.
    fn inside_at(&mut self, start: usize, seen: usize) -> Option<usize> {
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let bytes = self.bytes;
        let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~.+/=".contains(&byte);
        let end = self.names.memo.inside_end.next(start, &mut self.names.steps, || position(bytes, start, |byte| !is_of_key(byte)));
        let dots = bytes[start..end].iter().rev().take_while(|byte| **byte == b'.').count();
        self.names.steps.spend(dots);
        let length = end - start - dots;
        (start + length > seen && token_formats::token_inside(&self.bytes[start..start + length]))
            .then(|| self.hide(start..start + length))
            .flatten()
    }

    pub(super) fn mark(&mut self, at: usize) -> Option<usize> {
        let next = self.bytes.get(at + 1).copied();
        match self.bytes[at] {
            b'=' => {
                if next == Some(b'(')
                    && let Some(end) = self.behind_columns(at)
                {
                    return Some(end);
                }
                let length = 1 + usize::from(matches!(next, Some(b'=' | b'>' | b'~')));
                let (name, _) = self.name_before(at)?;
                self.value_of(name, at + length, Operator::Equals)
            }
            b':' => self.colon(at, next),
            b'>' => self.behind_tag(at),
            b',' => self.behind_comma(at),
            b'(' => {
                self.breaks |= at > 0 && self.bytes[at - 1] == b'$';
                let quoted = matches!(next, Some(b'"' | b'\''));
                if self.login(at) {
                    return None;
                }
                let name = quoted.then(|| self.name_before(at)).flatten()?.0;
                let called = &self.text[name.clone()];
                // Code that fetches a token names it.
                let sets = || {
                    called.rsplit('.').next().is_some_and(|name| ["set", "Set", "with", "With"].iter().any(|verb| name.starts_with(verb)))
                };
                let takes = match self.names.meaning(called) {
                    Meaning::Password => true,
                    Meaning::Token | Meaning::Signature | Meaning::Authorization => sets(),
                    // Without `=` it is the name of a cookie: `setCookie("theme", …)`.
                    Meaning::Cookie | Meaning::SetCookie => sets() && self.has_equals(at + 2),
                    _ => false,
                };
                takes.then(|| self.value_of(name, at + 1, Operator::Equals)).flatten()
            }
            b'@' => self.before_at_sign(at),
            b'~' => (at > 0 && self.bytes[at - 1] == b'Q').then(|| self.inside_at(at.checked_sub(5)?, at)).flatten(),
            b'-' => self.dash(at, next),
            b'{' => {
                self.braces = true;
                None
            }
            b'%' => {
                self.escaped |= next.is_some_and(|byte| byte.is_ascii_hexdigit() || byte == b'u');
                None
            }
            b'\\' => {
                self.escaped = true;
                None
            }
            0xef => {
                let operator = match self.bytes[at..] {
                    [_, 0xbc, 0x9a, ..] => Operator::Colon,
                    [_, 0xbc, 0x9d, ..] => Operator::Equals,
                    _ => return None,
                };
                let (name, _) = self.name_before(at)?;
                self.value_of(name, at + "：".len(), operator)
            }
            // An entity, or one command behind another.
            _ => {
                self.commands |= next == Some(b'&');
                self.breaks |= next == Some(b' ');
                self.escaped |= next.is_some_and(|byte| byte == b'#' || byte.is_ascii_alphabetic())
                    && self.bytes[at..self.bytes.len().min(at + 2 + ENTITY_BYTES_MAX)].contains(&b';');
                None
            }
        }
    }

    /// Whether `=` stands in the quotes that open before this place.
    fn has_equals(&self, at: usize) -> bool {
        let inside = self.bytes[at..].iter().take(NAME_BYTES_MAX).take_while(|byte| !b"\"'".contains(byte));
        inside.into_iter().any(|byte| *byte == b'=')
    }

    pub(super) fn colon(&mut self, at: usize, next: Option<u8>) -> Option<usize> {
        if next == Some(b'/') && self.bytes.get(at + 2) == Some(&b'/') {
            return self.url(at + 3);
        }
        if next == Some(b':') && self.bytes.get(at + 2) == Some(&b' ') {
            return self.behind_two_colons(at);
        }
        if matches!(next, Some(b'"' | b'{'))
            && at > 0
            && self.bytes[at - 1].is_ascii_digit()
            && let Some(end) = self.serialized(at)
        {
            return Some(end);
        }
        // `Class::method`, `urn::x`.
        if next == Some(b':') || at > 0 && self.bytes[at - 1] == b':' {
            return None;
        }
        if next == Some(b'=') {
            let (name, _) = self.name_before(at)?;
            return self.value_of(name, at + 2, Operator::Equals);
        }
        let (name, quoted) = self.name_before(at)?;
        if quoted && self.is_before_refused(at) {
            return None;
        }
        if quoted || matches!(next, None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x1b' | b'"' | b'\'' | b'`' | b'\\' | b'[')) {
            return self.value_of(name, at + 1, if quoted { Operator::Equals } else { Operator::Colon });
        }
        let before = name.start.checked_sub(1).map(|before| self.bytes[before]);
        let is_field = matches!(before, Some(b'{' | b' ' | b',' | b'(' | b'[')) && (self.braces || self.is_map());
        let is_header = matches!(before, None | Some(b'"' | b'\'' | b' ' | b'\n' | b'`' | b'=')) && is_header(&self.text[name.clone()]);
        (is_field || is_header).then(|| self.value_of(name, at + 1, Operator::Struct)).flatten()
    }

    /// `userPassword:: SHVudGVyMg==` of LDIF: base64 at the beginning of a line.
    fn behind_two_colons(&mut self, at: usize) -> Option<usize> {
        let (name, quoted) = self.name_before(at)?;
        if quoted || name.end != at || name.start > 0 && self.bytes[name.start - 1] != b'\n' {
            return None;
        }
        let start = at + 3;
        let digits =
            self.bytes[start..].iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
        let value = &self.bytes[start..start + digits.count()];
        let is_base64 = value.len() >= 4 && value.len().is_multiple_of(4) && value.iter().any(|byte| !byte.is_ascii_alphabetic());
        is_base64.then(|| self.value_of(name, at + 2, Operator::Equals)).flatten()
    }

    /// Whether there is a map as Go prints it.
    pub(super) fn is_map(&mut self) -> bool {
        let text = self.text;
        *self.is_map.get_or_insert_with(|| text.contains("map["))
    }

    /// An option of a command line, or a private key.
    fn dash(&mut self, at: usize, next: Option<u8>) -> Option<usize> {
        let before = at.checked_sub(1).map(|before| self.bytes[before]);
        if next.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && before.is_none_or(|byte| b" \"'[,`".contains(&byte) || byte.is_ascii_control() || byte == b'=' && next == Some(b'-'))
        {
            self.commands = true;
        }
        let rest = &self.bytes[at..];
        let label = rest.strip_prefix(b"-----BEGIN").or_else(|| rest.strip_prefix(b"---- BEGIN"))?;
        let length = label.iter().take(80).position(|byte| !byte.is_ascii_alphanumeric() && !b" +_".contains(byte))?;
        if !label[..length].windows(7).any(|word| word == b"PRIVATE") {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        // Behind the dashes of its first line, to the last line or to where the text was cut off.
        let start = self.bytes.len() - label.len() + length;
        let start = start + self.bytes[start..].iter().take_while(|byte| **byte == b'-' || **byte == b' ').count();
        let mut end = self.end_of_key(start, 1, "-----END");
        if end == self.text.len() {
            end = self.end_of_key(start, 2, "---- END");
        }
        let keep = self.text[start..end].trim_end_matches(|c: char| c.is_whitespace());
        let keep = keep.strip_suffix("\\n").unwrap_or(keep);
        let lead = keep.len() - keep.trim_start().len();
        let lead = if keep.starts_with("\\n") { 2 } else { lead };
        self.hide(start + lead.min(keep.len())..start + keep.len())
    }
}
