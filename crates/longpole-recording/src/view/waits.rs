//! What work waited for, and which threads it waited for.

use longpole_analysis::Report;
use longpole_analysis::report::{BlockedBy, Blocker, WaitSum};
use serde::Serialize;

use super::functions::{POLE_FRAMES_MAX, TopFrameView, top_frames, weight};

/// Lines listed for the waits of one kind in one function.
const PLACES_MAX: usize = 10;

/// Waits of one kind in one function.
#[derive(Debug, Clone, Serialize)]
pub struct WaitView {
    /// `lock`, `join`, `disk`, `network`, `sleep`, `page_fault`, `child`, `pipe`, `other`.
    pub kind: &'static str,
    /// System call; null where it was in none, or in one without a name here.
    pub syscall: Option<String>,
    /// The function of the program that waits; null where its stack is not known.
    pub function: Option<String>,
    /// Its source file; empty where unknown.
    pub file: String,
    /// The line there at which it waits longest, 0 where unknown.
    pub line: u32,
    /// How long, children left out; where several threads of a callee waited at the same time, that time once.
    pub nanos: i64,
    /// Threads that waited.
    pub threads: u64,
    /// All lines at which it waits, longest first.
    pub places: Vec<PlaceView>,
    /// Which threads they were for, where they were for any, and something is known of them.
    pub blocked_by: Option<BlockedByView>,
}

/// A line with waits.
#[derive(Debug, Clone, Serialize)]
pub struct PlaceView {
    /// Source file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// How long.
    pub nanos: i64,
}

/// Threads that others waited for.
#[derive(Debug, Clone, Serialize)]
pub struct BlockedByView {
    /// `holds` (the lock), `ends` (was to), `wakes` (no lock was held).
    pub relation: &'static str,
    /// Those that are known, longest first, at most five.
    pub threads: Vec<BlockerView>,
    /// Time for which it was one of several.
    pub one_of: Option<OneOfView>,
    /// For people.
    pub text: String,
}

/// It is not known which of several threads it was.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OneOfView {
    /// How many there were, at most.
    pub threads: u32,
    /// For how long of the waits.
    pub nanos: i64,
}

/// A thread that others waited for, and what it did meanwhile.
#[derive(Debug, Clone, Serialize)]
pub struct BlockerView {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<String>,
    /// `futex` (it names the thread) or `inferred` (no other one ran when the wait was over).
    pub evidence: &'static str,
    /// For how long of the waits.
    pub nanos: i64,
    /// Its samples in that time.
    pub samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What it waited for then, longest first.
    pub waits: Vec<WaitView>,
    /// For people.
    pub text: String,
}

impl WaitView {
    /// These waits, without whom they were for.
    pub(super) fn new(report: &Report, sum: &WaitSum<'_>) -> Self {
        let wait = sum.wait;
        let places = sum.places.iter().map(|place| PlaceView { file: place.file.to_owned(), line: place.line, nanos: place.nanos });
        WaitView {
            kind: wait.kind.as_str(),
            syscall: (!wait.syscall.is_empty()).then(|| wait.syscall.clone()),
            function: report.waiting_function(wait).map(str::to_owned),
            file: sum.places.first().map_or_else(String::new, |place| place.file.to_owned()),
            line: sum.places.first().map_or(0, |place| place.line),
            nanos: sum.nanos,
            threads: sum.threads as u64,
            places: places.take(PLACES_MAX).collect(),
            blocked_by: None,
        }
    }

    /// These waits, and whom they were for.
    pub(super) fn with_blockers(report: &Report, sum: &WaitSum<'_>) -> Self {
        WaitView { blocked_by: BlockedByView::new(report, sum, POLE_FRAMES_MAX), ..WaitView::new(report, sum) }
    }
}

impl BlockedByView {
    /// Whom these waits were for; at most so many functions and waits of each.
    pub(super) fn new(report: &Report, sum: &WaitSum<'_>, most: usize) -> Option<Self> {
        let blocked = report.blocked_by(sum);
        let text = report.blocked_by_words(sum, &blocked)?;
        let BlockedBy { list, one_of } = blocked;
        let thread = |blocker| {
            let text = report.blocker_words(sum.wait, &blocker);
            let Blocker { pid, tid, name, evidence, nanos, samples, waits, .. } = blocker;
            let mut functions = report.top_functions(&samples);
            functions.truncate(most);
            BlockerView {
                pid,
                tid,
                name: name.map(str::to_owned),
                evidence: evidence.as_str(),
                nanos,
                samples: samples.len() as u64,
                weight_nanos: weight(report, &samples),
                top_frames: top_frames(report, &functions, &samples, &[]),
                waits: waits.iter().take(most).map(|sum| WaitView::new(report, sum)).collect(),
                text,
            }
        };
        Some(BlockedByView {
            relation: sum.relation?.as_str(),
            threads: list.into_iter().map(thread).collect(),
            one_of: one_of.map(|(nanos, threads)| OneOfView { threads, nanos }),
            text,
        })
    }
}
