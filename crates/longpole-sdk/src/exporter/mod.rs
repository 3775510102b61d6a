//! From ended spans to a collector: bounded buffers here, one plain thread with blocking HTTP in `send.rs`.
//!
//! ```text
//!  thread A ─ encode ─┐                     the one thread
//!  thread B ─ encode ─┼→ shards (bounded) ─ sweep → batches → POST … /v1/traces
//!  thread C ─ encode ─┘    full: counted            failed: repeated, then counted
//! ```
//!
//! A span is encoded by the thread that ends it, into the shard of that thread, so threads seldom meet at a lock and no memory
//! changes hands. The exporting thread knows nothing of async runtimes, which is why a shutdown from inside of one cannot wait
//! for itself. Every span ends in exactly one of the counters of [`SpanCounts`].

use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tracing_core::Metadata;

use crate::SHUTDOWN_DEADLINE;
use crate::at_exit::{self, Ends, deadline};
use crate::config::ExportConfig;
use crate::diagnostic::tell;
use crate::exporter::retry::Outage;
use crate::exporter::worker::Sender;
use crate::shelter;
use crate::thread_context;

pub(crate) mod retry;
mod worker;

/// Enough that the threads of a small machine do not meet; a shard that is not used costs a hundred bytes.
const SHARDS: usize = 16;

/// Most bytes of spans that wait. With spans of common size the queue's length is the tighter limit.
const MAX_QUEUE_BYTES: usize = 64 << 20;

/// Buffers keep their memory for the next spans, but not that of a burst.
pub(crate) const MAX_KEPT_BYTES: usize = 1 << 20;

/// What became of the spans so far.
///
/// `emitted` is the sum of all others: a span is exported, lost for one reason, or outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpanCounts {
    /// Spans that ended and were to be sent.
    pub emitted: u64,
    /// Accepted by the collector.
    pub exported: u64,
    /// Lost: the queue was full.
    pub queue_full: u64,
    /// Lost: the collector could not be reached or refused the batch.
    pub failed: u64,
    /// Lost: the collector took the batch but not these spans.
    pub rejected: u64,
    /// Lost: ended after the shutdown.
    pub late: u64,
    /// Lost: could not be made, of the whole process: above the registry's 3,840 threads at a time, on a thread that is ending, or in a
    /// signal handler that interrupted the making of another one.
    pub refused: u64,
    /// Waiting, or on the way.
    pub outstanding: u64,
}

impl SpanCounts {
    /// Spans lost, whatever the reason.
    pub fn lost(&self) -> u64 {
        self.queue_full + self.failed + self.rejected + self.late + self.refused
    }
}

/// A span that waits: where its bytes end, and where its macro stands in the source.
pub(crate) struct Waiting {
    pub(crate) end: usize,
    pub(crate) metadata: &'static Metadata<'static>,
}

/// Encoded spans, one after the other, without their tag and length.
#[derive(Default)]
pub(crate) struct SpanBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Waiting>,
}

impl SpanBuffer {
    fn push(&mut self, span: &[u8], metadata: &'static Metadata<'static>) {
        self.bytes.extend_from_slice(span);
        self.spans.push(Waiting { end: self.bytes.len(), metadata });
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT_BYTES);
        self.spans.clear();
        self.spans.shrink_to(MAX_KEPT_BYTES / size_of::<Waiting>());
    }
}

/// One of the buffers that ending spans go to. Aligned so that two of them share no cache line.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Shard {
    pub(crate) state: Mutex<ShardState>,
    /// Spans that it took. Beside the lock, for who must not wait for it.
    taken: AtomicU64,
}

#[derive(Default)]
pub(crate) struct ShardState {
    pub(crate) buffer: SpanBuffer,
    /// Nobody will look here again.
    pub(crate) closed: bool,
}

/// A panic while a lock of ours is held would be a bug of ours; the data behind it stays usable, and the program matters more.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many spans wait, and how many bytes they take, in the shards and in the hands of the thread, not counting the batch that
/// is on its way. Both stand in one word, spans above bytes, so that a span takes its place in one step.
pub(crate) struct QueueLevel(AtomicU64);

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

    pub(crate) fn sub(&self, spans: usize, bytes: usize) {
        self.0.fetch_sub(Self::word(spans, bytes), Relaxed);
    }

    pub(crate) fn spans(&self) -> usize {
        Self::split(self.0.load(Relaxed)).0
    }
}

/// What the program's threads and the exporting thread share.
pub(crate) struct Shared {
    pub(crate) shards: [Shard; SHARDS],
    pub(crate) queued: QueueLevel,
    max_queue_spans: usize,
    max_batch_spans: usize,
    pub(crate) exported: AtomicU64,
    queue_full: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) rejected: AtomicU64,
    late: AtomicU64,
    /// The thread is to send what there is and end.
    pub(crate) closing: AtomicBool,
    /// An attempt failed after the shutdown began: there is no other.
    pub(crate) gave_up: AtomicBool,
    /// Whoever asked for the shutdown waits no longer.
    pub(crate) abandoned: AtomicBool,
    /// How many wait for what has ended to be sent, while the program goes on.
    pub(crate) flushing: AtomicUsize,
    /// How often somebody began to wait so.
    pub(crate) flushes: AtomicU64,
    /// Attempts that failed so far: who waits for one of these waits no longer.
    pub(crate) attempts_failed: AtomicU64,
    /// Somebody waited in vain since the collector last answered: nobody waits for it again.
    pub(crate) is_slow: AtomicBool,
    /// How long the end of the process waits.
    exit_within: Mutex<Duration>,
    url: String,
    pub(crate) outage: Mutex<Outage>,
    thread: OnceLock<Thread>,
    pub(crate) end: Mutex<End>,
    /// The end began, or is reached.
    pub(crate) ended: Condvar,
}

