//! Where the time of a span went, as far as it is known.
//!
//! ```text
//! span        ├───────────────────────────────┤
//! children         ├────────┤      ├─────┤            in child: covered by at least one
//! samples      |||||          ||                      on-CPU: each stands for one period of the span's own time
//! waits                                   ────        blocked: what for is known
//! rest                          ──            ─       unaccounted: short waits, or nobody looked
//! ```
//!
//! All add up. Blocked time is exact, where the thread is known that works for the span (`waits`). On-CPU is an estimate: `n` samples stand for `n` periods, give or take `√n`. Threads of one span that
//! run at the same time do not make its wall time longer, so each stretch of [`BIN_PERIODS`] periods of own time can be
//! full only once.

use std::cmp::Reverse;

use longpole_model::{Recording, TimeRange, WaitKind};

use crate::sample_links::SampleNodes;
use crate::schedule::Schedule;
use crate::trace_tree::Forest;
use crate::waits::{NodeWait, NodeWaits};

/// Periods of the sampling clock in a stretch that can be full only once: few enough to follow a change between running
/// and waiting, enough that a sample that falls into the next stretch does not matter.
pub const BIN_PERIODS: i64 = 20;

/// Where time went. The parts sum to what is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// At least one thread ran code of it.
    pub on_cpu_nanos: i64,
    /// A child was there.
    pub in_child_nanos: i64,
    /// No thread ran, and one was blocked: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_nanos: [i64; WaitKind::ALL.len()],
    /// None of these is known.
    pub unaccounted_nanos: i64,
}

impl States {
    /// All of it.
    pub fn sum(&self) -> i64 {
        self.own() + self.in_child_nanos
    }

    /// Outside of children.
    pub fn own(&self) -> i64 {
        self.on_cpu_nanos + self.blocked() + self.unaccounted_nanos
    }

    /// Blocked, whatever for.
    pub fn blocked(&self) -> i64 {
        self.blocked_nanos.iter().sum()
    }

    /// What it was blocked for longest, and how long.
    pub fn longest_wait(&self) -> Option<(WaitKind, i64)> {
        let kinds = WaitKind::ALL.into_iter().zip(self.blocked_nanos).rev();
        kinds.max_by_key(|(_, nanos)| *nanos).filter(|(_, nanos)| *nanos > 0)
    }
}

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
    pub work_nanos: i64,
    /// Time of the critical path without the run's own: how long it would take if all that can run at once did.
    pub span_nanos: i64,
    /// How long it took.
    pub wall_nanos: i64,
}

impl WorkFigures {
    /// Operations that were worked on at once, on average: work over wall.
    pub fn utilisation(&self) -> f64 {
        if self.wall_nanos > 0 { self.work_nanos as f64 / self.wall_nanos as f64 } else { 0.0 }
    }

    /// How many could have been: work over span. `None` without any work.
    pub fn utilisation_max(&self) -> Option<f64> {
        (self.span_nanos > 0).then(|| self.work_nanos as f64 / self.span_nanos as f64)
    }
}

/// A stretch of time in which at most one operation was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SerialStretch {
    /// When.
    pub range: TimeRange,
    /// What ran in most of it; the run where nothing else did.
    pub node: usize,
    /// How long that was.
    pub node_nanos: i64,
    /// Operations that ran in it, one after the other.
    pub operations: u32,
    /// Operations in flight right after it: what it held up, and what ran on.
    pub in_flight_after: u32,
}

/// A stretch of a node, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) node: usize,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// What states are made of.
pub(crate) struct Known<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) schedule: &'a Schedule,
    pub(crate) samples: &'a SampleNodes,
    /// When each sample was, from the start of the run.
    pub(crate) sample_offsets: &'a [i64],
    pub(crate) waits: &'a NodeWaits,
}

