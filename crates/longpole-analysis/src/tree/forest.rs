//! One forest of spans and processes, rooted in the run: what stands where, and how that is known.
//!
//! Nodes stand in tree pre-order, so the subtree of node `i` is a range. [`build`](super::build) makes it.

use std::collections::HashMap;
use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Process, Recording, Span, SpanId, SpanIndex, TimeRange, Timestamp, TraceId};

use crate::note::Note;

/// "No node".
pub(super) const NONE: u32 = u32::MAX;

/// Spans may stick out of the life of their process by this much: two clocks are involved.
const PROCESS_SLACK_NANOS: i64 = 10_000_000;

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
    pub(super) source: u32,
    /// [`NONE`] for node 0.
    pub(super) parent: u32,
    pub(super) subtree_end: u32,
    /// Levels below node 0.
    pub depth: u32,
    pub(super) is_process: bool,
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

/// All work of a run, in tree pre-order.
#[derive(Debug, Clone)]
pub struct Forest {
    /// The nodes; node 0 is the run.
    pub nodes: Vec<Node>,
    /// What a reader must know about them.
    pub notes: Vec<Note>,
    pub(super) run_id: (TraceId, SpanId),
    /// Made again for the first who asks: few do, and it is large.
    pub(super) span_index: OnceLock<SpanIndex>,
    /// Spans by their ids with another tracer ([`SpanAliases`](super::placement::SpanAliases)), where no other span has them.
    pub(super) span_of_alias: FastMap<(TraceId, SpanId), u32>,
    pub(super) has_placement_rules: bool,
    pub(super) node_of_span: Vec<u32>,
    pub(super) node_of_process: Vec<Option<usize>>,
    pub(super) processes_of_pid: HashMap<u32, Vec<usize>>,
    pub(super) process_ranges: Vec<Option<TimeRange>>,
}

impl Forest {
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
        let by_alias = || self.span_of_alias.get(&(trace, span)).map(|&i| i as usize);
        self.node_of_span(index.get(spans, trace, span).or_else(by_alias)?)
    }

    /// Whether the rules of a tool took part ([`PlacementRules`](super::placement::PlacementRules)); without them no span is that tool's.
    pub(crate) fn has_placement_rules(&self) -> bool {
        self.has_placement_rules
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
pub(super) fn process_name(process: &Process) -> &str {
    let file = base_name(&process.executable);
    if process.name.is_empty() || (process.name.len() >= 15 && file.starts_with(process.name.as_str())) {
        if file.is_empty() { "process" } else { file }
    } else {
        &process.name
    }
}

/// Index of the command's own process.
pub(super) fn root_process(recording: &Recording) -> Option<usize> {
    let pid = recording.run.root_pid?;
    recording.processes.iter().position(|p| p.pid == pid && p.parent_pid.is_none())
}

/// The process among `candidates`, sorted by start, that lived at this moment, give or take [`PROCESS_SLACK_NANOS`].
pub(super) fn process_at(candidates: &[usize], ranges: &[Option<TimeRange>], at: Timestamp) -> Option<usize> {
    // Candidates stand by start; the last that had started is meant, if it had not ended long before.
    let started = candidates.partition_point(|&i| ranges[i].is_some_and(|r| r.start.nanos_since(at) <= PROCESS_SLACK_NANOS));
    let holds = |i: &usize| ranges[*i].is_some_and(|r| at.nanos_since(r.end) <= PROCESS_SLACK_NANOS);
    let inside = |i: &usize| ranges[*i].is_some_and(|r| r.start <= at && at <= r.end);
    let before = &candidates[..started];
    before.iter().rev().take(2).find(|i| inside(i)).or_else(|| before.last().filter(|i| holds(i))).copied()
}
