//! One forest of spans and processes, rooted in the run: what stands where, and how that is known.
//!
//! Nodes stand in tree pre-order, so a node and all below it are a range. [`build`](super::build) makes it.

use std::collections::HashMap;
use std::ops::Index;
use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, NodeId, Process, ProcessRow, Recording, Span, SpanId, SpanIndex, SpanRow, TimeRange, Timestamp, TraceId};

use crate::note::Note;

/// Spans may stick out of the life of their process by this much: two clocks are involved.
const PROCESS_SLACK_NANOS: i64 = 10_000_000;

/// Stands for the service of the command itself.
pub const RUN_SERVICE: &str = "run";

/// Stands for the service of a process that names none.
pub const PROCESS_SERVICE: &str = "process";

/// What a node was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeSource {
    /// The run: the command's own process.
    Root,
    /// A span; of an outline its example.
    Span(SpanRow),
    /// A process.
    Process(ProcessRow),
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

/// One piece of work in the forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// When, in wall time, by the corrected clock. Not cut to the parent: a child may outlive it.
    pub range: TimeRange,
    /// What it was made from.
    pub source: NodeSource,
    /// Its parent; `None` for the run only.
    pub parent: Option<NodeId>,
    /// One past its last descendant, see [`Forest::subtree`].
    pub subtree_end: NodeId,
    /// Levels below node 0.
    pub depth: u32,
    /// How the parent is known.
    pub edge: Edge,
    /// Its parent id names no span of the recording.
    pub orphan: bool,
    /// Its parent edge closed a cycle and was cut.
    pub cycle_broken: bool,
    /// Its end lay before its start and was moved there.
    pub clamped: bool,
}

/// All work of a run, in tree pre-order.
#[derive(Debug, Clone)]
pub struct Forest {
    /// The nodes; the first is the run.
    pub nodes: IdVec<NodeId, Node>,
    /// What a reader must know about them.
    pub notes: Vec<Note>,
    pub(super) run_id: (TraceId, SpanId),
    /// Made again for the first who asks: few do, and it is large.
    pub(super) span_index: OnceLock<SpanIndex>,
    /// Spans by their ids with another tracer ([`SpanAliases`](super::placement::SpanAliases)), where no other span has them.
    pub(super) span_of_alias: FastMap<(TraceId, SpanId), SpanRow>,
    pub(super) has_placement_rules: bool,
    /// Processes and the spans that each may have been started in, where it hangs above several.
    pub(super) maybe_inside: Vec<(NodeId, NodeId)>,
    pub(super) node_of_span: IdVec<SpanRow, NodeId>,
    pub(super) node_of_process: IdVec<ProcessRow, Option<NodeId>>,
    pub(super) processes_of_pid: HashMap<u32, Vec<ProcessRow>>,
    pub(super) process_ranges: IdVec<ProcessRow, Option<TimeRange>>,
    /// The command's own process.
    pub(super) root_process: Option<ProcessRow>,
}

impl Index<NodeId> for Forest {
    type Output = Node;

    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }
}

impl Forest {
    /// Number of nodes, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a forest has its run, always")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Processes and the spans that each may have been started in, where it hangs above several: by process.
    pub(crate) fn maybe_inside(&self) -> &[(NodeId, NodeId)] {
        &self.maybe_inside
    }

