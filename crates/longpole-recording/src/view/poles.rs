//! Long poles.

use longpole_model::{Nanos, NodeId, PoleId};
use std::fmt::Display;

use longpole_analysis::pulumi::urn::title_of_urn;
use longpole_analysis::report::FEW_SAMPLES;
use longpole_analysis::report::names::NamedPart;
use longpole_analysis::report::reason::{Reason, ReasonCode};
use longpole_analysis::schedule::poles::{LimitedBy, Pole};
use longpole_analysis::words::{self, Piece, Words};
use longpole_analysis::{Handle, Report};
use serde::{Deserialize, Serialize};

use super::callee::CalleeView;
use super::functions::{POLE_FRAMES_MAX, TopFrameView, top_frames, weight};
use super::select::by_time_on_path;
use super::shared::{EvidenceView, RangeNanos, SpansTruncated, node_handle, range};
use super::states::StatesView;
use super::summarised::SummarisedView;
use super::waits::BlockedByView;

/// Poles with a saving together with all poles before them: each takes a replay of the run.
const SUMMED_POLES_MAX: usize = 16;

/// Handles listed for a pole: a group of a loop may have hundred thousand spans.
const POLE_SPANS_MAX: usize = 100;

/// All long poles of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PolesView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// What it is of: says why there are no poles.
    pub of: SummarisedView,
    /// How long the run took.
    pub wall_nanos: i64,
    /// Ranked by `saves_own_nanos`.
    pub poles: Vec<PoleView>,
    /// The poles that this list omits.
    pub truncated: PolesTruncated,
    /// Time of the critical path in no pole: between operations, or in the command itself while it waits for none of them. With the times of
    /// all poles on the path and `truncated.on_path_nanos` and `idle_nanos` it sums to `wall_nanos`.
    pub between_nanos: i64,
    /// Time on the critical path in which processes waited for work to arrive: it belongs to no pole.
    pub idle_nanos: i64,
    /// Whether longpole attached to processes that ran on after the recording: then no end can come sooner, and there are no poles.
    pub attached: bool,
}

/// The poles that a list omits.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PolesTruncated {
    /// How many.
    pub poles: usize,
    /// Their time on the critical path.
    pub on_path_nanos: i64,
}

impl PolesTruncated {
    /// Those behind the first `limit`.
    pub(super) fn behind(report: &Report, limit: usize) -> PolesTruncated {
        let omitted = report.poles().iter().skip(limit);
        let on_path: Nanos = omitted.map(|pole| pole.on_path).sum();
        PolesTruncated {
            poles: report.poles().len().saturating_sub(limit) + report.poles_truncated(),
            on_path_nanos: (on_path + report.truncated_on_path()).0,
        }
    }
}

/// A long pole: a group of spans on the critical path. `saves_*` say how much earlier the whole run would end. Savings do not add up
/// where poles run beside each other or contain each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PoleView {
    /// Handle, such as `p1`.
    pub handle: String,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// The piece of work that it belongs to, such as `create web-bundle`.
    pub context: Option<String>,
    /// The part of their own time that it is, where samples and waits tell one: the other fields are about that part alone. Null for a pole that is
    /// its spans as a whole.
    pub part: Option<PartView>,
    /// Spans in the group.
    pub count: u64,
    /// Their handles, most time on the path first, at most 100.
    pub spans: Vec<String>,
    /// How many handles `spans` omits.
    pub truncated: SpansTruncated,
    /// Time of the critical path in which one of these spans was the innermost.
    pub on_path_nanos: i64,
    /// Saving if these spans and their descendants took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// Saving if they took half their time.
    pub saves_if_half_nanos: RangeNanos,
    /// Saving if only their own time, outside their children, were zero.
    pub saves_own_nanos: RangeNanos,
    /// Saving if this pole and all before it took no time; null beyond the first 16.
    pub saves_with_those_before_nanos: Option<RangeNanos>,
    /// Whether spans declare what they waited for.
    pub evidence: EvidenceView,
    /// States of their own time on the path.
    pub states: StatesView,
    /// Why it takes its time.
    pub reason: ReasonView,
    /// The process that answers its spans, if they call one address.
    pub callee: Option<CalleeView>,
    /// Which threads the waits of the reason were for.
    pub blocked_by: Option<BlockedByView>,
    /// Handle of the pole inside it that explains most of its saving.
    pub contains: Option<String>,
    /// Whether all time of that pole lies inside: an operation may go on after its parent.
    pub contains_all: bool,
    /// The span that is on the path in its place, if it took no time: why the pole saves less than it takes. Null where it saves all, or where the ends of
    /// the range disagree.
    pub limited_by: Option<LimitView>,
    /// URN of the cloud resource that it works on.
    pub resource: Option<String>,
    /// Functions of its own samples while it was on the path, at most 5.
    pub top_frames: Vec<TopFrameView>,
    /// These samples.
    pub samples: u64,
    /// The CPU time that these samples stand for, over all threads.
    pub weight_nanos: i64,
    /// Whether these samples are too few for reliable shares.
    pub few_samples: bool,
}

