//! Judges spans, resources, events and texts part by part, and takes the credentials out.

use std::ops::Range;
use std::sync::Arc;

use longpole_model::fast_hash::FastMap;
use longpole_model::process::{ARGUMENTS_BYTES_MAX, ARGUMENTS_UNJUDGED_BYTES};
use longpole_model::sink::{EventRef, LinkRef, SpanRef, ValueRef};
use longpole_model::{Attribute, AttributeValue, Attributes, Resource, Scope, Span, SpanEvent, SpanLink, Status, Text};

use super::bytes::floor;
use super::known_names::{NAMES_MAX, Names};
use super::mask::{REDACTED, is_redacted};
use super::names::{self, Meaning};
use super::value_forms::{KIND_OF_JWK, is_name_of_pair, is_nothing, is_private_of_jwk, is_value_of_pair, names_or_tells, scheme_length};
use super::{commands, text};

/// How often a text is judged again after something was taken out of it. What still shows something then is taken out as a whole.
const ROUNDS_MAX: usize = 4;

/// A shorter text cannot hold a credential: a key of three bytes has no value behind it.
const TEXT_BYTES_MIN: usize = 4;

/// What the last word of a command line ends in that was cut.
const CUT: char = '…';

/// Judges names and texts. Keeps what it found out about names.
#[derive(Debug, Default)]
pub struct Redactor {
    pub(super) names: Names,
    /// Keys of attributes: what they say of their value, and whether they have a credential themselves.
    keys: FastMap<String, (Meaning, bool)>,
    found: Vec<Range<usize>>,
}

impl Redactor {
    /// A request of this many bytes begins, and with it a budget of its own: what is not judged when it is spent is taken out. Without a call,
    /// only the texts and lists have a budget.
    pub fn begin_request(&mut self, bytes: usize) {
        self.names.steps.begin_request(bytes);
    }

    /// Whether anything of a span would be taken out.
    pub fn concerns_span(&mut self, span: &SpanRef<'_>) -> bool {
        // Field by field: a new one does not compile before it is decided whether it is judged.
        let SpanRef {
            trace_id: _,
            span_id: _,
            parent_span_id: _,
            trace_state,
            flags: _,
            name,
            kind: _,
            start: _,
            end: _,
            attributes,
            dropped_attributes: _,
            events,
            dropped_events: _,
            links,
            dropped_links: _,
            status: _,
            status_message,
        } = span;
        self.concerns_text(name)
            || self.concerns_text(status_message)
            || !trace_state.is_empty() && self.clean_trace_state(trace_state).1 > 0
            || self.concerns_pairs(attributes)
            || events.iter().any(|EventRef { time: _, name, attributes }| self.concerns_text(name) || self.concerns_pairs(attributes))
            || links.iter().any(|LinkRef { trace_id: _, span_id: _, attributes }| self.concerns_pairs(attributes))
    }

    /// Whether anything of what describes an emitter would be taken out.
    pub fn concerns_resource(&mut self, resource: &Resource) -> bool {
        self.resource(&mut resource.clone()) > 0
    }

    /// Whether anything of what describes an instrumentation would be taken out.
    pub fn concerns_scope(&mut self, scope: &Scope) -> bool {
        self.scope(&mut scope.clone()) > 0
    }

    /// Whether anything would be taken out of bytes that are kept as they came, because nobody reads them.
    pub fn concerns_bytes(&mut self, bytes: &[u8]) -> bool {
        bytes.utf8_chunks().any(|chunk| self.concerns_text(chunk.valid()))
    }

