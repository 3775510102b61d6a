//! The parts of poles in a run whose threads are known, all of them ([`ThreadGraph::of_run`]): what each thread does is a part, on the path and
//! beside it.

use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, Nanos, NodeId, SampleId, ThreadKey, WaitId, WaitKind};

use crate::report::Report;
use crate::report::code_poles::{Doing, Kept, LEAST_PART, Told, beside};
use crate::report::reason::SHORT_WAITS_MIN;
use crate::schedule::own_work::{OwnWork, TimeSet};
use crate::schedule::poles::{PartKind, Pole, PolePart};
use crate::time::blockers::PROBE_NANOS;
use crate::time::thread_graph::{LineId, ThreadGraph};
use crate::time::timelines::RowId;

/// Waits of a thread times threads of its process that are compared.
const COMPARED_MAX: usize = 1_000_000;

/// A piece of what a thread did.
#[derive(Debug, Clone, Copy)]
struct ThreadPiece {
    node: NodeId,
    line: LineId,
    from: Nanos,
    to: Nanos,
    told: Told,
    on_path: bool,
}

impl Report {
    /// The parts of a pole on the path, all of it; none where it stays whole.
    pub(super) fn parts_of_threads(&self, graph: &ThreadGraph, pole: &Pole) -> Vec<PolePart> {
        let least = self.wall() / LEAST_PART;
        if pole.on_path < least {
            return Vec::new();
        }
        let pieces = self.thread_pieces(graph, &pole.nodes);
        let mut of_stack: FastMap<Told, Nanos> = FastMap::default();
        for piece in &pieces {
            *of_stack.entry(piece.told).or_default() += if piece.on_path { piece.to - piece.from } else { Nanos::ZERO };
        }
        let kinds = self.kinds(&of_stack, least);
        let mut sums: HashMap<PartKind, Nanos> = HashMap::new();
        for (told, nanos) in &of_stack {
            *sums.entry(kinds[told]).or_default() += *nanos;
        }
        let Some(Kept { kinds: kept, is_whole }) = self.keep(pole, sums, least, false) else { return Vec::new() };
        let rest = if is_whole { PartKind::Busy } else { PartKind::Rest };
        let mut parts: HashMap<PartKind, PolePart> = HashMap::new();
        for piece in pieces {
            let kind = Some(kinds[&piece.told]).filter(|kind| kept.contains_key(kind)).unwrap_or(rest);
            let part = parts.entry(kind).or_insert_with(|| PolePart {
                kind,
                work: OwnWork::default(),
                of_threads: Vec::new(),
                on_path: Vec::new(),
            });
            part.of_threads.push((piece.node, piece.line.place(), piece.from, piece.to));
            if piece.on_path {
                part.on_path.push((piece.node, piece.from, piece.to));
            }
        }
        let mut parts: Vec<PolePart> = parts.into_values().filter(|part| !part.on_path.is_empty()).collect();
        parts.iter_mut().for_each(|part| part.on_path.sort_unstable_by_key(|(_, from, _)| *from));
        parts.sort_by_key(|part| part.on_path.first().map(|(_, from, _)| *from));
        parts
    }

    /// What the threads of these nodes did all the time.
    fn thread_pieces(&self, graph: &ThreadGraph, nodes: &[NodeId]) -> Vec<ThreadPiece> {
        let mut on_path: FastMap<LineId, Vec<(Nanos, Nanos)>> = FastMap::default();
        for stretch in graph.path() {
            on_path.entry(stretch.line).or_default().push((stretch.from, stretch.to));
        }
        let mut pieces = Vec::new();
        for line in graph.lines_of(nodes) {
            let node = graph.node_of(line);
            let own = TimeSet::new(on_path.remove(&line).unwrap_or_default());
            let (from, to) = graph.life_of(line);
            let thread = self.one_thread(graph, line);
            let beside = own.gaps(from, to).map(|time| (time, false));
            for (time, on_path) in own.between(Nanos::MIN, Nanos::MAX).map(|time| (time, true)).chain(beside) {
                thread.each_piece(time, &mut |from, to, told| {
                    if from < to {
                        pieces.push(ThreadPiece { node, line, from, to, told, on_path });
                    }
                });
            }
        }
        pieces
    }

