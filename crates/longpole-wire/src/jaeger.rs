//! Jaeger's JSON, as its UI and its query API give it out, in and out.
//!
//! ```text
//! {"data":[{"traceID":"…","spans":[{"spanID":"…","references":[{"refType":"CHILD_OF",…}],"processID":"p1",
//!           "startTime":1774510200000000,"duration":120,"tags":[{"key":"k","type":"int64","value":1}],"logs":[…]}],
//!           "processes":{"p1":{"serviceName":"shop","tags":[…]}}}]}
//! ```
//!
//! The first `CHILD_OF` in the same trace is the parent; every other reference is a link. A link that is `CHILD_OF` says so
//! by the attribute `opentracing.ref_type`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::id::TraceId;
use longpole_model::loss::Loss;
use longpole_model::resource::Resource;
use longpole_model::sink::SpanSink;
use longpole_model::span::{Span, SpanLink};
use longpole_model::time::Timestamp;
use serde::de::{MapAccess, SeqAccess};

use crate::attribute_json::{self, Plain};
use crate::base64;
use crate::convert::{self, BEFORE_1970, Building, CannotHold, Deliver, HexId, Losses, NAMES, NANOS, hex_id};
use crate::emitter::fit_resource;
use crate::error::DecodeError;
use crate::json::{self, Context, Element, Json, List, Micros, message};
use crate::json_writer::{self, Members};
use crate::limits::Limits;

/// Name of the scope of spans that came by this channel.
pub const SCOPE: &str = "jaeger";

/// Attribute of a link that is of another kind than `FOLLOWS_FROM`.
const REF_TYPE: &str = "opentracing.ref_type";
/// Attribute of a span that Jaeger warns about.
const WARNINGS: &str = "jaeger.warnings";

/// Gives the spans of a document to the sink: what the API answers, one trace, or a list of traces.
///
/// On an error the sink was not called. A span without valid ids, and a reference that is none, is counted and left out; a
/// span whose process is not in the document is without resource.
///
/// # Errors
///
/// The text is no JSON, no document of Jaeger, or exceeds the limits.
pub fn decode(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    let Document(traces) = json::parse(bytes, limits)?;
    let mut losses = Losses::default();
    let mut deliver = Deliver::default();
    for trace in traces {
        let processes: HashMap<_, _> =
            trace.processes.0.into_iter().map(|(id, process)| (id, process.into_resource(&mut losses))).collect();
        for span in trace.spans.kept {
            let process = processes.get(&span.process_id);
            if let Some(span) = span.build(process, &mut losses) {
                deliver.span(&span, sink);
            }
        }
    }
    losses.report(sink);
    Ok(())
}

#[derive(Default)]
struct Document<'de>(Vec<Trace<'de>>);

impl<'de> Json<'de> for Document<'de> {
    const EXPECTED: &'static str = "traces";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut traces = Vec::new();
        while let Some(trace) = json::element(&mut list, context)? {
            traces.push(trace);
        }
        Ok(Document(traces))
    }

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut traces = Vec::new();
        let mut own = Trace::default();
        while let Some(name) = json::name(&mut object, context)? {
            match &*name {
                "data" => traces = json::member::<Data<'de>, A>(&mut object, context)?.0,
                "spans" => own.spans = json::member(&mut object, context)?,
                "processes" => own.processes = json::member(&mut object, context)?,
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        if !own.spans.kept.is_empty() {
            traces.push(own);
        }
        Ok(Document(traces))
    }
}

/// A list of traces, or one.
#[derive(Default)]
struct Data<'de>(Vec<Trace<'de>>);

impl<'de> Json<'de> for Data<'de> {
    const EXPECTED: &'static str = "traces";

    fn list<A: SeqAccess<'de>>(list: A, context: Context<'_>) -> Result<Self, A::Error> {
        Document::list(list, context).map(|document| Data(document.0))
    }

    fn object<A: MapAccess<'de>>(object: A, context: Context<'_>) -> Result<Self, A::Error> {
        Ok(Data(vec![Trace::object(object, context)?]))
    }
}

message!(Trace<'de>, Container, {
    spans: List<SpanMessage<'de>> = "spans",
    processes: Processes<'de> = "processes",
});
message!(SpanMessage<'de>, Owner, {
    trace_id: HexId = "traceID" | "traceId",
    span_id: HexId = "spanID" | "spanId",
    parent_span_id: HexId = "parentSpanID" | "parentSpanId",
    flags: u32 = "flags",
    operation_name: Cow<'de, str> = "operationName",
    references: List<Reference<'de>> = "references",
    start_time: Micros = "startTime",
    duration: Option<Micros> = "duration",
    tags: List<Tag<'de>> = "tags",
    logs: List<Log<'de>> = "logs",
    process_id: Cow<'de, str> = "processID" | "processId",
    process: Option<Process<'de>> = "process",
    warnings: Plain = "warnings",
});
message!(Reference<'de>, Value, {
    ref_type: Cow<'de, str> = "refType",
    trace_id: HexId = "traceID" | "traceId",
    span_id: HexId = "spanID" | "spanId",
});
message!(Tag<'de>, Value, {
    key: Cow<'de, str> = "key",
    value_type: Cow<'de, str> = "type",
    value: Plain = "value",
});
message!(Log<'de>, Value, {
    timestamp: Micros = "timestamp",
    fields: List<Tag<'de>> = "fields",
});
message!(Process<'de>, Owner, {
    service_name: Cow<'de, str> = "serviceName",
    tags: List<Tag<'de>> = "tags",
});

