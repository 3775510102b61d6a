//! Short waits: the recorder samples few of them, and the nearest sampled one stands for each of the others.
//!
//! ```text
//! waits     ▪   ▪▪  ▪    ▪   ▪▪▪      ▪ under 5 ms
//! sampled   ▪                ▪        a sleep, a read
//! taken for ▪   ▪▪  ▪    ▪   ▪▪▪      sleep sleep sleep sleep, read read read read
//! ```

use longpole_model::{Nanos, Recording, WaitId};

use crate::time::blockers::PROBE_NANOS;

/// The recorder samples all waits that are as long as this, and few shorter ones.
pub(crate) const SHORT_NANOS: Nanos = Nanos(PROBE_NANOS as i64);

/// Fewer sampled short waits than this say nothing of the others.
pub(crate) const SHORT_WAITS_MIN: usize = 3;

/// A wait stands for one that nobody sampled if their lengths differ by this part at most, and if it is among this many on either side.
const ALIKE_PART: u64 = 5;
const ALIKE_AMONG: usize = 16;

/// Whether it is one of the short waits that the recorder sampled.
pub(crate) fn is_short(recording: &Recording, wait: WaitId) -> bool {
    recording.waits[wait].nanos() < PROBE_NANOS
}

/// The short ones of these waits, if they are enough to stand for those that were not sampled.
pub(crate) fn telling<T>(recording: &Recording, waits: impl Iterator<Item = T>, id: impl Fn(&T) -> WaitId) -> Vec<T> {
    let short: Vec<T> = waits.filter(|wait| is_short(recording, id(wait))).collect();
    if short.len() >= SHORT_WAITS_MIN { short } else { Vec::new() }
}

/// The wait that stands for one at this time that was not sampled: the nearest, if it is short. `sampled` stands by start.
pub(crate) fn nearest_short<T>(sampled: &[T], at: Nanos, time: impl Fn(&T) -> (Nanos, Nanos)) -> Option<&T> {
    let next = sampled.partition_point(|wait| time(wait).0 < at);
    let is_short = |wait: &&T| time(wait).1 - time(wait).0 < SHORT_NANOS;
    beside(sampled, next).filter(is_short).min_by_key(|wait| (time(wait).0 - at).magnitude())
}

/// The nearest wait that is as long as one at this time that was not sampled. `sampled` stands by start.
pub(crate) fn nearest_alike<T>(sampled: &[T], (from, to): (Nanos, Nanos), time: impl Fn(&T) -> (Nanos, Nanos)) -> Option<&T> {
    let (before, after) = sampled.split_at(sampled.partition_point(|wait| time(wait).0 < from));
    let near = before.iter().rev().take(ALIKE_AMONG).chain(after.iter().take(ALIKE_AMONG));
    let is_alike = |wait: &&T| {
        let (nanos, own) = (time(wait).1 - time(wait).0, to - from);
        (nanos - own).magnitude() <= nanos.max(own).magnitude() / ALIKE_PART
    };
    near.filter(is_alike).min_by_key(|wait| (time(wait).0 - from).magnitude())
}

/// The entries of a sorted list before and behind a place in it.
pub(crate) fn beside<T>(sorted: &[T], place: usize) -> impl Iterator<Item = &T> {
    sorted[place.saturating_sub(1)..].iter().take(if place == 0 { 1 } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_short_wait_stands_for_one_that_was_not_sampled() {
        let millis = |from: i64, to: i64| (Nanos(from * 1_000_000), Nanos(to * 1_000_000));
        let sampled = [millis(10, 11), millis(20, 22), millis(30, 60)];
        let at = |at: i64| nearest_short(&sampled, Nanos(at * 1_000_000), |time| *time).copied();
        assert_eq!([at(0), at(14), at(16)], [Some(sampled[0]), Some(sampled[0]), Some(sampled[1])]);
        // A long wait stands only for itself.
        assert_eq!([at(29), at(61)], [Some(sampled[1]), None]);
        assert_eq!(nearest_short(&[], Nanos(0), |time: &(Nanos, Nanos)| *time), None);
    }

    #[test]
    fn a_wait_of_the_same_length_stands_for_one_that_was_not_sampled() {
        let millis = |from: i64, to: i64| (Nanos(from * 1_000_000), Nanos(to * 1_000_000));
        let sampled = [millis(10, 14), millis(20, 32), millis(40, 44)];
        let alike = |from, to| nearest_alike(&sampled, millis(from, to), |time| *time).copied();
        assert_eq!([alike(16, 20), alike(34, 38), alike(46, 57)], [Some(sampled[0]), Some(sampled[2]), Some(sampled[1])]);
        assert_eq!([alike(16, 18), alike(16, 30)], [None, Some(sampled[1])]);
    }
}
