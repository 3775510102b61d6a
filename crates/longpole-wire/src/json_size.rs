//! How many bytes spans take as JSON, found before a byte of it is written.
//!
//! An upper bound for the JSON of Jaeger, Zipkin and OpenTelemetry, and mostly close to it. A server counts the memory of an answer by it, and
//! encoders begin with a buffer that never has to grow: a buffer that grows is in memory twice.

use std::sync::Arc;

use longpole_model::{Attribute, AttributeValue, Resource, Scope, Span, SpanEvent};

/// Ids, times, the names of all members.
const SPAN_BYTES: u64 = 560;

/// `{"key":"","type":"float64","value":}`, a comma, and a number.
const ATTRIBUTE_BYTES: u64 = 64;

/// Its time, and the names of its members.
const EVENT_BYTES: u64 = 110;

/// Two ids, and the names of its members.
const LINK_BYTES: u64 = 160;

/// An element of a list: quotation marks, which a list within a text escapes, and a comma.
const ELEMENT_BYTES: u64 = 8;

/// Digits of a number.
const NUMBER_BYTES: u64 = 26;

/// Bytes of these spans as JSON, at most.
pub fn json_bytes(spans: &[Span]) -> u64 {
    let (mut resource, mut scope): (Option<&Arc<Resource>>, Option<&Arc<Scope>>) = (None, None);
    let mut bytes = SPAN_BYTES;
    for span in spans {
        bytes += SPAN_BYTES + text(&span.name) + text(&span.trace_state) + text(&span.status.message) + pairs(&span.attributes.0);
        bytes += span.events.iter().map(event).sum::<u64>();
        bytes += span.links.iter().map(|link| LINK_BYTES + pairs(&link.attributes.0)).sum::<u64>();
        // Zipkin repeats the name of the service. Neighbours mostly share the rest.
        bytes += text(span.service_name()) + text(&span.scope.name) + text(&span.scope.version);
        if !resource.is_some_and(|last| Arc::ptr_eq(last, &span.resource)) {
            bytes += SPAN_BYTES + pairs(&span.resource.attributes.0);
        }
        if !scope.is_some_and(|last| Arc::ptr_eq(last, &span.scope)) {
            bytes += SPAN_BYTES + pairs(&span.scope.attributes.0);
        }
        (resource, scope) = (Some(&span.resource), Some(&span.scope));
    }
    bytes
}

/// A buffer for them.
pub(crate) fn buffer_for(spans: &[Span]) -> String {
    String::with_capacity(usize::try_from(json_bytes(spans)).unwrap_or_default())
}

fn event(event: &SpanEvent) -> u64 {
    EVENT_BYTES + text(&event.name) + pairs(&event.attributes.0)
}

fn pairs(pairs: &[Attribute]) -> u64 {
    pairs.iter().map(|pair| ATTRIBUTE_BYTES + text(&pair.key) + value(&pair.value)).sum()
}

/// Bytes of a value. Lists are walked without recursion.
fn value(value: &AttributeValue) -> u64 {
    let (mut bytes, mut waiting) = (0, vec![(value, false)]);
    while let Some((value, is_within)) = waiting.pop() {
        // Some write a list as a text, in which its texts are escaped a second time.
        let times = if is_within { 2 } else { 1 };
        bytes += match value {
            AttributeValue::Empty | AttributeValue::Bool(_) => ELEMENT_BYTES,
            AttributeValue::Int(_) | AttributeValue::Double(_) => NUMBER_BYTES,
            AttributeValue::Str(words) => ELEMENT_BYTES + times * text(words),
            AttributeValue::Bytes(bytes) => ELEMENT_BYTES + bytes.len() as u64 * 2,
            AttributeValue::Array(values) => {
                waiting.extend(values.iter().map(|value| (value, true)));
                ELEMENT_BYTES + values.len() as u64 * ELEMENT_BYTES
            }
            AttributeValue::KeyValues(pairs) => {
                waiting.extend(pairs.iter().map(|pair| (&pair.value, true)));
                ELEMENT_BYTES + pairs.iter().map(|pair| ATTRIBUTE_BYTES + 2 * text(&pair.key)).sum::<u64>()
            }
        };
    }
    bytes
}

/// Bytes of a text, escaped.
fn text(text: &str) -> u64 {
    let more = |byte: u8| match byte {
        0..0x20 => 5,
        b'"' | b'\\' => 1,
        _ => 0,
    };
    text.len() as u64 + text.bytes().map(more).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use longpole_model::{SpanId, SpanLink, Status, StatusCode, TimeRange, Timestamp, TraceId};

    use super::*;

    fn spans(count: u8, attributes: usize, words: &str) -> Vec<Span> {
        let id = |number: u8| SpanId::new([number; 8]).unwrap();
        let trace_id = TraceId::new([7; 16]).unwrap();
        let time = TimeRange { start: Timestamp(1_795_867_200_000_000_001), end: Timestamp(1_795_867_200_900_000_001) };
        let pairs = |value: &AttributeValue| {
            let mut pairs = longpole_model::Attributes::default();
            (0..attributes).for_each(|number| pairs.push(format!("key.{number}"), value.clone()));
            pairs
        };
        let list = AttributeValue::Array(vec![AttributeValue::Str(words.into()), AttributeValue::Int(i64::MIN)].into());
        let resource = Arc::new(Resource { attributes: pairs(&AttributeValue::Str(words.into())) });
        (1..=count)
            .map(|number| Span {
                parent_span_id: Some(id(number + 100)),
                resource: Arc::clone(&resource),
                attributes: pairs(if number % 2 == 0 { &list } else { &AttributeValue::Double(0.1) }),
                events: [SpanEvent { time: time.start, name: words.into(), attributes: pairs(&AttributeValue::Bool(true)) }]
                    .into_iter()
                    .collect(),
                links: [SpanLink { trace_id, span_id: id(number), attributes: pairs(&AttributeValue::Bytes(vec![9; 30].into())) }]
                    .into_iter()
                    .collect(),
                status: Status { code: StatusCode::Error, message: words.into() },
                ..Span::new(trace_id, id(number), words, time)
            })
            .collect()
    }

    #[test]
    fn no_json_is_longer_and_most_is_not_much_shorter() {
        for words in ["GET /cart", "a \"quoted\" text\n", "\u{1}\u{2}"] {
            for (count, attributes) in [(0, 0), (1, 0), (20, 0), (20, 6), (20, 60)] {
                let spans = spans(count, attributes, words);
                let most = json_bytes(&spans);
                let jaeger = crate::jaeger::encode(&spans).0.len() as u64;
                let zipkin = crate::zipkin::encode_v2_json(&spans).0.len() as u64;
                let otlp = crate::otlp::json::encode(&spans).len() as u64;
                let found = [jaeger, zipkin, otlp];
                assert!(found.iter().all(|bytes| *bytes <= most), "{words:?} {count} {attributes}: {found:?} of {most}");
                let longest = jaeger.max(zipkin).max(otlp);
                assert!(count < 20 || most < 3 * longest, "{words:?} {count} {attributes}: {found:?} of {most}");
            }
        }
    }
}
