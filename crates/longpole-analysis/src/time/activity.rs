//! Where the time of a span went, as far as it is known.
//!
//! ```text
//! span        ├───────────────────────────────┤
//! children         ├────────┤      ├─────┤            in child: covered by at least one
//! rest        ├────┤        ├──────┤     ├────┤       on-CPU, runnable, blocked, awaiting, remote, unaccounted
//! ```
//!
//! All add up to the duration, to the nanosecond. What each word means, and how the time is found where it is known which threads
//! worked for the span, [`timelines`] says: there it is exact, and no sample is needed.
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

use longpole_model::{IdVec, Nanos, NodeId, Recording, SampleId, SpanKind, StateKind, WaitKind};

use crate::intervals;
use crate::link::samples::SampleNodes;
use crate::link::waits::{NodeWait, NodeWaits};
use crate::schedule::recorded::{Cover, Schedule};
use crate::time::states::{StateEvidence, States};
use crate::time::timelines::{self, OwnPieces, Piece, Source, Timelines};
use crate::tree::forest::Forest;

/// Periods of the sampling clock in a stretch that can be full only once: few enough to follow a change between running
/// and waiting, enough that a sample that falls into the next stretch does not matter.
const BIN_PERIODS: i64 = 20;

/// A stretch of a node, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) node: NodeId,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
}

/// The evidence of what nodes did, borrowed: it answers with the states of some of them.
pub(crate) struct Activity<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) forest: &'a Forest,
    pub(crate) schedule: &'a Schedule,
    /// Where children of nodes are.
    pub(crate) cover: &'a Cover,
    pub(crate) samples: &'a SampleNodes,
    /// When each sample was, from the start of the run.
    pub(crate) sample_offsets: &'a IdVec<SampleId, Nanos>,
    pub(crate) waits: &'a NodeWaits,
    pub(crate) timelines: &'a Timelines,
}

/// An estimate that stretches are added to.
struct Estimate {
    states: States,
    /// Own time of all stretches, end to end; bins of it fill up with samples.
    own: Nanos,
    bin: i64,
    bin_length: Nanos,
    filled: Nanos,
}

impl Estimate {
    fn new() -> Estimate {
        Estimate { states: States::default(), own: Nanos::ZERO, bin: 0, bin_length: Nanos::MAX, filled: Nanos::ZERO }
    }

    fn add(&mut self, activity: &Activity<'_>, stretch: Stretch) {
        let cover = activity.cover;
        let covered_until = |at: Nanos| cover.covered_before(stretch.node, at);
        let before = covered_until(stretch.from);
        let length = (stretch.to - stretch.from).or_zero();
        let in_child = (covered_until(stretch.to) - before).clamp(Nanos::ZERO, length);
        for &sample in activity.samples_in(stretch) {
            let at = activity.sample_offsets[sample];
            let weight = activity.weight(sample);
            self.states.cpu += weight;
            if cover.contains(stretch.node, at) {
                continue;
            }
            if self.bin_length == Nanos::MAX && weight > Nanos::ZERO {
                self.bin_length = weight * BIN_PERIODS;
            }
            let place = self.own + (at - stretch.from) - (covered_until(at) - before);
            let this = place.0 / self.bin_length.0;
            if this != self.bin {
                self.states.add(StateKind::OnCpu, self.filled.min(self.bin_length));
                (self.bin, self.filled) = (this, Nanos::ZERO);
            }
            self.filled += weight;
        }
        activity.add_blocked(stretch, &mut self.states);
        self.states.add(StateKind::InChild, in_child);
        self.own += length - in_child;
        self.states.weaken(StateEvidence::Samples);
    }

