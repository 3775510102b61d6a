//! Everything that views ask about one recording: computed once, looked up after.
//!
//! The command line and the server print the same numbers because both ask here. Nodes, poles and functions are indices;
//! [`Handle`] spells them for people: `s1` is node 0, `p1` the first pole, `f1` the function with the largest total.

pub mod diff;
mod forest;
pub mod summary_spans;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::OnceLock;

use longpole_model::resource_event::PAYLOAD_LOGS;
use longpole_model::{
    Evidence as LinkEvidence, Monotonic, Nanos, Recording, SampleLink, SpanOutline, StackId, SumNanos, Timestamp, TraceId, Wait, WaitKind,
};

use crate::code::call_tree::CallTree;
use crate::code::functions::{Frames, FunctionWeight, Functions, LineWeight};
use crate::code::origin::Whose;
use crate::intervals;
use crate::link::samples::{self, SampleNodes};
use crate::link::waits::{self, NodeWait, NodeWaits};
use crate::note::{self, Note};
use crate::pulumi::deployment::{self, DeploymentTime, ProviderCpu};
use crate::pulumi::opentracing_bridge;
use crate::pulumi::urn::urn_of;
use crate::schedule::concurrency_limit::Ceiling;
use crate::schedule::critical_path::CriticalPath;
use crate::schedule::poles::{Pole, Poles, Savings};
use crate::schedule::replay::Replay;
use crate::schedule::saving::{Change, Saving};
use crate::time::activity::{Activity, Stretch};
use crate::time::blockers::{Blockers, Evidence as BlockerEvidence, LOOK_NANOS, Relation, Seen, Who};
use crate::time::callees::{self, Servers};
use crate::time::parallelism::{self, InFlight, Parallelism, SerialStretch, WorkFigures};
use crate::time::sampling_coverage::ThreadTime;
use crate::time::states::States;
use crate::time::threads::{self, Importance, ThreadLife};
use crate::time::timelines::Timelines;
use crate::time::usage::{self, Notable, ProcessFigures};
use crate::tree::forest::{Forest, NodeSource};
use longpole_model::quick::{QuickMap, QuickState};

/// Below so many samples a flame graph says that they are few.
pub const FEW_SAMPLES: u64 = 20;

/// Fewer short waits than this say nothing of the others.
const SHORT_WAITS_MIN: usize = 3;

/// From this share of its own time a pole is called busy.
const BUSY_PERCENT: i64 = 60;

/// From this share of its own time on it is said that a busy pole did not get the CPUs it could have used.
const RUNNABLE_PERCENT: i64 = 10;

/// Samples in which it is looked for what threads begin with; those that wait are known by their waits.
const ENTRY_SAMPLES_MAX: usize = 1 << 20;

/// From this share of its own time on it is said of a busy pole, too, what it waits for.
const BESIDE_PERCENT: i64 = 15;

/// Up to this share of its own time a pole is said to wait.
const WAITING_PERCENT: i64 = 20;

/// What people call a node, a pole or a function; stable inside a sealed recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Handle {
    /// `s1` is node 0.
    Node(usize),
    /// `p1` is pole 0.
    Pole(usize),
    /// `f1` is function 0.
    Function(usize),
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handle::Node(i) => write!(f, "s{}", i + 1),
            Handle::Pole(i) => write!(f, "p{}", i + 1),
            Handle::Function(i) => write!(f, "f{}", i + 1),
        }
    }
}

/// The text is no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleError;

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a handle such as s12, p1 or f3")
    }
}

impl std::error::Error for HandleError {}

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Self, HandleError> {
        let kind = text.chars().next().ok_or(HandleError)?;
        let digits = &text[kind.len_utf8()..];
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(HandleError);
        }
        let index = digits.parse::<usize>().map_err(|_| HandleError)? - 1;
        match kind {
            's' => Ok(Handle::Node(index)),
            'p' => Ok(Handle::Pole(index)),
            'f' => Ok(Handle::Function(index)),
            _ => Err(HandleError),
        }
    }
}

/// How samples were tied to their spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// By the context record.
    pub record: u64,
    /// By the thread's journal.
    pub journal: u64,
    /// By labels of a profile that was read.
    pub label: u64,
    /// By process and time.
    pub inferred: u64,
    /// Several spans could own them.
    pub ambiguous: u64,
    /// No span was open there.
    pub none: u64,
}

/// Services and names of all nodes, each text once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Distinct services, in order of their first node.
    pub services: Vec<String>,
    /// Distinct names, in order of their first node.
    pub names: Vec<String>,
    /// For each node its place in `services`.
    pub service: Vec<u32>,
    /// For each node its place in `names`.
    pub name: Vec<u32>,
}

/// A flame graph and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// The tree.
    pub tree: CallTree,
    /// How its samples are tied to their spans.
    pub links: LinkCounts,
    /// Which time it shows.
    pub time: FlameTime,
    /// Waits with a stack that are left out of the whole run's: those of threads that work for no span, idle workers among them.
    pub left_out_waits: u64,
}

/// Which time a flame graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlameTime {
    /// On a CPU, by samples.
    #[default]
    OnCpu,
    /// Blocked, by the waits that were looked at: lengths are exact.
    OffCpu,
    /// Both.
    Wall,
}

impl FlameTime {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            FlameTime::OnCpu => "on_cpu",
            FlameTime::OffCpu => "off_cpu",
            FlameTime::Wall => "wall",
        }
    }

    /// The time of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [FlameTime::OnCpu, FlameTime::OffCpu, FlameTime::Wall].into_iter().find(|time| time.as_str() == word)
    }
}

impl Flame {
    /// Whether there are too few samples to read much into it.
    pub fn few_samples(&self) -> bool {
        self.time != FlameTime::OffCpu && self.tree.samples < FEW_SAMPLES
    }
}

/// A node whose own samples or waits contain a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FunctionInNode {
    /// The node.
    pub node: usize,
    /// Its own samples with the function.
    pub samples: u64,
    /// Their weight.
    pub total_nanos: u64,
    /// Its own waits with the function.
    pub waited_nanos: u64,
    /// The samples' share of the node's own samples.
    pub share: f64,
}

/// Where a function ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FunctionNodes {
    /// Largest weight first.
    pub nodes: Vec<FunctionInNode>,
    /// Operations that these nodes are of, largest weight first.
    pub operations: Vec<FunctionInOperation>,
    /// Samples with the function that belong to no node.
    pub unlinked_samples: u64,
    /// Those among them that could belong to several spans.
    pub ambiguous_samples: u64,
    /// Waits with the function, whomever they belong to.
    pub waits: u64,
    /// How long they were.
    pub waited_nanos: u64,
    /// Those of them that belong to no node.
    pub unlinked_waited_nanos: u64,
}

/// Nodes of one service and name whose own samples contain a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FunctionInOperation {
    /// One of them.
    pub example: usize,
    /// How many there are.
    pub nodes: u64,
    /// Their own samples with the function.
    pub samples: u64,
    /// Their weight.
    pub total_nanos: u64,
    /// Their own waits with the function.
    pub waited_nanos: u64,
    /// The samples' share of the own samples of all nodes of the operation.
    pub share: f64,
}

/// Why a pole is long, as far as its states tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasonCode {
    /// It computes.
    OnCpu,
    /// It is hardly on a CPU: blocked, awaiting, remote, runnable, or nobody knows.
    Waits,
    /// Some of both.
    Mixed,
    /// Its own time is too short for the sampling rate.
    FewSamples,
    /// The recording has no samples.
    NoSamples,
}

impl ReasonCode {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            ReasonCode::OnCpu => "on_cpu",
            ReasonCode::Waits => "waits",
            ReasonCode::Mixed => "mixed",
            ReasonCode::FewSamples => "few_samples",
            ReasonCode::NoSamples => "no_samples",
        }
    }
}

/// Why a pole is long, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: ReasonCode,
    /// Lower-case fragment for people.
    pub text: String,
    /// The function that the text names.
    pub function: Option<String>,
    /// The function of a library that the text says most of it is in.
    pub mostly_in: Option<String>,
}

/// The function to name for some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// One of the program's own code, where there is one.
    pub function: usize,
    /// The function of a library, or of the language, that is called there and holds most of it.
    pub mostly_in: Option<usize>,
}

/// Waits of one kind in one function.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSum<'a> {
    /// One of them.
    pub wait: &'a Wait,
    /// How long they were; where threads waited at the same time, that time once.
    pub nanos: i64,
    /// Threads that waited.
    pub threads: usize,
    /// Lines of the function where they were, longest first.
    pub places: Vec<WaitPlace<'a>>,
    /// What other threads were for them.
    pub relation: Option<Relation>,
    parts: Vec<PartOfWait>,
}

/// Waits on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitPlace<'a> {
    /// The source file.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// How long they were.
    pub nanos: i64,
}

/// A stretch of a wait, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PartOfWait {
    wait: u32,
    from: i64,
    to: i64,
    /// How much of it counts.
    nanos: i64,
}

/// The other side of calls: who answers them, and what was seen of it meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Callee<'a> {
    /// The address that is called.
    pub address: SocketAddr,
    /// Processes that take connections there, in `recording.processes`; several where one forked others to share the work. None where
    /// nobody was seen.
    pub processes: Vec<usize>,
    /// Whether a span of it answers: then that says what it does.
    pub answers: bool,
    /// Samples of these processes while they were called, for whomever.
    pub samples: Vec<u32>,
    /// What they waited for then, longest first.
    pub waits: Vec<WaitSum<'a>>,
}

