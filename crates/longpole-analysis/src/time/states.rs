//! Where the time of a span went, as far as it is known.
//!
//! ```text
//! span        ├───────────────────────────────┤
//! children         ├────────┤      ├─────┤            in child: covered by at least one
//! rest        ├────┤        ├──────┤     ├────┤       on-CPU, runnable, blocked, awaiting, remote, unaccounted
//! ```
//!
//! All add up to the duration, to the nanosecond. What each word means, and how the time is found where it is known which threads
//! worked for the span, [`crate::time::timelines`] says: there it is exact, and no sample is needed.
//!
//! Where that is not known (no journal, several threads or overlapping spans, no switch records) it is an estimate:
//!
//! ```text
//! samples      |||||          ||                      on-CPU: each stands for one period of the span's own time
//! waits                                   ────        blocked: what for is known, and whose wait it was
//! rest                          ──            ─       unaccounted; of a client's or producer's span: remote
//! ```
//!
//! `n` samples stand for `n` periods, give or take `√n`. Threads of one span that run at the same time do not make its wall time
//! longer, so each stretch of [`BIN_PERIODS`] periods of own time can be full only once.
//!
//! With its descendants a span is, at each moment, what one of them is, the first of: on-CPU, runnable, blocked, remote, awaiting;
//! else unaccounted. Nothing is in child then, and it adds up to the same duration.

use std::cmp::Reverse;

use longpole_model::{Nanos, Recording, SpanKind, SumNanos, TimeRange, WaitKind};

use crate::link::samples::SampleNodes;
use crate::link::waits::{NodeWait, NodeWaits};
use crate::schedule::recorded::Schedule;
use crate::time::timelines::{self, Doing, Piece, Source, Timelines};
use crate::tree::forest::Forest;

/// Periods of the sampling clock in a stretch that can be full only once: few enough to follow a change between running
/// and waiting, enough that a sample that falls into the next stretch does not matter.
pub const BIN_PERIODS: i64 = 20;

/// How it is known where time went; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Evidence {
    /// The journals of its threads, and when these were on a CPU.
    #[default]
    Journal,
    /// When the only thread of its process was on a CPU, and that no other span can have had it.
    Inferred,
    /// Samples, and waits that were looked at: an estimate.
    Samples,
}

impl Evidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Journal => "journal",
            Evidence::Inferred => "inferred",
            Evidence::Samples => "samples",
        }
    }
}

/// Where time went. The parts sum to what is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// At least one thread ran code of it.
    pub on_cpu_nanos: i64,
    /// None did, and one could have, but others had the CPUs.
    pub runnable_nanos: i64,
    /// A child was there.
    pub in_child_nanos: i64,
    /// A thread was blocked: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_nanos: [i64; WaitKind::ALL.len()],
    /// A thread was blocked, and nobody looked what for.
    pub blocked_unseen_nanos: i64,
    /// It was open, and no thread worked for it.
    pub awaiting_nanos: i64,
    /// The same, and it is the calling side of something that the network or another host does.
    pub remote_nanos: i64,
    /// None of these is known.
    pub unaccounted_nanos: i64,
    /// On CPUs, of all its threads together: none of the parts, and may be more than the whole.
    pub cpu_nanos: i64,
    /// How it is known; of several the weakest.
    pub evidence: Evidence,
    /// Records are missing that may have been about it.
    pub incomplete: bool,
}

impl States {
    /// All of it.
    pub fn sum(&self) -> i64 {
        self.own().saturating_add(self.in_child_nanos)
    }

    /// Outside of children.
    pub fn own(&self) -> i64 {
        let parts =
            [self.on_cpu_nanos, self.runnable_nanos, self.blocked(), self.awaiting_nanos, self.remote_nanos, self.unaccounted_nanos];
        parts.into_iter().sum_nanos()
    }

    /// Blocked, whatever for.
    pub fn blocked(&self) -> i64 {
        self.blocked_nanos.iter().sum_nanos::<i64>().saturating_add(self.blocked_unseen_nanos)
    }

    /// What it was blocked for longest, and how long.
    pub fn longest_wait(&self) -> Option<(WaitKind, i64)> {
        let kinds = WaitKind::ALL.into_iter().zip(self.blocked_nanos).rev();
        kinds.max_by_key(|(_, nanos)| *nanos).filter(|(_, nanos)| *nanos > 0)
    }

