//! Two recordings side by side, in their outside form.

use longpole_analysis::Report;
use longpole_analysis::report::diff::{Diff, OperationDiff, Side, StateDiff};
use longpole_analysis::report::wait_word;
use longpole_model::{StateKind, SumNanos};
use serde::Serialize;

use super::shared::unix_nano;

/// Of the longer run; what changed less is left out with what exceeds the limit.
const SHOWN_PER_MILLE_MIN: u64 = 1;

/// Why one recording took longer than another.
#[derive(Debug, Clone, Serialize)]
pub struct DiffView {
    /// `longpole.diff/1`.
    pub schema: &'static str,
    /// The first recording.
    pub a: DiffedView,
    /// The second recording.
    pub b: DiffedView,
    /// How much longer the second took; the operations sum to it.
    pub delta_nanos: i64,
    /// The largest difference first.
    pub operations: Vec<OperationDiffView>,
    /// What this list left out.
    pub truncated: OperationsTruncated,
}

/// One of the two.
#[derive(Debug, Clone, Serialize)]
pub struct DiffedView {
    /// `r7`, or the file.
    pub recording: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it started.
    pub start_unix_nano: String,
    /// How long it took.
    pub wall_nanos: i64,
    /// Machine.
    pub host: String,
    /// Samples a second.
    pub rate_hz: u32,
}

/// One operation in both.
#[derive(Debug, Clone, Serialize)]
pub struct OperationDiffView {
    /// Service.
    pub service: String,
    /// Operation, numbers and ids in it replaced by `#`.
    pub name: String,
    /// Type and name of the cloud resource, where it works on one.
    pub resource: Option<String>,
    /// `added`, `removed` or `kept`.
    pub fate: &'static str,
    /// How much longer the second run is because of it.
    pub delta_nanos: i64,
    /// In the first.
    pub a: SideView,
    /// In the second.
    pub b: SideView,
    /// What it did longer or shorter while it was on the path, the largest difference first; what matters little is left out.
    pub states: Vec<StateDiffView>,
}

/// How much longer an operation was in one state.
#[derive(Debug, Clone, Serialize)]
pub struct StateDiffView {
    /// `on_cpu`, `runnable`, `blocked`, `awaiting`, `remote` or `unaccounted`.
    pub state: &'static str,
    /// What it was blocked on: `lock`, `disk`, …; `null` where nobody looked, and in other states.
    pub kind: Option<&'static str>,
    /// The state for people.
    pub text: &'static str,
    /// In the second more than in the first.
    pub delta_nanos: i64,
    /// The function that holds most of it.
    pub function: Option<String>,
}

/// An operation in one of the two.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SideView {
    /// How many.
    pub count: u64,
    /// Their durations together.
    pub total_nanos: i64,
    /// Time of the critical path in which one of them was innermost.
    pub on_path_nanos: i64,
    /// How much of that was on a CPU.
    pub on_path_cpu_nanos: i64,
}

/// How many entries a list left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct OperationsTruncated {
    /// Operations.
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
        let longer = diff.a_wall_nanos.max(diff.b_wall_nanos).unsigned_abs();
        let matter = operations
            .partition_point(|o| u128::from(o.delta_nanos.unsigned_abs()) * 1000 >= u128::from(longer) * u128::from(SHOWN_PER_MILLE_MIN));
        let left_out = if limit == 0 { Vec::new() } else { operations.split_off(limit.min(matter)) };
        DiffView {
            schema: "longpole.diff/1",
            a: DiffedView::new(a_name, a),
            b: DiffedView::new(b_name, b),
            delta_nanos: diff.delta_nanos(),
            operations,
            truncated: OperationsTruncated {
                operations: left_out.len(),
                delta_nanos: left_out.iter().map(|operation| operation.delta_nanos).sum_nanos(),
            },
        }
    }
}

impl DiffedView {
    fn new(name: &str, report: &Report) -> Self {
        let run = &report.recording().run;
        DiffedView {
            recording: name.to_owned(),
            command: run.command.clone(),
            start_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall_nanos(),
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
            fate: operation.fate().as_str(),
            delta_nanos: operation.delta_nanos(),
            a: SideView::new(operation.a),
            b: SideView::new(operation.b),
            states: operation.states.iter().map(StateDiffView::new).collect(),
        }
    }
}

impl StateDiffView {
    fn new(diff: &StateDiff) -> Self {
        let (state, kind, text) = match diff.state {
            StateKind::OnCpu => ("on_cpu", None, "on-CPU"),
            StateKind::Blocked(kind) => ("blocked", Some(kind.as_str()), wait_word(kind)),
            StateKind::Runnable => ("runnable", None, "runnable"),
            StateKind::BlockedUnseen => ("blocked", None, "blocked"),
            StateKind::InChild => ("in_child", None, "in a child"),
            StateKind::Awaiting => ("awaiting", None, "awaiting"),
            StateKind::Remote => ("remote", None, "remote"),
            StateKind::Unaccounted => ("unaccounted", None, "unaccounted"),
        };
        StateDiffView { state, kind, text, delta_nanos: diff.delta_nanos, function: diff.function.clone() }
    }
}

impl SideView {
    fn new(side: Side) -> Self {
        SideView {
            count: side.count,
            total_nanos: side.total_nanos,
            on_path_nanos: side.on_path_nanos,
            on_path_cpu_nanos: side.on_path_cpu_nanos,
        }
    }
}
