//! One recording in a list, and its answer in one line.

use longpole_analysis::Report;
use longpole_store::{Listing, StoredRecording};
use serde::{Deserialize, Serialize};

use super::shared::{ExitView, RangeNanos, nanos, range, unix_nano};

/// Recordings, newest first.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingsView {
    /// The list.
    pub recordings: Vec<RecordingView>,
    /// What is wrong with rows of the catalog that are no recordings, each in words.
    pub damaged: Vec<String>,
}

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
        RecordingView {
            recording: stored.name.to_string(),
            command: summary.command.clone(),
            start_unix_nano: unix_nano(summary.start),
            wall_nanos: nanos(summary.wall_nanos.unwrap_or_default()),
            exit: summary.exit.map(ExitView::new),
            state: stored.state.as_str().to_owned(),
            not_sealed: stored.why_ended(),
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
        // What did not end would not have ended earlier.
        let pole = report.poles().first().filter(|_| !report.is_attached() || report.span_count() > 0)?;
        let functions = &report.functions().list;
        Some(AnswerView {
            service: in_a_line(&pole.service),
            name: in_a_line(&pole.name),
            context: pole.context.as_deref().map(in_a_line),
            saves_if_zero_nanos: range(pole.savings.if_zero),
            function: report.named(&report.samples_on_path(&pole.nodes)).map(|named| in_a_line(&functions[named.function].function)),
        })
    }
}

/// A name in the answer of one line, which the catalog keeps: a row of it has an end, and a span's name can have megabytes.
const NAME_IN_A_LINE_BYTES_MAX: usize = 512;

fn in_a_line(name: &str) -> String {
    match name.len() {
        ..=NAME_IN_A_LINE_BYTES_MAX => name.to_owned(),
        _ => format!("{}…", &name[..name.floor_char_boundary(NAME_IN_A_LINE_BYTES_MAX)]),
    }
}
