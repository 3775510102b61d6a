//! What the health endpoints say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether a server is ready, and why not.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    is_ready: AtomicBool,
    troubles: Mutex<Troubles>,
}

#[derive(Debug, Default)]
struct Troubles {
    /// Why the last maintenance failed.
    maintenance: Option<String>,
    /// Why the log took no request, until the disk takes something again.
    append: Option<String>,
}

impl ServerState {
    fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    pub(super) fn set_maintenance_trouble(&self, trouble: Option<String>) {
        self.troubles().maintenance = trouble;
    }

    /// Notes that the log did not take a request: whoever sends another one has to send it again.
    pub(super) fn note_failed_append(&self, reason: &str) {
        self.troubles().append = Some(reason.to_owned());
    }

    /// Whether the log did not take the last request.
    pub(super) fn has_failed_append(&self) -> bool {
        self.troubles().append.is_some()
    }

    /// Notes that the disk takes what is written.
    pub(super) fn note_writable(&self) {
        self.troubles().append = None;
    }

    /// Why it is not ready; `None` if it is.
    pub(super) fn trouble(&self) -> Option<String> {
        let troubles = self.troubles();
        let ending = || "not ready".to_owned();
        let first = (!self.is_ready.load(Ordering::Relaxed)).then(ending);
        first.or_else(|| troubles.append.clone()).or_else(|| troubles.maintenance.clone())
    }
}
