//! Spans and processes → one forest, rooted in the run.
//!
//! ```text
//! run make                              node 0: the command's own process, the whole run
//! ├─ process sh            inferred     no spans of its own: its life is a node
//! │  └─ deploy             inferred     said "my parent is the run"; its process lives inside sh
//! │     ├─ create web      declared     parent id
//! │     │  └─ Create       declared     emitted by a provider, whose process is no node: all its spans
//! │     └─ create db       declared     have a parent elsewhere, and its life would only hide the path
//! └─ process cc1           inferred
//! ```
//!
//! A parent id is believed; what has none is placed by the tree of processes and by time, and its edge says so. Arrival
//! order does not matter: siblings are ordered by start, then by id. A parent may be named by the id that it had in legacy
//! tracing (`bridge`), calls of a provider stand under the registration that waits for them (`resources`), and times are those
//! of one clock (`skew`).
//!
//! Which processes are nodes:
//!
//! - the command itself is node 0;
//! - a process without spans, for its life is all that is known of its work;
//! - a process with spans that have no parent: it becomes their parent;
//! - not a process all of whose spans are called from elsewhere: a server; nor one without spans that listens where spans of
//!   others call; nor Pulumi's plug-ins and the program that its language host runs, whose spans reach us through Pulumi;
//! - not a fork that never executed a program and either did nothing but wait for its own children (a subshell), or was
//!   over at once without a sample: both are still their parent's program, and its time is the parent's.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use longpole_model::{Nanos, Process, Recording, Span, SpanHead, SpanId, SpanIndex, TimeRange, Timestamp, TraceId};

use crate::pulumi::opentracing_bridge::{self, Joined};
use crate::pulumi::resources::{self, Call};
pub use crate::tree::clock_skew::SKEW_NANOS;
use crate::tree::clock_skew::Shifts;
use crate::tree::emitters::Emitters;
use crate::tree::span_list::SpanList;
use longpole_model::quick::QuickMap;

/// "No node".
const NONE: u32 = u32::MAX;

/// A fork without exec, samples or children that lived shorter is folded into its parent.
pub const SHORT_FORK_NANOS: i64 = 1_000_000;

/// Spans may stick out of the life of their process by this much: two clocks are involved.
const PROCESS_SLACK_NANOS: i64 = 10_000_000;

/// So far from its run no span was: a day. Clocks of machines that disagree are corrected before; who starts a run finds what began before.
const OUTSIDE_NANOS: i64 = 86_400_000_000_000;

/// Levels of spans descended to find where a process belongs; deeper it is placed at that level. Also how far a call looks up
/// for the registration that it may stand under already.
const DESCENT_MAX: usize = 256;

/// Processes that outlived the run are named up to so many: a line or two of the answer.
const OUTLIVED_NAMED: usize = 6;

/// Registrations of one resource that are asked whether they cover a call: client and server, in preview and update, and some.
const REGISTRATIONS_MAX: usize = 16;

/// What a node was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeSource {
    /// The run: the command's own process.
    Root,
    /// `recording.spans[i]`; of an outline its example.
    Span(usize),
    /// `recording.processes[i]`.
    Process(usize),
}

/// How a node's parent is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Node 0 has no parent.
    Root,
    /// The span's parent id.
    Declared,
    /// The tree of processes, and time.
    Inferred,
}

/// One piece of work in the forest. There may be a million, so its numbers are those of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// When, in wall time, by the corrected clock. Not cut to the parent: a child may outlive it.
    pub range: TimeRange,
    /// The number of its span or process.
    source: u32,
    /// [`NONE`] for node 0.
    parent: u32,
    subtree_end: u32,
    /// Levels below node 0.
    pub depth: u32,
    is_process: bool,
    /// How the parent is known.
    pub edge: Edge,
    /// Its parent id names no span of the recording.
    pub orphan: bool,
    /// Its parent edge closed a cycle and was cut.
    pub cycle_broken: bool,
    /// Its end lay before its start and was moved there.
    pub clamped: bool,
}

impl Node {
    /// What it was made from.
    pub fn source(&self) -> NodeSource {
        match self.source as usize {
            _ if self.parent == NONE => NodeSource::Root,
            process if self.is_process => NodeSource::Process(process),
            span => NodeSource::Span(span),
        }
    }

    /// Its parent; `None` for node 0 only.
    pub fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }

    /// One past its last descendant: the subtree of `i` is `i..subtree_end`.
    pub fn subtree_end(&self) -> usize {
        self.subtree_end as usize
    }
}

/// Something about the forest or the replay that a reader must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable code: `orphans`, `cycles`, `ends_clamped`, `clock_skew`, `clock_shifted`, `unfinished`, `processes_untimed`,
    /// `forks_folded`, `times_outside_run`, `duplicate_ids`, `legacy_joined`, `resources_unmatched`, `limited_slots`.
    pub code: &'static str,
    /// How many.
    pub count: u64,
    /// Lower-case fragment for people.
    pub detail: String,
}

