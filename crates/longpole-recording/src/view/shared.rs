//! What several views share: units, handles, and small shapes.

use longpole_analysis::Handle;
use longpole_analysis::note::Note;
use longpole_analysis::report::LinkCounts;
use longpole_analysis::schedule::saving::Saving;
use longpole_model::{Exit, Timestamp};
use serde::Serialize;

/// `[low, high]`, in nanoseconds.
pub type RangeNanos = [i64; 2];

/// How a command ended; one of the two is set.
#[derive(Debug, Clone, Copy, Serialize)]
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

impl From<LinkCounts> for LinksView {
    fn from(counts: LinkCounts) -> Self {
        let LinkCounts { record, journal, label, inferred, ambiguous, none } = counts;
        LinksView { record, journal, label, inferred, ambiguous, none }
    }
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

impl QualityView {
    pub(super) fn new(note: &Note) -> Self {
        QualityView { code: note.code.to_owned(), count: note.count, detail: note.detail.clone() }
    }
}

/// How many entries a list left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SpansTruncated {
    /// Spans.
    pub spans: usize,
}

pub(super) fn node_handle(node: usize) -> String {
    Handle::Node(node).to_string()
}

pub(super) fn range(saving: Saving) -> RangeNanos {
    [saving.low_nanos, saving.high_nanos]
}

pub(super) fn unix_nano(at: Timestamp) -> String {
    at.unix_nanos().max(0).to_string()
}

/// Sums of time fit 63 bits for 292 years.
pub(super) fn nanos(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
