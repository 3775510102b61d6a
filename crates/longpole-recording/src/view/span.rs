//! One span.

use std::fmt::Display;

use longpole_analysis::report::FEW_SAMPLES;
use longpole_analysis::schedule::poles::{Pole, Savings};
use longpole_analysis::tree::forest::{Edge, NodeSource};
use longpole_analysis::{Handle, Report};
use longpole_model::{
    AttributeValue, Attributes, Nanos, Process, ProcessRow, Resource, SpanEvent, SpanKind, SpanLink, StatusCode, Timestamp,
};
use serde::Serialize;
use serde_json::Value;

use super::callee::CalleeView;
use super::functions::{TopFrameView, top_frames};
use super::poles::PartKindView;
use super::select::{SameNameView, node_of, same_name, words_of_part};
use super::shared::{EvidenceView, ExitView, LinksView, RangeNanos, node_handle, range};
use super::states::StatesView;
use super::usage::UsageView;
use super::waits::WaitView;

/// Functions named for a span.
pub(super) const SPAN_FRAMES_MAX: usize = 20;

/// Kinds of waits named for a span.
pub(super) const SPAN_WAITS_MAX: usize = 20;

/// Whole numbers beyond it do not fit a double, which is what most readers of JSON make of a number.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// One span, or a process that stands as one. A span made from a process has null ids (except `s1`, whose ids the command got in
/// `TRACEPARENT`), kind `internal`, and attributes such as `process.executable.path`.
#[derive(Debug, Clone, Serialize)]
pub struct SpanView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handle, such as `s12`.
    pub handle: String,
    /// The requested pole, if it has several spans; this one has the most time on the critical path.
    pub pole: Option<PoleOfSpanView>,
    /// The requested pole, if it is a part of the span.
    pub part: Option<PartOfSpanView>,
    /// Id of its trace; null for a process.
    pub trace_id: Option<String>,
    /// Its id; null for a process.
    pub span_id: Option<String>,
    /// Its parent.
    pub parent: Option<ParentView>,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Role.
    pub kind: SpanKindView,
    /// Outcome.
    pub status: StatusView,
    /// Start.
    pub start_nanos: i64,
    /// Length.
    pub duration_nanos: i64,
    /// The process that emitted it.
    pub process: Option<ProcessView>,
    /// Attributes.
    pub attributes: Vec<AttributeView>,
    /// Attributes of its resource.
    pub resource: Vec<AttributeView>,
    /// Events.
    pub events: Vec<EventView>,
    /// Links to other spans.
    pub links: Vec<SpanLinkView>,
    /// Where its time went.
    pub states: StatesView,
    /// Whether `states` are those of one of its threads at each moment, the one that held it up: it is a process of several threads without spans.
    pub states_follow_threads: bool,
    /// What the span or one of its descendants did at each moment of the span. `in_child_nanos` is 0; `cpu_nanos` is that of all of them.
    pub states_with_descendants: StatesView,
    /// What it waited for in its own time, outside child spans: first what held it up, then other threads of a process; each longest first.
    /// longpole samples few waits below 5 ms.
    pub waits: Vec<WaitView>,
    /// The process that answers it, if it calls an address.
    pub callee: Option<CalleeView>,
    /// Its samples.
    pub samples: SpanSamplesView,
    /// Whether its samples are too few for reliable shares.
    pub few_samples: bool,
    /// Where its samples are too few: all spans of its name, if they have more. `flame --name` shows those.
    pub same_name: Option<SameNameView>,
    /// What it saves.
    pub savings: SavingsView,
    /// Functions of its own samples, at most 20.
    pub top_frames: Vec<TopFrameView>,
    /// Number of children.
    pub children: u64,
    /// Whether it is the command itself: its savings are those of its own time.
    pub is_run: bool,
    /// Whether it is a process without spans.
    pub is_process: bool,
}

/// A pole of several spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoleOfSpanView {
    /// Handle, such as `p3`.
    pub handle: String,
    /// How many spans it has.
    pub count: u64,
    /// Saving if all of them, with their descendants, took no time.
    pub saves_if_zero_nanos: RangeNanos,
}

/// A pole that is a part of the own time of a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartOfSpanView {
    /// Handle, such as `p3`.
    pub handle: String,
    /// What it is.
    pub kind: PartKindView,
    /// For people: which part it is.
    pub text: String,
    /// Its time on the critical path.
    pub on_path_nanos: i64,
    /// Saving if it took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// Saving if it took half the time.
    pub saves_if_half_nanos: RangeNanos,
}

/// The parent of a span.
#[derive(Debug, Clone, Serialize)]
pub struct ParentView {
    /// Handle, such as `s3`.
    pub handle: String,
    /// Whether the span names its parent.
    pub edge: EvidenceView,
}

/// Role of a span, as OpenTelemetry names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKindView {
    /// The emitter did not say.
    Unspecified,
    /// Inside one process.
    Internal,
    /// It answers a call.
    Server,
    /// It calls.
    Client,
    /// It sends a message.
    Producer,
    /// It receives a message.
    Consumer,
}