/// A thread that others waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocker<'a> {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<&'a str>,
    /// What it was for them.
    pub relation: Relation,
    /// How that is known; of several waits the weakest.
    pub evidence: BlockerEvidence,
    /// For how long of the waits.
    pub nanos: i64,
    /// Its samples in that time.
    pub samples: Vec<u32>,
    /// What it waited for then, longest first.
    pub waits: Vec<WaitSum<'a>>,
}

/// Whom some waits were for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BlockedBy<'a> {
    /// Those that are known, of a hundredth of the waits or more, longest first, at most [`BLOCKERS_MAX`].
    pub list: Vec<Blocker<'a>>,
    /// For how long it was one of several, and how many these were at most.
    pub one_of: Option<(i64, u32)>,
}

/// A thread that another one waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitedFor<'a> {
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<&'a str>,
    /// What it was for the other one.
    pub relation: Relation,
    /// How that is known; of several waits the weakest.
    pub evidence: BlockerEvidence,
    /// For how long.
    pub nanos: u64,
}

/// Waits of which it is found out, for the list of all threads, whom they were for: a tenth of a second's work.
pub const TOLD_WAITS_MAX: usize = 20_000;

/// Threads that are named for one kind of wait: looking at what each did takes a walk over the recording.
pub const BLOCKERS_MAX: usize = 5;

/// A recording and all that is known about it.
#[derive(Debug)]
pub struct Report {
    recording: Recording,
    forest: Forest,
    replay: Replay,
    path: CriticalPath,
    poles: Poles,
    samples: SampleNodes,
    sample_offsets: Vec<i64>,
    waits: NodeWaits,
    timelines: Timelines,
    functions: Functions,
    labels: OnceLock<Labels>,
    figures: OnceLock<Vec<ProcessFigures>>,
    servers: OnceLock<Servers>,
    blockers: OnceLock<Blockers>,
    /// The function that each thread begins with, by process and thread.
    entries: OnceLock<HashMap<(u32, u32), usize>>,
    path_states: States,
    in_flight: InFlight,
    deployment: Option<DeploymentTime>,
    /// Of an outline: how many spans and traces it is of.
    outlined: Option<(usize, usize)>,
}

impl Report {
    /// Computes everything that every view needs. Legacy spans are joined first, see [`opentracing_bridge::join`]. Sample links that the
    /// recording brings are kept; where it brings none they are made.
    pub fn new(mut recording: Recording) -> Report {
        opentracing_bridge::join(&mut recording);
        let forest = Forest::build(&recording);
        Report::of_forest(recording, forest)
    }

    /// The report of spans of which only the outline is there, which is enough for an answer ([`outline::is_enough`](crate::report::summary_spans::is_enough)): all
    /// numbers are the same. What it says of a single span is what its example says. `recording` holds everything else, and no
    /// samples, for they would name spans that are not there.
    pub fn of_outline(recording: Recording, outline: SpanOutline) -> Report {
        let recording = Recording { spans: outline.examples, ..recording };
        let traces = outline.heads.iter().map(|head| head.trace_id).collect::<HashSet<_, QuickState>>().len();
        let forest = Forest::of_outline(&recording, &outline.heads);
        let outlined = Some((outline.heads.len(), traces));
        drop(outline.heads);
        Report { outlined, ..Report::of_forest(recording, forest) }
    }

    fn of_forest(mut recording: Recording, forest: Forest) -> Report {
        waits::name_joins(&mut recording);
        // Before there is more: it takes memory for a while.
        let in_flight = parallelism::in_flight(&forest);
        let replay = Replay::new(&recording, &forest);
        let path = CriticalPath::of(replay.schedule(), &forest);
        let poles = Poles::new(&recording, &forest, &path, &replay);
        if recording.sample_links.len() != recording.samples.len() {
            recording.sample_links = samples::link(&recording);
        }
        if recording.wait_links.len() != recording.waits.len() {
            recording.wait_links = waits::link(&recording);
        }
        let samples = samples::samples_of_nodes(&recording, &forest);
        let waits = NodeWaits::of(&recording, &forest);
        let timelines = Timelines::new(&recording, &forest);
        let origin = forest.run_range().start;
        let sample_offsets =
            recording.samples.iter().map(|s| recording.clock.to_unix(s.time).map_or(i64::MIN, |at| at.nanos_since(origin))).collect();
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
    pub fn poles(&self) -> &[Pole] {
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
        self.labels.get_or_init(|| labels(&self.recording, &self.forest))
    }

    /// What each process used, in the order of `recording.processes`.
    pub fn figures(&self) -> &[ProcessFigures] {
        self.figures.get_or_init(|| usage::figures(&self.recording))
    }

    /// What of it is worth a line.
    pub fn notable_usage(&self) -> Vec<Notable> {
        usage::notable(&self.recording, self.figures())
    }

    /// The moment that offsets count from: the start of the run.
    pub fn origin(&self) -> Timestamp {
        self.forest.run_range().start
    }

    /// How long the run was.
    pub fn wall_nanos(&self) -> i64 {
        self.forest.run_range().nanos()
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
        let work = (1..schedule.len()).fold(0, |sum: i64, node| sum.saturating_add(schedule.own_total(node)));
        let wall_nanos = self.wall_nanos();
        WorkFigures { work_nanos: work, span_nanos: wall_nanos.saturating_sub(self.path.on_path_nanos[0]), wall_nanos }
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
    pub fn resource(&self, node: usize) -> Option<&str> {
        self.forest.span(&self.recording, node).and_then(urn_of)
    }

    /// Time of a node that no child of it covers. Its whole time is the length of its range.
    pub fn own_nanos(&self, node: usize) -> i64 {
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

    /// Whether processes were looked at that ran before and after. What other tools recorded cost no recorder of ours.
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
        let losses = self.recording.losses.iter().map(note::loss);
        let unseen = ThreadTime::of(&self.recording).notes(&self.recording, self.wall_nanos());
        unseen.into_iter().chain(losses).chain(self.notes().cloned()).collect()
    }

    /// What the node is called.
    pub fn name(&self, node: usize) -> &str {
        self.forest.name(&self.recording, node)
    }

    /// The node's service.
    pub fn service(&self, node: usize) -> &str {
        self.forest.service(&self.recording, node)
    }

    /// The node that a handle names: itself, or the first of the pole.
    pub fn node_of(&self, handle: Handle) -> Option<usize> {
        match handle {
            Handle::Node(node) => (node < self.forest.len()).then_some(node),
            Handle::Pole(pole) => self.poles().get(pole).and_then(|p| p.nodes.first()).copied(),
            Handle::Function(_) => None,
        }
    }

    /// The nodes of this name.
    pub fn nodes_of_name(&self, name: &str) -> Vec<usize> {
        let labels = self.labels();
        let Some(wanted) = labels.names.iter().position(|known| known == name) else { return Vec::new() };
        (0..self.forest.len()).filter(|&node| labels.name[node] as usize == wanted).collect()
    }

    /// The name that this text means: itself, or the only one that has it in it, whatever the case; and where neither is there, those
    /// that have it.
    pub fn names_like(&self, text: &str) -> (Option<&str>, Vec<&str>) {
        let names = &self.labels().names;
        if let Some(exact) = names.iter().find(|name| *name == text) {
            return (Some(exact), Vec::new());
        }
        let wanted = text.to_lowercase();
        let similar: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.to_lowercase().contains(&wanted)).collect();
        if let [only] = similar[..] { (Some(only), Vec::new()) } else { (None, similar) }
    }

    /// The spans of this trace, as nodes.
    pub fn nodes_of_trace(&self, trace: TraceId) -> Vec<usize> {
        let is_of = |&node: &usize| self.forest.span(&self.recording, node).is_some_and(|span| span.trace_id == trace);
        (0..self.forest.len()).filter(is_of).collect()
    }

    /// Those of these nodes, which stand in tree order, that are not below another of them.
    pub fn outermost(&self, mut nodes: Vec<usize>) -> Vec<usize> {
        let mut covered = 0;
        nodes.retain(|&node| (node >= covered).then(|| covered = self.forest.nodes[node].subtree_end()).is_some());
        nodes
    }

    /// What the run saves if this node alone is fixed.
    pub fn savings(&self, node: usize) -> Savings {
        self.savings_of(&[node])
    }

    /// What the run saves if these nodes are fixed, all at once.
    pub fn savings_of(&self, nodes: &[usize]) -> Savings {
        Savings::of(&self.replay, nodes)
    }

    /// For the first poles, as many as asked for: what the run saves if that pole and all before it took no time. Savings do not add
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
    pub fn saves(&self, nodes: &[usize], change: Change) -> Saving {
        self.replay.saves(nodes, change)
    }

    /// Where the time of a node went; sums to its duration.
    pub fn node_states(&self, node: usize) -> States {
        self.activity().of_node(node)
    }

    /// Where the time of these nodes went, added up.
    pub fn states_of_nodes(&self, nodes: &[usize]) -> States {
        let schedule = self.replay.schedule();
        self.activity().states(nodes.iter().map(|&node| Stretch { node, from: schedule.start[node], to: schedule.end[node] }))
    }

    /// What makes each of these threads matter.
    pub fn importance_of_threads(&self, lives: &[ThreadLife]) -> Vec<Importance> {
        let mut in_pole: HashMap<(u32, u32, usize), u64> = HashMap::new();
        let activity = self.activity();
        for (pole, about) in self.poles().iter().enumerate().take(threads::POLES_MAX) {
            for stretch in self.stretches_on_path(&about.nodes) {
                for &sample in activity.samples_in(stretch) {
                    let sample = &self.recording.samples[sample as usize];
                    in_pole.entry((sample.pid, sample.tid, pole)).or_default().add_nanos(sample.weight_nanos);
                }
                for part in activity.waits_in(stretch) {
                    let wait = &self.recording.waits[part.wait as usize];
                    in_pole.entry((wait.pid, wait.tid, pole)).or_default().add_nanos(part.to.abs_diff(part.from));
                }
            }
        }
        threads::importance(&self.recording, self.waits.idle(), lives, &in_pole)
    }

    /// Where the time of a node went, by what it and its descendants did; sums to its duration.
    pub fn node_states_with_descendants(&self, node: usize) -> States {
        self.activity().with_descendants(node)
    }

    /// Where the time went that these nodes have on the path; sums to it.
    pub fn states_on_path(&self, nodes: &[usize]) -> States {
        self.activity().states(self.stretches_on_path(nodes).into_iter())
    }

    /// These nodes' own samples while they were on the path: indices into `recording.samples`.
    pub fn samples_on_path(&self, nodes: &[usize]) -> Vec<u32> {
        if self.recording.samples.is_empty() {
            return Vec::new();
        }
        let activity = self.activity();
        self.stretches_on_path(nodes).into_iter().flat_map(|s| activity.samples_in(s).iter().copied()).collect()
    }

    /// Samples of the node itself.
    pub fn own_samples(&self, node: usize) -> &[u32] {
        self.samples.of(node)
    }

    /// Samples of the node and of everything below it.
    pub fn subtree_samples(&self, node: usize) -> impl Iterator<Item = u32> + '_ {
        (node..self.forest.nodes[node].subtree_end()).flat_map(|n| self.samples.of(n).iter().copied())
    }

