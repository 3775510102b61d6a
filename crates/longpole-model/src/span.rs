//! Spans, their events and links, as OTLP has them.

use std::sync::Arc;

use crate::attribute::Attributes;
use crate::id::{SpanId, TraceId};
use crate::interned_text::Text;
use crate::resource::{Resource, Scope};
use crate::thin_vec::ThinVec;
use crate::time::{TimeRange, Timestamp};

/// Role of a span in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified,
    /// Inside one process.
    Internal,
    /// Handles a request.
    Server,
    /// Makes a request.
    Client,
    /// Sends a message.
    Producer,
    /// Receives a message.
    Consumer,
}

impl SpanKind {
    /// OTLP's number; unknown numbers are `Unspecified`.
    pub fn from_otlp(number: i32) -> Self {
        match number {
            1 => SpanKind::Internal,
            2 => SpanKind::Server,
            3 => SpanKind::Client,
            4 => SpanKind::Producer,
            5 => SpanKind::Consumer,
            _ => SpanKind::Unspecified,
        }
    }

    /// OTLP's number.
    pub fn to_otlp(self) -> i32 {
        self as i32
    }

    /// The kind of this lower-case name.
    pub fn from_name(name: &str) -> Option<Self> {
        (0..=5).map(SpanKind::from_otlp).find(|kind| kind.as_str() == name)
    }

    /// Lower-case name, as SQL and JSON show it.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Unspecified => "unspecified",
            SpanKind::Internal => "internal",
            SpanKind::Server => "server",
            SpanKind::Client => "client",
            SpanKind::Producer => "producer",
            SpanKind::Consumer => "consumer",
        }
    }
}

/// Outcome of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StatusCode {
    /// Not set.
    #[default]
    Unset,
    /// Said to be well.
    Ok,
    /// Failed.
    Error,
}

impl StatusCode {
    /// OTLP's number; unknown numbers are `Unset`.
    pub fn from_otlp(number: i32) -> Self {
        match number {
            1 => StatusCode::Ok,
            2 => StatusCode::Error,
            _ => StatusCode::Unset,
        }
    }

    /// OTLP's number.
    pub fn to_otlp(self) -> i32 {
        self as i32
    }

    /// Lower-case name, as SQL and JSON show it.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusCode::Unset => "unset",
            StatusCode::Ok => "ok",
            StatusCode::Error => "error",
        }
    }
}

/// Outcome with its message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The code.
    pub code: StatusCode,
    /// For people; empty where not said.
    pub message: Text,
}

/// A timed note on a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpanEvent {
    /// When.
    pub time: Timestamp,
    /// What.
    pub name: Text,
    /// More.
    pub attributes: Attributes,
}

/// A link from a span to another span; to one that ended before, it declares "waited for".
#[derive(Debug, Clone, PartialEq)]
pub struct SpanLink {
    /// Trace of the other span.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// More.
    pub attributes: Attributes,
}

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Trace it belongs to.
    pub trace_id: TraceId,
    /// Its id within the trace.
    pub span_id: SpanId,
    /// Parent, `None` for a root.
    pub parent_span_id: Option<SpanId>,
    /// W3C `tracestate`, empty where not sent.
    pub trace_state: Text,
    /// OTLP's flags (W3C trace flags in the low byte).
    pub flags: u32,
    /// Operation.
    pub name: Text,
    /// Role.
    pub kind: SpanKind,
    /// Start by the emitter's clock.
    pub start: Timestamp,
    /// End by the emitter's clock.
    pub end: Timestamp,
    /// Attributes.
    pub attributes: Attributes,
    /// Attributes the emitter dropped.
    pub dropped_attributes: u32,
    /// Events.
    pub events: ThinVec<SpanEvent>,
    /// Events the emitter dropped.
    pub dropped_events: u32,
    /// Links.
    pub links: ThinVec<SpanLink>,
    /// Links the emitter dropped.
    pub dropped_links: u32,
    /// Outcome.
    pub status: Status,
    /// Emitter, shared by the spans of one batch.
    pub resource: Arc<Resource>,
    /// Instrumentation, shared by the spans of one batch.
    pub scope: Arc<Scope>,
    /// Pid of the process that emitted it, on the recording machine: `process.pid` of the resource, else the peer of
    /// the connection; `None` where neither is known.
    pub pid: Option<u32>,
}

impl Span {
    /// A root of this name and time that says nothing else.
    pub fn new(trace_id: TraceId, span_id: SpanId, name: impl Into<Text>, TimeRange { start, end }: TimeRange) -> Self {
        Span {
            trace_id,
            span_id,
            parent_span_id: None,
            trace_state: Text::new(),
            flags: 0,
            name: name.into(),
            kind: SpanKind::Unspecified,
            start,
            end,
            attributes: Attributes::default(),
            dropped_attributes: 0,
            events: ThinVec::new(),
            dropped_events: 0,
            links: ThinVec::new(),
            dropped_links: 0,
            status: Status::default(),
            resource: Arc::default(),
            scope: Arc::default(),
            pid: None,
        }
    }

    /// Start to end.
    pub fn range(&self) -> TimeRange {
        TimeRange { start: self.start, end: self.end }
    }

    /// Length in nanoseconds; 0 where the end lies before the start.
    pub fn duration_nanos(&self) -> i64 {
        self.range().nanos()
    }

    /// `service.name` of the emitter.
    pub fn service_name(&self) -> &str {
        self.resource.service_name()
    }
}
