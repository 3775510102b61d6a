//! Unions of half-open intervals of time: sorted, joined where they overlap or touch.
//!
//! ```text
//! in       ├─────┤   ├──┤
//!             ├─────┤            ├───┤
//! union    ├────────┤├──┤        ├───┤     touching ones are one, too
//! ```

/// The union of these intervals `(from, to)`, in order of time; none of them overlaps or touches another.
pub(crate) fn union<T: Ord + Copy>(mut intervals: Vec<(T, T)>) -> Vec<(T, T)> {
    // Most come as a few runs in order, which a stable sort merges.
    intervals.sort();
    let mut out: Vec<(T, T)> = Vec::with_capacity(intervals.len().min(64));
    for (from, to) in intervals {
        match out.last_mut().filter(|last| from <= last.1) {
            Some(last) => last.1 = last.1.max(to),
            None => out.push((from, to)),
        }
    }
    out
}

/// The part of an interval inside another one; `None` where that is empty.
pub(crate) fn clip<T: Ord + Copy>((from, to): (T, T), (start, end): (T, T)) -> Option<(T, T)> {
    let (from, to) = (from.max(start), to.min(end));
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_or_touch_are_one() {
        assert_eq!(union(vec![(5, 9), (1, 3), (3, 4), (6, 7), (20, 22)]), [(1, 4), (5, 9), (20, 22)]);
        assert_eq!(union::<i64>(Vec::new()), []);
        // An empty one inside of another adds nothing; one alone stays, for a sum it is nothing.
        assert_eq!(union(vec![(1, 5), (2, 2)]), [(1, 5)]);
    }

    #[test]
    fn what_is_left_of_a_clip_has_a_length() {
        assert_eq!(clip((1, 5), (3, 9)), Some((3, 5)));
        assert_eq!(clip((1, 5), (5, 9)), None);
        assert_eq!(clip((7, 3), (0, 9)), None);
    }
}
