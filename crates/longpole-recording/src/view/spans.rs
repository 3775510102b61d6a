//! All spans of one name, or of one cloud resource, together.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Display;

use longpole_analysis::Report;
use longpole_analysis::tree::forest::NodeSource;
use longpole_model::{NodeId, SampleId, StatusCode};
use serde::Serialize;

use super::functions::{TopFrameView, top_frames};
use super::shared::{listed, node_handle};
use super::span::{SPAN_FRAMES_MAX, SPAN_WAITS_MAX, SavingsView};
use super::states::StatesView;
use super::waits::WaitView;

/// Spans listed, longest first: a loop may have hundred thousand.
const SPANS_MAX: usize = 500;

/// All spans of one name, or of one cloud resource, together.
#[derive(Debug, Clone, Serialize)]
pub struct SpansView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The name of the spans, or of the resource that they work on.
    pub name: String,
    /// Their services.
    pub services: Vec<String>,
    /// How many there are.
    pub count: u64,
    /// How many of them are not inside another of them. States are of these.
    pub outermost: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How long they are.
    pub durations: DurationsView,
    /// Where their time went, summed over all of them.
    pub states: StatesView,
    /// What they waited for, longest first.
    pub waits: Vec<WaitView>,
    /// What all of them together save.
    pub savings: SavingsView,
    /// Their own samples.
    pub samples: u64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// The spans, longest first, at most 500.
    pub spans: Vec<SpanOfNameView>,
    /// How many spans the list omits.
    pub truncated: usize,
    /// Whether all of them are processes without spans.
    pub are_processes: bool,
}

/// How long spans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DurationsView {
    /// The sum; spans inside others of them count once.
    pub sum_nanos: i64,
    /// The shortest.
    pub min_nanos: i64,
    /// The median; of an even number, halfway between the middle two.
    pub median_nanos: i64,
    /// The longest.
    pub max_nanos: i64,
}

/// One span of a name or of a resource.
#[derive(Debug, Clone, Serialize)]
pub struct SpanOfNameView {
    /// Handle, such as `s12`.
    pub handle: String,
    /// Its own name: that of the view, unless the view is of a resource.
    pub name: String,
    /// Service.
    pub service: String,
    /// Start.
    pub start_nanos: i64,
    /// Length.
    pub duration_nanos: i64,
    /// Time of the critical path in which it was the innermost.
    pub on_path_nanos: i64,
    /// Whether it failed.
    pub error: bool,
    /// The command and its arguments, of a process without spans; else empty.
    pub arguments: Vec<String>,
}

impl SpansView {
    /// The spans of this name, or of the resource of this name; `None` where there are none.
    pub fn new(recording: impl Display, report: &Report, name: &str) -> Option<Self> {
        let mut nodes = report.nodes_of_name(name);
        let forest = report.forest();
        let duration = |node: NodeId| forest[node].range.nanos();
        let failed = |node: NodeId| matches!(forest[node].source, NodeSource::Span(span) if report.recording().spans[span].status.code == StatusCode::Error);
        let mut lengths: Vec<i64> = nodes.iter().map(|&node| duration(node)).collect();
        lengths.sort_unstable();
        // A span inside another of them takes no time of its own.
        let outermost = report.outermost(nodes.clone());
        let (&min_nanos, &max_nanos) = lengths.first().zip(lengths.last())?;
        let on_path = |node: NodeId| report.critical_path().on_path[node];
        let samples: Vec<SampleId> = {
            let mut samples: Vec<SampleId> = nodes.iter().flat_map(|&node| report.own_samples(node).iter().copied()).collect();
            samples.sort_unstable();
            samples
        };
        let mut functions = report.top_functions(&samples);
        functions.truncate(SPAN_FRAMES_MAX);
        let services: BTreeSet<&str> = nodes.iter().map(|&node| report.service(node)).collect();
        let savings = SavingsView::new(&report.savings_of(&nodes), nodes.iter().map(|&node| on_path(node)).sum());
        let (states, waits) = (report.states_of_nodes(&outermost).into(), report.waits_of_nodes(&outermost));
        nodes.sort_by_key(|&node| (Reverse(duration(node)), node));
        Some(SpansView {
            recording: recording.to_string(),
            name: name.to_owned(),
            services: services.into_iter().map(str::to_owned).collect(),
            count: nodes.len() as u64,
            outermost: outermost.len() as u64,
            errors: nodes.iter().filter(|node| failed(**node)).count() as u64,
            durations: DurationsView {
                sum_nanos: outermost.iter().map(|&node| duration(node)).fold(0, i64::saturating_add),
                min_nanos,
                median_nanos: median(&lengths),
                max_nanos,
            },
            states,
            waits: waits.iter().take(SPAN_WAITS_MAX).map(|sum| WaitView::with_blockers(report, sum)).collect(),
            savings,
            samples: samples.len() as u64,
            top_frames: top_frames(report, &functions, &samples, &[]),
            truncated: nodes.len().saturating_sub(SPANS_MAX),
            are_processes: nodes.iter().all(|&node| report.is_plain_process(node)),
            spans: nodes
                .iter()
                .take(SPANS_MAX)
                .map(|&node| SpanOfNameView {
                    handle: node_handle(node),
                    name: listed(report.name(node)),
                    service: listed(report.service(node)),
                    start_nanos: forest[node].range.start.nanos_since(report.origin()),
                    duration_nanos: duration(node),
                    on_path_nanos: on_path(node).0,
                    error: failed(node),
                    arguments: match forest.process(report.recording(), node) {
                        Some(process) if report.is_plain_process(node) => process.arguments.to_vec(),
                        _ => Vec::new(),
                    },
                })
                .collect(),
        })
    }
}

/// The middle of sorted lengths; between the middle two of an even number.
fn median(sorted: &[i64]) -> i64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    low + (high - low) / 2
}
