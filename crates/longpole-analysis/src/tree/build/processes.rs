//! Which processes are nodes, and under which span or process each of them hangs.

use std::collections::{BTreeSet, HashMap, HashSet};

use longpole_model::process::WITNESS_NAME;
use longpole_model::{IdVec, Nanos, Process, ProcessRow, Recording, TimeRange, Timestamp};

use super::parents::{ParentClaim, ParentRef};
use super::{Builder, Entity};
use crate::intervals;
use crate::lists::Lists;
use crate::note::{FirstOf, Note, ProcessName};
use crate::tree::forest::{process_at, process_name, root_process};
use crate::tree::placement::{PlacementRules, ProcessPlace};
use crate::tree::span_list::{ListedSpan, SpanList};
use crate::window;

/// A fork without exec, samples or children that lived shorter is folded into its parent.
const SHORT_FORK_NANOS: i64 = 1_000_000;

/// Processes that serve calls, one started by the other, whose spans are searched for the one that started a process.
const SERVED_MAX: usize = 8;

/// A process fills a span that is longer than its life by at most this part of it.
const FILLED_PART: i64 = 4;

/// Open spans beside each other in which a process is searched for at most.
const FILLED_OF_MAX: usize = 64;

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

/// The processes of a recording.
pub(super) struct Processes<'a> {
    recording: &'a Recording,
    /// When each lived; `None` without a reading of the clock.
    pub(super) ranges: IdVec<ProcessRow, Option<TimeRange>>,
    /// Those with a life of each pid, by start.
    pub(super) of_pid: HashMap<u32, Vec<ProcessRow>>,
    /// The process that forked each.
    pub(super) parent: IdVec<ProcessRow, Option<ProcessRow>>,
    /// The command's own.
    pub(super) root: Option<ProcessRow>,
    /// Forks that count as their parent.
    pub(super) folded: IdVec<ProcessRow, bool>,
    /// Those that rules call served.
    served: IdVec<ProcessRow, bool>,
    /// Those that are nodes.
    pub(super) takes_part: IdVec<ProcessRow, bool>,
    /// What stands at or above each.
    pub(super) above: Above,
}

/// For each process the next one, itself or above it, of a kind. Forks can stand in a line of 100,000, so nothing climbs it for each of them.
#[derive(Debug, Default)]
pub(super) struct Above {
    /// One that is no folded fork.
    pub(super) program: IdVec<ProcessRow, Option<ProcessRow>>,
    /// One that is a node, or the command's own.
    pub(super) node: IdVec<ProcessRow, Option<ProcessRow>>,
    /// One that is neither a folded fork nor served.
    caller: IdVec<ProcessRow, Option<ProcessRow>>,
    /// One of these, or one that is served.
    caller_or_served: IdVec<ProcessRow, Option<ProcessRow>>,
}

/// Whether a process is one that `longpole exec` forked for itself: it lives as long as the command, does nothing, and nothing waits for it.
fn is_witness(process: &Process) -> bool {
    process.name.as_bytes() == WITNESS_NAME.to_bytes()
}

