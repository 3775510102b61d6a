//! The bounded queue before one target.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use longpole_recording::loss_counters::LossBook;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout_at;

use super::account::{Account, Closing};
use crate::limits::{FORWARD_LAST_TRIES_MAX, FORWARD_QUEUE_BYTES_MAX};
use crate::otlp_request::{Parcel, Signal};

/// A request in the queue, with the room that it takes there until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) parcel: Parcel,
    _room: OwnedSemaphorePermit,
}

/// The queue, as the target's task sees it.
pub(super) type Requests = mpsc::UnboundedReceiver<Waiting>;

/// The bounded queue before one target.
#[derive(Debug)]
pub(super) struct TargetQueue {
    signal: Signal,
    // `None` once closed. What waits is charged to `room`.
    queue: Mutex<Option<mpsc::UnboundedSender<Waiting>>>,
    room: Arc<Semaphore>,
    account: Arc<Account>,
    closing: watch::Sender<Option<Closing>>,
    ended: watch::Receiver<bool>,
    task: AbortHandle,
}

impl TargetQueue {
    /// Opens a queue and starts the task that serves it. `name` is the target without what may be secret in it.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        signal: Signal,
        name: String,
        book: Arc<LossBook>,
        serve: impl FnOnce(Requests, Arc<Account>) -> F,
    ) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let (closing, is_closing) = watch::channel(None);
        let (tell_ended, ended) = watch::channel(false);
        let account = Arc::new(Account::new(name, book, is_closing));
        let served = serve(requests, Arc::clone(&account));
        let task = tokio::spawn(async move {
            served.await;
            // Nobody waits where the receiver was dropped.
            let _ = tell_ended.send(true);
        })
        .abort_handle();
        let room = Arc::new(Semaphore::new(FORWARD_QUEUE_BYTES_MAX));
        TargetQueue { signal, queue: Mutex::new(Some(queue)), room, account, closing, ended, task }
    }

    pub(super) fn signal(&self) -> Signal {
        self.signal
    }

    pub(super) fn send(&self, parcel: Parcel) {
        let items = parcel.items;
        self.account.queued(items);
        // A body larger than the whole queue has nowhere to wait.
        let room = u32::try_from(parcel.body.len()).ok().and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let Some(room) = room else {
            let limit = FORWARD_QUEUE_BYTES_MAX >> 20;
            let reason = format!("accepts data more slowly than the command sends it: the queue of {limit} MiB is full");
            self.account.undelivered(items, &reason);
            return;
        };
        // What comes after the queue was closed stays pending, and is counted with what the deadline cuts off.
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
        self.account.give_up();
    }
}