    fn concerns_pairs(&mut self, pairs: &[(&str, ValueRef<'_>)]) -> bool {
        pairs.iter().any(|(key, value)| {
            let (meaning, in_key) = self.key(key);
            in_key
                || match value {
                    ValueRef::Str(text) => self.credential(meaning, text).is_some() || self.concerns_text(text),
                    ValueRef::Empty | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) => false,
                    ValueRef::Array(values) if values.iter().all(has_no_text) => false,
                    // Rare enough to be judged by doing it.
                    other @ (ValueRef::Bytes(_) | ValueRef::Array(_) | ValueRef::KeyValues(_)) => {
                        self.value(meaning, &mut other.to_owned()) > 0
                    }
                }
        })
    }

    /// What a key says of its value, and whether it has a credential itself: `?token=abc`.
    fn key(&mut self, key: &str) -> (Meaning, bool) {
        if let Some(known) = self.keys.get(key) {
            return *known;
        }
        let judged = (self.names.meaning(key), self.concerns_text(key));
        if self.keys.len() < NAMES_MAX && key.len() <= names::NAME_BYTES_MAX && !self.names.steps.is_request_spent() {
            self.keys.insert(key.to_owned(), judged);
        }
        judged
    }

    /// Takes credentials out of spans and of what describes their emitters; says how many.
    pub fn spans(&mut self, spans: &mut [Span]) -> u64 {
        let mut taken = 0;
        for span in &mut *spans {
            taken += self.span(span);
        }
        // Neighbours share what describes their emitter, and shall go on sharing it.
        for of_resource in spans.chunk_by_mut(|a, b| Arc::ptr_eq(&a.resource, &b.resource)) {
            let mut clean = Resource::clone(&of_resource[0].resource);
            let found = self.resource(&mut clean);
            if found > 0 {
                taken += found;
                let clean = Arc::new(clean);
                of_resource.iter_mut().for_each(|span| span.resource = Arc::clone(&clean));
            }
        }
        for of_scope in spans.chunk_by_mut(|a, b| Arc::ptr_eq(&a.scope, &b.scope)) {
            let mut clean = Scope::clone(&of_scope[0].scope);
            let found = self.scope(&mut clean);
            if found > 0 {
                taken += found;
                let clean = Arc::new(clean);
                of_scope.iter_mut().for_each(|span| span.scope = Arc::clone(&clean));
            }
        }
        taken
    }

    /// Takes credentials out of an event; says how many.
    pub fn event(&mut self, event: &mut SpanEvent) -> u64 {
        let SpanEvent { time: _, name, attributes } = event;
        self.text(name) + self.attributes(attributes)
    }

    /// Takes credentials out of what describes an emitter; says how many.
    pub fn resource(&mut self, resource: &mut Resource) -> u64 {
        let Resource { attributes } = resource;
        self.attributes(attributes)
    }

    /// Takes credentials out of what describes an instrumentation; says how many.
    pub fn scope(&mut self, scope: &mut Scope) -> u64 {
        let Scope { name, version, attributes } = scope;
        self.string(name) + self.string(version) + self.attributes(attributes)
    }

    /// Takes credentials out of a span, not of what describes its emitter; says how many.
    pub fn span(&mut self, span: &mut Span) -> u64 {
        let Span {
            trace_id: _,
            span_id: _,
            parent_span_id: _,
            trace_state,
            flags: _,
            name,
            kind: _,
            start: _,
            end: _,
            attributes,
            dropped_attributes: _,
            events,
            dropped_events: _,
            links,
            dropped_links: _,
            status: Status { code: _, message },
            resource: _,
            scope: _,
            pid: _,
        } = span;
        let mut taken = self.text(name) + self.text(message) + self.trace_state(trace_state) + self.attributes(attributes);
        for event in &mut **events {
            taken += self.event(event);
        }
        for SpanLink { trace_id: _, span_id: _, attributes } in &mut **links {
            taken += self.attributes(attributes);
        }
        taken
    }

    /// Takes credentials out of attributes; says how many.
    pub fn attributes(&mut self, attributes: &mut Attributes) -> u64 {
        let mut taken = 0;
        for Attribute { key, value } in &mut attributes.0 {
            let (meaning, in_key) = self.key(key);
            if in_key {
                taken += self.text(key);
            }
            taken += self.value(meaning, value);
        }
        taken
    }

    /// Takes credentials out of a value whose name says this.
    fn value(&mut self, meaning: Meaning, value: &mut AttributeValue) -> u64 {
        let mut taken = 0;
        // Values inside values: a decoder bounds how deep, so a list of what is to do is all that is needed.
        let mut todo: Vec<(Meaning, &mut AttributeValue)> = vec![(meaning, value)];
        while let Some((meaning, value)) = todo.pop() {
            if let AttributeValue::Array(values) = value {
                if values.iter().all(is_no_text) {
                    continue;
                }
                match self.words_of(values) {
                    Some(words) => taken += words,
                    None => {
                        *value = AttributeValue::Str(REDACTED.into());
                        taken += 1;
                        continue;
                    }
                }
            }
            match value {
                AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_) => {}
                AttributeValue::Str(text) => match self.credential(meaning, text) {
                    Some(start) => {
                        *text = format!("{}{REDACTED}", &text[..start]).into();
                        taken += 1;
                    }
                    None => taken += self.text(text),
                },
                AttributeValue::Bytes(bytes) if !bytes.is_empty() => {
                    if meaning.is_sure() {
                        *value = AttributeValue::Str(REDACTED.into());
                        taken += 1;
                    } else if let Some((clean, found)) = self.clean_bytes(bytes) {
                        *value = AttributeValue::Bytes(clean.into());
                        taken += found;
                    }
                }
                AttributeValue::Bytes(_) => {}
                AttributeValue::Array(values) => {
                    let of_names = self.meanings_of_list(values);
                    let of_names = of_names.into_iter().chain(std::iter::repeat(Meaning::Plain));
                    todo.extend(values.iter_mut().zip(of_names).map(|(value, own)| (meaning.or(own), value)));
                }
                AttributeValue::KeyValues(pairs) => {
                    let of_pair = self.meaning_of_pair(pairs);
                    let is_jwk = pairs.iter().any(|pair| &*pair.key == KIND_OF_JWK);
                    for Attribute { key, value } in &mut **pairs {
                        let (own, in_key) = self.key(key);
                        let own = if is_value_of_pair(key.as_bytes()) { own.or(of_pair) } else { own };
                        let own = if is_jwk && is_private_of_jwk(key.as_bytes()) { Meaning::Token } else { own };
                        if in_key {
                            taken += self.text(key);
                        }
                        // Below a name of a credential everything is one.
                        todo.push((meaning.or(own), value));
                    }
                }
            }
        }
        taken
    }