    /// Whether these are the figures, and not an estimate of them.
    pub fn is_exact(&self) -> bool {
        self.evidence != Evidence::Samples && !self.incomplete
    }

    fn add(&mut self, piece: &Piece) {
        let part = match piece.doing {
            Doing::OnCpu => &mut self.on_cpu_nanos,
            Doing::Runnable => &mut self.runnable_nanos,
            Doing::Blocked(kind) => &mut self.blocked_nanos[kind as usize],
            Doing::BlockedUnseen => &mut self.blocked_unseen_nanos,
            Doing::Remote => &mut self.remote_nanos,
            Doing::Awaiting => &mut self.awaiting_nanos,
            Doing::Unknown => &mut self.unaccounted_nanos,
        };
        part.add_nanos(piece.to.saturating_sub(piece.from));
    }

    /// Adds those of another time.
    fn join(&mut self, other: &States) {
        self.on_cpu_nanos.add_nanos(other.on_cpu_nanos);
        self.runnable_nanos.add_nanos(other.runnable_nanos);
        self.in_child_nanos.add_nanos(other.in_child_nanos);
        self.blocked_nanos.iter_mut().zip(other.blocked_nanos).for_each(|(sum, nanos)| sum.add_nanos(nanos));
        self.blocked_unseen_nanos.add_nanos(other.blocked_unseen_nanos);
        self.awaiting_nanos.add_nanos(other.awaiting_nanos);
        self.remote_nanos.add_nanos(other.remote_nanos);
        self.unaccounted_nanos.add_nanos(other.unaccounted_nanos);
        self.cpu_nanos = self.cpu_nanos.saturating_add(other.cpu_nanos);
        self.weaken(other.evidence);
        self.incomplete |= other.incomplete;
    }

    fn weaken(&mut self, evidence: Evidence) {
        self.evidence = self.evidence.max(evidence);
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
    pub(crate) forest: &'a Forest,
    pub(crate) schedule: &'a Schedule,
    pub(crate) samples: &'a SampleNodes,
    /// When each sample was, from the start of the run.
    pub(crate) sample_offsets: &'a [i64],
    pub(crate) waits: &'a NodeWaits,
    pub(crate) timelines: &'a Timelines,
}

/// An estimate that stretches are added to.
struct Estimate {
    states: States,
    /// Own time of all stretches, end to end; bins of it fill up with samples.
    own: i64,
    bin: i64,
    bin_length: i64,
    filled: i64,
}

impl Estimate {
    fn new() -> Estimate {
        Estimate { states: States::default(), own: 0, bin: 0, bin_length: i64::MAX, filled: 0 }
    }

    fn add(&mut self, known: &Known<'_>, stretch: Stretch) {
        let cover = &known.schedule.cover;
        let covered_until = |at: i64| cover.covered_before(stretch.node, at);
        let before = covered_until(stretch.from);
        let length = stretch.to.saturating_sub(stretch.from).max(0);
        let in_child = covered_until(stretch.to).saturating_sub(before).clamp(0, length);
        for &sample in known.samples_in(stretch) {
            let at = known.sample_offsets[sample as usize];
            let weight = known.weight(sample);
            self.states.cpu_nanos = self.states.cpu_nanos.saturating_add(weight);
            if cover.contains(stretch.node, at) {
                continue;
            }
            if self.bin_length == i64::MAX && weight > 0 {
                self.bin_length = weight.saturating_mul(BIN_PERIODS);
            }
            let place = self.own.saturating_add(at.saturating_sub(stretch.from)).saturating_sub(covered_until(at).saturating_sub(before));
            let this = place / self.bin_length;
            if this != self.bin {
                self.states.on_cpu_nanos.add_nanos(self.filled.min(self.bin_length));
                (self.bin, self.filled) = (this, 0);
            }
            self.filled = self.filled.saturating_add(weight);
        }
        known.add_blocked(stretch, &mut self.states);
        self.states.in_child_nanos.add_nanos(in_child);
        self.own.add_nanos(length.saturating_sub(in_child));
        self.states.weaken(Evidence::Samples);
    }

