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
use std::ops::Range;

use longpole_model::{InTree, SpanIndex, Timestamp, TraceId};

use crate::numbers::u32_of;

/// No span.
const NONE: u32 = u32::MAX;

/// Where a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPlace {
    /// Index in the list that was given.
    pub(crate) index: u32,
    /// Row of the parent, where the parent is in the list and before this row.
    pub(crate) parent_row: Option<u32>,
    /// Rows below this one.
    pub(crate) descendants: u32,
    /// Edges up to the root.
    pub(crate) depth: u32,
}

/// The rows, first to last. Spans of equal start stand in the order of their ids, so the rows do not depend on the
/// order of arrival. A cycle of parents is cut above its earliest span, which becomes a root.
///
/// A list may have up to 2^32 - 1 spans; more could not be numbered.
pub(crate) fn rows(spans: &[impl InTree]) -> Vec<RowPlace> {
    let (in_time, traces) = by_trace_and_time(spans);
    let parents = parents(spans);
    // Children of each span, the latest first: where the list begins, and which one follows.
    let mut last_child = vec![NONE; spans.len()];
    let mut earlier_sibling = vec![NONE; spans.len()];
    for &index in &in_time {
        let parent = parents[index as usize];
        if parent != NONE {
            earlier_sibling[index as usize] = std::mem::replace(&mut last_child[parent as usize], index);
        }
    }

    let placed = vec![false; spans.len()];
    let mut walk = Walk { last_child, earlier_sibling, placed, rows: Vec::with_capacity(spans.len()) };
    let parent_of = |index: u32| Some(parents[index as usize]).filter(|parent| *parent != NONE);
    let key = |index: u32| (spans[index as usize].start(), spans[index as usize].span_id(), index);
    for range in traces {
        let trace = &in_time[range];
        for &index in trace.iter().filter(|index| parent_of(**index).is_none()) {
            walk.descend(index);
        }
        // What is left hangs below cycles.
        for &index in trace {
            if !walk.placed[index as usize] {
                walk.descend(earliest_of_cycle(index, parent_of, key));
            }
        }
    }
    walk.count_descendants();
    walk.rows
}

/// The parent of each span in the list.
fn parents(spans: &[impl InTree]) -> Vec<u32> {
    let index = SpanIndex::of(spans);
    let parent_of = |place: usize| index.get(spans, spans[place].trace_id(), spans[place].parent_span_id()?);
    (0..spans.len()).map(|place| parent_of(place).map_or(NONE, u32_of)).collect()
}

/// The spans of each trace by their start, and where in that list each trace is. Traces stand by their earliest start.
fn by_trace_and_time(spans: &[impl InTree]) -> (Vec<u32>, Vec<Range<usize>>) {
    struct Trace {
        id: TraceId,
        start: Timestamp,
        spans: usize,
    }
    let mut traces: Vec<Trace> = Vec::new();
    let mut numbers: HashMap<TraceId, u32> = HashMap::new();
    let mut trace_of: Vec<u32> = Vec::with_capacity(spans.len());
    for span in spans {
        // Neighbours mostly are of one trace.
        let number = match trace_of.last() {
            Some(&last) if traces[last as usize].id == span.trace_id() => last,
            _ => *numbers.entry(span.trace_id()).or_insert_with(|| {
                let number = u32_of(traces.len());
                traces.push(Trace { id: span.trace_id(), start: span.start(), spans: 0 });
                number
            }),
        };
        let trace = &mut traces[number as usize];
        trace.start = trace.start.min(span.start());
        trace.spans += 1;
        trace_of.push(number);
    }

    let mut by_start: Vec<usize> = (0..traces.len()).collect();
    by_start.sort_unstable_by_key(|&number| (traces[number].start, traces[number].id));
    let mut ranges = Vec::with_capacity(traces.len());
    let mut next = vec![0; traces.len()];
    let mut end = 0;
    for number in by_start {
        next[number] = end;
        end += traces[number].spans;
        ranges.push(next[number]..end);
    }
    let mut in_time = vec![0; spans.len()];
    for (index, &number) in trace_of.iter().enumerate() {
        in_time[next[number as usize]] = u32_of(index);
        next[number as usize] += 1;
    }
    for range in &ranges {
        in_time[range.clone()].sort_unstable_by_key(|&index| (spans[index as usize].start(), spans[index as usize].span_id(), index));
    }
    (in_time, ranges)
}

/// Walks up from a span below a cycle into the cycle, then once around it.
fn earliest_of_cycle<K: Ord>(start: u32, parent_of: impl Fn(u32) -> Option<u32>, key: impl Fn(u32) -> K) -> u32 {
    // Tortoise and hare: they meet inside the cycle, without a set of visited spans.
    let up = |index: u32| parent_of(index).unwrap_or(index);
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
    last_child: Vec<u32>,
    earlier_sibling: Vec<u32>,
    placed: Vec<bool>,
    rows: Vec<RowPlace>,
}

impl Walk {
    /// Appends a root and everything below it. No recursion: a trace may be deeper than our stack.
    fn descend(&mut self, root: u32) {
        let mut open = vec![(root, None, 0)];
        while let Some((index, parent_row, depth)) = open.pop() {
            if std::mem::replace(&mut self.placed[index as usize], true) {
                continue;
            }
            let row = u32_of(self.rows.len());
            self.rows.push(RowPlace { index, parent_row, descendants: 0, depth });
            // The earliest child is put on top.
            let mut child = self.last_child[index as usize];
            while child != NONE {
                open.push((child, Some(row), depth + 1));
                child = self.earlier_sibling[child as usize];
            }
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

    use longpole_model::{Span, SpanId};

    use super::*;
    use crate::testing;

    /// `(trace, span, parent, start)` of each span → `span:parent_row:descendants:depth` of each row.
    fn check(spans: &[(u8, u8, u8, i64)], expected: &[&str]) {
        let spans: Vec<Span> = spans.iter().map(|&(trace, span, parent, start)| testing::span(trace, span, parent, start)).collect();
        let found: Vec<String> = rows(&spans)
            .iter()
            .map(|place| {
                let parent = place.parent_row.map_or("-".into(), |row| row.to_string());
                format!("{}:{parent}:{}:{}", spans[place.index as usize].span_id.bytes()[7], place.descendants, place.depth)
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
            let mut indexes: Vec<u32> = rows.iter().map(|place| place.index).collect();
            indexes.sort_unstable();
            prop_assert!(indexes.into_iter().eq(0..spans.len() as u32));
            for (row, place) in rows.iter().enumerate() {
                let Some(parent) = place.parent_row else {
                    prop_assert_eq!(place.depth, 0);
                    continue;
                };
                let above = rows[parent as usize];
                prop_assert_eq!(place.depth, above.depth + 1);
                prop_assert!((parent as usize) < row && row <= (parent + above.descendants) as usize);
                prop_assert!(row + place.descendants as usize <= (parent + above.descendants) as usize);
                prop_assert_eq!(spans[place.index as usize].parent_span_id, Some(spans[above.index as usize].span_id));
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
                rows(spans).iter().map(|it| (spans[it.index as usize].span_id, it.parent_row, it.descendants, it.depth)).collect()
            };
            prop_assert_eq!(ids(&spans), ids(&shuffled));
        }
    }
}
