//! What the server counts of itself, as Prometheus reads it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use longpole_model::Loss;
use longpole_store::live::LiveFigures;

use crate::receive::MemoryAccount;

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    spans: AtomicU64,
    bytes: AtomicU64,
    requests: AtomicU64,
    log_records: AtomicU64,
    profile_values: AtomicU64,
    failed_appends: AtomicU64,
    cancelled_queries: AtomicU64,
    timed_out_queries: AtomicU64,
    refused_queries: AtomicU64,
}

impl Metrics {
    /// Counts a request that was kept.
    pub(super) fn count_spans(&self, spans: u64, bytes: u64) {
        self.spans.fetch_add(spans, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the log records of spans that a request brought.
    pub(super) fn count_log_records(&self, records: u64, bytes: u64) {
        self.log_records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the values of profiles that a request brought.
    pub(super) fn count_profile_values(&self, values: u64) {
        self.profile_values.fetch_add(values, Ordering::Relaxed);
    }

    /// Counts a request that the log did not take.
    pub(super) fn count_failed_append(&self) {
        self.failed_appends.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a query whose client left before it had an answer.
    pub(super) fn count_cancelled_query(&self) {
        self.cancelled_queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a query that took too long.
    pub(super) fn count_timed_out_query(&self) {
        self.timed_out_queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a query that found no place.
    pub(super) fn count_refused_query(&self) {
        self.refused_queries.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, in the text format.
    pub(super) fn text(&self, figures: LiveFigures, damaged_segments: u64, memory: &MemoryAccount, losses: &[Loss]) -> String {
        let mut out = String::new();
        let mut put = |name: &str, kind: &str, help: &str, value: u64| {
            // Writing to a text does not fail.
            let _ = write!(out, "# HELP longpole_{name} {help}\n# TYPE longpole_{name} {kind}\nlongpole_{name} {value}\n");
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        put("spans_received_total", "counter", "Spans that were appended to the log.", read(&self.spans));
        put("log_records_received_total", "counter", "Log records of spans that were appended to the log.", read(&self.log_records));
        let values = "Values of profiles that were appended to the log: one for each stack, series and time.";
        put("profile_values_received_total", "counter", values, read(&self.profile_values));
        put("received_bytes_total", "counter", "Bytes of their requests, decompressed.", read(&self.bytes));
        put("requests_received_total", "counter", "Requests with spans that were appended to the log.", read(&self.requests));
        put("append_failures_total", "counter", "Requests that the log did not take.", read(&self.failed_appends));
        put("queries_cancelled_total", "counter", "Queries whose client left before the answer.", read(&self.cancelled_queries));
        put("queries_timed_out_total", "counter", "Queries that took longer than a query may.", read(&self.timed_out_queries));
        put("queries_refused_total", "counter", "Queries that found no place among those answered at once.", read(&self.refused_queries));
        put("requests_refused_for_memory_total", "counter", "Requests that were refused because memory was short.", memory.refused());
        put("queries_refused_for_memory_total", "counter", "Queries for which there was no memory.", memory.queries().refused());
        put(
            "segment_memory_bytes",
            "gauge",
            "Bytes of memory of what is kept of segments for the next query.",
            figures.segment_memory_bytes,
        );
        put("query_memory_bytes", "gauge", "Bytes of memory of queries and of kept reports.", memory.queries().bytes());
        put("query_memory_limit_bytes", "gauge", "Bytes of memory that they may have together.", memory.queries().limit());
        put("memory_limit_bytes", "gauge", "Bytes of memory that all shares may have together.", memory.limit());
        put("duplicate_spans", "gauge", "Spans of the current log that came again.", figures.duplicates);
        put("conflicting_spans", "gauge", "Spans of the current log with the ids of another span that differs.", figures.conflicts);
        put("head_spans", "gauge", "Spans that are in no segment yet.", figures.head_spans);
        put("head_profile_values", "gauge", "Values of profiles that are in no segment yet.", figures.head_values);
        put("log_bytes", "gauge", "Bytes of their logs.", figures.log_bytes);
        put("segments", "gauge", "Segments.", figures.segments);
        put("damaged_segments", "gauge", "Segments that cannot be read and are left out of all answers.", damaged_segments);
        put("segment_spans", "gauge", "Spans in segments.", figures.segment_spans);
        put("segment_profile_values", "gauge", "Values of profiles in segments.", figures.segment_values);
        let overflown = "Values of profiles of the current log that count for one series of their service, because there are too many.";
        put("overflown_profile_values", "gauge", overflown, figures.overflown_values);
        put("segment_bytes", "gauge", "Bytes of segments.", figures.segment_bytes);
        out.push_str(
            "# HELP longpole_memory_bytes Memory of bodies, unread answers, and spans in no segment.\n# TYPE longpole_memory_bytes gauge\n",
        );
        for (of, bytes) in memory.shares() {
            let _ = writeln!(out, "longpole_memory_bytes{{of=\"{of}\"}} {bytes}");
        }
        out.push_str("# HELP longpole_losses_total What was refused or not kept, by its kind.\n# TYPE longpole_losses_total counter\n");
        let mut kinds: Vec<(&str, u64)> = Vec::new();
        for loss in losses {
            match kinds.iter_mut().find(|(kind, _)| *kind == loss.kind.as_str()) {
                Some((_, count)) => *count = count.saturating_add(loss.count),
                None => kinds.push((loss.kind.as_str(), loss.count)),
            }
        }
        for (kind, count) in kinds {
            let _ = writeln!(out, "longpole_losses_total{{kind=\"{kind}\"}} {count}");
        }
        out
    }
}
