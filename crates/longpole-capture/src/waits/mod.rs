//! What blocked threads wait for: which to probe, and what a probe finds.

mod blocked_call;
pub(crate) mod blocked_thread;
mod futex;
mod goroutines;
mod listeners;
pub(crate) mod off_cpu;
mod probe;
mod timeout;
