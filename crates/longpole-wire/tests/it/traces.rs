//! Trace requests in protobuf.

use std::sync::Arc;

use longpole_model::attribute::AttributeValue;
use longpole_model::loss::LossKind;
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::SpanBatch;
use longpole_wire::{DecodeError, Limits, Problem, otlp};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use proptest::prelude::*;
use prost::Message;

use crate::arbitrary::{damaged, request};
use crate::oracle::{self, lost, same, spans_of};

fn decode(bytes: &[u8]) -> Result<SpanBatch, DecodeError> {
    let mut batch = SpanBatch::default();
    otlp::trace::decode(bytes, &Limits::default(), &mut batch).map(|()| batch)
}

/// A request with one span, with ids unless it has some.
fn one(span: Span) -> Vec<u8> {
    let ids = Span { trace_id: vec![7; 16], span_id: vec![8; 8], ..Span::default() };
    let span = Span {
        trace_id: if span.trace_id.is_empty() { ids.trace_id } else { span.trace_id },
        span_id: if span.span_id.is_empty() { ids.span_id } else { span.span_id },
        ..span
    };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }.encode_to_vec()
}

/// A field of a message, written by hand.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 128);
    [&[number << 3 | 2, content.len() as u8], content].concat()
}

/// The span inside a request.
fn request_of(span: &[u8]) -> Vec<u8> {
    field(1, &field(2, &field(2, span)))
}

fn ids() -> Vec<u8> {
    [field(1, &[7; 16]), field(2, &[8; 8])].concat()
}

#[test]
fn an_empty_request_is_good() {
    let batch = decode(b"").unwrap();
    assert!(batch.spans.is_empty() && batch.losses.is_empty());
}

#[test]
fn spans_without_ids_are_counted_and_the_rest_is_kept() {
    let good = Span { name: "good".into(), trace_id: vec![1; 16], span_id: vec![2; 8], ..Span::default() };
    let spans = vec![
        Span { name: "no ids".into(), ..Span::default() },
        good.clone(),
        Span { name: "zero".into(), trace_id: vec![0; 16], ..good.clone() },
        Span { name: "short".into(), span_id: vec![2; 4], ..good },
    ];
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let request = ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] };
    let batch = decode(&request.encode_to_vec()).unwrap();
    assert_eq!(batch.spans.iter().map(|span| &span.name[..]).collect::<Vec<_>>(), ["good"]);
    assert_eq!(lost(&batch, LossKind::SpansInvalid), 3);
}

#[test]
fn what_each_span_repeats_of_its_emitter_has_a_limit() {
    let mut batch = decode(&one(Span { name: "one".into(), ..Span::default() })).unwrap();
    let (mut resource, mut scope) = (Resource::default(), Scope { name: "n".repeat(1 << 20), ..Scope::default() });
    (0..10_000).for_each(|number| resource.attributes.push(format!("r{number}"), AttributeValue::Int(number)));
    (0..1000).for_each(|number| scope.attributes.push(format!("s{number}"), AttributeValue::Str("v".repeat(1000).into())));
    (batch.spans[0].resource, batch.spans[0].scope) = (Arc::new(resource), Arc::new(scope));
    let mut json = SpanBatch::default();
    otlp::json::decode(&otlp::json::encode(&batch.spans), &Limits::default(), &mut json).unwrap();
    let mut jaeger = SpanBatch::default();
    longpole_wire::jaeger::decode(&longpole_wire::jaeger::encode(&batch.spans).0, &Limits::default(), &mut jaeger).unwrap();
    for (read, has_scope) in [(decode(&otlp::trace::encode(&batch.spans)).unwrap(), true), (json, true), (jaeger, false)] {
        let [span] = &read.spans[..] else { panic!("{} spans", read.spans.len()) };
        assert_eq!(span.resource.attributes.0.len(), 256);
        let of_scope = if has_scope { 1 + 1000 - span.scope.attributes.0.len() as u64 } else { 0 };
        assert_eq!(lost(&read, LossKind::AttributesCut), 10_000 - 256 + of_scope);
        assert!(!has_scope || (span.scope.name.len() == 16 << 10 && (1..70).contains(&span.scope.attributes.0.len())));
    }
}

#[test]
fn a_text_that_is_not_utf8_is_kept_with_question_marks() {
    let name = b"caf\xe9 \xf0\x9f\x92 \xc3\xa9 end\xff";
    let batch = decode(&request_of(&[ids(), field(5, name)].concat())).unwrap();
    assert_eq!(batch.spans[0].name, "caf? ??? \u{e9} end?");
    assert_eq!(lost(&batch, LossKind::TextReplaced), 1);
}

