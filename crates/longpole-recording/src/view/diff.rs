//! Two recordings side by side, in their outside form.

use longpole_analysis::Report;
use longpole_analysis::profile::ProfileDiff;
use longpole_analysis::report::diff::{Diff, Fate, OperationDiff, Side, StateDiff};
use longpole_analysis::report::fixed_pole::FixedPole;
use longpole_analysis::{Handle, words};
use longpole_model::{StateKind, SumNanos};
use serde::Serialize;

use super::profiles::FunctionChangeView;
use super::shared::{RangeNanos, nanos, node_handle, range, unix_nano};
use super::summarised::SummarisedView;
use super::waits::WaitKindView;

/// Share of the longer run. `diff` omits smaller changes, as it does those beyond the limit.
const SHOWN_PER_MILLE_MIN: u64 = 1;

/// Two runs took the same time if they differ by no more than this share of the longer one, and no operation by more.
const SAME_PERCENT_MAX: u32 = 1;

/// Why one recording took longer than another.
#[derive(Debug, Clone, Serialize)]
pub struct DiffView {
    /// Always `longpole.diff/1`.
    pub schema: &'static str,
    /// The first recording.
    pub a: DiffedView,
    /// The second recording.
    pub b: DiffedView,
    /// For people: what differs beside the time, such as the command.
    pub notes: Vec<String>,
    /// For people: what became of the promise of the first, or that nothing differs; null where neither is so.
    pub verdict: Option<String>,
    /// The pole that was fixed in between; null if none was.
    pub fixed: Option<FixedPoleView>,
    /// How much longer the second took; the operations sum to it.
    pub delta_nanos: i64,
    /// Operations, the largest difference first.
    pub operations: Vec<OperationDiffView>,
    /// What this list omits.
    pub truncated: OperationsTruncated,
    /// Their code, if one of them is a profile, whose samples have no times: it has no critical path. Otherwise null.
    pub code: Option<CodeDiffView>,
}

/// A pole of the first recording that the second one has no more, or less of.
#[derive(Debug, Clone, Serialize)]
pub struct FixedPoleView {
    /// Its handle in the first recording, such as `p1`.
    pub handle: String,
    /// Its name: `web-bundle › compress_bundle`.
    pub name: String,
    /// What the first recording promised: how much earlier it would have ended without this pole.
    pub promised_nanos: RangeNanos,
    /// What the second recording would still save without it; null if it has no such pole.
    pub left_nanos: Option<RangeNanos>,
}

/// The samples of two recordings, function by function.
#[derive(Debug, Clone, Serialize)]
pub struct CodeDiffView {
    /// Time in samples of each.
    pub sampled_nanos: [i64; 2],
    /// Functions, the one whose own part of that changed most first.
    pub functions: Vec<FunctionChangeView>,
    /// How many functions `functions` omits.
    pub truncated: usize,
}

/// One of the two recordings.
#[derive(Debug, Clone, Serialize)]
pub struct DiffedView {
    /// Name of the recording, such as `r7`, or the file.
    pub recording: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Start, in nanoseconds since 1970.
    pub start_unix_nano: String,
    /// How long it took.
    pub wall_nanos: i64,
    /// The machine.
    pub host: String,
    /// Samples per second.
    pub rate_hz: u32,
}

/// One operation in both recordings.
#[derive(Debug, Clone, Serialize)]
pub struct OperationDiffView {
    /// Service.
    pub service: String,
    /// Operation, with `#` for numbers and ids in it.
    pub name: String,
    /// Type and name of the cloud resource that it works on.
    pub resource: Option<String>,
    /// Which of the two runs have it.
    pub fate: FateView,
    /// How much longer the second run is because of it.
    pub delta_nanos: i64,
    /// The operation in the first recording.
    pub a: SideView,
    /// The operation in the second recording.
    pub b: SideView,
    /// What it did longer or shorter while it was on the path, the largest difference first, without small ones.
    pub states: Vec<StateDiffView>,
}

/// Which of two runs have an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FateView {
    /// Only the second.
    Added,
    /// Only the first.
    Removed,
    /// Both.
    Kept,
}

/// How much longer an operation was in one state.
#[derive(Debug, Clone, Serialize)]
pub struct StateDiffView {
    /// The state.
    pub state: DiffStateView,
    /// What it waited for; null for waits that were not sampled, and in other states.
    pub kind: Option<WaitKindView>,
    /// The state for people.
    pub text: &'static str,
    /// How much more in the second recording than in the first.
    pub delta_nanos: i64,
    /// The function that holds most of it.
    pub function: Option<String>,
}

