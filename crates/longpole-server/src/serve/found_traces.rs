//! The traces that a search finds, without those for which there is no memory.

use axum::response::Response;
use http::header::{HeaderName, HeaderValue, WARNING};
use longpole_model::units::counted;
use longpole_model::{Span, TraceId};
use longpole_store::StoreError;
use longpole_store::live::LiveStore;
use longpole_wire::jaeger::TraceError;
use longpole_wire::json_bytes;

use super::query_error::QueryError;
use crate::api::status_of_store;

/// Spans of an answer, unless it is a single trace: one takes some hundred bytes in memory and again in the answer.
const SPANS_MAX: usize = 200_000;

/// An answer of Zipkin, or of Jaeger's version 3, is in memory twice for a moment.
const JSON_TIMES: u64 = 2;

/// Traces that the warning of an answer names.
const NAMED_MAX: usize = 10;

/// Traces, and why others are missing.
#[derive(Debug)]
pub(super) struct FoundTraces {
    /// The spans of each.
    pub(super) traces: Vec<Vec<Span>>,
    /// Those for which there is no memory.
    pub(super) missing: Vec<TraceError>,
}

impl FoundTraces {
    /// Reads these traces. One that is too large is left out: it must not take all others away. If there are no others, one comes whole.
    ///
    /// Fails if there is no memory for any of them.
    pub(super) fn read(store: &LiveStore, ids: impl IntoIterator<Item = TraceId>) -> Result<FoundTraces, QueryError> {
        let mut reading = Reading { store, found: FoundTraces { traces: Vec::new(), missing: Vec::new() }, json: 0, first_error: None };
        let (mut left, mut large) = (SPANS_MAX, Vec::new());
        for id in ids {
            let rows = store.trace_extent(id)?.map_or(0, |extent| extent.rows);
            // One that leaves too little for others waits until those are there.
            if rows > left as u64 / 2 {
                large.push((id, rows));
            } else {
                left = left.saturating_sub(reading.take(id)?);
            }
        }
        for (id, rows) in large {
            if rows <= left as u64 || reading.found.traces.is_empty() {
                left = left.saturating_sub(reading.take(id)?);
            } else {
                let message = format!("the {rows} spans of the trace {id} do not fit beside those of the others: query it by its id");
                reading.found.missing.push(TraceError { trace_id: id, code: 422, message });
            }
        }
        match reading.first_error {
            Some(error) if reading.found.traces.is_empty() => Err(error.into()),
            _ => Ok(reading.found),
        }
    }

    fn why_missing(&self, trace_id: TraceId, error: &StoreError) -> TraceError {
        let message = if self.traces.is_empty() {
            format!("failed to {error}")
        } else {
            format!("not enough memory for trace {trace_id} in addition to those before it: query it by its id")
        };
        TraceError { trace_id, code: status_of_store(error).as_u16(), message }
    }

    /// The spans of all, for an answer that cannot say that one is missing.
    pub(super) fn all_spans(self) -> Result<Vec<Span>, QueryError> {
        match self.missing.into_iter().next() {
            Some(missing) => Err(QueryError::TooLarge(missing.message)),
            None => Ok(self.traces.into_iter().flatten().collect()),
        }
    }

    /// A header that says what is missing, for answers without a place for it.
    pub(super) fn warning(&self) -> Option<(HeaderName, HeaderValue)> {
        if self.missing.is_empty() {
            return None;
        }
        let named: Vec<String> = self.missing.iter().take(NAMED_MAX).map(|missing| missing.trace_id.to_string()).collect();
        let rest = if self.missing.len() > NAMED_MAX { " and others" } else { "" };
        let (one, many) = ("matching trace is missing because it is", "matching traces are missing because they are");
        let missing = counted(self.missing.len() as u64, one, many);
        let text = format!("199 longpole \"{missing} too large: {}{rest}\"", named.join(", "));
        HeaderValue::from_bytes(text.as_bytes()).ok().map(|value| (WARNING, value))
    }
}

/// Traces that are being read.
struct Reading<'a> {
    store: &'a LiveStore,
    found: FoundTraces,
    /// Bytes of their JSON.
    json: u64,
    first_error: Option<StoreError>,
}

