//! Where a value begins and ends, and whether it is a credential.

use std::ops::Range;

use super::lines::goes_on_in_next_line;
use super::name::{NAME_BYTES_MAX, is_of_name};
use super::notations::{is_of_plan, php_type_length};
use super::object::go_type_length;
use super::scan::{Operator, Scan, Start};
use crate::redact::bytes::{colour_length, floor, position};
use crate::redact::lookahead::Lookahead;
use crate::redact::mask::REDACTED;
use crate::redact::names::Meaning;
use crate::redact::quotes::{closing, continuation, joined_end, shell_end, which_quote};
use crate::redact::value_forms::{
    KEY_BYTES, is_call, is_column, is_count, is_key, is_mixed, is_names, is_nothing, is_of_key, is_parameter, is_prose, is_signature,
};

/// A value in quotes that has lines is no longer: twice a key of 4096 bits.
const QUOTED_BYTES_MAX: usize = 8192;

/// The longest type of a variable, with what stands behind it up to its value.
const TYPE_BYTES_MAX: usize = 48;

/// The longest call, with its arguments.
const CALL_BYTES_MAX: usize = 256;

/// What stands before a type in Rust.
const STATIC: &[u8] = b"&'static ";

/// The longest anchor or tag of YAML.
const ANCHOR_BYTES_MAX: usize = 64;

/// Calls around a value: `Some(Secret("…"))`.
const CALLS_MAX: usize = 3;

/// The length of a value without quotes: to a blank, a quote or what parts it from the next value.
fn unquoted_length(bytes: &[u8]) -> usize {
    let mut open = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        let behind = &bytes[at + 1..];
        let ends = match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                false
            }
            b')' | b']' | b'}' if open > 0 => {
                open -= 1;
                false
            }
            b')' | b']' | b'}' => behind.first().is_none_or(|next| b" \t\r\n,;&\"'`)]}.:\\<".contains(next)),
            byte => ends_unquoted(*byte, behind),
        };
        if ends {
            return at;
        }
    }
    bytes.len()
}

/// The length of what stands before the quote of a literal: `b"`, `rb"`, `r#"`, `N'`, `U&'`.
fn literal_length(bytes: &[u8]) -> usize {
    let is_of_literal = |byte: &&u8| b"bBfFrRuUlLnNeE@$#&".contains(byte);
    let length = bytes.iter().take(3).take_while(is_of_literal).count();
    if length < 3 && matches!(bytes.get(length), Some(b'"' | b'\'')) { length } else { 0 }
}

/// The length of an anchor or a tag of YAML before a value, with the blanks behind it: `&name `, `!!str `.
fn anchor_length(bytes: &[u8]) -> usize {
    let [b'&' | b'!', rest @ ..] = bytes else { return 0 };
    let is_of_anchor = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!_-".contains(byte);
    let length = rest.iter().take(ANCHOR_BYTES_MAX).take_while(is_of_anchor).count();
    let blanks = rest[length..].iter().take_while(|byte| **byte == b' ').count();
    if length > 0 && blanks > 0 { 1 + length + blanks } else { 0 }
}

/// `<Token>`, `<'a, Option<T>>`, `<Token![;]>`: what stands behind a type that is generic.
fn is_generic(rest: &[u8]) -> bool {
    let Some(inside) = rest.strip_prefix(b"<") else { return false };
    let is_name = inside.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"&'[(_".contains(byte));
    is_name && inside.iter().take(TYPE_BYTES_MAX).any(|byte| *byte == b'>')
}

/// Whether this byte ends a value without quotes, with what stands behind it. Brackets ask what is open.
fn ends_unquoted(byte: u8, behind: &[u8]) -> bool {
    match byte {
        byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => true,
        b'"' | b'\'' | b'`' | b'&' | b';' | b'<' | b'>' => true,
        b'\\' => behind.first().is_none_or(|next| b"nrtu\"'\\".contains(next)),
        b',' => {
            let name = behind.iter().take(64).take_while(|byte| is_of_name(**byte)).count();
            behind.first().is_none_or(|next| b" \t\n\"'`{[\\".contains(next))
                || name > 0 && behind.get(name).is_some_and(|next| b"=:".contains(next))
        }
        _ => false,
    }
}

