//! The threads of all processes of a run without spans, as one graph: its path goes from process to process, and what a run saves is replayed
//! over all of them.
//!
//! ```text
//! sh        =|.. waits for the child ..................|=|
//! python    |==start==|.. reads a pipe ......|==write==|
//! helper         |=|============ encode =====|
//! path      =|==start=|============ encode ===|==write==|=|
//! ```
//!
//! A process starts when its parent starts it, and a parent that waits for a child goes on when that has ended. A process that something ended
//! while it slept was ended by its parent, if that waited for its end by then.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use longpole_model::{CaptureMode, Id, IdVec, Monotonic, Nanos, NodeId, ThreadKey, TimeRange};

use super::job_slots::AllJobs;
use super::replay::Removal;
use super::{EndedBy, KILLED_NANOS, LineId, ThreadGraph, Ties, is_main};
use crate::schedule::critical_path::{CriticalPath, OnPath, Segment};
use crate::schedule::poles::{LimitedBy, PolePart, Replays};
use crate::schedule::recorded;
use crate::schedule::replay::{LIMITED_PART, Replay};
use crate::schedule::saving::{Saving, ScheduleEvidence};
use crate::time::blockers::{Blockers, Sources};
use crate::time::timelines::ThreadLine;
use crate::tree::forest::{Forest, NodeSource};
use crate::window;

/// A process without records that lives for more than this part of the run leaves too much unknown.
const UNSEEN_PART: i64 = 100;

/// One signal to a group of processes ends all of them within that time.
const SIGNAL_NANOS: Nanos = Nanos(10_000_000);

/// A thread is beside the path if it is there for less than this part of what another one takes.
const BESIDE_PART: i64 = 10;

/// Processes that wait for each other in a chain, at most: what is inferred may be a circle.
const CHAIN_MAX: usize = 64;

