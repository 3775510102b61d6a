//! Everything that views ask about one recording: computed once, looked up after.
//!
//! The command line and the server print the same numbers because both ask here. Nodes, poles and functions are indices;
//! [`Handle`] spells them for people: `s1` is node 0, `p1` the first pole, `f1` the function with the largest total.

pub mod blocker_summary;
pub mod code;
mod code_poles;
mod concurrency;
pub mod diff;
mod excerpt;
pub mod fixed_pole;
pub mod flame;
mod forest;
pub mod function_nodes;
pub mod handle;
pub mod held_lock;
pub mod names;
mod on_path;
mod quality;
pub mod reason;
mod samples;
mod savings;
mod select;
mod served;
mod states;
pub mod summary_spans;
mod thread_pieces;
mod thread_poles;
mod threads;
mod usage;
mod waits;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use longpole_model::fast_hash::{FastMap, FastState};
use longpole_model::{CaptureMode, IdVec, Nanos, NodeId, PoleId, ProcessRow, Recording, SampleId, SpanOutline, ThreadKey, Timestamp};

pub use self::excerpt::{CutWait, Excerpt};
pub use self::flame::{FEW_SAMPLES, Flame, FlameTime};
pub use self::handle::{Handle, HandleError};
use crate::code::functions::Functions;
use crate::derive;
pub use crate::link::samples::LinkCounts;
use crate::link::samples::{self as sample_links, SampleNodes};
use crate::link::waits::NodeWaits;
use crate::pulumi::deployment::DeploymentTime;
use crate::pulumi::urn::urn_of;
use crate::schedule::critical_path::CriticalPath;
use crate::schedule::poles::{Pole, Poles, Replays, UntilStopped};
use crate::schedule::recorded::Cover;
use crate::schedule::replay::Replay;
use crate::time::activity::Activity;
pub use crate::time::blocked_by::{BlockedBy, Blocker, WaitedFor};
use crate::time::blockers::{Blockers, Sources};
use crate::time::callees::Servers;
use crate::time::parallelism::{self, InFlight};
use crate::time::states::States;
use crate::time::thread_graph::{self, Recorded, RunReplay, ThreadGraph};
use crate::time::thread_names::ThreadEntries;
use crate::time::timelines::Timelines;
use crate::time::usage::ProcessFigures;
pub use crate::time::wait_groups::WaitSum;
use crate::tree::forest::{Forest, NodeSource};
use crate::tree::labels::Labels;
use crate::window;

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
    /// Where the time of each pole went.
    pole_states: OnceLock<Vec<OnceLock<States>>>,
    figures: OnceLock<IdVec<ProcessRow, ProcessFigures>>,
    servers: OnceLock<Servers>,
    /// The calls of processes and spans that servers of the run answer.
    answers: OnceLock<Vec<served::AnsweredCall>>,
    blockers: OnceLock<Blockers>,
    /// The threads of processes without spans that have several.
    graphs: FastMap<NodeId, ThreadGraph>,
    /// All threads of a run without spans.
    pub(crate) run_graph: Option<ThreadGraph>,
    samples_of_threads: OnceLock<HashMap<ThreadKey, Vec<SampleId>>>,
    /// Places of threads in the recording, the most important first.
    thread_ranks: OnceLock<Vec<usize>>,
    /// The function that each thread begins with, by process and thread.
    entries: ThreadEntries,
    path_states: States,
    /// Where nothing covers anything.
    no_cover: Cover,
    in_flight: InFlight,
    deployment: Option<DeploymentTime>,
    /// The number of spans and traces behind an outline.
    outlined: Option<(usize, usize)>,
}

impl Report {
    /// The report of a recording as it came: derives first what is inferred of it, see [`derive()`].
    pub fn new(mut recording: Recording) -> Report {
        derive(&mut recording, &[]);
        Report::of_derived(recording)
    }

    /// The report of a recording whose spans are folded and whose samples and waits are linked ([`derive()`]), as a store holds it. Computes
    /// everything that every view needs.
    pub fn of_derived(recording: Recording) -> Report {
        Report::of_derived_until(recording, &|| false).expect("nothing stops it")
    }

    /// The same, unless it is stopped; checks that between its steps and savings.
    pub fn of_derived_until(recording: Recording, is_stopped: &dyn Fn() -> bool) -> Option<Report> {
        if is_stopped() {
            return None;
        }
        let forest = Forest::build(&recording);
        Report::of_forest(recording, forest, is_stopped)
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
        Report { outlined, ..Report::of_forest(recording, forest, &|| false).expect("nothing stops it") }
    }

