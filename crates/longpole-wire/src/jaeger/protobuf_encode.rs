//! Jaeger's protobuf, out: spans as its query service answers them (`SpansResponseChunk` of `jaeger.api_v2`).

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::loss::Loss;
use longpole_model::resource::Resource;
use longpole_model::span::Span;

use super::FOLLOWS_FROM;
use super::outgoing::{Outgoing, fields_of};
use crate::convert::{self, CannotHold};
use crate::protobuf::{put_bytes, put_fixed64, put_integer, put_message};

const NANOS_OF_SECOND: i64 = 1_000_000_000;

/// The bytes of an answer with these spans, and what Jaeger's spans cannot hold.
pub fn encode_spans(spans: &[Span]) -> (Vec<u8>, Vec<Loss>) {
    let (mut out, mut lost) = (Vec::new(), CannotHold::default());
    for span in spans {
        put_message(&mut out, 1, |out| put_span(out, span, &mut lost));
    }
    (out, lost.into_losses())
}

fn put_span(out: &mut Vec<u8>, span: &Span, lost: &mut CannotHold) {
    let Outgoing { flags, references, tags, warnings } = Outgoing::of(span, lost);
    put_bytes(out, 1, &span.trace_id.bytes());
    put_bytes(out, 2, &span.span_id.bytes());
    put_bytes(out, 3, span.name.as_bytes());
    for (ref_type, trace_id, span_id) in references {
        put_message(out, 4, |out| {
            put_bytes(out, 1, &trace_id.bytes());
            put_bytes(out, 2, &span_id.bytes());
            put_integer(out, 3, u64::from(ref_type == FOLLOWS_FROM));
        });
    }
    put_integer(out, 5, u64::from(flags));
    let start = span.start.unix_nanos();
    put_message(out, 6, |out| put_time(out, start));
    put_message(out, 7, |out| put_time(out, span.end.unix_nanos().saturating_sub(start)));
    for (key, value) in tags {
        put_message(out, 8, |out| put_tag(out, &key, &value, lost));
    }
    for event in &span.events {
        put_message(out, 9, |out| {
            put_message(out, 1, |out| put_time(out, event.time.unix_nanos()));
            for (key, value) in fields_of(event) {
                put_message(out, 2, |out| put_tag(out, key, &value, lost));
            }
        });
    }
    put_message(out, 10, |out| put_process(out, &span.resource, lost));
    if let Some(AttributeValue::Array(texts)) = warnings {
        texts.iter().filter_map(AttributeValue::as_str).for_each(|text| put_bytes(out, 12, text.as_bytes()));
    }
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration`; the nanoseconds of a time before 1970 count forwards.
fn put_time(out: &mut Vec<u8>, nanos: i64) {
    put_integer(out, 1, nanos.div_euclid(NANOS_OF_SECOND).cast_unsigned());
    put_integer(out, 2, nanos.rem_euclid(NANOS_OF_SECOND).cast_unsigned());
}

fn put_process(out: &mut Vec<u8>, resource: &Resource, lost: &mut CannotHold) {
    let (service, others) = convert::service_and_others(resource);
    put_bytes(out, 1, service.unwrap_or_default().as_bytes());
    for tag in others {
        put_message(out, 2, |out| put_tag(out, &tag.key, &tag.value, lost));
    }
}

fn put_tag(out: &mut Vec<u8>, key: &str, value: &AttributeValue, lost: &mut CannotHold) {
    put_bytes(out, 1, key.as_bytes());
    match value {
        AttributeValue::Str(text) => put_bytes(out, 3, text.as_bytes()),
        AttributeValue::Bool(truth) => {
            put_integer(out, 2, 1);
            put_integer(out, 4, u64::from(*truth));
        }
        AttributeValue::Int(number) => {
            put_integer(out, 2, 2);
            put_integer(out, 5, number.cast_unsigned());
        }
        AttributeValue::Double(number) => {
            put_integer(out, 2, 3);
            put_fixed64(out, 6, number.to_bits());
        }
        AttributeValue::Bytes(bytes) => {
            put_integer(out, 2, 4);
            put_bytes(out, 7, bytes);
        }
        AttributeValue::Empty | AttributeValue::Array(_) | AttributeValue::KeyValues(_) => {
            let attribute = Attribute { key: key.into(), value: value.clone() };
            put_bytes(out, 3, convert::attribute_text(&attribute, lost).as_bytes());
        }
    }
}