impl ThreadGraph {
    /// The graph of a run; `None` if it has spans, if records of its threads are missing, or if they wait too often.
    pub(crate) fn of_run<'a>(
        sources: &Sources<'a>,
        blockers: &OnceLock<Blockers>,
        forest: &Forest,
        replay: &Replay,
    ) -> Option<ThreadGraph> {
        let Sources { recording, timelines, .. } = *sources;
        let is_run = recording.run.mode != CaptureMode::Imported && recording.spans.is_empty() && !window::is_attached(recording);
        if !is_run || !timelines.has_all_switches() {
            return None;
        }
        let origin = forest.run_range().start;
        let pids: HashSet<u32> = recording.processes.iter().map(|process| process.pid).collect();
        // A number of a process that was given again says nothing of a thread.
        if pids.len() < recording.processes.len() {
            return None;
        }
        let nodes: HashMap<u32, NodeId> =
            recording.process_rows().filter_map(|row| Some((recording.processes[row].pid, forest.node_of_process(row)?))).collect();
        let parents = recording.processes.iter().filter_map(|process| Some((process.pid, process.parent_pid?)));
        let parents: HashMap<u32, u32> = parents.filter(|(_, parent)| nodes.contains_key(parent)).collect();
        let at = |at: Monotonic| recording.clock.to_unix(at).map(|at| recorded::offset(at, origin));
        let lives = recording.processes.iter().filter_map(|process| Some((process.pid, (at(process.start)?, process.end.and_then(at)))));
        let lives: HashMap<u32, (Nanos, Option<Nanos>)> = lives.collect();
        let line = |line: ThreadLine<'a>| {
            let (_, end) = *lives.get(&line.thread.pid.0)?;
            Some(ThreadLine { until: end.map_or(line.until, |end| line.until.min(end)), ..line })
        };
        let threads: Vec<ThreadLine<'_>> =
            timelines.threads().filter(|line| nodes.contains_key(&line.thread.pid.0)).filter_map(line).collect();
        // What an unseen process did decides about its parent, unless it was short.
        let seen: HashSet<u32> = threads.iter().map(|line| line.thread.pid.0).collect();
        let wall = Nanos(forest.run_range().nanos());
        let is_unseen =
            |(pid, (start, end)): (&u32, &(Nanos, Option<Nanos>))| !seen.contains(pid) && end.unwrap_or(wall) - *start > wall / UNSEEN_PART;
        if lives.iter().any(is_unseen) {
            return None;
        }
        let root = forest.process(recording, NodeId::RUN)?.pid;
        let blockers = blockers.get_or_init(|| Blockers::of(recording));
        let ties = Ties::new(sources, blockers, &threads, parents.clone());
        let main = ties.line(ThreadKey::new(root, root))?;
        let born = |id: LineId, line: &ThreadLine<'_>| {
            let pid = line.thread.pid.0;
            let (creator, born) = if is_main(line.thread) {
                (*parents.get(&pid)?, line.born.or_else(|| Some(lives.get(&pid)?.0))?)
            } else {
                (pid, line.born?)
            };
            (id != main).then_some(())?;
            Some((born, ties.creator(id, creator, born)?))
        };
        let node = |line: &ThreadLine<'_>| nodes[&line.thread.pid.0];
        let mut graph = ThreadGraph::of(&ties, main, (Nanos::ZERO, wall), node, born)?;
        if recording.run.cpus > 0 {
            graph.lent = super::lent::lent(&threads, recording.run.cpus);
        }
        graph.find_killed();
        graph.find_background(forest, replay);
        graph.follow_chains();
        graph.jobs = AllJobs::find(&graph.lines, |line| forest.name(recording, line.node));
        (graph.path, graph.is_certain) = graph.find_path(main);
        Some(graph)
    }

    /// A signal ends a wait for a process that waits for a child itself, which goes on: the wait was for that child.
    fn follow_chains(&mut self) {
        let waits_for = |line: LineId, at: Nanos| {
            let gaps = &self.lines[line].gaps;
            let gap = gaps.get(gaps.partition_point(|gap| gap.to <= at)).filter(|gap| gap.from < at)?;
            let EndedBy::Thread(other) = gap.ended_by else { return None };
            // Inside a process one may wait for a lock, or an end.
            let is_child = !gap.takes && is_main(self.lines[other].thread) && self.lines[other].thread.pid != self.lines[line].thread.pid;
            // The child goes on after that wait: it did not end it. Or one signal ended both of them, the child first.
            let goes_on = self.lines[other].until > gap.to || self.lines[other].until > at && gap.to - at <= SIGNAL_NANOS;
            let is_there = goes_on && self.lines[other].born.is_none_or(|(born, _)| born < at);
            (is_child && is_there).then_some(other)
        };
        let mut changed = Vec::new();
        for (line, it) in self.lines.enumerated() {
            for (place, gap) in it.gaps.iter().enumerate() {
                let EndedBy::Thread(first) = gap.ended_by else { continue };
                let chain = std::iter::successors(Some(first), |&other| waits_for(other, gap.to.min(self.lines[other].until)));
                if let Some(last) = chain.take(CHAIN_MAX).last().filter(|last| *last != first && *last != line) {
                    changed.push((line, place, last));
                }
            }
        }
        for (line, place, last) in changed {
            self.lines[line].gaps[place].ended_by = EndedBy::Thread(last);
        }
    }

    /// Finds who ended processes that slept when they ended.
    fn find_killed(&mut self) {
        let mut killed = Vec::new();
        for waiting in self.lines.ids() {
            for gap in &self.lines[waiting].gaps {
                let EndedBy::Thread(other) = gap.ended_by else { continue };
                let last = self.lines[other].gaps.last().filter(|last| last.to == self.lines[other].until);
                let since = self.lines[other].until - gap.from;
                if last.is_some_and(|last| last.from < gap.from) && since >= Nanos::ZERO && since <= KILLED_NANOS {
                    killed.push((other, waiting, gap.from));
                }
            }
        }
        for (line, by, at) in killed {
            if let Some(last) = self.lines[line].gaps.last_mut() {
                last.ended_by = EndedBy::Killer(by, at);
            }
        }
    }

    /// Nobody joins a process whose end nobody waited for, unless its parent waited for what it did.
    fn find_background(&mut self, forest: &Forest, replay: &Replay) {
        let mut waited_for: IdVec<LineId, bool> = IdVec::filled(false, self.lines.len());
        for line in &self.lines {
            for gap in &line.gaps {
                if let EndedBy::Thread(other) = gap.ended_by {
                    waited_for[other] = true;
                }
            }
        }
        for (line, waited_for) in self.lines.iter_mut().zip(&waited_for) {
            let is_node = matches!(forest[line.node].source, NodeSource::Process(_));
            line.is_joined = *waited_for || !(is_main(line.thread) && is_node && replay.schedule().end_host[line.node].is_none());
        }
    }

    /// The path of the run, by node.
    pub(crate) fn critical_path(&self, forest: &Forest) -> CriticalPath {
        let run = forest.run_range();
        let mut path = CriticalPath { segments: Vec::new(), on_path: IdVec::filled(Nanos::ZERO, forest.len()) };
        for same in self.path.chunk_by(|a, b| self.lines[a.line].node == self.lines[b.line].node) {
            let (Some(first), Some(last)) = (same.first(), same.last()) else { continue };
            let node = self.lines[first.line].node;
            path.on_path[node] += last.to - first.from;
            let range = TimeRange { start: run.start.plus_nanos(first.from.0), end: run.start.plus_nanos(last.to.0) };
            path.segments.push(Segment { node, range });
        }
        path
    }

    /// The threads of these nodes.
    pub(crate) fn lines_of(&self, nodes: &[NodeId]) -> impl Iterator<Item = LineId> {
        let nodes: HashSet<NodeId> = nodes.iter().copied().collect();
        self.lines.enumerated().filter(move |(_, line)| nodes.contains(&line.node)).map(|(id, _)| id)
    }

    /// All that the threads of these nodes do.
    pub(crate) fn whole(&self, nodes: &[NodeId]) -> Vec<(LineId, Nanos, Nanos)> {
        let life = |id: LineId| {
            let (from, to) = self.life_of(id);
            (id, from, to)
        };
        self.lines_of(nodes).map(life).collect()
    }
}

