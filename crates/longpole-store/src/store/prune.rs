//! Which recordings are to go: by number, by age, by size on disk. A pure choice; [`Store::remove`](crate::Store::remove) does it.
//!
//! The newest are kept, whatever the limits say of the older ones. A recording that somebody gave a name, and one that is being
//! made, is never chosen; it counts against the limits all the same.

use std::time::Duration;

use longpole_model::Timestamp;

use crate::name::RecordingName;

/// What is kept. A recording goes where any of them says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// How many of the newest to keep.
    pub keep: Option<usize>,
    /// Keep what began no longer ago than this.
    pub older_than: Option<Duration>,
    /// Keep as many of the newest as fit this many bytes.
    pub bytes_max: Option<u64>,
}

/// What the choice is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: RecordingName,
    /// When it began.
    pub start: Timestamp,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether it must stay: it has a tag, or its recorder lives.
    pub held: bool,
}

/// The recordings that go, in the order given, which is the newest first.
pub fn choose(candidates: &[Candidate], policy: &Policy, now: Timestamp) -> Vec<RecordingName> {
    let mut bytes: u64 = 0;
    let mut gone = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        bytes = bytes.saturating_add(candidate.bytes);
        let age = now.nanos_since(candidate.start).max(0).unsigned_abs();
        let too_many = policy.keep.is_some_and(|keep| index >= keep);
        let too_old = policy.older_than.is_some_and(|older_than| u128::from(age) > older_than.as_nanos());
        let too_large = policy.bytes_max.is_some_and(|bytes_max| bytes > bytes_max);
        if (too_many || too_old || too_large) && !candidate.held {
            gone.push(candidate.name);
            // What goes leaves its room to the older ones.
            bytes -= candidate.bytes;
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(number, start, bytes, held)`, the newest first.
    fn check(candidates: &[(u32, i64, u64, bool)], policy: Policy, gone: &[u32]) {
        let candidates: Vec<Candidate> = candidates
            .iter()
            .map(|&(number, start, bytes, held)| Candidate { name: RecordingName::new(number), start: Timestamp(start), bytes, held })
            .collect();
        let chosen: Vec<u32> = choose(&candidates, &policy, Timestamp(100)).into_iter().map(RecordingName::number).collect();
        assert_eq!(chosen, gone, "{policy:?}");
    }

    const SHELF: &[(u32, i64, u64, bool)] =
        &[(5, 90, 10, false), (4, 80, 30, false), (3, 50, 5, true), (2, 40, 5, false), (1, 10, 5, false)];

    #[test]
    fn each_limit_takes_the_oldest_and_spares_what_has_a_name() {
        check(SHELF, Policy::default(), &[]);
        check(SHELF, Policy { keep: Some(2), ..Policy::default() }, &[2, 1]);
        check(SHELF, Policy { older_than: Some(Duration::from_nanos(45)), ..Policy::default() }, &[2, 1]);
        check(SHELF, Policy { bytes_max: Some(50), ..Policy::default() }, &[1]);
        check(SHELF, Policy { keep: Some(0), ..Policy::default() }, &[5, 4, 2, 1]);
    }

    #[test]
    fn a_large_one_that_goes_makes_room_for_older_ones() {
        check(SHELF, Policy { bytes_max: Some(25), ..Policy::default() }, &[4]);
    }

    #[test]
    fn limits_add_up() {
        check(SHELF, Policy { keep: Some(4), older_than: Some(Duration::from_nanos(15)), bytes_max: None }, &[4, 2, 1]);
    }
}
