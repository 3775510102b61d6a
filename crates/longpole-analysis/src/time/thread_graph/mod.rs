//! Whom the threads of a process waited for, and what of the process's time that decided.
//!
//! ```text
//! main       ==start==|=parse=|.. joins worker ........|==write==|      the process ends with its main thread
//! worker              |====|... lock ...|== encode ====|
//! writer              |======= sleeps ==|==|
//! logger              |================================================
//! path       ==main==|| === writer =====| == worker ===|==main==|      parse is not on it, nor is the logger
//! ```
//!
//! A thread that waits for a lock, a queue or the end of another one goes on when that other thread lets it: the two are tied at that moment.
//! What started a thread is tied to its start. Everything else, a timer, a disk, a child, takes the time that it takes. Where nothing tells
//! for whom a thread waited, any other one may have held it up.
//!
//! - [`path`]: from the end of the process backwards along these ties, the thread that mattered at each moment.
//! - [`replay`]: how much of that is gone if parts of what the threads did take no time.
//!
//! A tie is known by the futex ([`Blockers`]), or by which thread was on a CPU when the wait was over, if it was the only one.

mod path;
mod replay;

use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, Nanos, NodeId, Recording, StackId, ThreadKey, Timestamp, WaitKind, ids};

pub(crate) use self::path::PathStretch;
use self::replay::Plan;
use crate::link::waits::NodeWaits;
use crate::schedule::own_work::TimeSet;
use crate::schedule::servers::Servers;
use crate::time::blockers::{BlockedOn, Blockers, PROBE_NANOS, Sources};
use crate::time::timelines::{PlainProcess, RowId, Slice, ThreadLine, ThreadWait, Timelines};

ids! {
    /// A thread of the process, by its place.
    pub(crate) struct LineId;
}

/// Waits in one process, at most: past that, all its threads count all the time.
const GAPS_MAX: usize = 200_000;

/// Stretches of other threads in the times in which any may have held up the process, at most.
const STRETCHES_MAX: usize = 200_000;

/// A shorter wait for another thread says nothing of what mattered: two that hand each other work do hardly anything else.
const TIE_NANOS: Nanos = Nanos(100_000);

/// How long before a thread goes on the one that let it go on was on a CPU, where several were in the time that [`Blockers`] searches.
const CLOSE_NANOS: Nanos = Nanos(300_000);

/// A language may end the wait for the end of a thread shortly before that.
const JOIN_NANOS: Nanos = Nanos(1_000_000);

/// Few waits that are shorter than this are sampled.
const SHORT_NANOS: Nanos = Nanos(PROBE_NANOS as i64);

/// Sleeps in one place that follow each other directly: the thread may poll.
const POLLS: usize = 4;

/// Why a thread that was blocked went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    /// What it waited for took this time, whatever other threads did.
    Itself,
    /// That thread.
    Thread(LineId),
    /// Another thread; nothing tells which one.
    Somebody,
    /// Any thread, or something outside.
    Unknown,
}

/// A time in which a thread was blocked.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: Nanos,
    to: Nanos,
    ended_by: EndedBy,
    /// The stack in which the thread slept until a time of its own choice.
    sleeps_in: Option<StackId>,
}

/// A thread: a line of the drawing above.
#[derive(Debug)]
struct GraphThread {
    row: RowId,
    thread: ThreadKey,
    /// Its start and the thread that started it, unless it is older than the process's program.
    born: Option<(Nanos, LineId)>,
    until: Nanos,
    /// By time.
    gaps: Vec<Gap>,
}

/// The threads of a process and the ties between them.
#[derive(Debug)]
pub(crate) struct ThreadGraph {
    node: NodeId,
    life: (Nanos, Nanos),
    lines: IdVec<LineId, GraphThread>,
    /// From the start to the end of the process: the thread that mattered.
    path: Vec<PathStretch>,
    plan: OnceLock<Plan>,
}

