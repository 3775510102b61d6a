//! What a recording looks like from outside: the shapes of `docs/formats/http-api.md`, and nothing else.
//!
//! The HTTP API, `--format json` and the text of the terminal are all made from these values, so that every number a person
//! can see is the same everywhere. Times are offsets in nanoseconds from the run's start; ids are lower-case hex.

use longpole_model::SumNanos;
use serde::{Deserialize, Serialize};

mod build;
pub mod diff;
mod source;
mod spans;
#[cfg(test)]
mod tests;
mod usage;

pub use usage::{GrowthView, NotableView, ProcessRowView, ProcessesView, ReadingColumns, UsageView};

pub(crate) use build::roots_of;
pub use build::{Chosen, TopOptions};
pub use source::{SourceLineView, SourceView};
pub use spans::{DurationsView, SpanOfNameView, SpansView};

/// `[low, high]`, in nanoseconds.
pub type RangeNanos = [i64; 2];

/// One recording in a list.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingView {
    /// `r7`.
    pub recording: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it started.
    pub start_unix_nano: String,
    /// How long it ran; 0 while that is not known.
    pub wall_nanos: i64,
    /// How it ended.
    pub exit: Option<ExitView>,
    /// `sealed`, `recording`, `killed`, or `ended`: its recorder ended and could not seal it.
    pub state: String,
    /// Why it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_sealed: Option<String>,
    /// Spans received.
    pub spans: u64,
    /// Samples taken.
    pub samples: u64,
    /// Its first long pole.
    pub answer: Option<AnswerView>,
    /// The names people gave it.
    pub tags: Vec<String>,
}

/// Recordings, newest first.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingsView {
    /// The list.
    pub recordings: Vec<RecordingView>,
    /// What is wrong with rows of the catalog that are no recordings, each in words.
    pub damaged: Vec<String>,
}

/// The first long pole in one line; kept in the catalog.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnswerView {
    /// Service of the pole.
    pub service: String,
    /// Its operation.
    pub name: String,
    /// The piece of work it is part of.
    pub context: Option<String>,
    /// What the run would end earlier without it.
    pub saves_if_zero_nanos: RangeNanos,
    /// The function with most of its own samples.
    pub function: Option<String>,
}

/// How a command ended; one of the two is set.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ExitView {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal that killed it.
    pub signal: Option<i32>,
}

/// Where time went; the parts, all but `cpu_nanos`, sum to the duration of what they describe.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StatesView {
    /// Running code of its own.
    pub on_cpu_nanos: i64,
    /// Ready to, and without a CPU because others had it.
    pub runnable_nanos: i64,
    /// Covered by children.
    pub in_child_nanos: i64,
    /// Blocked, by what for.
    pub blocked_nanos: BlockedView,
    /// Blocked, and nobody looked what for.
    pub blocked_unseen_nanos: i64,
    /// Open, and no thread worked for it: an asynchronous span between two polls.
    pub awaiting_nanos: i64,
    /// The same of the calling side: the network or another host worked for it.
    pub remote_nanos: i64,
    /// None of these is known.
    pub unaccounted_nanos: i64,
    /// On CPUs, of all its threads together; no part of the sum.
    pub cpu_nanos: i64,
    /// Whether these are the figures, and not an estimate of them.
    pub exact: bool,
    /// `journal`, `inferred` or `samples`.
    pub evidence: &'static str,
}

/// Blocked time by what was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BlockedView {
    /// A lock, or another thread to go on.
    pub lock: i64,
    /// Another thread to end.
    pub join: i64,
    /// A file.
    pub disk: i64,
    /// A socket.
    pub network: i64,
    /// Time to pass.
    pub sleep: i64,
    /// Memory to be brought in.
    pub page_fault: i64,
    /// A child process to end.
    pub child: i64,
    /// A pipe.
    pub pipe: i64,
    /// None of these, or not known.
    pub other: i64,
}

impl BlockedView {
    /// What for and how long, longest first; what did not occur is left out.
    pub fn parts(&self) -> Vec<(&'static str, i64)> {
        let BlockedView { lock, join, disk, network, sleep, page_fault, child, pipe, other } = *self;
        let mut parts = vec![
            ("lock", lock),
            ("join", join),
            ("disk", disk),
            ("network", network),
            ("sleep", sleep),
            ("page fault", page_fault),
            ("child", child),
            ("pipe", pipe),
            ("other", other),
        ];
        parts.retain(|(_, nanos)| *nanos > 0);
        parts.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        parts
    }

