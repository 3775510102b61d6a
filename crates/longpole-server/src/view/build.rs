//! How each view is made from a report. The only place where the model becomes JSON.

use std::collections::HashMap;
use std::fmt::Display;

use longpole_analysis::call_tree::{Frames, FunctionWeight, LineWeight};
use longpole_analysis::deployment::DeploymentTime;
use longpole_analysis::poles::{Pole, Savings};
use longpole_analysis::report::{BlockedBy, Blocker, FEW_SAMPLES, Flame, FlameTime, LinkCounts, WaitSum, WaitedFor};
use longpole_analysis::resources::title_of_urn;
use longpole_analysis::savings::Saving;
use longpole_analysis::states::States;
use longpole_analysis::threads::{self, Importance, ThreadLife};
use longpole_analysis::trace_tree::{Edge, NodeSource, Note};
use longpole_analysis::{Handle, Report};
use longpole_model::{
    AttributeValue, Attributes, Exit, Process, RecorderCost, Resource, Runtime, SpanEvent, SpanLink, StatusCode, SumNanos, Timestamp,
    TraceId, WaitKind,
};
use longpole_store::{Listing, StoredRecording};
use serde_json::Value;

use super::*;

/// Poles in a summary; the others are in the view of all poles.
const SUMMARY_POLES_MAX: usize = 10;

/// Functions in the summary of a recording without poles; all are in the view of functions.
const SUMMARY_FRAMES_MAX: usize = 10;

/// Functions named for a pole.
const POLE_FRAMES_MAX: usize = 5;

/// Poles of which it is said what they save with all before them: each takes a replay of the run.
const SUMMED_POLES_MAX: usize = 16;

/// Functions named for a span.
pub(super) const SPAN_FRAMES_MAX: usize = 20;

/// Kinds of waits named for a span.
pub(super) const SPAN_WAITS_MAX: usize = 20;

/// Lines named for a function in a list.
const LINES_NAMED_MAX: usize = 3;

/// Lines listed for a function.
const FRAME_LINES_MAX: usize = 20;

/// Kinds of waits listed for a function.
const FRAME_WAITS_MAX: usize = 20;

/// Lines listed for the waits of one kind in one function.
const PLACES_MAX: usize = 10;

/// Threads and kinds of waits in the answer of what was looked at for a while.
const ATTACHED_MAX: usize = 10;

/// Threads that are named for each thread, of those that it waited for.
const THREAD_BLOCKERS_MAX: usize = 5;

/// Handles listed for a pole: a group of a loop may have hundred thousand spans.
const POLE_SPANS_MAX: usize = 100;

/// Spans listed for a function.
const FRAME_SPANS_MAX: usize = 500;

/// Operations listed for a function.
const FRAME_OPERATIONS_MAX: usize = 100;

/// Whole numbers beyond it do not fit a double, which is what most readers of JSON make of a number.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// Bits of the flags of a row.
mod flag {
    pub(super) const ERROR: u32 = 1;
    pub(super) const PARENT_INFERRED: u32 = 2;
    pub(super) const PROCESS: u32 = 4;
    pub(super) const ORPHAN: u32 = 8;
    pub(super) const CLAMPED: u32 = 16;
    pub(super) const CYCLE_BROKEN: u32 = 32;
}

impl RecordingsView {
    /// What is in a store.
    pub fn new(listing: &Listing) -> Self {
        RecordingsView {
            recordings: listing.recordings.iter().map(RecordingView::new).collect(),
            damaged: listing.damaged.iter().map(|error| format!("failed to {error}")).collect(),
        }
    }
}

impl RecordingView {
    /// What the catalog knows of a recording.
    pub fn new(stored: &StoredRecording) -> Self {
        let summary = &stored.summary;
        RecordingView {
            recording: stored.name.to_string(),
            command: summary.command.clone(),
            start_unix_nano: unix_nano(summary.start),
            wall_nanos: nanos(summary.wall_nanos.unwrap_or_default()),
            exit: summary.exit.map(ExitView::new),
            state: stored.state.as_str().to_owned(),
            not_sealed: stored.why_ended(),
            spans: summary.spans,
            samples: summary.samples,
            // An answer of a longpole whose words we do not know is no answer; the recording can still be opened.
            answer: summary.answer_json.as_deref().and_then(|json| serde_json::from_str(json).ok()),
            tags: stored.tags.clone(),
        }
    }
}

impl AnswerView {
    /// The first pole of a recording, where it has one.
    pub fn new(report: &Report) -> Option<Self> {
        // What did not end would not have ended earlier.
        let pole = report.poles().first().filter(|_| !report.is_attached() || report.span_count() > 0)?;
        let functions = &report.functions().list;
        Some(AnswerView {
            service: in_a_line(&pole.service),
            name: in_a_line(&pole.name),
            context: pole.context.as_deref().map(in_a_line),
            saves_if_zero_nanos: range(pole.savings.if_zero),
            function: report.named(&report.samples_on_path(&pole.nodes)).map(|named| in_a_line(&functions[named.function].function)),
        })
    }
}

/// A name in the answer of one line, which the catalog keeps: a row of it has an end, and a span's name can have megabytes.
const NAME_IN_A_LINE_BYTES_MAX: usize = 512;

