//! Threads and where their life went.

use std::collections::HashMap;
use std::fmt::Display;

use longpole_analysis::code::functions::Frames;
use longpole_analysis::report::{Excerpt, WaitedFor};
use longpole_analysis::time::threads::{self, Importance, ThreadLife};
use longpole_analysis::{Handle, Report};
use longpole_model::{Nanos, ThreadKey, WaitKind};
use serde::{Deserialize, Serialize};

use super::shared::{listed, nanos, programs};
use super::states::BlockedView;
use super::waits::{BlockerEvidenceView, RelationView};

/// Threads whose function is named, and samples that it takes to do so.
const FUNCTIONS_MAX: usize = 20;
const FUNCTION_SAMPLES_MIN: u64 = 5;

/// Threads that are named for each thread, of those that it waited for.
const THREAD_BLOCKERS_MAX: usize = 5;

/// The threads of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadsView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The range of time that it is limited to, from the start of the run; null for all of it. Then all times and samples of a thread are of
    /// the range, `rank` is its place in the list, poles are of the whole run, and `waited_for` is empty.
    pub from_nanos: Option<i64>,
    /// The end of that range.
    pub to_nanos: Option<i64>,
    /// Threads, those with the most time on CPUs first.
    pub threads: Vec<ThreadView>,
}

/// Where the life of a thread went: exact, from switch records, unless `is_estimate`.
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
    /// Whether `on_cpu_nanos` is estimated from its samples, as in a profile of another tool. Then `ready_nanos`, and blocked time beyond
    /// sampled waits, are 0 because they are unknown.
    pub is_estimate: bool,
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
    /// The function to name for these samples; null for a thread behind the first 20, for fewer than 5 samples, and
    /// if they are spread over many functions.
    pub function: Option<ThreadFunctionView>,
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

/// A function that a thread ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadFunctionView {
    /// Handle, such as `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Time of the samples with it.
    pub nanos: i64,
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
    /// Every thread, or every one that lived in a range of time.
    pub fn new(recording: impl Display, report: &Report, range: Option<(Nanos, Nanos)>) -> Self {
        ThreadsView {
            recording: recording.to_string(),
            from_nanos: range.map(|range| range.0.0),
            to_nanos: range.map(|range| range.1.0),
            threads: thread_views(report, range),
        }
    }
}

pub(super) fn thread_views(report: &Report, range: Option<(Nanos, Nanos)>) -> Vec<ThreadView> {
    let model = report.recording();
    let programs = programs(report);
    let lives = range.map_or_else(|| threads::lives(model), |range| report.lives_in(range));
    let mut importance = report.importance_of_threads(&lives);
    if range.is_some() {
        importance.iter_mut().enumerate().for_each(|(place, about)| about.rank = place);
    }
    let waited_for = if range.is_none() { report.threads_waited_for() } else { HashMap::new() };
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
            is_estimate: life.is_estimate,
            ready_nanos: nanos(life.ready.0),
            blocked_nanos: BlockedView::new(of),
            blocked_unseen_nanos: nanos(life.unseen.0),
            waited_for: waited_for(thread.thread()),
            samples: life.samples,
            function: if about.rank < FUNCTIONS_MAX && life.samples >= FUNCTION_SAMPLES_MIN {
                function_of(report, thread.thread(), range)
            } else {
                None
            },
            rank: about.rank,
            pole: about.pole.map(|pole| Handle::Pole(pole).to_string()),
            poles: about.poles.iter().map(|&pole| Handle::Pole(pole).to_string()).collect(),
            in_poles_nanos: nanos(about.in_poles.0),
            longest_wait_nanos: nanos(about.longest_wait.0),
        }
    };
    lives.iter().zip(importance).map(view).collect()
}

/// The function to name for what a thread ran.
fn function_of(report: &Report, thread: ThreadKey, range: Option<(Nanos, Nanos)>) -> Option<ThreadFunctionView> {
    let samples = report.samples_within(Excerpt { range, tid: None }, report.samples_of_thread(thread).to_vec());
    let function = report.named(&samples)?.function;
    let weighed = report.weigh(&samples, &[], Frames::All).into_iter().find(|weighed| weighed.function == function);
    Some(ThreadFunctionView {
        handle: Handle::Function(function).to_string(),
        function: report.functions().list[function].function.clone(),
        nanos: weighed.map_or(0, |weighed| nanos(weighed.weight.total.0)),
    })
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
