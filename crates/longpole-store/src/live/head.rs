//! The spans of a server that stand in no segment yet, in memory.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Span, SpanId, SpanKind, StatusCode, Text, TimeRange, Timestamp, TraceId};

use super::filter::{SpanFilter, SpanOutline};
use super::log_events::{self, is_log_event};
use super::operations::Operations;
use crate::compact_spans::{CompactSpans, is_unfinished};
use crate::numbers::u32_of;
use crate::trace_summary::{CountedTrace, TraceSummary};

/// The ids of a span: a client and a server of Zipkin share them.
type SpanKey = (TraceId, SpanId, bool);

/// The ids of a span that differs from another one with the same ids, its start, and a hash of its service and name.
type OtherKey = (SpanKey, Timestamp, u64);

/// The spans of one generation.
#[derive(Debug, Default)]
pub(super) struct Head {
    spans: CompactSpans,
    places: SpanPlaces<u32>,
    /// Where the spans of each trace are.
    traces: FastMap<TraceId, Vec<u32>>,
    duplicates: u64,
}

/// Where the spans are, by their ids. Whoever may send can send with the ids of another's span, which must not be lost by that: only the same
/// span takes its place.
#[derive(Debug)]
struct SpanPlaces<P> {
    first: FastMap<SpanKey, P>,
    others: FastMap<OtherKey, P>,
}

impl<P> Default for SpanPlaces<P> {
    fn default() -> Self {
        SpanPlaces { first: FastMap::default(), others: FastMap::default() }
    }
}

impl<P: Copy> SpanPlaces<P> {
    /// Where this span is, if the span there `is_same`; else `next` is its place from now on.
    fn place_of(&mut self, span: &Span, next: P, is_same: impl Fn(P) -> bool) -> Option<P> {
        let key = key(span);
        let Some(first) = self.first.get(&key) else {
            self.first.insert(key, next);
            return None;
        };
        if is_same(*first) {
            return Some(*first);
        }
        let other = (key, span.start, self.others.hasher().hash_one((span.service_name(), &*span.name)));
        let known = self.others.get(&other).copied().filter(|place| is_same(*place));
        if known.is_none() {
            self.others.insert(other, next);
        }
        known
    }

    fn memory_bytes(&self) -> usize {
        self.first.capacity() * (size_of::<(SpanKey, P)>() + 1) + self.others.capacity() * (size_of::<(OtherKey, P)>() + 1)
    }
}

impl Head {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes that it takes in memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        // Each trace has a list of the places of its spans.
        let of_trace = size_of::<(TraceId, Vec<u32>)>() + 4 * size_of::<u32>();
        let places = self.places.memory_bytes() + self.spans.len() * size_of::<u32>();
        self.spans.memory_bytes() + (places + self.traces.capacity() * of_trace) as u64
    }

    /// How many spans came again.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// How many spans have the ids of another one and differ from it.
    pub(super) fn conflicts(&self) -> u64 {
        self.places.others.len() as u64
    }

    pub(super) fn spans(&self) -> &CompactSpans {
        &self.spans
    }

    /// Takes a span. The same span takes the place of its earlier self if it ends later: exporters send again what they did not see
    /// acknowledged, and some send a span before it ends. Another one with its ids is kept beside it.
    pub(super) fn push(&mut self, span: &Span) {
        let next = u32_of(self.spans.len());
        if is_log_event(span) {
            self.spans.push(span);
            self.traces.entry(span.trace_id).or_default().push(next);
            return;
        }
        let known = |place: u32| KnownSpan::at(&self.spans, place as usize);
        if let Some(place) = self.places.place_of(span, next, |place| known(place).is_same(span)) {
            self.duplicates += 1;
            if known(place).gives_way_to(span) {
                self.spans.replace(place as usize, span);
            }
            return;
        }
        self.spans.push(span);
        self.traces.entry(span.trace_id).or_default().push(next);
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
        let mut counted = CountedTrace::new(trace_id);
        for place in places {
            let head = &self.spans.heads()[*place as usize];
            let example = &self.spans.examples()[head.example];
            if is_log_event(example) {
                continue;
            }
            let is_error = self.spans.status(*place as usize) == StatusCode::Error;
            let range = TimeRange { start: head.start, end: head.end };
            counted.add(range, head.parent_span_id.is_none(), example.resource.service(), &example.name, is_error);
        }
        Some(counted.finish()).filter(|summary| summary.spans > 0)
    }

    /// When a trace begins, if it may have a span that the filter matches. Copies no text: there may be as many traces as spans.
    pub(super) fn candidate(&self, trace_id: TraceId, filter: &SpanFilter) -> Option<Timestamp> {
        let (mut start, mut end, mut errors) = (Timestamp(i64::MAX), Timestamp(i64::MIN), 0u32);
        let mut has_service = filter.service.is_none();
        for place in self.places(trace_id) {
            let head = &self.spans.heads()[*place as usize];
            let example = &self.spans.examples()[head.example];
            if is_log_event(example) {
                continue;
            }
            (start, end) = (start.min(head.start), end.max(head.end).max(head.start));
            errors = errors.saturating_add(u32::from(self.spans.status(*place as usize) == StatusCode::Error));
            has_service = has_service || filter.service.as_ref().is_some_and(|service| example.service_name() == service);
        }
        let may_match = start <= end && has_service && filter.is_on_page(start, trace_id) && filter.may_match_outline(start, end, errors);
        may_match.then_some(start)
    }

    /// Where the spans of a trace are that the filter matches, attributes aside, and whether the trace has records of logs.
    pub(super) fn outlined(&self, trace_id: TraceId, filter: &SpanFilter) -> (Vec<u32>, bool) {
        let (mut matching, mut has_logs) = (Vec::new(), false);
        for place in self.places(trace_id) {
            let head = &self.spans.heads()[*place as usize];
            let example = &self.spans.examples()[head.example];
            if is_log_event(example) {
                has_logs = true;
                continue;
            }
            let outline = SpanOutline {
                service: example.service_name(),
                name: &example.name,
                range: TimeRange { start: head.start, end: head.end },
                status: self.spans.status(*place as usize),
            };
            if filter.matches_outline(&outline) {
                matching.push(*place);
            }
        }
        (matching, has_logs)
    }

    /// Adds its services with their operations and kinds.
    pub(super) fn operations(&self, into: &mut Operations) {
        for example in self.spans.examples().iter().filter(|example| !is_log_event(example)) {
            into.add(example.resource.service_name(), &example.name, example.kind);
        }
    }

    /// Its services.
    pub(super) fn services(&self) -> BTreeSet<Text> {
        let mut services: BTreeSet<Text> = BTreeSet::new();
        for example in self.spans.examples().iter().filter(|example| !is_log_event(example)) {
            if !services.contains(example.service_name()) {
                services.insert(example.resource.service());
            }
        }
        services
    }
}