fn in_a_line(name: &str) -> String {
    match name.len() {
        ..=NAME_IN_A_LINE_BYTES_MAX => name.to_owned(),
        _ => format!("{}…", &name[..name.floor_char_boundary(NAME_IN_A_LINE_BYTES_MAX)]),
    }
}

impl ExitView {
    pub(super) fn new(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => ExitView { code: Some(code), signal: None },
            Exit::Signal(signal) => ExitView { code: None, signal: Some(signal) },
        }
    }
}

impl SummaryView {
    /// The answer of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        let run = &report.recording().run;
        let poles = report.poles();
        let attached = AttachedView::new(report);
        let run_alone = report.forest().len() == 1 && report.recording().run.exit.is_none();
        let mut functions = if run_alone || attached.is_some() { report.functions_by_self() } else { Vec::new() };
        functions.truncate(SUMMARY_FRAMES_MAX);
        let weight = report.recording().samples.iter().fold(0u64, |sum, sample| sum.saturating_add(sample.weight_nanos));
        let (parallelism, work) = (report.parallelism(), report.work());
        SummaryView {
            schema: "longpole.summary/1",
            recording: recording.to_string(),
            command: run.command.clone(),
            exit: run.exit.map(ExitView::new),
            start_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall_nanos(),
            cpu_nanos: run.cpu_nanos,
            host: run.host.clone(),
            mode: run.mode.as_str().to_owned(),
            rate_hz: run.rate_hz,
            processes: report.recording().processes.len() as u64,
            traces: report.trace_count() as u64,
            spans: report.span_count() as u64,
            samples: report.recording().samples.len() as u64,
            links: report.link_counts(report.all_samples()).into(),
            states: report.path_states().into(),
            parallelism: ParallelismView {
                mean: parallelism.mean,
                peak: u64::from(parallelism.peak),
                work_nanos: work.work_nanos,
                span_nanos: work.span_nanos,
            },
            deployment: report.deployment_time().map(DeploymentView::new),
            usage: NotableView::all(report),
            poles: pole_views(report, SUMMARY_POLES_MAX),
            functions: top_frames(report, &functions, &report.all_samples().collect::<Vec<_>>(), &[]),
            weight_nanos: nanos(weight),
            attached,
            quality: report.quality().iter().map(QualityView::new).collect(),
            recorder: run.recorder_cost.map(RecorderView::new),
            truncated: PolesTruncated { poles: poles.len().saturating_sub(SUMMARY_POLES_MAX) + report.poles_truncated() },
        }
    }
}

impl AttachedView {
    /// Of a recording that began and ended while its processes ran.
    fn new(report: &Report) -> Option<Self> {
        if !report.is_attached() {
            return None;
        }
        let mut threads = thread_views(report);
        let seen = threads.len() as u64;
        let sum = |of: fn(&ThreadView) -> i64| threads.iter().map(of).fold(0, i64::saturating_add);
        let (on_cpu_nanos, ready_nanos) = (sum(|it| it.on_cpu_nanos), sum(|it| it.ready_nanos));
        let blocked_unseen_nanos = sum(|it| it.blocked_unseen_nanos);
        let blocked_nanos = threads.iter().fold(BlockedView::default(), |all, it| all.plus(&it.blocked_nanos));
        threads.retain(|thread| thread.rank < ATTACHED_MAX);
        let waits = report.whole_waits(report.waits_below(None).into_iter());
        Some(AttachedView {
            pid: report.recording().run.root_pid,
            threads_seen: seen,
            threads,
            on_cpu_nanos,
            ready_nanos,
            blocked_nanos,
            blocked_unseen_nanos,
            waits: waits.iter().take(ATTACHED_MAX).map(|sum| WaitView::with_blockers(report, sum)).collect(),
        })
    }
}

impl DeploymentView {
    fn new(time: DeploymentTime) -> Self {
        DeploymentView {
            cloud_wait_nanos: time.cloud_wait_nanos,
            provider_nanos: time.provider_nanos,
            engine_nanos: time.engine_nanos,
            language_host_nanos: time.language_host_nanos,
            plugin_start_nanos: time.plugin_start_nanos,
            state_backend_nanos: time.state_backend_nanos,
            compile_nanos: time.compile_nanos,
            idle_nanos: time.idle_nanos,
        }
    }
}

impl RecorderView {
    fn new(cost: RecorderCost) -> Self {
        RecorderView { cpu_nanos: cost.cpu_nanos, rss_bytes_max: cost.rss_bytes_max }
    }
}

impl PolesView {
    /// All poles of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        PolesView {
            recording: recording.to_string(),
            wall_nanos: report.wall_nanos(),
            poles: pole_views(report, usize::MAX),
            truncated: PolesTruncated { poles: report.poles_truncated() },
        }
    }
}

fn pole_views(report: &Report, limit: usize) -> Vec<PoleView> {
    let together = report.saves_with_those_before(limit.min(SUMMED_POLES_MAX));
    let together = together.into_iter().map(|saving| Some(range(saving))).chain(std::iter::repeat(None));
    report
        .poles()
        .iter()
        .enumerate()
        .take(limit)
        .zip(together)
        .map(|((index, pole), together)| PoleView::new(report, index, pole, together))
        .collect()
}