impl ThreadGraph {
    /// The graph of a process; `None` where its main thread was not seen, or its threads wait too often.
    pub(crate) fn new(sources: &Sources<'_>, blockers: &Blockers, process: &PlainProcess) -> Option<ThreadGraph> {
        let PlainProcess { node, pid, life, is_node } = *process;
        if !is_node {
            return None;
        }
        let threads: Vec<ThreadLine<'_>> = sources.timelines.threads_of(pid).filter(|line| is_of(line, life)).collect();
        if threads.iter().map(|line| line.slices.len()).sum::<usize>() > GAPS_MAX {
            return None;
        }
        let main = LineId::at(threads.iter().position(|line| line.tid == pid)?);
        let end = life.1.min(threads[main.place()].until);
        let mut ends: Vec<(Nanos, LineId)> = threads.iter().enumerate().map(|(place, line)| (line.until, LineId::at(place))).collect();
        ends.sort_unstable();
        let busy_since = threads.iter().map(busy_since).collect();
        let ties = Ties { sources, blockers, pid, threads: &threads, main, ends, busy_since };
        let lines = threads.iter().map(|line| GraphThread {
            row: line.row,
            thread: ThreadKey::new(pid, line.tid),
            born: line.born.filter(|&born| life.0 <= born && line.tid != pid).map(|born| (born, ties.creator(line.tid, born))),
            until: line.until,
            gaps: ties.gaps(line, life),
        });
        let mut graph =
            ThreadGraph { node, life: (life.0, end.max(life.0)), lines: lines.collect(), path: Vec::new(), plan: OnceLock::new() };
        graph.open_polls();
        graph.path = graph.find_path(main);
        Some(graph)
    }

    /// A thread that sleeps in one place again and again, and lets no other one go on meanwhile, may wait for something that others do.
    fn open_polls(&mut self) {
        let mut lets_go_on: IdVec<LineId, Vec<Nanos>> = IdVec::filled(Vec::new(), self.lines.len());
        for gap in self.lines.iter().flat_map(|line| &line.gaps) {
            if let EndedBy::Thread(other) = gap.ended_by {
                lets_go_on[other].push(gap.to);
            }
        }
        for (line, moments) in self.lines.iter_mut().zip(lets_go_on.iter_mut()) {
            moments.sort_unstable();
            for run in line.gaps.chunk_by_mut(|a, b| a.sleeps_in.is_some() && a.sleeps_in == b.sleeps_in) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let next = moments.partition_point(|moment| *moment < first.from);
                let hands_over = moments.get(next).is_some_and(|moment| *moment <= last.to + CLOSE_NANOS);
                if run.len() >= POLLS && !hands_over {
                    run.iter_mut().for_each(|gap| gap.ended_by = EndedBy::Unknown);
                }
            }
        }
    }

    /// The process.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// The thread that mattered, from the start to the end of the process.
    pub(crate) fn path(&self) -> &[PathStretch] {
        &self.path
    }

    /// From the start of the process to the end of its main thread.
    pub(crate) fn life(&self) -> (Nanos, Nanos) {
        self.life
    }

    /// These times on the path, each with the thread that mattered then.
    pub(crate) fn by_thread(&self, times: impl Iterator<Item = (Nanos, Nanos)>) -> impl Iterator<Item = (LineId, Nanos, Nanos)> {
        times.flat_map(|(from, to)| {
            let first = self.path.partition_point(|stretch| stretch.to <= from);
            let within = self.path[first..].iter().take_while(move |stretch| stretch.from < to);
            within.map(move |stretch| (stretch.line, stretch.from.max(from), stretch.to.min(to)))
        })
    }

    /// Its threads.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (LineId, ThreadKey, RowId)> {
        self.lines.enumerated().map(|(id, line)| (id, line.thread, line.row))
    }

    /// When which thread mattered, outside these times.
    fn known_times(&self, open: &TimeSet) -> impl Iterator<Item = (RowId, Nanos, Nanos)> {
        let of = |stretch: &PathStretch| {
            let row = self.lines[stretch.line].row;
            open.gaps(stretch.from, stretch.to).map(move |(from, to)| (row, from, to))
        };
        self.path.iter().flat_map(of)
    }

    /// The times on the path in which any other thread may have held up the one that mattered.
    pub(crate) fn open_times(&self) -> Vec<(Nanos, Nanos)> {
        let of_stretch = |stretch: &PathStretch| {
            let is_open = |gap: &&Gap| matches!(gap.ended_by, EndedBy::Unknown | EndedBy::Somebody);
            let unknown = self.lines[stretch.line].gaps_in(stretch.from, stretch.to).filter(is_open);
            unknown.map(|gap| (gap.from.max(stretch.from), gap.to.min(stretch.to))).collect::<Vec<_>>()
        };
        self.path.iter().flat_map(of_stretch).collect()
    }
}

