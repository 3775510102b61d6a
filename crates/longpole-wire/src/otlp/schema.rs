//! What OTLP's messages look like, as tables, and the first walk over a request that holds it against them.
//!
//! The walk decides everything that can refuse a request, so that the second walk, which gives spans to the sink, cannot
//! fail half-way. It also finds the texts that are not UTF-8 and counts what a table marks as counted.

use std::ops::Range;

use crate::error::{DecodeError, Problem};
use crate::limits::Limits;
use crate::protobuf::{Reader, Value, unexpected};

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Not a field of the message, or one of no interest: any wire type.
    Any,
    /// An integer, a truth value or an enum.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// Four bytes.
    Fixed32,
    /// Bytes.
    Bytes,
    /// A text.
    Text,
    /// A text that has no place in the model, so nobody reads it.
    Unread,
    /// A message.
    Message(&'static Message),
    /// A message that may stand several times: each is one more.
    List(&'static Message),
    /// A message that is only counted.
    Counted,
}

/// A message: what each field holds, by number. Number 0 does not exist.
pub(super) struct Message {
    name: &'static str,
    fields: &'static [Shape],
    role: Role,
}

/// What the limits have to know of a message.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Holds others: a request, a list of spans.
    Container,
    /// Starts a new count of values: a span, a resource, a scope.
    Owner,
    /// Counts as a value.
    Value,
    /// Counts as a value, and as one step of nesting.
    Nesting,
}

use Role::{Container, Nesting, Owner};
use Shape::{Any, Bytes, Counted, Fixed32, Fixed64, Text, Unread, Varint};

const fn message(name: &'static str, role: Role, fields: &'static [Shape]) -> Message {
    Message { name, fields, role }
}

/// `ExportTraceServiceRequest`, the same bytes as `TracesData`.
pub(super) static TRACES: Message = message("request", Container, &[Any, Shape::List(&RESOURCE_SPANS)]);
static RESOURCE_SPANS: Message = message("resource spans", Container, &[Any, Shape::Message(&RESOURCE), Shape::List(&SCOPE_SPANS), Unread]);
static SCOPE_SPANS: Message = message("scope spans", Container, &[Any, Shape::Message(&SCOPE), Shape::List(&SPAN), Unread]);
static RESOURCE: Message = message("resource", Owner, &[Any, Shape::List(&KEY_VALUE), Varint, Shape::List(&ENTITY_REF)]);
static ENTITY_REF: Message = message("entity reference", Role::Value, &[Any, Unread, Unread, Unread, Unread]);
static SCOPE: Message = message("scope", Owner, &[Any, Text, Text, Shape::List(&KEY_VALUE), Varint]);
static SPAN: Message = message(
    "span",
    Owner,
    &[
        Any,
        Bytes,                   // 1 trace_id
        Bytes,                   // 2 span_id
        Text,                    // 3 trace_state
        Bytes,                   // 4 parent_span_id
        Text,                    // 5 name
        Varint,                  // 6 kind
        Fixed64,                 // 7 start_time_unix_nano
        Fixed64,                 // 8 end_time_unix_nano
        Shape::List(&KEY_VALUE), // 9 attributes
        Varint,                  // 10 dropped_attributes_count
        Shape::List(&EVENT),     // 11 events
        Varint,                  // 12 dropped_events_count
        Shape::List(&LINK),      // 13 links
        Varint,                  // 14 dropped_links_count
        Shape::Message(&STATUS), // 15 status
        Fixed32,                 // 16 flags
    ],
);
static EVENT: Message = message("event", Role::Value, &[Any, Fixed64, Text, Shape::List(&KEY_VALUE), Varint]);
static LINK: Message = message("link", Role::Value, &[Any, Bytes, Bytes, Unread, Shape::List(&KEY_VALUE), Varint, Fixed32]);
static STATUS: Message = message("status", Container, &[Any, Any, Text, Varint]);
static KEY_VALUE: Message = message("attribute", Role::Value, &[Any, Text, Shape::Message(&ANY_VALUE), Varint]);
static ANY_VALUE: Message = message(
    "value",
    Nesting,
    &[
        Any,
        Text,                            // 1 string_value
        Varint,                          // 2 bool_value
        Varint,                          // 3 int_value
        Fixed64,                         // 4 double_value
        Shape::Message(&ARRAY_VALUE),    // 5 array_value
        Shape::Message(&KEY_VALUE_LIST), // 6 kvlist_value
        Bytes,                           // 7 bytes_value
        Varint,                          // 8 string_value_strindex, of profiles only
    ],
);
static ARRAY_VALUE: Message = message("list", Role::Value, &[Any, Shape::List(&ANY_VALUE)]);
static KEY_VALUE_LIST: Message = message("list of pairs", Role::Value, &[Any, Shape::List(&KEY_VALUE)]);

