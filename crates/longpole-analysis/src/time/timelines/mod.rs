//! What threads did × whose they were → what each span did, to the nanosecond, without a sample.
//!
//! ```text
//! switch records   thread 8   |==on CPU==|·blocked·|==|:had to leave:|==|
//! journal          thread 8   |  handle     | load        | handle      |
//!                              ───────────────────────────────────────────
//! handle                       on-CPU   blocked  in child   runnable, on-CPU
//! ```
//!
//! A thread's journal says which span it works for ([`CurrentSpan`](longpole_model::CurrentSpan)). Without a journal, the thread of a
//! process with one thread works for the span that is open there and has no open child there, or else for the process itself. If several
//! spans are candidates, the thread counts for none, and samples give an estimate ([`crate::time::states`]). In a process with several
//! threads and no span, all threads work for the process: the times at which one of them is on a CPU, or could be, are exact, and a rule
//! ([`crate::link::process_idle`]) gives what the process waits for at other times.
//!
//! What a node does at a moment is the first of these that is true:
//!
//! 1. *on-CPU*: one of its threads is on a CPU, also while an interrupt is dealt with there, or, in a virtual machine, the host takes
//!    the CPU away: its own clock (`CLOCK_THREAD_CPUTIME_ID`) may stand still then;
//! 2. *runnable*: one of its threads had to leave its CPU and is not back, or is new and has not run;
//! 3. *in child*: a child of its is open, in any process: a thread of its that is blocked then, is so until the child is over;
//! 4. *blocked*: one of its threads is; the kind is known of waits that the recorder sampled. It is blocked until it is on a CPU again: that
//!    it could have run for the last part of that time the records do not say;
//! 5. *remote*: it calls (kind `client` or `producer`), and no thread here works for it: the network or another host does;
//! 6. *awaiting*: no thread works for it: an asynchronous span between two polls;
//! 7. *unaccounted*: records of the journal or of switches are missing, or there are none yet.
//!
//! A span is awaiting, or remote, only as far as the journals of its process are whole: where records of one were overwritten the
//! span may have been current on that thread.
//!
//! Rows are sorted by thread and by span, once; a node is answered by walking what lies in its own stretches.

mod pieces;
mod read;
mod sweep;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, LossKind, Monotonic, Nanos, NodeId, Recording, StateKind, ThreadKey, WaitId, WaitKind, ids};

use self::pieces::gives_way_to_children;
pub(crate) use self::pieces::{Piece, flatten};
use crate::interval_index::{IntervalIndex, Timed};
use crate::intervals;
use crate::lists::Lists;
use crate::running::Running;
use crate::schedule::recorded::{self, Cover};
use crate::tree::forest::Forest;

ids! {
    /// A thread, by its row.
    pub(crate) struct RowId;
    /// A process of several threads without spans, by its place among those.
    pub(crate) struct PlainId;
}

/// A thread that ends still runs for a little after its journal did. One that runs for longer than this after it has lost it.
const JOURNAL_TAIL_NANOS: Nanos = Nanos(10_000_000);

/// Threads of a process that count at one moment, among which the one of a sample is searched for. With more of them all samples count: a
/// search among all of them for each sample takes minutes.
const AT_ONCE_MAX: usize = 4096;

/// A time on a CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// It had to leave its CPU.
    pub(crate) preempted: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadWait {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) kind: WaitKind,
    pub(crate) wait: WaitId,
}

/// One thread: its slices, its waits, its life.
#[derive(Debug)]
struct ThreadRow {
    thread: ThreadKey,
    /// Its places in `slices`, at least one.
    slices: std::ops::Range<usize>,
    /// Its places in `waits`.
    waits: std::ops::Range<usize>,
    /// It began while it was watched, so it could run from here on; else unknown.
    born: Option<Nanos>,
    /// Its end, or that of the recording.
    until: Nanos,
}

