//! One function and the spans it ran in.

use std::fmt::Display;

use longpole_analysis::{Handle, Report};
use serde::Serialize;

use super::functions::{LineView, RuntimeView, WhoseView};
use super::shared::{SpansTruncated, nanos, node_handle};
use super::waits::WaitView;

/// Lines listed for a function.
const FRAME_LINES_MAX: usize = 20;

/// Kinds of waits listed for a function.
const FRAME_WAITS_MAX: usize = 20;

/// Spans listed for a function.
const FRAME_SPANS_MAX: usize = 500;

/// Operations listed for a function.
const FRAME_OPERATIONS_MAX: usize = 100;

/// A function, and the spans it ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handle, such as `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file; empty where unknown.
    pub file: String,
    /// What runs the function; null for code of a binary of the process.
    pub runtime: Option<RuntimeView>,
    /// Whose code it is.
    pub whose: WhoseView,
    /// Samples that contain it.
    pub samples: u64,
    /// Time in it and in what it called.
    pub total_nanos: i64,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Waits that contain it.
    pub waits: u64,
    /// Length of these waits, summed over all threads.
    pub waited_nanos: i64,
    /// What it waited for, longest first: in which function of the program, itself or one that it calls, and where.
    pub waited_for: Vec<WaitView>,
    /// Its lines with the most time, at most 20; its source has all.
    pub lines: Vec<LineView>,
    /// Spans whose own samples or waits contain it, largest first, at most 500.
    pub spans: Vec<FrameSpanView>,
    /// The operations of all these spans, including those that `spans` omits, largest first, at most 100.
    pub operations: Vec<FrameOperationView>,
    /// Samples that contain it and belong to no span.
    pub unlinked_samples: u64,
    /// How many of these could belong to several spans.
    pub ambiguous_samples: u64,
    /// Length of the waits that contain it and belong to no span.
    pub unlinked_waited_nanos: i64,
    /// How many spans `spans` omits.
    pub truncated: SpansTruncated,
}

/// An operation that a function ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameOperationView {
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Its spans that contain the function.
    pub spans: u64,
    /// Their own samples that contain it.
    pub samples: u64,
    /// The time that these samples stand for.
    pub total_nanos: i64,
    /// Length of their own waits that contain it.
    pub waited_nanos: i64,
    /// Share of the own samples of all spans of the operation, 0 to 1.
    pub share: f64,
    /// Share of the time of the own waits of all spans of the operation, 0 to 1.
    pub waited_share: f64,
}

/// A span that a function ran in.
#[derive(Debug, Clone, Serialize)]
pub struct FrameSpanView {
    /// Handle, such as `s12`.
    pub handle: String,
    /// Service.
    pub service: String,
    /// Operation.
    pub name: String,
    /// Its own samples that contain the function.
    pub samples: u64,
    /// The time that these samples stand for.
    pub total_nanos: i64,
    /// Length of its own waits that contain the function.
    pub waited_nanos: i64,
    /// Share of the span's own samples, 0 to 1.
    pub share: f64,
    /// Share of the time of the span's own waits, 0 to 1.
    pub waited_share: f64,
}

impl FrameView {
    /// The function of this handle, `f12`, and where it ran; `None` where there is none.
    pub fn new(recording: impl Display, report: &Report, handle: &str) -> Option<Self> {
        let Handle::Function(id) = handle.parse().ok()? else { return None };
        let function = report.functions().list.get(id)?;
        let ran_in = report.nodes_with(id);
        Some(FrameView {
            recording: recording.to_string(),
            handle: Handle::Function(id).to_string(),
            function: function.function.clone(),
            file: function.file.clone(),
            runtime: function.runtime.map(RuntimeView::from),
            whose: function.whose.into(),
            samples: function.weight.samples,
            total_nanos: nanos(function.weight.total.0),
            self_nanos: nanos(function.weight.self_time.0),
            waits: ran_in.waits,
            waited_nanos: nanos(ran_in.waited.0),
            waited_for: report.waits_with(id).iter().take(FRAME_WAITS_MAX).map(|sum| WaitView::with_blockers(report, sum)).collect(),
            lines: report.lines_of(id).iter().take(FRAME_LINES_MAX).map(LineView::new).collect(),
            spans: ran_in
                .nodes
                .iter()
                .take(FRAME_SPANS_MAX)
                .map(|part| FrameSpanView {
                    handle: node_handle(part.node),
                    service: report.service(part.node).to_owned(),
                    name: report.name(part.node).to_owned(),
                    samples: part.samples,
                    total_nanos: nanos(part.total.0),
                    waited_nanos: nanos(part.waited.0),
                    share: part.share,
                    waited_share: part.waited_share,
                })
                .collect(),
            operations: ran_in
                .operations
                .iter()
                .take(FRAME_OPERATIONS_MAX)
                .map(|part| FrameOperationView {
                    service: report.service(part.example).to_owned(),
                    name: report.name(part.example).to_owned(),
                    spans: part.nodes,
                    samples: part.samples,
                    total_nanos: nanos(part.total.0),
                    waited_nanos: nanos(part.waited.0),
                    share: part.share,
                    waited_share: part.waited_share,
                })
                .collect(),
            unlinked_samples: ran_in.unlinked_samples,
            ambiguous_samples: ran_in.ambiguous_samples,
            unlinked_waited_nanos: nanos(ran_in.unlinked_waited.0),
            truncated: SpansTruncated { spans: ran_in.nodes.len().saturating_sub(FRAME_SPANS_MAX) },
        })
    }
}
