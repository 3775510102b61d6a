//! The two borders data crosses on its way in: decoded spans, and raw observations of the recorder.
//!
//! A decoder lends each span to a [`SpanSink`]; nothing is copied that the sink does not keep. The recorder gives each
//! [`Observation`] to an [`ObservationSink`]. Both traits stand here so that `wire` and `capture` need not know `store`.

use std::sync::Arc;

use crate::address::AbsAddr;
use crate::attribute::{Attribute, AttributeValue, Attributes};
use crate::id::{SpanId, TraceId};
use crate::loss::{Loss, LossKind};
use crate::process::CpuSlice;
use crate::resource::{Resource, Scope};
use crate::run::Exit;
use crate::sample::Sample;
use crate::span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
use crate::stack::{LocationId, LocationKind, Mapping, Runtime, StackId};
use crate::time::{ClockAnchor, Monotonic, Timestamp};

/// A borrowed [`AttributeValue`].
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ValueRef<'a> {
    /// Nothing set.
    #[default]
    Empty,
    /// A text.
    Str(&'a str),
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list.
    Array(Vec<ValueRef<'a>>),
    /// Nested pairs.
    KeyValues(Vec<(&'a str, ValueRef<'a>)>),
}

impl ValueRef<'_> {
    /// An owned copy.
    pub fn to_owned(&self) -> AttributeValue {
        match self {
            ValueRef::Empty => AttributeValue::Empty,
            ValueRef::Str(text) => AttributeValue::Str((*text).to_owned()),
            ValueRef::Bool(truth) => AttributeValue::Bool(*truth),
            ValueRef::Int(number) => AttributeValue::Int(*number),
            ValueRef::Double(number) => AttributeValue::Double(*number),
            ValueRef::Bytes(bytes) => AttributeValue::Bytes(bytes.to_vec()),
            ValueRef::Array(values) => AttributeValue::Array(values.iter().map(ValueRef::to_owned).collect()),
            ValueRef::KeyValues(pairs) => AttributeValue::KeyValues(own_pairs(pairs)),
        }
    }
}

fn own_pairs(pairs: &[(&str, ValueRef<'_>)]) -> Vec<Attribute> {
    pairs.iter().map(|(key, value)| Attribute { key: (*key).to_owned(), value: value.to_owned() }).collect()
}

/// A borrowed [`SpanEvent`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventRef<'a> {
    /// When.
    pub time: Timestamp,
    /// What.
    pub name: &'a str,
    /// More.
    pub attributes: Vec<(&'a str, ValueRef<'a>)>,
}

/// A borrowed [`SpanLink`].
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRef<'a> {
    /// Trace of the other span.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// More.
    pub attributes: Vec<(&'a str, ValueRef<'a>)>,
}

/// A span as a decoder lends it.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRef<'a> {
    /// Trace.
    pub trace_id: TraceId,
    /// Id.
    pub span_id: SpanId,
    /// Parent.
    pub parent_span_id: Option<SpanId>,
    /// W3C `tracestate`.
    pub trace_state: &'a str,
    /// OTLP's flags.
    pub flags: u32,
    /// Operation.
    pub name: &'a str,
    /// Role.
    pub kind: SpanKind,
    /// Start.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
    /// Attributes.
    pub attributes: &'a [(&'a str, ValueRef<'a>)],
    /// Attributes the emitter dropped.
    pub dropped_attributes: u32,
    /// Events.
    pub events: &'a [EventRef<'a>],
    /// Events the emitter dropped.
    pub dropped_events: u32,
    /// Links.
    pub links: &'a [LinkRef<'a>],
    /// Links the emitter dropped.
    pub dropped_links: u32,
    /// Outcome.
    pub status: StatusCode,
    /// Its message.
    pub status_message: &'a str,
}

/// Takes the spans of one request: a resource, then its scopes, then the spans of each.
pub trait SpanSink {
    /// The emitter of all spans until the next call.
    fn resource(&mut self, resource: Resource);
    /// The instrumentation of all spans until the next call.
    fn scope(&mut self, scope: Scope);
    /// One span.
    fn span(&mut self, span: SpanRef<'_>);
    /// Something of the request that could not be kept.
    fn loss(&mut self, loss: Loss);
}

/// The plainest sink: keeps everything as model values.
#[derive(Debug, Default)]
pub struct SpanBatch {
    /// The spans, in the order they stood in the request.
    pub spans: Vec<Span>,
    /// What could not be kept.
    pub losses: Vec<Loss>,
    /// Pid given to spans whose resource does not say one (the peer of the connection).
    pub peer_pid: Option<u32>,
    resource: Arc<Resource>,
    scope: Arc<Scope>,
}

impl SpanBatch {
    /// An empty batch whose spans came from this peer.
    pub fn from_peer(peer_pid: Option<u32>) -> Self {
        SpanBatch { peer_pid, ..SpanBatch::default() }
    }
}

impl SpanSink for SpanBatch {
    fn resource(&mut self, resource: Resource) {
        self.resource = Arc::new(resource);
        self.scope = Arc::default();
    }

