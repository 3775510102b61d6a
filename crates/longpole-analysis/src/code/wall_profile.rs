//! Spans as a profile of wall time: who was innermost at each tick of a clock.
//!
//! ```text
//! tick     0     1     2     3     4     5     6
//! run      ├─────────────────────────────────────┤
//! up        ├──────────────────────────────┤
//! create        ├─────────────┤                        stacks: run 2 ticks; run;up 1; run;up;create 2; run;up;delete 2
//! delete                    ├──────────┤
//! ```
//!
//! Each tick has one stack, that of the deepest open node, so the ticks of a run add up to its wall time whatever ran side by side.
//! If several nodes are as deep, the one that began last stands for all. The cost does not depend on the number of ticks: nothing
//! changes between two moments at which something begins or ends.

use std::collections::BinaryHeap;

use longpole_model::{AddNanos, IdVec, NodeId, TimeRange};

use crate::tree::forest::Forest;

/// Ticks that fell on a node while nothing below it was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// The node; its stack is it with its ancestors.
    pub node: NodeId,
    /// How many.
    pub count: u64,
}

/// The nodes that were innermost at some tick, in tree order. Ticks are `granularity_nanos` apart, the first at the start of the run.
pub fn wall_profile(forest: &Forest, granularity_nanos: u64) -> Vec<Ticks> {
    let run = forest.run_range();
    let ticks_before = |at: i64| at.max(0).cast_unsigned().div_ceil(granularity_nanos.max(1));
    // Only what is inside of the run: a late span would make the whole longer than it was.
    let range = |node: NodeId| {
        let TimeRange { start, end } = forest[node].range;
        (start.nanos_since(run.start).max(0), end.nanos_since(run.start).min(run.nanos()))
    };
    let mut starts: Vec<(i64, NodeId)> = forest.ids().map(|node| (range(node).0, node)).collect();
    starts.sort_unstable();
    let mut moments: Vec<i64> = forest.ids().flat_map(|node| <[i64; 2]>::from(range(node))).collect();
    moments.sort_unstable();
    moments.dedup();

    let mut counts: IdVec<NodeId, u64> = IdVec::filled(0, forest.len());
    let mut open = BinaryHeap::new();
    let mut starts = starts.into_iter().peekable();
    for (from, to) in moments.iter().zip(moments.iter().skip(1)) {
        while let Some((start, node)) = starts.next_if(|(start, _)| start <= from) {
            open.push((forest[node].depth, start, node));
        }
        // What has ended is taken away when it would stand on top; before, it is in nobody's way.
        while open.peek().is_some_and(|&(_, _, node)| range(node).1 <= *from) {
            open.pop();
        }
        if let Some(&(_, _, node)) = open.peek() {
            counts[node].add_nanos(ticks_before(*to) - ticks_before(*from));
        }
    }
    counts.enumerated().filter(|(_, count)| **count > 0).map(|(node, &count)| Ticks { node, count }).collect()
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    /// The ticks of a text, as `name ×count`.
    fn check(recording: &str, granularity_nanos: u64, expected: &[&str]) {
        let recording = text::parse(recording).unwrap();
        let forest = Forest::build(&recording);
        let ticks = wall_profile(&forest, granularity_nanos);
        let found: Vec<String> = ticks.iter().map(|t| format!("{} ×{}", forest.name(&recording, t.node), t.count)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_innermost_span_has_the_tick_and_all_ticks_are_the_wall_time() {
        let recording = "run make 0..7ms\n  up 500us..6ms a\n    create 1500us..3500us a\n    delete 3500us..5500us a\n";
        check(recording, 1_000_000, &["make ×2", "up ×1", "create ×2", "delete ×2"]);
    }

    #[test]
    fn what_runs_side_by_side_is_counted_once() {
        check("run x 0..4ms\n  a 0..4ms s\n  b 2..3ms s\n", 1_000_000, &["a ×3", "b ×1"]);
    }

    #[test]
    fn a_child_that_outlives_its_parent_keeps_its_stack_and_nothing_outlives_the_run() {
        check("run x 0..4ms\n  a 0..1ms s\n    b 0..9ms s\n", 1_000_000, &["b ×4"]);
    }

    #[test]
    fn a_fine_clock_costs_nothing() {
        check("run x 0..3600s\n  a 1..3599s s\n", 1, &["x ×2000000000", "a ×3598000000000"]);
        check("run x 0..0ms\n", 0, &[]);
    }
}
