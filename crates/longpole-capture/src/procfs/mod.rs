//! Processes as `/proc` shows them (proc(5)): snapshots, polling, memory and I/O, how they ended.

pub(crate) mod command_line;
pub mod identity;
pub mod left_out;
pub(crate) mod namespace;
pub(crate) mod poller;
pub(crate) mod process_snapshot;
pub(crate) mod stat;
pub mod target;
pub(crate) mod unsampled;
pub(crate) mod usage;
pub(crate) mod visibility;
