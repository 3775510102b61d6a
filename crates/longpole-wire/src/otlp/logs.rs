//! Logs: `ExportLogsServiceRequest` in protobuf and JSON. A record that names a trace and a span becomes an event of that
//! span; the others are counted.
//!
//! | of the record | is of the event |
//! |---|---|
//! | `time_unix_nano`, else `observed_time_unix_nano` | time |
//! | `event_name`, else the attribute `event.name`, else `log` | name |
//! | attributes | attributes |
//! | body, severity as text and as number | attributes `log.body`, `log.severity_text`, `log.severity_number` |

use std::borrow::Cow;

use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, ValueRef};
use longpole_model::time::Timestamp;

use super::common::{self, PairRef, text};
use super::json::{AnyValue, Id, KeyValue, ResourceMessage, ScopeMessage, lend_pairs, owned};
use super::response::Encoding;
use super::schema;
use crate::convert::TIMES_MOVED;
use crate::error::DecodeError;
use crate::json::{Element, List, message, parse_request};
use crate::limits::Limits;
use crate::number::{int32, uint32};
use crate::protobuf::{Reader, Value};

/// Attribute of an event that was a log record: its body.
pub const BODY: &str = "log.body";
/// Attribute of an event that was a log record: its severity, as the emitter calls it.
pub const SEVERITY_TEXT: &str = "log.severity_text";
/// Attribute of an event that was a log record: its severity by OpenTelemetry's numbers.
pub const SEVERITY_NUMBER: &str = "log.severity_number";

/// Takes the log records of one request: a resource, then its scopes, then the records of each.
pub trait LogSink {
    /// The emitter of all records until the next call.
    fn resource(&mut self, resource: Resource);
    /// The instrumentation of all records until the next call.
    fn scope(&mut self, scope: Scope);
    /// A record that belongs to this span.
    fn event(&mut self, trace_id: TraceId, span_id: SpanId, event: EventRef<'_>);
    /// Something of the request that could not be kept.
    fn loss(&mut self, loss: Loss);
}

/// How many records a request held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogCounts {
    /// Given to the sink as events.
    pub of_spans: u64,
    /// Not given: they name no span.
    pub others: u64,
}

/// Gives the log records of a request that name a trace and a span to the sink, and counts the others, which the sink is not
/// told of.
///
/// On an error the sink was not called: a request is taken whole or not at all.
///
/// # Errors
///
/// The request is not well formed in its encoding, or exceeds the limits.
pub fn decode(bytes: &[u8], encoding: Encoding, limits: &Limits, sink: &mut dyn LogSink) -> Result<LogCounts, DecodeError> {
    let mut taking = Taking { sink, counts: LogCounts::default(), dropped: 0, times: 0 };
    match encoding {
        Encoding::Json => json(&parse_request(bytes, limits)?.0, &mut taking),
        Encoding::Protobuf => {
            let survey = schema::survey(bytes, &schema::LOG_RECORDS, limits)?;
            if survey.bad_texts.is_empty() {
                protobuf(Reader::new(bytes), &mut taking)?;
            } else {
                protobuf(Reader::new(&schema::repaired(bytes, &survey.bad_texts)), &mut taking)?;
                let count = survey.bad_texts.len() as u64;
                taking.sink.loss(Loss::new(LossKind::TextReplaced, count, "strings that are not UTF-8"));
            }
        }
    }
    if taking.dropped > 0 {
        let detail = "attributes of log records over the emitter's limits";
        taking.sink.loss(Loss::new(LossKind::DroppedByEmitter, taking.dropped, detail));
    }
    if taking.times > 0 {
        taking.sink.loss(Loss::new(LossKind::FormatCannotHold, taking.times, TIMES_MOVED));
    }
    Ok(taking.counts)
}

struct Taking<'s> {
    sink: &'s mut dyn LogSink,
    counts: LogCounts,
    dropped: u64,
    times: u64,
}