    /// With another one.
    fn plus(&self, other: &Self) -> Self {
        BlockedView {
            lock: self.lock.saturating_add(other.lock),
            join: self.join.saturating_add(other.join),
            disk: self.disk.saturating_add(other.disk),
            network: self.network.saturating_add(other.network),
            sleep: self.sleep.saturating_add(other.sleep),
            page_fault: self.page_fault.saturating_add(other.page_fault),
            child: self.child.saturating_add(other.child),
            pipe: self.pipe.saturating_add(other.pipe),
            other: self.other.saturating_add(other.other),
        }
    }

    /// All of it.
    pub fn sum(&self) -> i64 {
        self.parts().iter().map(|(_, nanos)| nanos).sum_nanos()
    }
}

/// Waits of one kind in one function.
#[derive(Debug, Clone, Serialize)]
pub struct WaitView {
    /// `lock`, `join`, `disk`, `network`, `sleep`, `page_fault`, `child`, `pipe`, `other`.
    pub kind: &'static str,
    /// System call; null where it was in none, or in one without a name here.
    pub syscall: Option<String>,
    /// The function of the program that waits; null where its stack is not known.
    pub function: Option<String>,
    /// Its source file; empty where unknown.
    pub file: String,
    /// The line there at which it waits longest, 0 where unknown.
    pub line: u32,
    /// How long, children left out; where several threads of a callee waited at the same time, that time once.
    pub nanos: i64,
    /// Threads that waited.
    pub threads: u64,
    /// All lines at which it waits, longest first.
    pub places: Vec<PlaceView>,
    /// Which threads they were for, where they were for any, and something is known of them.
    pub blocked_by: Option<BlockedByView>,
}

/// Threads that others waited for.
#[derive(Debug, Clone, Serialize)]
pub struct BlockedByView {
    /// `holds` (the lock), `ends` (was to), `wakes` (no lock was held).
    pub relation: &'static str,
    /// Those that are known, longest first, at most five.
    pub threads: Vec<BlockerView>,
    /// Time for which it was one of several.
    pub one_of: Option<OneOfView>,
    /// For people.
    pub text: String,
}

/// It is not known which of several threads it was.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OneOfView {
    /// How many there were, at most.
    pub threads: u32,
    /// For how long of the waits.
    pub nanos: i64,
}

/// A thread that others waited for, and what it did meanwhile.
#[derive(Debug, Clone, Serialize)]
pub struct BlockerView {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<String>,
    /// `futex` (it names the thread) or `inferred` (no other one ran when the wait was over).
    pub evidence: &'static str,
    /// For how long of the waits.
    pub nanos: i64,
    /// Its samples in that time.
    pub samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What it waited for then, longest first.
    pub waits: Vec<WaitView>,
    /// For people.
    pub text: String,
}

/// A line with waits.
#[derive(Debug, Clone, Serialize)]
pub struct PlaceView {
    /// Source file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// How long.
    pub nanos: i64,
}

/// What lies on a line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LineView {
    /// The line.
    pub line: u32,
    /// Time on CPUs there, and in what it called from there.
    pub total_nanos: i64,
    /// Time on CPUs there itself.
    pub self_nanos: i64,
    /// Waits there, and in what it called from there.
    pub waited_nanos: i64,
}

/// Samples by how they were tied to their span.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct LinksView {
    /// Named by the context record.
    pub record: u64,
    /// Named by the journal of the thread.
    pub journal: u64,
    /// Named by the profile that was read.
    pub label: u64,
    /// The one span that fits process, thread and time.
    pub inferred: u64,
    /// Several spans fit.
    pub ambiguous: u64,
    /// No span was open.
    pub none: u64,
}

/// What recording cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RecorderView {
    /// CPU time of the recorder.
    pub cpu_nanos: u64,
    /// Its largest resident memory.
    pub rss_bytes_max: u64,
}

/// How much ran at once.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ParallelismView {
    /// Operations in flight on average over the run.
    pub mean: f64,
    /// At the peak.
    pub peak: u64,
    /// Own time of all operations together.
    pub work_nanos: i64,
    /// How long the run would have been if everything that could run at once had.
    pub span_nanos: i64,
}