/// All work of a run, in tree pre-order.
#[derive(Debug, Clone)]
pub struct Forest {
    /// The nodes; node 0 is the run.
    pub nodes: Vec<Node>,
    /// What a reader must know about them.
    pub notes: Vec<Note>,
    run_id: (TraceId, SpanId),
    /// Made again for the first who asks: few do, and it is large.
    span_index: OnceLock<SpanIndex>,
    /// Spans by the ids that legacy tracing gave them, where no other span has them.
    span_of_legacy_id: QuickMap<(TraceId, SpanId), u32>,
    pulumi: bool,
    node_of_span: Vec<u32>,
    node_of_process: Vec<Option<usize>>,
    processes_of_pid: HashMap<u32, Vec<usize>>,
    process_ranges: Vec<Option<TimeRange>>,
}

impl Forest {
    /// The forest of a recording.
    pub fn build(recording: &Recording) -> Forest {
        Builder::new(recording, SpanList::Whole(&recording.spans)).build()
    }

    /// The forest of a recording whose spans are the examples of these.
    pub(crate) fn of_outline(recording: &Recording, heads: &[SpanHead]) -> Forest {
        Builder::new(recording, SpanList::Outline { heads, examples: &recording.spans }).build()
    }

    /// Number of nodes, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a forest has its run, always")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// When the run was: the range of node 0.
    pub fn run_range(&self) -> TimeRange {
        self.nodes[0].range
    }

    /// The node of this span; the run's own id is node 0.
    pub fn node_of_id(&self, recording: &Recording, trace: TraceId, span: SpanId) -> Option<usize> {
        if (trace, span) == self.run_id {
            return Some(0);
        }
        let spans = &recording.spans;
        let index = self.span_index.get_or_init(|| SpanIndex::of(spans));
        let legacy = || self.span_of_legacy_id.get(&(trace, span)).map(|&i| i as usize);
        self.node_of_span(index.get(spans, trace, span).or_else(legacy)?)
    }

    /// Whether any span is Pulumi's, or from legacy tracing.
    pub(crate) fn pulumi(&self) -> bool {
        self.pulumi
    }

    /// The node of `recording.spans[i]`.
    pub fn node_of_span(&self, span: usize) -> Option<usize> {
        self.node_of_span.get(span).map(|&node| node as usize)
    }

    /// The node that stands for `recording.processes[i]`: its own; for a folded fork that of the program it belongs to.
    pub fn node_of_process(&self, process: usize) -> Option<usize> {
        self.node_of_process.get(process).copied().flatten()
    }

    /// The process that had this pid at this time.
    pub fn process_at(&self, pid: u32, at: Timestamp) -> Option<usize> {
        process_at(self.processes_of_pid.get(&pid)?, &self.process_ranges, at)
    }

