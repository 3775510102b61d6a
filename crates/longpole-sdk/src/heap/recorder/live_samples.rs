//! The sampled blocks that are not free yet, by address.
//!
//! Every free of the program asks whether its block is one of them, and nearly none is. So the answer comes in two steps, both without a lock:
//!
//! ```text
//!  address 0x7f31a 48c24c0
//!                  └──┬─┘└ bits 0 to 5: blocks in 64 bytes share a place
//!                     ↓
//!  filter  512 Ki bits                   one load: zero, and the block is none of them
//!                     │ one
//!                     ↓
//!  two buckets of eight addresses each   two cache lines: the block is in one of them, or it is none of them
//! ```
//!
//! - A cache line of the filter stands for 32 KiB of addresses, so what it takes of the caches is a 512th of the memory that the program uses.
//!   A byte for each place instead of a bit made a loop of `malloc` and `free` slower by a nanosecond a pair.
//! - With *n* live samples, about *n* in 524,288 frees go on to the second step: 0.4 % of them for each GiB of a heap at the default rate.
//! - No entry ever moves. Whoever frees a block is its only owner, and put it in or got it from the thread that did: its entry is there to see. A hash
//!   table whose entries move would need a lock or a version for that.
//! - The first of two buckets that has room gets the entry. At three quarters of all places, which is the limit, both are full for fewer than one address in 1,000.
//! - A bit may be cleared when the last of its samples has gone. Counters beside the bits say when; only samples touch them.
//!
//! Only one thread at a time adds entries and changes the filter; whoever owns a block removes its entry at any time.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use super::sample::{HeapSample, Samples};

/// Places of the filter.
const FILTER: usize = 1 << 19;
const BUCKETS: usize = 1 << 14;

/// Addresses in a bucket: a cache line of them.
const WAYS: usize = 8;

const SLOTS: usize = BUCKETS * WAYS;

/// Samples that are live at a time, at most.
pub(crate) const LIVE_MAX: usize = SLOTS / 4 * 3;

/// Buckets that are copied at a time, while nothing can be added.
const COPIED_BUCKETS: usize = 256;

/// A counter that has come this far stays: it can no longer say how many it counted.
const STUCK: u8 = u8::MAX;

#[repr(align(64))]
struct Bucket([AtomicUsize; WAYS]);

/// The table.
pub(super) struct LiveSamples {
    filter: [AtomicU64; FILTER / 64],
    /// Samples at each place of the filter.
    counters: [AtomicU8; FILTER],
    /// Zero where there is room.
    buckets: [Bucket; BUCKETS],
    /// For each address in a bucket: where its sample is.
    places: [AtomicU32; SLOTS],
    /// Samples lie close to each other, so that few of them take few pages.
    samples: Samples<LIVE_MAX>,
    count: AtomicUsize,
    /// Places of `samples` that were in use so far, and a stack of those that no longer are.
    used: AtomicUsize,
    free: [AtomicU32; LIVE_MAX],
    free_count: AtomicUsize,
}

/// The place of an address in the filter. Not hashed: memory that is used together has bits that lie together.
#[inline(always)]
const fn place_of(address: usize) -> usize {
    address >> 6 & (FILTER - 1)
}

fn buckets_of(address: usize) -> [usize; 2] {
    let hash = (address as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(hash >> 50) as usize & (BUCKETS - 1), (hash >> 32) as usize & (BUCKETS - 1)]
}

impl LiveSamples {
    pub(super) const fn new() -> Self {
        Self {
            filter: [const { AtomicU64::new(0) }; FILTER / 64],
            counters: [const { AtomicU8::new(0) }; FILTER],
            buckets: [const { Bucket([const { AtomicUsize::new(0) }; WAYS]) }; BUCKETS],
            places: [const { AtomicU32::new(0) }; SLOTS],
            samples: Samples::new(),
            count: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            free: [const { AtomicU32::new(0) }; LIVE_MAX],
            free_count: AtomicUsize::new(0),
        }
    }

