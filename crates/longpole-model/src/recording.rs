//! Everything kept about one run, in memory: what segments hold, what `analysis` works on.

use std::ops::{Index, IndexMut};

use crate::index::{Id, ProcessRow, SampleId, SpanRow, WaitId};
use crate::loss::Loss;
use crate::process::{CpuSlice, Process, Thread};
use crate::run::Run;
use crate::sample::{CurrentSpan, Sample, SampleLink};
use crate::span::Span;
use crate::stack::{Location, LocationId, Mapping, MappingId, Stack, StackId};
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

impl Recording {
    /// A stack by its number, `None` where the recording has none: a file may name one that it does not hold.
    pub fn stack(&self, id: StackId) -> Option<&Stack> {
        self.stacks.get(id.place())
    }

    /// A location by its number, `None` where the recording has none.
    pub fn location(&self, id: LocationId) -> Option<&Location> {
        self.locations.get(id.place())
    }

    /// A binary by its number, `None` where the recording has none.
    pub fn mapping(&self, id: MappingId) -> Option<&Mapping> {
        self.mappings.get(id.place())
    }

    /// The link of a sample, `None` before the recording is sealed.
    pub fn sample_link(&self, id: SampleId) -> Option<&SampleLink> {
        self.sample_links.get(id.place())
    }

    /// The link of a wait, `None` before the recording is sealed.
    pub fn wait_link(&self, id: WaitId) -> Option<&SampleLink> {
        self.wait_links.get(id.place())
    }

    /// All samples, in order.
    pub fn sample_ids(&self) -> impl DoubleEndedIterator<Item = SampleId> + ExactSizeIterator + Clone + use<> {
        (0..self.samples.len()).map(SampleId::at)
    }

    /// All waits, in order.
    pub fn wait_ids(&self) -> impl DoubleEndedIterator<Item = WaitId> + ExactSizeIterator + Clone + use<> {
        (0..self.waits.len()).map(WaitId::at)
    }

    /// All spans, in order.
    pub fn span_rows(&self) -> impl DoubleEndedIterator<Item = SpanRow> + ExactSizeIterator + Clone + use<> {
        (0..self.spans.len()).map(SpanRow::at)
    }

    /// All processes, in order.
    pub fn process_rows(&self) -> impl DoubleEndedIterator<Item = ProcessRow> + ExactSizeIterator + Clone + use<> {
        (0..self.processes.len()).map(ProcessRow::at)
    }
}

/// `recording.samples[sample]`: an id indexes the table that it is a place of, and no other.
macro_rules! indexed_by {
    ($($id:ident: $row:ident;)*) => {$(
        impl Index<$id> for [$row] {
            type Output = $row;

            #[inline]
            fn index(&self, id: $id) -> &$row {
                &self[id.place()]
            }
        }

        impl IndexMut<$id> for [$row] {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut $row {
                &mut self[id.place()]
            }
        }

        impl Index<$id> for Vec<$row> {
            type Output = $row;

            #[inline]
            fn index(&self, id: $id) -> &$row {
                &self[id.place()]
            }
        }

        impl IndexMut<$id> for Vec<$row> {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut $row {
                &mut self[id.place()]
            }
        }
    )*};
}

indexed_by! {
    SampleId: Sample;
    WaitId: Wait;
    SpanRow: Span;
    ProcessRow: Process;
}
