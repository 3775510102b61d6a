//! OTLP's protobuf, written by hand: the few messages that carry spans, appended to byte buffers.
//!
//! Field numbers are those of `opentelemetry/proto/{trace,common,resource}/v1`, which OTLP 1.0 froze. The tests decode what is
//! written here with the generated messages of `opentelemetry-proto`.

/// Wire types of protobuf.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LEN: u32 = 2;
const FIXED32: u32 = 5;

/// Fields of `Span`.
pub(crate) mod span {
    pub(crate) const TRACE_ID: u32 = 1;
    pub(crate) const SPAN_ID: u32 = 2;
    pub(crate) const TRACE_STATE: u32 = 3;
    pub(crate) const PARENT_SPAN_ID: u32 = 4;
    pub(crate) const NAME: u32 = 5;
    pub(crate) const KIND: u32 = 6;
    pub(crate) const START_TIME: u32 = 7;
    pub(crate) const END_TIME: u32 = 8;
    pub(crate) const ATTRIBUTES: u32 = 9;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 10;
    pub(crate) const EVENTS: u32 = 11;
    pub(crate) const DROPPED_EVENTS: u32 = 12;
    pub(crate) const LINKS: u32 = 13;
    pub(crate) const DROPPED_LINKS: u32 = 14;
    pub(crate) const STATUS: u32 = 15;
    pub(crate) const FLAGS: u32 = 16;
}

/// Fields of `Span.Event`.
pub(crate) mod event {
    pub(crate) const TIME: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const ATTRIBUTES: u32 = 3;
}

/// Fields of `Span.Link`.
mod link {
    pub(super) const TRACE_ID: u32 = 1;
    pub(super) const SPAN_ID: u32 = 2;
    pub(super) const FLAGS: u32 = 6;
}

/// Bits of the `flags` of a span and of a link beside W3C's: whether the other side is in another process is known; it is.
pub(crate) const FLAG_HAS_IS_REMOTE: u32 = 0x100;
pub(crate) const FLAG_IS_REMOTE: u32 = 0x200;

/// A value of an attribute, borrowed from whoever has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Str(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
    Texts(&'a [String]),
}

pub(crate) fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn varint_len(number: u64) -> usize {
    // One byte per seven bits that are used; zero takes one as well.
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

fn tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

/// Begins a nested message of known length.
pub(crate) fn message(out: &mut Vec<u8>, field: u32, len: usize) {
    tag(out, field, LEN);
    varint(out, len as u64);
}

/// Bytes that a nested message takes with its tag and length.
pub(crate) fn message_len(field: u32, len: usize) -> usize {
    varint_len(u64::from(field << 3)) + varint_len(len as u64) + len
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    message(out, field, value.len());
    out.extend_from_slice(value);
}

pub(crate) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

pub(crate) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
    tag(out, field, FIXED32);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `KeyValue` as a field of the message that `out` holds.
pub(crate) fn attribute(out: &mut Vec<u8>, field: u32, key: &str, value: Value<'_>) {
    let any_len = any_value_len(value);
    message(out, field, message_len(1, key.len()) + message_len(2, any_len));
    bytes(out, 1, key.as_bytes());
    message(out, 2, any_len);
    any_value(out, value);
}

/// Appends an `AnyValue`'s one field.
fn any_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Str(text) => bytes(out, 1, text.as_bytes()),
        Value::Bool(truth) => uint(out, 2, u64::from(truth)),
        // int64, not sint64: negative numbers take ten bytes.
        Value::Int(number) => uint(out, 3, number as u64),
        Value::Double(number) => fixed64(out, 4, number.to_bits()),
        Value::Bytes(value) => bytes(out, 7, value),
        Value::Texts(texts) => {
            message(out, 5, texts_len(texts));
            for text in texts {
                message(out, 1, message_len(1, text.len()));
                bytes(out, 1, text.as_bytes());
            }
        }
    }
}

