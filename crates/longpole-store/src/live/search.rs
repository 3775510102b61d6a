//! Searches: the newest traces that have a span as wanted.
//!
//! ```text
//! sources, by their last end:   heads │ segment 9 │ segment 8 │ segment 7 …
//!                               read until there are enough traces, and none of what is left can be newer
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use longpole_model::{Span, Timestamp, TraceId};

use super::filter::SpanFilter;
use super::log_events::attach;
use super::segment::Segment;
use super::{LiveGeneration, LiveStore, read};
use crate::error::StoreError;
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
}

impl LiveStore {
    /// The newest traces with a span that the filter matches, `limit` at most: by their start, then by their id, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn find(&self, filter: &SpanFilter, limit: usize) -> Result<Vec<TraceSummary>, StoreError> {
        let (generations, segments) = self.shared.all();
        let mut sources: Vec<TracePlace> = generations.into_iter().map(TracePlace::Head).collect();
        let may_match = |segment: &Arc<Segment>| {
            let entry = &segment.entry;
            let has_service = |service: &String| entry.services.is_empty() || entry.services.contains(service);
            filter.may_match_time(entry.start, entry.end) && filter.service.as_ref().is_none_or(has_service)
        };
        sources.extend(segments.into_iter().filter(may_match).map(TracePlace::Segment));
        sources.sort_by_key(|source| std::cmp::Reverse(source.last()));
        let mut found: HashMap<TraceId, TraceSummary> = HashMap::new();
        for source in sources {
            if found.len() >= limit && nth_newest(&found, limit).is_some_and(|start| start > source.last()) {
                break;
            }
            let matching = match &source {
                TracePlace::Head(generation) => in_head(generation, filter, limit),
                TracePlace::Segment(segment) => in_segment(segment, filter, limit)?,
            };
            for summary in matching {
                match found.get_mut(&summary.trace_id) {
                    Some(known) => known.merge(summary),
                    None => {
                        found.insert(summary.trace_id, summary);
                    }
                }
            }
        }
        let mut found: Vec<TraceSummary> = found.into_values().collect();
        found.sort_by_key(newest_first);
        found.truncate(limit);
        Ok(found)
    }
}

fn newest_first(trace: &TraceSummary) -> (std::cmp::Reverse<Timestamp>, TraceId) {
    (std::cmp::Reverse(trace.start), trace.trace_id)
}

/// Start of the trace that is `limit`th by its start.
fn nth_newest(found: &HashMap<TraceId, TraceSummary>, limit: usize) -> Option<Timestamp> {
    let mut starts: Vec<Timestamp> = found.values().map(|trace| trace.start).collect();
    starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
    starts.get(limit.saturating_sub(1)).copied()
}

fn in_head(generation: &LiveGeneration, filter: &SpanFilter, limit: usize) -> Vec<TraceSummary> {
    let head = read(&generation.head);
    let mut candidates: Vec<TraceSummary> =
        head.trace_ids().filter_map(|trace_id| head.summary(trace_id)).filter(|trace| filter.may_match(trace)).collect();
    candidates.sort_by_key(newest_first);
    let matches = |trace: &TraceSummary| attach(head.trace(trace.trace_id)).iter().any(|span| filter.matches(span));
    candidates.into_iter().filter(matches).take(limit).collect()
}

fn in_segment(segment: &Segment, filter: &SpanFilter, limit: usize) -> Result<Vec<TraceSummary>, StoreError> {
    let may_match = |row: &TraceRow| row.summary.spans > 0 && filter.may_match(&row.summary);
    let mut candidates: Vec<_> = segment.traces()?.into_iter().filter(may_match).collect();
    candidates.sort_by_key(|row| newest_first(&row.summary));
    let mut matching = Vec::new();
    for some in candidates.chunks_mut(TRACES_AT_A_TIME) {
        // The rows are read in their order, and the traces returned in theirs.
        some.sort_by_key(|row| row.spans.start);
        let mut spans: HashMap<TraceId, Vec<Span>> = segment.spans_of_all(some)?;
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
