//! What must hold for any bytes. The fuzz targets and the tests call these same functions; this file is compiled into both.

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::LossKind;
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::SpanBatch;
use longpole_model::span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
use longpole_model::time::Timestamp;
use longpole_wire::{DecodeError, Limits, Problem, TraceParent, otlp};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;

/// Protobuf: the scanner takes what prost takes, and reads the same out of it.
pub(crate) fn traces_protobuf(bytes: &[u8]) {
    let mut batch = SpanBatch::default();
    let ours = otlp::trace::decode(bytes, &Limits::default(), &mut batch);
    if ours.is_err() {
        assert!(batch.spans.is_empty() && batch.losses.is_empty(), "a refused request left something in the sink");
    }
    match (ExportTraceServiceRequest::decode(bytes), ours) {
        (Ok(request), Ok(())) => {
            same(&spans_of(&request), &batch.spans);
            for (kind, count) in losses_of(&request) {
                assert_eq!(lost(&batch, kind), count, "{kind}");
            }
        }
        (Ok(_), Err(DecodeError::Protobuf { problem: Problem::TooDeep { .. } | Problem::TooMany { .. }, .. })) => {}
        (Ok(_), Err(error)) => panic!("prost takes what we refuse: {error}"),
        // Prost refuses texts that are not UTF-8, and counts its nesting by messages where we count values.
        (Err(_), Ok(())) if lost(&batch, LossKind::TextReplaced) > 0 => {}
        (Err(error), Ok(())) => assert!(error.to_string().contains("recursion limit"), "prost refuses what we take: {error}"),
        (Err(_), Err(_)) => {}
    }
    encodes_to_itself(&batch);
}

/// JSON: nothing panics, and what was read can be written as protobuf and read again.
pub(crate) fn traces_json(bytes: &[u8]) {
    let mut batch = SpanBatch::default();
    if otlp::json::decode(bytes, &Limits::default(), &mut batch).is_err() {
        assert!(batch.spans.is_empty() && batch.losses.is_empty(), "a refused request left something in the sink");
    }
    encodes_to_itself(&batch);
}

/// Counting: the same number as in the generated messages, wherever those can be read.
pub(crate) fn counts(bytes: &[u8]) {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    if let Ok(request) = ExportLogsServiceRequest::decode(bytes) {
        let records = request.resource_logs.iter().flat_map(|r| &r.scope_logs).map(|s| s.log_records.len() as u64).sum();
        assert_eq!(otlp::count_logs(bytes, false), Ok(records));
    }
    let _ = otlp::count_logs(bytes, false);
    let _ = otlp::count_metrics(bytes, false);
    let _ = otlp::count_logs(bytes, true);
    let _ = otlp::count_metrics(bytes, true);
}

/// `traceparent`: what is read prints as something that reads the same, and version 00 prints as it was, except for flags
/// nobody knows.
pub(crate) fn traceparent(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(header) = text.parse::<TraceParent>() else { return };
    let printed = header.to_string();
    assert_eq!(printed.parse(), Ok(header));
    if text.starts_with("00") {
        assert_eq!(printed[..53], text[..53]);
    }
}

fn encodes_to_itself(batch: &SpanBatch) {
    let mut again = SpanBatch::default();
    let limits = Limits { values_max: u32::MAX, ..Limits::default() };
    otlp::trace::decode(&otlp::encode_trace(&batch.spans), &limits, &mut again).expect("our own encoding");
    same(&batch.spans, &again.spans);
}

/// Equal, where a NaN equals itself.
#[track_caller]
pub(crate) fn same(expected: &[Span], found: &[Span]) {
    if expected != found {
        assert_eq!(format!("{expected:#?}"), format!("{found:#?}"));
    }
}

/// How much of a kind the batch lost.
pub(crate) fn lost(batch: &SpanBatch, kind: LossKind) -> u64 {
    batch.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum()
}