impl Known<'_> {
    /// The samples of a node in a stretch of it.
    pub(crate) fn samples_in(&self, stretch: Stretch) -> &[u32] {
        let own = self.samples.of(stretch.node);
        let first = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.from);
        let end = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.to);
        own.get(first..end).unwrap_or_default()
    }

    /// The states of these stretches together, which stand by time and do not overlap.
    pub(crate) fn states(&self, stretches: impl Iterator<Item = Stretch>) -> States {
        let mut states = States::default();
        // Own time of all stretches, end to end; bins of it fill up with samples.
        let (mut own, mut bin, mut filled, mut bin_length) = (0i64, 0i64, 0i64, i64::MAX);
        let cover = &self.schedule.cover;
        for stretch in stretches {
            let covered_until = |at: i64| cover.covered_before(stretch.node, at);
            let before = covered_until(stretch.from);
            let length = (stretch.to - stretch.from).max(0);
            let in_child = (covered_until(stretch.to) - before).clamp(0, length);
            for &sample in self.samples_in(stretch) {
                let at = self.sample_offsets[sample as usize];
                if cover.contains(stretch.node, at) {
                    continue;
                }
                let weight = i64::try_from(self.recording.samples[sample as usize].weight_nanos).unwrap_or(i64::MAX);
                if bin_length == i64::MAX && weight > 0 {
                    bin_length = weight.saturating_mul(BIN_PERIODS);
                }
                let place = own + (at - stretch.from) - (covered_until(at) - before);
                let this = place / bin_length;
                if this != bin {
                    states.on_cpu_nanos += filled.min(bin_length);
                    (bin, filled) = (this, 0);
                }
                filled = filled.saturating_add(weight);
            }
            self.add_blocked(stretch, &mut states);
            states.in_child_nanos += in_child;
            own += length - in_child;
        }
        let last = own.saturating_sub(bin.saturating_mul(bin_length)).clamp(0, bin_length);
        states.on_cpu_nanos = (states.on_cpu_nanos + filled.min(last)).min(own);
        // Another thread of it may have run meanwhile.
        let (blocked, room) = (states.blocked(), own - states.on_cpu_nanos);
        if blocked > room {
            for nanos in &mut states.blocked_nanos {
                *nanos = (i128::from(*nanos) * i128::from(room) / i128::from(blocked)) as i64;
            }
        }
        states.unaccounted_nanos = own - states.on_cpu_nanos - states.blocked();
        states
    }

    /// The waits of a node in a stretch of it. Those of several threads count once.
    pub(crate) fn waits_in(&self, stretch: Stretch) -> impl Iterator<Item = NodeWait> {
        let mut until = stretch.from;
        self.waits.of_node(stretch.node).iter().filter_map(move |wait| {
            let (from, to) = (wait.from.max(until), wait.to.min(stretch.to));
            until = until.max(to);
            (from < to).then_some(NodeWait { from, to, ..*wait })
        })
    }

    /// How much of a wait no child covers.
    pub(crate) fn own_of_wait(&self, node: usize, wait: &NodeWait) -> i64 {
        let cover = &self.schedule.cover;
        (wait.to - wait.from) - (cover.covered_before(node, wait.to) - cover.covered_before(node, wait.from))
    }

    fn add_blocked(&self, stretch: Stretch, states: &mut States) {
        for wait in self.waits_in(stretch) {
            let kind = self.recording.waits[wait.wait as usize].kind;
            states.blocked_nanos[kind as usize] += self.own_of_wait(stretch.node, &wait).max(0);
        }
    }

    /// The states of a node from its start to its end.
    pub(crate) fn of_node(&self, node: usize) -> States {
        let (from, to) = (self.schedule.start[node], self.schedule.end[node]);
        self.states(std::iter::once(Stretch { node, from, to }))
    }
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
    since: i64,
    /// The pieces of it so far: only the node with the most time counts, so the sums are kept.
    sums: Vec<(usize, i64)>,
}

/// The operations that are in flight: how many, and the sum of their indices, which is the index itself where there is one.
#[derive(Default)]
struct Leaves {
    count: u32,
    sum: u64,
}

impl Leaves {
    fn change(&mut self, node: usize, there: bool) {
        if there {
            (self.count, self.sum) = (self.count + 1, self.sum + node as u64);
        } else {
            (self.count, self.sum) = (self.count - 1, self.sum - node as u64);
        }
    }
}

