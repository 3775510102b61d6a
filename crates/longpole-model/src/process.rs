//! Processes and threads of a run, and when each thread was on a CPU.

use std::ffi::CStr;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::index::ThreadKey;
use crate::resource::Resource;
use crate::run::Exit;
use crate::time::Monotonic;

/// Most bytes read of a command line. A longer one is cut there, and its last argument ends in `…`.
pub const ARGUMENTS_BYTES_MAX: usize = 17 << 10;

/// Bytes at the end of a command line that was cut which the redactor leaves out: what marks a credential may stand behind it, as in
/// `scheme://user:password@host`, and was cut off.
pub const ARGUMENTS_UNJUDGED_BYTES: usize = 1 << 10;

/// Name of the process that longpole forks beside a command to see which signals the command was sent.
pub const WITNESS_NAME: &CStr = c"lp-witness";

/// One process of the run. A pid that the kernel used again gives a second one.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its id while it lived.
    pub pid: u32,
    /// Its parent's id at the fork; `None` for the command itself.
    pub parent_pid: Option<u32>,
    /// Name (the kernel's comm, 15 bytes at most, as of its last exec or rename of the main thread).
    pub name: String,
    /// Path of the executable, empty where it could not be read. A fork shares that of its parent, as it does the arguments.
    pub executable: Arc<str>,
    /// Arguments as `/proc/PID/cmdline` had them after the last exec; empty where it could not be read.
    pub arguments: Arc<[String]>,
    /// Fork (for the command itself: the exec).
    pub start: Monotonic,
    /// Exit; `None` where it outlived the recording.
    pub end: Option<Monotonic>,
    /// Whether it ran another program than its parent (an exec was seen).
    pub execed: bool,
    /// How it ended; `None` where it outlived the recording, or nobody could see it.
    pub exit: Option<Exit>,
    /// Addresses at which it took connections, of those that spans of the recording call.
    pub listens: Vec<SocketAddr>,
    /// What it published of itself for whoever looks (OTEP 4719); empty where it did not.
    pub resource: Resource,
}

/// One thread of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// Name (the kernel's comm).
    pub name: String,
    /// Start; for a main thread that of the process.
    pub start: Monotonic,
    /// Exit; `None` where it outlived the recording.
    pub end: Option<Monotonic>,
    /// Where its life went in all, where there are no [`CpuSlice`]s to tell.
    pub totals: Option<ThreadTotals>,
    /// The number that its interpreter gives out for it, where one was read: Python's `threading.get_ident()`.
    pub ident: Option<u64>,
}

impl Thread {
    /// The thread, by the numbers of its process and its own.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.pid, self.tid)
    }
}

/// What the kernel's scheduler counts of a thread, as of the last look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTotals {
    /// On a CPU, in nanoseconds.
    pub on_cpu_nanos: u64,
    /// Ready, and waiting for a CPU, also after it was woken.
    pub ready_nanos: u64,
}

/// A stretch in which a thread was on a CPU, from switch records: exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSlice {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Switched in.
    pub start: Monotonic,
    /// Switched out.
    pub end: Monotonic,
    /// Whether it was still runnable when it was switched out.
    pub preempted: bool,
}

impl CpuSlice {
    /// The thread, by the numbers of its process and its own.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.pid, self.tid)
    }
}
