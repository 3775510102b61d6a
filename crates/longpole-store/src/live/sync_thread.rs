//! The thread that waits for the disk, for all requests that wait meanwhile.
//!
//! ```text
//! requests  a b c     d e f g      h
//! syncs     [  a  ]   [  b c  ]    [ d e f g ]
//! ```
//!
//! A request that comes while the disk works waits for the next sync. So the number of syncs depends on the disk, and not on the requests.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use super::{Appended, SharedStore, lock};
use crate::error::StoreError;
use crate::wal::WalWriter;

/// Called when what was appended is durable, or with the reason why it cannot become so.
pub type Acknowledge = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Those who wait for the disk.
#[derive(Default)]
pub(super) struct SyncThread {
    waiting: Mutex<WaitingRequests>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A request, and the generations whose logs have it.
struct WaitingRequest {
    appended: Appended,
    acknowledge: Acknowledge,
}

#[derive(Default)]
struct WaitingRequests {
    requests: Vec<WaitingRequest>,
    is_over: bool,
}

impl std::fmt::Debug for SyncThread {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} requests", lock(&self.waiting).requests.len())
    }
}

impl SyncThread {
    pub(super) fn start(shared: &Arc<SharedStore>) -> Result<(), StoreError> {
        let store = Arc::downgrade(shared);
        let spawned = thread::Builder::new().name("longpole-sync".to_owned()).spawn(move || serve(&store));
        *lock(&shared.sync_thread.thread) = Some(spawned.map_err(StoreError::io("start a thread for", &shared.folders.wal))?);
        Ok(())
    }

    pub(super) fn wait(&self, appended: Appended, acknowledge: Acknowledge) {
        lock(&self.waiting).requests.push(WaitingRequest { appended, acknowledge });
        self.changed.notify_one();
    }

    /// Ends the thread after those who wait now, and waits for it.
    fn end(&self) {
        lock(&self.waiting).is_over = true;
        self.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of it has printed itself.
            let _ = thread.join();
        }
    }

    /// Those who wait; `None` if none will come any more.
    fn next(&self) -> Option<Vec<WaitingRequest>> {
        let mut waiting = lock(&self.waiting);
        while waiting.requests.is_empty() && !waiting.is_over {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.requests.is_empty() { None } else { Some(std::mem::take(&mut waiting.requests)) }
    }
}

fn serve(store: &Weak<SharedStore>) {
    while let Some(shared) = store.upgrade() {
        let Some(requests) = shared.sync_thread.next() else { return };
        let failed = shared.sync();
        for WaitingRequest { appended, acknowledge } in requests {
            let reason = failed.iter().find(|(number, _)| appended.has(*number)).map(|(_, reason)| reason.clone());
            acknowledge(reason.map_or(Ok(()), Err));
        }
    }
}

impl SharedStore {
    /// Waits until the disk has all logs, and returns those that it may lack a part of, with the reason. Such a generation ends; what is in it
    /// is durable only when it has become a segment.
    fn sync(&self) -> Vec<(u64, String)> {
        let (generations, _) = self.all();
        let mut failed = Vec::new();
        for generation in generations {
            let Some(Err(error)) = generation.wal.as_ref().map(WalWriter::sync) else { continue };
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            failed.push((generation.number, format!("failed to {error}{source}")));
            // If the next one cannot begin either, the request after this one tries again and says why.
            let _ = self.begin_after(generation.number, generation.begun);
        }
        failed
    }
}

impl Drop for super::LiveStore {
    fn drop(&mut self) {
        // The thread holds the store while it waits: this one and the thread's are the last two.
        if Arc::strong_count(&self.shared) <= 2 {
            self.shared.sync_thread.end();
        }
    }
}
