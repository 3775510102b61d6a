//! Empties the ring buffers before they overflow, on a thread that does nothing else, and hands the bytes over.
//!
//! A ring buffer of 512 KiB holds 31 ms of samples of 16 KiB at 1 kHz, or half as many of 32 KiB. A thread that unwinds, reads files and writes
//! to disk may not be back by then; this thread is. It copies, notes up to which time the copy is complete, and waits.

use std::collections::VecDeque;
use std::io::PipeReader;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longpole_model::Observation;

use crate::perf::event::{Stream, lost_of};
use crate::perf::record::{Source, copy_filled, records};
use crate::span_context::journal_poller::JournalPoller;
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::descriptors::{Ready, WaitSet};
use crate::sys::thread::{block_signals_of_this_thread, prefer_this_thread};

/// Most bytes that wait to be processed: half a second of two busy threads. Beyond that the ring buffers fill, and the kernel counts losses.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// How many batches, or bytes, gather before the other side is woken, if nothing is urgent.
const BATCHES_GATHERED: usize = 2;
const BYTES_GATHERED: usize = 1 << 20;

/// A larger buffer is not used again: one burst must not cost memory until the end.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Longest wait while records come: bounds the delay of records in a ring buffer that is not full enough to wake us. A thread that blocks
/// must be probed before it wakes.
const WAIT_BUSY_MILLIS: i32 = 5;

/// Longest wait while records come and no thread has blocked for `CALM_AFTER_NANOS`: the next one is seen a little later, and programs that
/// only compute are disturbed half as often.
const WAIT_CALM_MILLIS: i32 = 10;
const CALM_AFTER_NANOS: u64 = 100_000_000;

/// Longest wait while the other side hurries.
const WAIT_HURRIED_MILLIS: i32 = 1;

/// Longest wait while nothing comes: one part in `WAIT_IDLE_PART` of the time since the last records, up to `WAIT_IDLE_MILLIS_MAX`.
const WAIT_IDLE_PART: u64 = 4;
const WAIT_IDLE_MILLIS_MAX: u64 = 20;

/// Pause after a round that only the tracker caused: each of its records wakes us, and the half dozen of a fork and its exec come within a
/// fraction of a millisecond.
const GATHER: Duration = Duration::from_micros(200);

/// The records of one round over all ring buffers.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Records, those of one ring together.
    pub(crate) bytes: Vec<u8>,
    /// Which bytes come from which kind of event.
    pub(crate) parts: Vec<(Source, Range<usize>)>,
    /// Whether to process it at once: something began or ended, or a thread blocked. Samples alone can wait.
    pub(crate) is_urgent: bool,
    /// Observations from the journals of spans, read after the ring buffers: no record is later.
    pub(crate) journals: Vec<Observation>,
    /// CLOCK_MONOTONIC before the first ring buffer was read. An older record that is not in this batch or an earlier one was being written at
    /// that instant; the next round has it.
    pub(crate) before: u64,
    /// Whether there is no next round.
    pub(crate) is_last: bool,
    /// In the last one: records lost in total, by the kernel's count for each event, if it counts.
    pub(crate) lost_in_all: Option<u64>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    bytes: usize,
    buffers: Vec<Vec<u8>>,
    /// Whether there is enough, or something urgent: all batches are to be taken.
    ripe: bool,
    closed: bool,
}

/// The queue between the drain thread and the record thread, bounded by bytes.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    waiting: Mutex<Waiting>,
    came: Condvar,
    taken: Condvar,
    /// Until when records are wanted soon.
    hurry_until: AtomicU64,
}

/// The result of [`Handover::take`].
pub(crate) enum Taken {
    /// A batch.
    Batch(Batch),
    /// Nothing yet.
    Nothing,
    /// Nothing, and there will be nothing.
    Closed,
}

impl Batch {
    /// Memory that it takes, about.
    fn weight(&self) -> usize {
        let of = |it: &Observation| match it {
            Observation::Journal { entries, .. } => size_of_val(entries.as_slice()),
            _ => 0,
        };
        self.bytes.len() + self.journals.iter().map(of).sum::<usize>()
    }
}

