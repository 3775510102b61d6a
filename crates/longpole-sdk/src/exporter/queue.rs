//! Ended spans on their way from the program's threads to the one that sends, and what these threads share.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tracing_core::Metadata;

use crate::SHUTDOWN_DEADLINE;
use crate::at_exit::Ends;
use crate::config::ExportConfig;
use crate::diagnostic::tell;
use crate::locks::{self, LOCK_MAX, deadline, lock};
use crate::outage::Outage;
use crate::registry_guard;
use crate::span_counts::SpanCounts;

/// Enough that the threads of a small machine do not meet; a shard that is not used costs a hundred bytes.
const SHARDS: usize = 16;

/// Most bytes of spans that wait. With spans of common size the queue's length is the tighter limit.
const MAX_QUEUE_BYTES: usize = 64 << 20;

/// Buffers keep their memory for the next spans, but not that of a burst.
pub(super) const MAX_KEPT_BYTES: usize = 1 << 20;

/// A span that waits: where its bytes end, and where its macro stands in the source.
pub(super) struct Waiting {
    pub(super) end: usize,
    pub(super) metadata: &'static Metadata<'static>,
}

/// Encoded spans, one after the other, without their tag and length.
#[derive(Default)]
pub(super) struct SpanBuffer {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Waiting>,
}

impl SpanBuffer {
    fn push(&mut self, span: &[u8], metadata: &'static Metadata<'static>) {
        self.bytes.extend_from_slice(span);
        self.spans.push(Waiting { end: self.bytes.len(), metadata });
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT_BYTES);
        self.spans.clear();
        self.spans.shrink_to(MAX_KEPT_BYTES / size_of::<Waiting>());
    }
}

/// One of the buffers that ending spans go to. Aligned so that two of them share no cache line.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Shard {
    pub(super) state: Mutex<ShardState>,
    /// Spans that it took. Beside the lock, for who must not wait for it.
    taken: AtomicU64,
}

#[derive(Default)]
pub(super) struct ShardState {
    pub(super) buffer: SpanBuffer,
    /// Nobody will look here again.
    pub(super) closed: bool,
}

/// How many spans wait, and how many bytes they take, in the shards and in the hands of the thread, not counting the batch that
/// is on its way. Both stand in one word, spans above bytes, so that a span takes its place in one step.
pub(super) struct QueueLevel(AtomicU64);

/// One terabyte; the other 24 bits are for spans (`config::MAX_SPANS`).
const LEVEL_BYTES_BITS: u32 = 40;

impl QueueLevel {
    fn word(spans: usize, bytes: usize) -> u64 {
        (spans as u64) << LEVEL_BYTES_BITS | bytes as u64
    }

    fn split(word: u64) -> (usize, usize) {
        ((word >> LEVEL_BYTES_BITS) as usize, (word & ((1 << LEVEL_BYTES_BITS) - 1)) as usize)
    }

    /// Adds one span; returns the level before.
    fn add(&self, bytes: usize) -> (usize, usize) {
        Self::split(self.0.fetch_add(Self::word(1, bytes), Relaxed))
    }

    pub(super) fn sub(&self, spans: usize, bytes: usize) {
        self.0.fetch_sub(Self::word(spans, bytes), Relaxed);
    }

    pub(super) fn spans(&self) -> usize {
        Self::split(self.0.load(Relaxed)).0
    }
}

/// What the program's threads and the exporting thread share.
pub(super) struct SpanQueue {
    pub(super) shards: [Shard; SHARDS],
    pub(super) queued: QueueLevel,
    max_queue_spans: usize,
    max_batch_spans: usize,
    pub(super) exported: AtomicU64,
    queue_full: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) rejected: AtomicU64,
    late: AtomicU64,
    /// The thread is to send what there is and end.
    pub(super) closing: AtomicBool,
    /// An attempt failed after the shutdown began: there is no other.
    pub(super) gave_up: AtomicBool,
    /// The caller of the shutdown waits no longer.
    pub(super) abandoned: AtomicBool,
    /// How many wait for what has ended to be sent, while the program goes on.
    pub(super) flushing: AtomicUsize,
    /// How often somebody began to wait so.
    pub(super) flushes: AtomicU64,
    /// Attempts that failed so far: who waits for one of these waits no longer.
    pub(super) attempts_failed: AtomicU64,
    /// Somebody waited in vain since the collector last answered: nobody waits for it again.
    pub(super) is_slow: AtomicBool,
    /// How long the end of the process waits.
    pub(super) exit_within: Mutex<Duration>,
    url: String,
    pub(super) outage: Mutex<Outage>,
    pub(super) thread: OnceLock<Thread>,
    pub(super) end: Mutex<End>,
    /// The end began, or is reached.
    pub(super) ended: Condvar,
}

#[derive(Default)]
pub(super) struct End {
    /// Until when the shutdown waits.
    pub(super) deadline: Option<Instant>,
    pub(super) reached: bool,
}

