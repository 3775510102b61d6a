//! What each thread did over a range of time: as much as a picture shows.

use std::fmt::Display;

use longpole_analysis::Report;
use longpole_analysis::time::lanes::Lane;
use longpole_model::{Nanos, StateKind, WaitKind};
use serde::Serialize;

use super::shared::{listed, programs};

/// Threads over a range of time, in equal pieces.
#[derive(Debug, Clone, Serialize)]
pub struct LanesView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The start of the range, from the start of the run.
    pub from_nanos: i64,
    /// Its end.
    pub to_nanos: i64,
    /// Pieces that it has.
    pub bins: u32,
    /// States that a lane names by their place here: kinds of waits, `unseen` for blocked and not sampled.
    pub states: Vec<String>,
    /// Threads, the most important first.
    pub threads: Vec<LaneView>,
    /// Threads of the range that the limit leaves out.
    pub truncated: u64,
}

/// One thread.
#[derive(Debug, Clone, Serialize)]
pub struct LaneView {
    /// Process.
    pub pid: u32,
    /// Name of the process.
    pub process: String,
    /// Thread.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// The outermost function of the program in it; null for main threads.
    pub entry: Option<String>,
    /// Whether switch records tell; if not, samples do, and waits are unknown.
    pub is_exact: bool,
    /// For each piece the share of it on a CPU, in per mille.
    pub on_cpu: Vec<u32>,
    /// For each piece the share in which it was ready to run, in per mille.
    pub runnable: Vec<u32>,
    /// For each piece what takes most of its rest: a place in `states`; -1 where the thread did not live, or nothing is known.
    pub rest: Vec<i64>,
}

/// The word for time in which a thread was blocked and not sampled.
const UNSEEN: &str = "unseen";

/// The place of a state in the list of those that lanes name.
fn place_of(state: StateKind) -> i64 {
    match state {
        StateKind::Blocked(kind) => kind as i64,
        StateKind::BlockedUnseen => WaitKind::ALL.len() as i64,
        _ => -1,
    }
}

impl LanesView {
    /// The most important threads that lived in a range.
    pub fn new(recording: impl Display, report: &Report, range: (Nanos, Nanos), bins: usize, limit: usize) -> Self {
        let model = report.recording();
        let programs = programs(report);
        let (lanes, truncated) = report.lanes(range, bins, limit);
        let view = |lane: Lane| {
            let thread = &model.threads[lane.thread];
            LaneView {
                pid: thread.pid,
                process: programs.get(&thread.pid).map_or_else(String::new, |name| listed(name)),
                tid: thread.tid,
                name: listed(&thread.name),
                entry: report.entry_function(thread.thread()).map(listed),
                is_exact: lane.is_exact,
                on_cpu: lane.on_cpu.into_iter().map(u32::from).collect(),
                runnable: lane.runnable.into_iter().map(u32::from).collect(),
                rest: lane.rest.into_iter().map(|state| state.map_or(-1, place_of)).collect(),
            }
        };
        LanesView {
            recording: recording.to_string(),
            from_nanos: range.0.0,
            to_nanos: range.1.0,
            bins: u32::try_from(bins).unwrap_or(u32::MAX),
            states: WaitKind::ALL.iter().map(|kind| kind.as_str().to_owned()).chain([UNSEEN.to_owned()]).collect(),
            threads: lanes.into_iter().map(view).collect(),
            truncated: truncated as u64,
        }
    }
}
