//! v2 in protobuf: `zipkin.proto3.ListOfSpans`.

use std::borrow::Cow;

use longpole_model::attribute::AttributeValue;
use longpole_model::interned_text::Text;
use longpole_model::span::SpanKind;

use super::raw::{Endpoint, Note, Raw, Tag, address, known};
use crate::convert::{Losses, number_of_bytes, span_id_of_bytes, trace_id_of_bytes};
use crate::error::{DecodeError, Problem};
use crate::limits::Limits;
use crate::number::uint32;
use crate::protobuf::{MessageCount, Reader, Value, unexpected};

/// Reads a whole body.
pub(super) fn read<'a>(bytes: &'a [u8], limits: &Limits, losses: &mut Losses) -> Result<Vec<Raw<'a>>, DecodeError> {
    let mut spans = Vec::new();
    let mut reader = Reader::new(bytes);
    let mut messages = MessageCount::of(bytes.len());
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            if spans.len() >= limits.zipkin_spans_max {
                let limit = u32::try_from(limits.zipkin_spans_max).unwrap_or(u32::MAX);
                return Err(reader.error_at(field.offset, Problem::TooMany { limit }));
            }
            messages.add(&reader, field.offset)?;
            spans.push(span(inner.named("span"), limits, &mut messages, losses)?);
        }
    }
    Ok(spans)
}

fn span<'a>(mut reader: Reader<'a>, limits: &Limits, messages: &mut MessageCount, losses: &mut Losses) -> Result<Raw<'a>, DecodeError> {
    let mut raw = Raw::default();
    let mut values = 0;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(bytes)) => raw.trace_id = trace_id_of_bytes(bytes.bytes()),
            (2, Value::Bytes(bytes)) => {
                raw.parent = span_id_of_bytes(bytes.bytes());
                raw.parent_invalid = raw.parent.is_none() && number_of_bytes(bytes.bytes()) != Some(0);
            }
            (3, Value::Bytes(bytes)) => raw.span_id = span_id_of_bytes(bytes.bytes()),
            (4, Value::Varint(number)) => {
                raw.kind = match number {
                    1 => SpanKind::Client,
                    2 => SpanKind::Server,
                    3 => SpanKind::Producer,
                    4 => SpanKind::Consumer,
                    _ => SpanKind::Unspecified,
                }
            }
            (5, Value::Bytes(name)) => raw.name = losses.text(name.bytes()),
            (6, Value::Fixed64(micros)) => raw.start_micros = known(i128::from(micros)),
            (7, Value::Varint(micros)) => raw.duration_micros = known(i128::from(micros)),
            (8, Value::Bytes(inner)) => raw.local = Some(endpoint(inner, losses)?),
            (9, Value::Bytes(inner)) => raw.remote = Some(endpoint(inner, losses)?),
            (10, Value::Bytes(inner)) => raw.notes.push(note(inner, losses)?),
            (11, Value::Bytes(inner)) => raw.tags.push(tag(inner, losses)?),
            (12, Value::Varint(truth)) => raw.debug = truth != 0,
            (13, Value::Varint(truth)) => raw.shared = truth != 0,
            (1..=13, _) => return Err(unexpected(&reader, field)),
            _ => continue,
        }
        if field.number == 10 || field.number == 11 {
            values += 1;
            messages.add(&reader, field.offset)?;
        }
        if values > limits.values_max {
            return Err(reader.error_at(field.offset, Problem::TooMany { limit: limits.values_max }));
        }
    }
    Ok(raw)
}

fn endpoint<'a>(reader: Reader<'a>, losses: &mut Losses) -> Result<Endpoint<'a>, DecodeError> {
    let mut reader = reader.named("endpoint");
    let mut endpoint = Endpoint::default();
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(name)) => endpoint.service = losses.text(name.bytes()),
            (2 | 3, Value::Bytes(bytes)) => {
                let address = address(bytes.bytes());
                if !address.is_empty() {
                    endpoint.address = address;
                }
            }
            (4, Value::Varint(port)) => endpoint.port = uint32(port),
            _ => {}
        }
    }
    Ok(endpoint)
}

fn note<'a>(reader: Reader<'a>, losses: &mut Losses) -> Result<Note<'a>, DecodeError> {
    let mut reader = reader.named("annotation");
    let mut note = Note { micros: 0, text: Cow::Borrowed(""), by: None };
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Fixed64(micros)) => note.micros = i128::from(micros),
            (2, Value::Bytes(value)) => note.text = losses.text(value.bytes()),
            _ => {}
        }
    }
    Ok(note)
}

fn tag<'a>(reader: Reader<'a>, losses: &mut Losses) -> Result<Tag<'a>, DecodeError> {
    let mut reader = reader.named("tag");
    let mut tag = Tag { key: Cow::Borrowed(""), value: AttributeValue::Str(Text::new()), by: None };
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(key)) => tag.key = losses.text(key.bytes()),
            (2, Value::Bytes(value)) => tag.value = AttributeValue::Str(losses.text(value.bytes()).into()),
            _ => {}
        }
    }
    Ok(tag)
}
