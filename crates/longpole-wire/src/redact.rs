//! Credentials are taken out before anything is stored. The rules are documented in `docs/formats/redaction.md`.
//!
//! ```text
//! name of an attribute, argument, header, parameter ── names a credential ──► its whole value becomes [redacted]
//! any text ── user:password@ in a URL, name=value, Bearer …, known shapes of keys ──► that part becomes [redacted]
//! ```
//!
//! It works on names and shapes, so it can miss a secret that has neither, and it can take out a harmless value that looks
//! like one. Numbers and truth values stay: `token.count` is no token.

use std::ops::Range;
use std::sync::Arc;

use longpole_model::quick::QuickMap;
use longpole_model::sink::{EventRef, LinkRef, SpanRef, ValueRef};
use longpole_model::{Attribute, AttributeValue, Attributes, Resource, Scope, Span, SpanEvent, Text};

/// What stands in place of a credential.
pub const REDACTED: &str = "[redacted]";

/// Names whose verdict is remembered. Programs use some hundred; one that makes up names must not fill the memory.
const NAMES_MAX: usize = 4096;

/// A longer name is judged by its end, where the word that matters stands.
const NAME_BYTES_MAX: usize = 256;

/// Below this a word after `Bearer` is prose.
const BEARER_BYTES_MIN: usize = 8;

/// Words that make a name one of a credential wherever they stand in it.
const ANYWHERE: &[&str] = &["password", "passwd", "passphrase", "pwd", "credential", "credentials"];

/// Ends of the last word that do.
const LAST: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authorization",
    "cookie",
    "signature",
    "connectionstring",
    "dsn",
    "jwt",
];

/// Last words that do, whole: the signature of a shared link.
const LAST_WHOLE: &[&str] = &["sig"];

/// The last two words that do.
const LAST_TWO: &[(&str, &str)] = &[
    ("api", "key"),
    ("access", "key"),
    ("secret", "key"),
    ("private", "key"),
    ("account", "key"),
    ("encryption", "key"),
    ("signing", "key"),
    ("master", "key"),
    ("auth", "key"),
    ("shared", "key"),
    ("subscription", "key"),
    ("key", "base"),
    ("connection", "string"),
    ("x", "auth"),
];

/// Names that sound like one and are none: Pulumi's type tokens.
const HARMLESS: &[&str] = &["schema.token"];

/// Words behind the one that matters that say only how the credential is written.
const SPELLINGS: &[&str] = &["value", "text", "plain", "base64", "b64", "raw", "env", "header"];

/// Beginnings of credentials that services give out, with the least length of the whole.
const KNOWN_SHAPES: &[(&str, usize)] = &[
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("ghr_", 20),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxa-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxs-", 20),
    ("sk-", 24),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("npm_", 36),
    ("pypi-", 40),
    ("pul-", 40),
    ("hvs.", 24),
    ("dop_v1_", 40),
    ("SG.", 40),
];

/// Least length of anything that is known by its shape.
const SHAPE_BYTES_MIN: usize = 20;
const _: () = {
    let mut shape = 0;
    while shape < KNOWN_SHAPES.len() {
        assert!(KNOWN_SHAPES[shape].1 >= SHAPE_BYTES_MIN);
        shape += 1;
    }
};

/// Judges names and texts. Keeps what it found out about names.
#[derive(Debug, Default)]
pub struct Redactor {
    names: QuickMap<String, bool>,
    found: Vec<Range<usize>>,
}

impl Redactor {
    /// Whether anything of a span would be taken out.
    pub fn concerns_span(&mut self, span: &SpanRef<'_>) -> bool {
        self.concerns_text(span.name)
            || self.concerns_text(span.status_message)
            || self.concerns_pairs(span.attributes)
            || span.events.iter().any(|EventRef { name, attributes, .. }| self.concerns_text(name) || self.concerns_pairs(attributes))
            || span.links.iter().any(|LinkRef { attributes, .. }| self.concerns_pairs(attributes))
    }

    /// Whether anything of these attributes would be taken out.
    pub fn concerns(&mut self, attributes: &Attributes) -> bool {
        let mut copy = attributes.clone();
        self.attributes(&mut copy) > 0
    }

