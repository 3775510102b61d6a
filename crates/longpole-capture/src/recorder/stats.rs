//! What a recording came to.

use longpole_model::Loss;

use crate::frames::maps::OpenBinary;

/// What a recording came to.
#[derive(Debug, Default)]
pub struct Stats {
    /// Samples given to the sink.
    pub samples: u64,
    /// Stretches on a CPU given to the sink.
    pub cpu_slices: u64,
    /// Records (samples or switches) the kernel dropped.
    pub lost: u64,
    /// Times the kernel held sampling back.
    pub throttled: u64,
    /// Stacks stack_dump_size than the copied bytes.
    pub truncated: u64,
    /// Stacks the unwinder gave up on.
    pub unwind_failed: u64,
    /// Context records caught in the middle of a write.
    pub torn: u64,
    /// Waits given to the sink.
    pub waits: u64,
    /// Observations the sink refused.
    pub not_kept: u64,
    /// Why it refused the first of them.
    pub not_kept_reason: Option<String>,
    /// CPU time of the recorder's own threads.
    pub recorder_cpu_nanos: u64,
    /// The binaries of the recording, still open where possible, for looking up names.
    pub binaries: Vec<OpenBinary>,
    /// What is missing and could not be given to the sink: whoever finished the recording tells it.
    pub untold: Vec<Loss>,
}