/// A record, of whichever encoding.
#[derive(Default)]
struct LogRecord<'a> {
    ids: Option<(TraceId, SpanId)>,
    time: u64,
    observed: u64,
    severity_number: i64,
    severity_text: &'a str,
    event_name: &'a str,
    body: ValueRef<'a>,
    attributes: Vec<PairRef<'a>>,
    dropped: u32,
}

impl Taking<'_> {
    fn record(&mut self, mut record: LogRecord<'_>) {
        let Some((trace_id, span_id)) = record.ids else {
            self.counts.others += 1;
            return;
        };
        self.counts.of_spans += 1;
        self.dropped += u64::from(record.dropped);
        let mut name = record.event_name;
        if name.is_empty() {
            name = (record.attributes.iter())
                .find_map(|(key, value)| match value {
                    ValueRef::Str(name) if *key == "event.name" => Some(*name),
                    _ => None,
                })
                .unwrap_or("log");
        }
        if record.body != ValueRef::Empty {
            record.attributes.push((BODY, record.body));
        }
        if !record.severity_text.is_empty() {
            record.attributes.push((SEVERITY_TEXT, ValueRef::Str(record.severity_text)));
        }
        if record.severity_number != 0 {
            record.attributes.push((SEVERITY_NUMBER, ValueRef::Int(record.severity_number)));
        }
        let nanos = if record.time == 0 { record.observed } else { record.time };
        self.times += u64::from(i64::try_from(nanos).is_err());
        let time = Timestamp::from_unix_nanos(nanos);
        self.sink.event(trace_id, span_id, EventRef { time, name, attributes: record.attributes });
    }
}

/// The fields of `ResourceLogs`, `ScopeLogs` are read twice, as those of traces are: the resource before its records.
fn protobuf(mut request: Reader<'_>, taking: &mut Taking<'_>) -> Result<(), DecodeError> {
    while let Some(field) = request.next()? {
        let (1, Value::Bytes(of_resource)) = (field.number, field.value) else { continue };
        let mut resource = Resource::default();
        let mut fields = of_resource;
        while let Some(field) = fields.next()? {
            if let (1, Value::Bytes(inner)) = (field.number, field.value) {
                common::resource(inner, &mut resource)?;
            }
        }
        taking.sink.resource(resource);
        let mut fields = of_resource;
        while let Some(field) = fields.next()? {
            if let (2, Value::Bytes(of_scope)) = (field.number, field.value) {
                scope_logs(of_scope, taking)?;
            }
        }
    }
    Ok(())
}

fn scope_logs(of_scope: Reader<'_>, taking: &mut Taking<'_>) -> Result<(), DecodeError> {
    let mut scope = Scope::default();
    let mut fields = of_scope;
    while let Some(field) = fields.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            common::scope(inner, &mut scope)?;
        }
    }
    taking.sink.scope(scope);
    let mut fields = of_scope;
    while let Some(field) = fields.next()? {
        if let (2, Value::Bytes(inner)) = (field.number, field.value) {
            let record = record(inner)?;
            taking.record(record);
        }
    }
    Ok(())
}

fn record(mut reader: Reader<'_>) -> Result<LogRecord<'_>, DecodeError> {
    let mut record = LogRecord::default();
    let (mut trace_id, mut span_id): (&[u8], &[u8]) = (&[], &[]);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Fixed64(nanos)) => record.time = nanos,
            (2, Value::Varint(number)) => record.severity_number = i64::from(int32(number)),
            (3, Value::Bytes(bytes)) => record.severity_text = text(&bytes),
            (5, Value::Bytes(inner)) => common::value(inner, &mut record.body)?,
            (6, Value::Bytes(inner)) => record.attributes.push(common::pair(inner)?),
            (7, Value::Varint(count)) => record.dropped = uint32(count),
            (9, Value::Bytes(id)) => trace_id = id.bytes(),
            (10, Value::Bytes(id)) => span_id = id.bytes(),
            (11, Value::Fixed64(nanos)) => record.observed = nanos,
            (12, Value::Bytes(bytes)) => record.event_name = text(&bytes),
            _ => {}
        }
    }
    record.ids = TraceId::from_slice(trace_id).zip(SpanId::from_slice(span_id));
    Ok(record)
}