impl PoleView {
    fn new(report: &Report, index: usize, pole: &Pole, together: Option<RangeNanos>) -> Self {
        let samples = report.samples_on_path(&pole.nodes);
        let reason = report.reason(pole);
        let mut functions = report.top_functions(&samples);
        functions.truncate(POLE_FRAMES_MAX);
        PoleView {
            handle: Handle::Pole(index).to_string(),
            service: pole.service.clone(),
            name: pole.name.clone(),
            context: pole.context.clone(),
            count: pole.nodes.len() as u64,
            spans: by_time_on_path(report, pole).into_iter().take(POLE_SPANS_MAX).map(node_handle).collect(),
            truncated: SpansTruncated { spans: pole.nodes.len().saturating_sub(POLE_SPANS_MAX) },
            on_path_nanos: pole.on_path_nanos,
            saves_if_zero_nanos: range(pole.savings.if_zero),
            saves_if_half_nanos: range(pole.savings.if_half),
            saves_own_nanos: range(pole.savings.own),
            saves_with_those_before_nanos: together,
            evidence: pole.savings.evidence.as_str(),
            states: report.states_on_path(&pole.nodes).into(),
            reason: ReasonView { code: reason.code.as_str(), text: reason.text, function: reason.function, mostly_in: reason.mostly_in },
            callee: CalleeView::new(report, &pole.nodes, POLE_FRAMES_MAX),
            blocked_by: report.pole_wait(pole).and_then(|sum| BlockedByView::new(report, &sum, POLE_FRAMES_MAX)),
            contains: pole.contains.map(|inner| Handle::Pole(inner).to_string()),
            limited_by: pole.limited_by.map(|node| LimitView {
                handle: node_handle(node),
                name: report.resource(node).map_or_else(|| report.name(node).to_owned(), title_of_urn),
                pole: report.poles().iter().position(|p| p.nodes.binary_search(&node).is_ok()).map(|p| Handle::Pole(p).to_string()),
            }),
            resource: pole.resource.clone(),
            top_frames: top_frames(report, &functions, &samples, &[]),
            samples: samples.len() as u64,
            weight_nanos: weight(report, &samples),
            few_samples: (samples.len() as u64) < FEW_SAMPLES,
        }
    }
}

/// The nodes of a pole, most time on the path first; what a handle `p1` means where one span is asked for is the first.
fn by_time_on_path(report: &Report, pole: &Pole) -> Vec<usize> {
    let mut nodes = pole.nodes.clone();
    nodes.sort_by_key(|node| std::cmp::Reverse(report.critical_path().on_path_nanos[*node]));
    nodes
}

/// The node that a handle `s12` or `p1` names.
fn node_of(report: &Report, handle: &str) -> Option<usize> {
    match handle.parse().ok()? {
        Handle::Pole(pole) => by_time_on_path(report, report.poles().get(pole)?).first().copied(),
        handle => report.node_of(handle),
    }
}

pub(super) fn node_handle(node: usize) -> String {
    Handle::Node(node).to_string()
}

/// Functions, with their lines in these samples and waits.
pub(super) fn top_frames(report: &Report, functions: &[FunctionWeight], samples: &[u32], waits: &[u32]) -> Vec<TopFrameView> {
    let places: Vec<usize> = functions.iter().map(|weighed| weighed.function).collect();
    let lines = report.lines(&places, samples, waits);
    functions
        .iter()
        .zip(lines)
        .map(|(weighed, lines)| {
            let function = &report.functions().list[weighed.function];
            TopFrameView {
                handle: Handle::Function(weighed.function).to_string(),
                function: function.function.clone(),
                file: function.file.clone(),
                line: lines.first().map_or(function.line, |most| most.line),
                runtime: function.runtime.map(Runtime::as_str),
                whose: function.whose.as_str(),
                self_nanos: nanos(weighed.weight.self_nanos),
                total_nanos: nanos(weighed.weight.total_nanos),
                samples: weighed.weight.samples,
                lines: lines.iter().take(LINES_NAMED_MAX).map(LineView::new).collect(),
            }
        })
        .collect()
}

impl LineView {
    fn new(weight: &LineWeight) -> Self {
        LineView {
            line: weight.line,
            total_nanos: nanos(weight.total_nanos),
            self_nanos: nanos(weight.self_nanos),
            waited_nanos: nanos(weight.waited_nanos),
        }
    }
}

impl TreeView {
    /// The tree of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        let labels = report.labels();
        TreeView {
            recording: recording.to_string(),
            origin_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall_nanos(),
            services: labels.services.clone(),
            names: labels.names.clone(),
            spans: TreeColumns::new(report),
            critical_path: PathColumns::new(report),
            notes: report.notes().map(QualityView::new).collect(),
        }
    }
}

impl TreeColumns {
    fn new(report: &Report) -> Self {
        let (forest, labels, origin) = (report.forest(), report.labels(), report.origin());
        let mut columns = TreeColumns::default();
        for (index, node) in forest.nodes.iter().enumerate() {
            columns.parent.push(node.parent().map_or(-1, |parent| parent as i64));
            columns.depth.push(node.depth);
            columns.subtree.push((node.subtree_end() - index - 1) as u64);
            columns.start_nanos.push(node.range.start.nanos_since(origin));
            columns.duration_nanos.push(node.range.nanos());
            columns.service.push(labels.service[index]);
            columns.name.push(labels.name[index]);
            columns.flags.push(flags(report, index));
            columns.on_path_nanos.push(report.critical_path().on_path_nanos[index]);
            columns.samples.push(report.own_samples(index).len() as u64);
        }
        columns
    }
}

