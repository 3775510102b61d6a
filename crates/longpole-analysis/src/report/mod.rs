//! Everything that views ask about one recording: computed once, looked up after.
//!
//! The command line and the server print the same numbers because both ask here. Nodes, poles and functions are indices;
//! [`Handle`] spells them for people: `s1` is node 0, `p1` the first pole, `f1` the function with the largest total.

pub mod blocker_summary;
pub mod code;
pub mod diff;
pub mod flame;
mod forest;
pub mod function_nodes;
pub mod handle;
pub mod names;
mod on_path;
pub mod reason;
mod samples;
mod select;
pub mod summary_spans;
mod waits;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use longpole_model::fast_hash::FastState;
use longpole_model::{IdVec, Nanos, NodeId, PoleId, ProcessRow, Recording, SampleId, SpanOutline, ThreadKey, Timestamp, UnsignedNanos};

pub use self::flame::{FEW_SAMPLES, Flame, FlameTime};
pub use self::handle::{Handle, HandleError};
use crate::code::functions::Functions;
use crate::derive;
pub use crate::link::samples::LinkCounts;
use crate::link::samples::{self as sample_links, SampleNodes};
use crate::link::waits::NodeWaits;
use crate::note::Note;
use crate::pulumi::deployment::DeploymentTime;
use crate::pulumi::urn::urn_of;
use crate::schedule::concurrency_limit::Ceiling;
use crate::schedule::critical_path::CriticalPath;
use crate::schedule::poles::{Pole, Poles, Savings};
use crate::schedule::replay::Replay;
use crate::schedule::saving::{Change, Saving};
use crate::time::activity::{Activity, Stretch};
pub use crate::time::blocked_by::{BlockedBy, Blocker, WaitedFor};
use crate::time::blockers::Blockers;
use crate::time::callees::Servers;
use crate::time::parallelism::{self, InFlight, Parallelism, SerialStretch, WorkFigures};
use crate::time::sampling_coverage::ThreadTime;
use crate::time::states::States;
use crate::time::thread_names::ThreadEntries;
use crate::time::threads::{self, Importance, ThreadLife};
use crate::time::timelines::Timelines;
use crate::time::usage::{self, ProcessFigures, UsageFinding};
pub use crate::time::wait_groups::WaitSum;
use crate::tree::forest::{Forest, NodeSource};
use crate::tree::labels::Labels;

/// A recording and all that is known about it.
#[derive(Debug)]
pub struct Report {
    recording: Recording,
    forest: Forest,
    replay: Replay,
    path: CriticalPath,
    poles: Poles,
    samples: SampleNodes,
    sample_offsets: IdVec<SampleId, Nanos>,
    waits: NodeWaits,
    timelines: Timelines,
    functions: Functions,
    labels: OnceLock<Labels>,
    figures: OnceLock<IdVec<ProcessRow, ProcessFigures>>,
    servers: OnceLock<Servers>,
    blockers: OnceLock<Blockers>,
    /// The function that each thread begins with, by process and thread.
    entries: OnceLock<ThreadEntries>,
    path_states: States,
    in_flight: InFlight,
    deployment: Option<DeploymentTime>,
    /// The number of spans and traces behind an outline.
    outlined: Option<(usize, usize)>,
}

impl Report {
    /// The report of a recording as it came: derives first what is inferred of it, see [`derive`].
    pub fn new(mut recording: Recording) -> Report {
        derive(&mut recording, &[]);
        Report::of_derived(recording)
    }

    /// The report of a recording whose spans are folded and whose samples and waits are linked ([`derive`]), as a store holds it. Computes
    /// everything that every view needs.
    pub fn of_derived(recording: Recording) -> Report {
        let forest = Forest::build(&recording);
        Report::of_forest(recording, forest)
    }

    /// The report of a recording from the outline of its spans, which is enough for an answer
    /// ([`outline::is_enough`](crate::report::summary_spans::is_enough)): all numbers are the same. Its example stands for each single
    /// span. `recording` holds everything else, but no samples, because they would name spans that the outline omits.
    pub fn of_outline(recording: Recording, outline: SpanOutline) -> Report {
        let recording = Recording { spans: outline.examples, ..recording };
        let traces = outline.heads.iter().map(|head| head.trace_id).collect::<HashSet<_, FastState>>().len();
        let forest = Forest::of_outline(&recording, &outline.heads);
        let outlined = Some((outline.heads.len(), traces));
        drop(outline.heads);
        Report { outlined, ..Report::of_forest(recording, forest) }
    }

