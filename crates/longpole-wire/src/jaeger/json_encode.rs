//! Jaeger's JSON, out.

use std::collections::HashMap;
use std::sync::Arc;

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::id::TraceId;
use longpole_model::loss::Loss;
use longpole_model::resource::Resource;
use longpole_model::span::Span;
use longpole_model::time::Timestamp;

use super::outgoing::{Outgoing, fields_of};
use crate::convert::{self, BEFORE_1970, CannotHold, NANOS};
use crate::json_size::buffer_for;
use crate::json_writer::{self, Members};
use crate::{attribute_json, base64};

/// Why an answer lacks a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// The trace.
    pub trace_id: TraceId,
    /// As a status of HTTP.
    pub code: u16,
    /// For people.
    pub message: String,
}

/// A document of these spans, as the API answers, and what it cannot hold: reading it gives the same spans except for that,
/// trace by trace.
pub fn encode(spans: &[Span]) -> (Vec<u8>, Vec<Loss>) {
    let mut lost = CannotHold::default();
    let document = write_document(spans, &[], &mut lost);
    (document, lost.into_losses())
}

/// The answer to a search: these spans, and why it lacks other traces.
pub fn encode_answer(spans: &[Span], errors: &[TraceError]) -> Vec<u8> {
    write_document(spans, errors, &mut CannotHold::default())
}

fn write_document(spans: &[Span], errors: &[TraceError], lost: &mut CannotHold) -> Vec<u8> {
    let mut traces: Vec<Vec<&Span>> = Vec::new();
    let mut positions = HashMap::new();
    for span in spans {
        let position = *positions.entry(span.trace_id).or_insert_with(|| {
            traces.push(Vec::new());
            traces.len() - 1
        });
        traces[position].push(span);
    }
    let mut out = buffer_for(spans);
    let mut document = Members::begin(&mut out);
    document.list("data", traces, |out, trace| write_trace(out, &trace, lost));
    for name in ["total", "limit", "offset"] {
        document.raw(name, 0);
    }
    if errors.is_empty() {
        document.raw("errors", "null");
    } else {
        document.list("errors", errors, |out, error| {
            let mut members = Members::begin(out);
            members.raw("code", error.code);
            members.text("msg", &error.message);
            members.raw("traceID", format_args!("\"{}\"", error.trace_id));
            members.end();
        });
    }
    document.end();
    out.into_bytes()
}

/// The processes of a trace, each once.
#[derive(Default)]
struct Numbering<'a> {
    resources: Vec<&'a Arc<Resource>>,
    /// Number of a resource by its address, for spans share it.
    known: HashMap<*const Resource, usize>,
}

impl<'a> Numbering<'a> {
    fn number(&mut self, resource: &'a Arc<Resource>) -> usize {
        *self.known.entry(Arc::as_ptr(resource)).or_insert_with(|| {
            // Neighbours are often equal though not the same.
            if self.resources.last().is_none_or(|last| *last != resource) {
                self.resources.push(resource);
            }
            self.resources.len()
        })
    }
}

fn write_trace(out: &mut String, spans: &[&Span], lost: &mut CannotHold) {
    let mut numbering = Numbering::default();
    let mut trace = Members::begin(out);
    if let Some(first) = spans.first() {
        trace.raw("traceID", format_args!("\"{}\"", first.trace_id));
    }
    trace.list("spans", spans, |out, span| {
        let number = numbering.number(&span.resource);
        write_span(out, span, number, lost);
    });
    let mut processes = Members::begin(trace.member("processes"));
    for (index, resource) in numbering.resources.iter().enumerate() {
        let mut process = Members::begin(processes.member(&format!("p{}", index + 1)));
        let (service, others) = convert::service_and_others(resource);
        process.text("serviceName", service.unwrap_or_default());
        process.list("tags", others, |out, tag| write_tag(out, &tag.key, &tag.value, lost));
        process.end();
    }
    processes.end();
    trace.raw("warnings", "null");
    trace.end();
}

fn write_tag(out: &mut String, key: &str, value: &AttributeValue, lost: &mut CannotHold) {
    let mut tag = Members::begin(out);
    tag.text("key", key);
    let mut typed = |value_type: &str| tag.text("type", value_type);
    match value {
        AttributeValue::Str(text) => {
            typed("string");
            tag.text("value", text);
        }
        AttributeValue::Bool(truth) => {
            typed("bool");
            tag.raw("value", truth);
        }
        AttributeValue::Int(number) => {
            typed("int64");
            if number.unsigned_abs() < 1 << 53 { tag.raw("value", number) } else { tag.text("value", &number.to_string()) }
        }
        AttributeValue::Double(number) => {
            typed("float64");
            if number.is_finite() {
                json_writer::push_debug(tag.member("value"), *number)
            } else {
                tag.text("value", json_writer::not_finite(*number))
            }
        }
        AttributeValue::Bytes(bytes) => {
            typed("binary");
            tag.text("value", &base64::encode(bytes));
        }
        AttributeValue::Empty | AttributeValue::Array(_) | AttributeValue::KeyValues(_) => {
            typed("string");
            tag.text("value", &convert::attribute_text(&Attribute { key: key.into(), value: value.clone() }, lost));
        }
    }
    tag.end();
}

fn write_span(out: &mut String, span: &Span, process: usize, lost: &mut CannotHold) {
    let micros = |time: Timestamp| time.unix_nanos().div_euclid(1000);
    let is_cut = |time: Timestamp| time.unix_nanos() % 1000 != 0;
    let mut object = Members::begin(out);
    object.raw("traceID", format_args!("\"{}\"", span.trace_id));
    object.raw("spanID", format_args!("\"{}\"", span.span_id));
    let Outgoing { flags, references, tags, warnings } = Outgoing::of(span, lost);
    object.raw("flags", flags);
    object.text("operationName", &span.name);

    object.list("references", references, |out, (ref_type, trace_id, span_id)| {
        let mut reference = Members::begin(out);
        reference.text("refType", ref_type);
        reference.raw("traceID", format_args!("\"{trace_id}\""));
        reference.raw("spanID", format_args!("\"{span_id}\""));
        reference.end();
    });

    lost.count(is_cut(span.start) || is_cut(span.end), NANOS);
    lost.count(span.start.unix_nanos() < 0 || span.end.unix_nanos() < 0, BEFORE_1970);
    object.raw("startTime", micros(span.start));
    object.raw("duration", micros(span.end).saturating_sub(micros(span.start)));

    object.list("tags", tags, |out, (key, value)| write_tag(out, &key, &value, lost));
    object.list("logs", &span.events, |out, event| {
        lost.count(is_cut(event.time), NANOS);
        lost.count(event.time.unix_nanos() < 0, BEFORE_1970);
        let mut log = Members::begin(out);
        log.raw("timestamp", micros(event.time));
        log.list("fields", fields_of(event), |out, (key, value)| write_tag(out, key, &value, lost));
        log.end();
    });
    object.raw("processID", format_args!("\"p{process}\""));
    match warnings {
        Some(texts) => drop(attribute_json::write_value(object.member("warnings"), texts)),
        None => object.raw("warnings", "null"),
    }
    object.end();
}
