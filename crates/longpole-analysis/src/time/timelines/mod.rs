//! What threads did × whose they were → what each span did, to the nanosecond, without a sample.
//!
//! ```text
//! switch records   thread 8   |==on CPU==|·blocked·|==|:had to leave:|==|
//! journal          thread 8   |  handle     | load        | handle      |
//!                              ───────────────────────────────────────────
//! handle                       on-CPU   blocked  in child   runnable, on-CPU
//! ```
//!
//! Whose a thread is, its journal says ([`CurrentSpan`](longpole_model::CurrentSpan)). Without one it can be inferred of a process
//! with one thread: the thread works for the span that is open there and has no open child there, and where there is none for the
//! process itself. Where several could be meant nothing is said, and those spans are estimated from samples ([`crate::time::states`]). Of a
//! process of several threads without any span all are for the process: when one of them is on a CPU, or could be, is exact; what it waits
//! for while none is, [`crate::link::process_idle`] says, by a rule.
//!
//! What a node does at a moment is the first of these that is true:
//!
//! 1. *on-CPU*: a thread of its is on a CPU, also while an interrupt is dealt with there, or, in a virtual machine, the host takes
//!    the CPU away: its own clock (`CLOCK_THREAD_CPUTIME_ID`) may stand still then;
//! 2. *runnable*: a thread of its had to leave its CPU and is not back, or is new and has not run;
//! 3. *in child*: a child of its is open, in whatever process: a thread of its that is blocked then, is so until the child is over;
//! 4. *blocked*: a thread of its is; for what, of those waits that were looked at. It is blocked until it is on a CPU again: that
//!    it could have run for the last part of that time the records do not say;
//! 5. *remote*: it calls (kind `client` or `producer`), and no thread here works for it: the network or another host does;
//! 6. *awaiting*: no thread works for it: an asynchronous span between two polls;
//! 7. *unaccounted*: records of the journal or of switches are missing, or there are none yet.
//!
//! A span is awaiting, or remote, only as far as the journals of its process are whole: where records of one were overwritten the
//! span may have been current on that thread.
//!
//! Rows are sorted by thread and by span, once; a node is answered by walking what lies in its own stretches.

mod running;

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use longpole_model::{LossKind, Monotonic, Recording, SumNanos, WaitKind};

use self::running::Running;
use crate::link::wait_order::blocked_rank;
use crate::schedule::recorded::{self, Cover};
use crate::tree::forest::Forest;

/// "No node", "no thread".
const NONE: u32 = u32::MAX;

/// A thread that ends still runs for a little after its journal did. One that runs for longer than this after it has lost it.
const JOURNAL_TAIL_NANOS: i64 = 10_000_000;

/// What a node does, or one of its threads. Being in a child is none of these: then there is no piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    OnCpu,
    Runnable,
    Blocked(WaitKind),
    /// Nobody looked what for.
    BlockedUnseen,
    Remote,
    Awaiting,
    Unknown,
}

impl Doing {
    /// What is said first where several are true.
    fn rank(self) -> usize {
        let kinds = WaitKind::ALL.len();
        match self {
            Doing::OnCpu => 0,
            Doing::Runnable => 1,
            Doing::Blocked(kind) => 2 + blocked_rank(kind),
            Doing::BlockedUnseen => 2 + kinds,
            Doing::Remote => 3 + kinds,
            Doing::Awaiting => 4 + kinds,
            Doing::Unknown => 5 + kinds,
        }
    }

    /// Whether a child that is open is why.
    fn gives_way_to_children(self) -> bool {
        !matches!(self, Doing::OnCpu | Doing::Runnable)
    }
}

/// A piece of time, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) doing: Doing,
}