impl Element for SpanMessage<'_> {}
impl Element for Reference<'_> {}
impl Element for Tag<'_> {}
impl Element for Log<'_> {}

/// The processes of a trace by the ids that its spans use.
#[derive(Default)]
pub(crate) struct Processes<'de>(Vec<(Cow<'de, str>, Process<'de>)>);

impl<'de> Json<'de> for Processes<'de> {
    const EXPECTED: &'static str = "an object";

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut processes = Vec::new();
        while let Some(id) = json::name(&mut object, context)? {
            processes.push((id, json::member(&mut object, context)?));
        }
        Ok(Processes(processes))
    }
}

impl Tag<'_> {
    /// The value by its type. 64-bit integers beyond 53 bits, and doubles that are no numbers, are texts in JSON.
    fn into_attribute(self) -> Attribute {
        let value = match (&*self.value_type, self.value.0) {
            ("bool", AttributeValue::Str(text)) if text == "true" || text == "false" => AttributeValue::Bool(text == "true"),
            ("int64", AttributeValue::Str(text)) => text.parse().map_or(AttributeValue::Str(text), AttributeValue::Int),
            ("float64", AttributeValue::Int(number)) => AttributeValue::Double(number as f64),
            ("float64", AttributeValue::Str(text)) => match &*text {
                "NaN" => AttributeValue::Double(f64::NAN),
                "Infinity" | "+Inf" => AttributeValue::Double(f64::INFINITY),
                "-Infinity" | "-Inf" => AttributeValue::Double(f64::NEG_INFINITY),
                _ => AttributeValue::Str(text),
            },
            ("binary", AttributeValue::Str(text)) => {
                base64::decode(&text).map_or(AttributeValue::Str(text), |bytes| AttributeValue::Bytes(bytes.into()))
            }
            (_, value) => value,
        };
        Attribute { key: self.key.into(), value }
    }
}

impl Process<'_> {
    fn into_resource(self, losses: &mut Losses) -> Arc<Resource> {
        let mut attributes = Attributes::default();
        if !self.service_name.is_empty() {
            attributes.push("service.name", AttributeValue::Str(self.service_name.into()));
        }
        attributes.0.extend(self.tags.kept.into_iter().map(Tag::into_attribute));
        let mut resource = Resource { attributes };
        losses.cut += fit_resource(&mut resource);
        Arc::new(resource)
    }
}

impl SpanMessage<'_> {
    fn build(self, process: Option<&Arc<Resource>>, losses: &mut Losses) -> Option<Span> {
        let (Some(trace_id), Some(span_id)) = (self.trace_id.trace_id(), self.span_id.span_id()) else {
            losses.spans += 1;
            return None;
        };
        let mut span = Building::new(SCOPE, trace_id, span_id);
        span.name = self.operation_name.into();
        span.flags = self.flags;
        span.shared_resource = self.process.map(|process| process.into_resource(losses)).or_else(|| process.cloned());
        span.parent_span_id = self.parent_span_id.span_id();
        losses.references += u64::from(self.parent_span_id.is_bad_reference());
        for reference in self.references.kept {
            let (Some(trace), Some(id)) = (reference.trace_id.trace_id(), reference.span_id.span_id()) else {
                losses.references += 1;
                continue;
            };
            let is_child = reference.ref_type == "CHILD_OF";
            if is_child && trace == trace_id && (span.parent_span_id.is_none() || span.parent_span_id == Some(id)) {
                span.parent_span_id = Some(id);
                continue;
            }
            let mut attributes = Attributes::default();
            if reference.ref_type != "FOLLOWS_FROM" {
                attributes.push(REF_TYPE, AttributeValue::Str(reference.ref_type.to_ascii_lowercase().into()));
            }
            span.links.push(SpanLink { trace_id: trace, span_id: id, attributes });
        }
        span.start = span.micros(self.start_time.0);
        span.end = match self.duration {
            Some(duration) => span.micros(self.start_time.0.saturating_add(duration.0)),
            None => {
                span.unfinished();
                span.start
            }
        };
        for log in self.logs.kept {
            let time = span.micros(log.timestamp.0);
            span.log(time, log.fields.kept.into_iter().map(Tag::into_attribute).collect());
        }
        for tag in self.tags.kept {
            let Attribute { key, value } = tag.into_attribute();
            span.tag(&key, value);
        }
        if matches!(&self.warnings.0, AttributeValue::Array(warnings) if !warnings.is_empty()) {
            span.attributes.push(WARNINGS, self.warnings.0);
        }
        losses.times_of(&span);
        Some(span.finish())
    }
}