/// `ExportMetricsServiceRequest`, down to the data points.
pub(super) static METRICS: Message = message("request", Container, &[Any, Shape::List(&RESOURCE_METRICS)]);
static RESOURCE_METRICS: Message = message("resource metrics", Container, &[Any, Any, Shape::List(&SCOPE_METRICS)]);
static SCOPE_METRICS: Message = message("scope metrics", Container, &[Any, Any, Shape::List(&METRIC)]);
static METRIC: Message = message(
    "metric",
    Container,
    &[
        Any,
        Text,                         // 1 name
        Text,                         // 2 description
        Text,                         // 3 unit
        Any,                          // 4 was int_gauge
        Shape::Message(&DATA_POINTS), // 5 gauge
        Any,                          // 6 was int_sum
        Shape::Message(&DATA_POINTS), // 7 sum
        Any,                          // 8 was int_histogram
        Shape::Message(&DATA_POINTS), // 9 histogram
        Shape::Message(&DATA_POINTS), // 10 exponential_histogram
        Shape::Message(&DATA_POINTS), // 11 summary
    ],
);
/// All five kinds of metrics have their data points in field 1.
static DATA_POINTS: Message = message("metric's data", Container, &[Any, Counted]);

/// `ExportLogsServiceRequest`, down to the log records.
pub(super) static LOGS: Message = message("request", Container, &[Any, Shape::List(&RESOURCE_LOGS)]);
static RESOURCE_LOGS: Message = message("resource logs", Container, &[Any, Any, Shape::List(&SCOPE_LOGS)]);
static SCOPE_LOGS: Message = message("scope logs", Container, &[Any, Any, Counted]);

/// `ExportLogsServiceRequest`, down to the values.
pub(super) static LOG_RECORDS: Message = message("request", Container, &[Any, Shape::List(&RESOURCE_LOG_RECORDS)]);
static RESOURCE_LOG_RECORDS: Message =
    message("resource logs", Container, &[Any, Shape::Message(&RESOURCE), Shape::List(&SCOPE_LOG_RECORDS), Text]);
static SCOPE_LOG_RECORDS: Message = message("scope logs", Container, &[Any, Shape::Message(&SCOPE), Shape::List(&LOG_RECORD), Text]);
static LOG_RECORD: Message = message(
    "log record",
    Owner,
    &[
        Any,
        Fixed64,                    // 1 time_unix_nano
        Varint,                     // 2 severity_number
        Text,                       // 3 severity_text
        Any,                        // 4 was name
        Shape::Message(&ANY_VALUE), // 5 body
        Shape::List(&KEY_VALUE),    // 6 attributes
        Varint,                     // 7 dropped_attributes_count
        Fixed32,                    // 8 flags
        Bytes,                      // 9 trace_id
        Bytes,                      // 10 span_id
        Fixed64,                    // 11 observed_time_unix_nano
        Text,                       // 12 event_name
    ],
);

/// What the first walk found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Where texts are that are not UTF-8.
    pub(super) bad_texts: Vec<Range<usize>>,
    /// Messages that a table marks as counted.
    pub(super) counted: u64,
    /// What is not read.
    pub(super) unread: UnreadParts,
}

