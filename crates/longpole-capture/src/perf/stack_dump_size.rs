//! Grows the stack dumps when many stacks are deeper than the dump.
//!
//! The size is fixed when an event is opened. So new events are opened on all threads; they write into the same ring buffers, and then the
//! old ones stop.
//!
//! ```text
//! old events    ━━━━━━━━━━━━━━━━━━━━━━━━━┥ stopped, with a call for each CPU
//! new events            ┝━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  started, one thread after the other
//! samples kept  ───── of the old ────────┼─── of the new ───
//! ```
//!
//! While both run, both report: reporting a switch twice changes nothing, and the period of a sample shows which event it is from.

use std::fs::File;
use std::io;

use crate::perf::attributes::{Wanted, sampler_attribute, stack_bytes_within};
use crate::perf::event::{Stream, lost_of};
use crate::perf::options::SampleClock;
use crate::perf::record::Source;
use crate::sys::clock::monotonic_nanos;
use crate::sys::limits::{open_files_limit, raise_open_files_limit};
use crate::sys::perf::{open_event, set_enabled, set_output};

/// Fewest samples that a ring buffer must hold: 16 ms of a running thread.
const SAMPLES_IN_RING_MIN: usize = 16;

/// How often to list the threads of a program that keeps making new ones.
const LISTINGS_MAX: usize = 3;

/// What it takes to grow the stack dumps.
pub(crate) struct StackDumpSize {
    wanted: Wanted,
    ring_bytes: usize,
    /// The event of each CPU that has the ring buffer.
    rings: Vec<(u32, File)>,
    running: Vec<File>,
    /// Events opened here and stopped since: their lost records still count.
    stopped: Vec<File>,
}

/// A change of the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeChange {
    pub(crate) time: u64,
    /// The period of samples from then on; `None` if periods vary.
    period: Option<u64>,
}

impl SizeChange {
    /// Whether a sample is one of two at about the same time, and the other one is kept.
    pub(crate) fn is_duplicate(self, time: u64, period: u64) -> bool {
        self.period.is_some_and(|new| (period == new) != (time >= self.time))
    }
}

impl StackDumpSize {
    /// For running events. `None` if their descriptors cannot be duplicated.
    pub(crate) fn new(streams: &[Stream], wanted: &Wanted, ring_bytes: usize) -> Option<StackDumpSize> {
        let samplers = || streams.iter().filter(|stream| stream.source == Source::Sampler);
        let rings = samplers().map(|stream| Ok((stream.cpu, stream.event.try_clone()?))).collect::<io::Result<_>>().ok()?;
        let running = samplers().flat_map(|stream| std::iter::once(&stream.event).chain(&stream.others));
        let running = running.map(File::try_clone).collect::<io::Result<_>>().ok()?;
        Some(StackDumpSize { wanted: wanted.clone(), ring_bytes, rings, running, stopped: Vec::new() })
    }

    /// The next size; `None` if the ring buffers would hold too few samples of it.
    fn next_bytes(&self) -> Option<u32> {
        let next = stack_bytes_within(self.wanted.stack_bytes.saturating_mul(2));
        (next > self.wanted.stack_bytes && next as usize * SAMPLES_IN_RING_MIN <= self.ring_bytes).then_some(next)
    }

    /// Doubles the size for all threads that `list` returns. `None` if that is impossible for some thread: then nothing changes.
    pub(crate) fn grow(&mut self, list: impl Fn() -> Vec<u32>) -> Option<SizeChange> {
        let wanted =
            Wanted { stack_bytes: self.next_bytes()?, generation: self.wanted.generation + 1, on_exec: false, ..self.wanted.clone() };
        raise_open_files_limit();
        let mut threads = list();
        let mut opened = None;
        for _ in 0..LISTINGS_MAX {
            if threads.len() * self.rings.len() * 2 > open_files_limit() {
                return None;
            }
            let events = self.open(&wanted, &threads).ok()?;
            // Threads that were made meanwhile may have inherited the new events or not.
            let all = list();
            if all.iter().all(|tid| threads.contains(tid)) {
                opened = Some(events);
                break;
            }
            threads = all;
        }
        let opened = opened?;
        opened.iter().for_each(|event| set_enabled(event, true));
        let time = monotonic_nanos();
        self.running.iter().for_each(|event| set_enabled(event, false));
        let first = self.wanted.generation == 0;
        let old = std::mem::replace(&mut self.running, opened);
        // The opener of the first events counts their losses.
        self.stopped.extend(old.into_iter().filter(|_| !first));
        self.wanted = wanted;
        Some(SizeChange { time, period: (self.wanted.clock == SampleClock::CpuClock).then(|| self.wanted.period_nanos()) })
    }

    fn open(&self, wanted: &Wanted, threads: &[u32]) -> io::Result<Vec<File>> {
        let attribute = sampler_attribute(wanted, self.ring_bytes / 4);
        let mut opened = Vec::with_capacity(threads.len() * self.rings.len());
        for tid in threads {
            for (cpu, ring) in &self.rings {
                match open_event(&attribute, Some(*tid), *cpu).and_then(|event| set_output(&event, ring).map(|()| event)) {
                    Ok(event) => opened.push(event),
                    // The thread has ended since it was listed.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(opened)
    }

    /// Records lost by the events opened here, if the kernel counts that.
    pub(crate) fn lost(&mut self) -> u64 {
        let first = self.wanted.generation == 0;
        let opened = self.running.iter_mut().filter(|_| !first).chain(&mut self.stopped);
        opened.filter_map(lost_of).sum()
    }
}

/// Samples since the last change, and how many have a deeper stack.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    pub(crate) deep: u64,
    pub(crate) all: u64,
    /// The dumps cannot grow any more.
    pub(crate) enough: bool,
}

/// The dumps grow if at least this many stacks are cut off, and one part in this many of all.
const DEEP_MIN: u64 = 16;
const DEEP_PART: u64 = 50;

impl Depths {
    pub(crate) fn call_for_more(&self) -> bool {
        !self.enough && self.deep >= DEEP_MIN && self.deep * DEEP_PART >= self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_samples_at_a_time_the_old_one_is_kept_until_the_change() {
        let change = SizeChange { time: 100, period: Some(11) };
        let kept = |time, period| !change.is_duplicate(time, period);
        assert_eq!([kept(99, 10), kept(99, 11), kept(100, 10), kept(100, 11)], [true, false, false, true]);
        assert!(!SizeChange { time: 100, period: None }.is_duplicate(1, 11));
    }
}