/// A part of the own time of spans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartView {
    /// What it is.
    pub kind: PartKindView,
    /// The part for people, such as `insert_one (disk)`; empty for `busy`.
    pub text: String,
    /// The function that computes or waits.
    pub function: Option<String>,
    /// Its handle, such as `f3`.
    pub handle: Option<String>,
    /// The source file of that, if it is known.
    pub file: Option<String>,
    /// The line with the most time.
    pub line: Option<u32>,
}

/// What a part of own time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKindView {
    /// A function computes, with what it calls.
    Computes,
    /// A function waits.
    Waits,
    /// Everything else.
    Rest,
    /// All but the time in which it was idle, or waited for another process of the run that is named itself.
    Busy,
}

/// A span, or another thread of the pole's process, that limits what a pole saves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LimitView {
    /// Handle, such as `s9`; of a thread, that of its process.
    pub handle: String,
    /// The resource that it works on, or its operation; `thread worker`.
    pub name: String,
    /// Handle of the pole that it belongs to.
    pub pole: Option<String>,
    /// The longer operation that it is a part of, if that is none that the pole lies in.
    pub within: Option<WithinView>,
}

/// An operation that another one is a part of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WithinView {
    /// Handle, such as `s7`.
    pub handle: String,
    /// The resource that it works on, or its operation.
    pub name: String,
}

/// Why a pole takes its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReasonView {
    /// The kind of the reason.
    pub code: ReasonCodeView,
    /// The reason for people.
    pub text: String,
    /// The same text in pieces: names of functions and the words between them.
    pub pieces: Vec<PieceView>,
    /// The function that the text names: of the program's own code where there is some.
    pub function: Option<String>,
    /// The library function that holds most of that, if the text names one.
    pub mostly_in: Option<String>,
}

/// A piece of a text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PieceView {
    /// What it is.
    pub kind: PieceKindView,
    /// What stands in the text.
    pub text: String,
}

/// What a piece of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKindView {
    /// Plain words.
    Text,
    /// The name of a function that was on a CPU.
    Function,
    /// The name of a function that waited.
    WaitingFunction,
}

/// The kind of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCodeView {
    /// It computes.
    OnCpu,
    /// It is hardly on a CPU: blocked, awaiting, remote, runnable or unaccounted.
    Waits,
    /// Some of both.
    Mixed,
    /// Its own time is too short for the sampling rate.
    FewSamples,
    /// The recording has no samples.
    NoSamples,
}

impl PolesView {
    /// All poles of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        PolesView {
            recording: recording.to_string(),
            of: SummarisedView::new(report),
            wall_nanos: report.wall().0,
            poles: pole_views(report, usize::MAX),
            truncated: PolesTruncated::behind(report, usize::MAX),
            between_nanos: report.between_operations().0,
            idle_nanos: report.idle_on_path().0,
            attached: report.is_attached(),
        }
    }
}

pub(super) fn pole_views(report: &Report, limit: usize) -> Vec<PoleView> {
    let together = report.saves_with_those_before(limit.min(SUMMED_POLES_MAX));
    let together = together.into_iter().map(|saving| Some(range(saving))).chain(std::iter::repeat(None));
    report.poles().enumerated().take(limit).zip(together).map(|((id, pole), together)| PoleView::new(report, id, pole, together)).collect()
}

