//! Bytes that longpole remembers of other processes. A process chooses how long its names and tables are, and there may be many processes: a limit
//! by number, or for each of them, is none.

use std::sync::atomic::{AtomicU64, Ordering};

/// The room for what is remembered of one kind, of all processes of all recordings.
#[derive(Debug, Default)]
pub(crate) struct Room(AtomicU64);

impl Room {
    pub(crate) const fn new() -> Room {
        Room(AtomicU64::new(0))
    }

    /// Takes bytes, if then no more than `max` are taken.
    pub(crate) fn take(&'static self, bytes: usize, max: u64) -> Option<Kept> {
        let bytes = u64::try_from(bytes).ok()?;
        let fits = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= max);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Kept { bytes, room: self })
    }
}

/// Bytes that are taken, and given back when this is dropped: it lies beside what has them.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: u64,
    room: &'static Room,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit_and_is_given_back() {
        static ROOM: Room = Room::new();
        let half = ROOM.take(50, 100).unwrap();
        assert!(ROOM.take(51, 100).is_none());
        let other = ROOM.take(50, 100).unwrap();
        assert!(ROOM.take(1, 100).is_none());
        drop(half);
        assert!(ROOM.take(50, 100).is_some() && ROOM.take(51, 100).is_none());
        drop(other);
        assert!(ROOM.take(100, 100).is_some());
    }
}
