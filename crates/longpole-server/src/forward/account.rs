//! What was handed to a target and what became of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longpole_model::{Loss, LossKind};
use longpole_recording::loss_counters::LossBook;
use tokio::sync::watch;

/// Nothing more comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    /// Until then what waits may be tried.
    pub(super) deadline: Instant,
    /// Until then a target is that nobody can reach.
    pub(super) last_tries_end: Instant,
}

/// What was handed to a lane and what became of it, shared by its queue and the task that serves the target.
#[derive(Debug)]
pub(super) struct Account {
    /// The target without what may be secret in it.
    pub(super) name: String,
    book: Arc<LossBook>,
    /// Items that are queued or in flight.
    pending: AtomicU64,
    /// Why the last attempt that is to be repeated failed.
    trouble: Mutex<Option<String>>,
    /// Says when nothing more comes.
    pub(super) closing: watch::Receiver<Option<Closing>>,
}

impl Account {
    /// Nothing was handed over yet.
    pub(super) fn new(name: String, book: Arc<LossBook>, closing: watch::Receiver<Option<Closing>>) -> Self {
        Account { name, book, pending: AtomicU64::new(0), trouble: Mutex::default(), closing }
    }

    /// These are queued.
    pub(super) fn queued(&self, items: u64) {
        self.pending.fetch_add(items, Ordering::Relaxed);
    }

    /// Counts what is still pending as undelivered: there is no more time.
    pub(super) fn give_up(&self) {
        let left = self.pending.swap(0, Ordering::Relaxed);
        let why = self.trouble().map(|why| format!(": {why}")).unwrap_or_default();
        self.book.add(LossKind::ForwardFailed, left, format!("{} did not take them before longpole ended{why}", self.name));
    }

    /// The target has these.
    pub(super) fn delivered(&self, items: u64) {
        self.pending.fetch_sub(items, Ordering::Relaxed);
    }

    /// The target will never have these.
    pub(super) fn undelivered(&self, items: u64, reason: &str) {
        self.pending.fetch_sub(items, Ordering::Relaxed);
        self.book.add(LossKind::ForwardFailed, items, format!("{}: {reason}", self.name));
    }

    /// The target has what it can hold of these, which is less than there was.
    pub(super) fn thinned(&self, losses: Vec<Loss>) {
        for loss in losses {
            self.book.add(loss.kind, loss.count, format!("{}: {}", self.name, loss.detail));
        }
    }

    /// Remembers why an attempt failed; a reason that says nothing does not hide one that does.
    pub(super) fn note(&self, reason: &str, vague: bool) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if !vague || trouble.is_none() {
            *trouble = Some(reason.to_owned());
        }
    }

    /// Why the last attempt failed.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