/// Where the time of a deployment by Pulumi went, along the critical path; the parts sum to the run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DeploymentView {
    /// A provider waited for the cloud.
    pub cloud_wait_nanos: i64,
    /// A provider's own code.
    pub provider_nanos: i64,
    /// Pulumi's engine.
    pub engine_nanos: i64,
    /// The language host and the program.
    pub language_host_nanos: i64,
    /// Plug-ins were found, installed, started and configured.
    pub plugin_start_nanos: i64,
    /// The state was read or written.
    pub state_backend_nanos: i64,
    /// The program was compiled.
    pub compile_nanos: i64,
    /// Nothing of the deployment was there.
    pub idle_nanos: i64,
}

/// Something missing or peculiar.
#[derive(Debug, Clone, Serialize)]
pub struct QualityView {
    /// Stable code.
    pub code: String,
    /// How many.
    pub count: u64,
    /// Why, and what to do.
    pub detail: String,
}

/// How many entries a list left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PolesTruncated {
    /// Poles.
    pub poles: usize,
}

/// How many entries a list left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SpansTruncated {
    /// Spans.
    pub spans: usize,
}

/// The answer of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct SummaryView {
    /// `longpole.summary/1`.
    pub schema: &'static str,
    /// `r7`.
    pub recording: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How it ended; null where nobody saw it.
    pub exit: Option<ExitView>,
    /// When it started.
    pub start_unix_nano: String,
    /// How long it ran.
    pub wall_nanos: i64,
    /// CPU time of the command and what it waited for.
    pub cpu_nanos: Option<u64>,
    /// Machine.
    pub host: String,
    /// `user`, `off` or `refused`.
    pub mode: String,
    /// Samples a second that were asked for; 0 without sampling.
    pub rate_hz: u32,
    /// Processes seen.
    pub processes: u64,
    /// Traces received.
    pub traces: u64,
    /// Spans received.
    pub spans: u64,
    /// Samples taken.
    pub samples: u64,
    /// All samples by how they were tied.
    pub links: LinksView,
    /// States of the critical path; they sum to the wall time.
    pub states: StatesView,
    /// How much ran at once.
    pub parallelism: ParallelismView,
    /// For a deployment by Pulumi: is it the cloud, or Pulumi itself?
    pub deployment: Option<DeploymentView>,
    /// What processes used that is worth a line: memory, storage.
    pub usage: Vec<NotableView>,
    /// The first poles.
    pub poles: Vec<PoleView>,
    /// Where the run itself is all there is to fix, or processes were looked at that ran already: functions by time in themselves,
    /// else none.
    pub functions: Vec<TopFrameView>,
    /// What all samples stand for.
    pub weight_nanos: i64,
    /// Where processes were looked at that ran already: what they did meanwhile.
    pub attached: Option<AttachedView>,
    /// What is missing.
    pub quality: Vec<QualityView>,
    /// What recording cost.
    pub recorder: Option<RecorderView>,
    /// What this list left out.
    pub truncated: PolesTruncated,
}

/// What processes did that were looked at for a while.
#[derive(Debug, Clone, Serialize)]
pub struct AttachedView {
    /// The process that was asked for.
    pub pid: Option<u32>,
    /// How many threads were seen.
    pub threads_seen: u64,
    /// Those that matter most.
    pub threads: Vec<ThreadView>,
    /// On CPUs, of all threads together.
    pub on_cpu_nanos: i64,
    /// They could have run, and others had the CPUs.
    pub ready_nanos: i64,
    /// Blocked, by what for, of all threads together.
    pub blocked_nanos: BlockedView,
    /// Blocked, and not looked at.
    pub blocked_unseen_nanos: i64,
    /// What they waited for, longest first; workers that wait for work are left out where others wait.
    pub waits: Vec<WaitView>,
}

/// All poles.
#[derive(Debug, Clone, Serialize)]
pub struct PolesView {
    /// `r7`.
    pub recording: String,
    /// How long the run took.
    pub wall_nanos: i64,
    /// Ranked by what their own time saves.
    pub poles: Vec<PoleView>,
    /// What this list left out.
    pub truncated: PolesTruncated,
}

