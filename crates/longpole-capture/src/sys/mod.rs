//! Every system call of this crate, safe on the outside.

pub(crate) mod perf;
pub(crate) mod process;
pub(crate) mod remote_memory;