/// A piece that is open in [`flatten`]: the first to be said is the greatest.
#[derive(PartialEq, Eq)]
struct Open(Reverse<usize>, i64, Doing);

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pieces that may overlap → pieces that do not, by time: at each moment what is to be said first.
pub(crate) fn flatten(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_unstable_by_key(|piece| piece.from);
    if pieces.windows(2).all(|pair| pair[0].to <= pair[1].from) {
        return pieces;
    }
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut open: BinaryHeap<Open> = BinaryHeap::new();
    let mut pieces = pieces.into_iter().peekable();
    let mut at = i64::MIN;
    loop {
        while let Some(piece) = pieces.next_if(|piece| piece.from <= at) {
            open.push(Open(Reverse(piece.doing.rank()), piece.to, piece.doing));
        }
        // What has ended below the top is in nobody's way.
        while open.peek().is_some_and(|top| top.1 <= at) {
            open.pop();
        }
        let next = pieces.peek().map(|piece| piece.from);
        let Some(&Open(_, end, doing)) = open.peek() else {
            let Some(next) = next else { return out };
            at = next;
            continue;
        };
        let to = next.map_or(end, |next| end.min(next));
        match out.last_mut() {
            Some(last) if last.to == at && last.doing == doing => last.to = to,
            _ => out.push(Piece { from: at, to, doing }),
        }
        at = to;
    }
}

/// A time on a CPU.
#[derive(Debug, Clone, Copy)]
struct Slice {
    from: i64,
    to: i64,
    preempted: bool,
}

#[derive(Debug, Clone, Copy)]
struct ThreadWait {
    from: i64,
    to: i64,
    kind: WaitKind,
}

/// What is known of one thread.
#[derive(Debug)]
struct Line {
    pid: u32,
    tid: u32,
    /// Its places in `slices`, at least one.
    slices: std::ops::Range<usize>,
    /// Its places in `waits`.
    waits: std::ops::Range<usize>,
    /// It began while it was watched, so it could run from here on; else unknown.
    born: Option<i64>,
    /// Its end, or that of the recording.
    until: i64,
}

/// A stretch in which a thread worked for a node.
#[derive(Debug, Clone, Copy)]
struct Held {
    node: u32,
    line: u32,
    from: i64,
    to: i64,
    /// The latest end among the node's stretches up to this one.
    latest: i64,
}

/// Records of a thread's journal that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hole {
    pid: u32,
    from: i64,
    to: i64,
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
    lines: Vec<Line>,
    slices: Vec<Slice>,
    waits: Vec<ThreadWait>,
    sources: Vec<Source>,
    /// For each node its first place in `held`, and one more.
    base: Vec<u32>,
    /// By node, and there by start.
    held: Vec<Held>,
    holes: Vec<Hole>,
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
    /// On CPUs, of all threads together.
    pub(crate) cpu_nanos: i64,
    /// Records of a journal are missing that may have been about it.
    pub(crate) has_hole: bool,
}

fn key(pid: u32, tid: u32) -> u64 {
    u64::from(pid) << 32 | u64::from(tid)
}

/// Rows by thread, and there in their own order: `(thread, row)`.
fn by_thread(rows: impl ExactSizeIterator<Item = (u32, u32)>) -> Vec<(u64, u32)> {
    let mut order: Vec<(u64, u32)> = rows.enumerate().map(|(i, (pid, tid))| (key(pid, tid), i as u32)).collect();
    order.sort_unstable();
    order
}

impl Timelines {
    pub(crate) fn new(recording: &Recording, forest: &Forest) -> Timelines {
        let lost = |kind: LossKind| recording.losses.iter().any(|loss| loss.kind == kind && loss.count > 0);
        let mut timelines = Timelines {
            lines: Vec::new(),
            slices: Vec::new(),
            waits: Vec::new(),
            sources: Vec::new(),
            base: Vec::new(),
            held: Vec::new(),
            holes: Vec::new(),
            running: Mutex::default(),
            switches_whole: !lost(LossKind::SamplesLost),
            journals_whole: !lost(LossKind::JournalsRefused),
        };
        if recording.cpu_slices.is_empty() || recording.clock.anchors().is_empty() {
            return timelines;
        }
        let origin = forest.run_range().start;
        let offset = |at: Monotonic| recording.clock.to_unix(at).map_or(0, |at| recorded::offset(at, origin));
        timelines.sources = vec![Source::Nothing; forest.len()];
        timelines.add_threads(recording, &offset);
        let journaled = timelines.add_journals(recording, forest, lost(LossKind::JournalGaps), &offset);
        timelines.infer(recording, forest, &journaled, &offset);
        timelines.held.sort_unstable_by_key(|held| (held.node, held.from, held.line));
        timelines.base = vec![0; forest.len() + 1];
        let mut latest = i64::MIN;
        for (i, held) in timelines.held.iter_mut().enumerate() {
            let count = &mut timelines.base[held.node as usize + 1];
            latest = if *count == 0 { held.to } else { latest.max(held.to) };
            held.latest = latest;
            *count = i as u32 + 1;
        }
        for node in 0..forest.len() {
            timelines.base[node + 1] = timelines.base[node + 1].max(timelines.base[node]);
        }
        timelines
    }