impl Scan<'_> {
    /// The value of this name, if it is a credential.
    pub(super) fn value_of(&mut self, name: Range<usize>, behind: usize, operator: Operator) -> Option<usize> {
        let meaning = self.meaning_at(&name, behind);
        if meaning == Meaning::Plain {
            return self.half_of_pair(name, behind);
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let is_header = matches!(meaning, Meaning::Authorization | Meaning::Cookie | Meaning::SetCookie);
        let behind = if operator == Operator::Colon && !is_header { self.past_type(behind) } else { behind };
        let start = self.value_start(behind)?;
        if self.is_secure_string(start.at) || is_of_plan(&self.bytes[start.at..]) {
            return None;
        }
        if meaning.is_sure()
            && let Some(end) = self.here_lines(start.at)
        {
            return Some(end);
        }
        if start.quote.is_none() && !start.in_list && goes_on_in_next_line(&self.bytes[start.at..]) {
            return self.on_next_lines(meaning, name, start.at, operator);
        }
        self.value_or_object(meaning, behind, start, operator)
    }

    pub(super) fn value_or_object(&mut self, meaning: Meaning, behind: usize, start: Start, operator: Operator) -> Option<usize> {
        if let Some((from, open)) = self.object_at(meaning, behind, start) {
            return self.object(from, open, meaning);
        }
        let start = self.inside_call(meaning, start);
        self.value_at(meaning, start, operator)
    }

    /// The value that begins here, if it is a credential where its name says this.
    pub(super) fn value_at(&mut self, meaning: Meaning, start: Start, operator: Operator) -> Option<usize> {
        match meaning {
            Meaning::Authorization => self.authorization(start),
            Meaning::Cookie | Meaning::SetCookie => self.cookies(start, meaning),
            _ => {
                let end = match meaning {
                    Meaning::Maybe | Meaning::For | Meaning::SecretId if start.quote.is_none() && !start.in_list => {
                        self.key_end(start.at)?
                    }
                    _ => self.value_end(start),
                };
                let value = &self.text[start.at..end];
                if is_nothing(value) || !self.is_credential(meaning, start, end, operator) {
                    return if meaning.is_sure() { self.changed_to(start, end) } else { None };
                }
                let end = if start.quote.is_none() { self.past_base64(start.at, end) } else { end };
                let is_bare = start.quote.is_none() && !start.in_list && meaning.is_sure();
                let end = if is_bare { self.past_marks(start.at, end) } else { end };
                let hidden = self.hide(start.at..end);
                self.changed_to(start, end).or(hidden)
            }
        }
    }

    /// Past what makes the value: `Password("…")`, `crypt('…', …)`.
    pub(super) fn inside_call(&self, meaning: Meaning, start: Start) -> Start {
        let mut at = start.at;
        if start.quote.is_some() || start.in_list || !meaning.is_sure() {
            return start;
        }
        for _ in 0..CALLS_MAX {
            at += if self.bytes[at..].starts_with(b"new ") { "new ".len() } else { 0 };
            let rest = &self.bytes[at..];
            let length = rest.iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"_:.&".contains(byte)).count();
            let is_type = rest.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'&');
            if length == 0 || rest.get(length) != Some(&b'(') || !is_type && meaning != Meaning::Password {
                return start;
            }
            match self.value_start(at + length + 1) {
                Some(inside) if inside.quote.is_some() && !inside.in_list => return inside,
                Some(inside) => at = inside.at,
                None => return start,
            }
        }
        start
    }

    /// Past the type of a variable, where a value in quotes follows: `password: str = "…"`.
    fn past_type(&self, behind: usize) -> usize {
        let at = self.past_blanks(behind);
        let at = if self.bytes[at..].starts_with(STATIC) { at + STATIC.len() } else { at };
        let near = &self.bytes[at..self.bytes.len().min(at + TYPE_BYTES_MAX)];
        if !near.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"&_".contains(byte)) {
            return behind;
        }
        let is_of_type = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.<>[]|?&".contains(byte);
        let length = near.iter().take_while(|byte| is_of_type(byte)).count();
        let length = length + near[length..].iter().take_while(|byte| **byte == b' ').count();
        let rest = near[length..].strip_prefix(b"=").map(<[u8]>::trim_ascii_start);
        let is_text = |rest: &[u8]| {
            let rest = rest.strip_prefix(b"Some(").unwrap_or(rest);
            matches!(rest.get(literal_length(rest)), Some(b'"' | b'\'' | b'`'))
        };
        if rest.is_some_and(|rest| is_text(rest) || rest.starts_with(REDACTED.as_bytes())) { at + length + 1 } else { behind }
    }

    /// Where the value begins: past blanks, the bracket of a list, `b` or `N` of a literal, and quotes with their backslashes.
    pub(super) fn value_start(&self, behind: usize) -> Option<Start> {
        let mut at = self.past_blanks(behind);
        at += anchor_length(&self.bytes[at..]);
        at += php_type_length(&self.bytes[at..]);
        let rest = &self.text[at..];
        let in_list =
            rest.starts_with('[') && !rest.starts_with(REDACTED) && !(rest.starts_with("[]") && go_type_length(rest.as_bytes()).is_some());
        if in_list {
            at += 1 + self.bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        // What Rust prints of an option.
        let rest = &self.bytes[at..];
        let some = match rest {
            [b'S', b'o', b'm', b'e', b'(', ..] => "Some(".len(),
            // A tuple.
            [b'(', b'"' | b'\'', ..] => 1,
            _ => 0,
        };
        at += some;
        let rest = &self.bytes[at..];
        let literal = literal_length(rest);
        let slashes = rest[literal..].iter().take_while(|byte| **byte == b'\\').count();
        // `CREDENTIALS = (AWS_SECRET_KEY = '…')`: the names inside tell.
        if let Some(inside) = rest.strip_prefix(b"(") {
            let name = inside.iter().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
            if name > 0 && inside[name..].trim_ascii_start().starts_with(b"=") {
                return None;
            }
        }
        let start = match rest.get(literal + slashes) {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                let triple = slashes == 0 && rest[literal..].starts_with(&[*quote; 3]);
                let length = literal + slashes + if triple { 3 } else { 1 };
                Start { at: at + length, quote: Some((*quote, slashes)), in_list, triple }
            }
            _ => Start { at, quote: None, in_list, triple: false },
        };
        (start.at < self.bytes.len()).then_some(start)
    }

    /// Past blanks, colours, and line ends behind the backslash of a shell.
    pub(super) fn past_blanks(&self, mut at: usize) -> usize {
        loop {
            at += self.bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let length = match self.bytes.get(at) {
                Some(b'\\') => continuation(self.bytes, at).unwrap_or(0),
                _ => colour_length(&self.bytes[at..]),
            };
            if length == 0 {
                return at;
            }
            at += length;
        }
    }

    pub(super) fn value_end(&mut self, start: Start) -> usize {
        let Start { at, quote, in_list, triple } = start;
        let (text, bytes) = (self.text, self.bytes);
        match quote {
            Some((quote, slashes)) => {
                // All of the list: to its bracket, without the quote before that.
                if in_list {
                    if self.names.memo.list_quote != (quote, slashes) {
                        self.names.memo.list_quote = (quote, slashes);
                        self.names.memo.list_end = Lookahead::default();
                    }
                    let end = self.names.memo.list_end.next(at, &mut self.names.steps, || {
                        let ends = (at..bytes.len()).filter(|at| bytes[*at] == b']').find_map(|bracket| {
                            let before = bytes[at..bracket].trim_ascii_end().strip_suffix(&[quote])?;
                            let length = before.iter().rev().take(slashes).take_while(|byte| **byte == b'\\').count();
                            (length == slashes).then_some(at + before.len() - slashes)
                        });
                        ends.unwrap_or(bytes.len())
                    });
                    if end < text.len() {
                        return end;
                    }
                }
                if triple {
                    return self.past_triple(at, quote);
                }
                let closed = closing(&bytes[at..], quote, slashes);
                self.names.steps.spend(closed.unwrap_or_else(|stop| stop));
                match closed {
                    Ok(length) if slashes == 0 && !in_list => {
                        let end = joined_end(bytes, shell_end(bytes, at + length));
                        self.names.steps.spend(end - at - length);
                        end
                    }
                    Ok(length) => at + length,
                    Err(stop) if slashes == 0 && at + stop < bytes.len() => self.quoted_on_lines(at, at + stop, quote),
                    Err(_) => self.line_end(at),
                }
            }
            None if in_list => {
                let bracket = self.names.memo.bracket.next(at, &mut self.names.steps, || position(bytes, at, |byte| byte == b']'));
                bracket.min(self.line_end(at))
            }
            None => self.unquoted_end(at),
        }
    }

    /// The end of a value in three quotes.
    fn past_triple(&mut self, at: usize, quote: u8) -> usize {
        let bytes = self.bytes;
        let find = || bytes[at..].windows(3).position(|three| three == [quote; 3]).map_or(bytes.len(), |length| at + length);
        let end = self.names.memo.triples[which_quote(quote)].next(at, &mut self.names.steps, find);
        if end < bytes.len() { end } else { self.line_end(at) }
    }

    /// The end of a value in quotes with lines in it: a quote behind which no word stands. Where there is none, the line ends it.
    fn quoted_on_lines(&mut self, at: usize, line: usize, quote: u8) -> usize {
        let bytes = self.bytes;
        let closes = |at: usize| bytes.get(at + 1).is_none_or(|byte| byte.is_ascii_whitespace() || b",;.)}]&|+".contains(byte));
        let find = || (line..bytes.len()).find(|at| bytes[*at] == quote && bytes[*at - 1] != b'\\' && closes(*at)).unwrap_or(bytes.len());
        let end = self.names.memo.quotes[which_quote(quote)].next(line, &mut self.names.steps, find);
        if end < bytes.len() && end - at <= QUOTED_BYTES_MAX { end } else { self.line_end(at) }
    }

    /// The end of the line of this place.
    pub(super) fn line_end(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        self.names.memo.line.next(at, &mut self.names.steps, || position(bytes, at, |byte| byte == b'\n' || byte == b'\r'))
    }

    /// The end of a key in lines, by its last one.
    pub(super) fn end_of_key(&mut self, start: usize, which: usize, last: &str) -> usize {
        let text = self.text;
        let find = || text[start..].find(last).map_or(text.len(), |length| start + length);
        self.names.memo.ends[which].next(start, &mut self.names.steps, find)
    }

    /// The end of a value without quotes.
    pub(super) fn unquoted_end(&mut self, at: usize) -> usize {
        let end = self.unquoted_end_at_most(at);
        let bytes = self.bytes;
        let bracket = self.names.memo.any_bracket.next(at, &mut self.names.steps, || position(bytes, at, |byte| b"()[]{}".contains(&byte)));
        if bracket >= end {
            return end;
        }
        let length = unquoted_length(&bytes[bracket..]);
        self.names.steps.spend(length);
        bracket + length
    }

    /// The same, were there no brackets.
    fn unquoted_end_at_most(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let find = || (at..bytes.len()).find(|at| ends_unquoted(bytes[*at], &bytes[at + 1..])).unwrap_or(bytes.len());
        self.names.memo.value_end.next(at, &mut self.names.steps, find)
    }

    /// Where the next `://` stands.
    fn next_url(&mut self, at: usize) -> usize {
        let text = self.text;
        self.names.memo.url.next(at, &mut self.names.steps, || text[at..].find("://").map_or(text.len(), |length| at + length))
    }

    /// Where the next `(` stands.
    fn next_bracket(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        self.names.memo.call.next(at, &mut self.names.steps, || position(bytes, at, |byte| byte == b'('))
    }

    /// The end of a value without quotes that has to look like a key, or like a URL with one; `None` where it cannot.
    pub(super) fn key_end(&mut self, at: usize) -> Option<usize> {
        let bytes = self.bytes;
        if self.next_url(at) + 3 <= self.unquoted_end_at_most(at) {
            return Some(self.unquoted_end(at));
        }
        let end = self.names.memo.key_end.next(at, &mut self.names.steps, || position(bytes, at, |byte| !is_of_key(byte)));
        // What no key has may be part of the value, which is none then. A comma looks ahead as far as a name is long.
        let ends = || end == bytes.len() || unquoted_length(&bytes[end..bytes.len().min(end + 80)]) == 0;
        if !KEY_BYTES.contains(&(end - at)) || !ends() {
            return None;
        }
        self.names.steps.spend(end - at);
        Some(end)
    }

    /// Whether a value calls a function, or is the signature of one. In quotes, a call is a text as any other.
    fn is_code(&mut self, meaning: Meaning, start: Start, end: usize) -> bool {
        if self.next_bracket(start.at) >= end {
            return false;
        }
        let near = &self.text[start.at..floor(self.text, self.bytes.len().min(start.at + CALL_BYTES_MAX))];
        self.names.steps.spend(near.len());
        let is_bare = start.quote.is_none() && !start.in_list;
        is_bare && is_call(near, end - start.at) || meaning == Meaning::Signature && near.get(..end - start.at).is_some_and(is_signature)
    }

    /// Whether a value is a credential where its name says this. Values that lie in each other have one end, which is searched for once, so
    /// judging a value may not read all of it: it reads a number of bytes that is limited, stops at the name of the next one, or spends steps.
    pub(super) fn is_credential(&mut self, meaning: Meaning, start: Start, end: usize, operator: Operator) -> bool {
        let value = &self.text[start.at..end];
        if start.quote.is_none() && !start.in_list && is_parameter(value) {
            return false;
        }
        if start.quote.is_none()
            && !start.in_list
            && is_column(value, self.bytes[start.at - 1] == b' ')
            && !is_key(value)
            && self.is_of_sql(start.at)
        {
            return false;
        }
        // `tokens: Vec<Token>`.
        let is_type = matches!(meaning, Meaning::Token | Meaning::Signature | Meaning::Tokens)
            && start.quote.is_none()
            && value.bytes().all(|b| b.is_ascii_alphabetic());
        if is_type && is_generic(&self.bytes[end..]) {
            return false;
        }
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let prose_may_follow = operator == Operator::Colon && start.quote.is_none() && !start.in_list;
        match meaning {
            Meaning::For | Meaning::ForKnown | Meaning::SecretId => meaning.is_of(value),
            Meaning::Maybe if is_key(value) => true,
            Meaning::Maybe => {
                let has_url = self.next_url(start.at) + 3 <= end;
                self.names.steps.spend(if has_url { value.len() } else { 0 });
                has_url && value.rsplit('/').any(is_key)
            }
            Meaning::Token | Meaning::Signature => {
                let is_message = prose_may_follow && is_prose(value, &self.text[end..]);
                let is_count = is_number && value.len() <= 5;
                !is_message && !is_count && !self.is_code(meaning, start, end)
            }
            Meaning::Tokens => {
                let is_message = prose_may_follow && is_prose(value, &self.text[end..]);
                !is_count(value) && !is_names(value) && !is_message
            }
            Meaning::Pwd => !value.starts_with(['/', '~']),
            // What test runners print.
            Meaning::Pass => {
                let near = &value.as_bytes()[..value.len().min(NAME_BYTES_MAX)];
                let is_printed = prose_may_follow && !is_mixed(near) || self.bytes[..start.at].ends_with(b"PASS: ");
                !is_number && !is_printed
            }
            _ => true,
        }
    }
}