/// Outcome of a span.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView {
    /// The outcome.
    pub code: StatusCodeView,
    /// For people.
    pub message: String,
}

/// Outcome of a span, as OpenTelemetry names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusCodeView {
    /// The emitter did not say.
    Unset,
    /// It succeeded.
    Ok,
    /// It failed.
    Error,
}

/// The process of a span.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessView {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How it ended; null where nobody saw it.
    pub exit: Option<ExitView>,
    /// What it used; null where longpole never read it.
    pub usage: Option<UsageView>,
}

/// An attribute.
#[derive(Debug, Clone, Serialize)]
pub struct AttributeView {
    /// Key.
    pub key: String,
    /// A JSON string, number, boolean, list, object or null. Whole numbers beyond 2^53 and doubles that JSON lacks are strings; bytes are
    /// hex.
    pub value: serde_json::Value,
}

/// An event of a span.
#[derive(Debug, Clone, Serialize)]
pub struct EventView {
    /// When.
    pub time_nanos: i64,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<AttributeView>,
}

/// A link to another span.
#[derive(Debug, Clone, Serialize)]
pub struct SpanLinkView {
    /// Trace of the other span.
    pub trace_id: String,
    /// Id of the other span.
    pub span_id: String,
    /// Handle of the other span, if the recording has it.
    pub handle: Option<String>,
}

/// Samples of a span.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SpanSamplesView {
    /// Its own.
    pub own: u64,
    /// With those of its descendants.
    pub with_descendants: u64,
    /// Its own, by how they were linked.
    pub links: LinksView,
}

/// What spans save: how much earlier the whole run would end.
#[derive(Debug, Clone, Serialize)]
pub struct SavingsView {
    /// If they and their descendants took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// If they took half their time.
    pub saves_if_half_nanos: RangeNanos,
    /// If only their own time, outside their children, were zero.
    pub saves_own_nanos: RangeNanos,
    /// Whether spans declare what they waited for.
    pub evidence: EvidenceView,
    /// Time of the critical path in which one of them was the innermost.
    pub on_path_nanos: i64,
}

impl SpanView {
    /// The span of this handle, `s12` or `p1`, or of this id; `None` where there is none.
    pub fn new(recording: impl Display, report: &Report, handle: &str) -> Option<Self> {
        let id = node_of(report, handle)?;
        let pole = match handle.parse() {
            Ok(Handle::Pole(pole)) => report.poles().get(pole),
            _ => None,
        };
        let (forest, run) = (report.forest(), &report.recording().run);
        let node = &forest[id];
        let span = forest.span(report.recording(), id);
        let process = forest.process(report.recording(), id);
        let ids = match node.source {
            NodeSource::Root => Some((run.trace_id, run.root_span_id)),
            NodeSource::Span(_) => span.map(|span| (span.trace_id, span.span_id)),
            NodeSource::Process(_) => None,
        };
        let own = report.own_samples(id);
        let few_samples = (own.len() as u64) < FEW_SAMPLES;
        let with_descendants = report.subtree_samples(id).count() as u64;
        let mut functions = report.top_functions(own);
        functions.truncate(SPAN_FRAMES_MAX);
        let nothing = Resource::default();
        let resource = span.map(|span| &*span.resource).or(process.map(|process| &process.resource)).unwrap_or(&nothing);
        Some(SpanView {
            recording: recording.to_string(),
            handle: node_handle(id),
            pole: pole.filter(|pole| pole.nodes.len() > 1).map(|pole| PoleOfSpanView {
                handle: handle.to_owned(),
                count: pole.nodes.len() as u64,
                saves_if_zero_nanos: range(pole.savings.if_zero),
            }),
            part: pole.and_then(|pole| PartOfSpanView::new(report, handle, pole)),
            trace_id: ids.map(|(trace, _)| trace.to_string()),
            span_id: ids.map(|(_, span)| span.to_string()),
            parent: node.parent.map(|parent| ParentView {
                handle: node_handle(parent),
                edge: if node.edge == Edge::Declared { EvidenceView::Declared } else { EvidenceView::Inferred },
            }),
            service: report.service(id).to_owned(),
            name: report.name(id).to_owned(),
            kind: span.map_or(SpanKindView::Internal, |span| span.kind.into()),
            status: span.map_or(StatusView { code: StatusCodeView::Unset, message: String::new() }, |span| StatusView {
                code: span.status.code.into(),
                message: span.status.message.to_string(),
            }),
            start_nanos: node.range.start.nanos_since(report.origin()),
            duration_nanos: node.range.nanos(),
            process: forest.process_row(report.recording(), id).map(|row| ProcessView::new(report, row)),
            attributes: match (span, process) {
                (Some(span), _) => attributes(&span.attributes),
                (None, Some(process)) => process_attributes(process),
                (None, None) => Vec::new(),
            },
            resource: attributes(&resource.attributes),
            events: span.map(|span| span.events.iter().map(|e| EventView::new(e, report.origin())).collect()).unwrap_or_default(),
            links: span.map(|span| span.links.iter().map(|l| SpanLinkView::new(l, report)).collect()).unwrap_or_default(),
            states: report.node_states(id).into(),
            states_follow_threads: report.states_follow_threads(id),
            states_with_descendants: report.node_states_with_descendants(id).into(),
            waits: report.node_waits(id).into_iter().take(SPAN_WAITS_MAX).map(|sum| WaitView::with_blockers(report, &sum)).collect(),
            callee: CalleeView::new(report, &[id], SPAN_FRAMES_MAX),
            samples: SpanSamplesView { own: own.len() as u64, with_descendants, links: report.link_counts(own.iter().copied()).into() },
            few_samples,
            same_name: if few_samples { same_name(report, id, with_descendants) } else { None },
            savings: SavingsView::new(&report.savings(id), report.critical_path().on_path[id]),
            top_frames: top_frames(report, &functions, own, &[]),
            children: forest.children(id).count() as u64,
            is_run: node.source == NodeSource::Root,
            is_process: report.is_plain_process(id),
        })
    }
}

