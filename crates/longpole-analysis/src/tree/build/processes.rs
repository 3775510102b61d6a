//! Which processes are nodes, and under which span or process each of them hangs.

use std::collections::{BTreeSet, HashMap, HashSet};

use longpole_model::{Process, Recording, SumNanos, TimeRange, Timestamp};

use super::Builder;
use super::parents::{ParentClaim, ParentRef};
use crate::intervals;
use crate::note::{FirstOf, Note, ProcessName};
use crate::tree::forest::{process_at, process_name, root_process};
use crate::tree::placement::{PlacementRules, ProcessPlace};
use crate::tree::span_list::SpanList;

/// A fork without exec, samples or children that lived shorter is folded into its parent.
const SHORT_FORK_NANOS: i64 = 1_000_000;

/// Levels of spans descended to find where a process belongs; deeper it is placed at that level.
const DESCENT_MAX: usize = 256;

/// What the spans of one process say about it.
#[derive(Debug, Clone, Copy, Default)]
struct ProcessRole {
    spans: bool,
    /// A span without a parent.
    root: bool,
    /// A span called from elsewhere.
    called: bool,
    orphan: bool,
}

/// The processes of a recording, by their places in `recording.processes`.
pub(super) struct Processes<'a> {
    recording: &'a Recording,
    /// When each lived; `None` without a reading of the clock.
    pub(super) ranges: Vec<Option<TimeRange>>,
    /// Those with a life of each pid, by start.
    pub(super) of_pid: HashMap<u32, Vec<usize>>,
    /// The process that forked each.
    pub(super) parent: Vec<Option<usize>>,
    /// The command's own.
    pub(super) root: Option<usize>,
    /// Forks that count as their parent.
    pub(super) folded: Vec<bool>,
    /// Those that rules call served.
    served: Vec<bool>,
    /// Those that are nodes.
    pub(super) takes_part: Vec<bool>,
}

impl<'a> Processes<'a> {
    pub(super) fn new(recording: &'a Recording, run: TimeRange, notes: &mut Vec<Note>) -> Processes<'a> {
        let wall = |at| recording.clock.to_unix(at);
        let range = |process: &Process| {
            let start = wall(process.start)?;
            let end = match process.end {
                Some(end) => wall(end)?,
                None => run.end,
            };
            Some(TimeRange { start, end: end.max(start) })
        };
        let ranges: Vec<Option<TimeRange>> = recording.processes.iter().map(range).collect();
        notes.extend(Note::counted(ranges.iter().filter(|range| range.is_none()).count(), Note::ProcessesUntimed));
        if recording.run.end.is_some() {
            let outlived = recording.processes.iter().filter(|process| process.end.is_none());
            let name = |process: &Process| ProcessName { program: process_name(process).to_owned(), pid: process.pid };
            let outlived: FirstOf<ProcessName> = outlived.map(name).collect();
            notes.extend((outlived.all > 0).then_some(Note::OutlivedRun(outlived)));
        }
        let mut of_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, process) in recording.processes.iter().enumerate() {
            if ranges[i].is_some() {
                of_pid.entry(process.pid).or_default().push(i);
            }
        }
        for list in of_pid.values_mut() {
            list.sort_by_key(|&i| (ranges[i].map(|range| range.start), i));
        }
        let count = recording.processes.len();
        let mut processes = Processes {
            recording,
            ranges,
            of_pid,
            parent: vec![None; count],
            root: root_process(recording),
            folded: vec![false; count],
            served: vec![false; count],
            takes_part: vec![false; count],
        };
        processes.find_parents();
        processes
    }

    /// The process that emitted each span; nothing where there are no processes, as in files that were imported.
    pub(super) fn of_spans(&self, spans: SpanList<'_>) -> Vec<Option<u32>> {
        let process_of = |span: usize| {
            let candidates = self.of_pid.get(&spans.example(span).pid?)?;
            Some(process_at(candidates, &self.ranges, spans.head(span).start)? as u32)
        };
        let emitted = 0..if self.of_pid.is_empty() { 0 } else { spans.len() };
        emitted.map(process_of).collect()
    }

