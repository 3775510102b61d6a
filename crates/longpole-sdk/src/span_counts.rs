//! What became of the spans.

/// What became of the spans so far.
///
/// `emitted` is the sum of all others: a span is exported, lost for one reason, or outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpanCounts {
    /// Spans that ended and were to be sent.
    pub emitted: u64,
    /// Accepted by the collector.
    pub exported: u64,
    /// Lost: the queue was full.
    pub queue_full: u64,
    /// Lost: the collector could not be reached or refused the batch.
    pub failed: u64,
    /// Lost: the collector took the batch but not these spans.
    pub rejected: u64,
    /// Lost: ended after the shutdown.
    pub late: u64,
    /// Lost: could not be made, of the whole process: above the registry's 3,840 threads at a time, on a thread that is ending, or in a
    /// signal handler that interrupted the making of another one.
    pub refused: u64,
    /// Waiting, or on the way.
    pub outstanding: u64,
}

impl SpanCounts {
    /// Spans lost, whatever the reason.
    pub fn lost(&self) -> u64 {
        self.queue_full + self.failed + self.rejected + self.late + self.refused
    }
}
