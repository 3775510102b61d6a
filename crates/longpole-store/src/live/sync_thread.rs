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

use super::{SharedStore, lock, read};
use crate::error::StoreError;

/// Called when what was appended is durable, or with the reason why it cannot become so.
pub type Acknowledge = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Those who wait for the disk.
#[derive(Default)]
pub(super) struct SyncThread {
    waiting: Mutex<WaitingRequests>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct WaitingRequests {
    requests: Vec<Acknowledge>,
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

    pub(super) fn wait(&self, acknowledge: Acknowledge) {
        lock(&self.waiting).requests.push(acknowledge);
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
    fn next(&self) -> Option<Vec<Acknowledge>> {
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
        let synced = shared.sync();
        for acknowledge in requests {
            acknowledge(synced.clone());
        }
    }
}

impl SharedStore {
    /// Waits until the disk has all logs. A generation whose sync fails ends.
    fn sync(&self) -> Result<(), String> {
        let (generations, _) = self.all();
        let mut result = Ok(());
        for generation in generations {
            let Some(Err(error)) = generation.wal.as_ref().map(|wal| wal.sync()) else { continue };
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            result = Err(format!("failed to {error}{source}"));
            // If the next one cannot begin either, the request after this one tries again and says why.
            let _ = self.begin_after(generation.number, generation.begun);
        }
        result
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

impl super::LiveStore {
    /// Whether a generation has ended that is no segment yet.
    pub fn is_behind(&self) -> bool {
        !read(&self.shared.state).ended.is_empty()
    }
}