impl PartOfSpanView {
    fn new(report: &Report, handle: &str, pole: &Pole) -> Option<Self> {
        let text = words_of_part(report, pole)?;
        Some(PartOfSpanView {
            handle: handle.to_owned(),
            kind: report.part_of(pole)?.into(),
            text,
            on_path_nanos: pole.on_path.0,
            saves_if_zero_nanos: range(pole.savings.if_zero),
            saves_if_half_nanos: range(pole.savings.if_half),
        })
    }
}

impl ProcessView {
    fn new(report: &Report, row: ProcessRow) -> Self {
        let process = &report.recording().processes[row];
        ProcessView {
            pid: process.pid,
            name: process.name.clone(),
            arguments: process.arguments.to_vec(),
            exit: process.exit.map(ExitView::new),
            usage: UsageView::new(report, row),
        }
    }
}

/// The attributes of a process beside its name and arguments, in OpenTelemetry's words.
fn process_attributes(process: &Process) -> Vec<AttributeView> {
    let executable = (!process.executable.is_empty()).then(|| Value::from(&*process.executable));
    [("process.executable.path", executable), ("process.parent_pid", process.parent_pid.map(Value::from))]
        .into_iter()
        .filter_map(|(key, value)| Some(AttributeView { key: key.to_owned(), value: value? }))
        .collect()
}

impl EventView {
    fn new(event: &SpanEvent, origin: Timestamp) -> Self {
        EventView { time_nanos: event.time.nanos_since(origin), name: event.name.to_string(), attributes: attributes(&event.attributes) }
    }
}

impl SpanLinkView {
    fn new(link: &SpanLink, report: &Report) -> Self {
        SpanLinkView {
            trace_id: link.trace_id.to_string(),
            span_id: link.span_id.to_string(),
            handle: report.forest().node_of_id(report.recording(), link.trace_id, link.span_id).map(node_handle),
        }
    }
}

impl SavingsView {
    pub(super) fn new(savings: &Savings, on_path: Nanos) -> Self {
        SavingsView {
            saves_if_zero_nanos: range(savings.if_zero),
            saves_if_half_nanos: range(savings.if_half),
            saves_own_nanos: range(savings.own),
            evidence: savings.evidence.into(),
            on_path_nanos: on_path.0,
        }
    }
}

pub(super) fn attributes(attributes: &Attributes) -> Vec<AttributeView> {
    attributes.iter().map(|attribute| AttributeView { key: attribute.key.to_string(), value: json(&attribute.value) }).collect()
}

/// A value as JSON has it. What JSON's numbers cannot hold becomes a text, bytes become hex.
fn json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Empty => Value::Null,
        AttributeValue::Str(text) => Value::from(text.as_str()),
        AttributeValue::Bool(truth) => Value::from(*truth),
        AttributeValue::Int(number) if number.unsigned_abs() > EXACT_IN_DOUBLE => Value::from(number.to_string()),
        AttributeValue::Int(number) => Value::from(*number),
        AttributeValue::Double(number) => {
            serde_json::Number::from_f64(*number).map_or_else(|| Value::from(number.to_string()), Value::Number)
        }
        AttributeValue::Bytes(bytes) => Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        AttributeValue::Array(values) => Value::Array(values.iter().map(json).collect()),
        AttributeValue::KeyValues(pairs) => Value::Object(pairs.iter().map(|pair| (pair.key.to_string(), json(&pair.value))).collect()),
    }
}

impl From<SpanKind> for SpanKindView {
    fn from(it: SpanKind) -> Self {
        match it {
            SpanKind::Unspecified => SpanKindView::Unspecified,
            SpanKind::Internal => SpanKindView::Internal,
            SpanKind::Server => SpanKindView::Server,
            SpanKind::Client => SpanKindView::Client,
            SpanKind::Producer => SpanKindView::Producer,
            SpanKind::Consumer => SpanKindView::Consumer,
        }
    }
}

impl From<StatusCode> for StatusCodeView {
    fn from(it: StatusCode) -> Self {
        match it {
            StatusCode::Unset => StatusCodeView::Unset,
            StatusCode::Ok => StatusCodeView::Ok,
            StatusCode::Error => StatusCodeView::Error,
        }
    }
}