/// What a run saves, by its graph.
pub(crate) struct RunReplay<'a> {
    pub(crate) graph: &'a ThreadGraph,
    pub(crate) tree: &'a Replay,
}

impl RunReplay<'_> {
    /// What the run saves if these nodes and all below them take no time, and these pieces of threads neither.
    pub(crate) fn saves_together(&self, nodes: &[NodeId], pieces: &[(NodeId, usize, Nanos, Nanos)]) -> Saving {
        let nodes = self.graph.whole(&self.subtrees(nodes));
        self.graph.without(nodes.into_iter().chain(lines(pieces))).ends_earlier(false)
    }

    /// What holds up the run without these times of threads of nodes, if the saving is less than they take: a process beside the path, or another
    /// thread of these nodes.
    fn limit(&self, saving: Saving, takes: Nanos, removal: &Removal<'_>, nodes: &[NodeId]) -> Option<LimitedBy> {
        if saving.high >= takes - takes / LIMITED_PART {
            return None;
        }
        let limit = removal.limit()?;
        let (graph, node) = (self.graph, self.graph.node_of(limit));
        // One that is on the path already explains nothing.
        let is_on_path = || graph.path().iter().any(|stretch| graph.node_of(stretch.line) == node);
        if node != NodeId::RUN && !nodes.contains(&node) && !is_on_path() {
            return Some(LimitedBy::Node(node));
        }
        let of_limit = graph.path().iter().filter(|stretch| stretch.line == limit);
        let on_path: Nanos = of_limit.map(|stretch| stretch.to - stretch.from).sum();
        let is_beside = nodes.contains(&node) && !removal.has(limit) && on_path < takes / BESIDE_PART;
        is_beside.then(|| LimitedBy::Thread(node, graph.thread(limit).0))
    }

    /// The three savings of nodes, and what is taken out for the first two.
    fn replay_nodes(&self, nodes: &[NodeId], below: &[NodeId]) -> ([Saving; 3], Removal<'_>) {
        let of = |nodes: &[NodeId]| self.graph.without(self.graph.whole(nodes).into_iter());
        let (all, own) = (of(below), of(nodes));
        ([all.ends_earlier(false), all.ends_earlier(true), own.ends_earlier(false)], all)
    }

    /// With all below them; what stands below another one of them, once.
    fn subtrees(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let schedule = self.tree.schedule();
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        let mut all: Vec<NodeId> = Vec::new();
        for node in nodes {
            if all.last().is_some_and(|last| node <= *last) {
                continue;
            }
            // All lies inside the run: its own time is what it saves.
            let end = if node == NodeId::RUN { node.next() } else { schedule.subtree_end[node] };
            all.extend(node.until(end));
        }
        all
    }
}

impl Replays for RunReplay<'_> {
    fn saves_all(&self, nodes: &[NodeId]) -> [Saving; 3] {
        self.replay_nodes(nodes, &self.subtrees(nodes)).0
    }

    fn saves_nodes(&self, nodes: &[NodeId], on_path: &OnPath) -> ([Saving; 3], Option<LimitedBy>) {
        let below = self.subtrees(nodes);
        let (saves, removal) = self.replay_nodes(nodes, &below);
        let takes = if nodes.contains(&NodeId::RUN) { saves[0].high } else { on_path.in_subtrees(self.tree.schedule(), nodes) };
        let limit = self.limit(saves[0], takes, &removal, &below);
        (saves, limit)
    }

    fn saves_part(&self, part: &PolePart, takes: Nanos, _: &OnPath) -> ([Saving; 2], Option<LimitedBy>) {
        let removal = self.graph.without(lines(&part.of_threads));
        let saves = [false, true].map(|is_half| removal.ends_earlier(is_half));
        let nodes: Vec<NodeId> = part.on_path.iter().map(|(node, ..)| *node).collect();
        let limit = self.limit(saves[0], takes, &removal, &nodes);
        (saves, limit)
    }

    fn evidence(&self, node: NodeId) -> ScheduleEvidence {
        if self.graph.is_certain { self.tree.evidence(node) } else { ScheduleEvidence::Inferred }
    }

    fn is_server(&self, node: NodeId) -> bool {
        self.tree.schedule().servers.contains(node)
    }

    /// On the machine as it was: what wants a CPU comes first, whoever had it.
    fn rank(&self, saving: Saving) -> Nanos {
        saving.high
    }
}

/// The threads of these pieces of nodes.
fn lines(pieces: &[(NodeId, usize, Nanos, Nanos)]) -> impl Iterator<Item = (LineId, Nanos, Nanos)> {
    pieces.iter().map(|&(_, place, from, to)| (LineId::at(place), from, to))
}