    /// `{name: "X-Api-Key", value: …}`: what the name says of the value.
    fn meaning_of_pair(&mut self, pairs: &[Attribute]) -> Meaning {
        let names = pairs.iter().filter(|pair| is_name_of_pair(pair.key.as_bytes())).filter_map(|pair| pair.value.as_str());
        names.map(|name| self.names.meaning(name)).find(|meaning| *meaning != Meaning::Plain).unwrap_or(Meaning::Plain)
    }

    /// `["X-Api-Key", …]`, `["Host", …, "X-Api-Key", …]`: what the names say of the texts behind them.
    fn meanings_of_list(&mut self, values: &[AttributeValue]) -> Vec<Meaning> {
        if values.is_empty() || !values.len().is_multiple_of(2) {
            return Vec::new();
        }
        let mut meanings = Vec::with_capacity(values.len());
        for pair in values.chunks_exact(2) {
            let of_name =
                pair[0].as_str().filter(|name| name.len() <= names::NAME_BYTES_MAX).map_or(Meaning::Plain, |name| self.names.meaning(name));
            // Beside another name it is one of a list of names.
            let is_value = of_name != Meaning::Plain && !pair[1].as_str().is_some_and(names_or_tells);
            meanings.extend([Meaning::Plain, if is_value { of_name } else { Meaning::Plain }]);
        }
        meanings
    }

    /// `process.command_args` and its like: texts of a list may be the words of a command line. `None` if judging them takes too much.
    fn words_of(&mut self, values: &mut [AttributeValue]) -> Option<u64> {
        if values.len() < 2 {
            return Some(0);
        }
        let words: Vec<&str> = values.iter().map(|value| value.as_str().unwrap_or("")).collect();
        let found = commands::credentials_of_list(&words, &mut self.names)?;
        let mut taken = 0;
        for (at, range) in joined(found) {
            if let AttributeValue::Str(word) = &mut values[at]
                && let Some(clean) = without(word, range)
            {
                *word = clean.into();
                taken += 1;
            }
        }
        Some(taken)
    }

    /// Takes credentials out of the words of a command line; says how many. Cuts off the end of one that was cut where it was read.
    pub fn arguments(&mut self, words: &mut [String]) -> u64 {
        let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
        let was_cut = bytes >= ARGUMENTS_BYTES_MAX && words.last().is_some_and(|last| last.ends_with(CUT));
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(found) = commands::credentials_of_list(&texts, &mut self.names) else {
            words.iter_mut().for_each(|word| REDACTED.clone_into(word));
            return words.len() as u64;
        };
        let mut taken = 0;
        for (at, range) in joined(found) {
            if let Some(clean) = without(&words[at], range) {
                words[at] = clean;
                taken += 1;
            }
        }
        for word in &mut *words {
            taken += self.string(word);
        }
        if let Some(last) = words.last_mut().filter(|_| was_cut) {
            last.truncate(floor(last, last.len().saturating_sub(ARGUMENTS_UNJUDGED_BYTES + CUT.len_utf8())));
            last.push(CUT);
        }
        taken
    }

