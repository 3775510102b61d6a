//! Run a command and sample it.
//!
//! You bring a command line, an environment and a place for what is observed ([`longpole_model::ObservationSink`]). The
//! command runs as if nobody watched: its descriptors, signals, job control and end are those of a direct start
//! ([`launch::child`], [`launch::signals`]); it only finds a few more variables in its environment ([`launch::otel_environment`]).
//!
//! This is the one room with system calls. All of them stand in `sys` and in the reader of the kernel's ring; nothing
//! unsafe leaves those files. It never prints, and it ends the process only where it is asked to, in [`launch::child::exit_like`].

pub mod clock;
pub mod context;
mod cpu_budget;
mod frames;
pub mod launch;
mod number_map;
pub mod perf;
pub mod procfs;
pub mod recorder;
pub mod refusal;
mod regular_file;
mod sink;
pub mod socket_owner;
mod sys;
mod waits;
mod worker;