    fn of_forest(recording: Recording, forest: Forest) -> Report {
        // First, because it needs memory of its own.
        let in_flight = parallelism::in_flight(&forest);
        let replay = Replay::new(&recording, &forest);
        let path = CriticalPath::of(replay.schedule(), &forest);
        let poles = Poles::new(&recording, &forest, &path, &replay);
        let samples = sample_links::samples_of_nodes(&recording, &forest);
        let waits = NodeWaits::of(&recording, &forest);
        let timelines = Timelines::new(&recording, &forest);
        let origin = forest.run_range().start;
        let sample_offsets = recording
            .samples
            .iter()
            .map(|s| recording.clock.to_unix(s.time).map_or(Nanos::MIN, |at| Nanos(at.nanos_since(origin))))
            .collect();
        let functions = Functions::new(&recording);
        let mut report = Report {
            recording,
            forest,
            replay,
            path,
            poles,
            samples,
            sample_offsets,
            waits,
            timelines,
            functions,
            labels: OnceLock::new(),
            figures: OnceLock::new(),
            servers: OnceLock::new(),
            blockers: OnceLock::new(),
            entries: OnceLock::new(),
            path_states: States::default(),
            in_flight,
            deployment: None,
            outlined: None,
        };
        report.path_states = report.activity().states(report.path_stretches(|_| true));
        report.deployment = report.split_deployment();
        report
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The forest; node 0 is the run.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// The critical path.
    pub fn critical_path(&self) -> &CriticalPath {
        &self.path
    }

    /// The long poles, ranked.
    pub fn poles(&self) -> &IdVec<PoleId, Pole> {
        &self.poles.poles
    }

    /// Groups on the path that are not among the poles, because they have too little time there.
    pub fn poles_truncated(&self) -> usize {
        self.poles.truncated
    }

    /// The functions, by total weight.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Services and names of all nodes.
    pub fn labels(&self) -> &Labels {
        self.labels.get_or_init(|| Labels::of(&self.recording, &self.forest))
    }

    /// What each process used, in the order of `recording.processes`.
    pub fn figures(&self) -> &IdVec<ProcessRow, ProcessFigures> {
        self.figures.get_or_init(|| usage::figures(&self.recording))
    }

    /// What of it is worth a line.
    pub fn notable_usage(&self) -> Vec<UsageFinding> {
        usage::findings(&self.recording, self.figures())
    }

    /// The moment that offsets count from: the start of the run.
    pub fn origin(&self) -> Timestamp {
        self.forest.run_range().start
    }

    /// How long the run was.
    pub fn wall(&self) -> Nanos {
        Nanos(self.forest.run_range().nanos())
    }

    /// Where the time of the critical path went; sums to the run.
    pub fn path_states(&self) -> States {
        self.path_states
    }

    /// Operations in flight.
    pub fn parallelism(&self) -> Parallelism {
        self.in_flight.parallelism
    }

    /// Stretches of time in which at most one operation was in flight, longest first, at most [`parallelism::SERIAL_MAX`].
    pub fn serial_stretches(&self) -> &[SerialStretch] {
        &self.in_flight.serial
    }

    /// How much work there was, and how much of it could have run at once.
    pub fn work(&self) -> WorkFigures {
        let schedule = self.replay.schedule();
        let work = schedule.nodes().skip(1).map(|node| schedule.own_total(node)).sum();
        let wall = self.wall();
        WorkFigures { work, span: wall - self.path.on_path[NodeId::RUN], wall }
    }

    /// Ceilings of work in flight that the schedule shows.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        self.replay.ceilings()
    }

    /// Where the time of a deployment by Pulumi went, along the critical path; sums to the run. `None` for other runs.
    pub fn deployment_time(&self) -> Option<DeploymentTime> {
        self.deployment
    }

    /// URN of the cloud resource that a node says it works on.
    pub fn resource(&self, node: NodeId) -> Option<&str> {
        self.forest.span(&self.recording, node).and_then(urn_of)
    }

    /// Time of a node that no child of it covers. Its whole time is the length of its range.
    pub fn own_time(&self, node: NodeId) -> Nanos {
        self.replay.schedule().own_total(node)
    }

    /// Number of spans.
    pub fn span_count(&self) -> usize {
        self.outlined.map_or(self.recording.spans.len(), |(spans, _)| spans)
    }

