//! The samples since the last push, with their spans, also of blocks that are free again: who allocates much and keeps nothing.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::sample::{HeapSample, Samples};

/// Samples of an interval that keep their span: of 15 seconds at 1 GB a second and the default rate.
const RECENT: usize = 1 << 15;

/// The list; one thread at a time uses it.
pub(super) struct RecentSamples {
    samples: Samples<RECENT>,
    count: AtomicUsize,
}

impl RecentSamples {
    pub(super) const fn new() -> Self {
        Self { samples: Samples::new(), count: AtomicUsize::new(0) }
    }

    /// Adds a sample. Those that are too many count for their stack only.
    pub(super) fn push(&self, sample: &HeapSample) {
        let at = self.count.load(Relaxed);
        if at < RECENT {
            self.samples.set(at, sample);
            self.count.store(at + 1, Relaxed);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Moves those that `out` has room for, without more memory, and forgets the rest.
    pub(super) fn move_to(&self, out: &mut Vec<HeapSample>) {
        let room = out.capacity() - out.len();
        out.extend((0..self.len()).take(room).filter_map(|at| self.samples.get(at)));
        self.count.store(0, Relaxed);
    }
}