    /// Children, by start.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + Clone {
        let end = self.nodes[node].subtree_end();
        let next = move |&child: &usize| Some(self.nodes[child].subtree_end()).filter(|&next| next < end);
        std::iter::successors(Some(node + 1).filter(|&first| first < end), next)
    }

    /// What the node is called: the span's name, the process's, or the command's.
    pub fn name<'a>(&self, recording: &'a Recording, node: usize) -> &'a str {
        match self.nodes[node].source() {
            NodeSource::Root => command_name(recording),
            NodeSource::Span(i) => &recording.spans[i].name,
            NodeSource::Process(i) => process_name(&recording.processes[i]),
        }
    }

    /// What `recording.processes[i]` is called.
    pub fn program<'a>(&self, recording: &'a Recording, process: usize) -> &'a str {
        process_name(&recording.processes[process])
    }

    /// `service.name` of a span, or of a process that says it; `process` and `run` for what is no span and says nothing.
    pub fn service<'a>(&self, recording: &'a Recording, node: usize) -> &'a str {
        match self.nodes[node].source() {
            NodeSource::Root => "run",
            NodeSource::Span(i) => recording.spans[i].service_name(),
            NodeSource::Process(i) => recording.processes[i].resource.attributes.get_str("service.name").unwrap_or("process"),
        }
    }

    /// The span of the node, where it is one.
    pub fn span<'a>(&self, recording: &'a Recording, node: usize) -> Option<&'a Span> {
        match self.nodes[node].source() {
            NodeSource::Span(i) => Some(&recording.spans[i]),
            _ => None,
        }
    }

    /// The process of the node: its own, or the one that emitted the span.
    pub fn process<'a>(&self, recording: &'a Recording, node: usize) -> Option<&'a Process> {
        recording.processes.get(self.process_number(recording, node)?)
    }

    /// The place of that process in `recording.processes`.
    pub fn process_number(&self, recording: &Recording, node: usize) -> Option<usize> {
        match self.nodes[node].source() {
            NodeSource::Root => root_process(recording),
            NodeSource::Process(i) => Some(i),
            NodeSource::Span(i) => self.process_at(recording.spans[i].pid?, recording.spans[i].start),
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn command_name(recording: &Recording) -> &str {
    recording.run.command.first().map_or("run", |program| base_name(program))
}

/// The kernel keeps 15 bytes of a name; where the executable's name goes on, that is the name.
fn process_name(process: &Process) -> &str {
    let file = base_name(&process.executable);
    if process.name.is_empty() || (process.name.len() >= 15 && file.starts_with(process.name.as_str())) {
        if file.is_empty() { "process" } else { file }
    } else {
        &process.name
    }
}

/// Index of the command's own process.
fn root_process(recording: &Recording) -> Option<usize> {
    let pid = recording.run.root_pid?;
    recording.processes.iter().position(|p| p.pid == pid && p.parent_pid.is_none())
}

/// A span's times, those far away moved to the end of the run that is nearer: a span that says no start would make work of 56 years of it.
fn near(run: TimeRange, said: TimeRange) -> TimeRange {
    let moved = |at: Timestamp| {
        if run.start.nanos_since(at) > OUTSIDE_NANOS {
            run.start
        } else if at.nanos_since(run.end) > OUTSIDE_NANOS {
            run.end
        } else {
            at
        }
    };
    let range = TimeRange { start: moved(said.start), end: moved(said.end) };
    if range.start <= range.end {
        return range;
    }
    // One of them is far away and the other, on the same side of the run, is not: the one that was moved holds.
    let at = if range.start == said.start { range.end } else { range.start };
    TimeRange { start: at, end: at }
}

fn process_at(candidates: &[usize], ranges: &[Option<TimeRange>], at: Timestamp) -> Option<usize> {
    // Candidates stand by start; the last that had started is meant, if it had not ended long before.
    let started = candidates.partition_point(|&i| ranges[i].is_some_and(|r| r.start.nanos_since(at) <= PROCESS_SLACK_NANOS));
    let holds = |i: &usize| ranges[*i].is_some_and(|r| at.nanos_since(r.end) <= PROCESS_SLACK_NANOS);
    let inside = |i: &usize| ranges[*i].is_some_and(|r| r.start <= at && at <= r.end);
    let before = &candidates[..started];
    before.iter().rev().take(2).find(|i| inside(i)).or_else(|| before.last().filter(|i| holds(i))).copied()
}

/// Where something hangs, before nodes have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Run,
    /// Entity: `spans` first, then `processes`.
    Entity(u32),
}

/// What a span's parent id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Run,
    Span(u32),
    /// A legacy span without a known parent, and the command's span that covers it.
    Covered {
        by: u32,
        orphan: bool,
    },
    Unknown,
}

/// What the spans of one process tell about it.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    spans: bool,
    /// A span without a parent.
    root: bool,
    /// A span called from elsewhere.
    called: bool,
    orphan: bool,
}

struct Builder<'a> {
    recording: &'a Recording,
    spans: SpanList<'a>,
    emitters: Emitters,
    pulumi: bool,
    joined: Joined,
    shifts: Shifts,
    /// When each span was, by the corrected clock.
    span_ranges: Vec<TimeRange>,
    run: TimeRange,
    notes: Vec<Note>,
    process_ranges: Vec<Option<TimeRange>>,
    processes_of_pid: HashMap<u32, Vec<usize>>,
    process_parent: Vec<Option<usize>>,
    /// Empty where there are no processes.
    process_of_span: Vec<Option<u32>>,
    root: Option<usize>,
    folded: Vec<bool>,
    takes_part: Vec<bool>,
}

