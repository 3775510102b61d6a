//! Payload logs of Pulumi: the requests and answers that its legacy tracing writes into spans, secrets included.
//!
//! ```text
//! {"gRPC request":"urn:\"urn:pulumi:dev::shop::aws:s3/bucket:Bucket::logs\" properties:{fields:{key:\"password\" …"}
//!                  └ kept                                                   └ never
//! ```
//!
//! A body is the text form of a protobuf message. What says which resource it is about is read; the body itself is
//! dropped on decoding and a note of its length stands in its place. Only fields of the outermost message count, and only
//! values that look like what their name promises, so that no property of a resource can pass for one.

use std::collections::HashSet;

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::resource_event::{DEPENDENCIES, PARENT, PROVIDER, TYPE, URN};
use longpole_model::sink::{SpanRef, ValueRef};
use longpole_model::span::Span;

/// Keys of logs that hold a payload.
pub use longpole_model::resource_event::PAYLOAD_LOGS as KEYS;

/// Key under which Pulumi's own bridge writes a log of a span, payloads included, as an attribute.
const BRIDGED_LOG: &str = "Msg";

/// Longest token that is taken for a type: they are names in a program, some 100 bytes.
const TOKEN_BYTES_MAX: usize = 512;

/// What a payload says of the resource it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// URN.
    pub urn: Option<String>,
    /// Type token of a resource, or token of a function.
    pub resource_type: Option<String>,
    /// URN of the parent.
    pub parent: Option<String>,
    /// Reference of the provider.
    pub provider: Option<String>,
    /// URNs of what it depends on.
    pub dependencies: Vec<String>,
}

impl Identity {
    /// Reads the text form of a message, as far as it goes: it may be cut off anywhere.
    pub fn of_body(body: &str) -> Identity {
        let mut identity = Identity::default();
        let bytes = body.as_bytes();
        let mut at = 0;
        let mut depth = 0usize;
        let mut field = "";
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'{' | b'<' => depth += 1,
                b'}' | b'>' => depth = depth.saturating_sub(1),
                b'"' | b'\'' => {
                    let Some(length) = quoted_length(&bytes[at + 1..], byte) else { break };
                    if depth == 0 {
                        identity.take(field, &bytes[at + 1..at + 1 + length]);
                    }
                    at += length + 1;
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    let end = bytes[at..].iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').map_or(bytes.len(), |n| at + n);
                    if depth == 0 {
                        field = &body[at..end];
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        let mut seen = HashSet::new();
        identity.dependencies.retain(|urn| seen.insert(urn.clone()));
        identity
    }

    fn take(&mut self, field: &str, value: &[u8]) {
        let wanted = matches!(field, "urn" | "type" | "tok" | "parent" | "provider" | "dependencies");
        if !wanted {
            return;
        }
        let value = unescaped(value);
        let is_urn = value.starts_with("urn:pulumi:");
        match field {
            "urn" if is_urn => keep_first(&mut self.urn, value),
            "parent" if is_urn => keep_first(&mut self.parent, value),
            "provider" if is_urn => keep_first(&mut self.provider, value),
            "dependencies" if is_urn => self.dependencies.push(value),
            "type" | "tok" if is_token(&value) => keep_first(&mut self.resource_type, value),
            _ => {}
        }
    }

    /// Adds what another payload of the same span says, where this one said nothing.
    pub fn merge(&mut self, other: Identity) {
        self.urn = self.urn.take().or(other.urn);
        self.resource_type = self.resource_type.take().or(other.resource_type);
        self.parent = self.parent.take().or(other.parent);
        self.provider = self.provider.take().or(other.provider);
        if self.dependencies.is_empty() {
            self.dependencies = other.dependencies;
        }
    }

    /// Writes it as attributes of the span, where the span does not have them yet.
    pub fn attach(self, attributes: &mut Attributes) {
        let from_urn = self.urn.as_deref().and_then(type_of_urn).map(str::to_owned);
        let texts = [(URN, self.urn), (TYPE, self.resource_type.or(from_urn)), (PARENT, self.parent), (PROVIDER, self.provider)];
        for (key, value) in texts {
            if let Some(value) = value.filter(|_| attributes.get(key).is_none()) {
                attributes.push(key, AttributeValue::Str(value.into()));
            }
        }
        if !self.dependencies.is_empty() && attributes.get(DEPENDENCIES).is_none() {
            let values = self.dependencies.into_iter().map(|urn| AttributeValue::Str(urn.into())).collect();
            attributes.push(DEPENDENCIES, AttributeValue::Array(values));
        }
    }
}

fn keep_first(slot: &mut Option<String>, value: String) {
    if slot.is_none() && !value.is_empty() {
        *slot = Some(value);
    }
}

/// Type tokens are `package:module:Name`, function tokens `package:module/name:name`.
fn is_token(text: &str) -> bool {
    text.len() <= TOKEN_BYTES_MAX && text.contains(':') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b":/._-$@".contains(&b))
}

/// The type in `urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME`.
pub fn type_of_urn(urn: &str) -> Option<&str> {
    let qualified = urn.strip_prefix("urn:pulumi:")?.split("::").nth(2)?;
    qualified.rsplit('$').next().filter(|text| !text.is_empty())
}

/// What stands in the place of a body.
pub fn left_out(body_bytes: usize) -> String {
    format!("[payload left out, {body_bytes} bytes]")
}

/// Whether a body has been left out already.
pub fn is_left_out(body: &str) -> bool {
    body.len() < 64 && body.starts_with("[payload left out, ") && body.ends_with(" bytes]")
}

/// A payload found in a log that is JSON text, cut off or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Which of [`KEYS`].
    pub key: &'static str,
    /// Length of the body, as far as it is there.
    pub body_bytes: usize,
    /// What it says.
    pub identity: Identity,
}