    fn one_thread<'a>(&'a self, graph: &'a ThreadGraph, line: LineId) -> OneThread<'a> {
        let (thread, row) = graph.thread(line);
        let is_short = |wait: &(WaitId, Nanos, Nanos)| self.recording.waits[wait.0].nanos() < PROBE_NANOS;
        let short: Vec<_> = self.timelines.waits_of(row, (Nanos::MIN, Nanos::MAX)).filter(is_short).collect();
        let short = if short.len() >= SHORT_WAITS_MIN { short } else { Vec::new() };
        let has_few_others = graph.threads_of(thread.pid).count().saturating_mul(graph.waits(line)) <= COMPARED_MAX;
        OneThread { report: self, graph, line, thread, row, samples: self.samples_of_thread(thread), short, has_few_others }
    }
}

/// A thread whose pieces are made.
struct OneThread<'a> {
    report: &'a Report,
    graph: &'a ThreadGraph,
    line: LineId,
    thread: ThreadKey,
    row: RowId,
    samples: &'a [SampleId],
    /// Its sampled short waits, if they are enough to tell of the others.
    short: Vec<(WaitId, Nanos, Nanos)>,
    /// Its waits can be compared with the other threads of its process.
    has_few_others: bool,
}

impl OneThread<'_> {
    /// What it did in a time, each with the stack that tells of it. While any other thread of its process may have held it up, what those do
    /// counts.
    fn each_piece(&self, (from, to): (Nanos, Nanos), piece: &mut impl FnMut(Nanos, Nanos, Told)) {
        let mut at = from;
        for busy in self.report.timelines.computes(self.row, (from, to)) {
            self.each_wait((at, busy.0), piece);
            self.report.by_nearest_sample(self.samples, busy, |from, to, stack| piece(from, to, (Doing::Computes, stack)));
            at = busy.1;
        }
        self.each_wait((at, to), piece);
    }

    fn each_wait(&self, (from, to): (Nanos, Nanos), piece: &mut impl FnMut(Nanos, Nanos, Told)) {
        let is_open = from < to && self.has_few_others && self.graph.is_open(self.line, (from, to));
        let mut at = from;
        for (from, to, told) in if is_open { self.what_others_do((from, to)) } else { Vec::new() } {
            let from = from.max(at);
            if from < to {
                self.each_own_wait((at, from), piece);
                piece(from, to, told);
                at = to;
            }
        }
        self.each_own_wait((at, to), piece);
    }

    fn each_own_wait(&self, (from, to): (Nanos, Nanos), piece: &mut impl FnMut(Nanos, Nanos, Told)) {
        let mut at = from;
        for (wait, from, to) in self.report.timelines.waits_of(self.row, (from, to)) {
            piece(at, from, self.unseen(at));
            piece(from, to, self.told(wait));
            at = to;
        }
        piece(at, to, self.unseen(at));
    }

    fn told(&self, wait: WaitId) -> Told {
        let wait = &self.report.recording.waits[wait];
        // What a child does is its own.
        if wait.kind == WaitKind::Child { (Doing::Unknown, None) } else { (Doing::Waits(wait.kind), wait.stack) }
    }

    /// Few short waits are sampled: the others are as the nearest of those.
    fn unseen(&self, at: Nanos) -> Told {
        let next = self.short.partition_point(|(_, from, _)| *from < at);
        let nearest = beside(&self.short, next).min_by_key(|(_, from, _)| (*from - at).magnitude());
        nearest.map_or((Doing::Unknown, None), |(wait, ..)| self.told(*wait))
    }

    /// What other threads of the process do in this time, by start: they compute, and where this one waits for work, they wait for something else.
    fn what_others_do(&self, time: (Nanos, Nanos)) -> Vec<(Nanos, Nanos, Told)> {
        let report = self.report;
        let kind = |wait: WaitId| report.recording.waits[wait].kind;
        let is_idle = report.timelines.waits_of(self.row, time).any(|(wait, ..)| kind(wait) == WaitKind::Idle);
        let mut out = Vec::new();
        for (_, thread, row) in self.graph.threads_of(self.thread.pid).filter(|(other, ..)| *other != self.line) {
            for busy in report.timelines.computes(row, time) {
                let samples = report.samples_of_thread(thread);
                report.by_nearest_sample(samples, busy, |from, to, stack| out.push((from, to, (Doing::Computes, stack))));
            }
        }
        if is_idle {
            let waits = report.waits.of_node_within(self.graph.node_of(self.line), time).filter(|it| kind(it.wait) != WaitKind::Idle);
            out.extend(waits.map(|it| (it.from.max(time.0), it.to.min(time.1), self.told(it.wait))));
        }
        out.sort_by_key(|(from, to, _)| (*from, *to));
        out
    }
}
