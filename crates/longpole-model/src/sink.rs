//! The two borders data crosses on its way in: decoded spans, and raw observations of the recorder.
//!
//! A decoder lends each span to a [`SpanSink`]; nothing is copied that the sink does not keep. The recorder gives each
//! [`Observation`] to an [`ObservationSink`]. Both traits stand here so that `wire` and `capture` need not know `store`.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::address::AbsAddr;
use crate::attribute::{Attribute, AttributeValue, Attributes};
use crate::id::{SpanId, TraceId};
use crate::interned_text::{Text, Texts};
use crate::loss::{Loss, LossKind};
use crate::process::{CpuSlice, ThreadTotals};
use crate::resource::{Resource, Scope};
use crate::run::Exit;
use crate::sample::{JournalEntry, Sample};
use crate::span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
use crate::stack::{LocationId, LocationKind, Mapping, Runtime, StackId};
use crate::time::{ClockAnchor, Monotonic, Timestamp};
use crate::usage::{ProcessUsage, RunUsage};
use crate::wait::Wait;

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

impl<'a> From<&'a AttributeValue> for ValueRef<'a> {
    /// Recursion ends: values nest no deeper than the limit of the decoder that made them.
    fn from(value: &'a AttributeValue) -> Self {
        match value {
            AttributeValue::Empty => ValueRef::Empty,
            AttributeValue::Str(text) => ValueRef::Str(text),
            AttributeValue::Bool(truth) => ValueRef::Bool(*truth),
            AttributeValue::Int(number) => ValueRef::Int(*number),
            AttributeValue::Double(number) => ValueRef::Double(*number),
            AttributeValue::Bytes(bytes) => ValueRef::Bytes(bytes),
            AttributeValue::Array(values) => ValueRef::Array(values.iter().map(ValueRef::from).collect()),
            AttributeValue::KeyValues(pairs) => ValueRef::KeyValues(pairs.iter().map(|pair| (&*pair.key, (&pair.value).into())).collect()),
        }
    }
}

impl ValueRef<'_> {
    /// An owned copy.
    pub fn to_owned(&self) -> AttributeValue {
        self.own(&mut |text| text.into())
    }

    /// An owned copy, whose texts are made by this function.
    fn own(&self, text: &mut dyn FnMut(&str) -> Text) -> AttributeValue {
        match self {
            ValueRef::Empty => AttributeValue::Empty,
            ValueRef::Str(words) => AttributeValue::Str(text(words)),
            ValueRef::Bool(truth) => AttributeValue::Bool(*truth),
            ValueRef::Int(number) => AttributeValue::Int(*number),
            ValueRef::Double(number) => AttributeValue::Double(*number),
            ValueRef::Bytes(bytes) => AttributeValue::Bytes(bytes.to_vec().into()),
            ValueRef::Array(values) => AttributeValue::Array(values.iter().map(|value| value.own(text)).collect()),
            ValueRef::KeyValues(pairs) => AttributeValue::KeyValues(own_pairs(pairs, text).into()),
        }
    }
}

