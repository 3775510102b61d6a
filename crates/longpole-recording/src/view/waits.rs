//! What work waited for, and which threads it waited for.

use longpole_analysis::report::{BlockedBy, Blocker, WaitSum};
use longpole_analysis::time::blockers::{BlockerEvidence, Relation};
use longpole_analysis::{Report, words};
use longpole_model::WaitKind;
use serde::{Deserialize, Serialize};

use super::functions::{POLE_FRAMES_MAX, TopFrameView, top_frames, weight};

/// Lines listed for the waits of one kind in one function.
const PLACES_MAX: usize = 10;

/// Waits of one kind in one function of the program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitView {
    /// What the waits were for.
    pub kind: WaitKindView,
    /// System call; null where the thread was in none, or in one that longpole cannot name.
    pub syscall: Option<String>,
    /// The function of the program that waits; null where its stack is unknown.
    pub function: Option<String>,
    /// Its source file; empty where unknown.
    pub file: String,
    /// The line with the longest waits; 0 where unknown.
    pub line: u32,
    /// How long, without children. In the waits of a callee, time in which several of its threads waited counts once.
    pub nanos: i64,
    /// Threads that waited.
    pub threads: u64,
    /// Whether other threads of the process waited so meanwhile: these waits did not hold up what it did.
    pub in_other_threads: bool,
    /// Its lines with waits, longest first, at most 10.
    pub places: Vec<PlaceView>,
    /// Which threads the waits were for; null where they were for none, or where nothing is known about them.
    pub blocked_by: Option<BlockedByView>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKindView {
    /// A lock.
    Lock,
    /// Another thread to go on: a queue, a condition, an event.
    Queue,
    /// Another thread of its process to end.
    Join,
    /// A file: reading, writing, syncing.
    Disk,
    /// A socket, of the network or of this machine.
    Network,
    /// Time to pass.
    Sleep,
    /// Memory to be loaded.
    PageFault,
    /// A child process to end.
    Child,
    /// A pipe.
    Pipe,
    /// Work to arrive: a request, an entry in a pool's queue, a line from the terminal.
    Idle,
    /// Something else, or unknown.
    Other,
}

/// A line with waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlaceView {
    /// Source file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// How long.
    pub nanos: i64,
}

/// Threads that waits of kind `lock`, `queue` and `join` were for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BlockedByView {
    /// What the other thread did for the one that waited.
    pub relation: RelationView,
    /// The threads that are known, longest first, at most five.
    pub threads: Vec<BlockerView>,
    /// Time for which it was one of several threads.
    pub one_of: Option<OneOfView>,
    /// The same for people.
    pub text: String,
}

/// What another thread did for the one that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationView {
    /// It holds the lock.
    Holds,
    /// It ends: `pthread_join` and the like.
    Ends,
    /// It wakes the waiting thread at a futex that nobody ever held: a condition, a queue.
    Wakes,
}

/// Waits for one of several threads; nothing says for which.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OneOfView {
    /// How many threads, at most.
    pub threads: u32,
    /// How much of the waits.
    pub nanos: i64,
}

/// A thread that others waited for, and what it did meanwhile.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BlockerView {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name; null where it has none of its own.
    pub name: Option<String>,
    /// How longpole knows the thread.
    pub evidence: BlockerEvidenceView,
    /// How much of the waits were for it.
    pub nanos: i64,
    /// Its samples in that time.
    pub samples: u64,
    /// The CPU time that these samples stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What it waited for itself in that time, longest first; their `blocked_by` is null.
    pub waits: Vec<WaitView>,
    /// The same for people.
    pub text: String,
}

/// How longpole knows which thread others waited for. The rule: `docs/decisions/0013-who-holds-a-lock.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerEvidenceView {
    /// The lock itself names the thread.
    Futex,
    /// It is the only thread of the process that it can have been, by the times at which threads were on CPUs.
    Inferred,
}

