//! More bytes of each stack, once what was asked for does not suffice.
//!
//! How much an event copies is settled when it is opened. So new events are opened on all threads there are; they write into the
//! rings there are, and then the old ones stop.
//!
//! ```text
//! old events    ━━━━━━━━━━━━━━━━━━━━━━━━━┥ stopped, with a call for each CPU
//! new events            ┝━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  started, one thread after the other
//! samples kept  ───── of the old ────────┼─── of the new ───
//! ```
//!
//! As long as both run, both tell: a switch that is told twice is no other than a switch that is told once, and samples are told apart
//! by their period.

use std::fs::File;
use std::io;

use crate::perf::attributes::{Wanted, sampler_attribute, stack_bytes_within};
use crate::perf::event::{Stream, lost_of};
use crate::perf::options::SampleClock;
use crate::perf::record::Source;
use crate::sys::clock::monotonic_nanos;
use crate::sys::limits::{open_files_limit, raise_open_files_limit};
use crate::sys::perf::{open_event, set_enabled, set_output};

/// How many samples a ring must hold at least: 16 ms of a thread that runs.
const SAMPLES_IN_RING_MIN: usize = 16;

/// How often the threads of a program that makes new ones all the time are listed.
const LISTINGS_MAX: usize = 3;

/// What is needed to copy more of each stack.
pub(crate) struct StackDumpSize {
    wanted: Wanted,
    ring_bytes: usize,
    /// The event of each CPU that has the ring.
    rings: Vec<(u32, File)>,
    running: Vec<File>,
    /// Those opened here that were stopped: what they lost still counts.
    stopped: Vec<File>,
}

/// From when on stacks are copied deeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeChange {
    pub(crate) time: u64,
    /// Period of the samples that count from then on; `None` where periods vary.
    period: Option<u64>,
}

impl SizeChange {
    /// Whether a sample is one of two that were taken for one, and the other is kept.
    pub(crate) fn is_duplicate(self, time: u64, period: u64) -> bool {
        self.period.is_some_and(|new| (period == new) != (time >= self.time))
    }
}

impl StackDumpSize {
    /// For events that run. `None` where they cannot be shared.
    pub(crate) fn new(streams: &[Stream], wanted: &Wanted, ring_bytes: usize) -> Option<StackDumpSize> {
        let samplers = || streams.iter().filter(|stream| stream.source == Source::Sampler);
        let rings = samplers().map(|stream| Ok((stream.cpu, stream.event.try_clone()?))).collect::<io::Result<_>>().ok()?;
        let running = samplers().flat_map(|stream| std::iter::once(&stream.event).chain(&stream.others));
        let running = running.map(File::try_clone).collect::<io::Result<_>>().ok()?;
        Some(StackDumpSize { wanted: wanted.clone(), ring_bytes, rings, running, stopped: Vec::new() })
    }

    /// How many bytes would be copied next; `None` where the rings would hold too few such samples.
    fn next_bytes(&self) -> Option<u32> {
        let next = stack_bytes_within(self.wanted.stack_bytes.saturating_mul(2));
        (next > self.wanted.stack_bytes && next as usize * SAMPLES_IN_RING_MIN <= self.ring_bytes).then_some(next)
    }

    /// Goes on with twice as many bytes for all threads that `list` finds. `None` where there can be no more, or not for every thread: then
    /// all stays as it is.
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
            // Threads that were made meanwhile have inherited the new events, or have not.
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
        // The first are counted by who opened them.
        self.stopped.extend(old.into_iter().filter(|_| !first));
        self.wanted = wanted;
        Some(SizeChange { time, period: (self.wanted.clock == SampleClock::CpuClock).then(|| self.wanted.period_nanos()) })
    }

    fn open(&self, wanted: &Wanted, threads: &[u32]) -> io::Result<Vec<File>> {
        let attribute = sampler_attribute(wanted, self.ring_bytes / 4);
        let mut opened = Vec::with_capacity(threads.len() * self.rings.len());
        for tid in threads {
            for (cpu, ring) in &self.rings {
                match open_event(&attribute, *tid, *cpu).and_then(|event| set_output(&event, ring).map(|()| event)) {
                    Ok(event) => opened.push(event),
                    // The thread ended since it was listed.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(opened)
    }

    /// Records lost by the events opened here, where the kernel counts that.
    pub(crate) fn lost(&mut self) -> u64 {
        let first = self.wanted.generation == 0;
        let opened = self.running.iter_mut().filter(|_| !first).chain(&mut self.stopped);
        opened.filter_map(lost_of).sum()
    }
}

/// Samples since more of each stack was copied, and how many of them are stack_dump_size even so.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    pub(crate) deep: u64,
    pub(crate) all: u64,
    /// There cannot be more.
    pub(crate) enough: bool,
}

/// How many stacks that are cut off, and which part of all, call for more bytes of each.
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
    fn of_two_samples_for_one_the_older_kind_is_kept_until_the_turn() {
        let change = SizeChange { time: 100, period: Some(11) };
        let kept = |time, period| !change.is_duplicate(time, period);
        assert_eq!([kept(99, 10), kept(99, 11), kept(100, 10), kept(100, 11)], [true, false, false, true]);
        assert!(!SizeChange { time: 100, period: None }.is_duplicate(1, 11));
    }
}
