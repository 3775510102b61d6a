//! What threads did in pieces, each with the stack that tells of it: between two samples, and in each wait.

use std::cell::Cell;
use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, Nanos, NodeId, Pid, SampleId, StackId, ThreadKey, WaitId, WaitKind};

use crate::report::Report;
use crate::running::Running;
use crate::schedule::own_work::TimeSet;
use crate::time::short_waits::{self, beside, nearest_short};
use crate::time::thread_graph::{LineId, ThreadGraph};
use crate::time::timelines::RowId;

/// Pairs of a wait in a process and a thread that is there then, or another wait, which are compared. Past that, waits stand for themselves.
const COMPARED_MAX: usize = 1_000_000;

/// A piece of what a thread did.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadPiece {
    pub(super) node: NodeId,
    pub(super) line: LineId,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) told: Told,
    /// Whether the thread mattered then.
    pub(super) on_path: bool,
}

/// What a piece of time is before its function is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    Computes,
    Waits(WaitKind),
    Unknown,
}

/// What a piece does, and the stack that tells of it.
pub(super) type Told = (Doing, Option<StackId>);

impl Report {
    /// The samples of a thread, by time.
    pub fn samples_of_thread(&self, thread: ThreadKey) -> &[SampleId] {
        let by_thread = self.samples_of_threads.get_or_init(|| {
            let mut by_thread: HashMap<ThreadKey, Vec<SampleId>> = HashMap::new();
            for sample in self.all_samples() {
                by_thread.entry(self.recording.samples[sample].thread()).or_default().push(sample);
            }
            by_thread.values_mut().for_each(|samples| samples.sort_by_key(|&sample| self.sample_offsets[sample]));
            by_thread
        });
        by_thread.get(&thread).map_or(&[][..], |samples| samples)
    }

    /// Cuts a time in which a node computes half way between its samples, and hands each piece the stack of its own.
    pub(super) fn by_nearest_sample(
        &self,
        samples: &[SampleId],
        (from, to): (Nanos, Nanos),
        mut piece: impl FnMut(Nanos, Nanos, Option<StackId>),
    ) {
        let at = |sample: SampleId| self.sample_offsets[sample];
        let stack = |sample: SampleId| Some(self.recording.samples[sample].stack);
        let first = samples.partition_point(|&sample| at(sample) < from);
        let end = samples.partition_point(|&sample| at(sample) < to);
        let Some((&last, others)) = samples[first..end].split_last() else {
            let nearest = beside(samples, first).min_by_key(|&&sample| (at(sample) - from).magnitude().min((at(sample) - to).magnitude()));
            return piece(from, to, nearest.copied().and_then(stack));
        };
        let mut since = from;
        for (i, &sample) in others.iter().enumerate() {
            let next = at(samples[first + i + 1]);
            let until = at(sample) + (next - at(sample)) / 2;
            piece(since, until, stack(sample));
            since = until;
        }
        piece(since, to, stack(last));
    }

    /// What the threads of these nodes did all the time.
    pub(super) fn thread_pieces(&self, graph: &ThreadGraph, nodes: &[NodeId]) -> Vec<ThreadPiece> {
        let mut on_path: FastMap<LineId, Vec<(Nanos, Nanos)>> = FastMap::default();
        for stretch in graph.path() {
            on_path.entry(stretch.line).or_default().push((stretch.from, stretch.to));
        }
        let mut pieces = Vec::new();
        let mut others: FastMap<Pid, Others> = FastMap::default();
        for line in graph.lines_of(nodes) {
            let node = graph.node_of(line);
            let own = TimeSet::new(on_path.remove(&line).unwrap_or_default());
            let (from, to) = graph.life_of(line);
            let pid = graph.thread(line).0.pid;
            let others = others.entry(pid).or_insert_with(|| Others::of(graph, pid));
            let thread = self.one_thread(graph, line, others);
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

    fn one_thread<'a>(&'a self, graph: &'a ThreadGraph, line: LineId, others: &'a Others) -> OneThread<'a> {
        let (thread, row) = graph.thread(line);
        let waits = self.timelines.waits_of(row, (Nanos::MIN, Nanos::MAX));
        let short = short_waits::telling(&self.recording, waits, |(wait, ..)| *wait);
        OneThread { report: self, graph, line, row, samples: self.samples_of_thread(thread), short, others }
    }
}