    /// The process that forked each process: the last of that pid that had started before it.
    fn find_parents(&mut self) {
        for (i, process) in self.recording.processes.iter().enumerate() {
            let (Some(parent_pid), Some(range)) = (process.parent_pid, self.ranges[i]) else { continue };
            let Some(candidates) = self.of_pid.get(&parent_pid) else { continue };
            let key = (range.start, i);
            let before = candidates.partition_point(|&j| self.ranges[j].is_some_and(|r| (r.start, j) < key));
            self.parent[i] = before.checked_sub(1).map(|b| candidates[b]);
        }
    }

    /// Decides which processes are nodes, by what their spans claim.
    pub(super) fn choose(
        &mut self,
        claims: &[ParentClaim],
        process_of_span: &[Option<u32>],
        rules: Option<&dyn PlacementRules>,
        notes: &mut Vec<Note>,
    ) {
        let count = self.recording.processes.len();
        let mut roles = vec![ProcessRole::default(); count];
        // Without processes there is none for any span.
        for (claim, process) in claims.iter().zip(process_of_span) {
            let Some(process) = *process else { continue };
            let role = &mut roles[process as usize];
            role.spans = true;
            match *claim {
                ParentClaim::Nothing => role.root = true,
                ParentClaim::Run => role.called = true,
                ParentClaim::Span(j) | ParentClaim::Covered { by: j, .. } => role.called |= process_of_span[j as usize] != Some(process),
                ParentClaim::Unknown => role.orphan = true,
            }
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (i, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = *parent {
                children[parent].push(i);
            }
        }
        let sampled: HashSet<u32> = self.recording.samples.iter().map(|s| s.pid).collect();
        let mut folded = 0;
        for p in 0..count {
            let Some(range) = self.ranges[p] else { continue };
            let (process, role) = (&self.recording.processes[p], roles[p]);
            let is_root = Some(p) == self.root;
            if !is_root && !process.execed && !role.spans && self.parent[p].is_some() {
                let idle = range.nanos() < SHORT_FORK_NANOS && !sampled.contains(&process.pid);
                let waits = self.covered_nanos(&children[p], range) >= range.nanos() / 2;
                self.folded[p] = if children[p].is_empty() { idle } else { waits };
                folded += usize::from(self.folded[p]);
            }
            self.served[p] = rules.is_some_and(|rules| rules.is_served(self.place_of(p)));
            // It works for those who call it; what it did is seen at their spans.
            let answers = !role.spans && !process.listens.is_empty() && !is_root;
            let is_node = !role.spans || role.root || (role.orphan && !role.called) || is_root;
            self.takes_part[p] = !self.folded[p] && !self.served[p] && !answers && is_node;
        }
        notes.extend(Note::counted(folded, Note::ForksFolded));
    }

    fn place_of(&self, process: usize) -> ProcessPlace<'a> {
        let recording = self.recording;
        let program = |p: usize| process_name(&recording.processes[p]);
        ProcessPlace {
            process: &recording.processes[process],
            program: program(process),
            parent_program: self.parent[process].map(program),
        }
    }

    /// Nanoseconds of `range` in which at least one of the processes lived.
    fn covered_nanos(&self, processes: &[usize], range: TimeRange) -> i64 {
        let lives = processes.iter().filter_map(|&p| self.ranges[p]).map(|life| (life.start, life.end)).collect();
        let covered = intervals::union(lives).into_iter().filter_map(|life| intervals::clip(life, (range.start, range.end)));
        covered.map(|(from, to)| to.nanos_since(from)).sum_nanos()
    }

    /// The process that this one's life belongs to: its parent, folded forks and what is served skipped.
    pub(super) fn program_above(&self, process: usize) -> Option<usize> {
        let mut above = self.parent[process];
        while let Some(p) = above.filter(|&p| self.folded[p] || self.served[p]) {
            above = self.parent[p];
        }
        above
    }