    /// All samples of the recording.
    pub fn all_samples(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.recording.samples.len() as u32
    }

    /// Samples of these nodes and of everything below them, ascending; without nodes, all of the recording.
    pub fn samples_below(&self, roots: Option<&[usize]>) -> Vec<u32> {
        let Some(roots) = roots else { return self.all_samples().collect() };
        let mut samples: Vec<u32> = roots.iter().flat_map(|&root| self.subtree_samples(root)).collect();
        samples.sort_unstable();
        samples
    }

    /// Waits of these nodes and of everything below them, ascending; without nodes, of the whole run. Of a process that sends no spans, those
    /// of all its threads. Workers that wait for work, and threads of which nobody knows what they work for, wait for no node.
    pub fn waits_below(&self, roots: Option<&[usize]>) -> Vec<u32> {
        let nodes = roots.unwrap_or(&[0]).iter().flat_map(|&root| root..self.forest.nodes[root].subtree_end());
        let mut waits: Vec<u32> = nodes.flat_map(|node| self.waits.whole_of_node(node)).copied().collect();
        waits.sort_unstable();
        waits
    }

    /// The link of a sample.
    pub fn sample_link(&self, sample: u32) -> SampleLink {
        self.recording.sample_links[sample as usize]
    }

    /// How these samples are tied to their spans.
    pub fn link_counts(&self, samples: impl Iterator<Item = u32>) -> LinkCounts {
        let mut counts = LinkCounts::default();
        for sample in samples {
            *match self.recording.sample_links[sample as usize].evidence {
                LinkEvidence::Record => &mut counts.record,
                LinkEvidence::Journal => &mut counts.journal,
                LinkEvidence::Label => &mut counts.label,
                LinkEvidence::Inferred => &mut counts.inferred,
                LinkEvidence::Ambiguous { .. } => &mut counts.ambiguous,
                LinkEvidence::None => &mut counts.none,
            } += 1;
        }
        counts
    }

    fn stacks<'a>(&'a self, samples: impl Iterator<Item = u32> + 'a) -> impl Iterator<Item = (StackId, u64)> + 'a {
        samples.map(|s| &self.recording.samples[s as usize]).map(|s| (s.stack, s.weight_nanos))
    }

    /// The stacks of these waits, as far as they are known, each with how long it was.
    fn stacks_of_waits(&self, waits: impl Iterator<Item = u32>) -> Vec<(StackId, u64)> {
        waits.map(|wait| &self.recording.waits[wait as usize]).filter_map(|wait| Some((wait.stack?, wait.nanos()))).collect()
    }

    /// The flame graph of the whole run, with the waits of all threads, whatever they wait for.
    pub fn flame_of_all_threads(&self, time: FlameTime) -> Flame {
        let samples = if time == FlameTime::OffCpu { Vec::new() } else { self.all_samples().collect() };
        let waits = if time == FlameTime::OnCpu { 0 } else { self.recording.waits.len() as u32 };
        self.flame_with(&samples, self.stacks_of_waits(0..waits), time)
    }

    /// The flame graph of these nodes and everything below them; without nodes, of the whole run. Nodes do not stand below each
    /// other. Waits are those that were looked at and tell something; workers that wait for work are left out.
    pub fn flame(&self, roots: Option<&[usize]>, time: FlameTime) -> Flame {
        let samples = if time == FlameTime::OffCpu { Vec::new() } else { self.samples_below(roots) };
        let waits = if time == FlameTime::OnCpu { Vec::new() } else { self.waits_below(roots) };
        let waits = self.stacks_of_waits(waits.into_iter());
        let left_out_waits = if roots.is_none() && time != FlameTime::OnCpu {
            let seen = self.recording.waits.iter().filter(|wait| wait.stack.is_some()).count();
            seen.saturating_sub(waits.len()) as u64
        } else {
            0
        };
        Flame { left_out_waits, ..self.flame_with(&samples, waits, time) }
    }

    fn flame_with(&self, samples: &[u32], waits: Vec<(StackId, u64)>, time: FlameTime) -> Flame {
        Flame {
            tree: CallTree::new(&self.recording, &self.functions, self.stacks(samples.iter().copied()).chain(waits)),
            links: self.link_counts(samples.iter().copied()),
            time,
            left_out_waits: 0,
        }
    }

    /// The functions of these samples: first the one to name (see [`Report::named`]), then by self weight. Those that only start and
    /// call what is in the samples are left out.
    pub fn top_functions(&self, samples: &[u32]) -> Vec<FunctionWeight> {
        let mut functions = self.functions.weigh(&self.recording, self.stacks(samples.iter().copied()), Frames::Telling);
        if let Some(named) = self.named(samples)
            && let Some(place) = functions.iter().position(|f| f.function == named.function)
        {
            functions[..=place].rotate_right(1);
        }
        functions
    }

    /// The functions of these samples and waits, by self weight, then by total. A wait is in itself in the function of the program that
    /// waits, not in the call of a library or of the system that it waits by.
    pub fn weigh(&self, samples: &[u32], waits: &[u32], frames: Frames) -> Vec<FunctionWeight> {
        let waits = self.stacks_of_waits(waits.iter().copied());
        self.functions.weigh_all(&self.recording, self.stacks(samples.iter().copied()), waits.into_iter(), frames)
    }

    /// The functions of the whole recording, by self weight, then by total.
    pub fn functions_by_self(&self) -> Vec<FunctionWeight> {
        self.functions.weigh(&self.recording, self.stacks(self.all_samples()), Frames::Telling)
    }

    /// What lies on the lines of these functions in these samples and waits, most first.
    pub fn lines(&self, functions: &[usize], samples: &[u32], waits: &[u32]) -> Vec<Vec<LineWeight>> {
        let waits = self.stacks_of_waits(waits.iter().copied());
        self.functions.weigh_lines(&self.recording, functions, self.stacks(samples.iter().copied()), waits.into_iter())
    }

    /// What lies on the lines of a function in the whole recording, most first.
    pub fn lines_of(&self, function: usize) -> Vec<LineWeight> {
        let (samples, waits): (Vec<u32>, Vec<u32>) = (self.all_samples().collect(), self.all_waits().collect());
        self.lines(&[function], &samples, &waits).pop().unwrap_or_default()
    }

    /// The functions that were seen at this line of a file, which may be named without its folders; by total weight.
    pub fn functions_at(&self, file: &str, line: u32) -> Vec<usize> {
        let is_file = |path: &str| path.strip_suffix(file).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
        let in_file = (0..self.functions.list.len()).filter(|&i| is_file(&self.functions.list[i].file)).collect::<Vec<usize>>();
        let (samples, waits): (Vec<u32>, Vec<u32>) = (self.all_samples().collect(), self.all_waits().collect());
        let lines = self.lines(&in_file, &samples, &waits);
        let has_line = |lines: &Vec<LineWeight>| lines.iter().any(|it| it.line == line);
        in_file.into_iter().zip(lines).filter(|(_, lines)| has_line(lines)).map(|(function, _)| function).collect()
    }

    /// All waits of the recording.
    pub fn all_waits(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.recording.waits.len() as u32
    }

    /// The function to name for these samples: the one that holds half of them ([`CallTree::hot_function`]) where it is the program's
    /// own; else the one of the program's own in which half of them are, in what it calls of others. `None` where they are spread.
    pub fn named(&self, samples: &[u32]) -> Option<Named> {
        let stacks = || self.stacks(samples.iter().copied());
        let hot = CallTree::new(&self.recording, &self.functions, stacks()).hot_function(&self.functions);
        if let Some(hot) = hot.filter(|&hot| self.functions.list[hot].whose == Whose::Program) {
            return Some(Named { function: hot, mostly_in: None });
        }
        // Of each function of the program's own what is in it, and what of that is in the hot one as well.
        let mut sums: QuickMap<usize, (u64, u64)> = QuickMap::default();
        let (mut all, mut in_own) = (0u64, 0u64);
        for (stack, nanos) in stacks() {
            all = all.saturating_add(nanos);
            let Some((own, _)) = self.functions.own_of_stack(&self.recording, stack) else { continue };
            in_own = in_own.saturating_add(nanos);
            let sum = sums.entry(own).or_default();
            sum.0 = sum.0.saturating_add(nanos);
            let mut below = self.functions.of_stack(&self.recording, stack).take_while(|function| *function != own);
            if below.any(|function| Some(function) == hot) {
                sum.1 = sum.1.saturating_add(nanos);
            }
        }
        let (own, (nanos, in_hot)) = sums.into_iter().max_by_key(|(own, (nanos, _))| (*nanos, std::cmp::Reverse(*own))).unwrap_or_default();
        if nanos > 0 && nanos.saturating_mul(2) >= all {
            return Some(Named { function: own, mostly_in: hot.filter(|_| in_hot.saturating_mul(2) >= nanos) });
        }
        hot.filter(|_| in_own.saturating_mul(2) < all).map(|function| Named { function, mostly_in: None })
    }