/// The threads of a process, by when they were there.
struct Others {
    lives: Running,
    /// How much of [`COMPARED_MAX`] is left.
    left: Cell<usize>,
}

impl Others {
    fn of(graph: &ThreadGraph, pid: Pid) -> Others {
        let life = |line: LineId| {
            let (from, to) = graph.life_of(line);
            Some((from.0, to.0, u32::try_from(line.place()).ok()?))
        };
        Others { lives: Running::new(graph.threads_of(pid).filter_map(life)), left: Cell::new(COMPARED_MAX) }
    }

    /// The threads that were there in a time, as long as they may be compared.
    fn within(&self, (from, to): (Nanos, Nanos)) -> Vec<LineId> {
        if self.left.get() == 0 {
            return Vec::new();
        }
        let lines = self.lives.within(from.0, to.0);
        self.spend(lines.len());
        lines.into_iter().map(|place| LineId::at(place as usize)).collect()
    }

    fn spend(&self, count: usize) {
        self.left.set(self.left.get().saturating_sub(count));
    }
}

/// A thread whose pieces are made.
struct OneThread<'a> {
    report: &'a Report,
    graph: &'a ThreadGraph,
    line: LineId,
    row: RowId,
    samples: &'a [SampleId],
    /// Its sampled short waits, if they are enough to tell of the others.
    short: Vec<(WaitId, Nanos, Nanos)>,
    others: &'a Others,
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
        let is_open = from < to && self.graph.is_open(self.line, (from, to));
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
            self.each_not_sampled((at, from), piece);
            piece(from, to, self.told(wait));
            at = to;
        }
        self.each_not_sampled((at, to), piece);
    }

    /// A time without a sampled wait. Before the thread started and after it ended it waited for nothing, so no wait of its tells of that.
    fn each_not_sampled(&self, (from, to): (Nanos, Nanos), piece: &mut impl FnMut(Nanos, Nanos, Told)) {
        let (start, end) = self.report.timelines.life_of(self.row);
        let (start, end) = (start.clamp(from, to), end.clamp(from, to));
        piece(from, start, (Doing::Unknown, None));
        piece(start, end, self.not_sampled(start));
        piece(end, to, (Doing::Unknown, None));
    }

    fn told(&self, wait: WaitId) -> Told {
        let wait = &self.report.recording.waits[wait];
        // What a child does is its own.
        if wait.kind == WaitKind::Child { (Doing::Unknown, None) } else { (Doing::Waits(wait.kind), wait.stack) }
    }

    /// What a wait at this time was for that was not sampled.
    fn not_sampled(&self, at: Nanos) -> Told {
        let nearest = nearest_short(&self.short, at, |&(_, from, to)| (from, to));
        nearest.map_or((Doing::Unknown, None), |(wait, ..)| self.told(*wait))
    }

    /// What other threads of the process do in this time, by start: they compute, and where this one waits for work, they wait for something else.
    fn what_others_do(&self, time: (Nanos, Nanos)) -> Vec<(Nanos, Nanos, Told)> {
        let report = self.report;
        let kind = |wait: WaitId| report.recording.waits[wait].kind;
        let is_idle = report.timelines.waits_of(self.row, time).any(|(wait, ..)| kind(wait) == WaitKind::Idle);
        let mut out = Vec::new();
        for other in self.others.within(time).into_iter().filter(|other| *other != self.line) {
            let (thread, row) = self.graph.thread(other);
            for busy in report.timelines.computes(row, time) {
                let samples = report.samples_of_thread(thread);
                report.by_nearest_sample(samples, busy, |from, to, stack| out.push((from, to, (Doing::Computes, stack))));
            }
        }
        if is_idle {
            let waits = report.waits.of_node_within(self.graph.node_of(self.line), time).take(self.others.left.get());
            let waits = waits.inspect(|_| self.others.spend(1)).filter(|it| kind(it.wait) != WaitKind::Idle);
            out.extend(waits.map(|it| (it.from.max(time.0), it.to.min(time.1), self.told(it.wait))));
        }
        out.sort_by_key(|(from, to, _)| (*from, *to));
        out
    }
}