    fn add_threads(&mut self, recording: &Recording, offset: &impl Fn(Monotonic) -> i64) {
        let slices = by_thread(recording.cpu_slices.iter().map(|slice| (slice.pid, slice.tid)));
        let waits = by_thread(recording.waits.iter().map(|wait| (wait.pid, wait.tid)));
        let threads = by_thread(recording.threads.iter().map(|thread| (thread.pid, thread.tid)));
        let last_seen = recording.cpu_slices.iter().map(|slice| slice.end).chain(recording.waits.iter().map(|wait| wait.end)).max();
        let last_seen = last_seen.map_or(0, offset);
        // What ran already when the recording began is found all at one moment.
        let began = recording.processes.iter().map(|process| process.start).min();
        self.slices.reserve_exact(slices.len());
        self.waits.reserve_exact(waits.len());
        for group in slices.chunk_by(|a, b| a.0 == b.0) {
            let thread = group[0].0;
            let first = self.slices.len();
            // The wall clock may have been stepped back.
            let mut at = i64::MIN;
            for &(_, i) in group {
                let slice = &recording.cpu_slices[i as usize];
                let from = offset(slice.start).max(at);
                at = offset(slice.end).max(from);
                self.slices.push(Slice { from, to: at, preempted: slice.preempted });
            }
            let first_wait = self.waits.len();
            let start = waits.partition_point(|(of, _)| *of < thread);
            let mut at = i64::MIN;
            for &(_, i) in waits[start..].iter().take_while(|(of, _)| *of == thread) {
                let wait = &recording.waits[i as usize];
                let from = offset(wait.start).max(at);
                at = offset(wait.end).max(from);
                self.waits.push(ThreadWait { from, to: at, kind: wait.kind });
            }
            let start = threads.partition_point(|(of, _)| *of < thread);
            let mut lives = threads[start..].iter().take_while(|(of, _)| *of == thread).map(|&(_, i)| &recording.threads[i as usize]);
            let life = lives.next();
            let end = lives.last().or(life).and_then(|life| life.end);
            self.lines.push(Line {
                pid: (thread >> 32) as u32,
                tid: thread as u32,
                slices: first..self.slices.len(),
                waits: first_wait..self.waits.len(),
                born: life.map(|life| life.start).filter(|born| began.is_some_and(|began| began < *born)).map(offset),
                until: end.map_or(last_seen, offset),
            });
        }
    }

    fn line(&self, thread: u64) -> Option<u32> {
        self.lines.binary_search_by_key(&thread, |line| key(line.pid, line.tid)).ok().map(|i| i as u32)
    }