    /// `most of it (402.4ms) in index_words (mostly in hash_one)`: of the CPU time that these samples stand for.
    fn most_words(&self, named: Named, samples: &[u32]) -> String {
        let holds = self.functions.stacks_with(&self.recording, named.function);
        let samples = samples.iter().map(|&sample| &self.recording.samples[sample as usize]);
        let nanos: u64 =
            samples.filter(|sample| holds.get(sample.stack.0 as usize) == Some(&true)).map(|sample| sample.weight_nanos).sum_nanos();
        format!("most of it ({}) in {}", time_words(i64::try_from(nanos).unwrap_or(i64::MAX)), self.named_words(named))
    }

    /// `index_words (mostly in hash_one)`.
    fn named_words(&self, named: Named) -> String {
        let name = |function: usize| self.functions.list[function].function.as_str();
        let mostly = named.mostly_in.map(|function| format!(" (mostly in {})", without_types(name(function)))).unwrap_or_default();
        format!("{}{mostly}", name(named.function))
    }

    /// Where a function ran.
    pub fn nodes_with(&self, function: usize) -> FunctionNodes {
        let holds = self.functions.stacks_with(&self.recording, function);
        let mut sums: HashMap<usize, FunctionInNode> = HashMap::new();
        let none = |node: usize| FunctionInNode { node, samples: 0, total_nanos: 0, waited_nanos: 0, share: 0.0 };
        let mut out = FunctionNodes::default();
        for (i, sample) in self.recording.samples.iter().enumerate() {
            if !holds.get(sample.stack.0 as usize).copied().unwrap_or(false) {
                continue;
            }
            match self.samples.node(i) {
                Some(node) => {
                    let sum = sums.entry(node).or_insert_with(|| none(node));
                    sum.samples += 1;
                    sum.total_nanos = sum.total_nanos.saturating_add(sample.weight_nanos);
                }
                None => {
                    out.unlinked_samples += 1;
                    let is_ambiguous = matches!(self.recording.sample_links[i].evidence, LinkEvidence::Ambiguous { .. });
                    out.ambiguous_samples += u64::from(is_ambiguous);
                }
            }
        }
        for wait in self.waits_on(&holds).map(|wait| &self.recording.waits[wait as usize]) {
            out.waits += 1;
            out.waited_nanos = out.waited_nanos.saturating_add(wait.nanos());
        }
        out.unlinked_waited_nanos = out.waited_nanos;
        for node in 0..self.forest.len() {
            let waits = self.waits.whole_of_node(node).iter().map(|&wait| &self.recording.waits[wait as usize]);
            for wait in waits.filter(|wait| is_on(&holds, wait)) {
                let sum = sums.entry(node).or_insert_with(|| none(node));
                sum.waited_nanos = sum.waited_nanos.saturating_add(wait.nanos());
                out.unlinked_waited_nanos = out.unlinked_waited_nanos.saturating_sub(wait.nanos());
            }
        }
        let share =
            |sum: FunctionInNode| FunctionInNode { share: sum.samples as f64 / self.samples.of(sum.node).len().max(1) as f64, ..sum };
        out.nodes = sums.into_values().map(share).collect();
        out.nodes.sort_by_key(|n| (std::cmp::Reverse(n.total_nanos.saturating_add(n.waited_nanos)), n.node));
        out.operations = self.operations_of(&out.nodes);
        out
    }

    /// The same by operation.
    fn operations_of(&self, nodes: &[FunctionInNode]) -> Vec<FunctionInOperation> {
        let labels = self.labels();
        let operation = |node: usize| (labels.service[node], labels.name[node]);
        let mut sums: HashMap<(u32, u32), FunctionInOperation> = HashMap::new();
        for part in nodes {
            let none = FunctionInOperation { example: part.node, nodes: 0, samples: 0, total_nanos: 0, waited_nanos: 0, share: 0.0 };
            let sum = sums.entry(operation(part.node)).or_insert(none);
            sum.nodes += 1;
            sum.samples += part.samples;
            sum.total_nanos = sum.total_nanos.saturating_add(part.total_nanos);
            sum.waited_nanos = sum.waited_nanos.saturating_add(part.waited_nanos);
        }
        let mut own: HashMap<(u32, u32), usize> = sums.keys().map(|operation| (*operation, 0)).collect();
        for node in 0..self.forest.len() {
            if let Some(own) = own.get_mut(&operation(node)) {
                *own += self.samples.of(node).len();
            }
        }
        let share = |(operation, sum): (_, FunctionInOperation)| FunctionInOperation {
            share: sum.samples as f64 / own[&operation].max(1) as f64,
            ..sum
        };
        let mut list: Vec<FunctionInOperation> = sums.into_iter().map(share).collect();
        list.sort_by_key(|it| (std::cmp::Reverse(it.total_nanos.saturating_add(it.waited_nanos)), it.example));
        list
    }

    /// Why a pole is long, in the words of its states, and whether its spans follow each other.
    pub fn reason(&self, pole: &Pole) -> Reason {
        let samples = self.samples_on_path(&pole.nodes);
        let states = self.states_on_path(&pole.nodes);
        let own = states.own();
        let few = (samples.len() as u64) < FEW_SAMPLES;
        let expected = i128::from(own) * i128::from(self.recording.run.rate_hz) / 1_000_000_000;
        let busy = percent_of(states.on_cpu_nanos, own);
        let (runnable, computes) = (percent_of(states.runnable_nanos, own), computes(&states));
        let lacking = if runnable >= RUNNABLE_PERCENT { format!(" and {runnable} % runnable") } else { String::new() };
        let name = |function: usize| self.functions.list[function].function.as_str();
        let hot = || self.named(&samples);
        let (mut named, mut mostly_in) = (None, None);
        // Of a profile that is sums nobody knows which of them was on the path.
        let are_untimed = self.sample_offsets.first().is_some_and(|at| *at == i64::MIN);
        // A program that was sampled and had none has no CPU time to speak of; what it waited for was seen all the same.
        let waited = percent_of(states.blocked_nanos.iter().sum_nanos(), own) > WAITING_PERCENT;
        let was_sampled = self.recording.run.rate_hz > 0 || !self.recording.samples.is_empty();
        let is_told = waited && (was_sampled || told_wait(&states).is_some());
        let has_no_samples = are_untimed || (self.recording.samples.is_empty() && !is_told);
        // What it waits for beside its work may be the better thing to mend.
        let beside = |told: Option<(WaitKind, i64)>| {
            let counts = told.filter(|(_, nanos)| percent_of(*nanos, own) >= BESIDE_PERCENT);
            counts.map(|wait| self.wait_words(pole, wait, own))
        };
        let (code, mut text) = if has_no_samples && !states.is_exact() {
            let missing = if are_untimed { "no samples with a time" } else { "no samples" };
            let beside = beside(states.longest_wait());
            named = beside.as_ref().and_then(|(_, function)| *function);
            (ReasonCode::NoSamples, beside.map_or_else(|| missing.to_owned(), |(words, _)| format!("{words}; of the rest {missing}")))
        } else if few && was_sampled && !states.is_exact() && expected < i128::from(FEW_SAMPLES) {
            (ReasonCode::FewSamples, self.too_short(pole).to_owned())
        } else if computes && few {
            (ReasonCode::OnCpu, format!("{busy} % on-CPU{lacking}, too few samples to say where"))
        } else if computes {
            let hot = hot();
            (named, mostly_in) = (hot.map(|hot| name(hot.function)), hot.and_then(|hot| hot.mostly_in).map(name).map(without_types));
            let text = match hot {
                Some(hot) => format!("{busy} % on-CPU{lacking}, {}", self.most_words(hot, &samples)),
                None => format!("{busy} % on-CPU{lacking}, spread over many functions"),
            };
            (ReasonCode::OnCpu, text + &beside(told_wait(&states)).map(|(words, _)| format!("; {words}")).unwrap_or_default())
        } else {
            let (rest, waiting) = self.off_cpu_words(pole, &states);
            named = waiting;
            if busy > WAITING_PERCENT {
                let hot = if few { None } else { hot() };
                named = waiting.or(hot.map(|hot| name(hot.function)));
                mostly_in = hot.filter(|_| waiting.is_none()).and_then(|hot| hot.mostly_in).map(name).map(without_types);
                let most = hot.map(|hot| format!(", {}", self.most_words(hot, &samples))).unwrap_or_default();
                (ReasonCode::Mixed, format!("{busy} % on-CPU{most}; {rest}"))
            } else if waiting.is_some() {
                (ReasonCode::Waits, rest)
            } else {
                let after = self.event_before_wait(pole).map(|event| format!(", after “{event}”")).unwrap_or_default();
                let on_cpu = if busy > 0 { format!(", {busy} % on-CPU") } else { String::new() };
                (ReasonCode::Waits, format!("{rest}{on_cpu}{after}"))
            }
        };
        // Shares of what it does between the operations that it calls, and not of it as a whole, are said to be so.
        if self.wraps(pole, own) && matches!(code, ReasonCode::OnCpu | ReasonCode::Waits | ReasonCode::Mixed) {
            text = format!("of its own {}: {text}", time_words(own));
        }
        if self.in_sequence(&pole.nodes) {
            text = format!("{} in sequence; {text}", pole.nodes.len());
        }
        Reason { code, text, function: named.map(str::to_owned), mostly_in: mostly_in.map(str::to_owned) }
    }