/// Mean and peak of the operations in flight.
pub fn parallelism(forest: &Forest) -> Parallelism {
    in_flight(forest).parallelism
}

/// One sweep over starts and ends.
pub(crate) fn in_flight(forest: &Forest) -> InFlight {
    let run = forest.run_range();
    // Ends before starts: what follows at once does not overlap.
    let mut events: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * forest.len());
    for (i, node) in forest.nodes.iter().enumerate().skip(1) {
        let (start, end) = (node.range.start.max(run.start), node.range.end.min(run.end));
        if start < end {
            events.push((start.nanos_since(run.start), true, i as u32));
            events.push((end.nanos_since(run.start), false, i as u32));
        }
    }
    events.sort_unstable();
    let mut open = vec![false; forest.len()];
    let mut open_children = vec![0u32; forest.len()];
    let mut leaves = Leaves::default();
    let (mut peak, mut area, mut since) = (0u32, 0i128, 0i64);
    let mut stretch: Option<OpenStretch> = None;
    let mut serial = Vec::new();
    let mut piece = |from: i64, to: i64, leaves: &Leaves| {
        peak = peak.max(leaves.count);
        area += i128::from(to - from) * i128::from(leaves.count.max(1));
        if leaves.count > 1 {
            if let Some(over) = stretch.take() {
                serial.push(over.close(run, from, leaves.count));
            }
            return;
        }
        let node = if leaves.count == 1 { leaves.sum as usize } else { 0 };
        let open = stretch.get_or_insert_with(|| OpenStretch { since: from, sums: Vec::new() });
        match open.sums.last_mut() {
            Some((last, nanos)) if *last == node => *nanos += to - from,
            _ => open.sums.push((node, to - from)),
        }
    };
    for (at, starts, i) in events {
        let i = i as usize;
        if at > since {
            piece(since, at, &leaves);
            since = at;
        }
        open[i] = starts;
        let parent = forest.nodes[i].parent().filter(|&p| p != 0);
        if open_children[i] == 0 {
            leaves.change(i, starts);
        }
        if let Some(p) = parent {
            let had = open_children[p] > 0;
            open_children[p] = if starts { open_children[p] + 1 } else { open_children[p] - 1 };
            if open[p] && had != (open_children[p] > 0) {
                leaves.change(p, had);
            }
        }
    }
    if run.nanos() > since {
        piece(since, run.nanos(), &leaves);
    }
    if let Some(over) = stretch.take() {
        serial.push(over.close(run, run.nanos(), 0));
    }
    let wall = run.nanos();
    serial.sort_by_key(|s: &SerialStretch| (Reverse(s.range.nanos()), s.range.start));
    serial.truncate(SERIAL_MAX);
    InFlight {
        parallelism: Parallelism { mean: if wall > 0 { area as f64 / wall as f64 } else { 0.0 }, peak: peak.max(u32::from(wall > 0)) },
        serial,
    }
}

