//! How many operations were in flight, how much work that was, and where only one was.

use std::cmp::Reverse;

use longpole_model::{IdVec, Nanos, NodeId, TimeRange};

use crate::leaves::Leaves;
use crate::tree::forest::Forest;

/// Serial stretches that are listed.
pub const SERIAL_MAX: usize = 32;

/// How many operations were in flight: nodes that no child of theirs covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parallelism {
    /// Over the wall time of the run. While nothing but the run itself is open, that counts as one.
    pub mean: f64,
    /// At most.
    pub peak: u32,
}

/// How much work there was, and how much of the time it took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorkFigures {
    /// All own time together, the run's left out: how long it would take one after the other.
    pub work: Nanos,
    /// Time of the critical path without the run's own: how long it would take if all that can run at once did.
    pub span: Nanos,
    /// How long it took.
    pub wall: Nanos,
}

impl WorkFigures {
    /// Operations that were worked on at once, on average: work over wall.
    pub fn utilisation(&self) -> f64 {
        if self.wall > Nanos::ZERO { self.work.0 as f64 / self.wall.0 as f64 } else { 0.0 }
    }

    /// How many could have been: work over span. `None` without any work.
    pub fn utilisation_max(&self) -> Option<f64> {
        (self.span > Nanos::ZERO).then(|| self.work.0 as f64 / self.span.0 as f64)
    }
}

/// A stretch of time in which at most one operation was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SerialStretch {
    /// When.
    pub range: TimeRange,
    /// What ran in most of it; the run where nothing else did.
    pub node: NodeId,
    /// How long that was.
    pub node_time: Nanos,
    /// Operations that ran in it, one after the other.
    pub operations: u32,
    /// Operations in flight right after it: what it held up, and what ran on.
    pub in_flight_after: u32,
}

/// Operations in flight, as far as one sweep over the forest tells.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) parallelism: Parallelism,
    /// Longest first, at most [`SERIAL_MAX`].
    pub(crate) serial: Vec<SerialStretch>,
}

/// A serial stretch that is not over.
struct OpenStretch {
    since: Nanos,
    /// The pieces of it so far: only the node with the most time counts, so the sums are kept.
    sums: Vec<(NodeId, Nanos)>,
}

/// One sweep over starts and ends.
pub(crate) fn in_flight(forest: &Forest) -> InFlight {
    let run = forest.run_range();
    // Ends before starts: what follows at once does not overlap.
    let mut events: Vec<(Nanos, bool, NodeId)> = Vec::with_capacity(2 * forest.len());
    for (id, node) in forest.nodes.enumerated().skip(1) {
        let (start, end) = (node.range.start.max(run.start), node.range.end.min(run.end));
        // What lies too far away to be counted has no length, and an end before its start would be taken for another's.
        let (start, end) = (Nanos(start.nanos_since(run.start)), Nanos(end.nanos_since(run.start)));
        if start < end {
            events.push((start, true, id));
            events.push((end, false, id));
        }
    }
    events.sort_unstable();
    let mut open: IdVec<NodeId, bool> = IdVec::filled(false, forest.len());
    let mut open_children: IdVec<NodeId, u32> = IdVec::filled(0, forest.len());
    // The operations that are in flight.
    let mut leaves = Leaves::default();
    let (mut peak, mut area, mut since) = (0u32, 0i128, Nanos::ZERO);
    let mut stretch: Option<OpenStretch> = None;
    let mut serial = Vec::new();
    let mut piece = |from: Nanos, to: Nanos, leaves: &Leaves<NodeId>| {
        peak = peak.max(leaves.count);
        area += i128::from((to - from).0) * i128::from(leaves.count.max(1));
        if leaves.count > 1 {
            if let Some(over) = stretch.take() {
                serial.push(over.close(run, from, leaves.count));
            }
            return;
        }
        let node = leaves.only().unwrap_or(NodeId::RUN);
        let open = stretch.get_or_insert_with(|| OpenStretch { since: from, sums: Vec::new() });
        match open.sums.last_mut() {
            Some((last, nanos)) if *last == node => *nanos += to - from,
            _ => open.sums.push((node, to - from)),
        }
    };
    for (at, starts, i) in events {
        if at > since {
            piece(since, at, &leaves);
            since = at;
        }
        open[i] = starts;
        let parent = forest[i].parent.filter(|&p| p != NodeId::RUN);
        if open_children[i] == 0 {
            if starts { leaves.add(i) } else { leaves.remove(i) }
        }
        if let Some(p) = parent {
            let had = open_children[p] > 0;
            open_children[p] = if starts { open_children[p] + 1 } else { open_children[p] - 1 };
            if open[p] && had != (open_children[p] > 0) {
                if had { leaves.add(p) } else { leaves.remove(p) }
            }
        }
    }
    let wall = Nanos(run.nanos());
    if wall > since {
        piece(since, wall, &leaves);
    }
    if let Some(over) = stretch.take() {
        serial.push(over.close(run, wall, 0));
    }
    serial.sort_by_key(|s: &SerialStretch| (Reverse(s.range.nanos()), s.range.start));
    serial.truncate(SERIAL_MAX);
    InFlight {
        parallelism: Parallelism {
            mean: if wall > Nanos::ZERO { area as f64 / wall.0 as f64 } else { 0.0 },
            peak: peak.max(u32::from(wall > Nanos::ZERO)),
        },
        serial,
    }
}