    /// What a pole did in most of the time in which it did not run, and the function that is named in it.
    fn off_cpu_words(&self, pole: &Pole, states: &States) -> (String, Option<&str>) {
        let own = states.own();
        let percent = |nanos: i64| percent_of(nanos, own);
        let seen: i64 = states.blocked_nanos.iter().sum_nanos();
        if let Some(wait) = told_wait(states) {
            return self.wait_words(pole, wait, own);
        }
        let parts = [
            (states.unaccounted_nanos, "unaccounted"),
            (states.awaiting_nanos, "awaiting"),
            (states.remote_nanos, "remote"),
            (states.blocked_unseen_nanos, "blocked, on what was not looked at"),
            (seen, "blocked"),
            (states.runnable_nanos, "runnable, others had the CPUs"),
        ];
        let (nanos, word) = parts.into_iter().max_by_key(|(nanos, _)| *nanos).unwrap_or_default();
        let told = if nanos == states.blocked_unseen_nanos { self.short_wait_words(pole) } else { None };
        match told {
            Some((words, function)) => (format!("{} % blocked, {words}", percent(nanos)), function),
            None => (format!("{} % {word}", percent(nanos)), None),
        }
    }

    /// What most of those short waits of a pole were for that were looked at, which are few of all.
    fn short_wait_words(&self, pole: &Pole) -> Option<(String, Option<&str>)> {
        let sums = self.waits_on_path(&pole.nodes);
        let is_short = |part: &&PartOfWait| self.recording.waits[part.wait as usize].nanos() < LOOK_NANOS;
        let count = |sum: &WaitSum<'_>| sum.parts.iter().filter(is_short).count();
        let all: usize = sums.iter().map(count).sum();
        let most = sums.iter().max_by_key(|sum| count(sum))?;
        let seen = count(most);
        if seen < SHORT_WAITS_MIN || seen * 2 <= all {
            return None;
        }
        let function = self.waiting_function(most.wait);
        let whose = function.map(|function| format!(", in {function}")).unwrap_or_default();
        Some((format!("for short times: {seen} of {all} waits looked at were {}{whose}", most.word()), function))
    }

    /// What a pole waited for, so long of its own time, and the function that waited.
    fn wait_words(&self, pole: &Pole, (kind, nanos): (WaitKind, i64), own: i64) -> (String, Option<&str>) {
        let sum = self.waits_on_path(&pole.nodes).into_iter().find(|sum| sum.wait.kind == kind);
        let function = sum.as_ref().and_then(|sum| self.waiting_function(sum.wait));
        let whose = function.map(|function| format!(", in {function}")).unwrap_or_default();
        let word = sum.map_or_else(|| wait_word(kind), |sum| sum.word());
        (format!("{} % {word}{whose}", percent_of(nanos, own)), function)
    }

