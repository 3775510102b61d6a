//! Names and values that are two halves of a pair: `{"name": "TOKEN", "value": "…"}`, `"X-Api-Key", "…"`.

use std::ops::Range;

use super::name::{NAME_BYTES_MAX, is_header, is_of_name};
use super::scan::{Operator, Pair, Scan, Start};
use crate::redact::bytes::ends_with_ignoring_case;
use crate::redact::mask::is_redacted;
use crate::redact::names::Meaning;
use crate::redact::quotes::closing;
use crate::redact::value_forms::{LONG_BYTES_MIN, is_name_of_pair, is_nothing, names_or_tells};

/// `"Content-Type"`: what may be a name beside another one, at one look.
fn is_quoted_name(rest: &[u8]) -> bool {
    let Some((quote @ (b'"' | b'\''), inside)) = rest.split_first() else { return false };
    let length = inside.iter().take(LONG_BYTES_MIN).take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    inside.get(length) == Some(quote)
}

/// Letters beside each other that make a word, where the rest are digits.
const LETTERS_MIN: usize = 3;

/// `a1b2-c3`, `10.0.0.1`, `7`: what no word of a name stands in.
fn is_id(name: &[u8]) -> bool {
    let is_word = |word: &[u8]| word.len() >= LETTERS_MIN && !word.iter().all(u8::is_ascii_hexdigit);
    !name.split(|byte| !byte.is_ascii_alphabetic() && byte.is_ascii()).any(is_word)
}

/// Whether this ends with the beginning of a call that sets something: `Header.Set(`, `define(`.
fn sets(before: &[u8]) -> bool {
    const VERBS: &[&str] =
        &["set", "add", "header", "put", "insert", "append", "define", "setdefault", "setenv", "putenv", "setproperty", "setrequestheader"];
    let Some(called) = before.trim_ascii_end().strip_suffix(b"(") else { return false };
    VERBS.iter().any(|verb| ends_with_ignoring_case(called, verb.as_bytes()))
}