/// A span that is there: its service and name are those of the example.
struct KnownSpan<'a> {
    start: Timestamp,
    end: Timestamp,
    example: &'a Span,
    is_unfinished: bool,
}

impl<'a> KnownSpan<'a> {
    fn at(spans: &'a CompactSpans, place: usize) -> Self {
        let head = &spans.heads()[place];
        KnownSpan { start: head.start, end: head.end, example: &spans.examples()[head.example], is_unfinished: spans.is_unfinished(place) }
    }

    fn of(span: &'a Span) -> Self {
        KnownSpan { start: span.start, end: span.end, example: span, is_unfinished: is_unfinished(span) }
    }

    /// Whether a span with its ids is the same: it began at the same time, under the same name, in the same service. That it was sent before
    /// it ended proves nothing: whoever may send can claim so of any span.
    fn is_same(&self, span: &Span) -> bool {
        self.start == span.start && self.example.name == span.name && self.example.service_name() == span.service_name()
    }

    /// Whether the same span takes its place: one that has ended that of one that has not, or a later end.
    fn gives_way_to(&self, span: &Span) -> bool {
        match (self.is_unfinished, is_unfinished(span)) {
            (true, false) => true,
            (false, true) => false,
            _ => span.end > self.end,
        }
    }
}

fn key(span: &Span) -> SpanKey {
    (span.trace_id, span.span_id, matches!(span.kind, SpanKind::Server | SpanKind::Consumer))
}

/// Memory that [`merged`] takes for each row, beside it: its copy, and its place in a table that is half empty.
pub(super) const MERGED_ROW_BYTES: u64 =
    (size_of::<Span>() + 2 * size_of::<(SpanKey, usize)>() + 2 * size_of::<(OtherKey, usize)>()) as u64;

/// Spans of one trace from several places, each once: of one that came again the one that ends later.
pub(super) fn merged(fragments: Vec<Vec<Span>>) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    let mut places: SpanPlaces<usize> = SpanPlaces::default();
    for span in fragments.into_iter().flatten() {
        if is_log_event(&span) {
            merged.push(span);
            continue;
        }
        match places.place_of(&span, merged.len(), |place| KnownSpan::of(&merged[place]).is_same(&span)) {
            Some(place) if KnownSpan::of(&merged[place]).gives_way_to(&span) => merged[place] = span,
            Some(_) => {}
            None => merged.push(span),
        }
    }
    let mut merged = log_events::attach(merged);
    merged.sort_by_key(|span| (span.start, span.span_id));
    merged
}