    /// Gives the stretches of the journals to their nodes; the processes that keep one, by pid. Where entries were overwritten,
    /// these may have been the first of any journal.
    fn add_journals(&mut self, recording: &Recording, forest: &Forest, overwritten: bool, offset: &impl Fn(Monotonic) -> i64) -> Vec<u32> {
        let order = by_thread(recording.current_spans.iter().map(|current| (current.pid, current.tid)));
        let mut pids = Vec::new();
        let mut unseen = Vec::new();
        self.held.reserve_exact(order.len());
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let pid = (group[0].0 >> 32) as u32;
            if pids.last() != Some(&pid) {
                pids.push(pid);
            }
            let line = self.line(group[0].0);
            let first = &recording.current_spans[group[0].1 as usize];
            let mut before = first.start;
            if overwritten {
                self.holes.push(Hole { pid, from: i64::MIN, to: offset(before) });
            }
            let mut at = i64::MIN;
            let mut last = None;
            for &(_, i) in group {
                let current = &recording.current_spans[i as usize];
                let from = offset(current.start).max(at);
                if before < current.start {
                    self.holes.push(Hole { pid, from: offset(before).min(from), to: from });
                }
                before = before.max(current.end);
                at = offset(current.end).max(from);
                let Some((trace, span)) = current.span else { continue };
                // A thread often has the same span again.
                let node = match last {
                    Some((id, node)) if id == (trace, span) => node,
                    _ => forest.node_of_id(recording, trace, span),
                };
                last = Some(((trace, span), node));
                let Some(node) = node else { continue };
                self.sources[node] = Source::Journal;
                match line {
                    Some(line) => self.held.push(Held { node: node as u32, line, from, to: at, latest: at }),
                    None => unseen.push(node),
                }
            }
            let ran_until = line.and_then(|line| self.slices[self.lines[line as usize].slices.clone()].last()).map(|slice| slice.to);
            if let Some(until) = ran_until.filter(|until| until.saturating_sub(at) > JOURNAL_TAIL_NANOS) {
                self.holes.push(Hole { pid, from: at, to: until });
            }
        }
        for node in unseen {
            self.sources[node] = Source::Nothing;
        }
        self.holes.sort_unstable();
        pids
    }

    /// Gives the only thread of a process to the span that it can only have worked for.
    fn infer(&mut self, recording: &Recording, forest: &Forest, journaled: &[u32], offset: &impl Fn(Monotonic) -> i64) {
        let only = self.only_threads(recording, forest, journaled);
        let mut nodes_of: Vec<(u32, u32)> = Vec::new();
        let mut sweep = Sweep::new(forest.len());
        for node in 0..forest.len() {
            let Some(pid) = forest.span(recording, node).and_then(|span| span.pid) else { continue };
            let process = forest.process_at(pid, forest.nodes[node].range.start).filter(|&process| only[process] != NONE);
            if let Some(process) = process {
                sweep.process[node] = process as u32;
                nodes_of.push((process as u32, node as u32));
            }
        }
        nodes_of.sort_unstable();
        let origin = forest.run_range().start;
        let mut refused = Vec::new();
        let with_spans: HashSet<u32> = recording.spans.iter().filter_map(|span| span.pid).collect();
        for (process, &line) in only.iter().enumerate() {
            let own = forest.node_of_process(process);
            let about = &recording.processes[process];
            let life = (offset(about.start), about.end.map_or(i64::MAX, offset));
            if line == NONE {
                let is_plain = !with_spans.contains(&about.pid) && journaled.binary_search(&about.pid).is_err();
                match own.filter(|_| is_plain && self.lines_of(about.pid).next().is_some()) {
                    Some(own) => self.hold_all(own, about.pid, life),
                    None => refused.extend(own),
                }
                continue;
            }
            if let Some(own) = own {
                self.sources[own] = Source::OneThread;
            }
            let first = nodes_of.partition_point(|(of, _)| (*of as usize) < process);
            let nodes = nodes_of[first..].iter().take_while(|(of, _)| *of as usize == process).map(|(_, node)| *node as usize);
            let range = |node: usize| {
                let range = forest.nodes[node].range;
                (recorded::offset(range.start, origin), recorded::offset(range.end, origin))
            };
            let parent = |node: usize| forest.nodes[node].parent();
            let ambiguous = sweep.run(nodes.clone().map(|node| (node, range(node))), parent, life, |node, from, to| {
                if let Some(node) = node.or(own) {
                    self.held.push(Held { node: node as u32, line, from, to, latest: to });
                }
            });
            for node in nodes {
                self.sources[node] = Source::OneThread;
            }
            for node in ambiguous {
                self.sources[node as usize] = Source::Nothing;
            }
        }
        for node in refused {
            self.sources[node] = Source::Nothing;
        }
    }

    /// Gives all threads of a process to its own node.
    fn hold_all(&mut self, node: usize, pid: u32, (from, to): (i64, i64)) {
        let first = self.lines.partition_point(|line| line.pid < pid);
        let count = self.lines_of(pid).count();
        let held = |line| Held { node: node as u32, line: line as u32, from, to, latest: to };
        self.held.extend((first..first + count).map(held));
        self.sources[node] = Source::AllThreads;
    }

    /// For each process the line of its only thread; [`NONE`] where it has more, keeps a journal, or was not seen to switch.
    fn only_threads(&self, recording: &Recording, forest: &Forest, journaled: &[u32]) -> Vec<u32> {
        let mut threads = vec![(0u32, 0u64); recording.processes.len()];
        for thread in &recording.threads {
            let Some(at) = recording.clock.to_unix(thread.start) else { continue };
            if let Some(process) = forest.process_at(thread.pid, at) {
                threads[process] = (threads[process].0 + 1, key(thread.pid, thread.tid));
            }
        }
        let line = |(process, (count, thread)): (&longpole_model::Process, (u32, u64))| {
            let known = count == 1 && journaled.binary_search(&process.pid).is_err();
            known.then(|| self.line(thread)).flatten().unwrap_or(NONE)
        };
        recording.processes.iter().zip(threads).map(line).collect()
    }

    /// The lines of a process, by thread.
    fn lines_of(&self, pid: u32) -> impl Iterator<Item = &Line> {
        let first = self.lines.partition_point(|line| line.pid < pid);
        self.lines[first..].iter().take_while(move |line| line.pid == pid)
    }

    /// The threads of a process that were on a CPU in this time, by number; `None` where records of it are missing.
    pub(crate) fn on_cpu_in(&self, pid: u32, from: i64, to: i64) -> Option<Vec<u32>> {
        if !self.switches_whole {
            return None;
        }
        let running = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let slices_of = |line: &Line| {
                let tid = line.tid;
                self.slices[line.slices.clone()].iter().map(move |slice| (slice.from, slice.to, tid))
            };
            Arc::clone(running.entry(pid).or_insert_with(|| Arc::new(Running::new(self.lines_of(pid).flat_map(slices_of)))))
        };
        Some(running.within(from, to))
    }

    /// Whether this thread was among them: its slices stand in order and do not overlap.
    pub(crate) fn was_on_cpu_in(&self, pid: u32, tid: u32, from: i64, to: i64) -> bool {
        let Some(line) = self.line(key(pid, tid)) else { return false };
        let slices = &self.slices[self.lines[line as usize].slices.clone()];
        slices.get(slices.partition_point(|slice| slice.to <= from)).is_some_and(|slice| slice.from < to)
    }

    /// Whether a thread got a CPU at this moment.
    pub(crate) fn is_switched_in(&self, pid: u32, tid: u32, at: i64) -> bool {
        let slices = self.line(key(pid, tid)).map(|line| &self.slices[self.lines[line as usize].slices.clone()]);
        slices.is_some_and(|slices| slices.binary_search_by_key(&at, |slice| slice.from).is_ok())
    }

    /// Whether all records of that kind are there.
    pub(crate) fn is_whole(&self, source: Source) -> bool {
        self.switches_whole && (self.journals_whole || source != Source::Journal)
    }

    /// How it is known what the node did.
    pub(crate) fn source(&self, node: usize) -> Source {
        self.sources.get(node).copied().unwrap_or(Source::Nothing)
    }

    fn held_by(&self, node: usize) -> &[Held] {
        &self.held[self.base[node] as usize..self.base[node + 1] as usize]
    }

    /// What a node, of which it is known, did between two moments of it. `calls` says whether it is a client's or a producer's.
    pub(crate) fn own_pieces(&self, node: usize, (from, to): (i64, i64), cover: &Cover, calls: bool) -> OwnPieces {
        let all = self.held_by(node);
        let first = all.partition_point(|held| held.latest <= from);
        let mut pieces = Vec::new();
        for held in all[first..].iter().take_while(|held| held.from < to) {
            self.thread_pieces(&self.lines[held.line as usize], held.from.max(from), held.to.min(to), &mut pieces);
        }
        let cpu_nanos =
            pieces.iter().filter(|piece| piece.doing == Doing::OnCpu).map(|piece| piece.to.saturating_sub(piece.from)).sum_nanos();
        if self.source(node) == Source::AllThreads {
            pieces.retain(|piece| matches!(piece.doing, Doing::OnCpu | Doing::Runnable));
        }
        let threads = flatten(pieces);
        let mut own = OwnPieces { pieces: Vec::with_capacity(threads.len() + 1), cpu_nanos, has_hole: false };
        let pid = all.first().map(|held| self.lines[held.line as usize].pid);
        let rest = match self.source(node) {
            Source::Journal if calls => Doing::Remote,
            Source::Journal => Doing::Awaiting,
            Source::OneThread | Source::AllThreads | Source::Nothing => Doing::Unknown,
        };
        let mut at = from;
        for piece in threads {
            self.without_thread(node, (at, piece.from), cover, pid, rest, &mut own);
            if piece.doing.gives_way_to_children() {
                own.pieces.extend(cover.gaps(node, piece.from, piece.to).map(|(from, to)| Piece { from, to, ..piece }));
            } else {
                own.pieces.push(piece);
            }
            at = piece.to;
        }
        self.without_thread(node, (at, to), cover, pid, rest, &mut own);
        own.has_hole = pid.is_some_and(|pid| self.holes_in(pid, from, to).next().is_some());
        own
    }

    /// What a node did while no thread worked for it.
    fn without_thread(&self, node: usize, (from, to): (i64, i64), cover: &Cover, pid: Option<u32>, rest: Doing, own: &mut OwnPieces) {
        for (mut at, end) in cover.gaps(node, from, to) {
            if let Some(pid) = pid.filter(|_| !self.holes.is_empty()) {
                for hole in self.holes_in(pid, at, end) {
                    let (from, to) = (hole.from.max(at), hole.to.min(end));
                    if at < from {
                        own.pieces.push(Piece { from: at, to: from, doing: rest });
                    }
                    if from < to {
                        own.pieces.push(Piece { from, to, doing: Doing::Unknown });
                    }
                    at = at.max(to);
                }
            }
            if at < end {
                own.pieces.push(Piece { from: at, to: end, doing: rest });
            }
        }
    }

    /// Holes in the journals of a process that touch this time, by start.
    fn holes_in(&self, pid: u32, from: i64, to: i64) -> impl Iterator<Item = &Hole> {
        let first = self.holes.partition_point(|hole| hole.pid < pid);
        let of_process = self.holes[first..].iter().take_while(move |hole| hole.pid == pid && hole.from < to);
        of_process.filter(move |hole| hole.to > from)
    }

    /// What a thread did between two moments.
    fn thread_pieces(&self, line: &Line, from: i64, to: i64, out: &mut Vec<Piece>) {
        let slices = &self.slices[line.slices.clone()];
        let mut next = slices.partition_point(|slice| slice.to <= from);
        let mut at = from;
        let mut push = |from: i64, to: i64, doing: Doing| {
            if from < to {
                out.push(Piece { from, to, doing });
            }
        };
        while at < to {
            let slice = slices.get(next);
            let until = slice.map_or(to, |slice| slice.from.clamp(at, to));
            match next.checked_sub(1).map(|before| slices[before]) {
                None => {
                    let born = line.born.unwrap_or(until).clamp(at, until);
                    push(at, born, Doing::Unknown);
                    push(born, until, Doing::Runnable);
                }
                Some(before) if before.preempted => {
                    // The last one of all ended because the recording did.
                    push(at, until, if slice.is_some() { Doing::Runnable } else { Doing::Unknown });
                }
                Some(_) => {
                    let end = if slice.is_some() { until } else { line.until.clamp(at, until) };
                    self.blocked(line, at, end, &mut push);
                    push(end, until, Doing::Unknown);
                }
            }
            at = until;
            let Some(slice) = slice else { return };
            let end = slice.to.min(to);
            push(at, end, Doing::OnCpu);
            at = at.max(end);
            next += 1;
        }
    }

    /// What a blocked thread waited for.
    fn blocked(&self, line: &Line, from: i64, to: i64, push: &mut impl FnMut(i64, i64, Doing)) {
        let waits = &self.waits[line.waits.clone()];
        let first = waits.partition_point(|wait| wait.to <= from);
        let mut at = from;
        for wait in waits[first..].iter().take_while(|wait| wait.from < to) {
            let (start, end) = (wait.from.max(at), wait.to.min(to));
            push(at, start, Doing::BlockedUnseen);
            push(start, end, Doing::Blocked(wait.kind));
            at = end;
        }
        push(at, to, Doing::BlockedUnseen);
    }
}