/// A state of an operation on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffStateView {
    /// On a CPU.
    OnCpu,
    /// Ready to run while others had the CPUs.
    Runnable,
    /// Blocked.
    Blocked,
    /// A child works for it.
    InChild,
    /// Open with no thread working for it.
    Awaiting,
    /// The network or another host works for it.
    Remote,
    /// No record tells.
    Unaccounted,
}

/// An operation in one of the two recordings.
#[derive(Debug, Clone, Serialize)]
pub struct SideView {
    /// How many spans.
    pub count: u64,
    /// Their durations, summed.
    pub total_nanos: i64,
    /// Time of the critical path in which one of them was the innermost.
    pub on_path_nanos: i64,
    /// How much of that was on a CPU.
    pub on_path_cpu_nanos: i64,
    /// Handle of the one with most time on the path; null if there are none.
    pub handle: Option<String>,
}

/// What a list of operations omits.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct OperationsTruncated {
    /// Omitted operations.
    pub operations: usize,
    /// What they explain together.
    pub delta_nanos: i64,
}

impl DiffView {
    /// Compares two recordings; at most `limit` operations, of those that change a thousandth of the longer run; 0 for all that
    /// differ.
    pub fn new((a_name, a): (&str, &Report), (b_name, b): (&str, &Report), limit: usize) -> Self {
        let diff = Diff::new(a, b);
        let mut operations: Vec<OperationDiffView> = diff.changed().map(OperationDiffView::new).collect();
        let longer = diff.a_wall.0.max(diff.b_wall.0).unsigned_abs();
        let matter = operations
            .partition_point(|o| u128::from(o.delta_nanos.unsigned_abs()) * 1000 >= u128::from(longer) * u128::from(SHOWN_PER_MILLE_MIN));
        let left_out = if limit == 0 { Vec::new() } else { operations.split_off(limit.min(matter)) };
        let (of_a, of_b) = (DiffedView::new(a_name, a), DiffedView::new(b_name, b));
        let code = (a.is_profile() || b.is_profile()).then(|| CodeDiffView::new(a, b, limit));
        let fixed = if code.is_none() { FixedPoleView::between(a, b) } else { None };
        let is_within = |nanos: u64| u128::from(nanos) * 100 <= u128::from(longer) * u128::from(SAME_PERCENT_MAX);
        let is_same = code.is_none()
            && a_name != b_name
            && is_within(diff.delta().0.unsigned_abs())
            && operations.first().is_none_or(|largest| is_within(largest.delta_nanos.unsigned_abs()));
        let verdict = match &fixed {
            Some(fixed) => Some(fixed.verdict(a_name, b_name, -diff.delta().0)),
            None => is_same.then(|| words::no_difference(a_name, b_name, SAME_PERCENT_MAX)),
        };
        DiffView {
            schema: "longpole.diff/1",
            verdict,
            fixed,
            notes: notes((&of_a, SummarisedView::new(a)), (&of_b, SummarisedView::new(b))),
            a: of_a,
            b: of_b,
            delta_nanos: diff.delta().0,
            operations,
            code,
            truncated: OperationsTruncated {
                operations: left_out.len(),
                delta_nanos: left_out.iter().map(|operation| operation.delta_nanos).sum_nanos(),
            },
        }
    }
}

impl FixedPoleView {
    fn between(a: &Report, b: &Report) -> Option<FixedPoleView> {
        let FixedPole { pole: id, promised, left } = FixedPole::between(a, b)?;
        let pole = &a.poles()[id];
        let part = a.part_of(pole).map(words::part);
        Some(FixedPoleView {
            handle: Handle::Pole(id).to_string(),
            name: words::name_of_pole(pole.context.as_deref(), &pole.name, pole.nodes.len() as u64, part.as_deref()),
            promised_nanos: range(promised),
            left_nanos: left.map(range),
        })
    }

    fn verdict(&self, a_name: &str, b_name: &str, gained: i64) -> String {
        words::fixed_pole((&self.handle, &self.name), (a_name, self.promised_nanos), (b_name, self.left_nanos), gained)
    }
}

