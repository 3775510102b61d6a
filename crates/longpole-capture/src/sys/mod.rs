//! Every system call of this crate, safe on the outside.

pub(crate) mod clock;
pub(crate) mod command_state;
pub(crate) mod descriptors;
pub(crate) mod exit_status;
pub(crate) mod fork_exec;
pub(crate) mod handler;
pub(crate) mod inherited;
pub(crate) mod job_control;
pub(crate) mod leave;
pub(crate) mod limits;
pub(crate) mod perf;
pub(crate) mod pidfd;
pub(crate) mod remote_memory;
pub(crate) mod signal;
pub(crate) mod signal_witness;
pub(crate) mod thread;
pub(crate) mod wait;