    fn concerns_pairs(&mut self, pairs: &[(&str, ValueRef<'_>)]) -> bool {
        pairs.iter().any(|(key, value)| match value {
            ValueRef::Str(text) => self.is_pair(key, text),
            ValueRef::Bytes(bytes) => !bytes.is_empty() && self.is_secret_name(key),
            ValueRef::Empty | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) => false,
            // Rare enough to be judged by doing it.
            nested @ (ValueRef::Array(_) | ValueRef::KeyValues(_)) => self.value(key, &mut nested.to_owned()) > 0,
        })
    }

    fn is_pair(&mut self, name: &str, text: &str) -> bool {
        !text.is_empty() && (self.is_secret_name(name) || self.concerns_text(text))
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
        self.text(&mut event.name) + self.attributes(&mut event.attributes)
    }

    /// Takes credentials out of what describes an emitter; says how many.
    pub fn resource(&mut self, resource: &mut Resource) -> u64 {
        self.attributes(&mut resource.attributes)
    }

    /// Takes credentials out of what describes an instrumentation; says how many.
    pub fn scope(&mut self, scope: &mut Scope) -> u64 {
        self.attributes(&mut scope.attributes)
    }

    /// Takes credentials out of a span, not of what describes its emitter; says how many.
    pub fn span(&mut self, span: &mut Span) -> u64 {
        let mut taken = self.text(&mut span.name) + self.text(&mut span.status.message) + self.attributes(&mut span.attributes);
        for event in &mut span.events {
            taken += self.event(event);
        }
        for link in &mut span.links {
            taken += self.attributes(&mut link.attributes);
        }
        taken
    }

    /// Takes credentials out of attributes; says how many.
    pub fn attributes(&mut self, attributes: &mut Attributes) -> u64 {
        attributes.0.iter_mut().map(|Attribute { key, value }| self.value(key, value)).sum()
    }

    fn value(&mut self, name: &str, value: &mut AttributeValue) -> u64 {
        let secret = self.is_secret_name(name);
        let mut taken = 0;
        // Values inside values: a decoder bounds how deep, so a list of what is to do is all that is needed.
        let mut todo: Vec<(bool, &mut AttributeValue)> = vec![(secret, value)];
        while let Some((secret, value)) = todo.pop() {
            match value {
                AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_) => {}
                AttributeValue::Str(text) if secret && !text.is_empty() => taken += u64::from(replace(text)),
                AttributeValue::Str(text) => taken += self.text(text),
                AttributeValue::Bytes(bytes) if secret && !bytes.is_empty() => {
                    *value = AttributeValue::Str(REDACTED.into());
                    taken += 1;
                }
                AttributeValue::Bytes(_) => {}
                AttributeValue::Array(values) => {
                    // `process.command_args` and its like: an option's value stands behind it.
                    let mut after_option = false;
                    for value in values {
                        let is_option = value.as_str().is_some_and(|text| self.is_secret_option(text));
                        todo.push((secret || after_option, value));
                        after_option = is_option;
                    }
                }
                AttributeValue::KeyValues(pairs) => {
                    for Attribute { key, value } in pairs {
                        let secret = secret || self.is_secret_name(key);
                        todo.push((secret, value));
                    }
                }
            }
        }
        taken
    }

    /// Takes credentials out of the words of a command line; says how many.
    pub fn arguments(&mut self, words: &mut [String]) -> u64 {
        let mut taken = 0;
        if let Some(first) = words.windows(2).position(|pair| pair[0] == "config" && pair[1] == "set") {
            let set: Vec<&str> = words[first + 2..].iter().map(String::as_str).collect();
            for at in self.values_of_config(&set) {
                taken += u64::from(replace(&mut words[first + 2 + at]));
            }
        }
        let mut after_option = false;
        for word in words {
            if after_option && !word.starts_with('-') {
                taken += u64::from(replace(word));
                after_option = false;
                continue;
            }
            after_option = self.is_secret_option(word);
            taken += self.string(word);
        }
        taken
    }

