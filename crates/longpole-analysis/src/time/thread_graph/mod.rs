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
//! - [`ties`]: what ended each wait; [`polls`] are waits in steps.
//! - [`path`]: from the end of the process backwards along these ties, the thread that mattered at each moment.
//! - [`job_slots`]: jobs that one thread starts whenever any of them ends; [`lent`]: CPUs that other programs had.
//! - [`replay`]: how much of that is gone if parts of what the threads did take no time.
//!
//! A tie is known by the futex ([`Blockers`]), or by which thread was on a CPU when the wait was over, if it was the only one.

mod job_slots;
mod lent;
mod path;
mod polls;
mod replay;
mod run;
mod ties;

use std::collections::HashMap;
use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, Nanos, NodeId, Pid, Recording, StackId, ThreadKey, Timestamp, ids};

use self::job_slots::AllJobs;
pub(crate) use self::path::PathStretch;
use self::replay::Plan;
pub(crate) use self::run::RunReplay;
use self::ties::Ties;
use crate::link::waits::NodeWaits;
use crate::schedule::own_work::TimeSet;
use crate::schedule::servers::Servers;
use crate::time::activity::one_at_a_time;
use crate::time::blockers::{Blockers, Sources};
use crate::time::timelines::{PlainProcess, RowId, ThreadLine, Timelines};

ids! {
    /// A thread of the process, by its place.
    pub(crate) struct LineId;
}

/// Waits in one process, at most: past that, all its threads count all the time.
const GAPS_MAX: usize = 200_000;

/// Stretches of other threads in the times in which any may have held up the process, at most.
const STRETCHES_MAX: usize = 200_000;

/// Those of all processes, for each time that a thread was on a CPU: one slice that is as long as its process is cut by all these times.
const STRETCHES_OF_SLICE: usize = 4;

/// A shorter wait for another thread says nothing of what mattered: two that hand each other work do hardly anything else.
const TIE_NANOS: Nanos = Nanos(100_000);

/// How long before a thread goes on the one that let it go on was on a CPU, where several were in the time that [`Blockers`] searches.
const CLOSE_NANOS: Nanos = Nanos(300_000);

/// How far apart a thread goes on and the one that asked it to begins to wait for it.
const ASKED_NANOS: Nanos = Nanos(2_000_000);

/// A language may end the wait for the end of a thread shortly before that.
const JOIN_NANOS: Nanos = Nanos(1_000_000);

/// A process that another one or a signal ends is gone after that time, at most; a thread that ends a process waits so long for its end.
const KILLED_NANOS: Nanos = Nanos(100_000_000);

/// Sleeps in one place that follow each other directly: the thread may poll.
const POLLS: usize = 4;

/// Share of the sleeps of a thread that last about the same time if it only polls, and how long it runs beside them.
const POLLS_PERCENT: usize = 80;
const POLLS_RUN_PART: i64 = 10;

/// Sleeps of a thread that polls for each wait of another thread that it ended, from which on those were chance.
const POLLS_OF_HAND_OVER: usize = 10;

/// Why a thread that was blocked went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    /// What it waited for took this time, whatever other threads did.
    Itself,
    /// That thread.
    Thread(LineId),
    /// Another thread; nothing tells which one.
    Somebody,
    /// The thread that ended its process while it slept, and waits for that since then.
    Killer(LineId, Nanos),
    /// Any thread, or something outside.
    Unknown,
}

/// A time in which a thread was blocked.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: Nanos,
    to: Nanos,
    ended_by: EndedBy,
    /// The recording names who ended it; else it is inferred.
    is_certain: bool,
    /// Since when the thread may have requested what it waits for.
    asked: Nanos,
    /// How long the thread was on CPUs since its wait before: on a busy machine that takes longer.
    ran_before: Nanos,
    /// The stack in which the thread waited.
    waits_in: Option<StackId>,
    /// It waited until a time of its own choice.
    is_sleep: bool,
    /// It waited for other threads until then.
    is_timeout: bool,
    /// It waited for work to arrive.
    is_idle: bool,
    /// The other thread may have handed over something, and more of it later: the wait was not for a lock or an end.
    takes: bool,
}

