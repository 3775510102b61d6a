//! From ended spans to a collector: bounded buffers in `queue.rs`, one plain thread with blocking HTTP in `worker.rs`, which sends
//! again what the collector did not take (`retry.rs`).
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

use std::sync::{Arc, Weak};
use std::time::Duration;

use tracing_core::Metadata;

use self::queue::SpanQueue;
use self::worker::Worker;
use crate::config::ExportConfig;
use crate::locks::lock;
use crate::span_counts::SpanCounts;
use crate::{at_exit, forks, own_threads, sys, thread_context};

mod queue;
mod retry;
mod worker;

/// The near end: takes spans from the program's threads. Dropping it asks the thread to finish, without waiting.
pub(crate) struct Exporter {
    shared: Arc<SpanQueue>,
}

impl Exporter {
    /// Starts the thread.
    pub(crate) fn start(config: ExportConfig) -> std::io::Result<Self> {
        // The child of a fork has no such thread; it must know before it takes a lock.
        thread_context::watch_forks();
        let shared = Arc::new(SpanQueue::new(&config));
        let theirs = Arc::clone(&shared);
        let builder = own_threads::builder();
        let run = move || Worker::begin(config, theirs).run();
        let handle = sys::with_signals_blocked(|| builder.spawn(run))?;
        let _ = shared.thread.set(handle.thread().clone());
        let ends: Weak<SpanQueue> = Arc::downgrade(&shared);
        at_exit::register(ends);
        Ok(Self { shared })
    }

    /// Takes the fields of an ended span, or counts it as lost.
    pub(crate) fn push(&self, span: &[u8], metadata: &'static Metadata<'static>) {
        if forks::is_forked_child() {
            return;
        }
        self.shared.push(span, metadata);
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        if forks::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.counts()
    }

    /// Sends what there is and ends the thread, waiting for it no longer than `within`, nor once a call before has given up.
    pub(crate) fn shutdown(&self, within: Duration) -> SpanCounts {
        if forks::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.shutdown(within)
    }

    /// Sends what has ended by now, and goes on.
    pub(crate) fn flush(&self, within: Duration) -> SpanCounts {
        if forks::is_forked_child() {
            return SpanCounts::default();
        }
        self.shared.flush(within)
    }

    /// How long the end of the process waits for the collector.
    pub(crate) fn set_exit_within(&self, within: Duration) {
        *lock(&self.shared.exit_within) = within;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // A lock that another thread of the parent held in the moment of a fork is never given back.
        if !forks::is_forked_child() {
            let _end = lock(&self.shared.end);
            self.shared.close();
        }
    }
}
