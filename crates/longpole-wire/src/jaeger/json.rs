//! Jaeger's JSON, as its UI and its query API give it out, in.
//!
//! ```text
//! {"data":[{"traceID":"…","spans":[{"spanID":"…","references":[{"refType":"CHILD_OF",…}],"processID":"p1",
//!           "startTime":1774510200000000,"duration":120,"tags":[{"key":"k","type":"int64","value":1}],"logs":[…]}],
//!           "processes":{"p1":{"serviceName":"shop","tags":[…]}}}]}
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::id::TraceId;
use longpole_model::sink::SpanSink;
use serde::de::{MapAccess, SeqAccess};

use super::raw::{RawLog, RawProcess, RawReference, RawSpan};
use crate::attribute_json::Plain;
use crate::base64;
use crate::convert::{Deliver, HexId, Losses, hex_id};
use crate::error::DecodeError;
use crate::json::{self, Context, Element, Json, List, Micros, message};
use crate::limits::Limits;

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
            trace.processes.0.into_iter().map(|(id, process)| (id, process.into_raw().into_resource(&mut losses))).collect();
        losses.spans += trace.spans.left_out;
        for span in trace.spans.kept {
            let process = processes.get(&span.process_id);
            if let Some(span) = span.into_raw().build(process, &mut losses) {
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
        if !own.spans.kept.is_empty() || own.spans.left_out > 0 {
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

impl Element for SpanMessage<'_> {
    fn is_worth_keeping(&self) -> bool {
        self.trace_id.trace_id().is_some() && self.span_id.span_id().is_some()
    }
}

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

/// Fields of a process, a log or a span.
fn attributes(tags: List<Tag<'_>>) -> Vec<Attribute> {
    tags.kept.into_iter().map(Tag::into_attribute).collect()
}

fn nanos(micros: &Micros) -> i128 {
    micros.0.saturating_mul(1000)
}

impl<'de> Process<'de> {
    fn into_raw(self) -> RawProcess<'de> {
        RawProcess { service_name: self.service_name, tags: attributes(self.tags) }
    }
}

impl<'de> Reference<'de> {
    fn into_raw(self) -> RawReference<'de> {
        RawReference { ref_type: self.ref_type, trace_id: self.trace_id.trace_id(), span_id: self.span_id.span_id() }
    }
}

impl<'de> SpanMessage<'de> {
    fn into_raw(self) -> RawSpan<'de> {
        RawSpan {
            trace_id: self.trace_id.trace_id(),
            span_id: self.span_id.span_id(),
            parent: self.parent_span_id.span_id(),
            parent_invalid: self.parent_span_id.is_bad_reference(),
            name: self.operation_name,
            flags: self.flags,
            references: self.references.kept.into_iter().map(Reference::into_raw).collect(),
            start_nanos: nanos(&self.start_time),
            duration_nanos: self.duration.as_ref().map(nanos),
            tags: attributes(self.tags),
            logs: self.logs.kept.into_iter().map(|log| RawLog { nanos: nanos(&log.timestamp), fields: attributes(log.fields) }).collect(),
            process: self.process.map(Process::into_raw),
            warnings: self.warnings.0,
        }
    }
}

/// A trace id of up to 32 digits; Jaeger leaves out the zeros that it begins with.
pub fn trace_id(text: &str) -> Option<TraceId> {
    HexId::Valid(hex_id(text)?).trace_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 MB of them, of 3 bytes each, took 2.3 GB.
    #[test]
    fn spans_without_ids_are_counted_and_take_no_memory() {
        let document = format!(
            "{{\"data\":[{{\"spans\":[{}{{\"traceID\":\"a\",\"spanID\":\"b\",\"startTime\":1,\"duration\":1}}]}}]}}",
            "{},".repeat(1000)
        );
        let Document(traces) = json::parse(document.as_bytes(), &Limits::default()).unwrap();
        assert_eq!((traces[0].spans.kept.len(), traces[0].spans.kept.capacity() < 10, traces[0].spans.left_out), (1, true, 1000));
        let mut batch = longpole_model::sink::SpanBatch::default();
        decode(document.as_bytes(), &Limits::default(), &mut batch).unwrap();
        assert_eq!((batch.spans.len(), batch.losses.len(), batch.losses[0].count), (1, 1, 1000));
    }

    #[test]
    fn ids_may_lack_their_zeros() {
        assert_eq!(trace_id("ff"), TraceId::from_slice(&255_u128.to_be_bytes()));
        for text in ["", "0", "xyz", "0123456789abcdef0123456789abcdef0"] {
            assert_eq!(trace_id(text), None, "{text}");
        }
    }
}
