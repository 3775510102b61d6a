//! Run a command and sample it.
//!
//! You bring a command line, an environment and a place for what is observed ([`longpole_model::ObservationSink`]). The
//! command runs as if nobody watched: its descriptors, signals, job control and end are those of a direct start
//! ([`child`], [`signals`]); it only finds a few more variables in its environment ([`inject`]).
//!
//! This is the one room with system calls. All of them stand in `sys` and in the reader of the kernel's ring; nothing
//! unsafe leaves those files. It never prints, and it ends the process only where it is asked to, in [`child::exit_like`].

mod allowance;
pub mod attach;
pub mod child;
pub mod clocks;
mod dozes;
mod drain;
pub mod error;
mod futex;
pub mod inject;
mod jit;
pub mod jit_names;
pub mod journal;
pub mod journals;
mod kernel;
mod kernel_list;
mod living;
mod maps;
pub mod otel;
pub mod perf;
mod plain_file;
mod process_tree;
mod pulse;
mod python;
pub mod sampler;
mod sight;
pub mod signals;
pub mod sockets;
pub mod span_context;
mod stacks;
mod sys;
mod unsampled;
mod usage;
mod waits;
mod watch;
