//! Which threads of a process ran in a stretch of time: asked once for each of a million waits, of a thousand threads.
//!
//! ```text
//! shorter than 1 µs   |·| |·|  |·|         |·||·|          slices that can reach into a stretch began at most 2^n ns before it:
//! …  1 ms             |·······|    |······|      |····|    of each length few did, since a machine has few CPUs
//! …  1 s         |··································|
//!                                 ├ asked ┤
//! ```

use std::collections::HashSet;

use longpole_model::fast_hash::FastState;

/// Limit of the slices that a search returns, and of those that it compares per length. An answer that names one of 4,096 threads names
/// nobody. Slices of one length that overlap are no more than the machine's CPUs, so a real recording never gets there.
const SLICES_MAX: usize = 4096;

/// The slices of a process by the power of two of their length, and there by start: from, to, thread.
#[derive(Debug, Default)]
pub(crate) struct Running {
    by_length: Vec<Vec<(i64, i64, u32)>>,
}

impl Running {
    pub(crate) fn new(slices: impl Iterator<Item = (i64, i64, u32)>) -> Running {
        let mut by_length: Vec<Vec<(i64, i64, u32)>> = Vec::new();
        for slice in slices {
            let level = level(slice.1.saturating_sub(slice.0));
            if by_length.len() <= level {
                by_length.resize_with(level + 1, Vec::new);
            }
            by_length[level].push(slice);
        }
        by_length.iter_mut().for_each(|slices| slices.sort_unstable());
        Running { by_length }
    }

    /// The threads that ran, by number; not all of them where that takes more than [`SLICES_MAX`] slices: those that ran for long and last.
    pub(crate) fn within(&self, from: i64, to: i64) -> Vec<u32> {
        let mut threads: Vec<u32> = self.threads(from, to).take(SLICES_MAX).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Some of them, by number: all if there are fewer than `most`.
    pub(crate) fn few_within(&self, from: i64, to: i64, most: usize) -> Vec<u32> {
        let mut found: HashSet<u32, FastState> = HashSet::default();
        for thread in self.threads(from, to) {
            if found.len() == most {
                break;
            }
            found.insert(thread);
        }
        let mut threads: Vec<u32> = found.into_iter().collect();
        threads.sort_unstable();
        threads
    }

    /// The thread of each slice in a time, of those of each length the last [`SLICES_MAX`] that began.
    fn threads(&self, from: i64, to: i64) -> impl Iterator<Item = u32> {
        self.by_length.iter().enumerate().rev().flat_map(move |(level, slices)| {
            // What began earlier than that is over. What is longer than a sum can hold may have begun at any time.
            let earliest = u32::try_from(level)
                .ok()
                .and_then(|level| 1_i64.checked_shl(level))
                .filter(|longest| *longest > 0)
                .map(|longest| from.saturating_sub(longest));
            let first = earliest.map_or(0, |earliest| slices.partition_point(|slice| slice.0 <= earliest));
            let behind = first + slices[first..].partition_point(|slice| slice.0 < to);
            // Those that began last are the least over.
            let near = slices[first..behind].iter().rev().take(SLICES_MAX);
            near.filter(move |slice| slice.1 > from).map(|slice| slice.2)
        })
    }
}

/// The bits of a length.
fn level(nanos: i64) -> usize {
    (i64::BITS - nanos.max(0).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_search_through_all_finds(
            slices in proptest::collection::vec((0_i64..1000, 0_i64..600, 1_u32..9), 0..60),
            from in 0_i64..1200,
            length in 0_i64..300,
        ) {
            let slices: Vec<_> = slices.into_iter().map(|(from, length, tid)| (from, from + length, tid)).collect();
            let to = from + length;
            let mut expected: Vec<u32> = slices.iter().filter(|slice| slice.1 > from && slice.0 < to).map(|slice| slice.2).collect();
            expected.sort_unstable();
            expected.dedup();
            let running = Running::new(slices.into_iter());
            let few = running.few_within(from, to, 3);
            prop_assert!(few.len() == expected.len().min(3) && few.iter().all(|tid| expected.contains(tid)), "{few:?} of {expected:?}");
            prop_assert_eq!(running.within(from, to), expected);
        }
    }

    /// A file says what it likes: a million slices on as many CPUs, all of one length and over, in front of each of 20,000 waits.
    #[test]
    fn a_search_does_not_visit_all_slices_that_are_over() {
        let over = (0..1_000_000).map(|tid| (i64::from(tid % 100), 1_000_000, tid));
        let running = Running::new(over.chain([(0, 2_000_000, 1_000_001), (900_000, 1_500_000, 1_000_002)]));
        let begin = std::time::Instant::now();
        for from in 0..20_000 {
            assert_eq!(running.within(1_000_000 + from, 1_001_000 + from), [1_000_001, 1_000_002]);
        }
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
    }

    #[test]
    fn times_at_the_end_of_time_are_found() {
        let running = Running::new([(i64::MIN, i64::MAX, 1), (i64::MAX - 1, i64::MAX, 2), (5, 5, 3)].into_iter());
        assert_eq!(running.within(0, 1), [1]);
        assert_eq!(running.within(i64::MAX - 1, i64::MAX), [1, 2]);
        assert_eq!(running.within(4, 6), [1, 3]);
    }
}