/// A long pole.
#[derive(Debug, Clone, Serialize)]
pub struct PoleView {
    /// `p1`.
    pub handle: String,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// The piece of work it is part of.
    pub context: Option<String>,
    /// Spans in the group.
    pub count: u64,
    /// Their handles, longest on the path first.
    pub spans: Vec<String>,
    /// What the list of spans left out.
    pub truncated: SpansTruncated,
    /// Time of the critical path in which one of them was innermost.
    pub on_path_nanos: i64,
    /// What the run would end earlier if they and their descendants took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// The same at half their time.
    pub saves_if_half_nanos: RangeNanos,
    /// The same if only their own time were zero.
    pub saves_own_nanos: RangeNanos,
    /// What the run would end earlier if this pole and all before it took no time; of the first 16.
    pub saves_with_those_before_nanos: Option<RangeNanos>,
    /// `declared` or `inferred`.
    pub evidence: &'static str,
    /// States of their own time on the path.
    pub states: StatesView,
    /// Why it takes its time.
    pub reason: ReasonView,
    /// Who answers its spans, where they call one address.
    pub callee: Option<CalleeView>,
    /// Which threads it waited for, where that is most of what it was blocked for.
    pub blocked_by: Option<BlockedByView>,
    /// Handle of the pole inside it that explains most of what it saves.
    pub contains: Option<String>,
    /// What would end last in its place if it took no time: why it saves less than it takes.
    pub limited_by: Option<LimitView>,
    /// URN of the cloud resource that it works on.
    pub resource: Option<String>,
    /// Functions of their own samples.
    pub top_frames: Vec<TopFrameView>,
    /// Their own samples.
    pub samples: u64,
    /// What those stand for, of all threads.
    pub weight_nanos: i64,
    /// Whether they are too few to measure with.
    pub few_samples: bool,
}

/// A span that limits what a pole saves.
#[derive(Debug, Clone, Serialize)]
pub struct LimitView {
    /// `s9`.
    pub handle: String,
    /// The resource that it works on, or its operation.
    pub name: String,
    /// Handle of the pole that it belongs to.
    pub pole: Option<String>,
}

/// Why a pole takes its time.
#[derive(Debug, Clone, Serialize)]
pub struct ReasonView {
    /// `on_cpu`, `waits`, `mixed`, `few_samples` or `no_samples`.
    pub code: &'static str,
    /// For people.
    pub text: String,
    /// The function that the text names.
    pub function: Option<String>,
    /// The function of a library that the text says most of it is in.
    pub mostly_in: Option<String>,
}

/// A function with its share of some samples.
#[derive(Debug, Clone, Serialize)]
pub struct TopFrameView {
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// What runs it, where no binary of the process holds it: `python`, `node`, `jvm`, `other`, `kernel`.
    pub runtime: Option<&'static str>,
    /// Whose code it is: `program`, `library`, `language`, `interpreter`, `system`, `kernel`.
    pub whose: &'static str,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Time in it and what it called.
    pub total_nanos: i64,
    /// Samples that contain it.
    pub samples: u64,
    /// The lines of it with the most time here, at most three.
    pub lines: Vec<LineView>,
}

/// The other side of a call.
#[derive(Debug, Clone, Serialize)]
pub struct CalleeView {
    /// The address that is called: `127.0.0.1:8080`.
    pub address: String,
    /// Processes of the run that take connections there: one, and those that it forked to share the work; none where nobody was seen.
    pub processes: Vec<CalleeProcessView>,
    /// Whether a span of it answers, which then says what it does.
    pub answers: bool,
    /// Samples of these processes while they were called, for whomever.
    pub samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What these processes waited for then, longest first.
    pub waits: Vec<WaitView>,
    /// For people, where no span of it answers: who it is, and what it did most.
    pub text: Option<String>,
}

