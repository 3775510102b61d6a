//! The long poles of many traces of a server together.

use longpole_analysis::many_traces::{OperationKey, Quantiles, RootOperation, SharedPole};
use longpole_model::Nanos;
use serde::{Deserialize, Serialize};

use super::shared::{RangeNanos, listed};

/// Operations of a view, and poles of each.
const OPERATIONS_MAX: usize = 50;
const POLES_MAX: usize = 20;

/// The critical paths of the traces that a search finds: what to fix first, and what requests would gain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedPolesView {
    /// Traces whose critical paths are in it: the newest ones that match.
    pub traces: usize,
    /// Whether more traces match: all are older.
    pub truncated: bool,
    /// Traces that match and are too large to be in it.
    pub left_out: usize,
    /// The operations that the traces begin with, the one with most time first.
    pub operations: Vec<OperationPolesView>,
    /// How many operations `operations` omits.
    pub omitted: usize,
}

/// The traces that begin with one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OperationPolesView {
    /// Its service.
    pub service: String,
    /// Its name, with `#` for numbers and ids.
    pub name: String,
    /// How many traces.
    pub traces: usize,
    /// All their time.
    pub total_nanos: i64,
    /// How long they took.
    pub takes: QuantilesView,
    /// The longest one.
    pub longest: LongestTraceView,
    /// Their poles, the one that saves most first.
    pub poles: Vec<SharedPoleView>,
    /// How many poles `poles` omits.
    pub omitted: usize,
}

/// Durations that half, 95 % and 99 % of the traces do not exceed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct QuantilesView {
    /// Half of them took no longer.
    pub median_nanos: i64,
    /// 95 % of them took no longer.
    pub p95_nanos: i64,
    /// 99 % of them took no longer.
    pub p99_nanos: i64,
}

/// A trace, and how long it took, or a pole in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LongestTraceView {
    /// Its id.
    pub trace_id: String,
    /// How long.
    pub nanos: i64,
}

/// A pole of the traces of one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedPoleView {
    /// Service.
    pub service: String,
    /// Operation, with `#` for numbers and ids.
    pub name: String,
    /// The part of its own time that it is, such as a function; null for all of it.
    pub part: Option<String>,
    /// Traces with it on their critical path.
    pub traces: usize,
    /// Its time on the critical paths of all of them.
    pub on_path_nanos: i64,
    /// Its part of the time of the slowest 5 % of the traces, 0 to 1; null for fewer than 100 traces.
    pub share_of_slowest: Option<f64>,
    /// Its part of the time of the others.
    pub share_of_others: Option<f64>,
    /// What all traces together save if its own time were nothing.
    pub saves_nanos: RangeNanos,
    /// How long the traces would take then, if it saves least.
    pub without: QuantilesView,
    /// How long they would take, if it saves most.
    pub without_at_best: QuantilesView,
    /// The trace with most time in it, and that time.
    pub most_in: LongestTraceView,
}

impl SharedPolesView {
    /// From this number of traces; whether there are more, and how many were left out.
    pub fn new(operations: &[RootOperation], (traces, is_truncated, left_out): (usize, bool, usize)) -> SharedPolesView {
        SharedPolesView {
            traces,
            truncated: is_truncated,
            left_out,
            operations: operations.iter().take(OPERATIONS_MAX).map(OperationPolesView::new).collect(),
            omitted: operations.len().saturating_sub(OPERATIONS_MAX),
        }
    }
}

impl OperationPolesView {
    fn new(of: &RootOperation) -> OperationPolesView {
        let OperationKey { service, name } = &of.operation;
        OperationPolesView {
            service: listed(service),
            name: listed(name),
            traces: of.traces,
            total_nanos: of.total.0,
            takes: of.takes.into(),
            longest: LongestTraceView::new(of.longest),
            poles: of.poles.iter().take(POLES_MAX).map(SharedPoleView::new).collect(),
            omitted: of.poles.len().saturating_sub(POLES_MAX),
        }
    }
}

impl SharedPoleView {
    fn new(pole: &SharedPole) -> SharedPoleView {
        let OperationKey { service, name } = &pole.operation;
        let [least, best] = pole.without;
        SharedPoleView {
            service: listed(service),
            name: listed(name),
            part: (!pole.part.is_empty()).then(|| listed(&pole.part)),
            traces: pole.traces,
            on_path_nanos: pole.on_path.0,
            share_of_slowest: pole.shares.map(|[slowest, _]| slowest),
            share_of_others: pole.shares.map(|[_, others]| others),
            saves_nanos: pole.saves.map(|saves| saves.0),
            without: least.into(),
            without_at_best: best.into(),
            most_in: LongestTraceView::new(pole.most_in),
        }
    }
}

impl LongestTraceView {
    fn new((trace, time): (longpole_model::TraceId, Nanos)) -> LongestTraceView {
        LongestTraceView { trace_id: trace.to_string(), nanos: time.0 }
    }
}

impl From<Quantiles> for QuantilesView {
    fn from(of: Quantiles) -> QuantilesView {
        QuantilesView { median_nanos: of.median.0, p95_nanos: of.p95.0, p99_nanos: of.p99.0 }
    }
}
