//! Where time went: of spans, of threads, of processes.

pub(crate) mod activity;
pub mod blocked_by;
pub mod blockers;
pub mod callees;
pub mod lanes;
pub mod parallelism;
pub mod sampling_coverage;
pub(crate) mod short_waits;
pub mod states;
pub(crate) mod thread_graph;
pub(crate) mod thread_names;
pub mod threads;
pub(crate) mod timelines;
pub mod usage;
pub mod wait_groups;
