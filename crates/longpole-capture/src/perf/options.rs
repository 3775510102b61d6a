//! How to sample.

use std::fmt;
use std::path::PathBuf;

use crate::procfs::left_out::LeftOut;

/// What makes the sampler interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleClock {
    /// A timer of the kernel that runs while the thread runs. Exact in virtual machines, and cheap at many switches.
    #[default]
    CpuClock,
    /// The processor's cycle counter, if there is one.
    Cycles,
}

impl SampleClock {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            SampleClock::CpuClock => "cpu-clock",
            SampleClock::Cycles => "cycles",
        }
    }
}

impl fmt::Display for SampleClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Samples a second and running thread. Not a round number, so that it does not keep step with work that repeats each millisecond.
    pub rate_hz: u32,
    /// What makes the sampler interrupt.
    pub clock: SampleClock,
    /// Bytes of stack in each sample, rounded to what the kernel can do.
    pub stack_bytes: u32,
    /// Whether this recording caused the perf maps that programs leave in `/tmp`, and removes them once read.
    pub remove_perf_maps: bool,
    /// Whether to sample the kernel, if allowed.
    pub kernel: bool,
    /// Whether to record when each thread is on a CPU, and what it waits for.
    pub switches: bool,
    /// Most binaries that stay open, for symbolization.
    pub open_binaries_max: usize,
    /// Where programs put the journals of their spans, see [`journal_dir`](crate::span_context::journal_dir).
    pub journals: Option<PathBuf>,
    /// A folder for what is slow to read and valid until the next boot: the kernel's list of its functions.
    pub cache: Option<PathBuf>,
    /// Resident bytes of longpole above which the recorder ends: the recorded processes decide how much there is to keep.
    pub memory_bytes_max: Option<u64>,
    /// Room for the unwind information of all binaries; `None` is as much as browsers and compilers need together.
    pub unwind_bytes_max: Option<u64>,
    /// Processes that it does not read, and whose samples it drops.
    pub left_out: LeftOut,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            rate_hz: 999,
            clock: SampleClock::CpuClock,
            stack_bytes: 16 << 10,
            remove_perf_maps: false,
            kernel: true,
            switches: true,
            open_binaries_max: 256,
            journals: None,
            cache: None,
            memory_bytes_max: None,
            unwind_bytes_max: None,
            left_out: LeftOut::default(),
        }
    }
}