#[derive(Default)]
pub(crate) struct End {
    /// Until when the shutdown waits.
    pub(crate) deadline: Option<Instant>,
    pub(crate) reached: bool,
}

impl Shared {
    pub(crate) fn counts(&self) -> SpanCounts {
        let mut counts = SpanCounts {
            emitted: 0,
            exported: self.exported.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            failed: self.failed.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            late: self.late.load(Relaxed),
            refused: shelter::refused(),
            outstanding: 0,
        };
        let taken: u64 = self.shards.iter().map(|shard| shard.taken.load(Relaxed)).sum();
        counts.emitted = taken + counts.queue_full + counts.late + counts.refused;
        counts.outstanding = counts.emitted.saturating_sub(counts.exported + counts.lost());
        counts
    }

    /// Asks the threads to send what there is and end; the caller holds `end`, so nobody is about to wait.
    fn close(&self) {
        self.closing.store(true, Release);
        self.wake();
        self.ended.notify_all();
    }

    /// Whether somebody waits for spans to be sent before it is their turn.
    pub(crate) fn is_wanted(&self) -> bool {
        self.flushing.load(Relaxed) > 0
    }

    /// Sends what has ended by now, waiting for it no longer than `within`, nor after an attempt that failed, nor for a collector that
    /// was waited for in vain. Sending goes on.
    fn flush(&self, within: Duration) -> SpanCounts {
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
    fn shutdown(&self, within: Duration) -> SpanCounts {
        let deadline = deadline(within);
        let Some(mut end) = at_exit::lock_within(&self.end, within.max(at_exit::LOCK_MAX)) else { return self.counts() };
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
            let Some(mut state) = at_exit::lock_briefly(&shard.state) else { continue };
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
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Name of the threads that send.
pub(crate) const THREAD_NAME: &str = "longpole-sdk";

/// Stack of these threads. Said, because `RUST_MIN_STACK`, which speaks of the program's threads, can be too little for reading an answer.
const STACK_BYTES: usize = 1 << 20;

/// A thread that sends, to be started.
pub(crate) fn thread() -> std::thread::Builder {
    std::thread::Builder::new().name(THREAD_NAME.into()).stack_size(STACK_BYTES)
}

thread_local! {
    static IS_OWN_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Spans of this thread, those of an HTTP library say, would be sent by it, and make more of them.
pub(crate) fn mark_own_thread() {
    IS_OWN_THREAD.set(true);
}

pub(crate) fn is_own_thread() -> bool {
    IS_OWN_THREAD.get()
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

/// The near end: takes spans from the program's threads. Dropping it asks the thread to finish, without waiting.
pub(crate) struct Exporter {
    shared: Arc<Shared>,
}

impl Exporter {
    /// Starts the thread.
    pub(crate) fn start(config: ExportConfig) -> std::io::Result<Self> {
        // The child of a fork has no such thread; it must know before it takes a lock.
        thread_context::watch_forks();
        let shared = Arc::new(Shared {
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
        });
        let theirs = Arc::clone(&shared);
        let builder = thread();
        let run = move || Sender::begin(config, theirs).run();
        let handle = thread_context::with_signals_blocked(|| builder.spawn(run))?;
        let _ = shared.thread.set(handle.thread().clone());
        let ends: Weak<Shared> = Arc::downgrade(&shared);
        at_exit::register(ends);
        Ok(Self { shared })
    }

    /// Takes the fields of an ended span, or counts it as lost.
    pub(crate) fn push(&self, span: &[u8], metadata: &'static Metadata<'static>) {
        if thread_context::is_forked_child() {
            return;
        }
        let shared = &*self.shared;
        let (spans_before, bytes_before) = shared.queued.add(span.len());
        if spans_before >= shared.max_queue_spans || bytes_before > MAX_QUEUE_BYTES {
            shared.queued.sub(1, span.len());
            shared.queue_full.fetch_add(1, Relaxed);
            return;
        }
        let shard = &shared.shards[shard_of_this_thread()];
        let mut state = lock(&shard.state);
        if state.closed {
            drop(state);
            shared.queued.sub(1, span.len());
            shared.late.fetch_add(1, Relaxed);
            return;
        }
        state.buffer.push(span, metadata);
        shard.taken.fetch_add(1, Relaxed);
        drop(state);
        if spans_before + 1 == shared.max_batch_spans {
            shared.wake();
        }
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.counts()
    }

    /// Sends what there is and ends the thread, waiting for it no longer than `within`, nor once a call before has given up.
    pub(crate) fn shutdown(&self, within: Duration) -> SpanCounts {
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.shutdown(within)
    }

    /// Sends what has ended by now, and goes on.
    pub(crate) fn flush(&self, within: Duration) -> SpanCounts {
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.flush(within)
    }

    /// How long the end of the process waits for the collector.
    pub(crate) fn set_exit_within(&self, within: Duration) {
        *lock(&self.shared.exit_within) = within;
    }
}

impl Ends for Shared {
    fn end(&self) {
        let counts = self.counts();
        if counts.outstanding > 0 {
            let within = at_exit::lock_briefly(&self.exit_within).map_or(SHUTDOWN_DEADLINE, |within| *within);
            self.shutdown(if self.is_slow.load(Relaxed) { Duration::ZERO } else { within });
        } else if counts.late + counts.refused > 0
            && let Some(mut outage) = at_exit::lock_briefly(&self.outage)
        {
            // They ended after the last word on it.
            outage.tell_losses(&self.url, &counts);
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // A lock that another thread of the parent held in the moment of a fork is never given back.
        if !thread_context::is_forked_child() {
            let _end = lock(&self.shared.end);
            self.shared.close();
        }
    }
}