    /// The waits of these nodes while they were on the path, longest first, each with how long it was in the way.
    pub fn waits_on_path(&self, nodes: &[usize]) -> Vec<WaitSum<'_>> {
        self.waits_of(self.stretches_on_path(nodes).into_iter())
    }

    /// The waits of a node itself, longest first, each with how much of it no child covers.
    pub fn node_waits(&self, node: usize) -> Vec<WaitSum<'_>> {
        self.waits_of_nodes(&[node])
    }

    /// The same of several nodes.
    pub fn waits_of_nodes(&self, nodes: &[usize]) -> Vec<WaitSum<'_>> {
        let schedule = self.replay.schedule();
        self.waits_of(nodes.iter().map(|&node| Stretch { node, from: schedule.start[node], to: schedule.end[node] }))
    }

    fn waits_of(&self, stretches: impl Iterator<Item = Stretch>) -> Vec<WaitSum<'_>> {
        let activity = self.activity();
        let part = |node: usize, it: NodeWait| PartOfWait {
            wait: it.wait,
            from: it.from,
            to: it.to,
            nanos: activity.own_of_wait(node, &it).max(0),
        };
        let of = |stretch: Stretch| activity.waits_in(stretch).map(|it| part(stretch.node, it)).collect::<Vec<_>>();
        // Those of one node stand beside each other.
        self.sums_of_waits(stretches.flat_map(of), |parts| parts.iter().fold(0, |sum: i64, part| sum.saturating_add(part.nanos)))
    }

    /// The waits in which a function occurs, longest first.
    pub fn waits_with(&self, function: usize) -> Vec<WaitSum<'_>> {
        self.whole_waits(self.waits_on(&self.functions.stacks_with(&self.recording, function)))
    }

    /// The waits whose stack is one of these.
    fn waits_on(&self, stacks: &[bool]) -> impl Iterator<Item = u32> {
        self.all_waits().filter(|&wait| is_on(stacks, &self.recording.waits[wait as usize]))
    }

    /// These waits from start to end, longest first, as time of threads.
    pub fn whole_waits(&self, waits: impl Iterator<Item = u32>) -> Vec<WaitSum<'_>> {
        let whole = |wait: u32| {
            let nanos = i64::try_from(self.recording.waits[wait as usize].nanos()).unwrap_or(i64::MAX);
            let from = self.offset(self.recording.waits[wait as usize].start).unwrap_or_default();
            PartOfWait { wait, from, to: from.saturating_add(nanos), nanos }
        };
        self.sums_of_waits(waits.map(whole), |parts| parts.iter().fold(0, |sum: i64, part| sum.saturating_add(part.nanos)))
    }

    /// Waits of one kind in one call of one function are one; `length` says how long several are together.
    fn sums_of_waits(&self, waits: impl Iterator<Item = PartOfWait>, length: impl Fn(&[PartOfWait]) -> i64) -> Vec<WaitSum<'_>> {
        type Group<'a> = (WaitKind, &'a str, Option<Relation>, Option<usize>);
        let mut groups: HashMap<Group<'_>, Vec<PartOfWait>> = HashMap::new();
        for part in waits {
            let wait = &self.recording.waits[part.wait as usize];
            let relation = self.blockers().relation(wait);
            groups
                .entry((wait.kind, wait.syscall.as_str(), relation, self.waiting(wait).map(|(function, _)| function)))
                .or_default()
                .push(part);
        }
        let sum = |parts: Vec<PartOfWait>| {
            let wait = |part: &PartOfWait| &self.recording.waits[part.wait as usize];
            let mut lines: QuickMap<(&str, u32), Vec<PartOfWait>> = QuickMap::default();
            for part in &parts {
                if let Some(place) = self.waiting_place(wait(part)) {
                    lines.entry(place).or_default().push(*part);
                }
            }
            let mut places: Vec<WaitPlace<'_>> =
                lines.into_iter().map(|((file, line), parts)| WaitPlace { file, line, nanos: length(&parts) }).collect();
            places.sort_by_key(|place| (std::cmp::Reverse(place.nanos), place.line));
            let threads: HashSet<(u32, u32)> = parts.iter().map(wait).map(|wait| (wait.pid, wait.tid)).collect();
            let relation = self.blockers().relation(wait(&parts[0]));
            WaitSum { wait: wait(&parts[0]), nanos: length(&parts), threads: threads.len(), places, relation, parts }
        };
        let mut list: Vec<(u32, WaitSum<'_>)> = groups.into_values().map(|parts| (parts[0].wait, sum(parts))).collect();
        list.sort_by_key(|(first, sum)| (std::cmp::Reverse(sum.nanos), *first));
        list.into_iter().map(|(_, sum)| sum).collect()
    }

    fn blockers(&self) -> &Blockers {
        self.blockers.get_or_init(|| Blockers::of(&self.recording))
    }

    /// Whom these waits were for, and what that did meanwhile.
    pub fn blocked_by(&self, sum: &WaitSum<'_>) -> BlockedBy<'_> {
        let mut out = BlockedBy::default();
        let Some(relation) = sum.relation else { return out };
        let seen = Seen { recording: &self.recording, timelines: &self.timelines, origin: self.origin() };
        type Stretches = Vec<(i64, i64)>;
        let mut found: HashMap<(u32, u32), (BlockerEvidence, Stretches)> = HashMap::new();
        for part in &sum.parts {
            let wait = &self.recording.waits[part.wait as usize];
            for held in self.blockers().parts(&seen, wait) {
                let (Some(from), Some(to)) = (self.offset(held.from), self.offset(held.to)) else { continue };
                let (from, to) = (from.max(part.from), to.min(part.to));
                if from >= to {
                    continue;
                }
                match held.who {
                    Who::Thread { tid, evidence } => {
                        let (weakest, stretches) = found.entry((wait.pid, tid)).or_insert((evidence, Vec::new()));
                        *weakest = (*weakest).max(evidence);
                        stretches.push((from, to));
                    }
                    Who::OneOf(threads) => {
                        let (nanos, most) = out.one_of.unwrap_or_default();
                        out.one_of = Some((nanos.saturating_add(to.saturating_sub(from)), most.max(threads)));
                    }
                    Who::Nobody => {}
                }
            }
        }
        let total = |stretches: &[(i64, i64)]| stretches.iter().map(|(from, to)| to.saturating_sub(*from)).sum_nanos::<i64>();
        let mut found: Vec<_> = found.into_iter().map(|(thread, (evidence, at))| (total(&at), thread, evidence, at)).collect();
        found.retain(|(nanos, ..)| percent_of(*nanos, sum.nanos) > 0);
        found.sort_by_key(|(nanos, thread, ..)| (std::cmp::Reverse(*nanos), *thread));
        let blocker = |(nanos, (pid, tid), evidence, stretches)| {
            let (samples, waits) = self.of_thread_in((pid, tid), &intervals::union(stretches));
            Blocker { pid, tid, name: self.thread_name(pid, tid), relation, evidence, nanos, samples, waits }
        };
        out.list = found.into_iter().take(BLOCKERS_MAX).map(blocker).collect();
        out
    }

    /// What a thread ran and waited for in these stretches of time, which stand in order and do not overlap.
    fn of_thread_in(&self, (pid, tid): (u32, u32), stretches: &[(i64, i64)]) -> (Vec<u32>, Vec<WaitSum<'_>>) {
        let mut samples = Vec::new();
        for &(from, to) in stretches {
            let (first, end) = (self.sample_offsets.partition_point(|at| *at < from), self.sample_offsets.partition_point(|at| *at < to));
            let is_its = |sample: &u32| {
                let sample = &self.recording.samples[*sample as usize];
                (sample.pid, sample.tid) == (pid, tid)
            };
            samples.extend((first as u32..end as u32).filter(is_its));
        }
        let mut waits = Vec::new();
        for (i, wait) in self.recording.waits.iter().enumerate().filter(|(_, wait)| (wait.pid, wait.tid) == (pid, tid)) {
            let (Some(start), Some(end)) = (self.offset(wait.start), self.offset(wait.end)) else { continue };
            let first = stretches.partition_point(|(_, to)| *to <= start);
            for &(from, to) in stretches[first..].iter().take_while(|(from, _)| *from < end) {
                let (from, to) = (from.max(start), to.min(end));
                waits.push(PartOfWait { wait: i as u32, from, to, nanos: to.saturating_sub(from) });
            }
        }
        (samples, self.sums_of_waits(waits.into_iter(), |parts| parts.iter().map(|part| part.nanos).sum_nanos()))
    }

    /// What a thread is called, where that is not what its process is called; else the function that it begins with.
    fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        let thread = self.recording.threads.iter().rev().find(|thread| (thread.pid, thread.tid) == (pid, tid))?;
        let process = self.recording.processes.iter().rev().find(|process| process.pid == pid);
        let is_own = !thread.name.is_empty() && process.is_none_or(|process| process.name != thread.name);
        if is_own { Some(&thread.name) } else { self.entry_function(pid, tid) }
    }

    /// The outermost function of the program's own of a thread that is not the main one: what was given to be run in it. `None` where it
    /// was never seen in one.
    pub fn entry_function(&self, pid: u32, tid: u32) -> Option<&str> {
        let entries = self.entries.get_or_init(|| {
            let mut entries: HashMap<(u32, u32), usize> = HashMap::new();
            let waits = self.recording.waits.iter().filter_map(|wait| Some((wait.pid, wait.tid, wait.stack?)));
            let samples = self.recording.samples.iter().take(ENTRY_SAMPLES_MAX).map(|sample| (sample.pid, sample.tid, sample.stack));
            for (pid, tid, stack) in waits.chain(samples).filter(|(pid, tid, _)| pid != tid) {
                if let Entry::Vacant(unknown) = entries.entry((pid, tid)) {
                    let mut functions = self.functions.of_stack(&self.recording, stack).rev();
                    functions.find(|&function| self.functions.list[function].whose == Whose::Program).map(|entry| unknown.insert(entry));
                }
            }
            entries
        });
        entries.get(&(pid, tid)).map(|&function| self.functions.list[function].function.as_str())
    }

    /// When it was, from the start of the run.
    fn offset(&self, at: Monotonic) -> Option<i64> {
        self.recording.clock.to_unix(at).map(|at| at.nanos_since(self.origin()))
    }

    /// The waits that the reason of a pole is about, where it is about waits.
    pub fn pole_wait(&self, pole: &Pole) -> Option<WaitSum<'_>> {
        let states = self.states_on_path(&pole.nodes);
        if computes(&states) {
            return None;
        }
        let (kind, _) = told_wait(&states)?;
        self.waits_on_path(&pole.nodes).into_iter().find(|sum| sum.wait.kind == kind)
    }

    /// Whom each thread waited for, by process and thread, longest first; of the [`TOLD_WAITS_MAX`] longest waits. Workers that wait for
    /// work wait for nobody.
    pub fn threads_waited_for(&self) -> HashMap<(u32, u32), Vec<WaitedFor<'_>>> {
        let waits = self.recording.waits.iter().zip(self.waits.idle()).filter(|(_, idle)| !**idle).map(|(wait, _)| wait);
        let told = waits.filter_map(|wait| Some((wait, self.blockers().relation(wait)?)));
        let mut told: Vec<(&Wait, Relation)> = told.collect();
        told.sort_by_key(|(wait, _)| (std::cmp::Reverse(wait.nanos()), wait.start, wait.tid));
        told.truncate(TOLD_WAITS_MAX);
        let seen = Seen { recording: &self.recording, timelines: &self.timelines, origin: self.origin() };
        let mut sums: HashMap<(u32, u32, u32, Relation), (u64, BlockerEvidence)> = HashMap::new();
        for (wait, relation) in told {
            for part in self.blockers().parts(&seen, wait) {
                if let Who::Thread { tid, evidence } = part.who {
                    let (nanos, weakest) = sums.entry((wait.pid, wait.tid, tid, relation)).or_insert((0, evidence));
                    nanos.add_nanos(part.to.nanos_since(part.from));
                    *weakest = (*weakest).max(evidence);
                }
            }
        }
        let mut out: HashMap<(u32, u32), Vec<WaitedFor<'_>>> = HashMap::new();
        // Thousands may have waited for one thread.
        let mut names: HashMap<(u32, u32), Option<&str>> = HashMap::new();
        for ((pid, waiter, tid, relation), (nanos, evidence)) in sums {
            let name = *names.entry((pid, tid)).or_insert_with(|| self.thread_name(pid, tid));
            out.entry((pid, waiter)).or_default().push(WaitedFor { tid, name, relation, evidence, nanos });
        }
        out.values_mut().for_each(|list| list.sort_by_key(|it| (std::cmp::Reverse(it.nanos), it.tid, it.relation)));
        out
    }

    /// Whom these waits were for, in words; `None` where nothing is known.
    pub fn blocked_by_words(&self, sum: &WaitSum<'_>, blocked: &BlockedBy<'_>) -> Option<String> {
        let relation = sum.relation?;
        let Some(first) = blocked.list.first().filter(|first| blocked.one_of.is_none_or(|(nanos, _)| nanos <= first.nanos)) else {
            let threads = blocked.one_of.filter(|(nanos, _)| *nanos > 0)?.1;
            return Some(match relation {
                Relation::Holds => format!("held by one of {threads} threads that ran when it was given back"),
                Relation::Ends => format!("{threads} threads ended then"),
                Relation::Wakes => format!("woken by one of {threads} threads that ran then"),
            });
        };
        let text = self.blocker_words(sum.wait, first);
        Some(match blocked.list.len() - 1 {
            0 => text,
            more => format!("{text}; and {more} more"),
        })
    }

    /// A thread that was waited for: `held by thread flush: asleep, in write_all`.
    pub fn blocker_words(&self, wait: &Wait, blocker: &Blocker<'_>) -> String {
        let who = match blocker.name {
            _ if blocker.tid == wait.tid => "the same thread".to_owned(),
            Some(name) => format!("thread {name}"),
            None if blocker.tid == wait.pid => "the main thread".to_owned(),
            None => format!("thread {}", blocker.tid),
        };
        let known = if blocker.evidence == BlockerEvidence::Inferred { " (inferred)" } else { "" };
        let what = self.activity_words(&blocker.samples, &blocker.waits).map(|what| format!(": {what}")).unwrap_or_default();
        match blocker.relation {
            Relation::Holds => format!("held by {who}{known}{what}"),
            Relation::Ends => format!("until {who} ends{known}{what}"),
            Relation::Wakes => format!("woken by {who}{known}{what}"),
        }
    }

    /// What somebody did most: `asleep, in look_up`. `None` where nothing was seen of it.
    fn activity_words(&self, samples: &[u32], waits: &[WaitSum<'_>]) -> Option<String> {
        let on_cpu: u64 = samples.iter().map(|&sample| self.recording.samples[sample as usize].weight_nanos).sum_nanos();
        match waits.first() {
            Some(sum) if u64::try_from(sum.nanos).unwrap_or(0) > on_cpu => {
                let whose = self.waiting_function(sum.wait).map(|function| format!(", in {function}")).unwrap_or_default();
                Some(format!("{}{whose}", sum.word()))
            }
            _ if on_cpu == 0 => None,
            _ => Some(match self.named(samples) {
                Some(named) => format!("on-CPU, most of it in {}", self.named_words(named)),
                None => "on-CPU".to_owned(),
            }),
        }
    }

    /// Who answers the calls of these nodes; `None` where they name no address, or different ones.
    pub fn callee(&self, nodes: &[usize]) -> Option<Callee<'_>> {
        let mut found: Option<(SocketAddr, Vec<usize>)> = None;
        for &node in nodes {
            let (address, processes) = callees::processes_of(&self.recording, self.forest.span(&self.recording, node)?)?;
            match &mut found {
                None => found = Some((address, processes)),
                Some((known, all)) if *known == address => all.extend(processes),
                Some(_) => return None,
            }
        }
        let (address, mut processes) = found?;
        processes.sort_unstable();
        processes.dedup();
        let is_its = |node: usize| self.forest.process_number(&self.recording, node).is_some_and(|it| processes.contains(&it));
        let answers = nodes.iter().any(|&node| self.forest.children(node).any(is_its));
        let schedule = self.replay.schedule();
        let stretches = intervals::union(nodes.iter().map(|&node| (schedule.start[node], schedule.end[node])).collect());
        let pids: HashSet<u32> = processes.iter().map(|&it| self.recording.processes[it].pid).collect();
        let servers = self.servers.get_or_init(|| Servers::of(&self.recording, self.origin(), self.waits.idle()));
        let (samples, waits) = servers.meanwhile(&pids, &stretches);
        let part = |(wait, from, to): (u32, i64, i64)| PartOfWait { wait, from, to, nanos: to.saturating_sub(from) };
        // Several threads may wait at the same time, and a call does not become longer by that.
        let at_once = |parts: &[PartOfWait]| {
            intervals::union(parts.iter().map(|part| (part.from, part.to)).collect())
                .iter()
                .map(|(from, to)| to.saturating_sub(*from))
                .sum_nanos()
        };
        Some(Callee { address, processes, answers, samples, waits: self.sums_of_waits(waits.into_iter().map(part), at_once) })
    }

    /// Who is called and what it does, where no span says so: `in process bank (pid 12): asleep, in look_up`.
    pub fn callee_words(&self, callee: &Callee<'_>) -> Option<String> {
        let &process = callee.processes.first().filter(|_| !callee.answers)?;
        let name = self.forest.program(&self.recording, process);
        let who = format!("in process {name} (pid {})", self.recording.processes[process].pid);
        Some(match self.activity_words(&callee.samples, &callee.waits) {
            Some(what) => format!("{who}: {what}"),
            None => who,
        })
    }

    /// The function of the program that waits, and its line, 0 where unknown.
    fn waiting(&self, wait: &Wait) -> Option<(usize, u32)> {
        self.functions.waiting_in_stack(&self.recording, wait.stack?)
    }

    /// The function of the program that waits.
    pub fn waiting_function(&self, wait: &Wait) -> Option<&str> {
        self.waiting(wait).map(|(function, _)| self.functions.list[function].function.as_str())
    }

    /// Where it waits: source file and line of that function, where they are known.
    pub fn waiting_place(&self, wait: &Wait) -> Option<(&str, u32)> {
        let (function, line) = self.waiting(wait)?;
        let file = self.functions.list[function].file.as_str();
        (!file.is_empty() && line > 0).then_some((file, line))
    }

    /// Whether a pole is mostly what it calls: then its own time is a small part of it.
    fn wraps(&self, pole: &Pole, own: i64) -> bool {
        let whole: i64 = pole.nodes.iter().map(|&n| self.forest.nodes[n].range.nanos()).sum_nanos();
        pole.nodes.iter().any(|&n| self.forest.nodes[n].subtree_end() > n + 1) && own < whole / 2
    }

    /// What a pole is whose own time has too few samples: one that hardly has any, or a short one.
    fn too_short(&self, pole: &Pole) -> &'static str {
        let whole: i64 = pole.nodes.iter().map(|&n| self.forest.nodes[n].range.nanos()).sum_nanos();
        let has_children = pole.nodes.iter().any(|&n| self.forest.nodes[n].subtree_end() > n + 1);
        if has_children && pole.on_path_nanos < whole / 10 { "hardly more than what it calls" } else { "too short for the sampling rate" }
    }

    /// The event after which a pole waited longest, where that was most of its longest span.
    fn event_before_wait(&self, pole: &Pole) -> Option<&str> {
        let longest = pole.nodes.iter().copied().max_by_key(|&n| (self.path.on_path_nanos[n], std::cmp::Reverse(n)))?;
        let span = self.forest.span(&self.recording, longest)?;
        let ends = span.events.iter().skip(1).map(|event| event.time).chain([span.end]);
        let waits = span.events.iter().zip(ends).map(|(event, end)| (end.nanos_since(event.time), event.name.as_str()));
        let (wait, event) = waits.filter(|(_, event)| !PAYLOAD_LOGS.contains(event)).max_by_key(|(wait, _)| *wait)?;
        (wait > span.end.nanos_since(span.start) / 2).then_some(event)
    }

    /// Whether there are several of them and none overlaps another.
    fn in_sequence(&self, nodes: &[usize]) -> bool {
        let mut ranges: Vec<_> = nodes.iter().map(|&n| self.forest.nodes[n].range).collect();
        ranges.sort_by_key(|r| r.start);
        ranges.len() > 1 && ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// For each node how much of its time on the critical path a thread of it was on a CPU.
    pub fn path_cpu_nanos(&self) -> Vec<i64> {
        let mut out = vec![0; self.forest.len()];
        if self.recording.samples.is_empty() && self.recording.cpu_slices.is_empty() {
            return out;
        }
        let activity = self.activity();
        let mut by_node: Vec<Stretch> = self.path_stretches(|_| true).collect();
        // Stable: the stretches of a node stay in order of time.
        by_node.sort_by_key(|s| s.node);
        for same in by_node.chunk_by(|a, b| a.node == b.node) {
            out[same[0].node] = activity.states(same.iter().copied()).on_cpu_nanos;
        }
        out
    }

    fn split_deployment(&self) -> Option<DeploymentTime> {
        let parts = deployment::parts(&self.recording, &self.forest)?;
        let cpu = ProviderCpu::new(&self.recording, &self.forest, &self.sample_offsets);
        let stretches = self.path_stretches(|_| true).map(|s| (parts[s.node], s.to.saturating_sub(s.from), cpu.between(s.from, s.to)));
        Some(deployment::add_up(stretches))
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

    fn path_stretches(&self, wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = Stretch> {
        let origin = self.origin();
        self.path.segments.iter().filter(move |s| wanted(s.node)).map(move |s| Stretch {
            node: s.node,
            from: s.range.start.nanos_since(origin),
            to: s.range.end.nanos_since(origin),
        })
    }

    fn stretches_on_path(&self, nodes: &[usize]) -> Vec<Stretch> {
        let mut is_of = vec![false; self.forest.len()];
        nodes.iter().for_each(|&node| is_of[node] = true);
        self.path_stretches(|node| is_of[node]).collect()
    }

    /// Whether the node was made from a process, the run included.
    pub fn is_process(&self, node: usize) -> bool {
        !matches!(self.forest.nodes[node].source(), NodeSource::Span(_))
    }
}

/// Whether it is on a CPU for most of its time, or could be: whoever lacks a CPU has something to compute.
fn computes(states: &States) -> bool {
    let (busy, runnable) = (percent_of(states.on_cpu_nanos, states.own()), percent_of(states.runnable_nanos, states.own()));
    busy >= BUSY_PERCENT || (busy > WAITING_PERCENT && busy + runnable >= BUSY_PERCENT)
}

/// Whether the stack of a wait is one of these, of all stacks.
fn is_on(stacks: &[bool], wait: &Wait) -> bool {
    wait.stack.is_some_and(|stack| stacks.get(stack.0 as usize).copied().unwrap_or(false))
}

/// What it was blocked for longest, and how long, where that was seen of most of the time in which it was on no CPU.
fn told_wait(states: &States) -> Option<(WaitKind, i64)> {
    let seen: i64 = states.blocked_nanos.iter().sum_nanos();
    states.longest_wait().filter(|_| seen.saturating_mul(2) >= states.own().saturating_sub(states.on_cpu_nanos))
}

/// Whole percent, 0 of nothing.
fn percent_of(part: i64, whole: i64) -> i64 {
    let whole = i128::from(whole.max(1));
    i64::try_from((i128::from(part) * 100 + whole / 2) / whole).unwrap_or(i64::MAX)
}

fn labels(recording: &Recording, forest: &Forest) -> Labels {
    fn place<'a>(text: &'a str, seen: &mut QuickMap<&'a str, u32>, list: &mut Vec<String>) -> u32 {
        *seen.entry(text).or_insert_with(|| {
            list.push(text.to_owned());
            list.len() as u32 - 1
        })
    }
    let mut labels = Labels::default();
    let (mut services, mut names) = (QuickMap::default(), QuickMap::default());
    for node in 0..forest.len() {
        labels.service.push(place(forest.service(recording, node), &mut services, &mut labels.services));
        labels.name.push(place(forest.name(recording, node), &mut names, &mut labels.names));
    }
    labels
}

/// A function without the types that it was made for: `write<core::hash::sip::Sip13Rounds>` is `write`.
fn without_types(function: &str) -> &str {
    match function.find('<') {
        Some(at) if at > 0 && function.ends_with('>') && !function[..at].ends_with("::") => &function[..at],
        _ => function,
    }
}

/// A time as a person says it: `1.26s`, `12.3ms`, `7µs`.
fn time_words(nanos: i64) -> String {
    match nanos {
        1_000_000_000.. => format!("{:.2}s", nanos as f64 / 1e9),
        1_000_000.. => format!("{:.1}ms", nanos as f64 / 1e6),
        _ => format!("{}µs", nanos / 1000),
    }
}

impl WaitSum<'_> {
    /// How a person says it.
    pub fn word(&self) -> &'static str {
        match self.relation {
            Some(Relation::Wakes) => "waiting for another thread",
            _ => wait_word(self.wait.kind),
        }
    }
}

