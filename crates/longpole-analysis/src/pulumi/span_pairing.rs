//! Which of two observers' intervals are the same thing, seen twice.
//!
//! ```text
//! left    ├──────────┤        ├───────┤
//! right    ├────────┤          ├─────────┤      a little later, as the window says
//! ```
//!
//! Each interval is used once, the closest pairs first. Those that start and end together are sure; only what is left is paired
//! by starts alone, for an observer may have missed the end. Where only ends tell, several that end together may be confused;
//! then pairs are exchanged until as many as possible have a partner.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use longpole_model::TimeRange;

/// Intervals of the right side that are compared before and after an end. If more than these end within the same few milliseconds,
/// their starts pair them.
const NEAREST_ENDS: usize = 8;

/// When something was, as one observer saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start: i64,
    /// `None` where the observer does not know it.
    pub(crate) end: Option<i64>,
}

impl From<TimeRange> for Interval {
    fn from(range: TimeRange) -> Interval {
        Interval { start: range.start.unix_nanos(), end: Some(range.end.unix_nanos()) }
    }
}

/// How far apart the two sides may be: right minus left, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) start: RangeInclusive<i64>,
    pub(crate) end: RangeInclusive<i64>,
    /// Whether starts tell how close two are; else only ends do, and what does not end together is no pair.
    pub(crate) by_start: bool,
}