    /// What stands for a process that is a node, where `spans` is the number of spans.
    pub(super) fn node_ref(&self, process: usize, spans: usize) -> Option<ParentRef> {
        if Some(process) == self.root {
            Some(ParentRef::Run)
        } else {
            self.takes_part[process].then_some(ParentRef::Entity((spans + process) as u32))
        }
    }

    /// Whether a process is a node other than the run.
    pub(super) fn is_inner_node(&self, process: usize) -> bool {
        self.takes_part[process] && Some(process) != self.root
    }
}

impl Builder<'_> {
    /// Where each process that takes part hangs: under the one innermost span of the parent's program that covers its
    /// life, else under the parent's node, else under the run.
    ///
    /// A sweep over each program that has such children keeps, for every open span, the set of its open children by end.
    /// A process descends from the program's outermost spans: as long as exactly one open span of the level lasts at
    /// least as long as the process, it is inside that one.
    pub(super) fn place_processes(&self) -> Vec<ParentRef> {
        let mut places = vec![ParentRef::Run; self.recording.processes.len()];
        let mut wanting: HashMap<usize, Vec<usize>> = HashMap::new();
        for (p, place) in places.iter_mut().enumerate() {
            if self.processes.is_inner_node(p)
                && let Some(above) = self.processes.program_above(p)
            {
                *place = self.processes.node_ref(above, self.spans.len()).unwrap_or(ParentRef::Run);
                wanting.entry(above).or_default().push(p);
            }
        }
        let mut spans_of: HashMap<usize, Vec<usize>> = HashMap::new();
        for i in 0..self.spans.len() {
            if let Some(p) = self.process_of(i).filter(|p| wanting.contains_key(p)) {
                spans_of.entry(p).or_default().push(i);
            }
        }
        for (program, spans) in spans_of {
            self.sweep_program(program, &spans, &wanting[&program], &mut places);
        }
        places
    }

    fn sweep_program(&self, program: usize, spans: &[usize], processes: &[usize], places: &mut [ParentRef]) {
        // At one moment: spans open first, then processes ask, then spans close.
        let mut events: Vec<(Timestamp, u8, usize)> = Vec::with_capacity(2 * spans.len() + processes.len());
        for &s in spans {
            let span = self.spans.head(s);
            events.push((span.start, 0, s));
            events.push((span.end.max(span.start), 2, s));
        }
        for &p in processes {
            if let Some(range) = self.processes.ranges[p] {
                events.push((range.start, 1, p));
            }
        }
        events.sort_unstable();
        let level_of = |s: usize| self.claims[s].span().filter(|&parent| parent != s && self.process_of(parent) == Some(program));
        // Open spans of each level by end; `None` is the level of the program's outermost spans.
        let mut open: HashMap<Option<usize>, BTreeSet<(Timestamp, usize)>> = HashMap::new();
        for (_, kind, i) in events {
            match kind {
                0 => {
                    open.entry(level_of(i)).or_default().insert((self.spans.head(i).end, i));
                }
                1 => {
                    let Some(range) = self.processes.ranges[i] else { continue };
                    let mut level = None;
                    for _ in 0..DESCENT_MAX {
                        let Some(spans) = open.get(&level) else { break };
                        let mut longest = spans.iter().rev().take_while(|(end, _)| *end >= range.end);
                        match (longest.next(), longest.next()) {
                            (Some(&(_, only)), None) => level = Some(only),
                            _ => break,
                        }
                    }
                    if let Some(span) = level {
                        places[i] = ParentRef::Entity(span as u32);
                    }
                }
                _ => {
                    let level = level_of(i);
                    if let Some(spans) = open.get_mut(&level) {
                        spans.remove(&(self.spans.head(i).end, i));
                        if spans.is_empty() {
                            open.remove(&level);
                        }
                    }
                }
            }
        }
    }
}