fn any_value_len(value: Value<'_>) -> usize {
    match value {
        Value::Str(text) => message_len(1, text.len()),
        Value::Bool(_) => 2,
        Value::Int(number) => 1 + varint_len(number as u64),
        Value::Double(_) => 9,
        Value::Bytes(value) => message_len(7, value.len()),
        Value::Texts(texts) => message_len(5, texts_len(texts)),
    }
}

fn texts_len(texts: &[String]) -> usize {
    texts.iter().map(|text| message_len(1, message_len(1, text.len()))).sum()
}

/// Appends a link as a field of the span that `out` holds.
pub(crate) fn span_link(out: &mut Vec<u8>, trace_id: &[u8; 16], span_id: &[u8; 8], flags: u32) {
    // Two ids with tag and length, and a fixed32 with its tag.
    message(out, span::LINKS, 18 + 10 + 5);
    bytes(out, link::TRACE_ID, trace_id);
    bytes(out, link::SPAN_ID, span_id);
    fixed32(out, link::FLAGS, flags);
}

/// Appends a span's status, unless there is nothing to say.
pub(crate) fn status(out: &mut Vec<u8>, code: u8, text: &str) {
    if code == 0 {
        return;
    }
    let text_len = if text.is_empty() { 0 } else { message_len(2, text.len()) };
    message(out, span::STATUS, text_len + 2);
    if text_len > 0 {
        bytes(out, 2, text.as_bytes());
    }
    uint(out, 3, u64::from(code));
}

/// Where a field of a message begins and ends, and what is in it, if it is of the wire type LEN.
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) content: &'a [u8],
    /// The value of a VARINT field.
    pub(crate) varint: u64,
}

/// The field at `start`; `None` at the end, and where the bytes are no protobuf.
pub(crate) fn field_at(message: &[u8], start: usize) -> Option<Field<'_>> {
    let (tag, mut at) = read_varint(message, start)?;
    let mut content: &[u8] = &[];
    let mut varint = 0;
    match tag as u32 & 7 {
        VARINT => (varint, at) = read_varint(message, at)?,
        FIXED64 => at = at.checked_add(8)?,
        FIXED32 => at = at.checked_add(4)?,
        LEN => {
            let (len, from) = read_varint(message, at)?;
            at = from.checked_add(usize::try_from(len).ok()?)?;
            content = message.get(from..at)?;
        }
        _ => return None,
    }
    (at <= message.len()).then_some(Field { number: u32::try_from(tag >> 3).ok()?, start, end: at, content, varint })
}

fn read_varint(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number, at));
        }
    }
    None
}

/// Removes the attribute of this key from the fields of a span; says whether it was there.
pub(crate) fn remove_attribute(fields: &mut Vec<u8>, key: &str) -> bool {
    let mut at = 0;
    while let Some(field) = field_at(fields, at) {
        let (start, end) = (field.start, field.end);
        if field.number == span::ATTRIBUTES && field_at(field.content, 0).is_some_and(|first| first.content == key.as_bytes()) {
            fields.drain(start..end);
            return true;
        }
        at = end;
    }
    false
}

/// `rejected_spans` of an `ExportTraceServiceResponse`; 0 where nothing was rejected or nothing can be read.
pub(crate) fn rejected_spans(response: &[u8]) -> u64 {
    let partial_success = fields(response).filter(|field| field.number == 1).last();
    let rejected = partial_success.and_then(|field| fields(field.content).filter(|field| field.number == 1).last());
    rejected.map_or(0, |field| u64::try_from(field.varint as i64).unwrap_or(0))
}

fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let field = field_at(message, at)?;
        at = field.end;
        Some(field)
    })
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use prost::Message;

    use super::*;

    fn decoded(fields: &[u8]) -> Span {
        Span::decode(fields).unwrap()
    }

    fn attribute_round_trip(value: Value<'_>) -> Any {
        let mut out = Vec::new();
        attribute(&mut out, span::ATTRIBUTES, "key", value);
        let span = decoded(&out);
        assert_eq!(span.attributes.len(), 1);
        assert_eq!(span.attributes[0].key, "key");
        span.attributes[0].value.clone().unwrap().value.unwrap()
    }

    #[test]
    fn each_type_of_value_is_read_back_by_the_generated_messages() {
        for number in [0, 1, -1, 127, 128, i64::MAX, i64::MIN] {
            assert_eq!(attribute_round_trip(Value::Int(number)), Any::IntValue(number));
        }
        let long = "ä".repeat(20_000);
        for text in ["", "text", &long] {
            assert_eq!(attribute_round_trip(Value::Str(text)), Any::StringValue(text.into()));
        }
        assert_eq!(attribute_round_trip(Value::Bool(true)), Any::BoolValue(true));
        assert_eq!(attribute_round_trip(Value::Bool(false)), Any::BoolValue(false));
        assert_eq!(attribute_round_trip(Value::Double(-0.25)), Any::DoubleValue(-0.25));
        assert_eq!(attribute_round_trip(Value::Bytes(&[0, 255])), Any::BytesValue(vec![0, 255]));
        let Any::ArrayValue(texts) = attribute_round_trip(Value::Texts(&["a".into(), String::new()])) else { panic!("no array") };
        let texts: Vec<_> = texts.values.into_iter().map(|value| value.value.unwrap()).collect();
        assert_eq!(texts, [Any::StringValue("a".into()), Any::StringValue(String::new())]);
    }

    #[test]
    fn the_length_of_a_varint_is_what_it_takes() {
        for shift in 0..64 {
            for number in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                varint(&mut out, number);
                assert_eq!(out.len(), varint_len(number), "{number}");
                assert_eq!(read_varint(&out, 0), Some((number, out.len())));
            }
        }
    }

    #[test]
    fn links_and_status_are_read_back() {
        let mut out = Vec::new();
        span_link(&mut out, &[1; 16], &[2; 8], 1 | FLAG_HAS_IS_REMOTE);
        status(&mut out, 2, "no disk left");
        let span = decoded(&out);
        assert_eq!(
            (span.links[0].trace_id.as_slice(), span.links[0].span_id.as_slice(), span.links[0].flags),
            (&[1; 16][..], &[2; 8][..], 0x101)
        );
        let status = span.status.unwrap();
        assert_eq!((status.code, status.message.as_str()), (2, "no disk left"));
    }

    #[test]
    fn an_attribute_is_removed_from_among_others() {
        let mut out = Vec::new();
        attribute(&mut out, span::ATTRIBUTES, "a", Value::Int(1));
        uint(&mut out, span::KIND, 1);
        attribute(&mut out, span::ATTRIBUTES, "b", Value::Str("a"));
        fixed64(&mut out, span::START_TIME, 9);
        fixed32(&mut out, span::FLAGS, 9);
        attribute(&mut out, span::ATTRIBUTES, "c", Value::Bool(true));
        assert!(!remove_attribute(&mut out, "d"));
        assert!(remove_attribute(&mut out, "b"));
        assert!(remove_attribute(&mut out, "c"));
        let span = decoded(&out);
        assert_eq!(span.attributes.iter().map(|attribute| attribute.key.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!((span.kind, span.start_time_unix_nano, span.flags), (1, 9, 9));
    }

    #[test]
    fn rejections_are_read_and_garbage_rejects_nothing() {
        let response = |rejected_spans| {
            let error_message = "too late".into();
            ExportTraceServiceResponse { partial_success: Some(ExportTracePartialSuccess { rejected_spans, error_message }) }
                .encode_to_vec()
        };
        assert_eq!(rejected_spans(&response(7)), 7);
        assert_eq!(rejected_spans(&response(0)), 0);
        assert_eq!(rejected_spans(&response(-7)), 0);
        assert_eq!(rejected_spans(&[]), 0);
        assert_eq!(rejected_spans(b"<html>ok</html>"), 0);
        assert_eq!(rejected_spans(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), 0);
    }
}