impl Scan<'_> {
    /// `"name": "TOKEN", "value"`, `key=password value`, `{"key":"password","value":{"stringValue"`: what the name of the pair says.
    pub(super) fn meaning_of_pair(&mut self, value: usize, behind: usize) -> Meaning {
        let bytes = self.bytes;
        let name = self.pair.as_mut().and_then(|pair| pair.is_beside(bytes, value).then_some(pair.behind));
        match name {
            Some(name) => self.meaning_of_name_at(name),
            None => {
                self.pair = None;
                self.lone = self.value_start(behind);
                Meaning::Plain
            }
        }
    }

    /// What the name says that is the value of `"name": `.
    pub(super) fn meaning_of_name_at(&mut self, behind: usize) -> Meaning {
        let Some(start) = self.value_start(behind) else { return Meaning::Plain };
        let near = &self.bytes[start.at..self.bytes.len().min(start.at + NAME_BYTES_MAX)];
        let length = match start.quote {
            Some((quote, slashes)) => closing(near, quote, slashes).unwrap_or(0),
            None => near.iter().take_while(|byte| is_of_name(**byte)).count(),
        };
        let end = start.at + length;
        if self.text.is_char_boundary(end) { self.names.meaning(&self.text[start.at..end]) } else { Meaning::Plain }
    }

    /// A name without a meaning may be one half of a pair. Its value, if that stands before it: `{"value": "…", "name": "TOKEN"}`.
    pub(super) fn half_of_pair(&mut self, name: Range<usize>, behind: usize) -> Option<usize> {
        if !is_name_of_pair(&self.bytes[name.clone()]) {
            self.key_of_field(&name, behind);
            return None;
        }
        if self.is_of_form(name.start) {
            return self.form_field(behind);
        }
        self.pair = Some(Pair::of(behind));
        let start = self.lone.take().filter(|start| start.is_near(name.start))?;
        // Without quotes, only a word that is alone on its line, as YAML has it: `- value: hunter2\n  name: TOKEN`.
        if start.quote.is_none() {
            let end = self.line_end(start.at);
            let value = self.text[start.at..end].trim_end();
            self.names.steps.spend(value.len());
            if end > name.start || start.in_list || value.contains(char::is_whitespace) || value.starts_with(['{', '[', '|', '>', '&', '*'])
            {
                return None;
            }
        }
        let meaning = self.meaning_of_name_at(behind);
        if meaning != Meaning::Plain && !self.is_spent() {
            self.hide_before(meaning, start, name.start);
        }
        None
    }

    /// Hides the value that began before a key, if it stands in the same object and the key says that it is a credential.
    pub(super) fn hide_before(&mut self, meaning: Meaning, start: Start, key: usize) {
        let end = self.value_end(start);
        if end > key || !self.is_beside_value(start, end, key) {
            return;
        }
        let value = start.at..end;
        let is_one = !is_nothing(&self.text[value.clone()]) && self.is_credential(meaning, start, end, Operator::Equals);
        // What stands behind it was seen already, so it is not the last that is hidden.
        if is_one && !is_redacted(self.text, &value) {
            self.found.push(value);
        }
    }

    /// Whether a key stands in the same brackets as the value before it. Brackets in the value and in texts between are characters of them.
    fn is_beside_value(&mut self, start: Start, end: usize, key: usize) -> bool {
        let bytes = self.bytes;
        self.names.steps.spend(2 * (key - end));
        let mut pair = Pair::of(end);
        let slashes = start.quote.map_or(0, |(_, slashes)| slashes);
        let mut at = (end + slashes + 1).min(key);
        while let Some(open) = bytes[at..key].iter().position(|byte| matches!(byte, b'"' | b'\'')) {
            let open = at + open;
            // Behind a quote that is not closed nobody knows what is a text.
            let Ok(length) = closing(&bytes[open + 1..key], bytes[open], slashes) else { break };
            if !pair.is_beside(bytes, open) {
                return false;
            }
            at = open + 1 + length + slashes + 1;
            pair.seen_to = at;
        }
        pair.is_beside(bytes, key)
    }

    /// `"X-Api-Key", "…"`: two elements of a list or a tuple, or what a call takes.
    pub(super) fn behind_comma(&mut self, at: usize) -> Option<usize> {
        // Most commas stand behind the member of an object, which has a colon before it, or behind no quote at all.
        let Some((quote, rest)) = self.bytes[..at].split_last().filter(|(quote, _)| matches!(quote, b'"' | b'\'')) else {
            return self.tuple_of_erlang(at);
        };
        let slashes = rest.iter().rev().take(8).take_while(|byte| **byte == b'\\').count();
        let end = rest.len() - slashes;
        let length = rest[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
        let open = (end - length).checked_sub(1)?;
        if length < 2 || rest[open] != *quote || open > 0 && rest[open - 1] == b':' || !self.text.is_char_boundary(end - length) {
            return None;
        }
        let name = end - length..end;
        let before = &self.bytes[..open];
        let before = &before[..before.len() - before.iter().rev().take(8).take_while(|byte| **byte == b'\\').count()];
        let before = before.strip_suffix(b"b").unwrap_or(before);
        let blanks = before.iter().rev().take(64).take_while(|byte| byte.is_ascii_whitespace()).count();
        // Envoy prints a header on each line.
        let begins_line = before.len() == blanks || before[before.len() - blanks..].contains(&b'\n');
        let before = &before[..before.len() - blanks];
        let is_first = match before.last() {
            Some(b'(' | b'[' | b'{') => true,
            Some(b',') => false,
            _ if begins_line => false,
            _ => return None,
        };
        // Others in a list may be anything. Ids are no names.
        if !is_first && !is_header(&self.text[name.clone()]) || is_id(&self.bytes[name.clone()]) {
            return None;
        }
        // A call that sets it means a value, and so does the name of a variable; elsewhere another name may follow.
        let is_variable = self.bytes[name.clone()].contains(&b'_') && !self.bytes[name.clone()].iter().any(u8::is_ascii_lowercase);
        let means_value = is_first && (is_variable || sets(before));
        if !means_value && is_quoted_name(self.bytes[at + 1..].trim_ascii_start()) {
            return None;
        }
        let meaning = self.names.meaning_of_any(&self.text[name]);
        if meaning == Meaning::Plain {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let start = self.value_start(at + 1)?;
        let start = self.inside_call(meaning, start);
        start.quote.filter(|_| !start.in_list)?;
        let end = self.value_end(start);
        let value = &self.text[start.at..end];
        if (!means_value || value.contains(' ')) && names_or_tells(value) {
            return None;
        }
        // `["token1", "token2"]`.
        if !means_value
            && value.len() <= NAME_BYTES_MAX
            && value.bytes().all(is_of_name)
            && self.names.meaning_of_any(value) != Meaning::Plain
        {
            return None;
        }
        self.value_at(meaning, start, Operator::Equals)
    }
}