    /// The states found, and the rest as unaccounted.
    fn finish(self) -> States {
        let Estimate { mut states, own, bin, bin_length, filled } = self;
        let last = (own - bin_length * bin).clamp(Nanos::ZERO, bin_length);
        let on_cpu = (states.of(StateKind::OnCpu) + filled.min(last)).min(own);
        states.parts[StateKind::OnCpu] = on_cpu;
        // Another thread of it may have run meanwhile.
        let (blocked, room) = (states.blocked(), own - on_cpu);
        if blocked > room {
            for kind in WaitKind::ALL {
                let part = &mut states.parts[StateKind::Blocked(kind)];
                let scaled = i128::from(part.0) * i128::from(room.0) / i128::from(blocked.0);
                *part = Nanos(i64::try_from(scaled).unwrap_or(i64::MAX));
            }
        }
        states.parts[StateKind::Unaccounted] = own - on_cpu - states.blocked();
        states
    }
}

impl Activity<'_> {
    /// The samples of a node in a stretch of it.
    pub(crate) fn samples_in(&self, stretch: Stretch) -> &[SampleId] {
        let own = self.samples.of(stretch.node);
        let first = own.partition_point(|&s| self.sample_offsets[s] < stretch.from);
        let end = own.partition_point(|&s| self.sample_offsets[s] < stretch.to);
        own.get(first..end).unwrap_or_default()
    }

    /// Those of a node's samples that tell why it took its time: of the threads that counted.
    pub(crate) fn telling_samples(&self, stretch: Stretch) -> impl Iterator<Item = SampleId> {
        let counts = move |&sample: &SampleId| {
            self.timelines.counts(stretch.node, self.recording.samples[sample].thread(), self.sample_offsets[sample])
        };
        self.samples_in(stretch).iter().copied().filter(counts)
    }

    fn weight(&self, sample: SampleId) -> Nanos {
        Nanos::from_u64(self.recording.samples[sample].weight_nanos)
    }

    /// Whether what the node waits for is done elsewhere: it is the calling side.
    fn calls(&self, node: NodeId) -> bool {
        let kind = self.forest.span(self.recording, node).map(|span| span.kind);
        matches!(kind, Some(SpanKind::Client | SpanKind::Producer))
    }

    /// The states of these stretches together, which stand by time and do not overlap.
    pub(crate) fn states(&self, stretches: impl Iterator<Item = Stretch>) -> States {
        let mut states = States::default();
        let (mut estimate, mut of_calls) = (Estimate::new(), Estimate::new());
        let mut of_processes = Vec::new();
        for stretch in stretches {
            if self.timelines.source(stretch.node) != Source::Nothing {
                self.add_exact(stretch, &mut states);
                of_processes.extend((self.timelines.source(stretch.node) == Source::AllThreads).then_some(stretch));
            } else if self.calls(stretch.node) {
                of_calls.add(self, stretch);
            } else {
                estimate.add(self, stretch);
            }
        }
        // Stable: the stretches of a node stay in order of time.
        of_processes.sort_by_key(|stretch: &Stretch| stretch.node);
        for same in of_processes.chunk_by(|a, b| a.node == b.node) {
            let times: Vec<(Nanos, Nanos)> = same.iter().map(|stretch| (stretch.from, stretch.to)).collect();
            states.cpu += self.timelines.cpu_of_threads(same[0].node, &times);
        }
        let mut of_calls = of_calls.finish();
        of_calls.parts[StateKind::Remote] = std::mem::take(&mut of_calls.parts[StateKind::Unaccounted]);
        states.join(&estimate.finish());
        states.join(&of_calls);
        states
    }

    /// What a node does in its own time, from its start to its end: one state at a moment. Where nothing is known there is no piece, or one that
    /// says so.
    pub(crate) fn own_pieces(&self, node: NodeId) -> Vec<Piece> {
        let (from, to) = (self.schedule.start[node], self.schedule.end[node]);
        let stretch = Stretch { node, from, to };
        if self.timelines.source(node) != Source::Nothing {
            return self.exact_pieces(stretch).pieces;
        }
        let samples = self.samples_in(stretch);
        let ends = samples.iter().skip(1).map(|&next| self.sample_offsets[next]).chain([to]);
        let computes = samples.iter().zip(ends).flat_map(|(&sample, next)| {
            let (at, weight) = (self.sample_offsets[sample], self.weight(sample));
            // Samples that follow each other so closely stand for all between them.
            let end = if next - at <= weight + weight / 2 { next } else { (at + weight).min(to) };
            let gaps = self.cover.gaps(node, at, end);
            gaps.map(|(from, to)| Piece { from, to, state: StateKind::OnCpu })
        });
        let waits = self.waits_in(stretch).flat_map(|wait| self.blocked_pieces(node, wait));
        timelines::flatten(computes.chain(waits).collect())
    }

    fn exact_pieces(&self, Stretch { node, from, to }: Stretch) -> OwnPieces {
        let mut own = self.timelines.own_pieces(node, (from, to), self.cover, self.calls(node));
        if self.timelines.source(node) == Source::AllThreads {
            // While none of its threads is on a CPU, or could be, what it waits for is known by a rule.
            let waits = self.waits_in(Stretch { node, from, to }).flat_map(|wait| self.blocked_pieces(node, wait));
            own.pieces.extend(waits.collect::<Vec<_>>());
            own.pieces = timelines::flatten(own.pieces);
        }
        own
    }

    /// A stretch of a node with known threads.
    fn add_exact(&self, stretch: Stretch, states: &mut States) {
        let Stretch { node, from, to } = stretch;
        let own = self.exact_pieces(stretch);
        let mut own_time = Nanos::ZERO;
        for piece in &own.pieces {
            states.add(piece.state, piece.length());
            own_time += piece.length();
        }
        states.add(StateKind::InChild, to - from - own_time);
        states.cpu += own.cpu;
        self.judge(node, own.has_gap, states);
    }

    /// Notes how it is known what the node did.
    fn judge(&self, node: NodeId, has_gap: bool, states: &mut States) {
        let source = self.timelines.source(node);
        states.weaken(match source {
            Source::Journal => StateEvidence::Journal,
            Source::OneThread => StateEvidence::Inferred,
            Source::AllThreads | Source::Nothing => StateEvidence::Samples,
        });
        states.incomplete |= has_gap || !self.timelines.is_whole(source);
    }

    /// The states of a node with its descendants, from its start to its end. CPU time is that of all of them, also past its end.
    pub(crate) fn with_descendants(&self, node: NodeId) -> States {
        let (start, end) = (self.schedule.start[node], self.schedule.end[node]);
        let mut states = States::default();
        let mut pieces = Vec::new();
        let mut push = |from: Nanos, to: Nanos, state: StateKind| {
            if let Some((from, to)) = intervals::clip((from, to), (start, end)) {
                pieces.push(Piece { from, to, state });
            }
        };
        for below in self.forest.subtree(node) {
            let (from, to) = (self.schedule.start[below], self.schedule.end[below]);
            if from >= to && below > node {
                continue;
            }
            let calls = self.calls(below);
            if self.timelines.source(below) != Source::Nothing {
                let own = self.timelines.own_pieces(below, (from, to), self.cover, calls);
                own.pieces.iter().for_each(|piece| push(piece.from, piece.to, piece.state));
                if self.timelines.source(below) == Source::AllThreads {
                    states.cpu += self.timelines.cpu_of_threads(below, &[(from, to)]);
                    let waits = self.waits_in(Stretch { node: below, from, to }).flat_map(|wait| self.blocked_pieces(below, wait));
                    waits.for_each(|piece| push(piece.from, piece.to, piece.state));
                }
                states.cpu += own.cpu;
                self.judge(below, own.has_gap, &mut states);
                continue;
            }
            let stretch = Stretch { node: below, from, to };
            let samples = self.samples_in(stretch);
            for &sample in samples {
                let (at, weight) = (self.sample_offsets[sample], self.weight(sample));
                states.cpu += weight;
                push(at, (at + weight).min(to), StateKind::OnCpu);
            }
            let gaps = |from: Nanos, to: Nanos| self.cover.gaps(below, from, to);
            let waits = self.waits_in(stretch).flat_map(|wait| self.blocked_pieces(below, wait));
            waits.for_each(|piece| push(piece.from, piece.to, piece.state));
            if calls {
                gaps(from, to).for_each(|(from, to)| push(from, to, StateKind::Remote));
            }
            if below == node || !samples.is_empty() || gaps(from, to).next().is_some() {
                self.judge(below, false, &mut states);
            }
        }
        timelines::flatten(pieces).iter().for_each(|piece| states.add(piece.state, piece.length()));
        states.add(StateKind::Unaccounted, (end - start).or_zero() - states.sum());
        states
    }

    /// The waits of a node that mattered in a stretch of it. Those of several threads count once.
    pub(crate) fn waits_in(&self, stretch: Stretch) -> impl Iterator<Item = NodeWait> {
        let time = (stretch.from, stretch.to);
        one_at_a_time(self.waits.that_mattered_within(stretch.node, time), time)
    }

    /// What of a wait no child covers.
    fn blocked_pieces(&self, node: NodeId, wait: NodeWait) -> impl Iterator<Item = Piece> {
        let state = StateKind::Blocked(self.recording.waits[wait.wait].kind);
        self.cover.gaps(node, wait.from, wait.to).map(move |(from, to)| Piece { from, to, state })
    }

    /// How much of a wait no child covers.
    pub(crate) fn own_of_wait(&self, node: NodeId, wait: &NodeWait) -> Nanos {
        let cover = self.cover;
        (wait.to - wait.from) - (cover.covered_before(node, wait.to) - cover.covered_before(node, wait.from))
    }

    fn add_blocked(&self, stretch: Stretch, states: &mut States) {
        for wait in self.waits_in(stretch) {
            let kind = self.recording.waits[wait.wait].kind;
            states.add(StateKind::Blocked(kind), self.own_of_wait(stretch.node, &wait).or_zero());
        }
    }

    /// The states of a node from its start to its end.
    pub(crate) fn of_node(&self, node: NodeId) -> States {
        let (from, to) = (self.schedule.start[node], self.schedule.end[node]);
        self.states(std::iter::once(Stretch { node, from, to }))
    }
}