/// A trace id of up to 32 digits; Jaeger leaves out the zeros that it begins with.
pub fn trace_id(text: &str) -> Option<TraceId> {
    HexId::Valid(hex_id(text)?).trace_id()
}

/// A document of these spans, as the API answers, and what it cannot hold: reading it gives the same spans except for that,
/// trace by trace.
pub fn encode(spans: &[Span]) -> (Vec<u8>, Vec<Loss>) {
    let mut lost = CannotHold::default();
    let mut traces: Vec<Vec<&Span>> = Vec::new();
    let mut positions = HashMap::new();
    for span in spans {
        let position = *positions.entry(span.trace_id).or_insert_with(|| {
            traces.push(Vec::new());
            traces.len() - 1
        });
        traces[position].push(span);
    }
    let mut out = String::new();
    let mut document = Members::begin(&mut out);
    document.list("data", traces, |out, trace| write_trace(out, &trace, &mut lost));
    for name in ["total", "limit", "offset"] {
        document.raw(name, 0);
    }
    document.raw("errors", "null");
    document.end();
    (out.into_bytes(), lost.into_losses())
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
    object.raw("flags", span.flags);
    object.text("operationName", &span.name);

    let parent = span.parent_span_id.map(|parent| ("CHILD_OF", span.trace_id, parent));
    let links = span.links.iter().map(|link| {
        let is_child = matches!(&link.attributes.0[..], [only] if only.key == REF_TYPE && only.value.as_str() == Some("child_of"));
        let is_parent = is_child && link.trace_id == span.trace_id && (parent.is_none() || span.parent_span_id == Some(link.span_id));
        lost.count(is_parent || !(is_child || link.attributes.0.is_empty()), "attributes of links");
        (if is_child && !is_parent { "CHILD_OF" } else { "FOLLOWS_FROM" }, link.trace_id, link.span_id)
    });
    let references: Vec<_> = parent.into_iter().chain(links).collect();
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

    let mut said = convert::said_in_tags(span, SCOPE, lost);
    said.extend(convert::kind_tag(span));
    let is_warnings = |attribute: &Attribute| {
        attribute.key == WARNINGS
            && matches!(&attribute.value, AttributeValue::Array(texts) if !texts.is_empty() && texts.iter().all(|text| text.as_str().is_some()))
    };
    // The last, so that of several each but one stays a tag.
    let warnings = span.attributes.iter().rev().find(|attribute| is_warnings(attribute));
    let mut tags: Vec<(&str, Cow<'_, AttributeValue>)> =
        said.iter().map(|(key, value)| (&**key, Cow::Owned(AttributeValue::Str(value.into())))).collect();
    for attribute in span.attributes.iter() {
        if warnings.is_some_and(|warnings| std::ptr::eq(warnings, attribute)) {
            continue;
        }
        let is_spoken_for = convert::is_spoken_for(&attribute.key);
        lost.count(is_spoken_for, NAMES);
        if !(is_spoken_for && said.iter().any(|(key, _)| *key == attribute.key)) {
            tags.push((&attribute.key, Cow::Borrowed(&attribute.value)));
        }
    }
    object.list("tags", tags, |out, (key, value)| match (key, &*value) {
        // A viewer looks for a truth value; why stands in the description of the status.
        ("error", AttributeValue::Str(text)) if said.iter().any(|(key, value)| key == "error" && value == text) => {
            write_tag(out, key, &AttributeValue::Bool(true), lost);
        }
        (key, value) => write_tag(out, key, value, lost),
    });
    object.list("logs", &span.events, |out, event| {
        lost.count(is_cut(event.time), NANOS);
        lost.count(event.time.unix_nanos() < 0, BEFORE_1970);
        let mut log = Members::begin(out);
        log.raw("timestamp", micros(event.time));
        let name = Attribute { key: "event".into(), value: AttributeValue::Str(event.name.clone()) };
        let fields = std::iter::once(&name).chain(event.attributes.iter());
        log.list("fields", fields, |out, field| write_tag(out, &field.key, &field.value, lost));
        log.end();
    });
    object.raw("processID", format_args!("\"p{process}\""));
    match warnings.map(|warnings| &warnings.value) {
        Some(texts) => drop(attribute_json::write_value(object.member("warnings"), texts)),
        None => object.raw("warnings", "null"),
    }
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_lack_their_zeros() {
        assert_eq!(trace_id("ff"), TraceId::from_slice(&255_u128.to_be_bytes()));
        for text in ["", "0", "xyz", "0123456789abcdef0123456789abcdef0"] {
            assert_eq!(trace_id(text), None, "{text}");
        }
    }
}
