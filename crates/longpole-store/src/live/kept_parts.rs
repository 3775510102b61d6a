//! What is kept in memory of segments between two queries, within a limit: indexes, opened tables, lists of operations.
//!
//! Each segment notes when one of its parts was used last. Where all parts together take too much, those go that nobody has used for the longest
//! time, until a quarter of the room is free.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that parts of segments may take.
const PARTS_BYTES_MAX: u64 = if cfg!(test) { 256 << 10 } else { 256 << 20 };

/// The account of all segments of a store.
#[derive(Debug, Default)]
pub(super) struct PartsAccount {
    bytes: AtomicU64,
    /// Counts uses: a clock that no step of time moves.
    uses: AtomicU64,
}

impl PartsAccount {
    /// The number of this use.
    pub(super) fn use_now(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes() > PARTS_BYTES_MAX
    }

    /// Whether a quarter of the room is free.
    pub(super) fn has_room(&self) -> bool {
        self.bytes() <= PARTS_BYTES_MAX / 4 * 3
    }
}