    fn scope(&mut self, scope: Scope) {
        self.scope = Arc::new(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        let dropped = u64::from(span.dropped_attributes) + u64::from(span.dropped_events) + u64::from(span.dropped_links);
        if dropped > 0 {
            self.loss(Loss::new(LossKind::DroppedByEmitter, dropped, "attributes, events or links over the emitter's limits"));
        }
        self.spans.push(Span {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent_span_id,
            trace_state: span.trace_state.to_owned(),
            flags: span.flags,
            name: span.name.to_owned(),
            kind: span.kind,
            start: span.start,
            end: span.end,
            attributes: Attributes(own_pairs(span.attributes)),
            dropped_attributes: span.dropped_attributes,
            events: span
                .events
                .iter()
                .map(|e| SpanEvent { time: e.time, name: e.name.to_owned(), attributes: Attributes(own_pairs(&e.attributes)) })
                .collect(),
            dropped_events: span.dropped_events,
            links: span
                .links
                .iter()
                .map(|l| SpanLink { trace_id: l.trace_id, span_id: l.span_id, attributes: Attributes(own_pairs(&l.attributes)) })
                .collect(),
            dropped_links: span.dropped_links,
            status: Status { code: span.status, message: span.status_message.to_owned() },
            resource: Arc::clone(&self.resource),
            scope: Arc::clone(&self.scope),
            pid: self.resource.process_pid().or(self.peer_pid),
        });
    }

    fn loss(&mut self, loss: Loss) {
        loss.merge_into(&mut self.losses);
    }
}

/// One thing the recorder saw, in the order it learned of it. Numbers of mappings, locations and stacks are given out by
/// the recorder, from 0, each defined before its first use.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A reading of both clocks.
    Clock(ClockAnchor),
    /// A binary was seen for the first time.
    Mapping(Mapping),
    /// A location was seen for the first time.
    Location {
        /// Its number.
        id: LocationId,
        /// What it is.
        kind: LocationKind,
    },
    /// A location has a name and no binary. It is new, or was told of as unmapped and its name is known only now.
    Named {
        /// Its number.
        id: LocationId,
        /// What runs it.
        runtime: Runtime,
        /// Where it lies, where it is machine code.
        address: Option<AbsAddr>,
        /// Name of its function.
        function: String,
        /// Source file, empty where unknown.
        file: String,
        /// Source line, 0 where unknown.
        line: u32,
    },
    /// A stack was seen for the first time.
    Stack {
        /// Its number.
        id: StackId,
        /// Entries, leaf first.
        locations: Vec<LocationId>,
    },
    /// A sample.
    Sample(Sample),
    /// A thread was on a CPU.
    CpuSlice(CpuSlice),
    /// A process appeared: the command itself, or by fork.
    ProcessStarted {
        /// Its id.
        pid: u32,
        /// Its parent's id, `None` for the command itself.
        parent_pid: Option<u32>,
        /// When.
        time: Monotonic,
    },
    /// A process executed a program.
    ProcessExec {
        /// Its id.
        pid: u32,
        /// When.
        time: Monotonic,
        /// The kernel's comm.
        name: String,
        /// `/proc/PID/exe`, empty where it was too late to read it.
        executable: String,
        /// `/proc/PID/cmdline`, empty where it was too late to read it.
        arguments: Vec<String>,
    },
    /// A process ended: its last thread left.
    ProcessExited {
        /// Its id.
        pid: u32,
        /// When.
        time: Monotonic,
    },
    /// A thread appeared.
    ThreadStarted {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// When.
        time: Monotonic,
    },
    /// A thread took a name.
    ThreadNamed {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// The kernel's comm.
        name: String,
    },
    /// A thread ended.
    ThreadExited {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// When.
        time: Monotonic,
    },
    /// Something is missing.
    Loss(Loss),
    /// The command was released: it runs.
    RunStarted {
        /// Its pid.
        pid: u32,
        /// When, by the wall clock.
        start: Timestamp,
        /// What the recorder is allowed to see.
        mode: crate::run::CaptureMode,
    },
    /// The command was reaped.
    RunEnded {
        /// When, by the wall clock.
        end: Timestamp,
        /// How.
        exit: Exit,
        /// rusage of the command and what it waited for.
        cpu_nanos: Option<u64>,
    },
    /// What recording cost.
    RecorderCost(crate::run::RecorderCost),
}

/// Takes what the recorder saw. Called from the recorder's own thread; must not block for long, or the ring overflows.
pub trait ObservationSink: Send {
    /// Takes one observation. An error means it is lost; the recorder counts it and goes on.
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError>;

    /// Called when the recorder has nothing more for the moment: a good time to write what is buffered.
    fn flush(&mut self) -> Result<(), SinkError>;
}

/// Why an observation could not be kept (disk full, say), as a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkError(pub String);

impl std::fmt::Display for SinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SinkError {}

/// The plainest sink, for tests: keeps everything.
impl ObservationSink for Vec<Observation> {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        self.push(observation);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