fn flags(report: &Report, index: usize) -> u32 {
    let node = report.forest().nodes[index];
    let failed = matches!(node.source(), NodeSource::Span(span) if report.recording().spans[span].status.code == StatusCode::Error);
    [
        (failed, flag::ERROR),
        (node.edge == Edge::Inferred, flag::PARENT_INFERRED),
        (report.is_process(index), flag::PROCESS),
        (node.orphan, flag::ORPHAN),
        (node.clamped, flag::CLAMPED),
        (node.cycle_broken, flag::CYCLE_BROKEN),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(0, |flags, (_, bit)| flags | bit)
}

impl PathColumns {
    fn new(report: &Report) -> Self {
        let origin = report.origin();
        let mut columns = PathColumns::default();
        for segment in &report.critical_path().segments {
            columns.span.push(segment.node as u64);
            columns.start_nanos.push(segment.range.start.nanos_since(origin));
            columns.end_nanos.push(segment.range.end.nanos_since(origin));
        }
        columns
    }
}

impl SpanView {
    /// The span of this handle, `s12` or `p1`; `None` where there is none.
    pub fn new(recording: impl Display, report: &Report, handle: &str) -> Option<Self> {
        let index = node_of(report, handle)?;
        let pole = match handle.parse().ok()? {
            Handle::Pole(pole) => report.poles().get(pole),
            _ => None,
        };
        let (forest, run) = (report.forest(), &report.recording().run);
        let node = forest.nodes[index];
        let span = forest.span(report.recording(), index);
        let process = forest.process(report.recording(), index);
        let ids = match node.source() {
            NodeSource::Root => Some((run.trace_id, run.root_span_id)),
            NodeSource::Span(_) => span.map(|span| (span.trace_id, span.span_id)),
            NodeSource::Process(_) => None,
        };
        let own = report.own_samples(index);
        let few_samples = (own.len() as u64) < FEW_SAMPLES;
        let with_descendants = report.subtree_samples(index).count() as u64;
        let mut functions = report.top_functions(own);
        functions.truncate(SPAN_FRAMES_MAX);
        let nothing = Resource::default();
        let resource = span.map(|span| &*span.resource).or(process.map(|process| &process.resource)).unwrap_or(&nothing);
        Some(SpanView {
            recording: recording.to_string(),
            handle: node_handle(index),
            pole: pole.filter(|pole| pole.nodes.len() > 1).map(|pole| PoleOfSpanView {
                handle: handle.to_owned(),
                count: pole.nodes.len() as u64,
                saves_if_zero_nanos: range(pole.savings.if_zero),
            }),
            trace_id: ids.map(|(trace, _)| trace.to_string()),
            span_id: ids.map(|(_, span)| span.to_string()),
            parent: node.parent().map(|parent| ParentView {
                handle: node_handle(parent),
                edge: if node.edge == Edge::Declared { "declared" } else { "inferred" },
            }),
            service: report.service(index).to_owned(),
            name: report.name(index).to_owned(),
            kind: span.map_or("internal", |span| span.kind.as_str()),
            status: span.map_or(StatusView { code: StatusCode::Unset.as_str(), message: String::new() }, |span| StatusView {
                code: span.status.code.as_str(),
                message: span.status.message.to_string(),
            }),
            start_nanos: node.range.start.nanos_since(report.origin()),
            duration_nanos: node.range.nanos(),
            process: forest.process_number(report.recording(), index).map(|number| ProcessView::new(report, number)),
            attributes: match (span, process) {
                (Some(span), _) => attributes(&span.attributes),
                (None, Some(process)) => process_attributes(process),
                (None, None) => Vec::new(),
            },
            resource: attributes(&resource.attributes),
            events: span.map(|span| span.events.iter().map(|e| EventView::new(e, report.origin())).collect()).unwrap_or_default(),
            links: span.map(|span| span.links.iter().map(|l| SpanLinkView::new(l, report)).collect()).unwrap_or_default(),
            states: report.node_states(index).into(),
            states_with_descendants: report.node_states_with_descendants(index).into(),
            waits: report.node_waits(index).into_iter().take(SPAN_WAITS_MAX).map(|sum| WaitView::with_blockers(report, &sum)).collect(),
            callee: CalleeView::new(report, &[index], SPAN_FRAMES_MAX),
            samples: SpanSamplesView { own: own.len() as u64, with_descendants, links: report.link_counts(own.iter().copied()).into() },
            few_samples,
            same_name: if few_samples { same_name(report, index, with_descendants) } else { None },
            savings: SavingsView::new(&report.savings(index), report.critical_path().on_path_nanos[index]),
            top_frames: top_frames(report, &functions, own, &[]),
            children: forest.children(index).count() as u64,
        })
    }
}

impl ProcessView {
    fn new(report: &Report, number: usize) -> Self {
        let process = &report.recording().processes[number];
        ProcessView {
            pid: process.pid,
            name: process.name.clone(),
            arguments: process.arguments.clone(),
            exit: process.exit.map(ExitView::new),
            usage: UsageView::new(report, number),
        }
    }
}

/// What is known of a process beside its name and arguments, in OpenTelemetry's words.
fn process_attributes(process: &Process) -> Vec<AttributeView> {
    let executable = (!process.executable.is_empty()).then(|| Value::from(process.executable.as_str()));
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
    pub(super) fn new(savings: &Savings, on_path_nanos: i64) -> Self {
        SavingsView {
            saves_if_zero_nanos: range(savings.if_zero),
            saves_if_half_nanos: range(savings.if_half),
            saves_own_nanos: range(savings.own),
            evidence: savings.evidence.as_str(),
            on_path_nanos,
        }
    }
}

impl FlameView {
    /// The whole run; with the waits of all threads, or only of those that work for spans.
    pub fn of_run(recording: impl Display, report: &Report, time: FlameTime, all_threads: bool) -> Self {
        let flame = if all_threads { report.flame_of_all_threads(time) } else { report.flame(None, time) };
        let title = if all_threads { "the whole run, all threads" } else { "the whole run" };
        Self::of_flame(recording, report, &flame, None, title.to_owned())
    }

    /// A span and its descendants; for a pole all its spans. `None` where the handle names neither.
    pub fn of_span(recording: impl Display, report: &Report, handle: &str, time: FlameTime) -> Option<Self> {
        Self::of_spans(recording, report, Chosen::Handle(handle), time)
    }

    /// These spans and their descendants; `None` where there are none.
    pub fn of_spans(recording: impl Display, report: &Report, chosen: Chosen<'_>, time: FlameTime) -> Option<Self> {
        let roots = roots_of(report, chosen)?;
        let flame = report.flame(Some(&roots.nodes), time);
        let same_name = match roots.nodes[..] {
            [node] if flame.few_samples() => same_name(report, node, flame.tree.samples),
            _ => None,
        };
        let view = Self::of_flame(recording, report, &flame, roots.handle.map(|handle| handle.to_string()), roots.title);
        Some(FlameView { name: roots.name, trace_id: roots.trace_id, same_name, ..view })
    }

    fn of_flame(recording: impl Display, report: &Report, flame: &Flame, span: Option<String>, title: String) -> Self {
        let tree = &flame.tree;
        let mut frames = Vec::new();
        let mut places = vec![-1i64; report.functions().list.len()];
        let mut nodes = FlameColumns::default();
        for row in 0..tree.len() {
            nodes.parent.push(tree.parent[row].map_or(-1, |parent| parent as i64));
            nodes.depth.push(tree.depth[row]);
            nodes.offset_nanos.push(nanos(tree.offset_nanos[row]));
            nodes.total_nanos.push(nanos(tree.total_nanos[row]));
            nodes.self_nanos.push(nanos(tree.self_nanos[row]));
            nodes.line.push(tree.line[row]);
            nodes.frame.push(tree.function[row].map_or(-1, |function| {
                if places[function] < 0 {
                    places[function] = frames.len() as i64;
                    frames.push(FlameFrameView::new(report, function));
                }
                places[function]
            }));
        }
        FlameView {
            recording: recording.to_string(),
            span,
            name: None,
            trace_id: None,
            title,
            time: flame.time.as_str(),
            samples: tree.samples,
            left_out_waits: flame.left_out_waits,
            cut_samples: tree.cut,
            weight_nanos: nanos(tree.total_nanos[0]),
            few_samples: flame.few_samples(),
            same_name: None,
            links: flame.links.into(),
            frames,
            nodes,
        }
    }
}

impl FlameFrameView {
    fn new(report: &Report, index: usize) -> Self {
        let function = &report.functions().list[index];
        FlameFrameView {
            handle: Handle::Function(index).to_string(),
            function: function.function.clone(),
            file: function.file.clone(),
            line: function.line,
            reason: function.reason.clone(),
            runtime: function.runtime.map(Runtime::as_str),
            whose: function.whose.as_str(),
        }
    }
}

impl FrameView {
    /// The function of this handle, `f12`, and where it ran; `None` where there is none.
    pub fn new(recording: impl Display, report: &Report, handle: &str) -> Option<Self> {
        let Handle::Function(index) = handle.parse().ok()? else { return None };
        let function = report.functions().list.get(index)?;
        let ran_in = report.nodes_with(index);
        Some(FrameView {
            recording: recording.to_string(),
            handle: Handle::Function(index).to_string(),
            function: function.function.clone(),
            file: function.file.clone(),
            runtime: function.runtime.map(Runtime::as_str),
            whose: function.whose.as_str(),
            samples: function.weight.samples,
            total_nanos: nanos(function.weight.total_nanos),
            self_nanos: nanos(function.weight.self_nanos),
            waits: ran_in.waits,
            waited_nanos: nanos(ran_in.waited_nanos),
            waited_for: report.waits_with(index).iter().take(FRAME_WAITS_MAX).map(|sum| WaitView::with_blockers(report, sum)).collect(),
            lines: report.lines_of(index).iter().take(FRAME_LINES_MAX).map(LineView::new).collect(),
            spans: ran_in
                .nodes
                .iter()
                .take(FRAME_SPANS_MAX)
                .map(|part| FrameSpanView {
                    handle: node_handle(part.node),
                    service: report.service(part.node).to_owned(),
                    name: report.name(part.node).to_owned(),
                    samples: part.samples,
                    total_nanos: nanos(part.total_nanos),
                    waited_nanos: nanos(part.waited_nanos),
                    share: part.share,
                })
                .collect(),
            operations: ran_in
                .operations
                .iter()
                .take(FRAME_OPERATIONS_MAX)
                .map(|part| FrameOperationView {
                    service: report.service(part.example).to_owned(),
                    name: report.name(part.example).to_owned(),
                    spans: part.nodes,
                    samples: part.samples,
                    total_nanos: nanos(part.total_nanos),
                    waited_nanos: nanos(part.waited_nanos),
                    share: part.share,
                })
                .collect(),
            unlinked_samples: ran_in.unlinked_samples,
            ambiguous_samples: ran_in.ambiguous_samples,
            unlinked_waited_nanos: nanos(ran_in.unlinked_waited_nanos),
            truncated: SpansTruncated { spans: ran_in.nodes.len().saturating_sub(FRAME_SPANS_MAX) },
        })
    }
}

/// What a list of functions is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopOptions {
    /// By the time in them and what they call, in place of that in themselves.
    pub by_total: bool,
    /// How many at the most; 0 for all.
    pub limit: usize,
    /// Which time.
    pub time: FlameTime,
    /// Of the whole run: also the waits of threads that work for no span.
    pub all_threads: bool,
    /// Also functions that only start the program or a thread and call it, or interpret.
    pub all_functions: bool,
}