    /// `config set --secret KEY VALUE` and `config set dbPassword VALUE` of Pulumi and others: which of the words behind `set` are
    /// values of a credential. Options may take a word too, so it is every word behind the first one.
    fn values_of_config(&mut self, words: &[&str]) -> Vec<usize> {
        let named: Vec<usize> = (0..words.len()).filter(|at| !words[*at].starts_with('-')).collect();
        let concerned = words.contains(&"--secret") || named.iter().rev().skip(1).any(|at| self.is_secret_name(words[*at]));
        if concerned { named.into_iter().skip(1).collect() } else { Vec::new() }
    }

    /// `--password`, whose value is the next word.
    fn is_secret_option(&mut self, word: &str) -> bool {
        word.strip_prefix('-').is_some_and(|name| !name.contains(['=', ' ']) && self.is_secret_name(name.trim_start_matches('-')))
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

    /// What is left of a text without its credentials, and how many they were; `None` where it has none.
    fn cleaned(&mut self, text: &str) -> (Option<String>, u64) {
        if !self.concerns_text(text) {
            return (None, 0);
        }
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        for found in &self.found {
            clean.push_str(&text[at..found.start]);
            clean.push_str(REDACTED);
            at = found.end;
        }
        clean.push_str(&text[at..]);
        (Some(clean), self.found.len() as u64)
    }

    /// Fills `found` with the parts that are credentials, in order and apart. One pass over the words of the text.
    fn concerns_text(&mut self, text: &str) -> bool {
        self.found.clear();
        // One short word, as most names are.
        if text.len() < SHAPE_BYTES_MIN && text.bytes().all(is_of_word) {
            return false;
        }
        let mut words = Words { text, at: 0 };
        let mut previous: Option<Range<usize>> = None;
        let mut hidden_to = 0;
        // What `config set` said comes.
        let mut to_hide: Option<Range<usize>> = None;
        while let Some(word) = words.next() {
            if word.start < hidden_to {
                continue;
            }
            let gap = previous.as_ref().map_or("", |p| &text[p.end..word.start]);
            let before = previous.as_ref().map_or("", |p| &text[p.clone()]);
            if before == "config" && gap == " " && &text[word.clone()] == "set" {
                to_hide = self.values_of_config_in(text, word.end);
            }
            let is_new = |hidden: &Range<usize>| hidden.start >= hidden_to && !hidden.is_empty() && !is_redacted(text, hidden);
            // Not a word of it is in the way.
            if let Some(values) = to_hide.take_if(|values| values.end <= word.start).filter(is_new) {
                self.found.push(values);
            }
            let hidden = match to_hide.take_if(|values| values.start <= word.start) {
                Some(values) => Some(values.start.max(hidden_to)..values.end),
                None => self.credential_at(text, &word, before, gap),
            };
            if let Some(hidden) = hidden.filter(is_new) {
                hidden_to = hidden.end;
                self.found.push(hidden);
                // What is gone says nothing of what follows it.
                previous = None;
                continue;
            }
            previous = Some(word);
        }
        self.found.extend(to_hide.filter(|values| values.start >= hidden_to && !is_redacted(text, values)));
        !self.found.is_empty()
    }

    /// The credential that begins with this word, or in the gap before it.
    fn credential_at(&mut self, text: &str, word: &Range<usize>, before: &str, gap: &str) -> Option<Range<usize>> {
        let is_argument = before.starts_with('-') && !text[word.start..].starts_with('-');
        let assigned = value_start(gap, false).filter(|_| self.is_secret_name(before));
        let argument = || is_argument.then(|| value_start(gap, true)).flatten().filter(|_| self.is_secret_option(before));
        if let Some(value) = assigned.or_else(argument) {
            Some(value_at(text, word.start - gap.len() + value.skip, value.quote, value.in_list))
        } else if is_scheme(before) && gap.chars().all(char::is_whitespace) && is_random(&text[word.clone()]) {
            Some(word.start..value_end(text, word.start, None))
        } else if gap == ":" && text[word.start..].starts_with("//") {
            password_of_url(text, word.start + 2)
        } else if is_known_shape(&text[word.clone()]) {
            Some(word.clone())
        } else if is_private_key(text, word) {
            Some(word.start..text[word.start..].find("-----END").map_or(text.len(), |end| word.start + end))
        } else {
            None
        }
    }

    /// What [`Redactor::values_of_config`] finds in a command line that is one text; from the first of them to the last.
    fn values_of_config_in(&mut self, text: &str, from: usize) -> Option<Range<usize>> {
        let end = text[from..].find(['\n', ']']).map_or(text.len(), |length| from + length);
        let words = text[from..end].split_whitespace().take_while(|word| !["&&", "||", "|", ";"].contains(word));
        let words: Vec<&str> = words.collect();
        let place = |at: usize| words[at].as_ptr() as usize - text.as_ptr() as usize;
        let values = self.values_of_config(&words);
        let (first, last) = (*values.first()?, *values.last()?);
        Some(place(first)..place(last) + words[last].len())
    }

    /// Whether a value of this name is a credential.
    pub fn is_secret_name(&mut self, name: &str) -> bool {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let secret = is_secret_name(name);
        if self.names.len() < NAMES_MAX && name.len() <= NAME_BYTES_MAX {
            self.names.insert(name.to_owned(), secret);
        }
        secret
    }
}

/// Puts [`REDACTED`] in place of a whole text; `false` where it stands there already.
fn replace<T: AsRef<str> + From<&'static str>>(text: &mut T) -> bool {
    let new = (*text).as_ref() != REDACTED;
    *text = REDACTED.into();
    new
}

