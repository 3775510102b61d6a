//! Threads and where their life went.

use std::collections::HashMap;
use std::fmt::Display;

use longpole_analysis::report::WaitedFor;
use longpole_analysis::time::threads::{self, Importance, ThreadLife};
use longpole_analysis::{Handle, Report};
use longpole_model::{ThreadKey, WaitKind};
use serde::{Deserialize, Serialize};

use super::shared::{listed, nanos};
use super::states::BlockedView;
use super::waits::{BlockerEvidenceView, RelationView};

/// Threads that are named for each thread, of those that it waited for.
const THREAD_BLOCKERS_MAX: usize = 5;

/// The threads of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadsView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Threads, those with the most time on CPUs first.
    pub threads: Vec<ThreadView>,
}

/// Where the life of a thread went: exact, from switch records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadView {
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
    /// How long it lived.
    pub nanos: i64,
    /// On a CPU.
    pub on_cpu_nanos: i64,
    /// Ready to run while others had the CPUs.
    pub ready_nanos: i64,
    /// Blocked, by what it waited for.
    pub blocked_nanos: BlockedView,
    /// Blocked in waits that were not sampled: mostly waits shorter than 5 ms.
    pub blocked_unseen_nanos: i64,
    /// Threads of its process that it waited for, longest first, at most five. Idle workers wait for nobody.
    pub waited_for: Vec<WaitedForView>,
    /// Samples.
    pub samples: u64,
    /// Its place in the order in which threads matter, which a cut list keeps the first of: in turns those with the most time in poles,
    /// on CPUs, waiting for locks, and with the longest waits.
    pub rank: usize,
    /// Handle of the pole in which it spends most time.
    pub pole: Option<String>,
    /// Handles of all poles, of the first 16, whose code it runs or waits in while they are on the critical path.
    pub poles: Vec<String>,
    /// Its time of the critical path in poles.
    pub in_poles_nanos: i64,
    /// Its longest wait, without those of idle workers.
    pub longest_wait_nanos: i64,
}

/// A thread that another one waited for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitedForView {
    /// The thread.
    pub tid: u32,
    /// Its own name, else the function that it begins with.
    pub name: Option<String>,
    /// What it did for the one that waited.
    pub relation: RelationView,
    /// How longpole knows the thread.
    pub evidence: BlockerEvidenceView,
    /// For how long.
    pub nanos: i64,
}

impl ThreadsView {
    /// Every thread.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        ThreadsView { recording: recording.to_string(), threads: thread_views(report) }
    }
}

pub(super) fn thread_views(report: &Report) -> Vec<ThreadView> {
    let model = report.recording();
    let mut programs: HashMap<u32, &str> = HashMap::new();
    for (row, process) in model.process_rows().zip(&model.processes) {
        programs.insert(process.pid, report.forest().program(model, row));
    }
    let lives = threads::lives(model);
    let importance = report.importance_of_threads(&lives);
    let waited_for = report.threads_waited_for();
    let waited_for = |thread: ThreadKey| {
        let list = waited_for.get(&thread).map_or(&[][..], |list| list);
        list.iter().take(THREAD_BLOCKERS_MAX).map(WaitedForView::new).collect()
    };
    let view = |(life, about): (&ThreadLife, Importance)| {
        let thread = &model.threads[life.thread];
        let of = |kind: WaitKind| nanos(life.blocked_seen[kind as usize].0);
        ThreadView {
            pid: thread.pid,
            process: programs.get(&thread.pid).map_or_else(String::new, |name| listed(name)),
            tid: thread.tid,
            name: listed(&thread.name),
            entry: report.entry_function(thread.thread()).map(listed),
            nanos: nanos(life.nanos.0),
            on_cpu_nanos: nanos(life.on_cpu.0),
            ready_nanos: nanos(life.ready.0),
            blocked_nanos: BlockedView::new(of),
            blocked_unseen_nanos: nanos(life.unseen.0),
            waited_for: waited_for(thread.thread()),
            samples: life.samples,
            rank: about.rank,
            pole: about.pole.map(|pole| Handle::Pole(pole).to_string()),
            poles: about.poles.iter().map(|&pole| Handle::Pole(pole).to_string()).collect(),
            in_poles_nanos: nanos(about.in_poles.0),
            longest_wait_nanos: nanos(about.longest_wait.0),
        }
    };
    lives.iter().zip(importance).map(view).collect()
}

impl WaitedForView {
    fn new(other: &WaitedFor<'_>) -> Self {
        WaitedForView {
            tid: other.tid,
            name: other.name.map(listed),
            relation: other.relation.into(),
            evidence: other.evidence.into(),
            nanos: nanos(other.nanos.0),
        }
    }
}
