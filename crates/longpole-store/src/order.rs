//! The order of spans in a segment: traces by start, each trace's spans adjacent and in tree pre-order.
//!
//! ```text
//! row  span              parent_row  descendants  depth
//!  0   GET /cart              -           3          0      trace 1
//!  1     auth                 0           0          1
//!  2     items                0           1          1
//!  3       parse              2           0          2
//!  4   tick                   -           0          0      trace 2, begins later
//! ```
//!
//! The descendants of row `r` are exactly the rows `r+1 ..= r+descendants` (a nested set), so that "somewhere below" is a
//! comparison of numbers.

use std::collections::HashMap;

use longpole_model::{Span, SpanId, Timestamp, TraceId};

/// Where a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index in the list that was given.
    pub(crate) index: usize,
    /// Row of the parent, where the parent is in the list and before this row.
    pub(crate) parent_row: Option<u32>,
    /// Rows below this one.
    pub(crate) descendants: u32,
    /// Edges up to the root.
    pub(crate) depth: u32,
}

/// The rows, first to last. Spans of equal start stand in the order of their ids, so the rows do not depend on the
/// order of arrival. A cycle of parents is cut above its earliest span, which becomes a root.
pub(crate) fn rows(spans: &[Span]) -> Vec<Place> {
    let mut by_id: HashMap<(TraceId, SpanId), usize> = HashMap::with_capacity(spans.len());
    let mut trace_start: HashMap<TraceId, Timestamp> = HashMap::new();
    for (index, span) in spans.iter().enumerate() {
        by_id.entry((span.trace_id, span.span_id)).or_insert(index);
        let start = trace_start.entry(span.trace_id).or_insert(span.start);
        *start = span.start.min(*start);
    }
    let parent_of = |index: usize| {
        let span: &Span = &spans[index];
        span.parent_span_id.and_then(|parent| by_id.get(&(span.trace_id, parent))).copied()
    };

    let mut in_time: Vec<usize> = (0..spans.len()).collect();
    in_time.sort_by_key(|&index| {
        let span = &spans[index];
        (trace_start[&span.trace_id], span.trace_id, span.start, span.span_id, index)
    });
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
    for &index in &in_time {
        if let Some(parent) = parent_of(index) {
            children[parent].push(index);
        }
    }

    let mut walk = Walk { children, placed: vec![false; spans.len()], rows: Vec::with_capacity(spans.len()) };
    for trace in in_time.chunk_by(|&a, &b| spans[a].trace_id == spans[b].trace_id) {
        for &index in trace {
            if parent_of(index).is_none() {
                walk.descend(index);
            }
        }
        // What is left hangs below cycles.
        for &index in trace {
            if !walk.placed[index] {
                let root = earliest_of_cycle(index, parent_of, |index| (spans[index].start, spans[index].span_id, index));
                walk.descend(root);
            }
        }
    }
    walk.count_descendants();
    walk.rows
}

/// Walks up from a span below a cycle into the cycle, then once around it.
fn earliest_of_cycle<K: Ord>(start: usize, parent_of: impl Fn(usize) -> Option<usize>, key: impl Fn(usize) -> K) -> usize {
    // Tortoise and hare: they meet inside the cycle, without a set of what was seen.
    let up = |index: usize| parent_of(index).unwrap_or(index);
    let (mut slow, mut fast) = (up(start), up(up(start)));
    while slow != fast {
        (slow, fast) = (up(slow), up(up(fast)));
    }
    let mut earliest = slow;
    let mut at = up(slow);
    while at != slow {
        if key(at) < key(earliest) {
            earliest = at;
        }
        at = up(at);
    }
    earliest
}

struct Walk {
    children: Vec<Vec<usize>>,
    placed: Vec<bool>,
    rows: Vec<Place>,
}

impl Walk {
    /// Appends a root and everything below it. No recursion: a trace may be deeper than our stack.
    fn descend(&mut self, root: usize) {
        let mut open = vec![(root, None, 0)];
        while let Some((index, parent_row, depth)) = open.pop() {
            if std::mem::replace(&mut self.placed[index], true) {
                continue;
            }
            let row = self.rows.len() as u32;
            self.rows.push(Place { index, parent_row, descendants: 0, depth });
            open.extend(self.children[index].iter().rev().map(|&child| (child, Some(row), depth + 1)));
        }
    }

