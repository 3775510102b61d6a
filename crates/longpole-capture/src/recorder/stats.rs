//! What a recording came to.

use std::sync::Arc;

use longpole_model::Loss;

use crate::frames::maps::OpenBinaries;

/// What a recording came to.
#[derive(Debug, Default)]
pub struct Stats {
    /// Samples written to the sink.
    pub samples: u64,
    /// Stretches on a CPU written to the sink.
    pub cpu_slices: u64,
    /// Records (samples or switches) that the kernel dropped.
    pub lost: u64,
    /// How often the kernel throttled sampling.
    pub throttled: u64,
    /// Stacks stack_dump_size than the copied bytes.
    pub truncated: u64,
    /// Stacks the unwinder gave up on.
    pub unwind_failed: u64,
    /// Context records caught in the middle of a write.
    pub torn: u64,
    /// Waits written to the sink.
    pub waits: u64,
    /// Observations that the sink could not keep.
    pub not_kept: u64,
    /// Why it could not keep the first of them.
    pub not_kept_reason: Option<String>,
    /// CPU time of the recorder's own threads, in nanoseconds.
    pub recorder_cpu_nanos: u64,
    /// The binaries of the recording that are still open, for symbolization.
    pub binaries: Arc<OpenBinaries>,
    /// Losses that could not be written to the sink: the caller of `finish` reports them.
    pub untold: Vec<Loss>,
}