/// The pairs, by the left side.
pub(crate) fn pair(left: &[Interval], right: &[Interval], window: &Window) -> Vec<(usize, usize)> {
    let (mut left_of, mut right_of) = (vec![None; right.len()], vec![None; left.len()]);
    let candidates = ending_together(left, right, window);
    for &(_, l, r) in &candidates {
        if right_of[l].is_none() && left_of[r].is_none() {
            (right_of[l], left_of[r]) = (Some(r), Some(l));
        }
    }
    if !window.by_start {
        exchange(&candidates, &mut right_of, &mut left_of);
    }
    let mut pairs: Vec<(usize, usize)> = right_of.iter().enumerate().filter_map(|(l, r)| Some((l, (*r)?))).collect();
    let left_used: Vec<bool> = right_of.iter().map(Option::is_some).collect();
    let right_used: Vec<bool> = left_of.iter().map(Option::is_some).collect();
    if window.by_start {
        let (first, last) = (*window.start.start(), *window.start.end());
        // Close is what is close to no difference: where the right one comes first, it is the right one's turn to choose.
        if first.saturating_neg() <= last {
            starting_together((left, &left_used), (right, &right_used), first..=last, &mut pairs);
        } else {
            let mut turned = Vec::new();
            starting_together((right, &right_used), (left, &left_used), last.saturating_neg()..=first.saturating_neg(), &mut turned);
            pairs.extend(turned.into_iter().map(|(r, l)| (l, r)));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Gives partners to those without one, where others have another candidate to turn to. The other pairs stay as they are.
fn exchange(candidates: &[(u64, usize, usize)], right_of: &mut [Option<usize>], left_of: &mut [Option<usize>]) {
    let mut fits: Vec<Vec<usize>> = vec![Vec::new(); right_of.len()];
    candidates.iter().for_each(|&(_, l, r)| fits[l].push(r));
    // The left one from which each right one was reached. What a search in vain reached leads nowhere for the others either, so all
    // of those together cost one pass.
    let mut reached: Vec<Option<usize>> = vec![None; left_of.len()];
    for lone in 0..right_of.len() {
        if right_of[lone].is_some() {
            continue;
        }
        let mut queue = VecDeque::from([lone]);
        let mut searched = Vec::new();
        let free = loop {
            let Some(l) = queue.pop_front() else { break None };
            let mut free = None;
            for &r in &fits[l] {
                if reached[r].is_some() {
                    continue;
                }
                reached[r] = Some(l);
                searched.push(r);
                match left_of[r] {
                    Some(holder) => queue.push_back(holder),
                    None => free = free.or(Some(r)),
                }
            }
            if free.is_some() {
                break free;
            }
        };
        // Back to where the search began, each takes the one that it reached.
        let mut taken = free;
        while let Some((r, l)) = taken.and_then(|r| Some((r, reached[r]?))) {
            taken = right_of[l].replace(r);
            left_of[r] = Some(l);
        }
        if free.is_some() {
            searched.into_iter().for_each(|r| reached[r] = None);
        }
    }
}

/// Candidates whose start and end fit, closest first.
fn ending_together(left: &[Interval], right: &[Interval], window: &Window) -> Vec<(u64, usize, usize)> {
    let mut by_end: Vec<(i64, usize)> = right.iter().enumerate().filter_map(|(r, seen)| Some((seen.end?, r))).collect();
    by_end.sort_unstable();
    let mut candidates = Vec::new();
    for (l, seen) in left.iter().enumerate() {
        let Some(end) = seen.end else { continue };
        let middle = by_end.partition_point(|&(at, _)| at < end);
        for &(at, r) in &by_end[middle.saturating_sub(NEAREST_ENDS)..(middle + NEAREST_ENDS).min(by_end.len())] {
            let (start, end) = (right[r].start.saturating_sub(seen.start), at.saturating_sub(end));
            if window.start.contains(&start) && window.end.contains(&end) {
                let apart = if window.by_start { start.unsigned_abs() } else { 0 };
                candidates.push((apart.saturating_add(end.unsigned_abs()), l, r));
            }
        }
    }
    candidates.sort_unstable();
    candidates
}

/// Pairs what is left by starts. In order of time the closest pair always stands side by side, for anything in between would
/// be closer to one of the two; so neighbours are enough, and when a pair is taken out its neighbours become neighbours.
fn starting_together(
    (left, left_used): (&[Interval], &[bool]),
    (right, right_used): (&[Interval], &[bool]),
    window: RangeInclusive<i64>,
    pairs: &mut Vec<(usize, usize)>,
) {
    const NONE: usize = usize::MAX;
    // Moved by the smallest difference allowed, every left one stands before its right one.
    let lefts = left.iter().enumerate().filter(|(l, _)| !left_used[*l]).map(|(l, s)| (s.start.saturating_add(*window.start()), 0, l));
    let rights = right.iter().enumerate().filter(|(r, _)| !right_used[*r]).map(|(r, s)| (s.start, 1, r));
    let mut line: Vec<(i64, u8, usize)> = lefts.chain(rights).collect();
    line.sort_unstable();
    let mut before: Vec<usize> = (0..line.len()).map(|i| i.checked_sub(1).unwrap_or(NONE)).collect();
    let mut after: Vec<usize> = (0..line.len()).map(|i| if i + 1 < line.len() { i + 1 } else { NONE }).collect();
    let widest = window.end().saturating_sub(*window.start());
    let close = |a: usize, b: usize| {
        let apart = line[b].0.saturating_sub(line[a].0);
        (line[a].1 == 0 && line[b].1 == 1 && apart <= widest).then_some(Reverse((apart, a, b)))
    };
    let mut heap: BinaryHeap<_> = (1..line.len()).filter_map(|b| close(b - 1, b)).collect();
    let mut gone = vec![false; line.len()];
    while let Some(Reverse((_, a, b))) = heap.pop() {
        if gone[a] || gone[b] {
            continue;
        }
        (gone[a], gone[b]) = (true, true);
        pairs.push((line[a].2, line[b].2));
        let (earlier, later) = (before[a], after[b]);
        if earlier != NONE {
            after[earlier] = later;
        }
        if later != NONE {
            before[later] = earlier;
        }
        if earlier != NONE && later != NONE {
            heap.extend(close(earlier, later));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &[(i64, i64)], right: &[(i64, i64)], expected: &[(usize, usize)]) {
        // An end of 0 is not known.
        let seen = |list: &[(i64, i64)]| -> Vec<Interval> {
            list.iter().map(|&(start, end)| Interval { start, end: (end != 0).then_some(end) }).collect()
        };
        let window = Window { start: -1..=50, end: -50..=50, by_start: true };
        assert_eq!(pair(&seen(left), &seen(right), &window), expected);
    }

    #[test]
    fn what_starts_and_ends_together_is_the_same() {
        // By starts alone the first of the left would be given the second of the right.
        check(&[(0, 900), (4, 500)], &[(5, 501), (6, 901)], &[(0, 1), (1, 0)]);
    }

    #[test]
    fn without_ends_the_closest_starts_are_paired_first_and_each_once() {
        check(&[(0, 0), (10, 0), (20, 0)], &[(12, 0), (23, 0), (200, 0)], &[(1, 0), (2, 1)]);
        check(&[(0, 0), (1, 0)], &[(2, 0), (3, 0)], &[(0, 1), (1, 0)]);
        check(&[(5, 0)], &[(3, 0)], &[]);
        check(&[(5, 0)], &[(4, 0)], &[(0, 0)]);
    }

    #[test]
    fn where_only_ends_tell_pairs_are_exchanged_until_all_have_a_partner() {
        let seen = |list: &[(i64, i64)]| -> Vec<Interval> { list.iter().map(|&(start, end)| Interval { start, end: Some(end) }).collect() };
        let window = Window { start: -100..=0, end: 0..=10, by_start: false };
        // The first of the right is closest to both; the second left one has no other.
        assert_eq!(pair(&seen(&[(50, 90), (20, 89)]), &seen(&[(15, 91), (40, 95)]), &window), [(0, 1), (1, 0)]);
        // One without any stays without, and takes none away.
        assert_eq!(pair(&seen(&[(50, 90), (10, 89)]), &seen(&[(15, 91)]), &window), [(0, 0)]);
    }

    #[test]
    fn where_the_right_one_comes_first_close_is_close_before() {
        let seen = |starts: &[i64]| -> Vec<Interval> { starts.iter().map(|&start| Interval { start, end: None }).collect() };
        let window = Window { start: -50..=1, end: -50..=50, by_start: true };
        // The first of the right is in the window of both of the left; the one that has no other is given it.
        assert_eq!(pair(&seen(&[100, 140]), &seen(&[99, 138]), &window), [(0, 0), (1, 1)]);
        assert_eq!(pair(&seen(&[100, 101]), &seen(&[102, 98, 40]), &window), [(0, 1), (1, 0)]);
    }

    #[test]
    fn a_hundred_thousand_at_one_moment_are_nothing_special() {
        let same: Vec<(i64, i64)> = (0..100_000).map(|_| (7, 8)).collect();
        let expected: Vec<(usize, usize)> = (0..100_000).map(|i| (i, i)).collect();
        let seen: Vec<Interval> = same.iter().map(|&(start, end)| Interval { start, end: Some(end) }).collect();
        let pairs = pair(&seen, &seen, &Window { start: 0..=5, end: -5..=5, by_start: true });
        assert_eq!(pairs.len(), expected.len());
    }
}