impl GraphThread {
    /// The waits that touch this time.
    fn gaps_in(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Gap> {
        let first = self.gaps.partition_point(|gap| gap.to <= from);
        self.gaps[first..].iter().take_while(move |gap| gap.from < to)
    }
}

/// A number of a thread may be given again.
fn is_of(line: &ThreadLine<'_>, life: (Nanos, Nanos)) -> bool {
    let first = line.slices.first().map(|slice| slice.from);
    first.is_some_and(|first| first < life.1) && line.until > life.0
}

/// What ties the threads of a process.
struct Ties<'a> {
    sources: &'a Sources<'a>,
    blockers: &'a Blockers,
    pid: u32,
    threads: &'a [ThreadLine<'a>],
    main: LineId,
    /// Their ends, by time.
    ends: Vec<(Nanos, LineId)>,
    /// For each slice of a thread since when it was busy: where it had to leave its CPU, it was busy all the same.
    busy_since: IdVec<LineId, Vec<Nanos>>,
}

impl Ties<'_> {
    fn line(&self, tid: u32) -> Option<LineId> {
        self.threads.binary_search_by_key(&tid, |line| line.tid).ok().map(LineId::at)
    }

    /// The other threads that were on a CPU in this time.
    fn on_cpu(&self, tid: u32, from: Nanos, to: Nanos) -> Vec<u32> {
        let mut on_cpu = self.sources.timelines.on_cpu_in(self.pid, from, to).unwrap_or_default();
        on_cpu.retain(|other| *other != tid);
        on_cpu
    }

    /// The thread that started another one: the main thread if it ran, or the only one that did.
    fn creator(&self, tid: u32, born: Nanos) -> LineId {
        let on_cpu = self.on_cpu(tid, born - CLOSE_NANOS, born);
        let is_main = on_cpu.contains(&self.pid);
        let only = if is_main || on_cpu.len() != 1 { None } else { self.line(on_cpu[0]) };
        only.unwrap_or(self.main)
    }

    /// The times in which a thread was blocked.
    fn gaps(&self, line: &ThreadLine<'_>, life: (Nanos, Nanos)) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        // What a thread waited for when its process ended, it waited for until then.
        let nexts = line.slices.iter().skip(1).map(|next| next.from).chain([line.until]);
        for (slice, to) in line.slices.iter().zip(nexts) {
            let from = slice.to;
            if slice.preempted || from >= to || to <= life.0 || from >= life.1 {
                continue;
            }
            let wait = wait_in(line, (from, to));
            let kind = wait.or_else(|| nearest_short(line, from, to)).map(|wait| wait.kind);
            let ended_by = self.ended_by(line, (from, to), kind, wait);
            let sleeps_in = wait.filter(|wait| wait.kind == WaitKind::Sleep).and_then(|wait| self.sources.recording.waits[wait.wait].stack);
            gaps.push(Gap { from, to, ended_by, sleeps_in });
        }
        gaps
    }

    /// The thread that ended a wait that may have been for something outside: the only one on a CPU at its end, if it was woken during the
    /// wait, as one that the waiting thread had given something to do.
    fn woke(&self, tid: u32, (from, to): (Nanos, Nanos)) -> Option<LineId> {
        let [other] = self.on_cpu(tid, to - CLOSE_NANOS, to)[..] else { return None };
        let other = self.line(other)?;
        let before = self.threads[other.place()].slices.partition_point(|slice| slice.from < to);
        let woken = self.busy_since[other].get(before.checked_sub(1)?)?;
        (*woken >= from - CLOSE_NANOS).then_some(other)
    }

    /// Why a thread went on after a wait of a kind; of one that the process ended, nobody knows what it was for.
    fn ended_by(&self, line: &ThreadLine<'_>, (from, to): (Nanos, Nanos), kind: Option<WaitKind>, wait: Option<&ThreadWait>) -> EndedBy {
        let is_over = to - from >= TIE_NANOS && line.slices.last().is_some_and(|last| to <= last.from);
        let woke = |otherwise: EndedBy| {
            let other = if is_over { self.woke(line.tid, (from, to)) } else { None };
            other.map_or(if is_over { otherwise } else { EndedBy::Unknown }, EndedBy::Thread)
        };
        match kind {
            Some(WaitKind::Lock | WaitKind::Queue | WaitKind::Join) if to - from >= TIE_NANOS => self.let_go(line, to, wait),
            Some(WaitKind::Lock | WaitKind::Queue | WaitKind::Join) => EndedBy::Unknown,
            Some(WaitKind::Idle) => woke(EndedBy::Somebody),
            Some(WaitKind::Network | WaitKind::Pipe | WaitKind::Other) => woke(EndedBy::Unknown),
            Some(_) => EndedBy::Itself,
            // Too short for anybody to have seen it.
            None if to - from < TIE_NANOS => EndedBy::Itself,
            None => woke(EndedBy::Unknown),
        }
    }

    /// The thread that let another one go on, which had waited for one: the one that is named, or that ended then, or the only one on a CPU at
    /// the end of the wait.
    fn let_go(&self, line: &ThreadLine<'_>, to: Nanos, wait: Option<&ThreadWait>) -> EndedBy {
        let parts = wait.map(|wait| self.blockers.parts(self.sources, &self.sources.recording.waits[wait.wait])).unwrap_or_default();
        let named = match parts.last().map(|part| part.who) {
            Some(BlockedOn::Thread { tid, .. }) => self.line(tid),
            _ => None,
        };
        let is_other = |other: &LineId| self.threads[other.place()].row != line.row;
        let ran = || match self.on_cpu(line.tid, to - CLOSE_NANOS, to)[..] {
            [tid] => self.line(tid),
            _ => None,
        };
        let ended = || {
            let first = self.ends.partition_point(|(end, _)| *end < to - JOIN_NANOS);
            let is_join = wait.is_some_and(|wait| wait.kind == WaitKind::Join);
            let ended = self.ends[first..].iter().filter(|_| is_join).take_while(|(end, _)| *end <= to + JOIN_NANOS);
            let mut others = ended.map(|(_, other)| *other).filter(is_other);
            others.next().filter(|_| others.next().is_none())
        };
        named.filter(is_other).or_else(ended).or_else(ran).map_or(EndedBy::Somebody, EndedBy::Thread)
    }
}

