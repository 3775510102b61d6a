//! Parts of nodes' own time: what one function of theirs did, or one wait.
//!
//! ```text
//! node      ├──────────────────────────────┤
//! child          ├──────┤
//! parse     ├=┤          ├===┤                  pieces of its own time
//! fsync       ├─┤             ├───┤
//! ```

use std::collections::BTreeMap;

use longpole_model::{Nanos, NodeId};

use crate::intervals;
use crate::schedule::recorded::{Covered, Schedule, covered_before};

/// Times that do not overlap, by time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TimeSet(Vec<Covered>);

impl TimeSet {
    /// The union of these times: from and to.
    pub(crate) fn new(times: Vec<(Nanos, Nanos)>) -> TimeSet {
        let mut before = Nanos::ZERO;
        let covered = |(start, end): (Nanos, Nanos)| {
            let this = Covered { start, end, before };
            before += end - start;
            this
        };
        TimeSet(intervals::union(times).into_iter().map(covered).collect())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that lie between two moments, cut there.
    pub(crate) fn between(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let first = self.0.partition_point(|it| it.end <= from);
        self.0[first..].iter().take_while(move |it| it.start < to).map(move |it| (it.start.max(from), it.end.min(to)))
    }

    /// How long they are between two moments.
    pub(crate) fn length_between(&self, from: Nanos, to: Nanos) -> Nanos {
        covered_before(&self.0, to) - covered_before(&self.0, from)
    }

    /// What they leave out between two moments.
    pub(crate) fn gaps(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let ends = self.between(from, to).chain([(to, to)]);
        ends.scan(from, |at, (start, end)| Some((std::mem::replace(at, end), start))).filter(|(from, to)| from < to)
    }
}

/// Pieces of the own time of some nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnWork {
    of_node: BTreeMap<NodeId, TimeSet>,
    none: TimeSet,
}

impl OwnWork {
    /// These pieces: node, from and to, since the start of the run. What overlaps counts once.
    pub(crate) fn new(pieces: impl Iterator<Item = (NodeId, Nanos, Nanos)>) -> OwnWork {
        let mut times: BTreeMap<NodeId, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for (node, from, to) in pieces {
            times.entry(node).or_default().push((from, to));
        }
        OwnWork { of_node: times.into_iter().map(|(node, times)| (node, TimeSet::new(times))).collect(), none: TimeSet::default() }
    }

    fn of(&self, node: NodeId) -> &TimeSet {
        self.of_node.get(&node).unwrap_or(&self.none)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_node.is_empty()
    }

    /// Its pieces: node, from and to.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (NodeId, Nanos, Nanos)> {
        self.of_node.iter().flat_map(|(node, times)| times.0.iter().map(|it| (*node, it.start, it.end)))
    }

    /// The nodes that it is of, in tree order.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.of_node.keys().copied().collect()
    }

    /// How much of it lies in a node between two moments.
    pub(crate) fn between(&self, node: NodeId, from: Nanos, to: Nanos) -> Nanos {
        self.of(node).length_between(from, to)
    }

    /// Its pieces in a node that lie between two moments, cut there.
    pub(crate) fn pieces_between(&self, node: NodeId, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        self.of(node).between(from, to)
    }

    /// The times of a node between two moments that it leaves out.
    pub(crate) fn gaps(&self, node: NodeId, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        self.of(node).gaps(from, to)
    }

    /// How much of it lies in a node before a moment.
    fn before(&self, node: NodeId, at: Nanos) -> Nanos {
        covered_before(&self.of(node).0, at)
    }
}

/// The own time of nodes: all of it, or a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnTime<'a> {
    schedule: &'a Schedule,
    only: Option<&'a OwnWork>,
}

impl Schedule {
    /// The own time of nodes; with `only`, what that holds of it.
    pub(crate) fn own_time<'a>(&'a self, only: Option<&'a OwnWork>) -> OwnTime<'a> {
        OwnTime { schedule: self, only }
    }
}

impl OwnTime<'_> {
    /// Own time of a node before a moment.
    fn before(&self, node: NodeId, at: Nanos) -> Nanos {
        let s = self.schedule;
        let at = at.min(s.end[node]).max(s.start[node]);
        match self.only {
            Some(work) => work.before(node, at),
            None => (at - s.start[node]) - s.cover.covered_before(node, at),
        }
    }

    /// Own time of a node between two moments.
    pub(crate) fn between(&self, node: NodeId, from: Nanos, to: Nanos) -> Nanos {
        self.before(node, to) - self.before(node, from)
    }

    /// Own time of a node.
    pub(crate) fn total(&self, node: NodeId) -> Nanos {
        self.before(node, self.schedule.end[node])
    }

    /// Own time of the host of a node before the node starts.
    pub(crate) fn at_start(&self, node: NodeId) -> Nanos {
        self.before(self.schedule.host[node], self.schedule.start[node])
    }

    /// Own time of the host of a node's end before that; nothing without one.
    pub(crate) fn at_end(&self, node: NodeId) -> Nanos {
        self.schedule.end_host[node].map_or(Nanos::ZERO, |host| self.before(host, self.schedule.end[node]))
    }

    /// What lies between the end of a sibling, or a later start of the host, and the start of a node; and how much of it is the host's own time.
    pub(crate) fn gap_after(&self, sibling: NodeId, node: NodeId) -> (Nanos, Nanos) {
        let s = self.schedule;
        let since = s.end[sibling].max(s.start[s.host[node]]);
        (s.start[node] - since, self.at_start(node) - self.at_end(sibling))
    }
}