impl Handover {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a batch; waits while there is too much. Returns an empty buffer for the next.
    fn give(&self, batch: Batch) -> Vec<u8> {
        let mut waiting = self.lock();
        while waiting.bytes > WAITING_BYTES_MAX && !waiting.closed {
            waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.closed {
            // Nobody will take it.
            let mut buffer = batch.bytes;
            buffer.clear();
            return buffer;
        }
        waiting.bytes += batch.weight();
        let enough = waiting.batches.len() + 1 >= BATCHES_GATHERED || waiting.bytes >= BYTES_GATHERED;
        waiting.ripe |= enough || batch.is_urgent || batch.is_last;
        waiting.batches.push_back(batch);
        if waiting.ripe {
            self.came.notify_one();
        }
        waiting.buffers.pop().unwrap_or_default()
    }

    /// Takes the oldest batch; waits up to `patience` until one is urgent or some have gathered: waking up for each takes longer than processing
    /// it.
    pub(crate) fn take(&self, patience: Duration) -> Taken {
        let waiting = self.lock();
        let (mut waiting, _) =
            self.came.wait_timeout_while(waiting, patience, |w| !w.ripe && !w.closed).unwrap_or_else(PoisonError::into_inner);
        match waiting.batches.pop_front() {
            Some(batch) => {
                waiting.ripe &= !waiting.batches.is_empty();
                waiting.bytes -= batch.weight();
                self.taken.notify_one();
                Taken::Batch(batch)
            }
            None if waiting.closed => Taken::Closed,
            None => Taken::Nothing,
        }
    }

    /// Whether the drain thread has to wait for the record thread.
    pub(crate) fn is_full(&self) -> bool {
        let waiting = self.lock();
        waiting.bytes > WAITING_BYTES_MAX && !waiting.closed
    }

    /// Whether nothing is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().batches.is_empty()
    }

    /// Returns a buffer for later batches.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        let mut waiting = self.lock();
        if buffer.capacity() <= BUFFER_BYTES_KEPT && waiting.buffers.len() < 4 {
            buffer.clear();
            waiting.buffers.push(buffer);
        }
    }

    /// Until when records are wanted soon.
    pub(crate) fn hurry(&self, until: u64) {
        self.hurry_until.store(until, Ordering::Relaxed);
    }

    /// Notes that one of the two sides is gone.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.came.notify_all();
        self.taken.notify_all();
    }
}

/// Closes the hand-over when its thread ends, even by a panic, so that the other side never waits for it.
pub(crate) struct CloseOnDrop<'a>(pub(crate) &'a Handover);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Empties the ring buffers and reads the journals, until the other end of `stop` is closed, and once more. Returns its CPU time, in
/// nanoseconds.
pub(crate) fn drain(mut streams: Vec<Stream>, mut journals: Option<JournalPoller>, stop: PipeReader, handover: &Handover) -> u64 {
    let _close = CloseOnDrop(handover);
    block_signals_of_this_thread();
    prefer_this_thread();
    let descriptors = std::iter::once(stop.as_raw_fd()).chain(streams.iter().map(|s| s.event.as_raw_fd()));
    let mut set = WaitSet::new(descriptors);
    let mut batch = Batch::default();
    let (mut all, mut urgent) = (Owed::default(), Owed::default());
    let mut last_records = monotonic_nanos();
    let mut last_urgent = last_records;
    let mut round_before = 0;
    loop {
        let now = monotonic_nanos();
        let idle_millis = (now - last_records) / 1_000_000;
        let busy_millis = if now < handover.hurry_until.load(Ordering::Relaxed) {
            WAIT_HURRIED_MILLIS
        } else if now - last_urgent < CALM_AFTER_NANOS {
            WAIT_BUSY_MILLIS
        } else {
            WAIT_CALM_MILLIS
        };
        let patience = (idle_millis / WAIT_IDLE_PART).min(WAIT_IDLE_MILLIS_MAX) as i32;
        let patience = patience.min(journals.as_ref().and_then(JournalPoller::patience_millis).unwrap_or(i32::MAX));
        set.wait(if all.is_owed { busy_millis } else { patience.max(busy_millis) });
        batch.is_last = set.ready(0) != Ready::No;
        let mut called = None;
        for (place, stream) in streams.iter().enumerate() {
            if set.ready(place + 1) == Ready::Readable {
                called = if called == Some(Source::Sampler) { called } else { Some(stream.source) };
            }
        }
        batch.before = monotonic_nanos();
        for stream in &mut streams {
            let start = batch.bytes.len();
            if stream.ring.drain(|parts| copy_filled(parts, &mut batch.bytes)) > 0 {
                let (falls_asleep, newest) = skim(&batch.bytes[start..]);
                all.newest = all.newest.max(newest);
                if stream.source != Source::Sampler || falls_asleep {
                    urgent.newest = urgent.newest.max(newest);
                    last_urgent = batch.before;
                }
                batch.parts.push((stream.source, start..batch.bytes.len()));
            }
        }
        let in_order = std::mem::replace(&mut round_before, batch.before);
        // Urgent records are processed once they are in order.
        batch.is_urgent = urgent.is_for_round(in_order);
        let is_last = batch.is_last;
        if is_last {
            let counted = streams.iter_mut().filter(|stream| stream.source != Source::Switcher);
            batch.lost_in_all = counted.flat_map(|s| std::iter::once(&mut s.event).chain(&mut s.others)).map(lost_of).sum();
        }
        if let Some(journals) = &mut journals {
            journals.poll(is_last, &mut batch.journals);
        }
        let has_records = !batch.bytes.is_empty();
        if has_records {
            last_records = batch.before;
        }
        if all.is_for_round(in_order) || has_records || is_last || !batch.journals.is_empty() {
            let bytes = handover.give(std::mem::take(&mut batch));
            batch.bytes = bytes;
        }
        if is_last {
            break;
        }
        if called == Some(Source::Tracker) {
            std::thread::sleep(GATHER);
        }
    }
    // The other thread finishes while the kernel closes the events.
    drop(streams);
    thread_cpu_nanos()
}