/// One pass over the spans of a process with one thread: whose the thread was when.
struct Sweep {
    /// For each node its process; [`NONE`] where that is not one of those that are looked at.
    process: Vec<u32>,
    open: Vec<bool>,
    open_children: Vec<u32>,
}

impl Sweep {
    fn new(nodes: usize) -> Sweep {
        Sweep { process: vec![NONE; nodes], open: vec![false; nodes], open_children: vec![0; nodes] }
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.open[node] && self.open_children[node] == 0
    }

    /// Tells `give` of each time in the life of the process whose it was: a span's, or nobody's but the process's. Returns the spans
    /// that could have had the thread while another one could, too.
    fn run(
        &mut self,
        nodes: impl Iterator<Item = (usize, (i64, i64))>,
        parent: impl Fn(usize) -> Option<usize>,
        life: (i64, i64),
        mut give: impl FnMut(Option<usize>, i64, i64),
    ) -> Vec<u32> {
        // At one moment ends come before starts: spans are half open.
        let mut events: Vec<(i64, bool, u32)> = Vec::new();
        for (node, (start, end)) in nodes.filter(|(_, (start, end))| start < end) {
            events.extend([(start, true, node as u32), (end, false, node as u32)]);
        }
        events.sort_unstable();
        let mut ambiguous = Vec::new();
        // How many spans could have it, and the sum of their numbers, which is the number itself where there is one.
        let (mut leaves, mut sum) = (0u32, 0u64);
        let mut at = life.0;
        for batch in events.chunk_by(|a, b| a.0 == b.0) {
            let now = batch[0].0;
            if at < now && leaves < 2 {
                give((leaves == 1).then_some(sum as usize), at, now);
            }
            at = at.max(now);
            let before = (leaves == 1).then_some(sum as usize);
            for &(_, starts, node) in batch {
                let node = node as usize;
                let same = parent(node).filter(|&parent| self.process[parent] == self.process[node]);
                for changed in [Some(node), same].into_iter().flatten() {
                    let was = self.is_leaf(changed);
                    if changed == node {
                        self.open[node] = starts;
                    } else if starts {
                        self.open_children[changed] += 1;
                    } else {
                        self.open_children[changed] -= 1;
                    }
                    match (was, self.is_leaf(changed)) {
                        (false, true) => (leaves, sum) = (leaves + 1, sum + changed as u64),
                        (true, false) => (leaves, sum) = (leaves - 1, sum - changed as u64),
                        _ => {}
                    }
                }
            }
            if leaves > 1 {
                let touched = batch.iter().flat_map(|&(_, _, node)| [Some(node as usize), parent(node as usize)]).flatten();
                ambiguous.extend(touched.chain(before).filter(|&node| self.is_leaf(node)).map(|node| node as u32));
            }
        }
        if at < life.1 && leaves == 0 {
            give(None, at, life.1);
        }
        ambiguous
    }
}

#[cfg(test)]
mod tests;