/// The kernel gives a pid again only after its process is gone: ends each of these processes, which stand by start, where the next one starts at
/// the latest. In a file of others thousands may have one pid at a time, and each would have all that any of them did.
fn end_at_next(of_pid: &[ProcessRow], ranges: &mut IdVec<ProcessRow, Option<TimeRange>>) {
    for pair in of_pid.windows(2) {
        let next = ranges[pair[1]].map(|next| next.start);
        if let (Some(range), Some(next)) = (&mut ranges[pair[0]], next) {
            range.end = range.end.min(next);
        }
    }
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
        let mut ranges: IdVec<ProcessRow, Option<TimeRange>> = recording.processes.iter().map(range).collect();
        notes.extend(Note::counted(ranges.iter().filter(|range| range.is_none()).count(), Note::ProcessesUntimed));
        // Processes that longpole attached to were not meant to end.
        if recording.run.end.is_some() && !window::is_attached(recording) {
            let outlived = recording.processes.iter().filter(|process| process.end.is_none());
            let name = |process: &Process| ProcessName { program: process_name(process).to_owned(), pid: process.pid };
            let outlived: FirstOf<ProcessName> = outlived.map(name).collect();
            notes.extend((outlived.all > 0).then_some(Note::OutlivedRun(outlived)));
        }
        let mut of_pid: HashMap<u32, Vec<ProcessRow>> = HashMap::new();
        for (i, process) in recording.process_rows().zip(&recording.processes) {
            if ranges[i].is_some() {
                of_pid.entry(process.pid).or_default().push(i);
            }
        }
        for list in of_pid.values_mut() {
            list.sort_by_key(|&i| (ranges[i].map(|range| range.start), i));
            end_at_next(list, &mut ranges);
        }
        let count = recording.processes.len();
        let mut processes = Processes {
            recording,
            ranges,
            of_pid,
            parent: IdVec::filled(None, count),
            root: root_process(recording),
            folded: IdVec::filled(false, count),
            served: IdVec::filled(false, count),
            takes_part: IdVec::filled(false, count),
            above: Above::default(),
        };
        processes.find_parents();
        processes
    }

    /// The process that emitted each span; nothing where there are no processes, as in files that were imported.
    pub(super) fn of_spans(&self, spans: SpanList<'_>) -> IdVec<ListedSpan, Option<ProcessRow>> {
        let process_of = |span: ListedSpan| {
            let candidates = self.of_pid.get(&spans.example(span).pid?)?;
            process_at(candidates, &self.ranges, spans.head(span).start)
        };
        if self.of_pid.is_empty() { IdVec::default() } else { spans.ids().map(process_of).collect() }
    }

    /// The process that forked each process: the last of that pid that had started before it.
    fn find_parents(&mut self) {
        for (i, process) in self.recording.process_rows().zip(&self.recording.processes) {
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
        claims: &IdVec<ListedSpan, ParentClaim>,
        process_of_span: &IdVec<ListedSpan, Option<ProcessRow>>,
        rules: Option<&dyn PlacementRules>,
        notes: &mut Vec<Note>,
    ) {
        let count = self.recording.processes.len();
        let mut roles: IdVec<ProcessRow, ProcessRole> = IdVec::filled(ProcessRole::default(), count);
        // Without processes there is none for any span.
        for (claim, process) in claims.iter().zip(process_of_span) {
            let Some(process) = *process else { continue };
            let role = &mut roles[process];
            role.spans = true;
            match *claim {
                ParentClaim::Nothing => role.root = true,
                ParentClaim::Run => role.called = true,
                ParentClaim::Span(j) | ParentClaim::Covered { by: j, .. } => role.called |= process_of_span[j] != Some(process),
                ParentClaim::Unknown => role.orphan = true,
            }
        }
        let children = Lists::group(count, self.parent.enumerated().filter_map(|(process, parent)| Some(((*parent)?, process))));
        let sampled: HashSet<u32> = self.recording.samples.iter().map(|s| s.pid).collect();
        let mut folded = 0;
        for p in self.recording.process_rows() {
            let Some(range) = self.ranges[p] else { continue };
            let (process, role) = (&self.recording.processes[p], roles[p]);
            let is_root = Some(p) == self.root;
            if !is_root && !process.execed && !role.spans && self.parent[p].is_some() {
                let idle = range.nanos() < SHORT_FORK_NANOS && !sampled.contains(&process.pid);
                let waits = self.covered(children.get(p), range) >= Nanos(range.nanos()) / 2;
                self.folded[p] = is_witness(process) || if children.get(p).is_empty() { idle } else { waits };
                folded += usize::from(self.folded[p] && !is_witness(process));
            }
            self.served[p] = rules.is_some_and(|rules| rules.is_served(self.place_of(p)));
            // It works for those who call it; what it did is seen at their spans.
            let answers = !role.spans && !process.listens.is_empty() && !is_root;
            let is_node = !role.spans || role.root || (role.orphan && !role.called) || is_root;
            self.takes_part[p] = !self.folded[p] && !self.served[p] && !answers && is_node;
        }
        notes.extend(Note::counted(folded, Note::ForksFolded));
        self.above = self.find_above();
    }

    fn find_above(&self) -> Above {
        // Each parent comes before its children: it started before them, or has an earlier row.
        let mut order: Vec<ProcessRow> = self.recording.process_rows().collect();
        order.sort_by_key(|&p| (self.ranges[p].map(|range| range.start), p));
        let next = |is_it: &dyn Fn(ProcessRow) -> bool| {
            let mut next: IdVec<ProcessRow, Option<ProcessRow>> = IdVec::filled(None, order.len());
            for &p in &order {
                next[p] = if is_it(p) { Some(p) } else { self.parent[p].and_then(|parent| next[parent]) };
            }
            next
        };
        Above {
            program: next(&|p| !self.folded[p]),
            node: next(&|p| self.takes_part[p] || Some(p) == self.root),
            caller: next(&|p| !self.folded[p] && !self.served[p]),
            caller_or_served: next(&|p| !self.folded[p] || self.served[p]),
        }
    }

    fn place_of(&self, process: ProcessRow) -> ProcessPlace<'a> {
        let recording = self.recording;
        let program = |p: ProcessRow| process_name(&recording.processes[p]);
        ProcessPlace {
            process: &recording.processes[process],
            program: program(process),
            parent_program: self.parent[process].map(program),
        }
    }

    /// How much of `range` at least one of the processes lived.
    fn covered(&self, processes: &[ProcessRow], range: TimeRange) -> Nanos {
        let lives = processes.iter().filter_map(|&p| self.ranges[p]).map(|life| (life.start, life.end)).collect();
        let covered = intervals::union(lives).into_iter().filter_map(|life| intervals::clip(life, (range.start, range.end)));
        covered.map(|(from, to)| Nanos(to.nanos_since(from))).sum()
    }

    /// The process that this one's life belongs to: its parent, folded forks and what is served skipped.
    pub(super) fn program_above(&self, process: ProcessRow) -> Option<ProcessRow> {
        self.above.caller[self.parent[process]?]
    }

    /// The programs in whose spans this process may have been started, the nearest first: what served calls on its way up, then the
    /// one that its life belongs to.
    fn starters(&self, process: ProcessRow) -> Vec<ProcessRow> {
        let above = self.program_above(process);
        let next = |process: ProcessRow| self.above.caller_or_served[self.parent[process]?];
        let served = std::iter::successors(next(process), |&p| next(p)).take_while(|&p| Some(p) != above);
        served.take(SERVED_MAX).chain(above).collect()
    }

    /// What stands for a process that is a node.
    pub(super) fn node_ref(&self, process: ProcessRow, spans: SpanList<'_>) -> Option<ParentRef> {
        if Some(process) == self.root {
            Some(ParentRef::Run)
        } else {
            self.takes_part[process].then_some(ParentRef::Entity(Entity::of_process(process, spans)))
        }
    }

    /// Whether a process is a node other than the run.
    pub(super) fn is_inner_node(&self, process: ProcessRow) -> bool {
        self.takes_part[process] && Some(process) != self.root
    }
}

