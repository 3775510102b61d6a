//! The goroutines of a Go program that wait, out of its own memory.
//!
//! You bring the memory of a process ([`Memory`](crate::memory::Memory)) and what its binary says of itself ([`GoProgram`]). You get the goroutines that
//! wait, each with its reason and the addresses of its callers ([`Goroutines::read`]). The process is not stopped.
//!
//! ```text
//! allgptr ─► g ─┬─ atomicstatus, waitreason, goid
//! allglen       └─ sched: sp, pc, bp ─► frame ─► frame ─► … ─► runtime.goexit     leaf to root, by frame pointers
//! ```
//!
//! It reads while the program runs, so any pointer may lead anywhere. Each list has a limit, and a goroutine that does not hold together is left out.

mod goroutines;
mod layout;
mod missing;
mod packages;

pub use goroutines::{Goroutine, Goroutines, Look, Reason};
pub use layout::{GoroutineLayout, Version};
pub use missing::Missing;
pub(crate) use packages::Part;
pub use packages::{Packages, Whose};

/// What a binary that Go built says of itself, by the addresses the file states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoProgram {
    /// The version that built it.
    pub version: Version,
    /// Where its goroutines keep what is read of them, if that is known.
    pub layout: Option<GoroutineLayout>,
    /// Its variables and functions; `None` if it has no table of symbols that longpole reads.
    pub symbols: Option<GoSymbols>,
}

/// Variables and functions of the Go runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoSymbols {
    /// `runtime.allglen`: how many goroutines there are.
    pub count: u64,
    /// `runtime.allgptr`: the address of the first of their addresses.
    pub list: u64,
    /// `runtime.waitReasonStrings`, and its bytes.
    pub reasons: (u64, u64),
    /// `runtime.netpoll`: the function in which a thread waits for the timers and sockets of all goroutines.
    pub poll: std::ops::Range<u64>,
    /// Whose code lies where.
    pub packages: Packages,
}

#[cfg(test)]
mod tests;