/// For each slice of a thread since when it was busy.
fn busy_since(line: &ThreadLine<'_>) -> Vec<Nanos> {
    let first = line.slices.first().map_or(Nanos::ZERO, |slice| slice.from);
    let mut since = line.born.unwrap_or(first);
    let mut was_preempted = true;
    let of = |slice: &Slice| {
        if !std::mem::replace(&mut was_preempted, slice.preempted) {
            since = slice.from;
        }
        since
    };
    line.slices.iter().map(of).collect()
}

/// The wait of a thread that was sampled in this time.
fn wait_in<'a>(line: &ThreadLine<'a>, (from, to): (Nanos, Nanos)) -> Option<&'a ThreadWait> {
    let first = line.waits.partition_point(|wait| wait.to <= from);
    line.waits.get(first).filter(|wait| wait.from < to)
}

/// Few short waits are sampled: the others are as the nearest of those.
fn nearest_short<'a>(line: &ThreadLine<'a>, from: Nanos, to: Nanos) -> Option<&'a ThreadWait> {
    if to - from >= SHORT_NANOS {
        return None;
    }
    let next = line.waits.partition_point(|wait| wait.from < from);
    let beside = line.waits[next.saturating_sub(1)..].iter().take(2);
    beside.filter(|wait| wait.to - wait.from < SHORT_NANOS).min_by_key(|wait| (wait.from - from).magnitude())
}