    /// All nodes, in tree order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        self.nodes.ids()
    }

    /// The node and all below it.
    pub fn subtree(&self, node: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        node.until(self[node].subtree_end)
    }

    /// When the run was.
    pub fn run_range(&self) -> TimeRange {
        self[NodeId::RUN].range
    }

    /// The node of this span; the run's own id is the run.
    pub fn node_of_id(&self, recording: &Recording, trace: TraceId, span: SpanId) -> Option<NodeId> {
        if (trace, span) == self.run_id {
            return Some(NodeId::RUN);
        }
        let spans = &recording.spans;
        let index = self.span_index.get_or_init(|| SpanIndex::of(spans));
        let by_alias = || self.span_of_alias.get(&(trace, span)).copied();
        self.node_of_span(index.get(spans, trace, span).map(SpanRow::at).or_else(by_alias)?)
    }

    /// Whether the rules of a tool took part ([`PlacementRules`](super::placement::PlacementRules)); without them no span is that tool's.
    pub(crate) fn has_placement_rules(&self) -> bool {
        self.has_placement_rules
    }

    /// The node of a span.
    pub fn node_of_span(&self, span: SpanRow) -> Option<NodeId> {
        self.node_of_span.get(span).copied()
    }

    /// The node that stands for a process: its own; for a folded fork that of the program it belongs to.
    pub fn node_of_process(&self, process: ProcessRow) -> Option<NodeId> {
        self.node_of_process.get(process).copied().flatten()
    }

    /// The process that had this pid at this time.
    pub fn process_at(&self, pid: u32, at: Timestamp) -> Option<ProcessRow> {
        process_at(self.processes_of_pid.get(&pid)?, &self.process_ranges, at)
    }

    /// Children, by start.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + Clone {
        let end = self[node].subtree_end;
        let next = move |&child: &NodeId| Some(self[child].subtree_end).filter(|&next| next < end);
        std::iter::successors(Some(node.next()).filter(|&first| first < end), next)
    }

    /// From when to when a process has its pid: from its start until the next one of that pid starts. The first one has it from the beginning
    /// of time, and the last one until its end: `None`.
    pub(crate) fn turn(&self, recording: &Recording, process: ProcessRow) -> (Option<Timestamp>, Option<Timestamp>) {
        let start = |i: ProcessRow| self.process_ranges[i].map(|range| range.start);
        let of_pid = self.processes_of_pid.get(&recording.processes[process].pid).map_or(&[][..], |of_pid| of_pid);
        let place = of_pid.partition_point(|&i| (start(i), i) < (start(process), process));
        (start(process).filter(|_| place > 0), of_pid.get(place + 1).and_then(|&next| start(next)))
    }

    /// What the node is called: the span's name, the process's, or the command's.
    pub fn name<'a>(&self, recording: &'a Recording, node: NodeId) -> &'a str {
        match self[node].source {
            NodeSource::Root => command_name(recording, self.root_process),
            NodeSource::Span(i) => &recording.spans[i].name,
            NodeSource::Process(i) => process_name(&recording.processes[i]),
        }
    }

    /// What a process is called.
    pub fn program<'a>(&self, recording: &'a Recording, process: ProcessRow) -> &'a str {
        process_name(&recording.processes[process])
    }

    /// `service.name` of a span, or of a process that says it; `process` and `run` for what is no span and says nothing.
    pub fn service<'a>(&self, recording: &'a Recording, node: NodeId) -> &'a str {
        match self[node].source {
            NodeSource::Root => RUN_SERVICE,
            NodeSource::Span(i) => recording.spans[i].service_name(),
            NodeSource::Process(i) => recording.processes[i].resource.attributes.get_str("service.name").unwrap_or(PROCESS_SERVICE),
        }
    }

    /// The span of the node, where it is one.
    pub fn span<'a>(&self, recording: &'a Recording, node: NodeId) -> Option<&'a Span> {
        match self[node].source {
            NodeSource::Span(i) => Some(&recording.spans[i]),
            _ => None,
        }
    }

    /// The process of the node: its own, or the one that emitted the span.
    pub fn process<'a>(&self, recording: &'a Recording, node: NodeId) -> Option<&'a Process> {
        Some(&recording.processes[self.process_row(recording, node)?])
    }

    /// The same by its row.
    pub fn process_row(&self, recording: &Recording, node: NodeId) -> Option<ProcessRow> {
        match self[node].source {
            NodeSource::Root => self.root_process,
            NodeSource::Process(i) => Some(i),
            NodeSource::Span(i) => self.process_at(recording.spans[i].pid?, recording.spans[i].start),
        }
    }
}

/// The name of a file without its folders.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The command, or the program that took its place: `cargo` of `sh -c 'exec cargo build'`.
fn command_name(recording: &Recording, process: Option<ProcessRow>) -> &str {
    let command = recording.run.command.first().map_or("run", |program| base_name(program));
    let process = process.map(|row| &recording.processes[row]);
    // An interpreter has the script among its arguments.
    let is_another = |process: &&Process| !process.arguments.is_empty() && !process.arguments.iter().any(|it| base_name(it) == command);
    process.filter(is_another).map_or(command, process_name)
}

/// The kernel keeps 15 bytes of a name; where the executable's name goes on, that is the name. A program that starts itself again by
/// `/proc/self/exe` is what it calls itself.
pub(super) fn process_name(process: &Process) -> &str {
    let file = base_name(&process.executable);
    if process.name == "exe" {
        let itself = process.arguments.first().map(|first| base_name(first)).filter(|name| !name.is_empty());
        return itself.unwrap_or(if file.is_empty() { "exe" } else { file });
    }
    if process.name.is_empty() || (process.name.len() >= 15 && file.starts_with(process.name.as_str())) {
        if file.is_empty() { "process" } else { file }
    } else {
        &process.name
    }
}

/// The command's own process.
pub(super) fn root_process(recording: &Recording) -> Option<ProcessRow> {
    let pid = recording.run.root_pid?;
    recording.processes.iter().position(|p| p.pid == pid && p.parent_pid.is_none()).map(ProcessRow::at)
}

/// The process among `candidates`, sorted by start, that lived at this moment, give or take [`PROCESS_SLACK_NANOS`].
pub(super) fn process_at(candidates: &[ProcessRow], ranges: &IdVec<ProcessRow, Option<TimeRange>>, at: Timestamp) -> Option<ProcessRow> {
    // Candidates stand by start; the last that had started is meant, if it had not ended long before.
    let started = candidates.partition_point(|&i| ranges[i].is_some_and(|r| r.start.nanos_since(at) <= PROCESS_SLACK_NANOS));
    let holds = |i: &ProcessRow| ranges[*i].is_some_and(|r| at.nanos_since(r.end) <= PROCESS_SLACK_NANOS);
    let inside = |i: &ProcessRow| ranges[*i].is_some_and(|r| r.start <= at && at <= r.end);
    let before = &candidates[..started];
    before.iter().rev().take(2).find(|i| inside(i)).or_else(|| before.last().filter(|i| holds(i))).copied()
}