message!(Request<'de>, Container, {
    resource_logs: List<ResourceLogs<'de>> = "resourceLogs" | "resource_logs",
});
message!(ResourceLogs<'de>, Container, {
    resource: ResourceMessage<'de> = "resource",
    scope_logs: List<ScopeLogs<'de>> = "scopeLogs" | "scope_logs",
});
message!(ScopeLogs<'de>, Container, {
    scope: ScopeMessage<'de> = "scope",
    log_records: List<RecordMessage<'de>> = "logRecords" | "log_records",
});
message!(RecordMessage<'de>, Owner, {
    time_unix_nano: u64 = "timeUnixNano" | "time_unix_nano",
    observed_time_unix_nano: u64 = "observedTimeUnixNano" | "observed_time_unix_nano",
    severity_number: Severity = "severityNumber" | "severity_number",
    severity_text: Cow<'de, str> = "severityText" | "severity_text",
    event_name: Cow<'de, str> = "eventName" | "event_name",
    body: AnyValue<'de> = "body",
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
    trace_id: Id<TraceId> = "traceId" | "trace_id",
    span_id: Id<SpanId> = "spanId" | "span_id",
});

impl Element for ResourceLogs<'_> {
    fn is_worth_keeping(&self) -> bool {
        !self.scope_logs.kept.is_empty()
    }
}

impl Element for ScopeLogs<'_> {
    fn is_worth_keeping(&self) -> bool {
        !self.log_records.kept.is_empty() || self.log_records.left_out > 0
    }
}

impl Element for RecordMessage<'_> {
    fn is_worth_keeping(&self) -> bool {
        self.trace_id.valid().is_some() && self.span_id.valid().is_some()
    }
}

/// A severity by its number, or by its name; the text beside it says the same.
#[derive(Default)]
pub(crate) struct Severity(i64);

impl<'de> crate::json::Json<'de> for Severity {
    const EXPECTED: &'static str = "a severity";

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Ok(Severity(i32::try_from(number).map(i64::from).unwrap_or(0)))
    }

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        // SEVERITY_NUMBER_INFO is 9, …_INFO2 is 10, and so on.
        let name = text.strip_prefix("SEVERITY_NUMBER_").unwrap_or_default();
        let step = name.chars().next_back().and_then(|digit| digit.to_digit(10)).unwrap_or(1);
        let level = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"].iter().position(|level| name.starts_with(level));
        Ok(Severity(level.map_or(0, |level| 4 * level as i64 + i64::from(step))))
    }
}

fn json(request: &Request<'_>, taking: &mut Taking<'_>) {
    for of_resource in &request.resource_logs.kept {
        taking.sink.resource(Resource { attributes: owned(&of_resource.resource.attributes) });
        for of_scope in &of_resource.scope_logs.kept {
            let scope = &of_scope.scope;
            let attributes = owned(&scope.attributes);
            taking.sink.scope(Scope { name: scope.name.to_string(), version: scope.version.to_string(), attributes });
            taking.counts.others += of_scope.log_records.left_out;
            for record in &of_scope.log_records.kept {
                taking.record(LogRecord {
                    ids: record.trace_id.valid().zip(record.span_id.valid()),
                    time: record.time_unix_nano,
                    observed: record.observed_time_unix_nano,
                    severity_number: record.severity_number.0,
                    severity_text: &record.severity_text,
                    event_name: &record.event_name,
                    body: record.body.lend(),
                    attributes: lend_pairs(&record.attributes.kept).collect(),
                    dropped: record.dropped_attributes_count,
                });
            }
        }
    }
}