/// Whether a thread blocks in these records, and the time of the newest.
fn skim(bytes: &[u8]) -> (bool, u64) {
    records(bytes).flatten().fold((false, 0), |(falls_asleep, newest), record| {
        (falls_asleep || record.switch().is_some_and(|(.., blocked)| blocked), newest.max(record.time()))
    })
}

/// Which rounds must follow some records until the other side has them in order: each round confirms the records up to the round before.
///
/// ```text
/// round        1       2       3
/// records     a│b      │       │      b was written while round 1 read the rings
/// in order     │      a│     a b│
/// ```
#[derive(Debug, Default)]
struct Owed {
    newest: u64,
    /// Whether one more round must follow.
    is_owed: bool,
}

impl Owed {
    /// Whether the round that confirms records older than `in_order` brings or confirms some of them.
    fn is_for_round(&mut self, in_order: u64) -> bool {
        let is_owed = self.newest > in_order;
        std::mem::replace(&mut self.is_owed, is_owed) || is_owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_until_the_newest_record_is_in_order() {
        let mut owed = Owed::default();
        let mut in_order = 0;
        let mut round = |newest: u64, before: u64| {
            owed.newest = owed.newest.max(newest);
            (owed.is_for_round(std::mem::replace(&mut in_order, before)), owed.is_owed)
        };
        assert_eq!(round(0, 100), (false, false), "nothing was read");
        assert_eq!(round(190, 200), (true, true));
        assert_eq!(round(0, 300), (true, false));
        assert_eq!(round(0, 400), (false, false));
        // Written while the round read the rings: the next one does not say yet that nothing older comes.
        assert_eq!(round(505, 500), (true, true));
        assert_eq!(round(0, 600), (true, true));
        assert_eq!(round(0, 700), (true, false));
    }

    #[test]
    fn what_was_given_is_taken_in_order_and_then_it_is_closed() {
        let handover = Handover::default();
        for byte in 0..3 {
            handover.give(Batch { bytes: vec![byte], ..Batch::default() });
        }
        handover.close();
        for byte in 0..3 {
            let Taken::Batch(batch) = handover.take(Duration::MAX) else { panic!() };
            assert_eq!(batch.bytes, [byte]);
            handover.give_back(batch.bytes);
        }
        assert!(matches!(handover.take(Duration::MAX), Taken::Closed));
    }

    #[test]
    fn what_is_not_urgent_gathers_and_then_all_of_it_is_taken() {
        let handover = Handover::default();
        let (now, batch) = (Duration::ZERO, |is_urgent| Batch { is_urgent, ..Batch::default() });
        let taken = |patience| matches!(handover.take(patience), Taken::Batch(_));
        handover.give(batch(false));
        handover.give(batch(true));
        assert_eq!([taken(Duration::MAX), taken(Duration::MAX)], [true, true]);
        for _ in 0..BATCHES_GATHERED {
            handover.give(batch(false));
        }
        assert!((0..BATCHES_GATHERED).all(|_| taken(Duration::MAX)));
        handover.give(batch(false));
        assert_eq!([taken(now), taken(now)], [true, false], "after its patience it takes the batch that is there");
    }

    #[test]
    fn the_giver_waits_while_too_much_is_there() {
        let handover = Handover::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..40 {
                    handover.give(Batch { bytes: vec![0; 1 << 20], ..Batch::default() });
                    let waiting = handover.lock().bytes;
                    assert!(waiting <= WAITING_BYTES_MAX + (2 << 20));
                }
                handover.close();
            });
            let mut bytes = 0;
            while let Taken::Batch(batch) = handover.take(Duration::MAX) {
                bytes += batch.bytes.len();
            }
            assert_eq!(bytes, 40 << 20);
        });
    }

    #[test]
    fn a_taker_that_is_gone_does_not_hold_the_giver() {
        let handover = Handover::default();
        drop(CloseOnDrop(&handover));
        for _ in 0..20 {
            handover.give(Batch { bytes: vec![0; 1 << 20], ..Batch::default() });
        }
    }
}
