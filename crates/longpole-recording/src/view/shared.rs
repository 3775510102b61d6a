//! What several views share: units, handles, and small shapes.

use std::collections::HashMap;
use std::sync::Arc;

use longpole_analysis::Report;
use longpole_analysis::note::Note;
use longpole_analysis::report::LinkCounts;
use longpole_analysis::schedule::saving::{Saving, ScheduleEvidence};
use longpole_analysis::{Handle, words};
use longpole_model::long_text::cut;
use longpole_model::{CaptureMode, Exit, NodeId, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

/// A range of nanoseconds, `[low, high]`. Both ends are equal where the recording declares what a span waited for.
pub type RangeNanos = [i64; 2];

/// How a command or process ended; one of the two is set.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExitView {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal that killed it.
    pub signal: Option<i32>,
}

impl ExitView {
    pub(super) fn new(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => ExitView { code: Some(code), signal: None },
            Exit::Signal(signal) => ExitView { code: None, signal: Some(signal) },
        }
    }
}

/// Numbers of samples by how they were linked to their span.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct LinksView {
    /// The context record of the thread names the span.
    pub record: u64,
    /// The journal of the thread names the span.
    pub journal: u64,
    /// A label of the imported profile names the span.
    pub label: u64,
    /// Only this span fits process, thread and time.
    pub inferred: u64,
    /// Several spans fit.
    pub ambiguous: u64,
    /// No span was open.
    pub none: u64,
}

impl From<LinkCounts> for LinksView {
    fn from(counts: LinkCounts) -> Self {
        let LinkCounts { record, journal, label, inferred, ambiguous, none } = counts;
        LinksView { record, journal, label, inferred, ambiguous, none }
    }
}

/// Writes what several rows share as each would write its own.
pub(super) fn serialize_shared<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    T::serialize(value, serializer)
}

/// Names in a list are cut here. A file of others may have one of megabytes, and thousands of rows that share it; those of generic functions
/// have some hundred bytes.
const LISTED_NAME_BYTES_MAX: usize = 4 << 10;

/// Why a view may have no samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unsampled {
    /// A file or a trace of a server, which has spans only.
    OnlySpans,
    /// Sampling was off.
    Off,
    /// The run was sampled: it is this part of it that has none.
    #[default]
    Here,
}

impl Unsampled {
    pub(super) fn of(report: &Report) -> Unsampled {
        let recording = report.recording();
        match &recording.run.mode {
            _ if !recording.samples.is_empty() => Unsampled::Here,
            CaptureMode::Imported => Unsampled::OnlySpans,
            CaptureMode::Off if recording.processes.is_empty() && report.span_count() > 0 => Unsampled::OnlySpans,
            CaptureMode::Off => Unsampled::Off,
            CaptureMode::User { .. } | CaptureMode::Perf | CaptureMode::Refused { .. } => Unsampled::Here,
        }
    }
}

/// The program of each process, by pid: of several in turn that of the last.
pub(super) fn programs(report: &Report) -> HashMap<u32, &str> {
    let model = report.recording();
    let rows = model.process_rows().zip(&model.processes);
    rows.map(|(row, process)| (process.pid, report.forest().program(model, row))).collect()
}

/// A name in a list of many rows.
pub(super) fn listed(name: &str) -> String {
    cut(name, LISTED_NAME_BYTES_MAX).into_owned()
}

/// Bytes of a text in JSON.
pub(crate) fn json_bytes(text: &str) -> u64 {
    let of = |byte: u8| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

/// Something missing or unusual, with its count and its cause.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QualityView {
    /// Stable code of the kind.
    pub code: String,
    /// How many.
    pub count: u64,
    /// For people: what is missing or doubtful, with its number if that is not 1.
    pub title: String,
    /// For people: why, and what to do.
    pub detail: String,
}

impl QualityView {
    pub(super) fn new(note: &Note) -> Self {
        let (code, count, detail) = (note.code(), note.count(), words::note(note));
        let (title, detail) = words::titled(code, count, &detail);
        QualityView { code: code.to_owned(), count, title, detail: detail.to_owned() }
    }

    /// Title and detail for people. `samples` is the number of all.
    pub fn sentence(&self, samples: u64) -> String {
        words::sentence(&self.code, &self.title, self.count, &self.detail, samples)
    }
}

/// How many spans a list omits.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct SpansTruncated {
    /// Omitted spans.
    pub spans: usize,
}

/// How far the evidence for an order between spans goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceView {
    /// The spans themselves say so: by their parent, or by span links.
    Declared,
    /// longpole inferred it from times.
    Inferred,
}

pub(super) fn node_handle(node: NodeId) -> String {
    Handle::Node(node).to_string()
}

pub(super) fn range(saving: Saving) -> RangeNanos {
    [saving.low.0, saving.high.0]
}

pub(super) fn unix_nano(at: Timestamp) -> String {
    at.unix_nanos().max(0).to_string()
}

/// Sums of time fit 63 bits for 292 years.
pub(super) fn nanos(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl From<ScheduleEvidence> for EvidenceView {
    fn from(it: ScheduleEvidence) -> Self {
        match it {
            ScheduleEvidence::Declared => EvidenceView::Declared,
            ScheduleEvidence::Inferred => EvidenceView::Inferred,
        }
    }
}
