//! The chain of work and gaps that fixed when the run ended.
//!
//! Walked from the end of the run backwards: the run ended because its last child ended, that one because of its own last
//! child, which started because of the thing it had waited for, and so on to the start of the run.
//!
//! ```text
//! run      ├──────────────────────────────────────┤
//!   deploy   ├────────────────────────────────┤
//!     web      ├──────────┤
//!     db                    ├────────────────┤          db carries a link to web
//!     dns      ├─────┤
//! path     rrdd wwwwwwwwww dd bbbbbbbbbbbbbbbb d rrrrr
//! ```
//!
//! What started a span is declared by its links, or else taken from order inside the same parent. The time between the
//! last thing waited for and what it let start is the parent's own.

use longpole_model::{IdVec, Nanos, NodeId, Recording, TimeRange};

use crate::schedule::recorded::{Schedule, Waited};
use crate::tree::forest::Forest;

/// A stretch of the path and the node that fixed the time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The node.
    pub node: NodeId,
    /// When.
    pub range: TimeRange,
}

/// The path of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// Stretches by time; each starts where the one before ends, and together they are the run. Neighbours differ.
    pub segments: Vec<Segment>,
    /// For each node, time of the path in which it was the innermost.
    pub on_path: IdVec<NodeId, Nanos>,
}

impl CriticalPath {
    /// The path of this recording.
    pub fn new(recording: &Recording, forest: &Forest) -> CriticalPath {
        Self::of(&Schedule::new(recording, forest), forest)
    }

    /// Whether more than half of the run is its own time.
    pub(crate) fn is_mostly_of_run(&self, forest: &Forest) -> bool {
        self.on_path[NodeId::RUN] > Nanos(forest.run_range().nanos()) / 2
    }

    pub(crate) fn of(schedule: &Schedule, forest: &Forest) -> CriticalPath {
        let run = forest.run_range();
        // Counted first: of a path with a million stretches, growing would take as much memory again.
        let mut count = 0;
        for_each_segment(schedule, run, |_, _, _| count += 1);
        let mut path = CriticalPath { segments: Vec::with_capacity(count), on_path: IdVec::filled(Nanos::ZERO, forest.len()) };
        for_each_segment(schedule, run, |node, from, to| {
            path.on_path[node] += to - from;
            let range = TimeRange { start: run.start.plus_nanos(from.0), end: run.start.plus_nanos(to.0) };
            path.segments.push(Segment { node, range });
        });
        path.segments.reverse();
        path
    }
}

/// Calls `segment` with each stretch of the path, the last first: its node, and from when to when, since the start of the run. Neighbours differ.
fn for_each_segment(schedule: &Schedule, run: TimeRange, mut segment: impl FnMut(NodeId, Nanos, Nanos)) {
    let mut until = Nanos(run.nanos());
    // The stretch that is not over yet.
    let mut open: Option<(NodeId, Nanos, Nanos)> = None;
    let mut push = |node: NodeId, from: Nanos, to: Nanos| {
        if from >= to {
            return;
        }
        open = match open {
            Some((later, since, end)) if later == node && since == to => Some((node, from, end)),
            before => {
                before.into_iter().for_each(|(node, from, to)| segment(node, from, to));
                Some((node, from, to))
            }
        };
    };
    let mut at = Waited::End(NodeId::RUN);
    loop {
        // The owner is whose work lies between the event and what it waited for.
        let (before, owner) = match at {
            Waited::Start(NodeId::RUN) => break,
            Waited::Start(node) => {
                let before = schedule.start_waited_for(node);
                let owner = if schedule.links(node).is_empty() { schedule.host[node] } else { schedule.anchor[node] };
                (before, owner)
            }
            Waited::End(node) => (schedule.end_waited_for(node), node),
        };
        let since = match before {
            Waited::Start(node) => schedule.start[node],
            Waited::End(node) => schedule.end[node],
        };
        push(owner, since.clamp(Nanos::ZERO, until), until);
        until = until.min(since.or_zero());
        at = before;
    }
    // Before the run itself nothing can have happened; spans of a skewed clock may say so.
    push(NodeId::RUN, Nanos::ZERO, until);
    open.into_iter().for_each(|(node, from, to)| segment(node, from, to));
}

