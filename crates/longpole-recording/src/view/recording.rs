//! One recording in a list, and its answer in one line.

use longpole_analysis::Report;
use longpole_analysis::report::names::NamedPart;
use longpole_analysis::words;
use longpole_model::long_text::cut;
use longpole_store::{Listing, RecordingState, StoredRecording};
use serde::{Deserialize, Serialize};

use super::shared::{ExitView, RangeNanos, nanos, range, unix_nano};
use super::summary::is_run_alone;

/// The recordings of a store, newest first.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingsView {
    /// The recordings.
    pub recordings: Vec<RecordingView>,
    /// For people: what is wrong with rows of the catalog that are not recordings.
    pub damaged: Vec<String>,
}

/// A recording that a server keeps from now on.
#[derive(Debug, Clone, Serialize)]
pub struct KeptView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The address of its page, without the server's.
    pub page: String,
}

/// One recording in a list.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Start, in nanoseconds since 1970.
    pub start_unix_nano: String,
    /// How long it ran; 0 while unknown.
    pub wall_nanos: i64,
    /// How the command ended; null where nobody saw it.
    pub exit: Option<ExitView>,
    /// What became of it.
    pub state: RecordingStateView,
    /// Why its recorder could not seal it; only with state `ended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_sealed: Option<String>,
    /// The innermost cause of `not_sealed`, such as a full disk; not kept by an older longpole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_sealed_cause: Option<String>,
    /// Spans received.
    pub spans: u64,
    /// Samples taken.
    pub samples: u64,
    /// Its first long pole.
    pub answer: Option<AnswerView>,
    /// The names people gave it.
    pub tags: Vec<String>,
}

/// What became of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingStateView {
    /// It is complete.
    Sealed,
    /// Its recorder is still running.
    Recording,
    /// Its recorder died first.
    Killed,
    /// Its recorder ended and could not seal it, as on a full disk. `show` seals it.
    Ended,
}

/// The first long pole in one line, as the catalog keeps it. Names are cut after 512 bytes (`…`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnswerView {
    /// Service of the pole.
    pub service: String,
    /// Its operation.
    pub name: String,
    /// The piece of work that it belongs to.
    pub context: Option<String>,
    /// How much earlier the run would end without it.
    pub saves_if_zero_nanos: RangeNanos,
    /// For people: the part of the operation that the pole is, such as `save_to_remote (sleep)`; an older longpole did not keep it.
    #[serde(default)]
    pub part: Option<String>,
    /// The function that the pole is, or else the one with most of its own samples.
    pub function: Option<String>,
    /// For people: what the pole waits for, such as `asleep, in look_up`, if it is hardly on a CPU and no part; an older longpole did not keep it.
    #[serde(default)]
    pub wait: Option<String>,
}

impl RecordingsView {
    /// What is in a store.
    pub fn new(listing: &Listing) -> Self {
        RecordingsView {
            recordings: listing.recordings.iter().map(RecordingView::new).collect(),
            damaged: listing.damaged.iter().map(|error| format!("failed to {error}")).collect(),
        }
    }
}

impl RecordingView {
    /// What the catalog knows of a recording.
    pub fn new(stored: &StoredRecording) -> Self {
        let summary = &stored.summary;
        let (not_sealed, not_sealed_cause) = stored.why_ended().map(|reason| (reason.text, reason.cause)).unzip();
        RecordingView {
            recording: stored.name.to_string(),
            command: summary.command.clone(),
            start_unix_nano: unix_nano(summary.start),
            wall_nanos: nanos(summary.wall_nanos.unwrap_or_default()),
            exit: summary.exit.map(ExitView::new),
            state: stored.state.into(),
            not_sealed,
            not_sealed_cause: not_sealed_cause.flatten(),
            spans: summary.spans,
            samples: summary.samples,
            // An answer of a longpole whose words we do not know is no answer; the recording can still be opened.
            answer: summary.answer_json.as_deref().and_then(|json| serde_json::from_str(json).ok()),
            tags: stored.tags.clone(),
        }
    }
}

impl AnswerView {
    /// The first pole of a recording, where it has one.
    pub fn new(report: &Report) -> Option<Self> {
        // What did not end would not have ended earlier, and of a command that nothing was recorded of there is nothing to rank.
        let is_known = !report.knows_only_the_command() && (!report.is_attached() || report.span_count() > 0);
        // A profile has hot functions and no end that could come earlier.
        let pole = report.poles().iter().next().filter(|_| is_known && !is_run_alone(report))?;
        let functions = &report.functions().list;
        let of_part = report.part_of(pole).and_then(NamedPart::function).map(|function| function.function.as_str());
        let of_samples = || report.named(&report.samples_of_pole(pole)).map(|named| functions[named.function].function.as_str());
        Some(AnswerView {
            service: in_a_line(&pole.service),
            name: in_a_line(&pole.name),
            context: pole.context.as_deref().map(in_a_line),
            saves_if_zero_nanos: range(pole.savings.if_zero),
            part: report.part_of(pole).map(words::part).filter(|text| !text.is_empty()).as_deref().map(in_a_line),
            function: of_part.or_else(of_samples).map(in_a_line),
            wait: words::wait_of(&report.reason(pole)).filter(|_| pole.part.is_none()).map(|wait| in_a_line(&wait.to_string())),
        })
    }
}

/// A name in the answer of one line, which the catalog keeps: a row of it has an end, and a span's name can have megabytes.
const NAME_IN_A_LINE_BYTES_MAX: usize = 512;

fn in_a_line(name: &str) -> String {
    cut(name, NAME_IN_A_LINE_BYTES_MAX).into_owned()
}

impl From<RecordingState> for RecordingStateView {
    fn from(state: RecordingState) -> Self {
        match state {
            RecordingState::Recording => RecordingStateView::Recording,
            RecordingState::Ended => RecordingStateView::Ended,
            RecordingState::Killed | RecordingState::Sealed { recorder_killed: true } => RecordingStateView::Killed,
            RecordingState::Sealed { recorder_killed: false } => RecordingStateView::Sealed,
        }
    }
}