impl TopView {
    /// The functions of the run, or of spans with their descendants; `None` where there are no such spans.
    pub fn new(recording: impl Display, report: &Report, chosen: Option<Chosen<'_>>, options: TopOptions) -> Option<Self> {
        let roots = match chosen {
            None => None,
            Some(chosen) => Some(roots_of(report, chosen)?),
        };
        let nodes = roots.as_ref().map(|roots| roots.nodes.as_slice());
        let samples = if options.time == FlameTime::OffCpu { Vec::new() } else { report.samples_below(nodes) };
        let waits = match (options.time, options.all_threads) {
            (FlameTime::OnCpu, _) => Vec::new(),
            (_, true) => report.all_waits().collect(),
            (_, false) => report.waits_below(nodes),
        };
        let is_seen = |wait: &u32| report.recording().waits[*wait as usize].stack.is_some();
        let seen = waits.iter().filter(|wait| is_seen(wait)).count();
        let all = if nodes.is_none() && options.time != FlameTime::OnCpu { report.all_waits().filter(is_seen).count() } else { seen };
        let every = report.weigh(&samples, &waits, Frames::All);
        let mut functions = if options.all_functions { every.clone() } else { report.weigh(&samples, &waits, Frames::Telling) };
        let hidden = every.len() - functions.len();
        functions.sort_by_key(|f| {
            let (own, total) = (f.weight.self_nanos, f.weight.total_nanos);
            std::cmp::Reverse(if options.by_total { (total, own) } else { (own, total) })
        });
        let truncated = if options.limit == 0 { 0 } else { functions.len().saturating_sub(options.limit) };
        functions.truncate(functions.len() - truncated);
        let of_samples = samples.iter().map(|&sample| report.recording().samples[sample as usize].weight_nanos);
        let of_waits = waits.iter().filter(|wait| is_seen(wait)).map(|&wait| report.recording().waits[wait as usize].nanos());
        Some(TopView {
            recording: recording.to_string(),
            span: roots.as_ref().and_then(|roots| roots.handle).map(|handle| handle.to_string()),
            name: roots.as_ref().and_then(|roots| roots.name.clone()),
            trace_id: roots.as_ref().and_then(|roots| roots.trace_id.clone()),
            time: options.time.as_str(),
            samples: (samples.len() + seen) as u64,
            left_out_waits: (all - seen) as u64,
            weight_nanos: nanos(of_samples.chain(of_waits).fold(0, u64::saturating_add)),
            functions: top_frames(report, &functions, &samples, &waits),
            truncated,
            hidden,
            quality: report.quality().iter().map(QualityView::new).collect(),
            all_samples: report.recording().samples.len() as u64,
        })
    }
}