/// A process that is called.
#[derive(Debug, Clone, Serialize)]
pub struct CalleeProcessView {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// The tree in columns, rows in pre-order.
#[derive(Debug, Clone, Serialize)]
pub struct TreeView {
    /// `r7`.
    pub recording: String,
    /// Start of the run.
    pub origin_unix_nano: String,
    /// How long the run took.
    pub wall_nanos: i64,
    /// Dictionary of services.
    pub services: Vec<String>,
    /// Dictionary of operations.
    pub names: Vec<String>,
    /// The rows.
    pub spans: TreeColumns,
    /// The critical path, from start to end.
    pub critical_path: PathColumns,
    /// What is peculiar about the tree.
    pub notes: Vec<QualityView>,
}

/// Columns of a tree; row `i` has handle `s{i+1}`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TreeColumns {
    /// Row of the parent, -1 for the root.
    pub parent: Vec<i64>,
    /// Level, 0 for the root.
    pub depth: Vec<u32>,
    /// Number of descendants.
    pub subtree: Vec<u64>,
    /// Start.
    pub start_nanos: Vec<i64>,
    /// Length.
    pub duration_nanos: Vec<i64>,
    /// Index into the services.
    pub service: Vec<u32>,
    /// Index into the names.
    pub name: Vec<u32>,
    /// Bits, see the page of the format.
    pub flags: Vec<u32>,
    /// Time of the critical path in which it was innermost.
    pub on_path_nanos: Vec<i64>,
    /// Own samples.
    pub samples: Vec<u64>,
}

/// The critical path in columns.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PathColumns {
    /// Row of the tree.
    pub span: Vec<u64>,
    /// Start of the stretch.
    pub start_nanos: Vec<i64>,
    /// End of the stretch.
    pub end_nanos: Vec<i64>,
}

/// A pole of several spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoleOfSpanView {
    /// `p3`.
    pub handle: String,
    /// How many spans it has.
    pub count: u64,
    /// What the run would end earlier if all of them, with their descendants, took no time.
    pub saves_if_zero_nanos: RangeNanos,
}

/// One span.
#[derive(Debug, Clone, Serialize)]
pub struct SpanView {
    /// `r7`.
    pub recording: String,
    /// `s12`.
    pub handle: String,
    /// The pole that was asked for, where it has more spans than this one, the longest of them on the critical path.
    pub pole: Option<PoleOfSpanView>,
    /// Null for a span made from a process.
    pub trace_id: Option<String>,
    /// Null for a span made from a process.
    pub span_id: Option<String>,
    /// Its parent.
    pub parent: Option<ParentView>,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Role.
    pub kind: &'static str,
    /// Outcome.
    pub status: StatusView,
    /// Start.
    pub start_nanos: i64,
    /// Length.
    pub duration_nanos: i64,
    /// Process that emitted it.
    pub process: Option<ProcessView>,
    /// Attributes.
    pub attributes: Vec<AttributeView>,
    /// Attributes of the resource.
    pub resource: Vec<AttributeView>,
    /// Events.
    pub events: Vec<EventView>,
    /// Links.
    pub links: Vec<SpanLinkView>,
    /// Where its time went.
    pub states: StatesView,
    /// Where it went by what the span and its descendants did.
    pub states_with_descendants: StatesView,
    /// What it waited for, longest first; waits below 5 ms are not looked at.
    pub waits: Vec<WaitView>,
    /// Who answers it, where it calls an address.
    pub callee: Option<CalleeView>,
    /// How its samples are tied.
    pub samples: SpanSamplesView,
    /// Whether its samples are too few to measure with.
    pub few_samples: bool,
    /// Where they are: all spans of its name, where they have more.
    pub same_name: Option<SameNameView>,
    /// What it saves.
    pub savings: SavingsView,
    /// Functions of its own samples.
    pub top_frames: Vec<TopFrameView>,
    /// Number of children.
    pub children: u64,
}

/// The parent of a span.
#[derive(Debug, Clone, Serialize)]
pub struct ParentView {
    /// `s3`.
    pub handle: String,
    /// `declared` or `inferred`.
    pub edge: &'static str,
}

/// Outcome of a span.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView {
    /// `unset`, `ok` or `error`.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

/// A process.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessView {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How it ended; null where nobody could see it.
    pub exit: Option<ExitView>,
    /// What it used; null where it was not read.
    pub usage: Option<UsageView>,
}

/// An attribute.
#[derive(Debug, Clone, Serialize)]
pub struct AttributeView {
    /// Key.
    pub key: String,
    /// A JSON string, number, boolean, list or object.
    pub value: serde_json::Value,
}

/// An event of a span.
#[derive(Debug, Clone, Serialize)]
pub struct EventView {
    /// When.
    pub time_nanos: i64,
    /// What.
    pub name: String,
    /// More.
    pub attributes: Vec<AttributeView>,
}