/// Finds a payload in the JSON text of a log, also where the text was cut off (Jaeger's client cuts at 256 bytes). `None`
/// where there is none: only then may the text be kept.
pub fn find(text: &str) -> Option<Payload> {
    for key in KEYS {
        let mut from = 0;
        while let Some(found) = text[from..].find(key) {
            let at = from + found;
            from = at + key.len();
            let is_name = text[..at].ends_with('"') && text[from..].starts_with('"');
            let value = is_name.then(|| text[from + 1..].trim_start().strip_prefix(':').map(str::trim_start)).flatten();
            if let Some(value) = value {
                let body = value.strip_prefix('"').map(json_text_prefix).unwrap_or_default();
                return Some(Payload { key, body_bytes: body.len(), identity: Identity::of_body(&body) });
            }
        }
    }
    None
}

/// The payload that is the value of an attribute.
fn of_attribute(key: &str, value: &str) -> Option<Payload> {
    if let Some(key) = KEYS.into_iter().find(|known| *known == key) {
        let payload = || Payload { key, body_bytes: value.len(), identity: Identity::of_body(value) };
        return (!is_left_out(value)).then(payload);
    }
    let may_be_log = key == BRIDGED_LOG || value.trim_start().starts_with('{');
    may_be_log.then(|| find(value)).flatten()
}

/// Whether a span of OpenTelemetry has a payload: providers with legacy tracing come so, by the bridge of Pulumi's engine.
pub fn is_in(span: &SpanRef<'_>) -> bool {
    let has = |pairs: &[(&str, ValueRef<'_>)]| {
        pairs.iter().any(|(key, value)| matches!(value, ValueRef::Str(text) if of_attribute(key, text).is_some()))
    };
    has(span.attributes) || span.events.iter().any(|event| has(&event.attributes))
}

/// Leaves the bodies of payloads out of a span, and writes down what they say of its resource.
pub fn leave_out(span: &mut Span) {
    let mut identity = Identity::default();
    let events = span.events.iter_mut().map(|event| &mut event.attributes);
    for Attribute { key, value } in std::iter::once(&mut span.attributes).chain(events).flat_map(|attributes| &mut attributes.0) {
        if let Some(payload) = value.as_str().and_then(|text| of_attribute(key, text)) {
            *value = AttributeValue::Str(left_out(payload.body_bytes).into());
            identity.merge(payload.identity);
        }
    }
    identity.attach(&mut span.attributes);
}

/// The content of a JSON text from behind its quote to its end, or to where it was cut off.
fn json_text_prefix(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' => match rest.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('u') => {
                    let mut code = 0;
                    for _ in 0..4 {
                        code = code << 4 | rest.next().and_then(|digit| digit.to_digit(16)).unwrap_or(0);
                    }
                    out.push(char::from_u32(code).unwrap_or('?'));
                }
                Some(other) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    out
}

/// Bytes to the quote that ends a text, or `None` where it does not end.
fn quoted_length(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            other if other == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// A text of protobuf's text form without its escapes, which are those of C.
fn unescaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&escape) = bytes.get(at) else { break };
        at += 1;
        let digits = |radix: u32, most: usize, from: usize| {
            let length = bytes[from..].iter().take(most).take_while(|b| char::from(**b).is_digit(radix)).count();
            let value = bytes[from..from + length].iter().fold(0u32, |n, b| n * radix + char::from(*b).to_digit(radix).unwrap_or(0));
            (value, length)
        };
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'0'..=b'7' => {
                let (value, length) = digits(8, 3, at - 1);
                out.push(value.to_le_bytes()[0]);
                at += length - 1;
            }
            b'x' => {
                let (value, length) = digits(16, 2, at);
                out.push(value.to_le_bytes()[0]);
                at += length;
            }
            b'u' | b'U' => {
                let (value, length) = digits(16, if escape == b'u' { 4 } else { 8 }, at);
                out.extend_from_slice(char::from_u32(value).unwrap_or('?').encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