impl ThreadsView {
    /// Every thread.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        ThreadsView { recording: recording.to_string(), threads: thread_views(report) }
    }
}

fn thread_views(report: &Report) -> Vec<ThreadView> {
    let model = report.recording();
    let mut programs: HashMap<u32, &str> = HashMap::new();
    for (i, process) in model.processes.iter().enumerate() {
        programs.insert(process.pid, report.forest().program(model, i));
    }
    let lives = threads::lives(model);
    let importance = report.importance_of_threads(&lives);
    let waited_for = report.threads_waited_for();
    let waited_for = |thread: (u32, u32)| {
        let list = waited_for.get(&thread).map_or(&[][..], |list| list);
        list.iter().take(THREAD_BLOCKERS_MAX).map(WaitedForView::new).collect()
    };
    let view = |(life, about): (&ThreadLife, Importance)| {
        let thread = &model.threads[life.thread];
        let of = |kind: WaitKind| nanos(life.blocked_nanos[kind as usize]);
        ThreadView {
            pid: thread.pid,
            process: programs.get(&thread.pid).map_or_else(String::new, |name| (*name).to_owned()),
            tid: thread.tid,
            name: thread.name.clone(),
            entry: report.entry_function(thread.pid, thread.tid).map(str::to_owned),
            nanos: nanos(life.nanos),
            on_cpu_nanos: nanos(life.on_cpu_nanos),
            ready_nanos: nanos(life.ready_nanos),
            blocked_nanos: BlockedView::new(of),
            blocked_unseen_nanos: nanos(life.unseen_nanos),
            waited_for: waited_for((thread.pid, thread.tid)),
            samples: life.samples,
            rank: about.rank,
            pole: about.pole.map(|pole| Handle::Pole(pole).to_string()),
            in_poles_nanos: nanos(about.in_poles_nanos),
            longest_wait_nanos: nanos(about.longest_wait_nanos),
        }
    };
    lives.iter().zip(importance).map(view).collect()
}