impl SpanQueue {
    pub(super) fn new(config: &ExportConfig) -> Self {
        SpanQueue {
            shards: Default::default(),
            queued: QueueLevel(AtomicU64::new(0)),
            max_queue_spans: config.max_queue_spans,
            max_batch_spans: config.max_batch_spans,
            exported: AtomicU64::new(0),
            queue_full: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            late: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            flushing: AtomicUsize::new(0),
            flushes: AtomicU64::new(0),
            attempts_failed: AtomicU64::new(0),
            is_slow: AtomicBool::new(false),
            exit_within: Mutex::new(SHUTDOWN_DEADLINE),
            url: config.url.clone(),
            outage: Mutex::default(),
            thread: OnceLock::new(),
            end: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Takes the fields of an ended span, or counts it as lost.
    pub(super) fn push(&self, span: &[u8], metadata: &'static Metadata<'static>) {
        let (spans_before, bytes_before) = self.queued.add(span.len());
        if spans_before >= self.max_queue_spans || bytes_before > MAX_QUEUE_BYTES {
            self.queued.sub(1, span.len());
            self.queue_full.fetch_add(1, Relaxed);
            return;
        }
        let shard = &self.shards[shard_of_this_thread()];
        let mut state = lock(&shard.state);
        if state.closed {
            drop(state);
            self.queued.sub(1, span.len());
            self.late.fetch_add(1, Relaxed);
            return;
        }
        state.buffer.push(span, metadata);
        shard.taken.fetch_add(1, Relaxed);
        drop(state);
        if spans_before + 1 == self.max_batch_spans {
            self.wake();
        }
    }

    pub(super) fn counts(&self) -> SpanCounts {
        let mut counts = SpanCounts {
            emitted: 0,
            exported: self.exported.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            failed: self.failed.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            late: self.late.load(Relaxed),
            refused: registry_guard::refused(),
            outstanding: 0,
        };
        let taken: u64 = self.shards.iter().map(|shard| shard.taken.load(Relaxed)).sum();
        counts.emitted = taken + counts.queue_full + counts.late + counts.refused;
        counts.outstanding = counts.emitted.saturating_sub(counts.exported + counts.lost());
        counts
    }

    /// Asks the threads to send what there is and end; the caller holds `end`, so nobody is about to wait.
    pub(super) fn close(&self) {
        self.closing.store(true, Release);
        self.wake();
        self.ended.notify_all();
    }

    /// Whether somebody waits for spans to be sent before it is their turn.
    pub(super) fn is_wanted(&self) -> bool {
        self.flushing.load(Relaxed) > 0
    }

    /// Sends what has ended by now, waiting for it no longer than `within`, nor after an attempt that failed, nor for a collector that
    /// was waited for in vain. Sending goes on.
    pub(super) fn flush(&self, within: Duration) -> SpanCounts {
        let before = self.counts();
        if before.outstanding == 0 || self.is_slow.load(Relaxed) {
            return before;
        }
        let goal = before.exported + before.lost() + before.outstanding;
        let failed = self.attempts_failed.load(Relaxed);
        let deadline = deadline(within);
        let mut end = lock(&self.end);
        self.flushing.fetch_add(1, Relaxed);
        self.flushes.fetch_add(1, Relaxed);
        self.wake();
        // Those who pause between two attempts try once more.
        self.ended.notify_all();
        let is_over = || {
            let counts = self.counts();
            counts.exported + counts.lost() >= goal || self.attempts_failed.load(Relaxed) > failed || self.abandoned.load(Relaxed)
        };
        while !end.reached && !is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.is_slow.store(true, Relaxed);
                break;
            }
            end = self.ended.wait_timeout(end, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.flushing.fetch_sub(1, Relaxed);
        drop(end);
        self.counts()
    }

    /// Sends what there is and ends the thread, waiting for it no longer than `within`, nor once a call before has given up. Takes no
    /// lock for longer: at the end of a process its owner may be this thread.
    pub(super) fn shutdown(&self, within: Duration) -> SpanCounts {
        let deadline = deadline(within);
        let Some(mut end) = locks::lock_within(&self.end, within.max(LOCK_MAX)) else { return self.counts() };
        if !end.reached {
            end.deadline = Some(deadline);
            self.close();
        }
        while !end.reached && !self.abandoned.load(Relaxed) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            end = self.ended.wait_timeout(end, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let reached = end.reached;
        drop(end);
        if !reached && !self.abandoned.swap(true, Relaxed) {
            self.abandon(within);
        }
        self.counts()
    }

    /// Gives up what still waits, and says so: the thread may be stuck for longer than anyone has time.
    fn abandon(&self, within: Duration) {
        for shard in &self.shards {
            // What somebody stands in the middle of stays outstanding.
            let Some(mut state) = locks::lock_briefly(&shard.state) else { continue };
            state.closed = true;
            let (spans, bytes) = (state.buffer.spans.len(), state.buffer.bytes.len());
            state.buffer.clear();
            drop(state);
            self.queued.sub(spans, bytes);
            self.failed.fetch_add(spans as u64, Relaxed);
        }
        let counts = self.counts();
        let unsent = counts.lost() + counts.outstanding;
        if unsent > 0 {
            tell(&format!("{unsent} of {} spans were not sent: {} did not answer within {within:?}", counts.emitted, self.url));
        }
    }

    /// Wakes the thread, if it lives.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Gives each thread its shard, in turn.
fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD
        .try_with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
            }
            shard.get()
        })
        .unwrap_or(0)
}

impl Ends for SpanQueue {
    fn end(&self) {
        let counts = self.counts();
        if counts.outstanding > 0 {
            let within = locks::lock_briefly(&self.exit_within).map_or(SHUTDOWN_DEADLINE, |within| *within);
            self.shutdown(if self.is_slow.load(Relaxed) { Duration::ZERO } else { within });
        } else if counts.late + counts.refused > 0
            && let Some(mut outage) = locks::lock_briefly(&self.outage)
        {
            // They ended after the last word on it.
            outage.tell_losses(&self.url, &counts);
        }
    }
}