impl PoleView {
    fn new(report: &Report, id: PoleId, pole: &Pole, together: Option<RangeNanos>) -> Self {
        let samples = report.samples_of_pole(pole);
        let mut functions = report.top_functions(&samples);
        functions.truncate(POLE_FRAMES_MAX);
        PoleView {
            handle: Handle::Pole(id).to_string(),
            service: pole.service.clone(),
            name: pole.name.clone(),
            context: pole.context.clone(),
            part: report.part_of(pole).map(|part| PartView::new(part, report.place_of_part(pole))),
            count: pole.nodes.len() as u64,
            spans: by_time_on_path(report, pole).into_iter().take(POLE_SPANS_MAX).map(node_handle).collect(),
            truncated: SpansTruncated { spans: pole.nodes.len().saturating_sub(POLE_SPANS_MAX) },
            on_path_nanos: pole.on_path.0,
            saves_if_zero_nanos: range(pole.savings.if_zero),
            saves_if_half_nanos: range(pole.savings.if_half),
            saves_own_nanos: range(pole.savings.own),
            saves_with_those_before_nanos: together,
            evidence: pole.savings.evidence.into(),
            states: report.states_of_pole(pole).into(),
            reason: ReasonView::new(&report.reason(pole)),
            callee: CalleeView::new(report, &pole.nodes, POLE_FRAMES_MAX),
            blocked_by: report.pole_wait(pole).and_then(|sum| BlockedByView::new(report, &sum, POLE_FRAMES_MAX)),
            contains: pole.contains.map(|inner| Handle::Pole(inner).to_string()),
            contains_all: pole.contains_all,
            limited_by: pole.limited_by.map(|limit| LimitView::new(report, pole, limit)),
            resource: pole.resource.clone(),
            top_frames: top_frames(report, &functions, &samples, &[]),
            samples: samples.len() as u64,
            weight_nanos: weight(report, &samples),
            few_samples: (samples.len() as u64) < FEW_SAMPLES,
        }
    }
}

impl LimitView {
    fn new(report: &Report, pole: &Pole, limit: LimitedBy) -> LimitView {
        match limit {
            LimitedBy::Node(node) => LimitView {
                handle: node_handle(node),
                name: title_of_node(report, node),
                within: report.limit_is_in(pole).map(|node| WithinView { handle: node_handle(node), name: title_of_node(report, node) }),
                pole: report
                    .poles()
                    .enumerated()
                    .find(|(_, p)| p.nodes.binary_search(&node).is_ok())
                    .map(|(p, _)| Handle::Pole(p).to_string()),
            },
            LimitedBy::Thread(node, thread) => {
                LimitView { handle: node_handle(node), name: words::thread(report.thread_name(thread)), within: None, pole: None }
            }
        }
    }
}

/// The resource that a node works on, or its operation.
fn title_of_node(report: &Report, node: NodeId) -> String {
    report.resource(node).map_or_else(|| report.name(node).to_owned(), title_of_urn)
}

impl PartView {
    fn new(part: NamedPart<'_>, place: Option<(&str, u32)>) -> Self {
        let function = part.function();
        PartView {
            kind: part.into(),
            text: words::part(part),
            function: function.map(|function| function.function.clone()),
            handle: part.handle().map(|handle| handle.to_string()),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
        }
    }
}

impl From<NamedPart<'_>> for PartKindView {
    fn from(part: NamedPart<'_>) -> Self {
        match part {
            NamedPart::Computes(..) => PartKindView::Computes,
            NamedPart::Waits(..) => PartKindView::Waits,
            NamedPart::Rest => PartKindView::Rest,
            NamedPart::Busy => PartKindView::Busy,
        }
    }
}

impl ReasonView {
    fn new(reason: &Reason<'_>) -> Self {
        let words = words::reason(reason);
        ReasonView {
            code: reason.code().into(),
            text: words.to_string(),
            pieces: words.pieces().iter().map(PieceView::new).collect(),
            function: reason.function().map(str::to_owned),
            mostly_in: reason.mostly_in().map(str::to_owned),
        }
    }

    /// The text, to be cut to a width.
    pub fn words(&self) -> Words {
        self.pieces.iter().map(PieceView::piece).collect()
    }
}

impl ReasonCodeView {
    /// Whether the reason gives shares of a time.
    pub fn has_shares(self) -> bool {
        matches!(self, ReasonCodeView::OnCpu | ReasonCodeView::Waits | ReasonCodeView::Mixed)
    }
}

impl PieceView {
    fn new(piece: &Piece) -> Self {
        let kind = match piece {
            Piece::Text(_) => PieceKindView::Text,
            Piece::Function(_) => PieceKindView::Function,
            Piece::WaitingFunction(_) => PieceKindView::WaitingFunction,
        };
        PieceView { kind, text: piece.as_str().to_owned() }
    }

    fn piece(&self) -> Piece {
        let text = self.text.clone();
        match self.kind {
            PieceKindView::Text => Piece::Text(text),
            PieceKindView::Function => Piece::Function(text),
            PieceKindView::WaitingFunction => Piece::WaitingFunction(text),
        }
    }
}

impl From<ReasonCode> for ReasonCodeView {
    fn from(it: ReasonCode) -> Self {
        match it {
            ReasonCode::OnCpu => ReasonCodeView::OnCpu,
            ReasonCode::Waits => ReasonCodeView::Waits,
            ReasonCode::Mixed => ReasonCodeView::Mixed,
            ReasonCode::FewSamples => ReasonCodeView::FewSamples,
            ReasonCode::NoSamples => ReasonCodeView::NoSamples,
        }
    }
}