#[test]
fn fields_merge_as_protobuf_has_it() {
    // The name twice: the last wins. The status in two parts: they merge. A list value in two parts: it grows. The
    // resource behind its spans: it is theirs all the same. Field 99 and a group: nobody knows them.
    let list = |number| field(2, &field(5, &field(1, &[0x18, number])));
    let span = [
        ids(),
        field(5, b"first"),
        field(15, &field(2, b"why")),
        field(9, &[field(1, b"k"), list(1), list(2)].concat()),
        vec![0x9b, 0x06, 0x08, 0x01, 0x9c, 0x06], // group 99 { 1: 1 }
        field(15, &[0x18, 2]),
        field(5, b"last"),
        vec![0x9d, 0x06, 1, 2, 3, 4], // 99: fixed32
    ]
    .concat();
    let resource = field(1, &field(1, &[field(1, b"service.name"), field(2, &field(1, b"late"))].concat()));
    let bytes = field(1, &[field(2, &field(2, &span)), resource].concat());
    oracle::traces_protobuf(&bytes);
    let batch = decode(&bytes).unwrap();
    let span = &batch.spans[0];
    assert_eq!((&span.name[..], &span.status.message[..], span.status.code.as_str()), ("last", "why", "error"));
    assert_eq!(span.attributes.get("k"), Some(&AttributeValue::Array(vec![AttributeValue::Int(1), AttributeValue::Int(2)].into())));
    assert_eq!(span.service_name(), "late");
}

#[test]
fn a_broken_request_says_what_and_where() {
    let check = |bytes: &[u8], text: &str| assert_eq!(decode(bytes).unwrap_err().to_string(), text);
    check(&[0x0a], "bytes end inside a field, in the request message at byte 1");
    check(&[0x0a, 5, 0], "bytes end inside a field, in the request message at byte 0");
    check(&[0x00], "field number out of range, in the request message at byte 0");
    check(&[0x0e], "unknown wire type of field 1, in the request message at byte 0");
    check(&[0x08, 1], "unexpected wire type of field 1, in the request message at byte 0");
    check(&[0x0b, 0x14], "unbalanced group of field 2, in the request message at byte 1");
    check(&[0x13], "unbalanced group of field 2, in the request message at byte 0");
    check(&[0xff; 11], "integer longer than 64 bits, in the request message at byte 0");
    check(&request_of(&[0x38, 1]), "unexpected wire type of field 7, in the span message at byte 6");
    check(&[0x13; 40], "values nested deeper than 32, in the request message at byte 32");
}

fn nested(depth: usize) -> AnyValue {
    let mut value = AnyValue { value: Some(Value::IntValue(1)) };
    for _ in 1..depth {
        value = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![value] })) };
    }
    value
}

#[test]
fn values_nest_to_the_limit_and_no_deeper() {
    let with = |depth| {
        one(Span { attributes: vec![KeyValue { key: "k".into(), value: Some(nested(depth)), key_strindex: 0 }], ..Span::default() })
    };
    assert_eq!(decode(&with(32)).unwrap().spans.len(), 1);
    assert!(matches!(decode(&with(33)), Err(DecodeError::Protobuf { problem: Problem::TooDeep { limit: 32 }, message: "value", .. })));
    oracle::traces_protobuf(&with(32));
}

#[test]
fn one_span_has_a_limit_of_values_and_a_request_has_none() {
    let span = [ids(), vec![0x4a, 0, 0x4a, 0, 0x4a, 0]].concat();
    let limits = Limits { values_max: 3, ..Limits::default() };
    let bytes = request_of(&span);
    let many = bytes.repeat(5);
    let mut batch = SpanBatch::default();
    otlp::trace::decode(&many, &limits, &mut batch).unwrap();
    assert_eq!(batch.spans.len(), 5);

    let limits = Limits { values_max: 2, ..Limits::default() };
    let mut batch = SpanBatch::default();
    let error = otlp::trace::decode(&many, &limits, &mut batch).unwrap_err();
    assert_eq!(error.to_string(), "more than 2 values in one span, resource or scope, in the attribute message at byte 40");
    assert!(batch.spans.is_empty(), "a refused request gives nothing to the sink");
}

proptest! {
    #[test]
    fn every_request_reads_as_prost_reads_it(request in request()) {
        let bytes = request.encode_to_vec();
        oracle::traces_protobuf(&bytes);
        same(&spans_of(&request), &decode(&bytes).unwrap().spans);
    }

    #[test]
    fn damaged_requests_read_as_prost_reads_them(bytes in request().prop_map(|request| request.encode_to_vec()).prop_flat_map(damaged)) {
        oracle::traces_protobuf(&bytes);
        oracle::counts(&bytes);
    }

    #[test]
    fn arbitrary_bytes_read_as_prost_reads_them(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        oracle::traces_protobuf(&bytes);
        oracle::counts(&bytes);
    }
}