impl<'a> Builder<'a> {
    fn new(recording: &'a Recording, spans: SpanList<'a>) -> Self {
        let mut notes = Vec::new();
        let clock = &recording.clock;
        let start = recording.run.start;
        let wall = |at| clock.to_unix(at);
        let seen = || {
            let spans = spans.heads().map(|s| s.end.max(s.start)).max();
            let processes = recording.processes.iter().filter_map(|p| wall(p.end.unwrap_or(p.start))).max();
            let samples = recording.samples.last().and_then(|s| wall(s.time));
            let slices = recording.cpu_slices.iter().map(|s| s.end).max().and_then(wall);
            [spans, processes, samples, slices].into_iter().flatten().max().unwrap_or(start)
        };
        if recording.run.end.is_none() {
            notes.push(Note {
                code: "unfinished",
                count: 1,
                detail: "the end of the run is not known; the latest thing seen stands for it".to_owned(),
            });
        }
        let run = TimeRange { start, end: recording.run.end.unwrap_or_else(seen).max(start) };
        let process_ranges: Vec<Option<TimeRange>> = recording
            .processes
            .iter()
            .map(|p| {
                let start = wall(p.start)?;
                let end = match p.end {
                    Some(end) => wall(end)?,
                    None => run.end,
                };
                Some(TimeRange { start, end: end.max(start) })
            })
            .collect();
        let untimed = process_ranges.iter().filter(|r| r.is_none()).count() as u64;
        if untimed > 0 {
            let detail = "processes without a reading of the clock are not in the tree".to_owned();
            notes.push(Note { code: "processes_untimed", count: untimed, detail });
        }
        let outlived: Vec<&Process> = recording.processes.iter().filter(|p| p.end.is_none()).collect();
        if !outlived.is_empty() && recording.run.end.is_some() {
            let named: Vec<String> = outlived.iter().take(OUTLIVED_NAMED).map(|p| format!("{} (pid {})", process_name(p), p.pid)).collect();
            let more = outlived.len() - named.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let detail = format!("processes that outlived the run; it ends theirs here: {}{more}", named.join(", "));
            notes.push(Note { code: "unfinished", count: outlived.len() as u64, detail });
        }
        let mut processes_of_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, process) in recording.processes.iter().enumerate() {
            if process_ranges[i].is_some() {
                processes_of_pid.entry(process.pid).or_default().push(i);
            }
        }
        for list in processes_of_pid.values_mut() {
            list.sort_by_key(|&i| (process_ranges[i].map(|r| r.start), i));
        }
        let process_of = |span: usize| {
            let candidates = processes_of_pid.get(&spans.example(span).pid?)?;
            Some(process_at(candidates, &process_ranges, spans.head(span).start)? as u32)
        };
        // Files that were imported have no processes.
        let emitted = 0..if processes_of_pid.is_empty() { 0 } else { spans.len() };
        let process_of_span = emitted.map(process_of).collect();
        let count = recording.processes.len();
        let emitters = Emitters::of(spans);
        let pulumi = opentracing_bridge::concerns(emitters.examples(spans));
        Builder {
            recording,
            spans,
            emitters,
            pulumi,
            joined: if pulumi { Joined::of(recording) } else { Joined::default() },
            shifts: Shifts::default(),
            span_ranges: Vec::new(),
            run,
            notes,
            process_ranges,
            processes_of_pid,
            process_parent: vec![None; count],
            process_of_span,
            root: root_process(recording),
            folded: vec![false; count],
            takes_part: vec![false; count],
        }
    }

    /// The process that emitted a span.
    fn process_of(&self, span: usize) -> Option<usize> {
        self.process_of_span.get(span).copied().flatten().map(|process| process as usize)
    }

    fn span_count(&self) -> usize {
        self.spans.len()
    }

    fn note(&mut self, code: &'static str, count: usize, detail: &str) {
        if count > 0 {
            self.notes.push(Note { code, count: count as u64, detail: detail.to_owned() });
        }
    }

    fn build(mut self) -> Forest {
        self.find_process_parents();
        let said = self.read_parent_ids();
        self.correct_clocks(&said);
        self.choose_processes(&said);
        let inner = self.place_processes(&said);

        let spans = self.span_count();
        let entities = spans + self.recording.processes.len();
        let mut place = vec![Place::Run; entities];
        let mut edge = vec![Edge::Inferred; entities];
        for i in 0..spans {
            (place[i], edge[i]) = self.place_span(i, said[i]);
        }
        self.adopt_calls(&said, &mut place, &mut edge);
        self.adopt_program_runs(&said, &mut place, &mut edge);
        place[spans..].copy_from_slice(&inner);
        let mut present = vec![true; entities];
        for p in 0..self.recording.processes.len() {
            present[spans + p] = self.takes_part[p] && Some(p) != self.root;
        }
        let cycle_broken = self.break_cycles(&mut place, &mut edge, &present);
        self.lay_out(&said, &place, &edge, &present, &cycle_broken)
    }

    /// The process that forked each process: the last of that pid that had started before it.
    fn find_process_parents(&mut self) {
        for (i, process) in self.recording.processes.iter().enumerate() {
            let (Some(parent_pid), Some(range)) = (process.parent_pid, self.process_ranges[i]) else { continue };
            let Some(candidates) = self.processes_of_pid.get(&parent_pid) else { continue };
            let key = (range.start, i);
            let before = candidates.partition_point(|&j| self.process_ranges[j].is_some_and(|r| (r.start, j) < key));
            self.process_parent[i] = before.checked_sub(1).map(|b| candidates[b]);
        }
    }

    fn read_parent_ids(&mut self) -> Vec<Said> {
        let run = &self.recording.run;
        let spans = self.spans;
        let index = spans.index();
        let duplicates = spans.len() - index.len();
        self.note("duplicate_ids", duplicates, "spans whose id another span has too; children hang under the first");
        let joined = &self.joined;
        let mut by_legacy_id = 0;
        let covered = |i: usize, orphan: bool| match joined.hosts.get(&i) {
            Some(&by) => Said::Covered { by: by as u32, orphan },
            None if orphan => Said::Unknown,
            None => Said::Nothing,
        };
        let mut read = |(i, span): (usize, SpanHead)| match span.parent_span_id {
            None => covered(i, false),
            Some(parent) if span.trace_id == run.trace_id && parent == run.root_span_id => Said::Run,
            Some(parent) => {
                if let Some(j) = spans.find(&index, span.trace_id, parent) {
                    Said::Span(j as u32)
                } else if let Some(&j) = joined.by_legacy_id.get(&parent).filter(|&&j| j != i) {
                    by_legacy_id += u64::from(!opentracing_bridge::is_legacy(spans.example(i)));
                    Said::Span(j as u32)
                } else {
                    covered(i, true)
                }
            }
        };
        let said: Vec<Said> = spans.heads().enumerate().map(&mut read).collect();
        if joined.pairs + by_legacy_id > 0 {
            let detail = format!("operations that two tracers saw are one; {by_legacy_id} spans found their parent by its legacy id");
            self.notes.push(Note { code: "legacy_joined", count: self.joined.pairs, detail });
        }
        let orphans = said.iter().filter(|s| matches!(s, Said::Unknown | Said::Covered { orphan: true, .. })).count();
        self.note("orphans", orphans, "spans whose parent is not in the recording; they hang under their process, or the run");
        said
    }

    fn correct_clocks(&mut self, said: &[Said]) {
        let parent = |i: usize| match said[i] {
            Said::Span(j) => Some(j as usize),
            _ => None,
        };
        let emitters = std::mem::take(&mut self.emitters);
        self.shifts = Shifts::find(self.recording, self.spans, &emitters, &parent);
        self.notes.extend(self.shifts.note.take());
        let (run, mut outside) = (self.run, 0);
        let mut corrected = |(i, span): (usize, SpanHead)| {
            let shift = self.shifts.of(i);
            let start = span.start.plus_nanos(shift);
            let said = TimeRange { start, end: span.end.plus_nanos(shift).max(start) };
            let range = near(run, said);
            outside += usize::from(range != said);
            range
        };
        self.span_ranges = self.spans.heads().enumerate().map(&mut corrected).collect();
        let detail = "spans that say times more than a day away from the run, as one without a start does: they begin and end with it here";
        self.note("times_outside_run", outside, detail);
    }

    fn choose_processes(&mut self, said: &[Said]) {
        let count = self.recording.processes.len();
        let mut seen = vec![Seen::default(); count];
        for (i, said) in said.iter().enumerate() {
            let Some(p) = self.process_of(i) else { continue };
            let seen = &mut seen[p];
            seen.spans = true;
            match *said {
                Said::Nothing => seen.root = true,
                Said::Run => seen.called = true,
                Said::Span(j) | Said::Covered { by: j, .. } => seen.called |= self.process_of(j as usize) != Some(p),
                Said::Unknown => seen.orphan = true,
            }
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (i, parent) in self.process_parent.iter().enumerate() {
            if let Some(parent) = *parent {
                children[parent].push(i);
            }
        }
        let sampled: HashSet<u32> = self.recording.samples.iter().map(|s| s.pid).collect();
        let mut folded = 0;
        for p in 0..count {
            let Some(range) = self.process_ranges[p] else { continue };
            let process = &self.recording.processes[p];
            if Some(p) != self.root && !process.execed && !seen[p].spans && self.process_parent[p].is_some() {
                let idle = range.nanos() < SHORT_FORK_NANOS && !sampled.contains(&process.pid);
                let waits = self.covered_nanos(&children[p], range) >= range.nanos() / 2;
                self.folded[p] = if children[p].is_empty() { idle } else { waits };
                folded += usize::from(self.folded[p]);
            }
            let served = self.pulumi && self.is_served_by_pulumi(p);
            // It works for those who call it; what it did is seen at their spans.
            let answers = !seen[p].spans && !process.listens.is_empty() && Some(p) != self.root;
            self.takes_part[p] = !self.folded[p]
                && !served
                && !answers
                && (!seen[p].spans || seen[p].root || (seen[p].orphan && !seen[p].called) || Some(p) == self.root);
        }
        self.note("forks_folded", folded, "forks that ran no program of their own (subshells, short helpers) count as their parent");
    }

    /// Whether the process is one of Pulumi's plug-ins, or the program that a language host runs: not what it runs to build that.
    fn is_served_by_pulumi(&self, process: usize) -> bool {
        let program = |p: usize| process_name(&self.recording.processes[p]);
        let above = self.process_parent[process].map(program);
        resources::is_plugin(program(process))
            || (above.is_some_and(resources::is_language_host) && !resources::is_build_tool(&self.recording.processes[process]))
    }

    /// Nanoseconds of `range` in which at least one of the processes lived.
    fn covered_nanos(&self, processes: &[usize], range: TimeRange) -> i64 {
        let mut ranges: Vec<TimeRange> = processes.iter().filter_map(|&p| self.process_ranges[p]).collect();
        ranges.sort_by_key(|r| r.start);
        let (mut covered, mut until) = (0i64, range.start);
        for r in ranges {
            let (start, end) = (r.start.max(until), r.end.min(range.end));
            covered.add_nanos(end.nanos_since(start).max(0));
            until = until.max(end);
        }
        covered
    }

    /// The process that this one's life belongs to: its parent, folded forks and what Pulumi serves skipped.
    fn program_above(&self, process: usize) -> Option<usize> {
        let mut above = self.process_parent[process];
        while let Some(p) = above.filter(|&p| self.folded[p] || (self.pulumi && !self.takes_part[p] && self.is_served_by_pulumi(p))) {
            above = self.process_parent[p];
        }
        above
    }

    fn node_place(&self, process: usize) -> Option<Place> {
        if Some(process) == self.root {
            Some(Place::Run)
        } else {
            self.takes_part[process].then_some(Place::Entity((self.span_count() + process) as u32))
        }
    }

    fn place_span(&self, span: usize, said: Said) -> (Place, Edge) {
        let own = self.process_of(span);
        match said {
            Said::Span(parent) => (Place::Entity(parent), Edge::Declared),
            Said::Covered { by, .. } => (Place::Entity(by), Edge::Inferred),
            Said::Nothing | Said::Unknown => (own.and_then(|p| self.node_place(p)).unwrap_or(Place::Run), Edge::Inferred),
            Said::Run => {
                // Every process of the run inherits the run's `TRACEPARENT`, so this says no more than "inside the run".
                // A shell or a build tool between the command and this process has a node, which is the better place.
                let mut above = own;
                while let Some(p) = above {
                    match self.node_place(p) {
                        Some(Place::Run) => break,
                        Some(place) => return (place, Edge::Inferred),
                        None => above = self.process_parent[p],
                    }
                }
                (Place::Run, Edge::Declared)
            }
        }
    }

    /// Where each process that takes part hangs: under the one innermost span of the parent's program that covers its
    /// life, else under the parent's node, else under the run.
    ///
    /// A sweep over each program that has such children keeps, for every open span, the set of its open children by end.
    /// A process descends from the program's outermost spans: as long as exactly one open span of the level lasts at
    /// least as long as the process, it is inside that one.
    fn place_processes(&self, said: &[Said]) -> Vec<Place> {
        let mut places = vec![Place::Run; self.recording.processes.len()];
        let mut wanting: HashMap<usize, Vec<usize>> = HashMap::new();
        for (p, place) in places.iter_mut().enumerate() {
            if self.takes_part[p]
                && Some(p) != self.root
                && let Some(above) = self.program_above(p)
            {
                *place = self.node_place(above).unwrap_or(Place::Run);
                wanting.entry(above).or_default().push(p);
            }
        }
        let mut spans_of: HashMap<usize, Vec<usize>> = HashMap::new();
        for i in 0..self.span_count() {
            if let Some(p) = self.process_of(i).filter(|p| wanting.contains_key(p)) {
                spans_of.entry(p).or_default().push(i);
            }
        }
        for (program, spans) in spans_of {
            self.sweep_program(program, &spans, &wanting[&program], said, &mut places);
        }
        places
    }

    fn sweep_program(&self, program: usize, spans: &[usize], processes: &[usize], said: &[Said], places: &mut [Place]) {
        // At one moment: spans open first, then processes ask, then spans close.
        let mut events: Vec<(Timestamp, u8, usize)> = Vec::with_capacity(2 * spans.len() + processes.len());
        for &s in spans {
            let span = self.spans.head(s);
            events.push((span.start, 0, s));
            events.push((span.end.max(span.start), 2, s));
        }
        for &p in processes {
            if let Some(range) = self.process_ranges[p] {
                events.push((range.start, 1, p));
            }
        }
        events.sort_unstable();
        let level_of = |s: usize| match said[s] {
            Said::Span(j) if j as usize != s && self.process_of(j as usize) == Some(program) => Some(j as usize),
            _ => None,
        };
        // Open spans of each level by end; `None` is the level of the program's outermost spans.
        let mut open: HashMap<Option<usize>, BTreeSet<(Timestamp, usize)>> = HashMap::new();
        for (_, kind, i) in events {
            match kind {
                0 => {
                    open.entry(level_of(i)).or_default().insert((self.spans.head(i).end, i));
                }
                1 => {
                    let Some(range) = self.process_ranges[i] else { continue };
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
                        places[i] = Place::Entity(span as u32);
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

    /// Puts the calls of providers under the registration of the same resource that covers them. The engine makes them in its own
    /// name, so their parent ids say no more than "inside the deployment"; but the registration is over when they are.
    fn adopt_calls(&self, said: &[Said], place: &mut [Place], edge: &mut [Edge]) {
        if !self.pulumi {
            return;
        }
        let spans = &self.recording.spans;
        let working: Vec<(usize, &str, Call)> =
            spans.iter().enumerate().filter_map(|(i, s)| Some((i, resources::urn_of(s)?, Call::of(&s.name)?))).collect();
        let mut registrations: HashMap<&str, Vec<(Timestamp, usize)>> = HashMap::new();
        for &(i, urn, _) in working.iter().filter(|w| w.2.waits_for_work()) {
            registrations.entry(urn).or_default().push((self.span_ranges[i].start, i));
        }
        for list in registrations.values_mut() {
            list.sort_by_key(|&(start, i)| (start, self.key(i)));
        }
        // Whether it stands below another span of the resource already.
        let inside = |i: usize, urn: &str| {
            let mut at = i;
            for _ in 0..DESCENT_MAX {
                let Said::Span(parent) = said[at] else { return false };
                let parent = parent as usize;
                if resources::urn_of(&spans[parent]) == Some(urn) {
                    return true;
                }
                at = parent;
            }
            false
        };
        for (i, urn, _) in working.into_iter().filter(|w| !w.2.waits_for_work()) {
            let Some(list) = registrations.get(urn) else { continue };
            let range = self.span_ranges[i];
            let before = &list[..list.partition_point(|&(start, _)| start <= range.start)];
            let covering = before.iter().rev().take(REGISTRATIONS_MAX).find(|&&(_, r)| range.end <= self.span_ranges[r].end);
            if let Some(&(_, registration)) = covering
                && !inside(i, urn)
            {
                place[i] = Place::Entity(registration as u32);
                edge[i] = Edge::Inferred;
            }
        }
    }

    /// Puts the call that runs the program under the span that says so: Pulumi gives both the same parent.
    fn adopt_program_runs(&self, said: &[Said], place: &mut [Place], edge: &mut [Edge]) {
        if !self.pulumi {
            return;
        }
        let parent_of = |i: usize| if let Said::Span(parent) = said[i] { Some(parent as usize) } else { None };
        let named = |name: &'static str| {
            let spans = self.recording.spans.iter().enumerate();
            spans.filter(move |(_, span)| span.name == name).filter_map(move |(i, _)| Some((parent_of(i)?, i)))
        };
        let programs: HashMap<usize, usize> = named(resources::RUN_PROGRAM).collect();
        for (parent, call) in named(resources::RUN_PROGRAM_CALL) {
            let Some(&program) = programs.get(&parent) else { continue };
            let (outer, inner) = (self.span_ranges[program], self.span_ranges[call]);
            if outer.start <= inner.start && inner.end <= outer.end {
                place[call] = Place::Entity(program as u32);
                edge[call] = Edge::Inferred;
            }
        }
    }

    fn start(&self, entity: usize) -> Timestamp {
        match self.span_ranges.get(entity) {
            Some(range) => range.start,
            None => self.process_ranges[entity - self.span_ranges.len()].map_or(self.run.start, |r| r.start),
        }
    }

    /// What decides between siblings, and which edge of a cycle is cut: never the order of arrival.
    fn key(&self, entity: usize) -> (Timestamp, bool, [u8; 24], usize) {
        let spans = self.span_count();
        let mut id = [0; 24];
        if entity < spans {
            let span = self.spans.head(entity);
            id[..16].copy_from_slice(&span.trace_id.bytes());
            id[16..].copy_from_slice(&span.span_id.bytes());
            (self.start(entity), true, id, entity)
        } else {
            let process = entity - spans;
            id[..4].copy_from_slice(&self.recording.processes[process].pid.to_be_bytes());
            (self.start(entity), false, id, entity)
        }
    }

    /// Cuts each cycle at its earliest member, which then hangs under the run.
    fn break_cycles(&mut self, place: &mut [Place], edge: &mut [Edge], present: &[bool]) -> Vec<bool> {
        const NEW: u8 = 0;
        const ON_WALK: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; place.len()];
        let mut broken = vec![false; place.len()];
        let mut walk = Vec::new();
        for first in (0..place.len()).filter(|&e| present[e]) {
            let mut at = first;
            while state[at] == NEW {
                state[at] = ON_WALK;
                walk.push(at);
                match place[at] {
                    Place::Run => break,
                    Place::Entity(next) => at = next as usize,
                }
            }
            if state[at] == ON_WALK
                && let Place::Entity(_) = place[at]
                && let Some(begin) = walk.iter().position(|&e| e == at)
                && let Some(&cut) = walk[begin..].iter().min_by_key(|&&e| self.key(e))
            {
                place[cut] = Place::Run;
                edge[cut] = Edge::Inferred;
                broken[cut] = true;
            }
            for e in walk.drain(..) {
                state[e] = DONE;
            }
        }
        let count = broken.iter().filter(|b| **b).count();
        self.note("cycles", count, "spans that were their own ancestors; the cycle is cut at its earliest span");
        broken
    }

    fn lay_out(mut self, said: &[Said], place: &[Place], edge: &[Edge], present: &[bool], cycle_broken: &[bool]) -> Forest {
        let spans = self.span_count();
        let mut order: Vec<u32> = (0..place.len() as u32).filter(|&e| present[e as usize]).collect();
        // The whole key only where starts are equal: it is longer than what it decides.
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            self.start(a).cmp(&self.start(b)).then_with(|| self.key(a).cmp(&self.key(b)))
        });
        // Children of each entity, then of the run, in that order: one counting pass, one filling pass.
        let run_slot = place.len();
        let slot = |e: usize| match place[e] {
            Place::Run => run_slot,
            Place::Entity(parent) => parent as usize,
        };
        let mut starts = vec![0u32; run_slot + 2];
        for &e in &order {
            starts[slot(e as usize) + 1] += 1;
        }
        for i in 0..=run_slot {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut children = vec![0u32; order.len()];
        for &e in &order {
            let at = &mut fill[slot(e as usize)];
            children[*at as usize] = e;
            *at += 1;
        }
        drop((order, fill));
        let children_of = |slot: usize| children[starts[slot] as usize..starts[slot + 1] as usize].iter().map(|&e| e as usize);

        let mut nodes = Vec::with_capacity(children.len() + 1);
        nodes.push(Node {
            range: self.run,
            source: NONE,
            parent: NONE,
            subtree_end: 0,
            depth: 0,
            is_process: true,
            edge: Edge::Root,
            orphan: false,
            cycle_broken: false,
            clamped: false,
        });
        let mut node_of = vec![0u32; place.len()];
        let mut stack: Vec<(u32, u32)> = children_of(run_slot).rev().map(|e| (e as u32, 0)).collect();
        while let Some((e, parent)) = stack.pop() {
            let e = e as usize;
            let (source, range, clamped) = if e < spans {
                let head = self.spans.head(e);
                (head.example, self.span_ranges[e], head.end < head.start)
            } else {
                ((e - spans) as u32, self.process_ranges[e - spans].unwrap_or(self.run), false)
            };
            let index = nodes.len() as u32;
            node_of[e] = index;
            nodes.push(Node {
                range,
                source,
                parent,
                subtree_end: 0,
                depth: nodes[parent as usize].depth + 1,
                is_process: e >= spans,
                edge: edge[e],
                orphan: e < spans && matches!(said[e], Said::Unknown | Said::Covered { orphan: true, .. }),
                cycle_broken: cycle_broken[e],
                clamped,
            });
            stack.extend(children_of(e).rev().map(|child| (child as u32, index)));
        }
        drop((children, starts));
        for i in (0..nodes.len()).rev() {
            nodes[i].subtree_end = nodes[i].subtree_end.max(i as u32 + 1);
            if let Some(parent) = nodes[i].parent() {
                nodes[parent].subtree_end = nodes[parent].subtree_end.max(nodes[i].subtree_end);
            }
        }

        let clamped = nodes.iter().filter(|n| n.clamped).count();
        self.note("ends_clamped", clamped, "spans that end before they start; their end was moved to the start");
        let skewed = nodes.iter().filter(|n| {
            let early = n.parent().map_or(0, |p| nodes[p].range.start.nanos_since(n.range.start));
            n.edge == Edge::Declared && n.parent() != Some(0) && early > SKEW_NANOS
        });
        let skewed = skewed.count();
        self.note("clock_skew", skewed, "spans that start before their parent does: two clocks disagree, or a parent is wrong");

        let mut span_of_legacy_id = QuickMap::default();
        for &(id, span) in &self.joined.legacy_ids {
            span_of_legacy_id.entry(id).or_insert(span as u32);
        }
        let node_of_process = (0..self.recording.processes.len())
            .map(|p| {
                let mut program = Some(p);
                while let Some(q) = program.filter(|&q| self.folded[q]) {
                    program = self.process_parent[q];
                }
                let program = program?;
                if Some(program) == self.root { Some(0) } else { self.takes_part[program].then(|| node_of[spans + program] as usize) }
            })
            .collect();
        let mut node_of_span = node_of;
        node_of_span.truncate(spans);
        if let SpanList::Outline { heads, examples } = self.spans {
            // Who is asked for, by the ids of links, is an example for itself alone.
            let mut nodes = vec![0; examples.len()];
            heads.iter().zip(node_of_span).for_each(|(head, node)| nodes[head.example as usize] = node);
            node_of_span = nodes;
        }
        // Notes of one code say one thing; the earliest word order is kept.
        self.notes.sort_by_key(|n| Reverse(n.count));
        self.notes.sort_by_key(|n| n.code);
        Forest {
            nodes,
            notes: self.notes,
            run_id: (self.recording.run.trace_id, self.recording.run.root_span_id),
            span_index: OnceLock::new(),
            span_of_legacy_id,
            pulumi: self.pulumi,
            node_of_span,
            node_of_process,
            processes_of_pid: self.processes_of_pid,
            process_ranges: self.process_ranges,
        }
    }
}

#[cfg(test)]
mod tests;
