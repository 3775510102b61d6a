//! The answer of a recording.

use std::fmt::Display;

use longpole_analysis::Report;
use longpole_model::{CaptureMode, NodeId, RecorderCost};
use serde::{Deserialize, Serialize};

use super::attached::AttachedView;
use super::failed::FailedSpansView;
use super::functions::{TopFrameView, top_frames};
use super::poles::{PoleView, PolesTruncated, pole_views};
use super::pulumi::DeploymentView;
use super::shared::{ExitView, LinksView, QualityView, nanos, unix_nano};
use super::states::StatesView;
use super::summarised::SummarisedView;
use super::usage::NotableView;

/// Poles in a summary; the others are in the view of all poles.
const SUMMARY_POLES_MAX: usize = 10;

/// Functions in the summary of a recording without poles; all are in the view of functions.
const SUMMARY_FRAMES_MAX: usize = 10;

/// The answer of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SummaryView {
    /// Always `longpole.summary/1`.
    #[serde(skip_deserializing, default = "schema")]
    pub schema: &'static str,
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// What it is of.
    pub of: SummarisedView,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How the command ended; null where nobody saw it.
    pub exit: Option<ExitView>,
    /// Start, in nanoseconds since 1970.
    pub start_unix_nano: String,
    /// How long it ran.
    pub wall_nanos: i64,
    /// CPU time of the command and of all processes that it waited for.
    pub cpu_nanos: Option<u64>,
    /// The machine.
    pub host: String,
    /// How samples were taken.
    pub mode: CaptureModeView,
    /// Requested samples per second; 0 without sampling.
    pub rate_hz: u32,
    /// Processes seen.
    pub processes: u64,
    /// Traces received.
    pub traces: u64,
    /// Whether the file has many requests: more than 20 traces, and none takes a tenth of the time. Their critical path means little.
    #[serde(default)]
    pub of_requests: bool,
    /// Spans received.
    pub spans: u64,
    /// Spans that failed.
    #[serde(default)]
    pub failed: FailedSpansView,
    /// Samples taken.
    pub samples: u64,
    /// All samples by how they were linked.
    pub links: LinksView,
    /// States of the critical path; they sum to `wall_nanos`.
    pub states: StatesView,
    /// How much ran at once.
    pub parallelism: ParallelismView,
    /// For a deployment by Pulumi: whether the cloud or Pulumi itself takes the time.
    pub deployment: Option<DeploymentView>,
    /// Notable uses of memory and storage.
    pub usage: Vec<NotableView>,
    /// The first 10 poles.
    pub poles: Vec<PoleView>,
    /// The 10 functions with the most time in themselves, where the run itself is the only pole (a profile of another tool) or where
    /// longpole attached to running processes; else empty.
    pub functions: Vec<TopFrameView>,
    /// The CPU time that all samples stand for.
    pub weight_nanos: i64,
    /// Where longpole attached to running processes: what they did during the recording.
    pub attached: Option<AttachedView>,
    /// What is missing.
    pub quality: Vec<QualityView>,
    /// What recording cost.
    pub recorder: Option<RecorderView>,
    /// The poles that this list omits.
    pub truncated: PolesTruncated,
    /// Time of the critical path in no pole: between operations, or in the command itself while it waits for none of them. With the times of
    /// all poles on the path and `truncated.on_path_nanos` and `idle_nanos` it sums to `wall_nanos`.
    pub between_nanos: i64,
    /// Time on the critical path in which processes waited for work to arrive: it belongs to no pole.
    pub idle_nanos: i64,
}

/// How samples were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureModeView {
    /// In user mode only: the kernel's own code is not visible.
    User,
    /// In user mode and in the kernel.
    Perf,
    /// By another tool, whose file was imported.
    Imported,
    /// Not at all: sampling was off.
    Off,
    /// Not at all: the system refused.
    Refused,
}

