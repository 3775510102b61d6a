//! Where a thread was while it was off the CPU, for waits long enough to be inspected.

use crate::address::AbsAddr;
use crate::index::ThreadKey;
use crate::sample::ContextRecord;
use crate::stack::StackId;
use crate::time::Monotonic;

/// What a blocked thread waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitKind {
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
    /// Memory to be brought in.
    PageFault,
    /// A child process to end.
    Child,
    /// A pipe.
    Pipe,
    /// Work to arrive: a request, an entry in a pool's queue, a line from the terminal.
    Idle,
    /// None of these, or not known.
    Other,
}

impl WaitKind {
    /// Every kind.
    pub const ALL: [WaitKind; 11] = [
        WaitKind::Lock,
        WaitKind::Queue,
        WaitKind::Join,
        WaitKind::Disk,
        WaitKind::Network,
        WaitKind::Sleep,
        WaitKind::PageFault,
        WaitKind::Child,
        WaitKind::Pipe,
        WaitKind::Idle,
        WaitKind::Other,
    ];

    /// The code SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitKind::Lock => "lock",
            WaitKind::Queue => "queue",
            WaitKind::Join => "join",
            WaitKind::Disk => "disk",
            WaitKind::Network => "network",
            WaitKind::Sleep => "sleep",
            WaitKind::PageFault => "page_fault",
            WaitKind::Child => "child",
            WaitKind::Pipe => "pipe",
            WaitKind::Idle => "idle",
            WaitKind::Other => "other",
        }
    }

    /// The kind of this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == code)
    }
}

/// A stretch in which a thread was blocked, inspected once while it lasted: times from switch records, exact; kind and stack as
/// they were found. The recorder sees some shorter ones, if it may look into the kernel; the others are only gaps between
/// [`CpuSlice`](crate::CpuSlice)s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Switched out.
    pub start: Monotonic,
    /// Switched in again, or the end of the recording.
    pub end: Monotonic,
    /// What it waited for.
    pub kind: WaitKind,
    /// The system call it was in; empty where it was in none, or in one without a name here.
    pub syscall: String,
    /// Its stack; `None` where the memory could not be read.
    pub stack: Option<StackId>,
    /// What the SDK had published for the thread.
    pub context: ContextRecord,
    /// The futex that it waited at; `None` where it was at none, or its time ran out, so that nobody woke it.
    pub futex: Option<Futex>,
}

/// A word in memory at which threads wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Futex {
    /// Where it lies in the process: who waits at one address waits for one thing.
    pub address: AbsAddr,
    /// The thread that it names: who holds the lock, or is to end. `None` where it names none: most locks do not keep who has them.
    pub holder: Option<u32>,
}

impl Wait {
    /// The thread, by the numbers of its process and its own.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.pid, self.tid)
    }

    /// Length in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.end.nanos_since(self.start)
    }
}