/// A thread: a line of the drawing above.
#[derive(Debug)]
struct GraphThread {
    row: RowId,
    thread: ThreadKey,
    /// The process.
    node: NodeId,
    /// Its start and the thread that started it, unless it is older than the process's program.
    born: Option<(Nanos, LineId)>,
    until: Nanos,
    /// Whether a thread that waits for one that it started waits for this one as well, if it ended before.
    is_joined: bool,
    /// By time.
    gaps: Vec<Gap>,
}

/// The threads of a process and the ties between them.
#[derive(Debug)]
pub(crate) struct ThreadGraph {
    /// The main thread of the process; of a run, of its first process.
    main: LineId,
    life: (Nanos, Nanos),
    lines: IdVec<LineId, GraphThread>,
    /// From the start to the end of the process: the thread that mattered.
    path: Vec<PathStretch>,
    /// Whether all that led the path from thread to thread is certain.
    is_certain: bool,
    /// Jobs that share slots; only in the graph of a run.
    jobs: AllJobs,
    /// When each thread could run and programs outside the run had the CPUs; nothing in the graph of a process.
    lent: IdVec<LineId, TimeSet>,
    plan: OnceLock<Plan>,
}

impl ThreadGraph {
    /// The graph of a process; `None` where its main thread was not seen, or its threads wait too often.
    pub(crate) fn new(sources: &Sources<'_>, blockers: &Blockers, process: &PlainProcess) -> Option<ThreadGraph> {
        let PlainProcess { node, pid, life, is_node, .. } = *process;
        if !is_node {
            return None;
        }
        let threads: Vec<ThreadLine<'_>> = sources.timelines.threads_of(process).filter(|line| is_of(line, life)).collect();
        let ties = Ties::new(sources, blockers, &threads, HashMap::new());
        let main = ties.line(ThreadKey::new(pid, pid))?;
        let end = life.1.min(threads[main.place()].until);
        let born = |id: LineId, line: &ThreadLine<'_>| {
            let born = line.born.filter(|&born| life.0 <= born && id != main)?;
            Some((born, ties.creator(id, pid, born)?))
        };
        let mut graph = ThreadGraph::of(&ties, main, (life.0, end.max(life.0)), |_| node, born)?;
        (graph.path, graph.is_certain) = graph.find_path(main);
        Some(graph)
    }

    /// The graph of these threads, whose path begins at the end of one of them, without that path. `None` where they wait too often.
    fn of(
        ties: &Ties<'_>,
        main: LineId,
        life: (Nanos, Nanos),
        node: impl Fn(&ThreadLine<'_>) -> NodeId,
        born: impl Fn(LineId, &ThreadLine<'_>) -> Option<(Nanos, LineId)>,
    ) -> Option<ThreadGraph> {
        if ties.threads.iter().map(|line| line.slices.len()).sum::<usize>() > GAPS_MAX {
            return None;
        }
        let line = |(place, line): (usize, &ThreadLine<'_>)| {
            let id = LineId::at(place);
            let (thread, gaps) = (line.thread, ties.gaps(id, life));
            GraphThread { row: line.row, thread, node: node(line), born: born(id, line), until: line.until, is_joined: true, gaps }
        };
        let lines = ties.threads.iter().enumerate().map(line).collect();
        let (path, jobs, lent, plan) = Default::default();
        let mut graph = ThreadGraph { main, life, lines, path, is_certain: true, jobs, lent, plan };
        graph.drop_early_ties();
        graph.drop_chance_ties();
        graph.open_polls();
        Some(graph)
    }

    /// No thread ends a wait before its start: the records of both are not quite in order.
    fn drop_early_ties(&mut self) {
        let born: IdVec<LineId, Nanos> = self.lines.iter().map(|line| line.born.map_or(Nanos::MIN, |(born, _)| born)).collect();
        for gap in self.lines.iter_mut().flat_map(|line| &mut line.gaps) {
            if matches!(gap.ended_by, EndedBy::Thread(other) if born[other] >= gap.to) {
                gap.ended_by = EndedBy::Unknown;
            }
        }
    }

    /// Work arrives from outside, and sometimes another thread of the process, which a timer woke, runs just then; a thread that only polls takes
    /// the lock of an interpreter for a moment between others. A thread that hands over work ends most of these waits.
    fn drop_chance_ties(&mut self) {
        // A thread that hands over what it makes does so each time that it wakes.
        let polls: IdVec<LineId, usize> = self.lines.iter().map(GraphThread::polls).collect();
        let process: IdVec<LineId, Pid> = self.lines.iter().map(|line| line.thread.pid).collect();
        for line in self.lines.iter_mut() {
            let pid = line.thread.pid;
            line.drop_rare_ties(|gap| gap.is_idle, |other, _| process[other] == pid);
            let is_rare = |other: LineId, ended: usize| process[other] == pid && ended * POLLS_OF_HAND_OVER < polls[other];
            line.drop_rare_ties(|gap| !gap.is_idle && !gap.is_sleep && !gap.is_certain, is_rare);
        }
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
            for run in line.gaps.chunk_by_mut(Gap::sleeps_again) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let next = moments.partition_point(|moment| *moment < first.from);
                let hands_over = moments.get(next).is_some_and(|moment| *moment <= last.to + CLOSE_NANOS);
                if run.len() >= POLLS && !hands_over {
                    run.iter_mut().for_each(|gap| gap.ended_by = EndedBy::Unknown);
                }
            }
        }
    }

    /// The process, or the run.
    pub(crate) fn node(&self) -> NodeId {
        self.lines[self.main].node
    }

    /// The thread that mattered, from the start to the end of the process.
    pub(crate) fn path(&self) -> &[PathStretch] {
        &self.path
    }

    /// These times on the path, each with the thread that mattered then.
    pub(crate) fn by_thread(&self, times: impl Iterator<Item = (Nanos, Nanos)>) -> impl Iterator<Item = (LineId, Nanos, Nanos)> {
        times.flat_map(|(from, to)| {
            let first = self.path.partition_point(|stretch| stretch.to <= from);
            let within = self.path[first..].iter().take_while(move |stretch| stretch.from < to);
            within.map(move |stretch| (stretch.line, stretch.from.max(from), stretch.to.min(to)))
        })
    }

    /// A thread.
    pub(crate) fn thread(&self, line: LineId) -> (ThreadKey, RowId) {
        (self.lines[line].thread, self.lines[line].row)
    }

    /// Its process.
    pub(crate) fn node_of(&self, line: LineId) -> NodeId {
        self.lines[line].node
    }

    /// From its start to its end.
    pub(crate) fn life_of(&self, line: LineId) -> (Nanos, Nanos) {
        let line_life = &self.lines[line];
        let until = if line == self.main { self.life.1 } else { line_life.until.min(self.life.1) };
        (line_life.born.map_or(self.life.0, |(born, _)| born), until)
    }

    /// Whether any thread may have ended a wait of a thread in this time.
    pub(crate) fn is_open(&self, line: LineId, (from, to): (Nanos, Nanos)) -> bool {
        self.lines[line].gaps_in(from, to).any(|gap| matches!(gap.ended_by, EndedBy::Unknown | EndedBy::Somebody))
    }

    /// The threads of a process.
    pub(crate) fn threads_of(&self, pid: Pid) -> impl Iterator<Item = LineId> {
        let first = self.lines.as_slice().partition_point(|line| line.thread.pid < pid);
        let of = self.lines.as_slice()[first..].iter().take_while(move |line| line.thread.pid == pid);
        (first..first + of.count()).map(LineId::at)
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

impl Gap {
    /// Whether both are sleeps in the same place.
    fn sleeps_again(&self, next: &Gap) -> bool {
        self.is_sleep && next.is_sleep && self.waits_where(next)
    }

    /// Whether no other thread is known to have ended it.
    fn is_by_itself(&self) -> bool {
        matches!(self.ended_by, EndedBy::Itself | EndedBy::Unknown)
    }

    /// Whether the thread waited in the same place.
    fn waits_where(&self, other: &Gap) -> bool {
        self.waits_in.is_some() && self.waits_in == other.waits_in
    }
}

impl GraphThread {
    /// Unties it from other threads that ended less than half of these waits of it.
    fn drop_rare_ties(&mut self, is_counted: impl Fn(&Gap) -> bool, may_be_chance: impl Fn(LineId, usize) -> bool) {
        let mut waits = 0;
        let mut ended: HashMap<LineId, usize> = HashMap::new();
        for gap in self.gaps.iter().filter(|gap| is_counted(gap)) {
            waits += 1;
            if let EndedBy::Thread(other) = gap.ended_by {
                *ended.entry(other).or_default() += 1;
            }
        }
        let is_chance = |other: LineId| ended.get(&other).is_some_and(|&count| count * 2 < waits && may_be_chance(other, count));
        for gap in self.gaps.iter_mut().filter(|gap| is_counted(gap)) {
            if matches!(gap.ended_by, EndedBy::Thread(other) if is_chance(other)) {
                gap.ended_by = EndedBy::Somebody;
            }
        }
    }

    /// How often it slept, if it hardly did anything else all its life, for about the same time each; else 0.
    fn polls(&self) -> usize {
        let sleeps: Vec<Nanos> = self.gaps.iter().filter(|gap| gap.is_by_itself()).map(|gap| gap.to - gap.from).collect();
        let Some(usual) = median(sleeps.clone()) else { return 0 };
        let alike = sleeps.iter().filter(|length| (**length - usual).magnitude() <= (usual / 4).magnitude()).count();
        let ran: Nanos = self.gaps.iter().map(|gap| gap.ran_before).sum();
        let slept: Nanos = sleeps.iter().copied().sum();
        let only_polls = alike >= POLLS && alike * 100 >= sleeps.len() * POLLS_PERCENT && ran <= slept / POLLS_RUN_PART;
        if only_polls { alike } else { 0 }
    }

    /// The waits that touch this time.
    fn gaps_in(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Gap> {
        let first = self.gaps.partition_point(|gap| gap.to <= from);
        self.gaps[first..].iter().take_while(move |gap| gap.from < to)
    }
}

/// The one in the middle.
fn median(mut lengths: Vec<Nanos>) -> Option<Nanos> {
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied()
}

/// Whether it is the main thread of its process.
fn is_main(thread: ThreadKey) -> bool {
    thread.pid.0 == thread.tid.0
}

/// A number of a thread may be given again.
fn is_of(line: &ThreadLine<'_>, life: (Nanos, Nanos)) -> bool {
    let first = line.slices.first().map(|slice| slice.from);
    first.is_some_and(|first| first < life.1) && line.until > life.0
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
    let mut left = STRETCHES_MAX.saturating_add(timelines.slice_count().saturating_mul(STRETCHES_OF_SLICE));
    for process in timelines.plain_processes().to_vec() {
        let most = STRETCHES_MAX.min(left);
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
            timelines.threads_of(&process).flat_map(of_row).take(most + 1).collect::<Vec<_>>()
        };
        let known = graph.map(|graph| {
            // Others may go on after the main thread.
            let after = (graph.life.1, process.life.1);
            let open = TimeSet::new(graph.open_times().into_iter().chain((after.0 < after.1).then_some(after)).collect());
            let others = computing(&open);
            (graph, open, others)
        });
        let Some((graph, open, others)) = known.filter(|(.., others)| others.len() <= most) else {
            let all =
                |line: ThreadLine<'_>| timelines.computes(line.row, process.life).into_iter().map(move |(from, to)| (line.row, from, to));
            let all: Vec<_> = timelines.threads_of(&process).flat_map(all).collect();
            stretches.extend(all.into_iter().map(|(row, from, to)| (process.node, row, from, to)));
            continue;
        };
        left -= others.len();
        let known: Vec<_> = graph.known_times(&open).collect();
        let of_path = known.iter().flat_map(|&(row, from, to)| timelines.waits_of(row, (from, to)));
        let always = (Nanos::MIN, Nanos::MAX);
        let of_node = one_at_a_time(waits.of_node_within(process.node, always), always);
        let of_others = of_node.flat_map(|it| open.between(it.from, it.to).map(move |(from, to)| (it.wait, from, to)));
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
mod many;
#[cfg(test)]
mod tests;
