//! The time of spans.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds of the monotonic clock since the layer was made. Wall-clock time is this plus an offset that a local root takes
/// when it begins and its descendants inherit: so the times within a tree are those of one clock that never steps.
pub(super) struct Clock {
    base: Instant,
    /// Unix time minus monotonic time, and when that was found out.
    offset: AtomicI64,
    offset_taken: AtomicI64,
}

impl Clock {
    /// How long an offset is good for. Short, because a wall clock may be set, and a machine may sleep, which the monotonic clock
    /// does not notice; long enough that a busy program reads one clock per span.
    const OFFSET_AGE_MAX: i64 = 100_000_000;

    /// Two monotonic readings around one of the wall clock that lie further apart than this were interrupted.
    const READING_MAX: i64 = 10_000;

    pub(super) fn new() -> Self {
        Self { base: Instant::now(), offset: AtomicI64::new(0), offset_taken: AtomicI64::new(i64::MIN) }
    }

    pub(super) fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    pub(super) fn at(&self, time: Instant) -> i64 {
        // 2^63 ns are 292 years.
        time.saturating_duration_since(self.base).as_nanos() as i64
    }

    /// The offset, now.
    pub(super) fn offset(&self, now: i64) -> i64 {
        if now.saturating_sub(self.offset_taken.load(Acquire)) <= Self::OFFSET_AGE_MAX {
            return self.offset.load(Relaxed);
        }
        let offset = self.take_offset();
        // Threads that come here together store about the same.
        self.offset.store(offset, Relaxed);
        self.offset_taken.store(now, Release);
        offset
    }

    #[cold]
    fn take_offset(&self) -> i64 {
        let mut best = (i64::MAX, 0);
        for _ in 0..3 {
            let before = self.now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
            let after = self.now();
            if after - before < best.0 {
                best = (after - before, wall - (before + after) / 2);
            }
            if best.0 <= Self::READING_MAX {
                break;
            }
        }
        best.1
    }
}
