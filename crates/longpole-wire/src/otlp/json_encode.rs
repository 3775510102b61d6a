//! OTLP/JSON out: one `ExportTraceServiceRequest` as one document on one line.

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::span::{Span, SpanKind, Status};

use super::trace::{same, unix_nanos};
use crate::base64;
use crate::json_size::buffer_for;
use crate::json_writer::{Members, not_finite, push_debug, write_list};

/// A document that holds these spans in this order. Neighbours that share a resource, or a scope, stand under one. Reading
/// it gives the same spans, except times before 1970, which OTLP cannot spell.
pub fn encode(spans: &[Span]) -> Vec<u8> {
    let mut out = buffer_for(spans);
    let mut request = Members::begin(&mut out);
    request.list("resourceSpans", spans.chunk_by(|a, b| same(&a.resource, &b.resource)), |out, of_resource| {
        let mut object = Members::begin(out);
        let mut resource = Members::begin(object.member("resource"));
        attributes(&mut resource, &of_resource[0].resource.attributes);
        resource.end();
        object.list("scopeSpans", of_resource.chunk_by(|a, b| same(&a.scope, &b.scope)), |out, of_scope| {
            let mut object = Members::begin(out);
            let mut scope = Members::begin(object.member("scope"));
            text(&mut scope, "name", &of_scope[0].scope.name);
            text(&mut scope, "version", &of_scope[0].scope.version);
            attributes(&mut scope, &of_scope[0].scope.attributes);
            scope.end();
            object.list("spans", of_scope, write_span);
            object.end();
        });
        object.end();
    });
    request.end();
    out.into_bytes()
}

/// What is empty or zero is left out, as everywhere in proto3's JSON.
fn text(object: &mut Members<'_>, name: &str, value: &str) {
    if !value.is_empty() {
        object.text(name, value);
    }
}

fn number(object: &mut Members<'_>, name: &str, value: u32) {
    if value != 0 {
        object.raw(name, value);
    }
}

fn write_span(out: &mut String, span: &Span) {
    let mut object = Members::begin(out);
    object.raw("traceId", format_args!("\"{}\"", span.trace_id));
    object.raw("spanId", format_args!("\"{}\"", span.span_id));
    text(&mut object, "traceState", &span.trace_state);
    if let Some(parent) = span.parent_span_id {
        object.raw("parentSpanId", format_args!("\"{parent}\""));
    }
    number(&mut object, "flags", span.flags);
    text(&mut object, "name", &span.name);
    if span.kind != SpanKind::Unspecified {
        object.raw("kind", span.kind.to_otlp());
    }
    // 64-bit integers are texts in proto3's JSON.
    object.raw("startTimeUnixNano", format_args!("\"{}\"", unix_nanos(span.start)));
    object.raw("endTimeUnixNano", format_args!("\"{}\"", unix_nanos(span.end)));
    attributes(&mut object, &span.attributes);
    number(&mut object, "droppedAttributesCount", span.dropped_attributes);
    if !span.events.is_empty() {
        object.list("events", &span.events, |out, event| {
            let mut object = Members::begin(out);
            object.raw("timeUnixNano", format_args!("\"{}\"", unix_nanos(event.time)));
            text(&mut object, "name", &event.name);
            attributes(&mut object, &event.attributes);
            object.end();
        });
    }
    number(&mut object, "droppedEventsCount", span.dropped_events);
    if !span.links.is_empty() {
        object.list("links", &span.links, |out, link| {
            let mut object = Members::begin(out);
            object.raw("traceId", format_args!("\"{}\"", link.trace_id));
            object.raw("spanId", format_args!("\"{}\"", link.span_id));
            attributes(&mut object, &link.attributes);
            object.end();
        });
    }
    number(&mut object, "droppedLinksCount", span.dropped_links);
    if span.status != Status::default() {
        let mut status = Members::begin(object.member("status"));
        text(&mut status, "message", &span.status.message);
        number(&mut status, "code", span.status.code as u32);
        status.end();
    }
    object.end();
}

fn attributes(object: &mut Members<'_>, attributes: &Attributes) {
    if !attributes.0.is_empty() {
        object.list("attributes", &attributes.0, write_pair);
    }
}

fn write_pair(out: &mut String, pair: &Attribute) {
    let mut object = Members::begin(out);
    object.text("key", &pair.key);
    write_value(object.member("value"), &pair.value);
    object.end();
}

/// Recursion ends: values nest no deeper than [`NESTING_MAX`](crate::limits::NESTING_MAX), which every decoder obeys.
fn write_value(out: &mut String, value: &AttributeValue) {
    let mut object = Members::begin(out);
    match value {
        AttributeValue::Empty => {}
        AttributeValue::Str(text) => object.text("stringValue", text),
        AttributeValue::Bool(truth) => object.raw("boolValue", truth),
        AttributeValue::Int(number) => object.raw("intValue", format_args!("\"{number}\"")),
        AttributeValue::Double(number) if number.is_finite() => push_debug(object.member("doubleValue"), *number),
        AttributeValue::Double(number) => object.text("doubleValue", not_finite(*number)),
        AttributeValue::Bytes(bytes) => object.text("bytesValue", &base64::encode(bytes)),
        AttributeValue::Array(values) => {
            let mut array = Members::begin(object.member("arrayValue"));
            write_list(array.member("values"), values, write_value);
            array.end();
        }
        AttributeValue::KeyValues(pairs) => {
            let mut list = Members::begin(object.member("kvlistValue"));
            write_list(list.member("values"), pairs, write_pair);
            list.end();
        }
    }
    object.end();
}