/// Waits in a time, by start, cut where they overlap.
pub(crate) fn one_at_a_time<'a>(waits: impl Iterator<Item = &'a NodeWait>, time: (Nanos, Nanos)) -> impl Iterator<Item = NodeWait> {
    let mut until = time.0;
    waits.filter_map(move |wait| {
        let mut part = *wait;
        (part.from, part.to) = (wait.from.max(until), wait.to.min(time.1));
        until = until.max(part.to);
        (part.from < part.to).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use longpole_model::{Id, text};

    fn millis(states: States) -> [i64; 3] {
        [StateKind::OnCpu, StateKind::InChild, StateKind::Unaccounted].map(|state| states.of(state).0 / 1_000_000)
    }

    fn node(report: &Report, name: &str) -> NodeId {
        report.forest().ids().find(|&i| report.name(i) == name).unwrap()
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
        assert_eq!(millis(report.node_states(NodeId::RUN.next())), [40, 0, 60]);
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
        assert_eq!(millis(report.node_states(NodeId::RUN.next())), [20, 80, 0]);
    }

    #[test]
    fn own_time_stands_beside_the_whole() {
        let report = Report::new(text::parse("run x 0..100ms\n  a 10..90ms\n    b 20..50ms\n    c 40..60ms\n").unwrap());
        let own: Vec<i64> = report.forest().ids().map(|n| report.own_time(n).0 / 1_000_000).collect();
        assert_eq!(own, [20, 40, 30, 20]);
    }
}
