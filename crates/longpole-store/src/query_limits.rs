//! What bounds a query: whether somebody still waits for it, and the memory that it may take.

use crate::error::StoreError;
use crate::memory::query_memory::{Held, NoMemory, QueryMemory};
use crate::query_stop::QueryStop;

/// Memory that an answer takes for each byte of its names: the list of them, the document, and its text, in which a byte becomes six at most and which
/// has twice the room while it grows.
pub const LIST_ANSWER_TIMES: u64 = 14;

/// The limits of a query. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct QueryLimits {
    /// Stops it.
    pub stop: QueryStop,
    /// Its share of the memory of all queries.
    pub memory: QueryMemory,
}

impl QueryLimits {
    /// Fails if the query was stopped.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stopped`].
    pub fn check(&self) -> Result<(), StoreError> {
        self.stop.check()
    }

    /// Takes memory for what stays, and waits for it if others have it.
    ///
    /// # Errors
    ///
    /// [`StoreError::MemoryShort`] if others keep it, [`StoreError::TooMuchMemory`] if there is never so much, [`StoreError::Stopped`].
    pub fn take(&self, bytes: u64) -> Result<(), StoreError> {
        self.memory.take(bytes, &self.stop).map_err(error_of)
    }

    /// Takes memory for what will be taken, about, before it holds any: queries that wait halfway keep each other waiting.
    ///
    /// # Errors
    ///
    /// [`StoreError::MemoryShort`] if others keep it, [`StoreError::Stopped`].
    pub fn reserve(&self, bytes: u64) -> Result<(), StoreError> {
        self.memory.reserve(bytes, &self.stop).map_err(error_of)
    }

    /// Takes memory for a moment: as long as the value lives that is returned.
    ///
    /// # Errors
    ///
    /// As of [`take`](Self::take).
    pub fn hold(&self, bytes: u64) -> Result<Held, StoreError> {
        self.memory.hold(bytes, &self.stop).map_err(error_of)
    }

    /// Memory for something that grows piece by piece.
    pub fn growing(&self) -> GrowingMemory<'_> {
        GrowingMemory { query: self, room: 0 }
    }

    /// Does work that leaves nothing in memory but what it returns.
    pub fn briefly<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.memory.bytes();
        let done = work();
        self.memory.release_to(before);
        done
    }
}

/// Bytes that [`GrowingMemory`] takes at a time: pieces may be small, and all queries share one account.
const GROWING_STEP: u64 = 64 << 10;

/// Memory of something that grows: it is taken in steps, each before the piece is there.
#[derive(Debug)]
pub struct GrowingMemory<'a> {
    query: &'a QueryLimits,
    /// What is taken and not used yet.
    room: u64,
}

impl GrowingMemory<'_> {
    /// Takes memory for a piece. Fails if the query was stopped, also for a piece that takes none.
    ///
    /// # Errors
    ///
    /// As of [`QueryLimits::take`].
    pub fn take(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.query.check()?;
        if bytes > self.room {
            let step = bytes.max(GROWING_STEP);
            self.query.take(step)?;
            self.room = self.room.saturating_add(step);
        }
        self.room -= bytes;
        Ok(())
    }
}

fn error_of(none: NoMemory) -> StoreError {
    match none {
        NoMemory::Short => StoreError::MemoryShort,
        NoMemory::Never { needed, limit } => StoreError::TooMuchMemory { needed, limit },
        NoMemory::Stopped => StoreError::Stopped,
    }
}