    /// `None` if it is stopped between two steps, or two savings.
    fn of_forest(recording: Recording, forest: Forest, is_stopped: &dyn Fn() -> bool) -> Option<Report> {
        let go_on = || (!is_stopped()).then_some(());
        go_on()?;
        // First, because it needs memory of its own.
        let in_flight = parallelism::in_flight(&forest);
        go_on()?;
        let replay = Replay::new(&recording, &forest);
        go_on()?;
        let mut waits = NodeWaits::of(&recording, &forest);
        let mut timelines = Timelines::new(&recording, &forest);
        go_on()?;
        let origin = forest.run_range().start;
        let blockers = OnceLock::new();
        let run_graph = ThreadGraph::of_run(&Sources { recording: &recording, timelines: &timelines, origin }, &blockers, &forest, &replay);
        let path = match &run_graph {
            Some(graph) => graph.critical_path(&forest),
            None => {
                let path = CriticalPath::of(replay.schedule(), &forest);
                served::through_servers(path, replay.schedule(), &recording, &forest, &waits)
            }
        };
        go_on()?;
        let samples = sample_links::samples_of_nodes(&recording, &forest);
        let graphs = if timelines.plain_processes().is_empty() {
            FastMap::default()
        } else {
            let recorded = Recorded { recording: &recording, servers: &replay.schedule().servers, origin };
            thread_graph::hold(&recorded, blockers.get_or_init(|| Blockers::of(&recording)), &mut timelines, &mut waits)
        };
        let sample_offsets = recording
            .samples
            .iter()
            .map(|s| recording.clock.to_unix(s.time).map_or(Nanos::MIN, |at| Nanos(at.nanos_since(origin))))
            .collect();
        go_on()?;
        let functions = Functions::new(&recording);
        go_on()?;
        let mut report = Report {
            recording,
            forest,
            replay,
            path,
            poles: Poles::default(),
            samples,
            sample_offsets,
            waits,
            timelines,
            functions,
            labels: OnceLock::new(),
            pole_states: OnceLock::new(),
            figures: OnceLock::new(),
            servers: OnceLock::new(),
            answers: OnceLock::new(),
            blockers,
            graphs,
            run_graph,
            samples_of_threads: OnceLock::new(),
            thread_ranks: OnceLock::new(),
            entries: ThreadEntries::default(),
            path_states: States::default(),
            no_cover: Cover::default(),
            in_flight,
            deployment: None,
            outlined: None,
        };
        report.poles = report.find_poles(is_stopped);
        let savable = report.savable();
        report.poles.poles.iter_mut().for_each(|pole| pole.savings = pole.savings.at_most(savable));
        go_on()?;
        report.path_states = report.activity_on_path().states(report.path_stretches(|_| true));
        report.deployment = report.split_deployment();
        Some(report)
    }

    /// The poles; of no use if it is stopped.
    fn find_poles(&self, is_stopped: &dyn Fn() -> bool) -> Poles {
        let (recording, forest) = (&self.recording, &self.forest);
        if self.is_attached() && forest.ids().all(|node| self.is_process(node)) {
            // Its processes did not end, so nothing would have ended sooner; requests would.
            return Poles { between: self.wall(), ..Poles::default() };
        }
        let run = self.run_replay();
        let replays = UntilStopped { replays: self.replays(run.as_ref()), is_stopped };
        self.split_by_code(Poles::new(recording, forest, &self.path, &replays), &replays)
    }

    /// What tells what changes save: the threads of the run if they are known.
    fn replays<'a>(&'a self, run: Option<&'a RunReplay<'a>>) -> &'a dyn Replays {
        match run {
            Some(run) => run,
            None => &self.replay,
        }
    }

    fn run_replay(&self) -> Option<RunReplay<'_>> {
        self.run_graph.as_ref().map(|graph| RunReplay { graph, tree: &self.replay })
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

    /// Time on the path of the groups that are not among the poles.
    pub fn truncated_on_path(&self) -> Nanos {
        self.poles.truncated_on_path
    }

    /// Time of the path in no pole: between operations, or a little of the run's own. With it and what is omitted, the times of all poles add up to the run.
    pub fn between_operations(&self) -> Nanos {
        self.poles.between
    }

    /// Time on the path in which processes waited for work to arrive: in no pole either.
    pub fn idle_on_path(&self) -> Nanos {
        self.poles.idle
    }

    /// The functions, by total weight.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Services and names of all nodes.
    pub fn labels(&self) -> &Labels {
        self.labels.get_or_init(|| Labels::of(&self.recording, &self.forest))
    }

    /// The moment that offsets count from: the start of the run.
    pub fn origin(&self) -> Timestamp {
        self.forest.run_range().start
    }

    /// How long the run was.
    pub fn wall(&self) -> Nanos {
        Nanos(self.forest.run_range().nanos())
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

    /// Whether the recorder attached to processes that ran before and after.
    pub fn is_attached(&self) -> bool {
        window::is_attached(&self.recording)
    }

    /// Whether the recording has nothing but the command's own wall and CPU time.
    pub fn knows_only_the_command(&self) -> bool {
        let recording = &self.recording;
        recording.run.mode == CaptureMode::Off && self.span_count() == 0 && recording.processes.is_empty() && recording.samples.is_empty()
    }

    /// The time that all samples stand for.
    pub fn sampled_nanos(&self) -> u64 {
        self.recording.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.weight_nanos))
    }

    /// Whether it is a profile of another tool, without spans: its samples have no times.
    pub fn is_profile(&self) -> bool {
        self.recording.run.mode == CaptureMode::Imported && self.span_count() == 0
    }

    /// Whether the node is a process without spans.
    pub fn is_plain_process(&self, node: NodeId) -> bool {
        match self.forest[node].source {
            NodeSource::Process(_) => true,
            NodeSource::Root => self.span_count() == 0,
            NodeSource::Span(_) => false,
        }
    }

    /// Whether the states of a node are those of one of its threads at each moment, the one that held it up: it is a process of several threads.
    pub fn states_follow_threads(&self, node: NodeId) -> bool {
        self.graphs.contains_key(&node)
    }

    /// Whether the node was made from a process, the run included.
    pub fn is_process(&self, node: NodeId) -> bool {
        !matches!(self.forest[node].source, NodeSource::Span(_))
    }

    fn activity(&self) -> Activity<'_> {
        self.activity_with(&self.replay.schedule().cover)
    }

    /// The same on the path: if that goes from thread to thread, what is on it is nobody else's.
    fn activity_on_path(&self) -> Activity<'_> {
        self.activity_with(if self.run_graph.is_some() { &self.no_cover } else { &self.replay.schedule().cover })
    }

    fn activity_with<'a>(&'a self, cover: &'a Cover) -> Activity<'a> {
        Activity {
            cover,
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
