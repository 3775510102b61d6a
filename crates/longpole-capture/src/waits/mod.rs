//! What blocked threads wait for.

mod blocked_call;
pub(crate) mod blocked_thread;
mod futex;
pub(crate) mod off_cpu;
mod probe;
