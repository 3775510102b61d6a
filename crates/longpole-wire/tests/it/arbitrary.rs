//! Random OTLP requests, as the generated messages.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Nearly always a good id, sometimes none, zero, too short or too long.
fn id(bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => vec(any::<u8>(), bytes),
        1 => Just(Vec::new()),
        1 => Just(vec![0; bytes]),
        1 => vec(any::<u8>(), 0..20),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z._]{0,12}", ".{0,20}", "\\PC{0,6}"]
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        text().prop_map(Value::StringValue),
        any::<bool>().prop_map(Value::BoolValue),
        any::<i64>().prop_map(Value::IntValue),
        any::<f64>().prop_map(Value::DoubleValue),
        vec(any::<u8>(), 0..9).prop_map(Value::BytesValue),
    ];
    let leaf = option::weighted(0.95, leaf).prop_map(|value| AnyValue { value });
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| Value::ArrayValue(ArrayValue { values })),
            vec((text(), option::of(inner)), 0..4).prop_map(|pairs| {
                let values = pairs.into_iter().map(|(key, value)| KeyValue { key, value, ..KeyValue::default() }).collect();
                Value::KvlistValue(KeyValueList { values })
            }),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let pair = (text(), option::weighted(0.95, any_value())).prop_map(|(key, value)| KeyValue { key, value, ..KeyValue::default() });
    vec(pair, 0..5)
}

/// Rarely anything but 0.
fn dropped() -> impl Strategy<Value = u32> {
    prop_oneof![5 => Just(0), 1 => any::<u32>()]
}

fn event() -> impl Strategy<Value = span::Event> {
    (any::<u64>(), text(), attributes(), dropped()).prop_map(|(time_unix_nano, name, attributes, dropped_attributes_count)| span::Event {
        time_unix_nano,
        name,
        attributes,
        dropped_attributes_count,
    })
}

fn link() -> impl Strategy<Value = span::Link> {
    (id(16), id(8), text(), attributes(), dropped(), any::<u32>()).prop_map(
        |(trace_id, span_id, trace_state, attributes, dropped_attributes_count, flags)| span::Link {
            trace_id,
            span_id,
            trace_state,
            attributes,
            dropped_attributes_count,
            flags,
        },
    )
}

fn span() -> impl Strategy<Value = Span> {
    let ids = (id(16), id(8), id(8), text(), any::<u32>());
    let times = (text(), -1..9i32, any::<u64>(), any::<u64>());
    let lists = (attributes(), dropped(), vec(event(), 0..3), dropped(), vec(link(), 0..3), dropped());
    let status = option::of((text(), -1..5i32).prop_map(|(message, code)| Status { message, code }));
    (ids, times, lists, status).prop_map(|(ids, times, lists, status)| Span {
        trace_id: ids.0,
        span_id: ids.1,
        parent_span_id: ids.2,
        trace_state: ids.3,
        flags: ids.4,
        name: times.0,
        kind: times.1,
        start_time_unix_nano: times.2,
        end_time_unix_nano: times.3,
        attributes: lists.0,
        dropped_attributes_count: lists.1,
        events: lists.2,
        dropped_events_count: lists.3,
        links: lists.4,
        dropped_links_count: lists.5,
        status,
    })
}

/// A request.
pub(crate) fn request() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = (text(), text(), attributes(), dropped()).prop_map(|(name, version, attributes, dropped_attributes_count)| {
        InstrumentationScope { name, version, attributes, dropped_attributes_count }
    });
    let scope_spans =
        (option::of(scope), vec(span(), 0..4), text()).prop_map(|(scope, spans, schema_url)| ScopeSpans { scope, spans, schema_url });
    let resource = (attributes(), dropped()).prop_map(|(attributes, dropped_attributes_count)| Resource {
        attributes,
        dropped_attributes_count,
        entity_refs: Vec::new(),
    });
    let resource_spans = (option::of(resource), vec(scope_spans, 0..3), text())
        .prop_map(|(resource, scope_spans, schema_url)| ResourceSpans { resource, scope_spans, schema_url });
    vec(resource_spans, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

/// Bytes that once were these: some overwritten, cut out, doubled, or the end cut off.
pub(crate) fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let damage = (any::<prop::sample::Index>(), any::<u8>(), 0..6u8);
    vec(damage, 1..4).prop_map(move |damages| {
        let mut bytes = bytes.clone();
        for (at, byte, kind) in damages {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes.truncate(at),
                1 => {
                    bytes.remove(at);
                }
                2 => bytes.insert(at, byte),
                3 => bytes[at] ^= 1 << (byte % 8),
                4 => {
                    let copy = bytes[at..].iter().take(usize::from(byte)).copied().collect::<Vec<u8>>();
                    bytes.splice(at..at, copy);
                }
                _ => bytes[at] = byte,
            }
        }
        bytes
    })
}