fn is_secret_name(name: &str) -> bool {
    if HARMLESS.contains(&name) {
        return false;
    }
    let from = (name.len().saturating_sub(NAME_BYTES_MAX)..=name.len()).find(|at| name.is_char_boundary(*at)).unwrap_or(name.len());
    let words = words_of_name(&name[from..]);
    if words.iter().any(|word| ANYWHERE.contains(&word.as_str())) {
        return true;
    }
    let spelled = words.iter().rposition(|word| !SPELLINGS.contains(&word.as_str())).map_or(0, |last| last + 1);
    let words = &words[..spelled];
    let last_two = || matches!(words, [.., a, b] if LAST_TWO.iter().any(|(x, y)| a == x && b == y));
    words.last().is_some_and(|last| LAST.iter().any(|end| last.ends_with(end)) || LAST_WHOLE.contains(&last.as_str())) || last_two()
}

/// `dbPassword`, `DB_PASSWORD`, `db.password` are `db`, `password`.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let starts = !c.is_alphanumeric() || was_lower && c.is_uppercase();
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Runs of characters that names, keys and base64 are made of.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.at + bytes[self.at..].iter().position(|b| is_of_word(*b))?;
        let length = bytes[start..].iter().position(|b| !is_of_word(*b)).unwrap_or(bytes.len() - start);
        self.at = start + length;
        Some(start..self.at)
    }
}

/// Bytes above ASCII belong to words, so that a range never cuts a character.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_-.+/~%$*!".contains(&byte)
}

/// Where a value begins.
struct ValueStart {
    /// Bytes of the gap before it.
    skip: usize,
    /// What it stands in.
    quote: Option<char>,
    /// It is the first of a list: `["a", "b"]`, or `[a b]` as Go prints one.
    in_list: bool,
}

/// Whether a value follows what stands between two words: `=`, `: `, `=>`, `":"` and what quoting makes of them, or behind an option a
/// blank or a comma. A bare colon parts a type or a URN: `cloud:secret:ApiKey`. The value may begin with what belongs to no word.
fn value_start(gap: &str, is_option: bool) -> Option<ValueStart> {
    const BLANKS: [char; 6] = [' ', '\t', '"', '\'', '\\', '`'];
    let mut rest = gap.trim_start_matches(BLANKS);
    if is_option {
        rest = rest.trim_start_matches(',');
    } else {
        let operator = ["=>", ":=", "=", ":"].into_iter().find(|operator| rest.starts_with(operator))?;
        rest = &rest[operator.len()..];
    }
    rest = rest.trim_start_matches(BLANKS);
    let in_list = rest.starts_with('[');
    if in_list {
        rest = rest[1..].trim_start_matches(BLANKS);
    }
    let before = &gap[..gap.len() - rest.len()];
    if before == ":" || before.is_empty() {
        return None;
    }
    let quote = before.chars().next_back().filter(|c| ['"', '\'', '`'].contains(c));
    rest.chars().all(|c| !ends_value(c, quote) && c != '[').then_some(ValueStart { skip: before.len(), quote, in_list })
}