impl WaitedForView {
    fn new(other: &WaitedFor<'_>) -> Self {
        WaitedForView {
            tid: other.tid,
            name: other.name.map(str::to_owned),
            relation: other.relation.as_str(),
            evidence: other.evidence.as_str(),
            nanos: nanos(other.nanos),
        }
    }
}

impl BlockedView {
    fn new(of: impl Fn(WaitKind) -> i64) -> Self {
        BlockedView {
            lock: of(WaitKind::Lock),
            join: of(WaitKind::Join),
            disk: of(WaitKind::Disk),
            network: of(WaitKind::Network),
            sleep: of(WaitKind::Sleep),
            page_fault: of(WaitKind::PageFault),
            child: of(WaitKind::Child),
            pipe: of(WaitKind::Pipe),
            other: of(WaitKind::Other),
        }
    }
}

/// Which spans a view is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// A span, or the spans of a pole: `s12`, `p1`.
    Handle(&'a str),
    /// All spans of a name.
    Name(&'a str),
    /// All spans of a trace, by its id or so much of its beginning that no other trace has it.
    Trace(&'a str),
}

impl Display for Chosen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Chosen::Handle(handle) => f.write_str(handle),
            Chosen::Name(name) => write!(f, "span called “{name}”"),
            Chosen::Trace(id) => write!(f, "single trace {id}"),
        }
    }
}

/// Spans, none below another.
pub(crate) struct Roots {
    pub(crate) nodes: Vec<usize>,
    /// What to call them by, where they are a span or a pole.
    handle: Option<Handle>,
    name: Option<String>,
    trace_id: Option<String>,
    /// What they are, for people.
    title: String,
}

/// The spans that are meant; `None` where there are none.
pub(crate) fn roots_of(report: &Report, chosen: Chosen<'_>) -> Option<Roots> {
    let counted = |nodes: &[usize], what: &str| if let [_] = nodes { what.to_owned() } else { format!("{what} ×{}", nodes.len()) };
    let none = Roots { nodes: Vec::new(), handle: None, name: None, trace_id: None, title: String::new() };
    let roots = match chosen {
        Chosen::Handle(handle) => match handle.parse().ok()? {
            Handle::Node(node) => {
                let handle = Some(Handle::Node(node));
                Roots { nodes: vec![report.node_of(Handle::Node(node))?], handle, title: report.name(node).to_owned(), ..none }
            }
            Handle::Pole(index) => {
                let pole = report.poles().get(index)?;
                let handle = Some(if let [node] = pole.nodes[..] { Handle::Node(node) } else { Handle::Pole(index) });
                Roots { nodes: pole.nodes.clone(), handle, title: counted(&pole.nodes, &pole.name), ..none }
            }
            Handle::Function(_) => return None,
        },
        Chosen::Name(name) => {
            let nodes = report.nodes_of_name(name);
            Roots { title: counted(&nodes, name), nodes, name: Some(name.to_owned()), ..none }
        }
        Chosen::Trace(id) => {
            let trace = trace_of(report, id)?;
            let nodes = report.nodes_of_trace(trace);
            Roots { title: format!("trace {trace}"), nodes, trace_id: Some(trace.to_string()), ..none }
        }
    };
    // One inside another brings nothing that the outer one did not bring.
    (!roots.nodes.is_empty()).then(|| Roots { nodes: report.outermost(roots.nodes), ..roots })
}

/// The trace whose id is this, or alone begins with it.
fn trace_of(report: &Report, id: &str) -> Option<TraceId> {
    let id = id.to_ascii_lowercase();
    let mut traces: Vec<TraceId> = report.recording().spans.iter().map(|span| span.trace_id).collect();
    traces.sort_unstable();
    traces.dedup();
    traces.retain(|trace| trace.to_string().starts_with(&id));
    if let [trace] = traces[..] { Some(trace) } else { None }
}

/// What all spans of this one's name have, where they are more and have more samples.
fn same_name(report: &Report, node: usize, samples: u64) -> Option<SameNameView> {
    let name = report.name(node);
    let nodes = report.nodes_of_name(name);
    let spans = nodes.len() as u64;
    let all = report.samples_below(Some(&report.outermost(nodes))).len() as u64;
    (spans > 1 && all > samples).then(|| SameNameView { name: name.to_owned(), spans, samples: all })
}