impl CodeDiffView {
    fn new(a: &Report, b: &Report, limit: usize) -> CodeDiffView {
        let sampled_nanos = [a, b].map(|report| nanos(report.sampled_nanos()));
        let diff = ProfileDiff::of_sums(sampled_nanos, [a.function_sums(), b.function_sums()]);
        // Those that only call others are on both sides for that.
        let changed = || diff.functions.iter().filter(|it| it.owns[0] != it.owns[1] || it.shares[0] != it.shares[1]);
        let limit = if limit == 0 { usize::MAX } else { limit };
        CodeDiffView {
            sampled_nanos,
            functions: changed().take(limit).map(FunctionChangeView::new).collect(),
            truncated: changed().count().saturating_sub(limit),
        }
    }
}

/// What a recording is of, in a sentence.
fn in_words(of: SummarisedView) -> &'static str {
    match of {
        SummarisedView::Command | SummarisedView::CommandAlone => "a recorded command",
        SummarisedView::Attached => "a recording of running processes",
        SummarisedView::Trace => "a trace of a server",
        SummarisedView::File => "an imported trace",
        SummarisedView::Profile => "an imported profile",
    }
}

/// What differs beside the time.
fn notes(a: (&DiffedView, SummarisedView), b: (&DiffedView, SummarisedView)) -> Vec<String> {
    let mut notes = Vec::new();
    let ((a, of_a), (b, of_b)) = (a, b);
    let is_run = |of: SummarisedView| matches!(of, SummarisedView::Command | SummarisedView::CommandAlone);
    if in_words(of_a) != in_words(of_b) {
        notes.push(words::kinds_differ((&a.recording, in_words(of_a)), (&b.recording, in_words(of_b))));
    } else if a.command != b.command && is_run(of_a) {
        notes.push(words::commands_differ(&a.command.join(" "), &b.command.join(" ")));
    }
    if a.host != b.host && !a.host.is_empty() && !b.host.is_empty() {
        notes.push(words::machines_differ(&a.host, &b.host));
    }
    if a.rate_hz != b.rate_hz && is_run(of_a) && is_run(of_b) {
        notes.push(words::rates_differ(a.rate_hz, b.rate_hz));
    }
    let has_profile = [of_a, of_b].contains(&SummarisedView::Profile);
    if !has_profile && (a.wall_nanos == 0 || b.wall_nanos == 0) {
        notes.push(words::took_no_time(if a.wall_nanos == 0 { &a.recording } else { &b.recording }));
    }
    notes
}

impl DiffedView {
    fn new(name: &str, report: &Report) -> Self {
        let run = &report.recording().run;
        DiffedView {
            recording: name.to_owned(),
            command: run.command.clone(),
            start_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall().0,
            host: run.host.clone(),
            rate_hz: run.rate_hz,
        }
    }
}

impl OperationDiffView {
    fn new(operation: &OperationDiff) -> Self {
        OperationDiffView {
            service: operation.service.clone(),
            name: operation.name.clone(),
            resource: operation.resource.clone(),
            fate: operation.fate().into(),
            delta_nanos: operation.delta().0,
            a: SideView::new(operation.a),
            b: SideView::new(operation.b),
            states: operation.states.iter().map(StateDiffView::new).collect(),
        }
    }
}

impl StateDiffView {
    fn new(diff: &StateDiff) -> Self {
        let (state, kind) = match diff.state {
            StateKind::OnCpu => (DiffStateView::OnCpu, None),
            StateKind::Blocked(kind) => (DiffStateView::Blocked, Some(kind.into())),
            StateKind::Runnable => (DiffStateView::Runnable, None),
            StateKind::BlockedUnseen => (DiffStateView::Blocked, None),
            StateKind::InChild => (DiffStateView::InChild, None),
            StateKind::Awaiting => (DiffStateView::Awaiting, None),
            StateKind::Remote => (DiffStateView::Remote, None),
            StateKind::Unaccounted => (DiffStateView::Unaccounted, None),
        };
        let text = words::state(diff.state);
        StateDiffView { state, kind, text, delta_nanos: diff.delta.0, function: diff.function.clone() }
    }
}

impl SideView {
    fn new(side: Side) -> Self {
        SideView {
            count: side.count,
            total_nanos: side.total.0,
            on_path_nanos: side.on_path.0,
            on_path_cpu_nanos: side.on_path_cpu.0,
            handle: side.longest.map(node_handle),
        }
    }
}

impl From<Fate> for FateView {
    fn from(it: Fate) -> Self {
        match it {
            Fate::Added => FateView::Added,
            Fate::Removed => FateView::Removed,
            Fate::Kept => FateView::Kept,
        }
    }
}