/// How much ran at once.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ParallelismView {
    /// Operations in flight, averaged over the run.
    pub mean: f64,
    /// Operations in flight at the peak.
    pub peak: u64,
    /// Own time of all operations, summed.
    pub work_nanos: i64,
    /// How long the run would take if everything that can run at once did.
    pub span_nanos: i64,
}

/// What recording cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RecorderView {
    /// CPU time of the recorder.
    pub cpu_nanos: u64,
    /// Peak of its resident memory.
    pub rss_bytes_max: u64,
}

fn schema() -> &'static str {
    "longpole.summary/1"
}

/// Traces of a file, and the part of its time that one of them takes, up to which it is not one of many requests.
const FEW_TRACES: usize = 20;
const LONG_TRACE_PART: i64 = 10;

/// Whether a file has many requests and no operation that they are all a part of.
fn is_of_requests(of: SummarisedView, report: &Report) -> bool {
    let is_long = |node: NodeId| report.forest()[node].range.nanos() >= report.wall().0 / LONG_TRACE_PART;
    of == SummarisedView::File && report.trace_count() > FEW_TRACES && !report.forest().children(NodeId::RUN).any(is_long)
}

impl SummaryView {
    /// The answer of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        let run = &report.recording().run;
        let attached = AttachedView::new(report);
        let of = SummarisedView::new(report);
        let run_alone = is_run_alone(report) || of == SummarisedView::Profile;
        let mut functions = if run_alone || attached.is_some() { report.functions_by_self() } else { Vec::new() };
        functions.truncate(SUMMARY_FRAMES_MAX);
        let weight = report.sampled_nanos();
        let (parallelism, work) = (report.parallelism(), report.work());
        SummaryView {
            schema: schema(),
            recording: recording.to_string(),
            of,
            command: run.command.clone(),
            exit: run.exit.map(ExitView::new),
            start_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall().0,
            cpu_nanos: report.cpu_nanos(),
            host: run.host.clone(),
            mode: (&run.mode).into(),
            rate_hz: run.rate_hz,
            processes: report.recording().processes.len() as u64,
            traces: report.trace_count() as u64,
            of_requests: is_of_requests(of, report),
            spans: report.span_count() as u64,
            failed: FailedSpansView::new(report),
            samples: report.recording().samples.len() as u64,
            links: report.link_counts(report.all_samples()).into(),
            states: report.path_states().into(),
            parallelism: ParallelismView {
                mean: parallelism.mean,
                peak: u64::from(parallelism.peak),
                work_nanos: work.work.0,
                span_nanos: work.span.0,
            },
            deployment: report.deployment_time().map(DeploymentView::new),
            usage: NotableView::all(report),
            poles: pole_views(report, SUMMARY_POLES_MAX),
            functions: top_frames(report, &functions, &report.all_samples().collect::<Vec<_>>(), &[]),
            weight_nanos: nanos(weight),
            attached,
            quality: report.quality().iter().map(QualityView::new).collect(),
            recorder: run.recorder_cost.map(RecorderView::new),
            truncated: PolesTruncated::behind(report, SUMMARY_POLES_MAX),
            between_nanos: report.between_operations().0,
            idle_nanos: report.idle_on_path().0,
        }
    }
}

/// Whether there is nothing but the run itself, and no end of a command.
pub(super) fn is_run_alone(report: &Report) -> bool {
    report.forest().len() == 1 && report.recording().run.exit.is_none()
}

impl RecorderView {
    fn new(cost: RecorderCost) -> Self {
        RecorderView { cpu_nanos: cost.cpu_nanos, rss_bytes_max: cost.rss_bytes_max }
    }
}

impl From<&CaptureMode> for CaptureModeView {
    fn from(mode: &CaptureMode) -> Self {
        match mode {
            CaptureMode::User { .. } => CaptureModeView::User,
            CaptureMode::Perf => CaptureModeView::Perf,
            CaptureMode::Imported => CaptureModeView::Imported,
            CaptureMode::Off => CaptureModeView::Off,
            CaptureMode::Refused { .. } => CaptureModeView::Refused,
        }
    }
}