/// The spans of a generated message as the model has them, by a way that shares nothing with the scanner.
pub(crate) fn spans_of(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in &request.resource_spans {
        let sent = of_resource.resource.clone().unwrap_or_default();
        let resource = std::sync::Arc::new(Resource { attributes: attributes(&sent.attributes) });
        for of_scope in &of_resource.scope_spans {
            let sent = of_scope.scope.clone().unwrap_or_default();
            let scope = std::sync::Arc::new(Scope { name: sent.name, version: sent.version, attributes: attributes(&sent.attributes) });
            for span in &of_scope.spans {
                let (Some(trace_id), Some(span_id)) = (TraceId::from_slice(&span.trace_id), SpanId::from_slice(&span.span_id)) else {
                    continue;
                };
                let status = span.status.clone().unwrap_or_default();
                spans.push(Span {
                    trace_id,
                    span_id,
                    parent_span_id: SpanId::from_slice(&span.parent_span_id),
                    trace_state: span.trace_state.as_str().into(),
                    flags: span.flags,
                    name: span.name.as_str().into(),
                    kind: SpanKind::from_otlp(span.kind),
                    start: Timestamp::from_unix_nanos(span.start_time_unix_nano),
                    end: Timestamp::from_unix_nanos(span.end_time_unix_nano),
                    attributes: attributes(&span.attributes),
                    dropped_attributes: span.dropped_attributes_count,
                    events: (span.events.iter())
                        .map(|event| SpanEvent {
                            time: Timestamp::from_unix_nanos(event.time_unix_nano),
                            name: event.name.as_str().into(),
                            attributes: attributes(&event.attributes),
                        })
                        .collect(),
                    dropped_events: span.dropped_events_count,
                    links: (span.links.iter())
                        .filter_map(|link| {
                            Some(SpanLink {
                                trace_id: TraceId::from_slice(&link.trace_id)?,
                                span_id: SpanId::from_slice(&link.span_id)?,
                                attributes: attributes(&link.attributes),
                            })
                        })
                        .collect(),
                    dropped_links: span.dropped_links_count,
                    status: Status { code: StatusCode::from_otlp(status.code), message: status.message.into() },
                    resource: resource.clone(),
                    scope: scope.clone(),
                    pid: resource.process_pid(),
                });
            }
        }
    }
    spans
}

/// What of a generated message cannot be kept.
pub(crate) fn losses_of(request: &ExportTraceServiceRequest) -> [(LossKind, u64); 4] {
    let (mut spans, mut references, mut dropped, mut times) = (0, 0, 0, 0);
    let is_late = |nanos: u64| u64::from(nanos > i64::MAX.cast_unsigned());
    for of_resource in &request.resource_spans {
        dropped += of_resource.resource.as_ref().map_or(0, |r| u64::from(r.dropped_attributes_count));
        for of_scope in &of_resource.scope_spans {
            dropped += of_scope.scope.as_ref().map_or(0, |s| u64::from(s.dropped_attributes_count));
            for span in &of_scope.spans {
                if TraceId::from_slice(&span.trace_id).is_none() || SpanId::from_slice(&span.span_id).is_none() {
                    spans += 1;
                    continue;
                }
                times += is_late(span.start_time_unix_nano) + is_late(span.end_time_unix_nano);
                times += span.events.iter().map(|event| is_late(event.time_unix_nano)).sum::<u64>();
                let parent = &span.parent_span_id;
                references += u64::from(SpanId::from_slice(parent).is_none() && parent.iter().any(|byte| *byte != 0));
                dropped +=
                    [span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count].map(u64::from).iter().sum::<u64>();
                dropped += span.events.iter().map(|event| u64::from(event.dropped_attributes_count)).sum::<u64>();
                for link in &span.links {
                    if TraceId::from_slice(&link.trace_id).is_none() || SpanId::from_slice(&link.span_id).is_none() {
                        references += 1;
                    } else {
                        dropped += u64::from(link.dropped_attributes_count);
                    }
                }
            }
        }
    }
    [
        (LossKind::SpansInvalid, spans),
        (LossKind::ReferencesInvalid, references),
        (LossKind::DroppedByEmitter, dropped),
        (LossKind::FormatCannotHold, times),
    ]
}

fn attributes(pairs: &[KeyValue]) -> Attributes {
    Attributes(pairs.iter().map(attribute).collect())
}

fn attribute(pair: &KeyValue) -> Attribute {
    Attribute { key: pair.key.as_str().into(), value: pair.value.as_ref().map(value).unwrap_or_default() }
}

fn value(value_sent: &AnyValue) -> AttributeValue {
    match &value_sent.value {
        None | Some(any_value::Value::StringValueStrindex(_)) => AttributeValue::Empty,
        Some(any_value::Value::StringValue(text)) => AttributeValue::Str(text.into()),
        Some(any_value::Value::BoolValue(truth)) => AttributeValue::Bool(*truth),
        Some(any_value::Value::IntValue(number)) => AttributeValue::Int(*number),
        Some(any_value::Value::DoubleValue(number)) => AttributeValue::Double(*number),
        Some(any_value::Value::BytesValue(bytes)) => AttributeValue::Bytes(bytes.clone().into()),
        Some(any_value::Value::ArrayValue(list)) => AttributeValue::Array(list.values.iter().map(value).collect()),
        Some(any_value::Value::KvlistValue(list)) => AttributeValue::KeyValues(list.values.iter().map(attribute).collect()),
    }
}