/// A [`ThreadRow`] with its slices and waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadLine<'a> {
    pub(crate) row: RowId,
    pub(crate) thread: ThreadKey,
    /// By time, at least one.
    pub(crate) slices: &'a [Slice],
    /// By time.
    pub(crate) waits: &'a [ThreadWait],
    /// Its start, if the recorder saw it.
    pub(crate) born: Option<Nanos>,
    /// Its end, or that of the recording.
    pub(crate) until: Nanos,
}

/// A process of several threads without spans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainProcess {
    pub(crate) id: PlainId,
    pub(crate) node: NodeId,
    pub(crate) pid: u32,
    pub(crate) life: (Nanos, Nanos),
    /// When it has the pid: from its start until the next one of the pid starts. The first one has it before, and the last one after that.
    turn: (Nanos, Nanos),
    /// It is no fork that its parent's node stands for.
    pub(crate) is_node: bool,
}

/// A stretch in which a thread worked for a node.
#[derive(Debug, Clone, Copy)]
struct SpanOnThread {
    row: RowId,
    from: Nanos,
    to: Nanos,
}

impl Timed for SpanOnThread {
    type Time = Nanos;

    fn start(&self) -> Nanos {
        self.from
    }

    fn end(&self) -> Nanos {
        self.to
    }
}

/// Records of a thread's journal that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct JournalGap {
    pid: u32,
    from: Nanos,
    to: Nanos,
}

/// How it is known which threads worked for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is not.
    Nothing,
    /// Its process has one thread.
    OneThread,
    /// It is a process of several threads without spans: they tell when it is on a CPU or could be, and no more.
    AllThreads,
    /// The journals of its threads.
    Journal,
}

/// All threads whose switches were recorded, and the nodes that they worked for.
#[derive(Debug)]
pub(crate) struct Timelines {
    /// By process and thread.
    rows: IdVec<RowId, ThreadRow>,
    slices: Vec<Slice>,
    waits: Vec<ThreadWait>,
    sources: IdVec<NodeId, Source>,
    /// The stretches of each node, by start.
    held: IntervalIndex<NodeId, SpanOnThread>,
    plain: IdVec<PlainId, PlainProcess>,
    /// The threads of each.
    plain_threads: Lists<PlainId, RowId>,
    /// The one whose threads are those of a node.
    plain_of_node: FastMap<NodeId, PlainId>,
    gaps: Vec<JournalGap>,
    /// When each process ran, by pid, filled in when somebody asks.
    running: Mutex<HashMap<u32, Arc<Running>>>,
    /// No switch record was lost on its way to the recorder.
    switches_whole: bool,
    /// Every journal that was found could be read.
    journals_whole: bool,
}

/// What a node did in a stretch of it.
#[derive(Debug, Default)]
pub(crate) struct OwnPieces {
    /// By time, one at a moment; where there is none, a child was open.
    pub(crate) pieces: Vec<Piece>,
    /// On CPUs, of all threads together; 0 for a process with all its threads, see [`Timelines::cpu_of_threads`].
    pub(crate) cpu: Nanos,
    /// Records of a journal are missing that may have been about it.
    pub(crate) has_gap: bool,
}

impl Timelines {
    pub(crate) fn new(recording: &Recording, forest: &Forest) -> Timelines {
        let lost = |kind: LossKind| recording.losses.iter().any(|loss| loss.kind == kind && loss.count > 0);
        let mut timelines = Timelines {
            rows: IdVec::default(),
            slices: Vec::new(),
            waits: Vec::new(),
            sources: IdVec::default(),
            held: IntervalIndex::default(),
            plain: IdVec::default(),
            plain_threads: Lists::default(),
            plain_of_node: FastMap::default(),
            gaps: Vec::new(),
            running: Mutex::default(),
            switches_whole: !lost(LossKind::SamplesLost),
            journals_whole: !lost(LossKind::JournalsRefused),
        };
        if recording.cpu_slices.is_empty() || recording.clock.anchors().is_empty() {
            return timelines;
        }
        let origin = forest.run_range().start;
        let offset = |at: Monotonic| recording.clock.to_unix(at).map_or(Nanos::ZERO, |at| recorded::offset(at, origin));
        timelines.sources = IdVec::filled(Source::Nothing, forest.len());
        timelines.add_threads(recording, &offset);
        let mut held = Vec::new();
        let journaled = timelines.add_journals(recording, forest, lost(LossKind::JournalGaps), &offset, &mut held);
        timelines.infer(recording, forest, &journaled, &offset, &mut held);
        timelines.place_plain_threads();
        held.sort_unstable_by_key(|(node, held)| (*node, held.from, held.row));
        timelines.held = IntervalIndex::new(forest.len(), &held);
        timelines
    }

