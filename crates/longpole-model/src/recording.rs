//! Everything kept about one run, in memory: what segments hold, what `analysis` works on.

use crate::loss::Loss;
use crate::process::{CpuSlice, Process, Thread};
use crate::run::Run;
use crate::sample::{CurrentSpan, Sample, SampleLink};
use crate::span::Span;
use crate::stack::{Location, Mapping, Stack};
use crate::time::Clock;
use crate::usage::ProcessUsage;
use crate::wait::Wait;

/// One run with all its tables. Numbered tables (`mappings`, `locations`, `stacks`) are dense: entry `i` has id `i`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The run.
    pub run: Run,
    /// Monotonic to wall time.
    pub clock: Clock,
    /// Spans of every trace of the run, as received, duplicates removed; process spans are made by `analysis`.
    pub spans: Vec<Span>,
    /// Processes by start.
    pub processes: Vec<Process>,
    /// Threads by start.
    pub threads: Vec<Thread>,
    /// When threads were on a CPU, by start.
    pub cpu_slices: Vec<CpuSlice>,
    /// Which span was current on which thread, by start. Empty where no program kept a journal.
    pub current_spans: Vec<CurrentSpan>,
    /// What processes had used, by time.
    pub process_usage: Vec<ProcessUsage>,
    /// Samples by time.
    pub samples: Vec<Sample>,
    /// The link of each sample: same length and order as `samples` once sealed, empty before.
    pub sample_links: Vec<SampleLink>,
    /// Waits that the recorder inspected, by start.
    pub waits: Vec<Wait>,
    /// The link of each wait: same length and order as `waits` once sealed, empty before.
    pub wait_links: Vec<SampleLink>,
    /// Stacks by number.
    pub stacks: Vec<Stack>,
    /// Locations by number.
    pub locations: Vec<Location>,
    /// Binaries by number.
    pub mappings: Vec<Mapping>,
    /// What is missing.
    pub losses: Vec<Loss>,
}