/// The graphs of all processes of several threads without spans, by node. Sets when which of their threads worked for them, and what they
/// waited for.
pub(crate) fn hold(
    sources: &Recorded<'_>,
    blockers: &Blockers,
    timelines: &mut Timelines,
    waits: &mut NodeWaits,
) -> FastMap<NodeId, ThreadGraph> {
    let mut graphs = FastMap::default();
    let (mut stretches, mut mattered) = (Vec::new(), Vec::new());
    for process in timelines.plain_processes().to_vec() {
        // Nobody waits for the end of a server.
        let has_end = !sources.servers.contains(process.node);
        let graph = has_end
            .then(|| ThreadGraph::new(&Sources { recording: sources.recording, timelines, origin: sources.origin }, blockers, &process))
            .flatten();
        // Threads that may have held up the process count as far as they compute.
        let computing = |open: &TimeSet| {
            let of_row = |line: ThreadLine<'_>| {
                let computes = timelines.computes(line.row, process.life).into_iter();
                computes.flat_map(|(from, to)| open.between(from, to)).map(move |(from, to)| (line.row, from, to)).collect::<Vec<_>>()
            };
            timelines.threads_of(process.pid).flat_map(of_row).take(STRETCHES_MAX + 1).collect::<Vec<_>>()
        };
        let known = graph.map(|graph| {
            // Others may go on after the main thread.
            let after = (graph.life.1, process.life.1);
            let open = TimeSet::new(graph.open_times().into_iter().chain((after.0 < after.1).then_some(after)).collect());
            let others = computing(&open);
            (graph, open, others)
        });
        let Some((graph, open, others)) = known.filter(|(.., others)| others.len() <= STRETCHES_MAX) else {
            let all =
                |line: ThreadLine<'_>| timelines.computes(line.row, process.life).into_iter().map(move |(from, to)| (line.row, from, to));
            let all: Vec<_> = timelines.threads_of(process.pid).flat_map(all).collect();
            stretches.extend(all.into_iter().map(|(row, from, to)| (process.node, row, from, to)));
            continue;
        };
        let known: Vec<_> = graph.known_times(&open).collect();
        let of_path = known.iter().flat_map(|&(row, from, to)| timelines.waits_of(row, (from, to)));
        let of_node = waits.of_node_within(process.node, (Nanos::MIN, Nanos::MAX));
        let of_others = of_node.flat_map(|it| open.between(it.from, it.to).map(|(from, to)| (it.wait, from, to)));
        let all = of_others.chain(of_path).filter(|(_, from, to)| from < to);
        mattered.extend(all.map(|(wait, from, to)| (process.node, wait, from, to)));
        stretches.extend(known.iter().chain(&others).map(|&(row, from, to)| (process.node, row, from, to)));
        graphs.insert(process.node, graph);
    }
    timelines.hold(stretches.into_iter());
    waits.set_that_mattered(graphs.keys().copied().collect(), mattered.into_iter());
    graphs
}

/// What the graphs are made of.
#[derive(Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) servers: &'a Servers,
    /// What offsets count from.
    pub(crate) origin: Timestamp,
}

#[cfg(test)]
mod tests;