    /// Number of traces that the spans belong to.
    pub fn trace_count(&self) -> usize {
        if let Some((_, traces)) = self.outlined {
            return traces;
        }
        self.recording.spans.iter().map(|s| s.trace_id).collect::<HashSet<_>>().len()
    }

    /// Whether the recorder attached to processes that ran before and after. What other tools recorded cost no recorder of ours.
    pub fn is_attached(&self) -> bool {
        let run = &self.recording.run;
        run.end.is_some() && run.exit.is_none() && run.recorder_cost.is_some()
    }

    /// What a reader of the forest and of the savings must know.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.forest.notes.iter().chain(self.replay.notes())
    }

    /// Everything that is missing or doubtful: what of the machine bears upon all times, losses of the recording, then notes.
    pub fn quality(&self) -> Vec<Note> {
        let losses = self.recording.losses.iter().map(|loss| Note::Loss(loss.clone()));
        let unseen = ThreadTime::of(&self.recording).notes(&self.recording, self.wall());
        unseen.into_iter().chain(losses).chain(self.notes().cloned()).collect()
    }

    /// What the node is called.
    pub fn name(&self, node: NodeId) -> &str {
        self.forest.name(&self.recording, node)
    }

    /// The node's service.
    pub fn service(&self, node: NodeId) -> &str {
        self.forest.service(&self.recording, node)
    }

    /// Whether the node was made from a process, the run included.
    pub fn is_process(&self, node: NodeId) -> bool {
        !matches!(self.forest[node].source, NodeSource::Span(_))
    }

    /// What the run saves if this node alone is fixed.
    pub fn savings(&self, node: NodeId) -> Savings {
        self.savings_of(&[node])
    }

    /// What the run saves if these nodes are fixed, all at once.
    pub fn savings_of(&self, nodes: &[NodeId]) -> Savings {
        Savings::of(&self.replay, nodes)
    }

    /// For each of the first `poles` poles: what the run saves if that pole and all before it took no time. Savings do not add
    /// up where poles run at the same time, or one contains another.
    pub fn saves_with_those_before(&self, poles: usize) -> Vec<Saving> {
        let mut nodes = Vec::new();
        let saves = |pole: &Pole| {
            nodes.extend_from_slice(&pole.nodes);
            nodes.sort_unstable();
            nodes.dedup();
            self.replay.saves(&nodes, Change::Zero)
        };
        self.poles().iter().take(poles).map(saves).collect()
    }

    /// One of the three savings.
    pub fn saves(&self, nodes: &[NodeId], change: Change) -> Saving {
        self.replay.saves(nodes, change)
    }

    /// Where the time of a node went; sums to its duration.
    pub fn node_states(&self, node: NodeId) -> States {
        self.activity().of_node(node)
    }

    /// Where the time of these nodes went, added up.
    pub fn states_of_nodes(&self, nodes: &[NodeId]) -> States {
        let schedule = self.replay.schedule();
        self.activity().states(nodes.iter().map(|&node| Stretch { node, from: schedule.start[node], to: schedule.end[node] }))
    }

    /// Where the time of a node went, by what it and its descendants did; sums to its duration.
    pub fn node_states_with_descendants(&self, node: NodeId) -> States {
        self.activity().with_descendants(node)
    }

    /// What makes each of these threads matter.
    pub fn importance_of_threads(&self, lives: &[ThreadLife]) -> Vec<Importance> {
        let mut in_pole: HashMap<(ThreadKey, PoleId), UnsignedNanos> = HashMap::new();
        let activity = self.activity();
        for (pole, about) in self.poles().enumerated().take(threads::POLES_MAX) {
            for stretch in self.stretches_on_path(&about.nodes) {
                for &sample in activity.samples_in(stretch) {
                    let sample = &self.recording.samples[sample];
                    *in_pole.entry((sample.thread(), pole)).or_default() += UnsignedNanos(sample.weight_nanos);
                }
                for part in activity.waits_in(stretch) {
                    let wait = &self.recording.waits[part.wait];
                    *in_pole.entry((wait.thread(), pole)).or_default() += UnsignedNanos((part.to - part.from).magnitude());
                }
            }
        }
        threads::importance(&self.recording, self.waits.idle(), lives, &in_pole)
    }

    fn activity(&self) -> Activity<'_> {
        Activity {
            recording: &self.recording,
            forest: &self.forest,
            schedule: self.replay.schedule(),
            samples: &self.samples,
            sample_offsets: &self.sample_offsets,
            waits: &self.waits,
            timelines: &self.timelines,
        }
    }
}