/// Parts of a request that have no place in the model. Whoever keeps the request as it came keeps them, too.
#[derive(Debug, Default)]
pub struct UnreadParts {
    /// Texts of fields that are known: schema URLs, the state of links.
    pub texts: Vec<Range<usize>>,
    /// There are fields with bytes that are not known, or that another one took the place of: whoever decodes sees the last one.
    pub unknown: bool,
}

/// Walks over the whole request and holds every message of the table against its shape and the limits.
pub(super) fn survey(bytes: &[u8], request: &'static Message, limits: &Limits) -> Result<Survey, DecodeError> {
    let mut walk = Walk { limits, survey: Survey::default(), values: 0 };
    walk.message(request, Reader::new(bytes), 0)?;
    Ok(walk.survey)
}

struct Walk<'l> {
    limits: &'l Limits,
    survey: Survey,
    /// Values of the span, resource or scope under way.
    values: u32,
}

impl Walk<'_> {
    /// Recursion ends: only values nest in themselves, and each of their steps adds one to `depth`.
    fn message(&mut self, message: &'static Message, reader: Reader<'_>, mut depth: u32) -> Result<(), DecodeError> {
        let mut reader = reader.named(message.name);
        match message.role {
            Role::Container => {}
            Role::Owner => self.values = 0,
            Role::Value | Role::Nesting => {
                self.values += 1;
                if self.values > self.limits.values_max {
                    return Err(reader.error_at(reader.offset(), Problem::TooMany { limit: self.limits.values_max }));
                }
                depth += u32::from(message.role == Role::Nesting);
                if depth > self.limits.nesting_max {
                    return Err(reader.error_at(reader.offset(), Problem::TooDeep { limit: self.limits.nesting_max }));
                }
            }
        }
        // Fields that stand once, by their numbers: none of a table is above 31. A value is one of its fields.
        let mut seen = 0u32;
        while let Some(field) = reader.next()? {
            let shape = message.fields.get(field.number as usize).copied().unwrap_or(Any);
            if matches!(shape, Text | Bytes | Shape::Message(_)) || message.role == Role::Nesting && !matches!(shape, Any) {
                let bit = if message.role == Role::Nesting { 1 } else { 1 << field.number };
                self.survey.unread.unknown |= seen & bit != 0;
                seen |= bit;
            }
            match (shape, field.value) {
                (Any, Value::Bytes(bytes)) => self.survey.unread.unknown |= !bytes.bytes().is_empty(),
                (Any, Value::Group(_)) => self.survey.unread.unknown = true,
                (Any, _)
                | (Varint, Value::Varint(_))
                | (Fixed64, Value::Fixed64(_))
                | (Fixed32, Value::Fixed32(_))
                | (Bytes, Value::Bytes(_)) => {}
                (Text | Unread, Value::Bytes(text)) => {
                    if matches!(shape, Unread) && !text.bytes().is_empty() {
                        self.survey.unread.texts.push(text.offset()..text.offset() + text.bytes().len());
                    }
                    if std::str::from_utf8(text.bytes()).is_err() {
                        self.survey.bad_texts.push(text.offset()..text.offset() + text.bytes().len());
                    }
                }
                (Shape::Message(inner) | Shape::List(inner), Value::Bytes(fields)) => self.message(inner, fields, depth)?,
                (Counted, Value::Bytes(_)) => self.survey.counted += 1,
                _ => return Err(unexpected(&reader, field)),
            }
        }
        Ok(())
    }
}

/// A copy of the request in which each byte that is not part of a UTF-8 character of its text is a `?`: one for one, so
/// that every length in the message stays true.
pub(super) fn repaired(bytes: &[u8], bad_texts: &[Range<usize>]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    for range in bad_texts {
        let mut at = range.start;
        while let Err(error) = std::str::from_utf8(&copy[at..range.end]) {
            let bad = at + error.valid_up_to();
            let end = error.error_len().map_or(range.end, |length| bad + length);
            copy[bad..end].fill(b'?');
            at = end;
        }
    }
    copy
}