    /// Where the credential begins in a value whose name says that it is one: behind the scheme of a header. `None` where it is none.
    fn credential(&mut self, meaning: Meaning, value: &str) -> Option<usize> {
        if !meaning.is_of(value) {
            return None;
        }
        let start = scheme_length(value);
        (!is_nothing(&value[start..])).then_some(start)
    }

    /// Takes credentials out of a text; says how many.
    pub fn text(&mut self, text: &mut Text) -> u64 {
        let (clean, taken) = self.cleaned(text);
        if let Some(clean) = clean {
            *text = clean.into();
        }
        taken
    }

    /// Takes credentials out of a string; says how many.
    pub fn string(&mut self, text: &mut String) -> u64 {
        let (clean, taken) = self.cleaned(text);
        if let Some(clean) = clean {
            *text = clean;
        }
        taken
    }

    /// Takes credentials out of W3C's `tracestate`, and leaves its list a list; says how many.
    pub fn trace_state(&mut self, state: &mut Text) -> u64 {
        if state.is_empty() {
            return 0;
        }
        let (clean, taken) = self.clean_trace_state(state);
        if taken > 0 {
            *state = clean.into();
        }
        taken
    }

    fn clean_trace_state(&mut self, state: &str) -> (String, u64) {
        // What is no list of members is a text as any other.
        let (clean, mut taken) = self.cleaned(state);
        let state = clean.as_deref().unwrap_or(state);
        let mut members: Vec<String> = Vec::new();
        for member in state.split(',') {
            let Some((key, value)) = member.split_once('=') else {
                members.push(member.to_owned());
                continue;
            };
            let meaning = self.names.meaning(key);
            let (clean, found) = match self.credential(meaning, value) {
                Some(start) => (Some(format!("{}{REDACTED}", &value[..start])), 1),
                None => self.cleaned(value),
            };
            taken += found;
            members.push(format!("{key}={}", clean.as_deref().unwrap_or(value)));
        }
        (members.join(","), taken)
    }

    /// Bytes without the credentials that stand in them as text; `None` where there are none.
    fn clean_bytes(&mut self, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut clean = Vec::new();
        let mut taken = 0;
        for chunk in bytes.utf8_chunks() {
            let (text, found) = self.cleaned(chunk.valid());
            taken += found;
            clean.extend_from_slice(text.as_deref().unwrap_or(chunk.valid()).as_bytes());
            clean.extend_from_slice(chunk.invalid());
        }
        (taken > 0).then_some((clean, taken))
    }

    /// What is left of a text without its credentials, and how many they were; `None` where it has none.
    fn cleaned(&mut self, text: &str) -> (Option<String>, u64) {
        if !self.concerns_text(text) {
            return (None, 0);
        }
        let taken = self.found.len() as u64;
        let mut clean = self.without_found(text);
        // What is gone may show what stood behind it: judged again until nothing is found, a text is cleaned once and for all.
        for _ in 0..ROUNDS_MAX {
            if !self.concerns_text(&clean) {
                return (Some(clean), taken);
            }
            clean = self.without_found(&clean);
        }
        (Some(REDACTED.to_owned()), taken)
    }

    fn without_found(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        for found in &self.found {
            clean.push_str(&text[at..found.start]);
            clean.push_str(REDACTED);
            at = found.end;
        }
        clean.push_str(&text[at..]);
        clean
    }

    /// Fills `found` with the parts that are credentials, in order and apart.
    pub(super) fn concerns_text(&mut self, text: &str) -> bool {
        self.found.clear();
        if text.len() >= TEXT_BYTES_MIN {
            text::find(text, &mut self.names, &mut self.found);
        }
        !self.found.is_empty()
    }
}

/// Whether a value is a number and the like: lists of them can be as long as the request.
fn is_no_text(value: &AttributeValue) -> bool {
    matches!(value, AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_))
}

/// The same of a borrowed one.
fn has_no_text(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Empty | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_))
}

/// One range for each word: from the first of its credentials to the last.
fn joined(found: Vec<(usize, Range<usize>)>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut of_word: std::collections::BTreeMap<usize, Range<usize>> = std::collections::BTreeMap::new();
    for (at, range) in found {
        of_word.entry(at).and_modify(|all| *all = all.start.min(range.start)..all.end.max(range.end)).or_insert(range);
    }
    of_word.into_iter()
}

/// The text with [`REDACTED`] instead of this part; `None` where it stands there already.
fn without(text: &str, range: Range<usize>) -> Option<String> {
    (!range.is_empty() && !is_redacted(text, &range)).then(|| format!("{}{REDACTED}{}", &text[..range.start], &text[range.end..]))
}