/// A link of a span.
#[derive(Debug, Clone, Serialize)]
pub struct SpanLinkView {
    /// Trace of the other span.
    pub trace_id: String,
    /// The other span.
    pub span_id: String,
    /// Its handle, where it is in the recording.
    pub handle: Option<String>,
}

/// Samples of a span.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SpanSamplesView {
    /// Its own.
    pub own: u64,
    /// With those of its descendants.
    pub with_descendants: u64,
    /// Its own, by how they were tied.
    pub links: LinksView,
}

/// What a span saves.
#[derive(Debug, Clone, Serialize)]
pub struct SavingsView {
    /// If it and its descendants took no time.
    pub saves_if_zero_nanos: RangeNanos,
    /// If they took half.
    pub saves_if_half_nanos: RangeNanos,
    /// If only its own time were zero.
    pub saves_own_nanos: RangeNanos,
    /// `declared` or `inferred`.
    pub evidence: &'static str,
    /// Time of the critical path in which it was innermost.
    pub on_path_nanos: i64,
}

/// A flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameView {
    /// `r7`.
    pub recording: String,
    /// Handle of the span; null for the whole run, and where spans are meant by name or trace.
    pub span: Option<String>,
    /// Name of the spans, where they were asked for by it.
    pub name: Option<String>,
    /// Id of the trace, where it was asked for.
    pub trace_id: Option<String>,
    /// What it is of, for people.
    pub title: String,
    /// Which time it shows: `on_cpu`, `off_cpu` (blocked, as far as it was looked at), `wall` (both).
    pub time: &'static str,
    /// Samples in it, and waits.
    pub samples: u64,
    /// Waits of threads that work for no span, idle workers among them, which the whole run's leaves out.
    pub left_out_waits: u64,
    /// Samples and waits whose innermost functions are left out: more paths than 2,097,152 are not told apart.
    pub cut_samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Whether that is too few to measure with.
    pub few_samples: bool,
    /// Of a span with too few samples: all of its name, where they have more.
    pub same_name: Option<SameNameView>,
    /// How they are tied.
    pub links: LinksView,
    /// Functions that the nodes name.
    pub frames: Vec<FlameFrameView>,
    /// The boxes.
    pub nodes: FlameColumns,
}

/// All spans of one name, with what is below them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SameNameView {
    /// The name.
    pub name: String,
    /// How many there are.
    pub spans: u64,
    /// Their samples.
    pub samples: u64,
}

/// The functions of a recording, or of a span with its descendants.
#[derive(Debug, Clone, Serialize)]
pub struct TopView {
    /// `r7`.
    pub recording: String,
    /// Handle of the span; null for the whole run, and where spans are meant by name or trace.
    pub span: Option<String>,
    /// Name of the spans, where they were asked for by it.
    pub name: Option<String>,
    /// Id of the trace, where it was asked for.
    pub trace_id: Option<String>,
    /// Which time it shows: `on_cpu`, `off_cpu` (blocked, as far as it was looked at), `wall` (both).
    pub time: &'static str,
    /// Samples, and waits.
    pub samples: u64,
    /// Waits of idle workers, and of threads that work for no span in processes that send some: the whole run's leaves them out.
    pub left_out_waits: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Functions, by time in themselves, or in them and what they call.
    pub functions: Vec<TopFrameView>,
    /// How many the limit left out.
    pub truncated: usize,
    /// Functions that only start the program or a thread and call it, or interpret: left out unless they are asked for.
    pub hidden: usize,
    /// What is missing of the recording.
    pub quality: Vec<QualityView>,
    /// Samples of the whole recording, of which `quality` counts some.
    #[serde(skip)]
    pub all_samples: u64,
}

/// The threads of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadsView {
    /// `r7`.
    pub recording: String,
    /// Threads, those with the most time on a CPU first.
    pub threads: Vec<ThreadView>,
}