    /// The processes of several threads without spans.
    pub(crate) fn plain_processes(&self) -> &[PlainProcess] {
        self.plain.as_slice()
    }

    /// How often threads were on a CPU.
    pub(crate) fn slice_count(&self) -> usize {
        self.slices.len()
    }

    /// Sets when which threads worked for such processes: node, thread, from and to.
    pub(crate) fn hold(&mut self, stretches: impl Iterator<Item = (NodeId, RowId, Nanos, Nanos)>) {
        let plain: HashSet<NodeId> = self.plain.iter().map(|process| process.node).collect();
        let mut held: Vec<(NodeId, SpanOnThread)> = stretches.map(|(node, row, from, to)| (node, SpanOnThread { row, from, to })).collect();
        for (node, stretch) in self.held.iter() {
            if plain.contains(&node) {
                // A fork of it with one thread.
                let computes = self.computes(stretch.row, (stretch.from, stretch.to)).into_iter();
                held.extend(computes.map(|(from, to)| (node, SpanOnThread { from, to, ..*stretch })));
            } else {
                held.push((node, *stretch));
            }
        }
        held.sort_unstable_by_key(|(node, held)| (*node, held.from, held.row));
        self.held = IntervalIndex::new(self.held.len(), &held);
    }

    /// The threads of a process, by number; where several had its pid, with what each did in its turn.
    pub(crate) fn threads_of(&self, process: &PlainProcess) -> impl Iterator<Item = ThreadLine<'_>> {
        let PlainProcess { id, turn, life, .. } = *process;
        self.plain_threads.get(id).iter().map(move |&row| {
            let line = self.line(row, &self.rows[row]);
            let is_later = line.slices.last().is_some_and(|last| last.from >= turn.1);
            let slices =
                &line.slices[line.slices.partition_point(|it| it.from < turn.0)..line.slices.partition_point(|it| it.from < turn.1)];
            let waits = &line.waits[line.waits.partition_point(|it| it.from < turn.0)..line.waits.partition_point(|it| it.from < turn.1)];
            let until = if is_later { line.until.min(life.1) } else { line.until };
            ThreadLine { slices, waits, born: line.born.filter(|born| turn.0 <= *born && *born < turn.1), until, ..line }
        })
    }

    /// All threads, by process and number.
    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadLine<'_>> {
        self.rows.enumerated().map(|(row, it)| self.line(row, it))
    }

    fn line(&self, row: RowId, it: &ThreadRow) -> ThreadLine<'_> {
        let (slices, waits) = (&self.slices[it.slices.clone()], &self.waits[it.waits.clone()]);
        ThreadLine { row, thread: it.thread, slices, waits, born: it.born, until: it.until }
    }

    /// The sampled waits of a thread in this time, cut there.
    pub(crate) fn waits_of(&self, row: RowId, (from, to): (Nanos, Nanos)) -> impl Iterator<Item = (WaitId, Nanos, Nanos)> {
        let waits = &self.waits[self.rows[row].waits.clone()];
        let first = waits.partition_point(|wait| wait.to <= from);
        let within = waits[first..].iter().take_while(move |wait| wait.from < to);
        within.map(move |wait| (wait.wait, wait.from.max(from), wait.to.min(to)))
    }

    /// From the start of a thread to its end. One whose start the recorder did not see lived before.
    pub(crate) fn life_of(&self, row: RowId) -> (Nanos, Nanos) {
        let row = &self.rows[row];
        (row.born.unwrap_or(Nanos::MIN), row.until)
    }

    /// The row of a thread.
    fn row(&self, thread: ThreadKey) -> Option<RowId> {
        self.rows.as_slice().binary_search_by_key(&thread, |row| row.thread).ok().map(RowId::at)
    }

    /// The rows of a process, by thread.
    fn rows_of(&self, pid: u32) -> impl Iterator<Item = (RowId, &ThreadRow)> {
        let first = self.rows.partition_point(|row| row.thread.pid.0 < pid);
        let count = self.rows.as_slice()[first..].partition_point(|row| row.thread.pid.0 == pid);
        RowId::at(first).until(RowId::at(first + count)).map(|row| (row, &self.rows[row]))
    }

    /// The threads of a process that were on a CPU in this time, by number; `None` where records of it are missing.
    pub(crate) fn on_cpu_in(&self, pid: u32, from: Nanos, to: Nanos) -> Option<Vec<u32>> {
        self.running(pid).map(|running| running.within(from.0, to.0))
    }

    /// Some of them: all if there are fewer than `most`.
    pub(crate) fn few_on_cpu_in(&self, pid: u32, from: Nanos, to: Nanos, most: usize) -> Option<Vec<u32>> {
        self.running(pid).map(|running| running.few_within(from.0, to.0, most))
    }

    fn running(&self, pid: u32) -> Option<Arc<Running>> {
        if !self.switches_whole {
            return None;
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let slices_of = |(_, row): (RowId, &ThreadRow)| {
            let tid = row.thread.tid.0;
            self.slices[row.slices.clone()].iter().map(move |slice| (slice.from.0, slice.to.0, tid))
        };
        Some(Arc::clone(running.entry(pid).or_insert_with(|| Arc::new(Running::new(self.rows_of(pid).flat_map(slices_of))))))
    }

    /// Whether this thread was among them: its slices stand in order and do not overlap.
    pub(crate) fn was_on_cpu_in(&self, thread: ThreadKey, from: Nanos, to: Nanos) -> bool {
        let Some(row) = self.row(thread) else { return false };
        let slices = &self.slices[self.rows[row].slices.clone()];
        slices.get(slices.partition_point(|slice| slice.to <= from)).is_some_and(|slice| slice.from < to)
    }

    /// Whether a thread got a CPU at this moment.
    pub(crate) fn is_switched_in(&self, thread: ThreadKey, at: Nanos) -> bool {
        let slices = self.row(thread).map(|row| &self.slices[self.rows[row].slices.clone()]);
        slices.is_some_and(|slices| slices.binary_search_by_key(&at, |slice| slice.from).is_ok())
    }

    /// Whether no switch record is missing.
    pub(crate) fn has_all_switches(&self) -> bool {
        self.switches_whole && !self.rows.is_empty()
    }

    /// Whether all records of that kind are there.
    pub(crate) fn is_whole(&self, source: Source) -> bool {
        self.switches_whole && (self.journals_whole || source != Source::Journal)
    }

    /// How it is known what the node did.
    pub(crate) fn source(&self, node: NodeId) -> Source {
        self.sources.get(node).copied().unwrap_or(Source::Nothing)
    }

    /// How many stretches of threads there are in all.
    #[cfg(test)]
    pub(crate) fn held_count(&self) -> usize {
        self.held.iter().count()
    }

    fn on_threads(&self, node: NodeId) -> &[SpanOnThread] {
        self.held.get(node)
    }

    /// What a node with a known source did between two moments of it. `calls` says whether it is a client's or a producer's.
    pub(crate) fn own_pieces(&self, node: NodeId, (from, to): (Nanos, Nanos), cover: &Cover, calls: bool) -> OwnPieces {
        let mut pieces = Vec::new();
        for held in self.held.within(node, (from, to)) {
            self.thread_pieces(&self.rows[held.row], held.from.max(from), held.to.min(to), &mut pieces);
        }
        let mut cpu = pieces.iter().filter(|piece| piece.state == StateKind::OnCpu).map(Piece::length).sum();
        if self.source(node) == Source::AllThreads {
            // Threads that do not count at the moment compute as well: `cpu_of_threads` has it all.
            cpu = Nanos::ZERO;
        }
        let threads = flatten(pieces);
        let mut own = OwnPieces { pieces: Vec::with_capacity(threads.len() + 1), cpu, has_gap: false };
        let pid = self.on_threads(node).first().map(|held| self.rows[held.row].thread.pid.0);
        let rest = match self.source(node) {
            Source::Journal if calls => StateKind::Remote,
            Source::Journal => StateKind::Awaiting,
            Source::OneThread | Source::AllThreads | Source::Nothing => StateKind::Unaccounted,
        };
        let mut at = from;
        for piece in threads {
            self.without_thread(node, (at, piece.from), cover, pid, rest, &mut own);
            if gives_way_to_children(piece.state) {
                own.pieces.extend(cover.gaps(node, piece.from, piece.to).map(|(from, to)| Piece { from, to, ..piece }));
            } else {
                own.pieces.push(piece);
            }
            at = piece.to;
        }
        self.without_thread(node, (at, to), cover, pid, rest, &mut own);
        own.has_gap = pid.is_some_and(|pid| self.gaps_in(pid, from, to).next().is_some());
        own
    }

    /// CPU time of all threads of a node that has them all, in these stretches of it, which stand by time and do not overlap.
    pub(crate) fn cpu_of_threads(&self, node: NodeId, stretches: &[(Nanos, Nanos)]) -> Nanos {
        let (Some(&process), Some(&(from, _)), Some(&(.., to))) = (self.plain_of_node.get(&node), stretches.first(), stretches.last())
        else {
            return Nanos::ZERO;
        };
        let of_slice = |slice: &Slice| {
            let first = stretches.partition_point(|stretch| stretch.1 <= slice.from);
            let meanwhile = stretches[first..].iter().take_while(|stretch| stretch.0 < slice.to);
            meanwhile.map(|&(from, to)| slice.to.min(to) - slice.from.max(from)).sum::<Nanos>()
        };
        let of_row = |&row: &RowId| {
            let slices = &self.slices[self.rows[row].slices.clone()];
            let first = slices.partition_point(|slice| slice.to <= from);
            slices[first..].iter().take_while(|slice| slice.from < to).map(of_slice).sum::<Nanos>()
        };
        self.plain_threads.get(process).iter().map(of_row).sum()
    }

    /// Whether what this thread did at a moment counts for a node: in a process of several threads not all that they do decides when it ends.
    pub(crate) fn counts(&self, node: NodeId, thread: ThreadKey, at: Nanos) -> bool {
        if self.source(node) != Source::AllThreads {
            return true;
        }
        let Some(row) = self.row(thread) else { return true };
        let mut meanwhile = self.held.at(node, at);
        meanwhile.by_ref().take(AT_ONCE_MAX).any(|held| held.row == row) || meanwhile.next().is_some()
    }

    /// When a thread was on a CPU, or wanted one and did not have it, between two moments; those that touch are one.
    pub(crate) fn computes(&self, row: RowId, (from, to): (Nanos, Nanos)) -> Vec<(Nanos, Nanos)> {
        let row = &self.rows[row];
        let slices = &self.slices[row.slices.clone()];
        let first = slices.partition_point(|slice| slice.to <= from).saturating_sub(1);
        let within = slices.iter().enumerate().skip(first).take_while(|(_, slice)| slice.from < to);
        // A new thread wants a CPU.
        let new = row.born.map(|born| (born, slices.first().map_or(to, |slice| slice.from)));
        let computes = within.map(|(place, slice)| {
            let next = slices.get(place + 1).filter(|_| slice.preempted).map_or(slice.to, |next| next.from);
            (slice.from, next)
        });
        intervals::union(new.into_iter().chain(computes).filter_map(|busy| intervals::clip(busy, (from, to))).collect())
    }

    /// What a node did while no thread worked for it.
    fn without_thread(
        &self,
        node: NodeId,
        (from, to): (Nanos, Nanos),
        cover: &Cover,
        pid: Option<u32>,
        rest: StateKind,
        own: &mut OwnPieces,
    ) {
        for (mut at, end) in cover.gaps(node, from, to) {
            if let Some(pid) = pid.filter(|_| !self.gaps.is_empty()) {
                for gap in self.gaps_in(pid, at, end) {
                    let (from, to) = (gap.from.max(at), gap.to.min(end));
                    if at < from {
                        own.pieces.push(Piece { from: at, to: from, state: rest });
                    }
                    if from < to {
                        own.pieces.push(Piece { from, to, state: StateKind::Unaccounted });
                    }
                    at = at.max(to);
                }
            }
            if at < end {
                own.pieces.push(Piece { from: at, to: end, state: rest });
            }
        }
    }

    /// Gaps in the journals of a process that touch this time, by start. They do not overlap.
    fn gaps_in(&self, pid: u32, from: Nanos, to: Nanos) -> impl Iterator<Item = &JournalGap> {
        let first = self.gaps.partition_point(|gap| (gap.pid, gap.to) <= (pid, from));
        self.gaps[first..].iter().take_while(move |gap| gap.pid == pid && gap.from < to)
    }

    /// What a thread did between two moments.
    fn thread_pieces(&self, row: &ThreadRow, from: Nanos, to: Nanos, out: &mut Vec<Piece>) {
        let slices = &self.slices[row.slices.clone()];
        let mut next = slices.partition_point(|slice| slice.to <= from);
        let mut at = from;
        let mut push = |from: Nanos, to: Nanos, state: StateKind| {
            if from < to {
                out.push(Piece { from, to, state });
            }
        };
        while at < to {
            let slice = slices.get(next);
            let until = slice.map_or(to, |slice| slice.from.clamp(at, to));
            match next.checked_sub(1).map(|before| slices[before]) {
                None => {
                    let born = row.born.unwrap_or(until).clamp(at, until);
                    push(at, born, StateKind::Unaccounted);
                    push(born, until, StateKind::Runnable);
                }
                Some(before) if before.preempted => {
                    // The last one of all ended because the recording did.
                    push(at, until, if slice.is_some() { StateKind::Runnable } else { StateKind::Unaccounted });
                }
                Some(_) => {
                    let end = if slice.is_some() { until } else { row.until.clamp(at, until) };
                    self.blocked(row, at, end, &mut push);
                    push(end, until, StateKind::Unaccounted);
                }
            }
            at = until;
            let Some(slice) = slice else { return };
            let end = slice.to.min(to);
            push(at, end, StateKind::OnCpu);
            at = at.max(end);
            next += 1;
        }
    }

    /// What a thread did between two moments; nothing where its switches were not recorded.
    pub(crate) fn pieces_of_thread(&self, thread: ThreadKey, (from, to): (Nanos, Nanos)) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        self.thread_pieces(&self.rows[self.row(thread)?], from, to, &mut pieces);
        Some(pieces)
    }

    /// What a blocked thread waited for.
    fn blocked(&self, row: &ThreadRow, from: Nanos, to: Nanos, push: &mut impl FnMut(Nanos, Nanos, StateKind)) {
        let waits = &self.waits[row.waits.clone()];
        let first = waits.partition_point(|wait| wait.to <= from);
        let mut at = from;
        for wait in waits[first..].iter().take_while(|wait| wait.from < to) {
            let (start, end) = (wait.from.max(at), wait.to.min(to));
            push(at, start, StateKind::BlockedUnseen);
            push(start, end, StateKind::Blocked(wait.kind));
            at = end;
        }
        push(at, to, StateKind::BlockedUnseen);
    }
}

#[cfg(test)]
mod tests;
