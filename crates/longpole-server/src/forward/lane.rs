//! A lane: the bounded queue before one target, and the account of what became of what went in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longpole_model::{Loss, LossKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout_at;

use super::{ForwardProtocol, ForwardTarget, Parcel, appdash, file, http};
use crate::limits::{FORWARD_LAST_TRIES_MAX, FORWARD_QUEUE_BYTES_MAX};
use crate::loss_book::LossBook;
use crate::receive::Signal;

/// A request in the queue, with the room that it takes there until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) parcel: Parcel,
    _room: OwnedSemaphorePermit,
}

/// The queue, as the target's task sees it.
pub(super) type Queue = mpsc::UnboundedReceiver<Waiting>;

/// Nothing more comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    /// Until then what waits may be tried.
    pub(super) deadline: Instant,
    /// Until then a target is that nobody can reach.
    pub(super) last_tries_end: Instant,
}

/// What was handed to a lane and what became of it, shared by the lane and the task that serves the target.
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

/// The way to one target.
#[derive(Debug)]
pub(super) struct Lane {
    signal: Signal,
    // `None` once closed. What waits is charged to `room`.
    queue: Mutex<Option<mpsc::UnboundedSender<Waiting>>>,
    room: Arc<Semaphore>,
    account: Arc<Account>,
    closing: watch::Sender<Option<Closing>>,
    ended: watch::Receiver<bool>,
    task: AbortHandle,
}

impl Lane {
    pub(super) fn start(target: ForwardTarget, book: Arc<LossBook>) -> Self {
        let (queue, parcels) = mpsc::unbounded_channel();
        let (closing, is_closing) = watch::channel(None);
        let (tell_ended, ended) = watch::channel(false);
        let name = match target.protocol {
            ForwardProtocol::OtlpFile | ForwardProtocol::AppDashFile => target.url.clone(),
            _ => http::printable(&target.url),
        };
        let account = Arc::new(Account { name, book, pending: AtomicU64::new(0), trouble: Mutex::default(), closing: is_closing });
        let signal = target.signal;
        let task = tokio::spawn({
            let account = Arc::clone(&account);
            async move {
                match target.protocol {
                    ForwardProtocol::Grpc | ForwardProtocol::Http | ForwardProtocol::AsReceived | ForwardProtocol::Zipkin => {
                        http::run(parcels, target, account).await;
                    }
                    ForwardProtocol::AppDash => appdash::run(parcels, &target, &account).await,
                    ForwardProtocol::OtlpFile => file::run_otlp(parcels, &target, &account).await,
                    ForwardProtocol::AppDashFile => file::run_appdash(parcels, &target, &account).await,
                }
                // Nobody waits where the receiver was dropped.
                let _ = tell_ended.send(true);
            }
        })
        .abort_handle();
        let room = Arc::new(Semaphore::new(FORWARD_QUEUE_BYTES_MAX));
        Lane { signal, queue: Mutex::new(Some(queue)), room, account, closing, ended, task }
    }

    pub(super) fn signal(&self) -> Signal {
        self.signal
    }

    pub(super) fn send(&self, parcel: Parcel) {
        let items = parcel.items;
        self.account.pending.fetch_add(items, Ordering::Relaxed);
        // A body larger than the whole queue has nowhere to wait.
        let room = u32::try_from(parcel.body.len()).ok().and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let Some(room) = room else {
            let reason = format!("takes less than the command sends: the queue of {} MiB is full", FORWARD_QUEUE_BYTES_MAX >> 20);
            self.account.undelivered(items, &reason);
            return;
        };
        // What comes after the lane was closed stays pending, and is counted with what the deadline cuts off.
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = queue.send(Waiting { parcel, _room: room });
        }
    }

    /// Takes no more, and wakes what waits to be tried again for its last attempts.
    pub(super) fn close(&self, deadline: Instant) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.send_replace(Some(Closing { deadline, last_tries_end: Instant::now() + FORWARD_LAST_TRIES_MAX }));
    }

    /// Waits until everything is delivered or given up, until the deadline; then counts what is left.
    pub(super) async fn ended(&self, deadline: Instant) {
        let mut ended = self.ended.clone();
        // Ended, or out of time, or the task is gone: in each case `pending` is what was not handed on.
        let _ = timeout_at(deadline.into(), ended.wait_for(|ended| *ended)).await;
        self.task.abort();
        let left = self.account.pending.swap(0, Ordering::Relaxed);
        let why = self.account.trouble().map(|why| format!(": {why}"));
        let detail = format!("{} did not take them before longpole ended{}", self.account.name, why.unwrap_or_default());
        self.account.book.add(LossKind::ForwardFailed, left, detail);
    }
}