/// Where the life of a thread went: exact, from switch records.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadView {
    /// Process.
    pub pid: u32,
    /// What the process is called.
    pub process: String,
    /// Thread.
    pub tid: u32,
    /// What the thread is called.
    pub name: String,
    /// The outermost function of the program's own in it, where it is not the main thread.
    pub entry: Option<String>,
    /// How long it lived.
    pub nanos: i64,
    /// On a CPU.
    pub on_cpu_nanos: i64,
    /// It could have run, and others had the CPUs.
    pub ready_nanos: i64,
    /// Blocked, by what for.
    pub blocked_nanos: BlockedView,
    /// Blocked, and not looked at: shorter than 5 ms each, or lost.
    pub blocked_unseen_nanos: i64,
    /// Threads of its process that it waited for, longest first, at most five.
    pub waited_for: Vec<WaitedForView>,
    /// Samples.
    pub samples: u64,
    /// Its place in the order in which threads matter: those that work in poles, run, wait for locks, wait long.
    pub rank: usize,
    /// Handle of the pole that it has most time in.
    pub pole: Option<String>,
    /// How much of the critical path it has in poles.
    pub in_poles_nanos: i64,
    /// Its longest wait, those of workers that wait for work left out.
    pub longest_wait_nanos: i64,
}

/// A thread that another one waited for.
#[derive(Debug, Clone, Serialize)]
pub struct WaitedForView {
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own; else the function that it begins with.
    pub name: Option<String>,
    /// `holds` (the lock), `ends` (was to), `wakes` (no lock was held).
    pub relation: &'static str,
    /// `futex` or `inferred`.
    pub evidence: &'static str,
    /// For how long.
    pub nanos: i64,
}

/// A function of a flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameFrameView {
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// Why it has no name, where it has none.
    pub reason: Option<String>,
    /// What runs it, where no binary of the process holds it: `python`, `node`, `jvm`, `other`, `kernel`.
    pub runtime: Option<&'static str>,
    /// Whose code it is: `program`, `library`, `language`, `interpreter`, `system`, `kernel`.
    pub whose: &'static str,
}

/// Boxes of a flame graph in pre-order; node 0 is the root.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FlameColumns {
    /// Node of the parent, -1 for the root.
    pub parent: Vec<i64>,
    /// Level, 0 for the root.
    pub depth: Vec<u32>,
    /// Index into the frames, -1 for the root.
    pub frame: Vec<i64>,
    /// Where the box starts.
    pub offset_nanos: Vec<i64>,
    /// Its width.
    pub total_nanos: Vec<i64>,
    /// Time in the function itself.
    pub self_nanos: Vec<i64>,
    /// The line of it with the most time here, 0 where unknown.
    pub line: Vec<u32>,
}

/// A function, and the spans it ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameView {
    /// `r7`.
    pub recording: String,
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// What runs it, where no binary of the process holds it: `python`, `node`, `jvm`, `other`, `kernel`.
    pub runtime: Option<&'static str>,
    /// Whose code it is: `program`, `library`, `language`, `interpreter`, `system`, `kernel`.
    pub whose: &'static str,
    /// Samples that contain it.
    pub samples: u64,
    /// Time in it and what it called.
    pub total_nanos: i64,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Waits that contain it.
    pub waits: u64,
    /// How long they were, of all threads together.
    pub waited_nanos: i64,
    /// What it waited for, longest first: in which function of the program, itself or one that it calls, and where.
    pub waited_for: Vec<WaitView>,
    /// Its lines, those with the most time first, at most 20; all are in its source.
    pub lines: Vec<LineView>,
    /// Spans whose own samples or waits contain it, largest first.
    pub spans: Vec<FrameSpanView>,
    /// The operations of these spans, and of those that the list left out, largest first.
    pub operations: Vec<FrameOperationView>,
    /// Samples that contain it and belong to no span.
    pub unlinked_samples: u64,
    /// Those among them that could belong to several spans.
    pub ambiguous_samples: u64,
    /// Waits that contain it and belong to no span.
    pub unlinked_waited_nanos: i64,
    /// What the list of spans left out.
    pub truncated: SpansTruncated,
}

/// An operation that a function ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameOperationView {
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Spans of it that contain the function.
    pub spans: u64,
    /// Their own samples that contain it.
    pub samples: u64,
    /// What they stand for.
    pub total_nanos: i64,
    /// Their own waits that contain it.
    pub waited_nanos: i64,
    /// Share of the own samples of all spans of the operation.
    pub share: f64,
}

/// A span that a function ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameSpanView {
    /// `s12`.
    pub handle: String,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Its own samples that contain the function.
    pub samples: u64,
    /// What they stand for.
    pub total_nanos: i64,
    /// Their own waits that contain it.
    pub waited_nanos: i64,
    /// Share of the span's own samples.
    pub share: f64,
}
