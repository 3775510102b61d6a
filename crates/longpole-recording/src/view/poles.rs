//! Long poles.

use std::fmt::Display;

use longpole_analysis::pulumi::urn::title_of_urn;
use longpole_analysis::report::FEW_SAMPLES;
use longpole_analysis::schedule::poles::Pole;
use longpole_analysis::{Handle, Report};
use serde::Serialize;

use super::callee::CalleeView;
use super::functions::{POLE_FRAMES_MAX, TopFrameView, top_frames, weight};
use super::select::by_time_on_path;
use super::shared::{RangeNanos, SpansTruncated, node_handle, range};
use super::states::StatesView;
use super::waits::BlockedByView;

/// Poles of which it is said what they save with all before them: each takes a replay of the run.
const SUMMED_POLES_MAX: usize = 16;

/// Handles listed for a pole: a group of a loop may have hundred thousand spans.
const POLE_SPANS_MAX: usize = 100;

/// All poles.
#[derive(Debug, Clone, Serialize)]
pub struct PolesView {
    /// `r7`.
    pub recording: String,
    /// How long the run took.
    pub wall_nanos: i64,
    /// Ranked by what their own time saves.
    pub poles: Vec<PoleView>,
    /// What this list left out.
    pub truncated: PolesTruncated,
}

/// How many entries a list left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PolesTruncated {
    /// Poles.
    pub poles: usize,
}

/// A long pole.
#[derive(Debug, Clone, Serialize)]
pub struct PoleView {
    /// `p1`.
    pub handle: String,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// The piece of work it is part of.
    pub context: Option<String>,
    /// Spans in the group.
    pub count: u64,
    /// Their handles, longest on the path first.
    pub spans: Vec<String>,
    /// What the list of spans left out.
    pub truncated: SpansTruncated,
    /// Time of the critical path in which one of them was innermost.
    pub on_path_nanos: i64,
    /// What the run would end earlier if they and their descendants took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// The same at half their time.
    pub saves_if_half_nanos: RangeNanos,
    /// The same if only their own time were zero.
    pub saves_own_nanos: RangeNanos,
    /// What the run would end earlier if this pole and all before it took no time; of the first 16.
    pub saves_with_those_before_nanos: Option<RangeNanos>,
    /// `declared` or `inferred`.
    pub evidence: &'static str,
    /// States of their own time on the path.
    pub states: StatesView,
    /// Why it takes its time.
    pub reason: ReasonView,
    /// Who answers its spans, where they call one address.
    pub callee: Option<CalleeView>,
    /// Which threads it waited for, where that is most of what it was blocked for.
    pub blocked_by: Option<BlockedByView>,
    /// Handle of the pole inside it that explains most of what it saves.
    pub contains: Option<String>,
    /// What would end last in its place if it took no time: why it saves less than it takes.
    pub limited_by: Option<LimitView>,
    /// URN of the cloud resource that it works on.
    pub resource: Option<String>,
    /// Functions of their own samples.
    pub top_frames: Vec<TopFrameView>,
    /// Their own samples.
    pub samples: u64,
    /// What those stand for, of all threads.
    pub weight_nanos: i64,
    /// Whether they are too few to measure with.
    pub few_samples: bool,
}

/// A span that limits what a pole saves.
#[derive(Debug, Clone, Serialize)]
pub struct LimitView {
    /// `s9`.
    pub handle: String,
    /// The resource that it works on, or its operation.
    pub name: String,
    /// Handle of the pole that it belongs to.
    pub pole: Option<String>,
}

/// Why a pole takes its time.
#[derive(Debug, Clone, Serialize)]
pub struct ReasonView {
    /// `on_cpu`, `waits`, `mixed`, `few_samples` or `no_samples`.
    pub code: &'static str,
    /// For people.
    pub text: String,
    /// The function that the text names.
    pub function: Option<String>,
    /// The function of a library that the text says most of it is in.
    pub mostly_in: Option<String>,
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

pub(super) fn pole_views(report: &Report, limit: usize) -> Vec<PoleView> {
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