    /// Whether a block may be one of them. A load and a test of a bit.
    #[inline(always)]
    pub(super) fn may_have(&self, address: usize) -> bool {
        let place = place_of(address);
        self.filter[place / 64].load(Relaxed) & 1 << (place % 64) != 0
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Adds a block that the caller owns; whether there was room. One caller at a time.
    pub(super) fn put(&self, address: usize, sample: &HeapSample) -> bool {
        let slots = buckets_of(address).into_iter().flat_map(|bucket| bucket * WAYS..(bucket + 1) * WAYS);
        let empty = slots.into_iter().find(|slot| self.address(*slot).load(Relaxed) == 0);
        let (Some(slot), Some(place)) = (empty.filter(|_| address != 0), self.free_place()) else { return false };
        self.samples.set(place, sample);
        self.places[slot].store(place as u32, Relaxed);
        self.address(slot).store(address, Relaxed);
        let place = place_of(address);
        let count = &self.counters[place];
        count.store(count.load(Relaxed).saturating_add(1), Relaxed);
        self.filter[place / 64].fetch_or(1 << (place % 64), Relaxed);
        self.count.fetch_add(1, Relaxed);
        true
    }

    /// Removes a block that the caller owns and is about to free; what was kept with it, and its place, which goes to [`forget`](Self::forget).
    pub(super) fn take(&self, address: usize) -> Option<(HeapSample, u32)> {
        let slots = buckets_of(address).into_iter().flat_map(|bucket| bucket * WAYS..(bucket + 1) * WAYS);
        let slot = slots.into_iter().find(|slot| self.address(*slot).load(Relaxed) == address)?;
        let place = self.places[slot].load(Relaxed);
        let sample = self.samples.get(place as usize)?;
        // Release: what was read here was read before another block gets the slot. The place is nobody else's before `forget`.
        self.address(slot).store(0, Release);
        self.count.fetch_sub(1, Relaxed);
        Some((sample, place))
    }

    /// Makes room for another block after [`take`](Self::take). One caller at a time.
    pub(super) fn forget(&self, address: usize, place: u32) {
        let free = self.free_count.load(Relaxed);
        if let Some(entry) = self.free.get(free) {
            entry.store(place, Relaxed);
            self.free_count.store(free + 1, Relaxed);
        }
        let place = place_of(address);
        let count = &self.counters[place];
        let left = match count.load(Relaxed) {
            STUCK => STUCK,
            some => some.saturating_sub(1),
        };
        count.store(left, Relaxed);
        if left == 0 {
            self.filter[place / 64].fetch_and(!(1 << (place % 64)), Relaxed);
        }
    }

    fn address(&self, slot: usize) -> &AtomicUsize {
        &self.buckets[slot / WAYS % BUCKETS].0[slot % WAYS]
    }

    fn free_place(&self) -> Option<usize> {
        if let Some(free) = self.free_count.load(Relaxed).checked_sub(1) {
            self.free_count.store(free, Relaxed);
            return Some(self.free.get(free)?.load(Relaxed) as usize);
        }
        let used = self.used.load(Relaxed);
        (used < LIVE_MAX).then(|| {
            self.used.store(used + 1, Relaxed);
            used
        })
    }

    /// Copies all of them, part by part: `alone` runs one part while nobody adds entries, and the copies are whole. Blocks that come or go in the
    /// meantime may be in or out.
    pub(super) fn copy(&self, alone: impl Fn(&mut dyn FnMut())) -> Vec<HeapSample> {
        let mut copied = Vec::with_capacity(self.count());
        for first in (0..BUCKETS).step_by(COPIED_BUCKETS) {
            // No memory may be requested while others wait.
            copied.reserve(COPIED_BUCKETS * WAYS);
            alone(&mut || {
                for slot in first * WAYS..(first + COPIED_BUCKETS) * WAYS {
                    if self.address(slot).load(Relaxed) != 0 {
                        copied.extend(self.samples.get(self.places[slot].load(Relaxed) as usize));
                    }
                }
            });
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span_context::ContextWords;

    fn sample(bytes: usize) -> HeapSample {
        HeapSample { bytes, stack: 3, name: 2, context: ContextWords { trace_id: [1, 2], span_id: 3, tail: 4 } }
    }

    fn take(table: &LiveSamples, address: usize) -> Option<HeapSample> {
        table.take(address).map(|(sample, place)| {
            table.forget(address, place);
            sample
        })
    }

    fn sizes(table: &LiveSamples) -> Vec<usize> {
        let mut sizes: Vec<usize> = table.copy(|part| part()).iter().map(|sample| sample.bytes).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn a_block_is_there_from_put_to_take() {
        static TABLE: LiveSamples = LiveSamples::new();
        assert!(!TABLE.may_have(0x1000));
        assert!(TABLE.put(0x1000, &sample(10)) && TABLE.put(0x1010, &sample(20)));
        assert!(TABLE.may_have(0x1000) && TABLE.may_have(0x1030), "a neighbour in 64 bytes shares the counter");
        assert!(!TABLE.may_have(0x1040) && TABLE.may_have(0x1000 + 64 * FILTER));
        assert_eq!((TABLE.count(), sizes(&TABLE)), (2, vec![10, 20]));
        assert_eq!(take(&TABLE, 0x1030), None);
        assert_eq!(take(&TABLE, 0x1000), Some(sample(10)));
        assert_eq!(take(&TABLE, 0x1000), None);
        assert!(TABLE.may_have(0x1010));
        assert_eq!(take(&TABLE, 0x1010), Some(sample(20)));
        assert!(!TABLE.may_have(0x1010) && !TABLE.put(0, &sample(1)));
        assert_eq!((TABLE.count(), sizes(&TABLE)), (0, vec![]));
    }

    #[test]
    #[cfg_attr(miri, ignore = "98,304 entries")]
    fn a_full_table_refuses_and_has_room_again() {
        static TABLE: LiveSamples = LiveSamples::new();
        let address = |number: usize| 0x7f00_0000_0000 + number * 4_912;
        let put: Vec<usize> = (0..LIVE_MAX + 1_000).filter(|number| TABLE.put(address(*number), &sample(*number))).collect();
        assert!(put.len() > LIVE_MAX / 1_000 * 999, "{}", put.len());
        assert_eq!(put.len(), TABLE.count());
        assert_eq!(sizes(&TABLE), put);
        for number in &put {
            assert!(TABLE.may_have(address(*number)));
            assert_eq!(take(&TABLE, address(*number)).map(|sample| sample.bytes), Some(*number));
        }
        assert_eq!(TABLE.count(), 0);
        assert!(put.iter().all(|number| !TABLE.may_have(address(*number))), "counters go back to zero");
    }

    #[test]
    fn a_counter_that_overflowed_stays() {
        static TABLE: LiveSamples = LiveSamples::new();
        let at = place_of(0x40);
        TABLE.counters[at].store(STUCK - 1, Relaxed);
        assert!(TABLE.put(0x40, &sample(1)) && TABLE.put(0x50, &sample(2)));
        assert!(take(&TABLE, 0x40).is_some() && take(&TABLE, 0x50).is_some());
        assert!(TABLE.may_have(0x40));
    }
}
