//! Run a command and sample it.
//!
//! You bring a command line, an environment and a sink for observations ([`longpole_model::ObservationSink`]). The command runs as if started
//! directly: same descriptors, signals, job control and exit status ([`launch::child`], [`launch::signals`]), with a few more variables in its
//! environment ([`launch::otel_environment`]).
//!
//! ```text
//! launch    start the command, its environment, its signals          recorder   ties the others: records to observations
//! perf      the kernel's events, ring buffers, records               frames     addresses to frames: maps, JIT, kernel, Python
//! procfs    processes as /proc shows them                            context    span contexts that SDKs publish
//! waits     what blocked threads wait for                            sys        every system call
//! ```
//!
//! This is the only crate with system calls. All of them are in `sys` and in the reader of ring buffers; nothing unsafe leaves those files. It
//! never prints, and ends the process only in [`launch::child::exit_like`].

pub mod clock;
mod cpu_budget;
mod execs;
mod frames;
pub mod launch;
pub mod perf;
pub mod private_dir;
pub mod procfs;
pub mod recorder;
pub mod refusal;
mod regular_file;
mod sink;
mod slow_walks;
pub mod socket_owner;
pub mod span_context;
mod sys;
mod waits;
pub mod watched_thread;
mod worker;

pub use sys::limits::raise_open_files_limit;
