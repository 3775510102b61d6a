//! Reading one trace, within the memory that a query may take.

use std::sync::Arc;

use longpole_model::{Span, Timestamp, TraceId};

use super::head::{self, merged};
use super::segment::Segment;
use super::{LiveGeneration, LiveStore, read};
use crate::error::StoreError;
use crate::query_limits::QueryLimits;
use crate::tables::traces::TraceRow;

/// Rows that are taken out of a head at once: appends wait meanwhile.
pub(super) const ROWS_AT_A_TIME: usize = 256;

/// What an answer takes with its spans, as often as these alone: as JSON they are about as large again.
const ANSWER_TIMES: u64 = 2;

/// How much there is of a trace. It changes when spans or log records of it come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceExtent {
    /// Its spans and log records, as often as they are kept.
    pub rows: u64,
    /// The last end of its spans.
    pub end: Timestamp,
}

/// Where the rows of a trace are.
struct TracePlaces {
    generations: Vec<Arc<LiveGeneration>>,
    segments: Vec<(Arc<Segment>, TraceRow)>,
}

impl TracePlaces {
    fn rows(&self, trace_id: TraceId) -> u64 {
        let in_heads = self.generations.iter().map(|generation| read(&generation.head).places(trace_id).len() as u64);
        let in_segments = self.segments.iter().map(|(_, row)| row.spans.len() as u64);
        in_heads.chain(in_segments).sum()
    }

    /// What its spans take in memory, about.
    fn bytes(&self, trace_id: TraceId) -> Result<u64, StoreError> {
        let of_head = |generation: &Arc<LiveGeneration>| {
            let head = read(&generation.head);
            let (all, of_trace) = (head.len().max(1) as u64, head.places(trace_id).len() as u64);
            of_trace * (head.spans().body_bytes() / all + ROW_BYTES)
        };
        let mut bytes = self.generations.iter().map(of_head).sum();
        for (segment, row) in &self.segments {
            bytes += row.spans.len() as u64 * (segment.tables()?.spans.bytes_of_row() + ROW_BYTES);
        }
        Ok(bytes)
    }
}

/// A row without its texts, and what texts take beside their characters.
const ROW_BYTES: u64 = size_of::<Span>() as u64 + 200;

impl LiveStore {
    /// The spans of a trace, by their start; none if there is no such trace. They take memory of the query for as long as it lives.
    ///
    /// # Errors
    ///
    /// [`StoreError::TraceTooLarge`] if it takes more memory than queries may, [`StoreError::MemoryShort`] if other queries have it;
    /// [`StoreError`] if a segment that may hold it cannot be read.
    pub fn trace(&self, trace_id: TraceId) -> Result<Vec<Span>, StoreError> {
        let places = self.places_of(trace_id)?;
        let spans = places.rows(trace_id);
        self.read_trace(trace_id, &places, spans).map_err(|error| error.of_trace(trace_id, spans))
    }

    /// How much there is of a trace; `None` if there is no span of it. Reads no more than the index and the heads of spans.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment that may hold it cannot be read.
    pub fn trace_extent(&self, trace_id: TraceId) -> Result<Option<TraceExtent>, StoreError> {
        let places = self.places_of(trace_id)?;
        let in_heads = places.generations.iter().filter_map(|generation| Some(read(&generation.head).summary(trace_id)?.end));
        let in_segments = places.segments.iter().filter(|(_, row)| row.summary.spans > 0).map(|(_, row)| row.summary.end);
        let end = in_heads.chain(in_segments).max();
        Ok(end.map(|end| TraceExtent { rows: places.rows(trace_id), end }))
    }

    fn places_of(&self, trace_id: TraceId) -> Result<TracePlaces, StoreError> {
        self.query.check()?;
        let (generations, all) = self.shared.all();
        let mut segments = Vec::new();
        for segment in all {
            if let Some(row) = self.shared.of_segment(&segment, segment.row(trace_id, &self.query))? {
                segments.push((segment, row));
            }
        }
        Ok(TracePlaces { generations, segments })
    }

    fn read_trace(&self, trace_id: TraceId, places: &TracePlaces, rows: u64) -> Result<Vec<Span>, StoreError> {
        // The least that it takes, which may be more than there ever is.
        drop(self.query.hold(rows.saturating_mul(head::MERGED_ROW_BYTES))?);
        self.query.reserve(places.bytes(trace_id)?.saturating_mul(ANSWER_TIMES))?;
        let mut fragments = Vec::new();
        for (segment, row) in &places.segments {
            fragments.push(self.shared.of_segment(segment, segment.spans(row, &self.query))?);
        }
        for generation in &places.generations {
            fragments.push(rows_of_head(generation, trace_id, &self.query)?);
        }
        let _merging = self.query.hold(rows.saturating_mul(head::MERGED_ROW_BYTES))?;
        Ok(merged(fragments))
    }
}

/// What a generation has of a trace.
pub(super) fn rows_of_head(generation: &LiveGeneration, trace_id: TraceId, query: &QueryLimits) -> Result<Vec<Span>, StoreError> {
    let places = read(&generation.head).places(trace_id).to_vec();
    rows_at(generation, &places, query)
}

/// The rows at some places of a head.
pub(super) fn rows_at(generation: &LiveGeneration, places: &[u32], query: &QueryLimits) -> Result<Vec<Span>, StoreError> {
    let mut rows = Vec::with_capacity(places.len());
    for some in places.chunks(ROWS_AT_A_TIME) {
        query.check()?;
        let mut bytes = 0;
        {
            let head = read(&generation.head);
            for place in some {
                let (span, span_bytes) = head.spans().get_counted(*place as usize);
                bytes += span_bytes;
                rows.push(span);
            }
        }
        query.take(bytes)?;
    }
    Ok(rows)
}