fn own_pairs(pairs: &[(&str, ValueRef<'_>)], text: &mut dyn FnMut(&str) -> Text) -> Vec<Attribute> {
    pairs.iter().map(|(key, value)| Attribute { key: text(key), value: value.own(text) }).collect()
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

impl EventRef<'_> {
    /// An owned copy.
    pub fn to_event(&self) -> SpanEvent {
        self.own(&mut |text| text.into())
    }

    fn own(&self, text: &mut dyn FnMut(&str) -> Text) -> SpanEvent {
        SpanEvent { time: self.time, name: text(self.name), attributes: Attributes(own_pairs(&self.attributes, text)) }
    }
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

impl LinkRef<'_> {
    fn own(&self, text: &mut dyn FnMut(&str) -> Text) -> SpanLink {
        SpanLink { trace_id: self.trace_id, span_id: self.span_id, attributes: Attributes(own_pairs(&self.attributes, text)) }
    }
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

impl SpanRef<'_> {
    /// An owned copy, of this emitter.
    pub fn to_span(&self, texts: &mut Texts, resource: Arc<Resource>, scope: Arc<Scope>, pid: Option<u32>) -> Span {
        let text: &mut dyn FnMut(&str) -> Text = &mut |words| texts.text(words);
        Span {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_span_id: self.parent_span_id,
            trace_state: text(self.trace_state),
            flags: self.flags,
            name: text(self.name),
            kind: self.kind,
            start: self.start,
            end: self.end,
            attributes: Attributes(own_pairs(self.attributes, text)),
            dropped_attributes: self.dropped_attributes,
            events: self.events.iter().map(|event| event.own(text)).collect(),
            dropped_events: self.dropped_events,
            links: self.links.iter().map(|link| link.own(text)).collect(),
            dropped_links: self.dropped_links,
            status: Status { code: self.status, message: text(self.status_message) },
            resource,
            scope,
            pid,
        }
    }

    /// What the emitter left out of it, where it did.
    pub fn dropped(&self) -> Option<Loss> {
        let count = u64::from(self.dropped_attributes) + u64::from(self.dropped_events) + u64::from(self.dropped_links);
        (count > 0).then(|| Loss::new(LossKind::DroppedByEmitter, count, "attributes, events or links over the emitter's limits"))
    }
}

/// Takes the spans of one request: a resource, then its scopes, then the spans of each.
pub trait SpanSink {
    /// The emitter of all spans until the next call.
    fn resource(&mut self, resource: Resource);
    /// The same, where many spans that do not stand together have one emitter: a sink that keeps it can know it by where it is.
    fn shared_resource(&mut self, resource: &Arc<Resource>) {
        self.resource((**resource).clone());
    }
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
    texts: Texts,
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
        span.dropped().into_iter().for_each(|loss| self.loss(loss));
        let pid = self.resource.process_pid().or(self.peer_pid);
        self.spans.push(span.to_span(&mut self.texts, Arc::clone(&self.resource), Arc::clone(&self.scope), pid));
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
    /// The machine was suspended: the wall clock went on, and the monotonic one stood still.
    Slept {
        /// When it was found out.
        time: Monotonic,
        /// For how long.
        nanos: u64,
    },
    /// A binary was seen for the first time.
    Mapping(Mapping),
    /// A location was seen for the first time.
    Location {
        /// Its number.
        id: LocationId,
        /// What it is.
        kind: LocationKind,
    },
    /// A location has a name and no binary. It is new, or was unmapped before and has its name only now.
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
    /// From some time on other code lies at the address of a location: memory of code that was compiled at run time is used again.
    Replaced {
        /// Its number.
        id: LocationId,
        /// From when on.
        since: Monotonic,
        /// The number of the location that stands for it from then on, which came before.
        by: LocationId,
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
    /// A thread was blocked, and it is over.
    Wait(Wait),
    /// What the journal of a thread says of the time since it was last read.
    Journal {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// Whether nothing is missing between the observation before and this one.
        follows: bool,
        /// In the order of time.
        entries: Vec<JournalEntry>,
        /// When it was read: until then the last entry held.
        until: Monotonic,
    },
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
    /// How a process ended, which is known some time after its end.
    ProcessStatus {
        /// Its id.
        pid: u32,
        /// When it ended.
        time: Monotonic,
        /// How.
        exit: Exit,
    },
    /// A process takes connections at an address that a span calls; told by the receiver, not in the order of time.
    ProcessListens {
        /// Its id.
        pid: u32,
        /// The address.
        address: SocketAddr,
    },
    /// What a process says of itself to whoever looks (OTEP 4719); a later one of the same process replaces an earlier one.
    ProcessResource {
        /// Its id.
        pid: u32,
        /// When it was read.
        time: Monotonic,
        /// Attributes of its resource: texts and numbers.
        attributes: Attributes,
    },
    /// What a process has used so far.
    ProcessUsage(ProcessUsage),
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
    /// What the kernel had counted of a thread; a later one of the same thread replaces an earlier one.
    ThreadTotals {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// What it counted.
        totals: ThreadTotals,
    },
    /// The number that the interpreter of a process gives out for a thread; told some time after its start, maybe after its end.
    ThreadIdent {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// The number.
        ident: u64,
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
        /// When: its start and the time since, by the monotonic clock.
        end: Timestamp,
        /// How.
        exit: Exit,
        /// rusage of the command and what it waited for.
        cpu_nanos: Option<u64>,
    },
    /// rusage of the command and what it waited for.
    RunUsage(RunUsage),
    /// The recording ended, and the command, which it had not started, went on.
    RunLeft {
        /// When: its start and the time since, by the monotonic clock.
        end: Timestamp,
    },
    /// What recording cost.
    RecorderCost(crate::run::RecorderCost),
}

/// Takes what the recorder saw. Called from the recorder's own thread; must not block for long, or the ring overflows.
pub trait ObservationSink: Send {
    /// Takes one observation.
    ///
    /// # Errors
    ///
    /// The observation is lost; the recorder counts it and goes on.
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError>;

    /// Writes what is buffered: the recorder has nothing more for the moment.
    ///
    /// # Errors
    ///
    /// Observations that were buffered are lost.
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
