//! What a live store counts of itself.

/// Figures of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveFigures {
    /// Spans that stand in no segment yet, log records of spans among them.
    pub head_spans: u64,
    /// Spans that came again.
    pub duplicates: u64,
    /// Spans of the current log with the ids of another span that is not the same: both are kept.
    pub conflicts: u64,
    /// Bytes of their logs.
    pub log_bytes: u64,
    /// Values of profiles that stand in no segment yet.
    pub head_values: u64,
    /// Values of profiles in segments.
    pub segment_values: u64,
    /// Values of the current logs whose series was one too many.
    pub overflown_values: u64,
    /// Segments.
    pub segments: u64,
    /// Spans in them.
    pub segment_spans: u64,
    /// Their bytes.
    pub segment_bytes: u64,
    /// Bytes of memory of what is kept of them for the next query.
    pub segment_memory_bytes: u64,
}