impl OpenStretch {
    fn close(mut self, run: TimeRange, until: Nanos, in_flight_after: u32) -> SerialStretch {
        self.sums.sort_unstable();
        let mut operations = 0;
        let (mut node, mut node_time) = (NodeId::RUN, Nanos::ZERO);
        for same in self.sums.chunk_by(|a, b| a.0 == b.0) {
            let time: Nanos = same.iter().map(|s| s.1).sum();
            operations += u32::from(same[0].0 != NodeId::RUN);
            if time > node_time {
                (node, node_time) = (same[0].0, time);
            }
        }
        let range = TimeRange { start: run.start.plus_nanos(self.since.0), end: run.start.plus_nanos(until.0) };
        SerialStretch { range, node, node_time, operations, in_flight_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use longpole_model::text;

    #[test]
    fn stretches_in_which_one_thing_ran_say_what_it_was() {
        let report = Report::new(
            text::parse("run x 0..100ms\n  plan 5..40ms\n    read 10..30ms\n  a 41..60ms\n  b 42..70ms\n  c 43..50ms\n  stop 75..95ms\n")
                .unwrap(),
        );
        let millis = |at: longpole_model::Timestamp| at.nanos_since(text::ORIGIN) / 1_000_000;
        let drawn: Vec<String> = report
            .serial_stretches()
            .iter()
            .map(|s| {
                let (from, to) = (millis(s.range.start), millis(s.range.end));
                format!(
                    "{from}..{to} {} {} of {}, then {}",
                    report.name(s.node),
                    s.node_time.0 / 1_000_000,
                    s.operations,
                    s.in_flight_after
                )
            })
            .collect();
        assert_eq!(drawn, ["0..42 read 20 of 3, then 2", "60..100 stop 20 of 2, then 0"]);
    }

    #[test]
    fn work_is_own_time_and_the_span_is_what_no_crowd_makes_shorter() {
        let of = |text: &str| {
            let figures = Report::new(text::parse(text).unwrap()).work();
            let millis = [figures.work, figures.span, figures.wall].map(|time| time.0 / 1_000_000);
            (millis, figures.utilisation(), figures.utilisation_max())
        };
        let two = "run x 0..100ms\n  deploy 0..80ms\n    a 10..70ms\n    b 10..50ms\n";
        assert_eq!(of(two), ([120, 80, 100], 1.2, Some(1.5)));
        assert_eq!(of("run x 0..100ms\n"), ([0, 0, 100], 0.0, None));
    }

    #[test]
    fn operations_in_flight_are_the_innermost_ones() {
        let of = |text: &str| in_flight(&Forest::build(&text::parse(text).unwrap())).parallelism;
        assert_eq!(of("run x 0..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..10ms\n  p 0..10ms\n    a 0..5ms\n    b 0..5ms\n"), Parallelism { mean: 1.5, peak: 2 });
        assert_eq!(of("run x 0..10ms\n  a 0..5ms\n  b 5..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..0ms\n"), Parallelism { mean: 0.0, peak: 0 });
    }
}