impl WaitView {
    /// These waits, without whom they were for.
    pub(super) fn new(report: &Report, sum: &WaitSum<'_>) -> Self {
        let wait = sum.wait;
        let places = sum.places.iter().map(|place| PlaceView { file: place.file.to_owned(), line: place.line, nanos: place.nanos.0 });
        WaitView {
            kind: wait.kind.into(),
            syscall: (!wait.syscall.is_empty()).then(|| wait.syscall.clone()),
            function: report.waiting_function(wait).map(str::to_owned),
            file: sum.places.first().map_or_else(String::new, |place| place.file.to_owned()),
            line: sum.places.first().map_or(0, |place| place.line),
            nanos: sum.nanos.0,
            threads: sum.threads as u64,
            in_other_threads: sum.in_other_threads,
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
    /// The threads that these waits were for, with at most `most` functions and waits of each.
    pub(super) fn new(report: &Report, sum: &WaitSum<'_>, most: usize) -> Option<Self> {
        let blocked = report.blocked_by(sum);
        let text = words::blocked_by(&report.blocked_by_summary(sum, &blocked)?).to_string();
        let BlockedBy { list, one_of, .. } = blocked;
        let thread = |blocker| {
            let text = words::blocker(&report.blocker_summary(sum, &blocker)).to_string();
            let Blocker { pid, tid, name, evidence, nanos, samples, waits, .. } = blocker;
            let mut functions = report.top_functions(&samples);
            functions.truncate(most);
            BlockerView {
                pid,
                tid,
                name: name.map(str::to_owned),
                evidence: evidence.into(),
                nanos: nanos.0,
                samples: samples.len() as u64,
                weight_nanos: weight(report, &samples),
                top_frames: top_frames(report, &functions, &samples, &[]),
                waits: waits.iter().take(most).map(|sum| WaitView::new(report, sum)).collect(),
                text,
            }
        };
        Some(BlockedByView {
            relation: sum.relation?.into(),
            threads: list.into_iter().map(thread).collect(),
            one_of: one_of.map(|(nanos, threads)| OneOfView { threads, nanos: nanos.0 }),
            text,
        })
    }
}

impl WaitKindView {
    /// The kind in words: `page fault`.
    pub fn words(self) -> &'static str {
        match self {
            WaitKindView::Lock => "lock",
            WaitKindView::Queue => "another thread",
            WaitKindView::Join => "join",
            WaitKindView::Disk => "disk",
            WaitKindView::Network => "network",
            WaitKindView::Sleep => "sleep",
            WaitKindView::PageFault => "page fault",
            WaitKindView::Child => "child",
            WaitKindView::Pipe => "pipe",
            WaitKindView::Idle => "idle",
            WaitKindView::Other => "other",
        }
    }
}

impl From<WaitKind> for WaitKindView {
    fn from(it: WaitKind) -> Self {
        match it {
            WaitKind::Lock => WaitKindView::Lock,
            WaitKind::Queue => WaitKindView::Queue,
            WaitKind::Join => WaitKindView::Join,
            WaitKind::Disk => WaitKindView::Disk,
            WaitKind::Network => WaitKindView::Network,
            WaitKind::Sleep => WaitKindView::Sleep,
            WaitKind::PageFault => WaitKindView::PageFault,
            WaitKind::Child => WaitKindView::Child,
            WaitKind::Pipe => WaitKindView::Pipe,
            WaitKind::Idle => WaitKindView::Idle,
            WaitKind::Other => WaitKindView::Other,
        }
    }
}

impl From<Relation> for RelationView {
    fn from(it: Relation) -> Self {
        match it {
            Relation::Holds => RelationView::Holds,
            Relation::Ends => RelationView::Ends,
            Relation::Wakes => RelationView::Wakes,
        }
    }
}

impl From<BlockerEvidence> for BlockerEvidenceView {
    fn from(it: BlockerEvidence) -> Self {
        match it {
            BlockerEvidence::Futex => BlockerEvidenceView::Futex,
            BlockerEvidence::Inferred => BlockerEvidenceView::Inferred,
        }
    }
}
