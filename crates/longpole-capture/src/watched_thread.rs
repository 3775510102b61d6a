//! A thread that another one watches.

use crate::sys::clock::ThreadClock;

/// The CPU clock of a thread: it goes on while the thread does, and stands still while the thread waits, such as for the memory of another process.
#[derive(Debug, Clone, Copy)]
pub struct WatchedThread(ThreadClock);

impl WatchedThread {
    /// The calling thread; `None` if the system does not tell its clock.
    pub fn this() -> Option<WatchedThread> {
        ThreadClock::of_this_thread().map(WatchedThread)
    }

    /// A number that changes while it goes on; `None` if it has ended.
    pub fn progress(&self) -> Option<u64> {
        self.0.nanos()
    }
}