/// Time of the recorded path before each node of the tree: sums over subtrees are then one subtraction.
#[derive(Debug)]
pub struct OnPath(IdVec<NodeId, Nanos>);

impl OnPath {
    pub(crate) fn new(path: &CriticalPath) -> OnPath {
        let before = path.on_path.iter().scan(Nanos::ZERO, |sum, nanos| {
            *sum += *nanos;
            Some(*sum)
        });
        OnPath(std::iter::once(Nanos::ZERO).chain(before).collect())
    }

    /// From a node to the one before another.
    pub(crate) fn between(&self, from: NodeId, to: NodeId) -> Nanos {
        self.0[to] - self.0[from]
    }

    /// In these nodes, which stand in tree order, and all below them.
    pub(crate) fn in_subtrees(&self, s: &Schedule, nodes: &[NodeId]) -> Nanos {
        let mut covered = NodeId::RUN;
        let mut sum = Nanos::ZERO;
        for &node in nodes {
            let end = s.subtree_end[node];
            if node >= covered {
                sum += self.between(node, end);
                covered = end;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    /// The path as `name from..to` in milliseconds.
    fn check(input: &str, expected: &[&str]) {
        let recording = text::parse(input).unwrap();
        let forest = Forest::build(&recording);
        let path = CriticalPath::new(&recording, &forest);
        let millis = |at: longpole_model::Timestamp| at.nanos_since(text::ORIGIN) / 1_000_000;
        let drawn: Vec<String> = path
            .segments
            .iter()
            .map(|s| format!("{} {}..{}", forest.name(&recording, s.node), millis(s.range.start), millis(s.range.end)))
            .collect();
        assert_eq!(drawn, expected);
        assert_eq!(path.on_path.iter().sum::<Nanos>().0, forest.run_range().nanos());
    }

    #[test]
    fn a_declared_dependency_leads_to_what_was_waited_for() {
        check(
            "run x 0..50ms\n  deploy 2..45ms\n    web 4..14ms\n    db 16..44ms <- web\n    dns 5..15ms\n",
            &["x 0..2", "deploy 2..4", "web 4..14", "deploy 14..16", "db 16..44", "deploy 44..45", "x 45..50"],
        );
    }

    #[test]
    fn without_links_the_last_that_ended_was_waited_for() {
        check(
            "run x 0..50ms\n  web 4..14ms\n  db 16..44ms\n  dns 5..15ms\n",
            &["x 0..5", "dns 5..15", "x 15..16", "db 16..44", "x 44..50"],
        );
    }

    #[test]
    fn a_link_may_lead_into_another_parent() {
        check(
            "run x 0..50ms\n  a 1..20ms\n    deep 2..19ms\n  b 3..40ms\n    waits 22..39ms <- deep\n    other 4..5ms\n",
            &["x 0..1", "a 1..2", "deep 2..19", "b 19..22", "waits 22..39", "b 39..40", "x 40..50"],
        );
    }

    #[test]
    fn a_child_that_outlives_its_parent_holds_the_run() {
        check(
            "run x 0..30ms\n  send 1..3ms\n    deliver 2..25ms\n  after 26..29ms\n",
            &["x 0..1", "send 1..2", "deliver 2..25", "x 25..26", "after 26..29", "x 29..30"],
        );
    }

    #[test]
    fn what_lies_outside_the_run_is_cut() {
        check("run x 10..30ms\n  early 5..12ms\n  late 15..40ms\n", &["early 10..12", "x 12..30"]);
        check("run x 0..0ms\n", &[]);
    }
}
