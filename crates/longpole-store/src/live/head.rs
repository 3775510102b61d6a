//! The spans of a server that stand in no segment yet, in memory.

use std::collections::BTreeSet;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Span, SpanId, SpanKind, StatusCode, TraceId};

use super::log_events::{self, is_log_event};
use super::operations::Operations;
use crate::compact_spans::CompactSpans;
use crate::numbers::u32_of;
use crate::trace_summary::TraceSummary;

/// What is one span: a client and a server of Zipkin share an id.
type SpanKey = (TraceId, SpanId, bool);

/// The spans of one generation.
#[derive(Debug, Default)]
pub(super) struct Head {
    spans: CompactSpans,
    place_of: FastMap<SpanKey, u32>,
    /// Where the spans of each trace are.
    traces: FastMap<TraceId, Vec<u32>>,
    duplicates: u64,
}

impl Head {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes that it takes in memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        // Each trace has a list of the places of its spans.
        let of_trace = size_of::<(TraceId, Vec<u32>)>() + 4 * size_of::<u32>();
        let places = self.place_of.capacity() * (size_of::<(SpanKey, u32)>() + 1) + self.spans.len() * size_of::<u32>();
        self.spans.memory_bytes() + (places + self.traces.capacity() * of_trace) as u64
    }

    /// How many spans came again.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    pub(super) fn spans(&self) -> &CompactSpans {
        &self.spans
    }

    /// Takes a span. One with the ids of another takes its place if it ends later: exporters send again what they did not see acknowledged,
    /// and some send a span before it ends.
    pub(super) fn push(&mut self, span: &Span) {
        let next = u32_of(self.spans.len());
        if is_log_event(span) {
            self.spans.push(span);
            self.traces.entry(span.trace_id).or_default().push(next);
            return;
        }
        let place = *self.place_of.entry(key(span)).or_insert(next);
        if place != next {
            self.duplicates += 1;
            if span.end > self.spans.heads()[place as usize].end {
                self.spans.replace(place as usize, span);
            }
            return;
        }
        self.spans.push(span);
        self.traces.entry(span.trace_id).or_default().push(place);
    }

    /// Where the rows of a trace are.
    pub(super) fn places(&self, trace_id: TraceId) -> &[u32] {
        self.traces.get(&trace_id).map_or(&[][..], Vec::as_slice)
    }

    /// The rows of a trace.
    #[cfg(test)]
    pub(super) fn trace(&self, trace_id: TraceId) -> Vec<Span> {
        self.places(trace_id).iter().map(|place| self.spans.get(*place as usize)).collect()
    }

    /// All traces.
    pub(super) fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        self.traces.keys().copied()
    }

    /// What a search needs of a trace, from ids, times and the examples of its spans.
    pub(super) fn summary(&self, trace_id: TraceId) -> Option<TraceSummary> {
        let places = self.traces.get(&trace_id)?;
        let mut summary = TraceSummary::new(trace_id);
        for place in places {
            let head = &self.spans.heads()[*place as usize];
            let example = &self.spans.examples()[head.example];
            if is_log_event(example) {
                continue;
            }
            let is_error = self.spans.status(*place as usize) == StatusCode::Error;
            summary.add(head.start, head.end, head.parent_span_id.is_none(), example.resource.service_name(), &example.name, is_error);
        }
        (summary.spans > 0).then_some(summary)
    }

    /// Adds its services with their operations and kinds.
    pub(super) fn operations(&self, into: &mut Operations) {
        for example in self.spans.examples().iter().filter(|example| !is_log_event(example)) {
            into.add(example.resource.service_name(), &example.name, example.kind);
        }
    }

    /// Its services.
    pub(super) fn services(&self) -> BTreeSet<String> {
        let examples = self.spans.examples().iter().filter(|example| !is_log_event(example));
        examples.map(|example| example.resource.service_name().to_owned()).collect()
    }
}

fn key(span: &Span) -> SpanKey {
    (span.trace_id, span.span_id, matches!(span.kind, SpanKind::Server | SpanKind::Consumer))
}

/// Memory that [`merged`] takes for each row, beside it: its copy, and its place in a table that is half empty.
pub(super) const MERGED_ROW_BYTES: u64 = (size_of::<Span>() + 2 * size_of::<(SpanKey, usize)>()) as u64;

/// Spans of one trace from several places, each once: of two with the same ids the one that ends later.
pub(super) fn merged(fragments: Vec<Vec<Span>>) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    let mut place_of: FastMap<SpanKey, usize> = FastMap::default();
    for span in fragments.into_iter().flatten() {
        if is_log_event(&span) {
            merged.push(span);
            continue;
        }
        match place_of.get(&key(&span)) {
            Some(place) if span.end > merged[*place].end => merged[*place] = span,
            Some(_) => {}
            None => {
                place_of.insert(key(&span), merged.len());
                merged.push(span);
            }
        }
    }
    let mut merged = log_events::attach(merged);
    merged.sort_by_key(|span| (span.start, span.span_id));
    merged
}