impl OpenStretch {
    fn close(mut self, run: TimeRange, until: i64, in_flight_after: u32) -> SerialStretch {
        self.sums.sort_unstable();
        let mut operations = 0;
        let (mut node, mut node_nanos) = (0, 0);
        for same in self.sums.chunk_by(|a, b| a.0 == b.0) {
            let nanos = same.iter().map(|s| s.1).sum();
            operations += u32::from(same[0].0 != 0);
            if nanos > node_nanos {
                (node, node_nanos) = (same[0].0, nanos);
            }
        }
        let range = TimeRange { start: run.start.plus_nanos(self.since), end: run.start.plus_nanos(until) };
        SerialStretch { range, node, node_nanos, operations, in_flight_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use longpole_model::text;

    fn millis(states: States) -> [i64; 3] {
        [states.on_cpu_nanos, states.in_child_nanos, states.unaccounted_nanos].map(|nanos| nanos / 1_000_000)
    }

    fn node(report: &Report, name: &str) -> usize {
        (0..report.forest().len()).find(|&i| report.name(i) == name).unwrap()
    }

    #[test]
    fn a_span_runs_waits_and_has_children() {
        let report = Report::new(
            text::parse(
                "run x 0..100ms\n  work 0..100ms svc pid 1\n    call 40..70ms svc\nsample 1ms x30 pid 1 [work] m\nsample 45ms x20 pid 1 [call] m\n",
            )
            .unwrap(),
        );
        assert_eq!(millis(report.node_states(node(&report, "work"))), [30, 30, 40]);
        assert_eq!(millis(report.node_states(node(&report, "call"))), [20, 0, 10]);
        assert_eq!(millis(report.path_states()), [50, 0, 50]);
    }

    #[test]
    fn threads_that_run_at_the_same_time_do_not_make_a_span_longer_nor_hide_that_it_waits() {
        let two = "sample 0ms x40 pid 1 tid 1 [work] m\nsample 0ms x40 pid 1 tid 2 [work] m\n";
        let report = Report::new(text::parse(&format!("run x 0..100ms\n  work 0..100ms svc pid 1\n{two}")).unwrap());
        assert_eq!(millis(report.node_states(1)), [40, 0, 60]);
    }

    #[test]
    fn own_time_in_many_short_pieces_is_estimated_without_bias() {
        // Own time in pieces of 0.2 ms between children; one piece in five gets a sample of 1 ms: busy all the time.
        let mut text = "run x 0..1s\n  loop 0..100ms svc pid 1\n".to_owned();
        for i in 0..100 {
            text.push_str(&format!("    child {}..{}us svc\n", i * 1000 + 200, i * 1000 + 1000));
            if i % 5 == 0 {
                text.push_str(&format!("sample {}us pid 1 [loop] m\n", i * 1000 + 100));
            }
        }
        // Samples stand between spans in the text; the notation wants spans together.
        let (samples, spans): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("sample"));
        let report = Report::new(text::parse(&format!("{}\n{}", spans.join("\n"), samples.join("\n"))).unwrap());
        assert_eq!(millis(report.node_states(1)), [20, 80, 0]);
    }

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
                format!("{from}..{to} {} {} of {}, then {}", report.name(s.node), s.node_nanos / 1_000_000, s.operations, s.in_flight_after)
            })
            .collect();
        assert_eq!(drawn, ["0..42 read 20 of 3, then 2", "60..100 stop 20 of 2, then 0"]);
    }

    #[test]
    fn work_is_own_time_and_the_span_is_what_no_crowd_makes_shorter() {
        let of = |text: &str| {
            let figures = Report::new(text::parse(text).unwrap()).work();
            let millis = [figures.work_nanos, figures.span_nanos, figures.wall_nanos].map(|nanos| nanos / 1_000_000);
            (millis, figures.utilisation(), figures.utilisation_max())
        };
        let two = "run x 0..100ms\n  deploy 0..80ms\n    a 10..70ms\n    b 10..50ms\n";
        assert_eq!(of(two), ([120, 80, 100], 1.2, Some(1.5)));
        assert_eq!(of("run x 0..100ms\n"), ([0, 0, 100], 0.0, None));
    }

    #[test]
    fn own_time_stands_beside_the_whole() {
        let report = Report::new(text::parse("run x 0..100ms\n  a 10..90ms\n    b 20..50ms\n    c 40..60ms\n").unwrap());
        let own: Vec<i64> = (0..4).map(|n| report.own_nanos(n) / 1_000_000).collect();
        assert_eq!(own, [20, 40, 30, 20]);
    }

    #[test]
    fn operations_in_flight_are_the_innermost_ones() {
        let of = |text: &str| parallelism(&Forest::build(&text::parse(text).unwrap()));
        assert_eq!(of("run x 0..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..10ms\n  p 0..10ms\n    a 0..5ms\n    b 0..5ms\n"), Parallelism { mean: 1.5, peak: 2 });
        assert_eq!(of("run x 0..10ms\n  a 0..5ms\n  b 5..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..0ms\n"), Parallelism { mean: 0.0, peak: 0 });
    }
}
