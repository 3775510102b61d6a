//! Spans between the processor and the collector, and what became of them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::ExportConfig;
use crate::forks;
use crate::locks::lock;
use crate::outage::Outage;
use crate::span_counts::SpanCounts;

/// Spans between the processor and the collector, and what became of them.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) url: String,
    pub(super) emitted: AtomicU64,
    pub(super) exported: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) late: AtomicU64,
    /// The shutdown has begun.
    pub(super) closing: AtomicBool,
    /// Somebody waited in vain since the collector last answered: nobody waits for it again.
    pub(super) is_slow: AtomicBool,
    /// How long the end of the process waits.
    pub(super) exit_within: Mutex<Duration>,
    pub(super) max_waiting: usize,
    /// Why the last HTTP request got no answer; the stock exporter says "network error" for all of it.
    pub(super) unanswered: Arc<Mutex<Option<String>>>,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Spans that are on their way.
    pub(super) under_way: usize,
    /// The last answer was awaited in vain.
    pub(super) slow: bool,
    /// The processor has ended.
    pub(super) processor_ended: bool,
    /// All has ended, and what is missing was lost in a full queue.
    pub(super) settled: bool,
    pub(super) abandoned: bool,
    pub(super) outage: Outage,
    /// Ends the thread of the runtime when it is dropped.
    pub(super) station: Option<oneshot::Sender<()>>,
}

impl Flow {
    /// `station` ends the thread of the runtime when it is dropped.
    pub(super) fn new(export: &ExportConfig, station: oneshot::Sender<()>) -> Self {
        Flow {
            url: export.url.clone(),
            emitted: AtomicU64::new(0),
            exported: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            queue_full: AtomicU64::new(0),
            late: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
            exit_within: Mutex::new(crate::SHUTDOWN_DEADLINE),
            max_waiting: export.max_queue_spans,
            unanswered: Arc::default(),
            state: Mutex::new(State { station: Some(station), ..State::default() }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn counts(&self) -> SpanCounts {
        if forks::is_forked_child() {
            return SpanCounts::default();
        }
        self.counts_with(&lock(&self.state))
    }

    pub(super) fn counts_with(&self, state: &State) -> SpanCounts {
        let mut counts = SpanCounts {
            exported: self.exported.load(Relaxed),
            failed: self.failed.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            late: self.late.load(Relaxed),
            refused: crate::registry_guard::refused(),
            ..SpanCounts::default()
        };
        counts.emitted = self.emitted.load(Relaxed) + counts.refused;
        let rest = counts.emitted.saturating_sub(counts.exported + counts.lost());
        // A stock processor does not say which spans it dropped; when it has ended, those that came nowhere are they.
        if state.settled {
            counts.queue_full += rest
        } else {
            counts.outstanding = rest
        }
        counts
    }

    pub(super) fn depart(&self, spans: usize) {
        lock(&self.state).under_way += spans;
    }

    /// A batch was answered, or is lost.
    pub(super) fn arrive(&self, spans: usize, result: Result<(), String>) {
        let mut state = lock(&self.state);
        state.under_way -= spans;
        match result {
            Ok(()) => {
                self.exported.fetch_add(spans as u64, Relaxed);
                self.is_slow.store(false, Relaxed);
                state.slow = false;
                if state.outage.end() && !self.closing.load(Relaxed) {
                    let counts = self.counts_with(&state);
                    state.outage.tell_losses(&self.url, &counts);
                }
            }
            Err(why) => {
                self.failed.fetch_add(spans as u64, Relaxed);
                if self.closing.load(Relaxed) {
                    state.outage.note(why);
                } else {
                    state.outage.begin(&self.url, why, "those of this request are lost");
                }
            }
        }
        self.changed.notify_all();
    }

    /// Waits until something arrives, or for `within`.
    pub(super) fn wait_for_arrival(&self, within: Duration) {
        let state = lock(&self.state);
        let _ = self.changed.wait_timeout(state, within).unwrap_or_else(PoisonError::into_inner);
    }
}