    /// From the last row to the first, every row is complete before its parent is.
    fn count_descendants(&mut self) {
        for row in (0..self.rows.len()).rev() {
            if let Some(parent) = self.rows[row].parent_row {
                self.rows[parent as usize].descendants += self.rows[row].descendants + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    /// `(trace, span, parent, start)` of each span → `span:parent_row:descendants:depth` of each row.
    fn check(spans: &[(u8, u8, u8, i64)], expected: &[&str]) {
        let spans: Vec<Span> = spans.iter().map(|&(trace, span, parent, start)| testing::span(trace, span, parent, start)).collect();
        let found: Vec<String> = rows(&spans)
            .iter()
            .map(|place| {
                let parent = place.parent_row.map_or("-".into(), |row| row.to_string());
                format!("{}:{parent}:{}:{}", spans[place.index].span_id.bytes()[7], place.descendants, place.depth)
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_trace_stands_in_pre_order_and_traces_by_their_start() {
        check(
            &[(2, 9, 0, 50), (1, 4, 3, 30), (1, 1, 0, 0), (1, 3, 1, 20), (1, 2, 1, 10)],
            &["1:-:3:0", "2:0:0:1", "3:0:1:1", "4:2:0:2", "9:-:0:0"],
        );
    }

    #[test]
    fn a_span_whose_parent_is_missing_is_a_root() {
        check(&[(1, 2, 7, 10), (1, 1, 0, 0)], &["1:-:0:0", "2:-:0:0"]);
    }

    #[test]
    fn the_same_span_id_in_another_trace_is_no_parent() {
        check(&[(1, 1, 0, 0), (2, 2, 1, 1)], &["1:-:0:0", "2:-:0:0"]);
    }

    #[test]
    fn a_cycle_is_cut_above_its_earliest_span() {
        // 4 hangs below the cycle 1 → 2 → 3 → 1 and begins before all of it.
        check(&[(1, 4, 2, 0), (1, 2, 1, 30), (1, 3, 2, 10), (1, 1, 3, 20)], &["3:-:3:0", "1:0:2:1", "2:1:1:2", "4:2:0:3"]);
        check(&[(1, 5, 5, 0)], &["5:-:0:0"]);
    }

    #[test]
    fn a_deep_trace_needs_no_deep_stack() {
        let spans: Vec<Span> = (0..200_000u32)
            .map(|number| {
                let id = |number: u32| SpanId::from_slice(&u64::from(number).to_be_bytes());
                Span { span_id: id(number + 1).unwrap(), parent_span_id: id(number), ..testing::span(1, 1, 0, i64::from(number)) }
            })
            .collect();
        let rows = rows(&spans);
        assert_eq!((rows[0].descendants, rows[199_999].depth), (199_999, 199_999));
    }

    proptest! {
        #[test]
        fn every_span_has_one_row_and_descendants_are_the_rows_behind_it(
            spans in prop::collection::vec((1..4u8, 1..12u8, 0..12u8, 0..5i64), 0..40)
        ) {
            let spans: Vec<Span> =
                spans.into_iter().map(|(trace, span, parent, start)| testing::span(trace, span, parent, start)).collect();
            let rows = rows(&spans);
            let mut indexes: Vec<usize> = rows.iter().map(|place| place.index).collect();
            indexes.sort_unstable();
            prop_assert!(indexes.into_iter().eq(0..spans.len()));
            for (row, place) in rows.iter().enumerate() {
                let Some(parent) = place.parent_row else {
                    prop_assert_eq!(place.depth, 0);
                    continue;
                };
                let above = rows[parent as usize];
                prop_assert_eq!(place.depth, above.depth + 1);
                prop_assert!((parent as usize) < row && row <= (parent + above.descendants) as usize);
                prop_assert!(row + place.descendants as usize <= (parent + above.descendants) as usize);
                prop_assert_eq!(spans[place.index].parent_span_id, Some(spans[above.index].span_id));
            }
        }

        #[test]
        fn rows_do_not_depend_on_the_order_of_arrival(
            starts in prop::collection::vec((1..4u8, 0..12u8, 0..5i64), 0..12),
            seed in any::<u64>(),
        ) {
            let spans: Vec<Span> = starts
                .into_iter()
                .enumerate()
                .map(|(number, (trace, parent, start))| testing::span(trace, number as u8 + 1, parent, start))
                .collect();
            let mut shuffled = spans.clone();
            shuffled.sort_by_key(|span| seed.wrapping_mul(u64::from(span.span_id.bytes()[7]) * 2 + 1).rotate_left(17));
            let ids = |spans: &[Span]| -> Vec<_> {
                rows(spans).iter().map(|it| (spans[it.index].span_id, it.parent_row, it.descendants, it.depth)).collect()
            };
            prop_assert_eq!(ids(&spans), ids(&shuffled));
        }
    }
}
