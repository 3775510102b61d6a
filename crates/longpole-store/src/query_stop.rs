//! Stopping the work of a query.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StoreError;

/// Stops the reading for a query that nobody waits for any more. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct QueryStop(Arc<AtomicBool>);

impl QueryStop {
    /// From now on each step of the query fails.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if it was stopped.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_stopped() { Err(StoreError::Stopped) } else { Ok(()) }
    }
}
