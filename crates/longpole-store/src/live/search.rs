//! Searches: the newest traces that have a span as wanted.
//!
//! ```text
//! sources, by their last end:   heads │ segment 9 │ segment 8 │ segment 7 …
//!                               read until there are enough traces, and none of what is left can be newer
//! ```

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longpole_model::{Timestamp, TraceId};

use super::candidates::{self, Candidate};
use super::filter::{SpanFilter, TraceCursor};
use super::log_events::attach;
use super::segment::Segment;
use super::trace::{ROWS_AT_A_TIME, rows_at, rows_of_head};
use super::{LiveGeneration, LiveStore, read};
use crate::error::StoreError;
use crate::query_limits::QueryLimits;
use crate::tables::traces::TraceRow;
use crate::trace_summary::TraceSummary;

/// A turn reads at most 512 traces and, if it has more than one, 16,384 spans. The first turn of a segment reads 8 traces.
const TRACES_AT_A_TIME: usize = 512;
const TRACES_AT_FIRST: usize = 8;
const SPANS_AT_A_TIME: usize = 16_384;

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
        filter.may_match_time(entry.start, entry.end)
            && filter.after.is_none_or(|cursor| entry.start <= cursor.start)
            && filter.service.as_ref().is_none_or(has_service)
    }

    /// What it has of a trace.
    fn summary(&self, store: &LiveStore, trace_id: TraceId) -> Result<Option<TraceSummary>, StoreError> {
        match self {
            TracePlace::Head(generation) => Ok(read(&generation.head).summary(trace_id)),
            TracePlace::Segment(segment) => {
                let summary = store.query.briefly(|| segment.summary(trace_id, &store.query));
                let summary = store.shared.of_segment(segment, summary)?;
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
        let places = self.places();
        let (mut found, _) = self.find_parts(&places, filter, limit)?;
        found.truncate(limit);
        self.whole(&places, found)
    }

    /// A page of the traces that the filter matches, in the same order, and where the next page begins. It may be shorter than `limit` although there
    /// are others, and a trace whose spans are in several segments may come again on a later page.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn find_page(&self, filter: &SpanFilter, limit: usize) -> Result<FoundPage, StoreError> {
        let places = self.places();
        let (mut found, complete_to) = self.find_parts(&places, filter, limit.saturating_add(1))?;
        // Behind this place a part of the store has traces that were not found, and that may be newer than those here.
        found.retain(|trace| complete_to.is_none_or(|last| newest_first(&trace.summary) <= last.order()));
        let is_full = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| is_full).map(|last| TraceCursor::of(&last.summary));
        Ok(FoundPage { traces: self.whole(&places, found)?, next: last.or(complete_to) })
    }

    fn places(&self) -> Vec<TracePlace> {
        let (generations, segments) = self.shared.all();
        let heads = generations.into_iter().map(TracePlace::Head);
        heads.chain(segments.into_iter().map(TracePlace::Segment)).collect()
    }

    /// What these places have that matches, the newest first, `limit` in each at most, and up to where nothing is missing.
    fn find_parts(
        &self,
        places: &[TracePlace],
        filter: &SpanFilter,
        limit: usize,
    ) -> Result<(Vec<FoundTrace>, Option<TraceCursor>), StoreError> {
        let filter = &filter.distinct()?;
        let mut sources: Vec<usize> = (0..places.len()).filter(|place| places[*place].may_match(filter)).collect();
        sources.sort_by_key(|place| std::cmp::Reverse(places[*place].last()));
        let mut found: HashMap<TraceId, FoundTrace> = HashMap::new();
        let mut complete_to: Option<TraceCursor> = None;
        for place in sources {
            if found.len() >= limit && nth_newest(&found, limit).is_some_and(|start| start > places[place].last()) {
                break;
            }
            let matching = match &places[place] {
                TracePlace::Head(generation) => self.query.briefly(|| in_head(generation, filter, limit, &self.query))?,
                TracePlace::Segment(segment) => {
                    let matching = self.query.briefly(|| in_segment(segment, filter, limit, &self.query));
                    self.shared.of_segment(segment, matching)?
                }
            };
            self.query.take(matching.iter().map(TraceSummary::answer_bytes).sum())?;
            let last = matching.last().filter(|_| matching.len() >= limit).map(TraceCursor::of);
            complete_to = complete_to.into_iter().chain(last).min_by_key(TraceCursor::order);
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
        Ok((found, complete_to))
    }

    /// These traces with the parts of them that need not match.
    fn whole(&self, places: &[TracePlace], mut found: Vec<FoundTrace>) -> Result<Vec<TraceSummary>, StoreError> {
        for trace in &mut found {
            self.query.check()?;
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

/// Traces that a search found.
#[derive(Debug, Clone, Default)]
pub struct FoundPage {
    /// The traces, the newest first.
    pub traces: Vec<TraceSummary>,
    /// What the next page comes after; `None` if this is the last one.
    pub next: Option<TraceCursor>,
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

/// The order of a search.
type NewestFirst = (std::cmp::Reverse<Timestamp>, TraceId);

fn newest_first(trace: &TraceSummary) -> NewestFirst {
    TraceCursor::of(trace).order()
}

impl TraceCursor {
    fn of(trace: &TraceSummary) -> TraceCursor {
        TraceCursor { start: trace.start, trace_id: trace.trace_id }
    }

    fn order(&self) -> NewestFirst {
        (std::cmp::Reverse(self.start), self.trace_id)
    }
}

/// Start of the trace that is `limit`th by its start.
fn nth_newest(found: &HashMap<TraceId, FoundTrace>, limit: usize) -> Option<Timestamp> {
    let mut starts: Vec<Timestamp> = found.values().map(|trace| trace.summary.start).collect();
    starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
    starts.get(limit.saturating_sub(1)).copied()
}

/// Requests wait while the head is read: in turns of some traces.
fn in_head(generation: &LiveGeneration, filter: &SpanFilter, limit: usize, query: &QueryLimits) -> Result<Vec<TraceSummary>, StoreError> {
    let ids: Vec<TraceId> = read(&generation.head).trace_ids().collect();
    let mut candidates: Vec<TraceCursor> = Vec::new();
    for some in ids.chunks(TRACES_AT_A_TIME) {
        query.check()?;
        let head = read(&generation.head);
        let before = candidates.len();
        candidates.extend(
            some.iter().filter_map(|trace_id| Some(TraceCursor { start: head.candidate(*trace_id, filter)?, trace_id: *trace_id })),
        );
        drop(head);
        query.take(((candidates.len() - before) * size_of::<TraceCursor>()) as u64)?;
    }
    candidates.sort_by_key(TraceCursor::order);
    let mut matching = Vec::new();
    for TraceCursor { trace_id, .. } in candidates {
        query.check()?;
        if matching.len() >= limit {
            break;
        }
        if is_large_or(trace_in_head_matches(generation, trace_id, filter, query))?
            && let Some(summary) = read(&generation.head).summary(trace_id)
        {
            query.take(summary.answer_bytes())?;
            matching.push(summary);
        }
    }
    Ok(matching)
}

fn trace_in_head_matches(generation: &LiveGeneration, id: TraceId, filter: &SpanFilter, query: &QueryLimits) -> Result<bool, StoreError> {
    let (places, has_logs) = read(&generation.head).outlined(id, filter);
    if places.is_empty() || !filter.needs_attributes() {
        return Ok(!places.is_empty());
    }
    for some in places.chunks(ROWS_AT_A_TIME) {
        if query.briefly(|| filter.matches_any(&rows_at(generation, some, query)?, query))? {
            return Ok(true);
        }
    }
    // Records of logs are events of their spans.
    let with_logs = || filter.matches_any(&attach(rows_of_head(generation, id, query)?), query);
    if has_logs { query.briefly(with_logs) } else { Ok(false) }
}

/// A trace that is too large to be read counts as one that matches: it must not take all others away, and whoever reads what was found says that it
/// is too large.
fn is_large_or(matches: Result<bool, StoreError>) -> Result<bool, StoreError> {
    match matches {
        Err(StoreError::TooMuchMemory { .. }) => Ok(true),
        matches => matches,
    }
}

/// The newest traces of a segment that match, the newest first.
fn in_segment(segment: &Segment, filter: &SpanFilter, limit: usize, query: &QueryLimits) -> Result<Vec<TraceSummary>, StoreError> {
    let mut candidates = candidates::of_segment(segment, filter, query)?;
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.outline.start), candidate.outline.trace_id));
    let mut matching = Vec::new();
    let (mut rest, mut at_a_time) = (&candidates[..], TRACES_AT_FIRST);
    while !rest.is_empty() && matching.len() < limit {
        query.check()?;
        let (some, behind) = rest.split_at(turn(rest, at_a_time.max(limit - matching.len())));
        (rest, at_a_time) = (behind, at_a_time * 2);
        // The rows are read in their order, and the traces returned in theirs.
        let mut rows: Vec<u32> = some.iter().map(|candidate| candidate.outline.row).collect();
        rows.sort_unstable();
        let mut found = segment.traces_at(&rows, query)?;
        let certain: HashSet<TraceId> =
            some.iter().filter(|candidate| candidate.is_certain).map(|candidate| candidate.outline.trace_id).collect();
        let unsure: Vec<TraceRow> = found.iter().filter(|row| !certain.contains(&row.summary.trace_id)).cloned().collect();
        let mut is_matching: HashSet<TraceId> = certain;
        is_matching.extend(matching_in_segment(segment, &unsure, filter, query)?);
        found.sort_by_key(|row| newest_first(&row.summary));
        let has_spans = |row: &TraceRow| row.summary.spans > 0 && is_matching.contains(&row.summary.trace_id);
        matching.extend(found.into_iter().filter(has_spans).map(|row| row.summary));
    }
    matching.truncate(limit);
    Ok(matching)
}

/// Which of these traces of a segment match.
fn matching_in_segment(segment: &Segment, some: &[TraceRow], filter: &SpanFilter, query: &QueryLimits) -> Result<Vec<TraceId>, StoreError> {
    let of_all = |some: &[TraceRow]| -> Result<Vec<TraceId>, StoreError> {
        query.briefly(|| {
            let spans = segment.spans_of_all(some, query)?;
            let matching = spans.into_iter().map(|(trace_id, rows)| Ok(filter.matches_any(&attach(rows), query)?.then_some(trace_id)));
            matching.filter_map(Result::transpose).collect()
        })
    };
    match of_all(some) {
        Err(StoreError::TooMuchMemory { .. }) => {}
        matching => return matching,
    }
    let mut matching = Vec::new();
    for row in some {
        if is_large_or(of_all(std::slice::from_ref(row)).map(|matching| !matching.is_empty()))? {
            matching.push(row.summary.trace_id);
        }
    }
    Ok(matching)
}

/// The number of candidates of one turn: `at_a_time`, or fewer if they have many spans.
fn turn(candidates: &[Candidate], at_a_time: usize) -> usize {
    let mut spans = 0;
    let fits = |candidate: &&Candidate| {
        spans += candidate.outline.spans.len();
        spans <= SPANS_AT_A_TIME
    };
    candidates.iter().take(at_a_time.min(TRACES_AT_A_TIME)).take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use longpole_model::{AttributeValue, Attributes, Resource, Scope, Span, SpanEvent, SpanKind, Status, StatusCode};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::live::filter::CONDITIONS_MAX;
    use crate::live::head::merged;
    use crate::live::{LiveOptions, Request, log_event};
    use crate::store::Store;
    use crate::testing::{self, Directory};
    use crate::wal::{BodyEncoding, RequestHead};

    const KEYS: [&str; 8] = ["k", "l", "error", "span.kind", "otel.status_code", "otel.scope.name", "service.name", "event"];
    const WORDS: [&str; 16] = [
        "3",
        "+3",
        "3.0",
        "3e0",
        "0.0",
        "-0",
        "-0.0",
        "true",
        "false",
        "",
        "server",
        "ERROR",
        "c0",
        "[]",
        "inf",
        "a text of more than 12 bytes",
    ];

    fn value() -> impl Strategy<Value = AttributeValue> {
        prop_oneof![
            4 => select(&WORDS[..]).prop_map(|word| AttributeValue::Str(word.into())),
            2 => (-1..4i64).prop_map(AttributeValue::Int),
            1 => select(&[3.0, 0.0, -0.0, f64::INFINITY, f64::NAN][..]).prop_map(AttributeValue::Double),
            1 => any::<bool>().prop_map(AttributeValue::Bool),
            1 => Just(AttributeValue::Empty),
            1 => Just(AttributeValue::Bytes(vec![0xc0].into())),
            1 => Just(AttributeValue::Array(vec![].into())),
        ]
    }

    fn attributes(count: usize) -> impl Strategy<Value = Attributes> {
        vec((select(&KEYS[..]), value()), 0..count).prop_map(|pairs| {
            let mut attributes = Attributes::default();
            pairs.into_iter().for_each(|(key, value)| attributes.push(key, value));
            attributes
        })
    }

    fn event() -> impl Strategy<Value = SpanEvent> {
        let name = select(&["event", "other"][..]);
        (0..40i64, name, attributes(2)).prop_map(|(time, name, attributes)| SpanEvent {
            time: Timestamp(time),
            name: name.into(),
            attributes,
        })
    }

    fn span() -> impl Strategy<Value = Span> {
        let ids = (1..7u8, 1..9u8, 0..5u8, 0..30i64, 0..12i64);
        let fields =
            (select(&["x", "y", "longpole.log_event"][..]), (0..=5).prop_map(SpanKind::from_otlp), (0..=2).prop_map(StatusCode::from_otlp));
        let emitter = (attributes(2), select(&["", "3", "scope"][..]), attributes(2));
        (ids, fields, attributes(4), vec(event(), 0..2), emitter).prop_map(|(ids, (name, kind, code), attributes, events, emitter)| {
            let (trace, span, parent, start, length) = ids;
            let (resource, scope, of_scope) = emitter;
            Span {
                name: name.into(),
                kind,
                end: Timestamp(start + length - 1),
                attributes,
                events: events.into(),
                status: Status { code, ..Status::default() },
                resource: Arc::new(Resource { attributes: resource }),
                scope: Arc::new(Scope { name: scope.to_owned(), attributes: of_scope, ..Scope::default() }),
                ..testing::span(trace, span, parent, start)
            }
        })
    }

    fn row() -> impl Strategy<Value = Span> {
        let record = (1..7u8, 1..9u8, event())
            .prop_map(|(trace, span, event)| log_event(testing::trace_id(trace), testing::span_id(span).unwrap(), event));
        prop_oneof![5 => span(), 1 => record]
    }

    fn filter() -> impl Strategy<Value = SpanFilter> {
        let pair = (select(&KEYS[..]), select(&WORDS[..])).prop_map(|(key, value)| (key.to_owned(), value.to_owned()));
        let rarely = |limit: u64| option::weighted(0.15, 0..limit);
        let time = || option::weighted(0.2, (0..45i64).prop_map(Timestamp));
        let service = option::weighted(0.3, select(&["3", "server", "unknown_service", "nobody"][..]));
        let name = option::weighted(0.2, select(&["x", "y", "longpole.log_event"][..]));
        let keys = vec(select(&KEYS[..]).prop_map(str::to_owned), 0..2);
        (
            service,
            name,
            vec(pair, 0..3),
            keys,
            (rarely(14), rarely(14), rarely(50), rarely(50)),
            option::weighted(0.15, Just(())),
            (time(), time(), option::weighted(0.2, (0..45i64, 1..7u8))),
        )
            .prop_map(|(service, name, attributes, keys, nanos, is_error, (from, until, after))| SpanFilter {
                service: service.map(str::to_owned),
                name: name.map(str::to_owned),
                attributes,
                keys,
                min_nanos: nanos.0,
                max_nanos: nanos.1,
                min_trace_nanos: nanos.2,
                max_trace_nanos: nanos.3,
                is_error: is_error.is_some(),
                from,
                until,
                after: after.map(|(start, id)| TraceCursor { start: Timestamp(start), trace_id: testing::trace_id(id) }),
            })
    }

    #[test]
    fn a_search_takes_128_conditions_and_each_once() {
        let directory = Directory::new();
        let (live, _) =
            LiveStore::open(&Store::open(directory.path()).unwrap(), LiveOptions::default(), Timestamp(0), &mut |_, _| Vec::new()).unwrap();
        let search = |number: usize, of_each: usize| {
            let attributes = (0..number * of_each).map(|place| ((place / of_each).to_string(), "x".to_owned())).collect();
            live.find(&SpanFilter { attributes, ..SpanFilter::default() }, 1)
        };
        assert!(search(CONDITIONS_MAX, 3).is_ok());
        assert!(matches!(search(CONDITIONS_MAX + 1, 1), Err(StoreError::TooManyConditions { count: 129, most: 128 })));
    }

    #[test]
    fn a_search_ends_between_two_spans() {
        let query = QueryLimits::default();
        let spans = [testing::span(1, 1, 0, 0), testing::span(1, 2, 1, 0)];
        assert!(SpanFilter::default().matches_any(&spans, &query).unwrap());
        query.stop.stop();
        assert!(matches!(SpanFilter::default().matches_any(&spans, &query), Err(StoreError::Stopped)));
    }

    fn whole_matches(filter: &SpanFilter, summary: &TraceSummary, rows: Vec<Span>) -> bool {
        let may_match = filter.service.as_ref().is_none_or(|service| summary.has_service(service))
            && filter.is_on_page(summary.start, summary.trace_id)
            && filter.may_match_outline(summary.start, summary.end, summary.errors);
        summary.spans > 0 && may_match && attach(rows).iter().any(|span| filter.matches(span))
    }

    /// What a place has that matches, the newest first, found by reading all that is there.
    fn plain_of(place: &TracePlace, filter: &SpanFilter) -> Vec<TraceSummary> {
        let query = QueryLimits::default();
        let mut matching: Vec<TraceSummary> = match place {
            TracePlace::Head(generation) => {
                let head = read(&generation.head);
                let of = |id: TraceId| head.summary(id).filter(|summary| whole_matches(filter, summary, head.trace(id)));
                head.trace_ids().filter_map(of).collect()
            }
            TracePlace::Segment(segment) => {
                let rows = segment.traces(&query).unwrap().into_iter();
                let is_matching = |row: &TraceRow| whole_matches(filter, &row.summary, segment.spans(row, &query).unwrap());
                rows.filter(is_matching).map(|row| row.summary).collect()
            }
        };
        matching.sort_by_key(newest_first);
        matching
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn a_search_finds_what_reading_all_finds(
            requests in vec((vec(row(), 0..24), any::<bool>()), 1..5),
            filters in vec(filter(), 12),
        ) {
            let directory = Directory::new();
            let store = Store::open(directory.path()).unwrap();
            let now = Timestamp(1_795_867_200_000_000_000);
            let (live, _) = LiveStore::open(&store, LiveOptions::default(), now, &mut |_, _| Vec::new()).unwrap();
            for (spans, ends) in &requests {
                let head = RequestHead { encoding: BodyEncoding::Protobuf, received: now, peer_pid: None };
                live.append(&Request { head, body: b"", spans }).unwrap();
                live.maintain(now, *ends).unwrap();
            }
            let places = live.places();
            for filter in &filters {
                let query = QueryLimits::default();
                let mut all: HashMap<TraceId, TraceSummary> = HashMap::new();
                for place in &places {
                    let plain = plain_of(place, filter);
                    for limit in [1, 3, 100] {
                        let found = match place {
                            TracePlace::Head(generation) => in_head(generation, filter, limit, &query).unwrap(),
                            TracePlace::Segment(segment) => in_segment(segment, filter, limit, &query).unwrap(),
                        };
                        prop_assert_eq!(&found, &plain[..limit.min(plain.len())], "{:?}", filter);
                    }
                    all.extend(plain.into_iter().map(|trace| (trace.trace_id, trace)));
                }
                let found = live.find(filter, 100).unwrap();
                let all: HashSet<TraceId> = all.into_keys().collect();
                prop_assert_eq!(&found.iter().map(|trace| trace.trace_id).collect::<HashSet<_>>(), &all);
                for limit in [1, 2] {
                    let (mut filter, mut on_pages) = (filter.clone(), HashSet::new());
                    loop {
                        let page = live.find_page(&filter, limit).unwrap();
                        prop_assert!(page.traces.len() <= limit);
                        on_pages.extend(page.traces.iter().map(|trace| trace.trace_id));
                        let Some(next) = page.next else { break };
                        prop_assert!(filter.after.is_none_or(|before| before.order() < next.order()), "each page goes on");
                        filter.after = Some(next);
                    }
                    prop_assert_eq!(&on_pages, &all, "{} a page, {:?}", limit, filter);
                }
            }
            for trace in (1..7).map(testing::trace_id) {
                let query = QueryLimits::default();
                let of_place = |place: &TracePlace| match place {
                    TracePlace::Head(generation) => read(&generation.head).trace(trace),
                    TracePlace::Segment(segment) => segment.traces(&query).unwrap().iter().filter(|row| row.summary.trace_id == trace)
                        .flat_map(|row| segment.spans_of_all(std::slice::from_ref(row), &query).unwrap()).flat_map(|(_, spans)| spans).collect(),
                };
                // Debug, because NaN differs from itself.
                let plain = merged(places[1..].iter().chain(&places[..1]).map(of_place).collect());
                prop_assert_eq!(plain.len(), live.trace(trace).unwrap().len());
            }
        }
    }
}