/// What happens in the sweep over a program. At one moment spans open first, then processes ask, then spans close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SweepEvent {
    Opens(ListedSpan),
    Asks(ProcessRow),
    Closes(ListedSpan),
}

impl Builder<'_> {
    /// Where each process that takes part hangs: under the one innermost span of the nearest program above that covers its
    /// life, else under the parent's node, else under the run.
    ///
    /// A sweep over each program that has such children keeps, for every open span, the set of its open children by end.
    /// A process descends from the program's outermost spans: as long as one open span of the level lasts at least as long as the
    /// process, it is inside that one; of several it is inside the one that it fills, if it fills no other one. Else it hangs above them,
    /// and is listed with those that it may be inside.
    pub(super) fn place_processes(&self) -> (IdVec<ProcessRow, ParentRef>, Vec<(ProcessRow, ListedSpan)>) {
        let mut places = IdVec::filled(ParentRef::Run, self.recording.processes.len());
        let mut starters = HashMap::new();
        let mut wanting: HashMap<ProcessRow, Vec<ProcessRow>> = HashMap::new();
        for p in self.recording.process_rows().filter(|&p| self.processes.is_inner_node(p)) {
            if let Some(above) = self.processes.program_above(p) {
                places[p] = self.processes.node_ref(above, self.spans).unwrap_or(ParentRef::Run);
            }
            let programs = self.processes.starters(p);
            programs.iter().for_each(|&program| wanting.entry(program).or_default().push(p));
            starters.insert(p, programs);
        }
        let mut spans_of: HashMap<ProcessRow, Vec<ListedSpan>> = HashMap::new();
        for span in self.spans.ids() {
            if let Some(p) = self.process_of(span).filter(|p| wanting.contains_key(p)) {
                spans_of.entry(p).or_default().push(span);
            }
        }
        let mut found: HashMap<(ProcessRow, ProcessRow), Found> = HashMap::new();
        for (program, spans) in spans_of {
            self.sweep_program(program, &spans, &wanting[&program], &mut |process, place| {
                found.insert((process, program), place);
            });
        }
        let mut maybe = Vec::new();
        for (process, programs) in starters {
            if let Some(place) = programs.iter().find_map(|&program| found.get(&(process, program))) {
                if let Some(inside) = place.inside {
                    places[process] = ParentRef::Entity(Entity::of_span(inside));
                }
                maybe.extend(place.maybe.iter().map(|&span| (process, span)));
            }
        }
        (places, maybe)
    }

    /// Finds the span of a program that covers each of these processes.
    fn sweep_program(&self, program: ProcessRow, spans: &[ListedSpan], processes: &[ProcessRow], found: &mut dyn FnMut(ProcessRow, Found)) {
        let mut events: Vec<(Timestamp, SweepEvent)> = Vec::with_capacity(2 * spans.len() + processes.len());
        for &s in spans {
            let span = self.spans.head(s);
            events.push((span.start, SweepEvent::Opens(s)));
            events.push((span.end.max(span.start), SweepEvent::Closes(s)));
        }
        for &p in processes {
            if let Some(range) = self.processes.ranges[p] {
                events.push((range.start, SweepEvent::Asks(p)));
            }
        }
        events.sort_unstable();
        let level_of = |s: ListedSpan| self.claims[s].span().filter(|&parent| parent != s && self.process_of(parent) == Some(program));
        // Open spans of each level by end; `None` is the level of the program's outermost spans.
        let mut open: HashMap<Option<ListedSpan>, BTreeSet<(Timestamp, ListedSpan)>> = HashMap::new();
        for (_, event) in events {
            match event {
                SweepEvent::Opens(span) => {
                    open.entry(level_of(span)).or_default().insert((self.spans.head(span).end, span));
                }
                SweepEvent::Asks(process) => {
                    let Some(range) = self.processes.ranges[process] else { continue };
                    let mut place = Found::default();
                    for _ in 0..DESCENT_MAX {
                        let Some(spans) = open.get(&place.inside) else { break };
                        match self.cover_of_life(spans, range) {
                            Cover::None => break,
                            Cover::One(inside) => place.inside = Some(inside),
                            Cover::Several(spans) => {
                                place.maybe = spans;
                                break;
                            }
                        }
                    }
                    if place.inside.is_some() || !place.maybe.is_empty() {
                        found(process, place);
                    }
                }
                SweepEvent::Closes(span) => {
                    let level = level_of(span);
                    if let Some(spans) = open.get_mut(&level) {
                        spans.remove(&(self.spans.head(span).end, span));
                        if spans.is_empty() {
                            open.remove(&level);
                        }
                    }
                }
            }
        }
    }

    /// The open span that a process of this life is in: the only one that lasts long enough, or the only one that the process fills. `open` is
    /// ordered by end.
    fn cover_of_life(&self, open: &BTreeSet<(Timestamp, ListedSpan)>, life: TimeRange) -> Cover {
        let covers = open.iter().rev().take_while(|(end, _)| *end >= life.end).map(|&(_, span)| span);
        let covers: Vec<ListedSpan> = covers.take(FILLED_OF_MAX + 1).collect();
        let is_filled = |span: &ListedSpan| {
            let span = self.spans.head(*span);
            span.end.nanos_since(span.start).saturating_sub(life.nanos()) <= life.nanos() / FILLED_PART
        };
        let filled: Vec<ListedSpan> = covers.iter().copied().filter(is_filled).collect();
        match (&covers[..], &filled[..]) {
            ([], _) => Cover::None,
            ([only], _) => Cover::One(*only),
            (_, [only]) if covers.len() <= FILLED_OF_MAX => Cover::One(*only),
            _ => Cover::Several(covers),
        }
    }
}

/// Where a process was started, in the spans of a program.
#[derive(Debug, Default)]
struct Found {
    inside: Option<ListedSpan>,
    /// It is inside one of these as well; nobody knows which.
    maybe: Vec<ListedSpan>,
}

/// Which open spans cover a life.
enum Cover {
    None,
    One(ListedSpan),
    Several(Vec<ListedSpan>),
}