impl Reading<'_> {
    /// Reads a trace, unless it is too large. Returns how many spans it counts for.
    fn take(&mut self, id: TraceId) -> Result<usize, QueryError> {
        let before = self.store.limits().memory.bytes();
        match read_with_its_json(self.store, id, self.json) {
            Ok((trace, bytes)) => {
                let spans = trace.iter().map(weight).sum();
                self.json += bytes;
                self.found.traces.push(trace);
                Ok(spans)
            }
            Err(error @ StoreError::TraceTooLarge { .. }) => {
                self.store.limits().memory.release_to(before);
                self.found.missing.push(self.found.why_missing(id, &error));
                self.first_error.get_or_insert(error);
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// This answer, with the warning.
pub(super) fn with_warning(warning: Option<(HeaderName, HeaderValue)>, mut answer: Response) -> Response {
    answer.headers_mut().extend(warning.map(|(name, value)| (Some(name), value)));
    answer
}

/// A trace for whose JSON there is memory beside that of the others, and the bytes of it.
fn read_with_its_json(store: &LiveStore, id: TraceId, others: u64) -> Result<(Vec<Span>, u64), StoreError> {
    let trace = store.trace(id)?;
    let bytes = json_bytes(&trace);
    let held = store.limits().hold((others + bytes).saturating_mul(JSON_TIMES));
    drop(held.map_err(|error| error.of_trace(id, trace.len() as u64))?);
    Ok((trace, bytes))
}

/// How many spans this one counts for, by what it says.
fn weight(span: &Span) -> usize {
    1 + (span.events.len() + span.links.len() + span.attributes.0.len()) / 8
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_model::{SpanId, text};
    use longpole_store::live::{LiveOptions, MemoryPool, QueryLimits, QueryMemory, Request};
    use longpole_store::{BodyEncoding, RequestHead, Store};

    use super::*;
    use crate::wall_clock::now;

    fn id(trace: u8) -> TraceId {
        TraceId::from_slice(&[trace; 16]).unwrap()
    }

    /// A store with traces of as many spans.
    fn store_with(traces: &[(u8, u64)], folder: &std::path::Path) -> LiveStore {
        let span = text::parse("run 0..1ms\n  a 0..1ms").unwrap().spans.remove(0);
        let (live, _) = LiveStore::open(&Store::open(folder).unwrap(), LiveOptions::default(), now(), &mut |_, _| Vec::new()).unwrap();
        for (trace, count) in traces {
            let of_number =
                |number: u64| Span { trace_id: id(*trace), span_id: SpanId::from_slice(&number.to_be_bytes()).unwrap(), ..span.clone() };
            let spans: Vec<Span> = (1..=*count).map(of_number).collect();
            let head = RequestHead { encoding: BodyEncoding::Protobuf, received: now(), peer_pid: None };
            live.append(&Request { head, body: &[], spans: &spans }).unwrap();
        }
        live
    }

    #[test]
    fn a_trace_that_fills_an_answer_takes_no_other_away() {
        let folder = std::env::temp_dir().join(format!("longpole-full-answer-{}", std::process::id()));
        let live = store_with(&[(1, 3), (2, SPANS_MAX as u64), (3, 2)], &folder);
        let found = FoundTraces::read(&live, [2, 1, 3].map(id)).unwrap();
        assert_eq!(found.traces.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(found.missing.iter().map(|missing| missing.trace_id).collect::<Vec<_>>(), [id(2)]);
        assert_eq!(FoundTraces::read(&live, [id(2)]).unwrap().traces[0].len(), SPANS_MAX, "alone it comes whole");
        drop(live);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_trace_that_is_too_large_takes_no_other_away() {
        let folder = std::env::temp_dir().join(format!("longpole-found-traces-{}", std::process::id()));
        let live = store_with(&[(1, 3), (2, 20_000), (3, 2)], &folder);
        let query =
            || live.for_query(QueryLimits { memory: QueryMemory::of(&Arc::new(MemoryPool::new(2 << 20))), ..QueryLimits::default() });
        for order in [[1, 2, 3], [2, 1, 3], [3, 1, 2]] {
            let store = query();
            let found = FoundTraces::read(&store, order.map(id)).unwrap();
            assert_eq!(found.traces.iter().map(Vec::len).sum::<usize>(), 5, "{order:?}");
            assert!(store.limits().memory.bytes() < 100_000, "what it read of the large one is given back");
            let [missing] = &found.missing[..] else { panic!("{found:?}") };
            assert_eq!((missing.trace_id, missing.code), (id(2), 422));
            assert!(missing.message.contains(&id(2).to_string()), "{}", missing.message);
            let (_, warning) = found.warning().unwrap();
            assert!(warning.to_str().unwrap().contains(&id(2).to_string()));
            assert_eq!(found.all_spans().unwrap_err().status().as_u16(), 422);
        }
        let alone = FoundTraces::read(&query(), [id(2)]).unwrap_err();
        assert!(alone.to_string().contains("its 20000 spans take more than"), "{alone}");
        let found = FoundTraces::read(&query(), [id(1), id(3), id(9)]).unwrap();
        assert!(found.warning().is_none());
        assert_eq!(found.all_spans().unwrap().len(), 5);
        drop(live);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
