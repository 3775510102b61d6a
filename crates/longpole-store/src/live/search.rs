//! Searches: the newest traces that have a span as wanted.
//!
//! ```text
//! sources, by their last end:   heads │ segment 9 │ segment 8 │ segment 7 …
//!                               read until there are enough traces, and none of what is left can be newer
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use longpole_model::{Span, Timestamp, TraceId};

use super::filter::SpanFilter;
use super::log_events::attach;
use super::segment::Segment;
use super::{LiveGeneration, LiveStore, read};
use crate::error::StoreError;
use crate::query_stop::QueryStop;
use crate::tables::traces::TraceRow;
use crate::trace_summary::TraceSummary;

/// Traces of a segment whose spans are read together.
const TRACES_AT_A_TIME: usize = 512;

/// A place where traces are.
enum TracePlace {
    Head(Arc<LiveGeneration>),
    Segment(Arc<Segment>),
}

impl TracePlace {
    /// No trace here begins later.
    fn last(&self) -> Timestamp {
        match self {
            TracePlace::Head(_) => Timestamp(i64::MAX),
            TracePlace::Segment(segment) => segment.entry.end,
        }
    }

    fn may_match(&self, filter: &SpanFilter) -> bool {
        let TracePlace::Segment(segment) = self else { return true };
        let entry = &segment.entry;
        let has_service = |service: &String| entry.services.is_empty() || entry.services.contains(service);
        filter.may_match_time(entry.start, entry.end) && filter.service.as_ref().is_none_or(has_service)
    }

    /// What it has of a trace.
    fn summary(&self, store: &LiveStore, trace_id: TraceId) -> Result<Option<TraceSummary>, StoreError> {
        match self {
            TracePlace::Head(generation) => Ok(read(&generation.head).summary(trace_id)),
            TracePlace::Segment(segment) => {
                let summary = store.shared.of_segment(segment, segment.summary(trace_id, &store.stop))?;
                Ok(summary.filter(|summary| summary.spans > 0))
            }
        }
    }
}

impl LiveStore {
    /// The newest traces with a span that the filter matches, `limit` at most: by their start, then by their id, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn find(&self, filter: &SpanFilter, limit: usize) -> Result<Vec<TraceSummary>, StoreError> {
        let (generations, segments) = self.shared.all();
        let heads = generations.into_iter().map(TracePlace::Head);
        let places: Vec<TracePlace> = heads.chain(segments.into_iter().map(TracePlace::Segment)).collect();
        let mut sources: Vec<usize> = (0..places.len()).filter(|place| places[*place].may_match(filter)).collect();
        sources.sort_by_key(|place| std::cmp::Reverse(places[*place].last()));
        let mut found: HashMap<TraceId, FoundTrace> = HashMap::new();
        for place in sources {
            if found.len() >= limit && nth_newest(&found, limit).is_some_and(|start| start > places[place].last()) {
                break;
            }
            let matching = match &places[place] {
                TracePlace::Head(generation) => in_head(generation, filter, limit, &self.stop)?,
                TracePlace::Segment(segment) => self.shared.of_segment(segment, in_segment(segment, filter, limit, &self.stop))?,
            };
            for summary in matching {
                match found.entry(summary.trace_id) {
                    Entry::Occupied(mut known) => known.get_mut().add(summary, place),
                    Entry::Vacant(new) => {
                        new.insert(FoundTrace { summary, places: vec![place] });
                    }
                }
            }
        }
        let mut found: Vec<FoundTrace> = found.into_values().collect();
        found.sort_by_key(|found| newest_first(&found.summary));
        found.truncate(limit);
        // Other parts of these traces need not match.
        for trace in &mut found {
            self.stop.check()?;
            for (place, other) in places.iter().enumerate() {
                if trace.places.contains(&place) {
                    continue;
                }
                if let Some(part) = other.summary(self, trace.summary.trace_id)? {
                    trace.add(part, place);
                }
            }
        }
        let mut found: Vec<TraceSummary> = found.into_iter().map(|found| found.summary).collect();
        found.sort_by_key(newest_first);
        Ok(found)
    }
}

/// A trace that was found, and where parts of it are.
struct FoundTrace {
    summary: TraceSummary,
    places: Vec<usize>,
}

impl FoundTrace {
    /// Adds the part of another place.
    fn add(&mut self, part: TraceSummary, place: usize) {
        self.summary.merge(part);
        self.places.push(place);
    }
}

fn newest_first(trace: &TraceSummary) -> (std::cmp::Reverse<Timestamp>, TraceId) {
    (std::cmp::Reverse(trace.start), trace.trace_id)
}

/// Start of the trace that is `limit`th by its start.
fn nth_newest(found: &HashMap<TraceId, FoundTrace>, limit: usize) -> Option<Timestamp> {
    let mut starts: Vec<Timestamp> = found.values().map(|trace| trace.summary.start).collect();
    starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
    starts.get(limit.saturating_sub(1)).copied()
}

/// Requests wait while the head is read: in turns of some traces.
fn in_head(generation: &LiveGeneration, filter: &SpanFilter, limit: usize, stop: &QueryStop) -> Result<Vec<TraceSummary>, StoreError> {
    let ids: Vec<TraceId> = read(&generation.head).trace_ids().collect();
    let mut candidates: Vec<TraceSummary> = Vec::new();
    for some in ids.chunks(TRACES_AT_A_TIME) {
        stop.check()?;
        let head = read(&generation.head);
        let summaries = some.iter().filter_map(|trace_id| head.summary(*trace_id));
        candidates.extend(summaries.filter(|trace| filter.may_match(trace)));
    }
    candidates.sort_by_key(newest_first);
    let matches = |trace: &TraceSummary| {
        let rows = read(&generation.head).trace(trace.trace_id);
        attach(rows).iter().any(|span| filter.matches(span))
    };
    let mut matching = Vec::new();
    for trace in candidates {
        stop.check()?;
        if matching.len() >= limit {
            break;
        }
        if matches(&trace) {
            matching.push(trace);
        }
    }
    Ok(matching)
}

fn in_segment(segment: &Segment, filter: &SpanFilter, limit: usize, stop: &QueryStop) -> Result<Vec<TraceSummary>, StoreError> {
    let may_match = |row: &TraceRow| row.summary.spans > 0 && filter.may_match(&row.summary);
    let mut candidates: Vec<_> = segment.traces(stop)?.into_iter().filter(may_match).collect();
    candidates.sort_by_key(|row| newest_first(&row.summary));
    let mut matching = Vec::new();
    for some in candidates.chunks_mut(TRACES_AT_A_TIME) {
        stop.check()?;
        // The rows are read in their order, and the traces returned in theirs.
        some.sort_by_key(|row| row.spans.start);
        let mut spans: HashMap<TraceId, Vec<Span>> = segment.spans_of_all(some, stop)?;
        spans.values_mut().for_each(|rows| *rows = attach(std::mem::take(rows)));
        some.sort_by_key(|row| newest_first(&row.summary));
        let is_matching = |trace_id: TraceId| spans.get(&trace_id).is_some_and(|spans| spans.iter().any(|span| filter.matches(span)));
        matching.extend(some.iter().filter(|row| is_matching(row.summary.trace_id)).map(|row| row.summary.clone()));
        if matching.len() >= limit {
            matching.truncate(limit);
            break;
        }
    }
    Ok(matching)
}