    /// What is known, and as unaccounted what is not.
    fn finish(self) -> States {
        let Estimate { mut states, own, bin, bin_length, filled } = self;
        let last = own.saturating_sub(bin.saturating_mul(bin_length)).clamp(0, bin_length);
        states.on_cpu_nanos = states.on_cpu_nanos.saturating_add(filled.min(last)).min(own);
        // Another thread of it may have run meanwhile.
        let (blocked, room) = (states.blocked(), own.saturating_sub(states.on_cpu_nanos));
        if blocked > room {
            for nanos in &mut states.blocked_nanos {
                *nanos = (i128::from(*nanos) * i128::from(room) / i128::from(blocked)) as i64;
            }
        }
        states.unaccounted_nanos = own.saturating_sub(states.on_cpu_nanos).saturating_sub(states.blocked());
        states
    }
}

impl Known<'_> {
    /// The samples of a node in a stretch of it.
    pub(crate) fn samples_in(&self, stretch: Stretch) -> &[u32] {
        let own = self.samples.of(stretch.node);
        let first = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.from);
        let end = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.to);
        own.get(first..end).unwrap_or_default()
    }

    fn weight(&self, sample: u32) -> i64 {
        i64::try_from(self.recording.samples[sample as usize].weight_nanos).unwrap_or(i64::MAX)
    }

    /// Whether what the node waits for is done elsewhere: it is the calling side.
    fn calls(&self, node: usize) -> bool {
        let kind = self.forest.span(self.recording, node).map(|span| span.kind);
        matches!(kind, Some(SpanKind::Client | SpanKind::Producer))
    }

    /// The states of these stretches together, which stand by time and do not overlap.
    pub(crate) fn states(&self, stretches: impl Iterator<Item = Stretch>) -> States {
        let mut states = States::default();
        let (mut estimate, mut of_calls) = (Estimate::new(), Estimate::new());
        for stretch in stretches {
            if self.timelines.source(stretch.node) != Source::Nothing {
                self.add_exact(stretch, &mut states);
            } else if self.calls(stretch.node) {
                of_calls.add(self, stretch);
            } else {
                estimate.add(self, stretch);
            }
        }
        let mut of_calls = of_calls.finish();
        of_calls.remote_nanos = std::mem::take(&mut of_calls.unaccounted_nanos);
        states.join(&estimate.finish());
        states.join(&of_calls);
        states
    }

    /// A stretch of a node of which it is known which threads worked for it.
    fn add_exact(&self, stretch: Stretch, states: &mut States) {
        let Stretch { node, from, to } = stretch;
        let mut own = self.timelines.own_pieces(node, (from, to), &self.schedule.cover, self.calls(node));
        let mut own_nanos = 0;
        if self.timelines.source(node) == Source::AllThreads {
            // While none of its threads is on a CPU, or could be, what it waits for is known by a rule.
            let waits = self.waits_in(stretch).flat_map(|wait| self.blocked_pieces(node, wait));
            own.pieces.extend(waits.collect::<Vec<_>>());
            own.pieces = timelines::flatten(own.pieces);
        }
        for piece in &own.pieces {
            states.add(piece);
            own_nanos.add_nanos(piece.to.saturating_sub(piece.from));
        }
        states.in_child_nanos.add_nanos(to.saturating_sub(from).saturating_sub(own_nanos));
        states.cpu_nanos.add_nanos(own.cpu_nanos);
        self.judge(node, own.has_hole, states);
    }

    /// Notes how it is known what the node did.
    fn judge(&self, node: usize, has_hole: bool, states: &mut States) {
        let source = self.timelines.source(node);
        states.weaken(match source {
            Source::Journal => Evidence::Journal,
            Source::OneThread => Evidence::Inferred,
            Source::AllThreads | Source::Nothing => Evidence::Samples,
        });
        states.incomplete |= has_hole || !self.timelines.is_whole(source);
    }

    /// The states of a node with its descendants, from its start to its end. CPU time is that of all of them, also past its end.
    pub(crate) fn with_descendants(&self, node: usize) -> States {
        let (start, end) = (self.schedule.start[node], self.schedule.end[node]);
        let mut states = States::default();
        let mut pieces = Vec::new();
        let mut push = |from: i64, to: i64, doing: Doing| {
            let (from, to) = (from.max(start), to.min(end));
            if from < to {
                pieces.push(Piece { from, to, doing });
            }
        };
        for below in node..self.forest.nodes[node].subtree_end() {
            let (from, to) = (self.schedule.start[below], self.schedule.end[below]);
            if from >= to && below > node {
                continue;
            }
            let calls = self.calls(below);
            if self.timelines.source(below) != Source::Nothing {
                let own = self.timelines.own_pieces(below, (from, to), &self.schedule.cover, calls);
                own.pieces.iter().for_each(|piece| push(piece.from, piece.to, piece.doing));
                if self.timelines.source(below) == Source::AllThreads {
                    let waits = self.waits_in(Stretch { node: below, from, to }).flat_map(|wait| self.blocked_pieces(below, wait));
                    waits.for_each(|piece| push(piece.from, piece.to, piece.doing));
                }
                states.cpu_nanos.add_nanos(own.cpu_nanos);
                self.judge(below, own.has_hole, &mut states);
                continue;
            }
            let stretch = Stretch { node: below, from, to };
            let samples = self.samples_in(stretch);
            for &sample in samples {
                let (at, weight) = (self.sample_offsets[sample as usize], self.weight(sample));
                states.cpu_nanos = states.cpu_nanos.saturating_add(weight);
                push(at, at.saturating_add(weight).min(to), Doing::OnCpu);
            }
            let gaps = |from: i64, to: i64| self.schedule.cover.gaps(below, from, to);
            let waits = self.waits_in(stretch).flat_map(|wait| self.blocked_pieces(below, wait));
            waits.for_each(|piece| push(piece.from, piece.to, piece.doing));
            if calls {
                gaps(from, to).for_each(|(from, to)| push(from, to, Doing::Remote));
            }
            if below == node || !samples.is_empty() || gaps(from, to).next().is_some() {
                self.judge(below, false, &mut states);
            }
        }
        timelines::flatten(pieces).iter().for_each(|piece| states.add(piece));
        states.unaccounted_nanos.add_nanos(end.saturating_sub(start).max(0).saturating_sub(states.sum()));
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

    /// What of a wait no child covers.
    fn blocked_pieces(&self, node: usize, wait: NodeWait) -> impl Iterator<Item = Piece> {
        let doing = Doing::Blocked(self.recording.waits[wait.wait as usize].kind);
        self.schedule.cover.gaps(node, wait.from, wait.to).map(move |(from, to)| Piece { from, to, doing })
    }

    /// How much of a wait no child covers.
    pub(crate) fn own_of_wait(&self, node: usize, wait: &NodeWait) -> i64 {
        let cover = &self.schedule.cover;
        wait.to
            .saturating_sub(wait.from)
            .saturating_sub(cover.covered_before(node, wait.to).saturating_sub(cover.covered_before(node, wait.from)))
    }

    fn add_blocked(&self, stretch: Stretch, states: &mut States) {
        for wait in self.waits_in(stretch) {
            let kind = self.recording.waits[wait.wait as usize].kind;
            states.blocked_nanos[kind as usize].add_nanos(self.own_of_wait(stretch.node, &wait).max(0));
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
        // What lies too far away to be counted has no length, and an end before its start would be taken for another's.
        let (start, end) = (start.nanos_since(run.start), end.nanos_since(run.start));
        if start < end {
            events.push((start, true, i as u32));
            events.push((end, false, i as u32));
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
        area += i128::from(to.saturating_sub(from)) * i128::from(leaves.count.max(1));
        if leaves.count > 1 {
            if let Some(over) = stretch.take() {
                serial.push(over.close(run, from, leaves.count));
            }
            return;
        }
        let node = if leaves.count == 1 { leaves.sum as usize } else { 0 };
        let open = stretch.get_or_insert_with(|| OpenStretch { since: from, sums: Vec::new() });
        match open.sums.last_mut() {
            Some((last, nanos)) if *last == node => nanos.add_nanos(to.saturating_sub(from)),
            _ => open.sums.push((node, to.saturating_sub(from))),
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
            let nanos = same.iter().map(|s| s.1).sum_nanos();
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
