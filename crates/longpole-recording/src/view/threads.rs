//! Threads and where their life went.

use std::collections::HashMap;
use std::fmt::Display;

use longpole_analysis::report::WaitedFor;
use longpole_analysis::time::threads::{self, Importance, ThreadLife};
use longpole_analysis::{Handle, Report};
use longpole_model::{ThreadKey, WaitKind};
use serde::Serialize;

use super::shared::nanos;
use super::states::BlockedView;

/// Threads that are named for each thread, of those that it waited for.
const THREAD_BLOCKERS_MAX: usize = 5;

/// The threads of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadsView {
    /// `r7`.
    pub recording: String,
    /// Threads, those with the most time on a CPU first.
    pub threads: Vec<ThreadView>,
}

/// Where the life of a thread went: exact, from switch records.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadView {
    /// Process.
    pub pid: u32,
    /// What the process is called.
    pub process: String,
    /// Thread.
    pub tid: u32,
    /// What the thread is called.
    pub name: String,
    /// The outermost function of the program's own in it, where it is not the main thread.
    pub entry: Option<String>,
    /// How long it lived.
    pub nanos: i64,
    /// On a CPU.
    pub on_cpu_nanos: i64,
    /// It could have run, and others had the CPUs.
    pub ready_nanos: i64,
    /// Blocked, by what for.
    pub blocked_nanos: BlockedView,
    /// Blocked, and not looked at: shorter than 5 ms each, or lost.
    pub blocked_unseen_nanos: i64,
    /// Threads of its process that it waited for, longest first, at most five.
    pub waited_for: Vec<WaitedForView>,
    /// Samples.
    pub samples: u64,
    /// Its place in the order in which threads matter: those that work in poles, run, wait for locks, wait long.
    pub rank: usize,
    /// Handle of the pole that it has most time in.
    pub pole: Option<String>,
    /// How much of the critical path it has in poles.
    pub in_poles_nanos: i64,
    /// Its longest wait, those of workers that wait for work left out.
    pub longest_wait_nanos: i64,
}

/// A thread that another one waited for.
#[derive(Debug, Clone, Serialize)]
pub struct WaitedForView {
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own; else the function that it begins with.
    pub name: Option<String>,
    /// `holds` (the lock), `ends` (was to), `wakes` (no lock was held).
    pub relation: &'static str,
    /// `futex` or `inferred`.
    pub evidence: &'static str,
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
    for (i, process) in model.processes.iter().enumerate() {
        programs.insert(process.pid, report.forest().program(model, i));
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
        let of = |kind: WaitKind| nanos(life.blocked_nanos[kind as usize]);
        ThreadView {
            pid: thread.pid,
            process: programs.get(&thread.pid).map_or_else(String::new, |name| (*name).to_owned()),
            tid: thread.tid,
            name: thread.name.clone(),
            entry: report.entry_function(thread.thread()).map(str::to_owned),
            nanos: nanos(life.nanos),
            on_cpu_nanos: nanos(life.on_cpu_nanos),
            ready_nanos: nanos(life.ready_nanos),
            blocked_nanos: BlockedView::new(of),
            blocked_unseen_nanos: nanos(life.unseen_nanos),
            waited_for: waited_for(thread.thread()),
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