/// How a person says what is waited for.
pub fn wait_word(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "blocked on a lock",
        WaitKind::Join => "waiting for a thread to end",
        WaitKind::Disk => "blocked on the disk",
        WaitKind::Network => "blocked on the network",
        WaitKind::Sleep => "asleep",
        WaitKind::PageFault => "blocked on memory that is brought in",
        WaitKind::Child => "waiting for a child process",
        WaitKind::Pipe => "blocked on a pipe",
        WaitKind::Other => "blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    fn report(text: &str) -> Report {
        Report::new(text::parse(text).unwrap())
    }

    #[test]
    fn handles_are_spelled_from_one() {
        for handle in [Handle::Node(0), Handle::Pole(11), Handle::Function(2)] {
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
        assert_eq!("s1".parse(), Ok(Handle::Node(0)));
        for wrong in ["", "s", "s0", "s01", "x1", "s-1", "s+1", "1", "s99999999999999999999", "ß1"] {
            assert_eq!(wrong.parse::<Handle>(), Err(HandleError), "{wrong}");
        }
    }

    #[test]
    fn the_reason_of_a_pole_is_what_its_samples_tell() {
        let reason = |text: &str| {
            let report = report(text);
            let reason = report.reason(&report.poles()[0]);
            (reason.code.as_str(), reason.text)
        };
        let busy = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;build;hash\n";
        assert_eq!(reason(busy), ("on_cpu", "95 % on-CPU, most of it (95.0ms) in hash".to_owned()));
        let waits = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x4 pid 1 [build] main\n";
        assert_eq!(reason(waits), ("waits", "96 % unaccounted, 4 % on-CPU".to_owned()));
        let mixed = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] main;hash\n";
        assert_eq!(reason(mixed), ("mixed", "40 % on-CPU, most of it (40.0ms) in hash; 60 % unaccounted".to_owned()));
        assert_eq!(reason("run x 0..100ms\n  build 0..100ms\n").0, "no_samples");
        assert_eq!(reason("run x 0..9ms\n  build 0..9ms svc pid 1\nsample 1ms pid 1 [build] main\n").0, "few_samples");
        let loops = "run x 0..100ms\n  post 0..50ms svc pid 1\n  post 50..100ms svc pid 1\nsample 0ms pid 1 main\n";
        assert_eq!(reason(loops), ("waits", "2 in sequence; 99 % unaccounted, 1 % on-CPU".to_owned()));
    }

    #[test]
    fn who_answers_a_call_is_named_where_no_span_does() {
        let report = report(
            "\
run x  0..100ms
process bank  1..99ms pid 2 under 1 listens 127.0.0.1:80
process idle  1..20ms pid 3 under 1
validate  10..90ms  pay  pid 1 kind client server.address=127.0.0.1 server.port=80
wait 11..90ms pid 1 network [validate] main;pay;recv
wait  2..12ms pid 2 tid 2 network main;accept
wait 13..80ms pid 2 tid 2 sleep main;look_up
wait 13..18ms pid 3 tid 3 sleep main;other
sample 82ms x3 pid 2 tid 2 main;answer
",
        );
        // The bank is called, and its life is no work of its own.
        let names: Vec<&str> = (0..report.forest().len()).map(|node| report.name(node)).collect();
        assert_eq!(names, ["x", "idle", "validate"]);
        let callee = report.callee(&[2]).unwrap();
        assert_eq!((callee.address.to_string().as_str(), &callee.processes[..], callee.answers), ("127.0.0.1:80", &[1][..], false));
        assert_eq!(callee.samples.len(), 3);
        let waits: Vec<_> = callee.waits.iter().map(|sum| (sum.wait.kind, sum.nanos / 1_000_000)).collect();
        assert_eq!(waits, [(WaitKind::Sleep, 67)]);
        let pole = report.poles().iter().find(|pole| pole.name == "validate").unwrap();
        assert_eq!(report.reason(pole).text, "99 % blocked on the network, in recv");
        assert_eq!(report.callee_words(&report.callee(&pole.nodes).unwrap()).unwrap(), "in process bank (pid 2): asleep, in look_up");
    }

    #[test]
    fn a_reason_names_the_programs_own_function_and_the_library_it_calls() {
        let reason = |text: &str| {
            let report = report(text);
            report.reason(&report.poles()[0])
        };
        let text = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;index_words;std::hash_one;std::write\n";
        let found = reason(text);
        assert_eq!(found.text, "95 % on-CPU, most of it (95.0ms) in index_words (mostly in std::write)");
        assert_eq!((found.function.as_deref(), found.mostly_in.as_deref()), (Some("index_words"), Some("std::write")));
        let spread = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] tokio::run;a\nsample 40ms x40 pid 1 [build] tokio::run;b\nsample 80ms x15 pid 1 [build] tokio::run;c\n";
        assert_eq!(reason(spread).text, "95 % on-CPU, spread over many functions");
        let nothing_own = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] std::rt;std::write\n";
        assert_eq!(reason(nothing_own).text, "95 % on-CPU, most of it (95.0ms) in std::write");
    }

    #[test]
    fn shares_of_what_a_wrapper_does_itself_are_said_to_be_of_that() {
        let report =
            report("run x 0..100ms\n  outer 0..100ms svc pid 1\n    inner 0..60ms svc pid 1\nsample 62ms x30 pid 1 [outer] main;hash\n");
        let pole = report.poles().iter().find(|pole| pole.name == "outer").unwrap();
        assert_eq!(report.reason(pole).text, "of its own 40.0ms: 75 % on-CPU, most of it (30.0ms) in hash");
    }

    #[test]
    fn waits_of_a_function_on_two_lines_are_told_apart_and_those_of_two_threads_do_not_add_up_beyond_the_call() {
        let report = report(
            "\
run x 0..100ms
process bank 0..99ms pid 2 under 1 listens 127.0.0.1:80
call 10..90ms pay pid 1 kind client server.address=127.0.0.1 server.port=80
wait 11..31ms pid 1 sleep [call] main;nap@m.rs:3
wait 40..50ms pid 1 sleep [call] main;nap@m.rs:9
wait 12..80ms pid 2 tid 2 sleep main;look_up
wait 20..88ms pid 2 tid 3 sleep main;look_up
",
        );
        let call = (0..report.forest().len()).find(|&node| report.name(node) == "call").unwrap();
        let waits = report.node_waits(call);
        let places: Vec<_> = waits[0].places.iter().map(|place| (place.line, place.nanos / 1_000_000)).collect();
        assert_eq!((waits.len(), waits[0].nanos / 1_000_000, places), (1, 30, vec![(3, 20), (9, 10)]));
        let callee = report.callee(&[call]).unwrap();
        let waits: Vec<_> = callee.waits.iter().map(|sum| (sum.nanos / 1_000_000, sum.threads)).collect();
        assert_eq!(waits, [(76, 2)]);
    }

    #[test]
    fn spans_are_found_by_name_and_by_trace_and_none_counts_twice() {
        let report = report("a 0..50ms svc\n  b 1..9ms svc\n    a 2..5ms svc\ntrace 2\na 60..70ms svc\n");
        let starts = |nodes: Vec<usize>| -> Vec<i64> {
            nodes.iter().map(|&node| report.forest().nodes[node].range.start.nanos_since(report.origin()) / 1_000_000).collect()
        };
        assert_eq!(starts(report.nodes_of_name("a")), [0, 2, 60]);
        assert_eq!(starts(report.outermost(report.nodes_of_name("a"))), [0, 60]);
        assert!(report.nodes_of_name("c").is_empty());
        let trace = report.recording().spans.last().unwrap().trace_id;
        assert_eq!(starts(report.outermost(report.nodes_of_trace(trace))), [60]);
    }

    #[test]
    fn a_function_of_many_spans_leads_to_their_operation() {
        let report = report(
            "\
a 0..10ms svc pid 1
a 10..20ms svc pid 1
a 20..30ms svc pid 1
sample 1ms x4  pid 1 main;hash
sample 11ms x2 pid 1 main;hash
sample 14ms x2 pid 1 main
sample 21ms x2 pid 1 main
",
        );
        let hash = report.functions().list.iter().position(|f| f.function == "hash").unwrap();
        let found: Vec<_> = report.nodes_with(hash).operations.iter().map(|it| (it.nodes, it.samples, it.share)).collect();
        assert_eq!(found, [(2, 6, 0.6)]);
    }

    #[test]
    fn a_span_leads_to_its_functions_and_a_function_to_its_spans() {
        let report = report(
            "\
run x  0..100ms
  a  0..50ms   svc  pid 1
    b  10..40ms  svc
  c  50..99ms  svc  pid 1
sample 1ms x4   pid 1 [a] main;io
sample 11ms x20 pid 1 [b] main;hash
sample 60ms x10 pid 1 [c] main;hash
sample 80ms x10 pid 1 [c] main;io
sample 99.5ms   pid 9 [~] other
",
        );
        let a = report.flame(Some(&[1]), FlameTime::OnCpu);
        assert_eq!((a.tree.samples, a.links.record, a.few_samples()), (24, 24, false));
        let functions = &report.functions().list;
        let names = |samples: &[u32]| -> Vec<&str> {
            report.top_functions(samples).iter().map(|f| functions[f.function].function.as_str()).collect()
        };
        assert_eq!(names(report.own_samples(2)), ["hash", "main"]);
        assert_eq!(names(report.own_samples(3)), ["hash", "io", "main"]);
        let hash = functions.iter().position(|f| f.function == "hash").unwrap();
        let spans = report.nodes_with(hash);
        let found: Vec<(&str, u64, f64)> = spans.nodes.iter().map(|n| (report.name(n.node), n.samples, n.share)).collect();
        assert_eq!(found, [("b", 20, 1.0), ("c", 10, 0.5)]);
        let found: Vec<(&str, u64, f64)> = spans.operations.iter().map(|it| (report.name(it.example), it.nodes, it.share)).collect();
        assert_eq!(found, [("b", 1, 1.0), ("c", 1, 0.5)]);
        let other = functions.iter().position(|f| f.function == "other").unwrap();
        assert_eq!(report.nodes_with(other).unlinked_samples, 1);
        assert_eq!(report.link_counts(report.all_samples()).none, 1);
    }
}