/// The value that begins here; behind a quote it ends at the next one.
fn value_at(text: &str, start: usize, quote: Option<char>, in_list: bool) -> Range<usize> {
    if in_list {
        // All of the list: to its bracket, without the quote before that.
        let end = match quote {
            Some(quote) => text[start..].find(&format!("{quote}]")).unwrap_or_else(|| value_end(text, start, Some(quote)) - start),
            None => text[start..].find([']', '\n']).unwrap_or(text.len() - start),
        };
        return start..start + end;
    }
    let mut end = value_end(text, start, quote);
    // `Authorization: Bearer abc`: the credential is the second word.
    if quote.is_none() && is_scheme(&text[start..end]) {
        let next = text[end..].find(|c: char| !c.is_whitespace()).map_or(text.len(), |skip| end + skip);
        end = value_end(text, next, None);
    }
    start..end
}

/// Whether [`REDACTED`] stands there already, whichever of its brackets were taken for part of the text around.
fn is_redacted(text: &str, hidden: &Range<usize>) -> bool {
    let start = hidden.start - usize::from(text[..hidden.start].ends_with('['));
    let end = hidden.end + usize::from(text[hidden.end..].starts_with(']'));
    [&text[start..end], &text[start..hidden.end], &text[hidden.start..end], &text[hidden.clone()]].contains(&REDACTED)
}

fn value_end(text: &str, start: usize, quote: Option<char>) -> usize {
    text[start..].find(|c| ends_value(c, quote)).map_or(text.len(), |length| start + length)
}

fn ends_value(c: char, quote: Option<char>) -> bool {
    match quote {
        Some(quote) => c == quote || c == '\\' || c == '\n',
        None => c.is_whitespace() || ['&', ';', ',', '"', '\'', '`', '<', '>', '(', ')', '[', ']', '{', '}', '|'].contains(&c),
    }
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest", "negotiate"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// No word of a language.
fn is_random(word: &str) -> bool {
    word.len() >= BEARER_BYTES_MIN && (word.len() >= 24 || word.bytes().any(|b| b.is_ascii_digit()))
}

/// `password` of `scheme://user:password@host`, or all before the `@` where that is long enough to be a token.
fn password_of_url(text: &str, start: usize) -> Option<Range<usize>> {
    let ends = |c: char| c.is_whitespace() || ['/', '?', '#', '"', '\'', '`', '<', '>', '\\'].contains(&c);
    let authority = &text[start..text[start..].find(ends).map_or(text.len(), |length| start + length)];
    let user_info = &authority[..authority.rfind('@')?];
    match user_info.find(':') {
        Some(colon) => Some(start + colon + 1..start + user_info.len()),
        None if user_info.len() >= 20 || is_known_shape(user_info) => Some(start..start + user_info.len()),
        None => None,
    }
}

fn is_known_shape(word: &str) -> bool {
    // What the words of a path or a file are called is judged by the last of them.
    let word = word.rsplit('/').next().unwrap_or(word);
    if word.len() < SHAPE_BYTES_MIN {
        return false;
    }
    let by_prefix = KNOWN_SHAPES.iter().any(|(prefix, least)| word.starts_with(prefix) && word.len() >= *least);
    let is_jwt = || word.starts_with("eyJ") && word.len() >= 30 && word.split('.').count() == 3;
    by_prefix || is_jwt()
}

/// The end of `-----BEGIN … PRIVATE KEY-----`, where the key begins.
fn is_private_key(text: &str, word: &Range<usize>) -> bool {
    text[word.clone()].starts_with("KEY-----") && text[..word.start].ends_with("PRIVATE ")
}

#[cfg(test)]
mod tests;