impl CalleeView {
    fn new(report: &Report, nodes: &[usize], most: usize) -> Option<Self> {
        let callee = report.callee(nodes)?;
        let processes = &report.recording().processes;
        let mut functions = report.top_functions(&callee.samples);
        functions.truncate(most);
        Some(CalleeView {
            address: callee.address.to_string(),
            processes: callee
                .processes
                .iter()
                .map(|&at| CalleeProcessView { pid: processes[at].pid, name: report.forest().program(report.recording(), at).to_owned() })
                .collect(),
            answers: callee.answers,
            samples: callee.samples.len() as u64,
            weight_nanos: weight(report, &callee.samples),
            top_frames: top_frames(report, &functions, &callee.samples, &[]),
            waits: callee.waits.iter().take(most).map(|sum| WaitView::new(report, sum)).collect(),
            text: report.callee_words(&callee),
        })
    }
}

/// What samples stand for.
fn weight(report: &Report, samples: &[u32]) -> i64 {
    nanos(samples.iter().map(|&sample| report.recording().samples[sample as usize].weight_nanos).sum_nanos())
}

impl BlockedByView {
    /// Whom these waits were for; at most so many functions and waits of each.
    fn new(report: &Report, sum: &WaitSum<'_>, most: usize) -> Option<Self> {
        let blocked = report.blocked_by(sum);
        let text = report.blocked_by_words(sum, &blocked)?;
        let BlockedBy { list, one_of } = blocked;
        let thread = |blocker| {
            let text = report.blocker_words(sum.wait, &blocker);
            let Blocker { pid, tid, name, evidence, nanos, samples, waits, .. } = blocker;
            let mut functions = report.top_functions(&samples);
            functions.truncate(most);
            BlockerView {
                pid,
                tid,
                name: name.map(str::to_owned),
                evidence: evidence.as_str(),
                nanos,
                samples: samples.len() as u64,
                weight_nanos: weight(report, &samples),
                top_frames: top_frames(report, &functions, &samples, &[]),
                waits: waits.iter().take(most).map(|sum| WaitView::new(report, sum)).collect(),
                text,
            }
        };
        Some(BlockedByView {
            relation: sum.relation?.as_str(),
            threads: list.into_iter().map(thread).collect(),
            one_of: one_of.map(|(nanos, threads)| OneOfView { threads, nanos }),
            text,
        })
    }
}

impl WaitView {
    /// These waits, without whom they were for.
    pub(super) fn new(report: &Report, sum: &WaitSum<'_>) -> Self {
        let wait = sum.wait;
        let places = sum.places.iter().map(|place| PlaceView { file: place.file.to_owned(), line: place.line, nanos: place.nanos });
        WaitView {
            kind: wait.kind.as_str(),
            syscall: (!wait.syscall.is_empty()).then(|| wait.syscall.clone()),
            function: report.waiting_function(wait).map(str::to_owned),
            file: sum.places.first().map_or_else(String::new, |place| place.file.to_owned()),
            line: sum.places.first().map_or(0, |place| place.line),
            nanos: sum.nanos,
            threads: sum.threads as u64,
            places: places.take(PLACES_MAX).collect(),
            blocked_by: None,
        }
    }

    /// These waits, and whom they were for.
    pub(super) fn with_blockers(report: &Report, sum: &WaitSum<'_>) -> Self {
        WaitView { blocked_by: BlockedByView::new(report, sum, POLE_FRAMES_MAX), ..WaitView::new(report, sum) }
    }
}

impl QualityView {
    fn new(note: &Note) -> Self {
        QualityView { code: note.code.to_owned(), count: note.count, detail: note.detail.clone() }
    }
}

impl From<States> for StatesView {
    fn from(states: States) -> Self {
        StatesView {
            on_cpu_nanos: states.on_cpu_nanos,
            runnable_nanos: states.runnable_nanos,
            in_child_nanos: states.in_child_nanos,
            blocked_nanos: BlockedView::new(|kind| states.blocked_nanos[kind as usize]),
            blocked_unseen_nanos: states.blocked_unseen_nanos,
            awaiting_nanos: states.awaiting_nanos,
            remote_nanos: states.remote_nanos,
            unaccounted_nanos: states.unaccounted_nanos,
            cpu_nanos: states.cpu_nanos,
            exact: states.is_exact(),
            evidence: states.evidence.as_str(),
        }
    }
}

impl From<LinkCounts> for LinksView {
    fn from(counts: LinkCounts) -> Self {
        let LinkCounts { record, journal, label, inferred, ambiguous, none } = counts;
        LinksView { record, journal, label, inferred, ambiguous, none }
    }
}

fn range(saving: Saving) -> RangeNanos {
    [saving.low_nanos, saving.high_nanos]
}

pub(super) fn unix_nano(at: Timestamp) -> String {
    at.unix_nanos().max(0).to_string()
}

/// Sums of time fit 63 bits for 292 years.
pub(super) fn nanos(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn attributes(attributes: &Attributes) -> Vec<AttributeView> {
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
