//! The queries of Jaeger's user interface and of Grafana's data source, version 1: JSON in an envelope.
//!
//! | | |
//! |---|---|
//! | `/api/services` | services |
//! | `/api/services/{service}/operations`, `/api/operations?service=…&spanKind=…` | operations |
//! | `/api/traces?service=…` | search: `operation`, `tags`, `tag`, `minDuration`, `maxDuration`, `start`, `end`, `lookback`, `limit`, `traceID` |
//! | `/api/traces/{id}` | a trace; 404 if there is none |
//! | `/api/dependencies?endTs=…&lookback=…` | which service calls which |
//!
//! Times are microseconds, those of dependencies milliseconds.

use std::collections::{BTreeMap, BTreeSet};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use longpole_model::{Span, SpanKind, Timestamp, TraceId};
use longpole_recording::view::ServiceMap;
use longpole_store::StoreError;
use longpole_store::live::{LIST_ANSWER_TIMES, LiveStore, SpanFilter};
use longpole_wire::jaeger::{self, trace_id};
use longpole_wire::json_bytes;
use serde_json::{Value, json};

use super::found_traces::FoundTraces;
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::wall_clock::now;

/// Traces of an answer without `limit`, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_500;

/// How far a search goes back without `start` and `end`.
const LOOKBACK_NANOS: i64 = 2 * 86_400_000_000_000;

/// How far dependencies go back without `lookback`.
pub(super) const DEPENDENCIES_MILLIS: u64 = 86_400_000;

/// Traces that tell which service calls which.
const DEPENDENCY_TRACES_MAX: usize = 500;

pub(super) fn routes(store: LiveStore) -> Router {
    Router::new()
        .route("/api/services", get(services))
        .route("/api/services/{service}/operations", get(operations_of))
        .route("/api/operations", get(operations))
        .route("/api/traces", get(traces))
        .route("/api/traces/{id}", get(trace))
        .route("/api/dependencies", get(dependencies))
        .with_state(store)
}

/// An answer in Jaeger's envelope.
struct Enveloped(Result<Value, QueryError>);

impl IntoResponse for Enveloped {
    fn into_response(self) -> Response {
        let (status, value) = match self.0 {
            Ok(data) => {
                let total = data.as_array().map_or(0, Vec::len);
                (StatusCode::OK, json!({ "data": data, "total": total, "limit": 0, "offset": 0, "errors": null }))
            }
            Err(error) => {
                let errors = json!([{ "code": error.status().as_u16(), "msg": error.to_string() }]);
                (error.status(), json!({ "data": null, "total": 0, "limit": 0, "offset": 0, "errors": errors }))
            }
        };
        (status, json_header(), value.to_string()).into_response()
    }
}

pub(super) fn json_header() -> [(http::HeaderName, HeaderValue); 2] {
    [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        // A browser must not take a name in it for a page.
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]
}

async fn services(QueriedStore(store): QueriedStore) -> Enveloped {
    Enveloped(off_the_reactor::<_, QueryError>(move || Ok(json!(service_names(&store)?))).await)
}

/// Names of all services, in the order of the alphabet.
pub(super) fn service_names(store: &LiveStore) -> Result<BTreeSet<String>, StoreError> {
    Ok(store.operations()?.into_iter().map(|(service, ..)| service).collect())
}

async fn operations_of(QueriedStore(store): QueriedStore, Path(service): Path<String>) -> Enveloped {
    let names = move || {
        let all = store.operations()?.into_iter().filter(|(of, ..)| *of == service);
        let names: BTreeSet<String> = all.map(|(_, name, _)| name).collect();
        Ok(json!(names))
    };
    Enveloped(off_the_reactor::<_, QueryError>(names).await)
}

async fn operations(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Enveloped {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let service = parameters.text("service").ok_or("parameter 'service' is required")?;
        let kind = parameters.text("spanKind");
        let all = store.operations()?.into_iter().filter(|(of, _, found)| of == service && kind.is_none_or(|kind| kind_of(*found) == kind));
        let rows: Vec<Value> = all.map(|(_, name, kind)| json!({ "name": name, "spanKind": kind_of(kind) })).collect();
        Ok(json!(rows))
    };
    Enveloped(off_the_reactor::<_, QueryError>(found).await)
}

/// Jaeger has no word for a kind that was not sent.
fn kind_of(kind: SpanKind) -> &'static str {
    if kind == SpanKind::Unspecified { "" } else { kind.as_str() }
}

async fn trace(QueriedStore(store): QueriedStore, Path(id): Path<String>) -> Response {
    let found = off_the_reactor::<_, QueryError>(move || as_json(&store, &one_trace(&store, &id)?, |spans| jaeger::encode(spans).0));
    match found.await {
        Ok(document) => (json_header(), document).into_response(),
        Err(error) => Enveloped(Err(error)).into_response(),
    }
}

/// Spans as JSON, for which the query has memory.
pub(super) fn as_json(store: &LiveStore, spans: &[Span], encode: impl FnOnce(&[Span]) -> Vec<u8>) -> Result<Vec<u8>, QueryError> {
    store.limits().check()?;
    let Some(first) = spans.first() else { return Ok(encode(spans)) };
    let taken = store.limits().take(json_bytes(spans));
    taken.map_err(|error| if is_of_one(spans) { error.of_trace(first.trace_id, spans.len() as u64) } else { error })?;
    Ok(encode(spans))
}

/// Whether all are of one trace.
fn is_of_one(spans: &[Span]) -> bool {
    spans.iter().all(|span| span.trace_id == spans[0].trace_id)
}

/// The spans of the trace of this id.
pub(super) fn one_trace(store: &LiveStore, id: &str) -> Result<Vec<Span>, QueryError> {
    let id = trace_id(id).ok_or_else(|| format!("cannot parse the trace id {id:?}: expected up to 32 hexadecimal digits"))?;
    let spans = store.trace(id)?;
    if spans.is_empty() { Err(QueryError::NotFound("trace not found".to_owned())) } else { Ok(spans) }
}

async fn traces(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = off_the_reactor::<_, QueryError>(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let found = match parameters.all("traceID") {
            [] => search(&store, &parameters)?,
            ids => {
                let ids: BTreeSet<TraceId> = ids
                    .iter()
                    .map(|id| trace_id(id).ok_or_else(|| format!("cannot parse the trace id {id:?}")))
                    .collect::<Result<_, _>>()?;
                FoundTraces::read(&store, ids.into_iter().take(LIMIT_MAX))?
            }
        };
        let spans: Vec<Span> = found.traces.into_iter().flatten().collect();
        as_json(&store, &spans, |spans| jaeger::encode_answer(spans, &found.missing))
    });
    match found.await {
        Ok(document) => (json_header(), document).into_response(),
        Err(error) => Enveloped(Err(error)).into_response(),
    }
}

/// What a search finds, the newest trace first.
fn search(store: &LiveStore, parameters: &Parameters) -> Result<FoundTraces, QueryError> {
    let limit = parameters.limit(LIMIT, LIMIT_MAX)?;
    let filter = filter_of(parameters)?;
    if filter.service.is_none() {
        return Err("parameter 'service' is required".into());
    }
    let found = store.find(&filter, limit)?;
    FoundTraces::read(store, found.into_iter().map(|trace| trace.trace_id))
}

/// What a search of Jaeger asks of spans.
pub(super) fn filter_of(parameters: &Parameters) -> Result<SpanFilter, QueryError> {
    let until = parameters.micros("end")?;
    let from = match parameters.micros("start")? {
        Some(from) => from,
        None => Timestamp(until.unwrap_or_else(now).unix_nanos().saturating_sub(LOOKBACK_NANOS)),
    };
    let (attributes, is_error) = tags(parameters)?;
    Ok(SpanFilter {
        service: parameters.text("service").map(str::to_owned),
        name: parameters.text("operation").filter(|name| *name != "all").map(str::to_owned),
        attributes,
        keys: Vec::new(),
        min_nanos: parameters.duration("minDuration")?,
        max_nanos: parameters.duration("maxDuration")?,
        is_error,
        from: Some(from),
        until,
        ..SpanFilter::default()
    })
}

/// The same, and how long a whole trace may take: what a search of the page matches.
pub(super) fn filter_of_page(parameters: &Parameters) -> Result<SpanFilter, QueryError> {
    Ok(SpanFilter {
        min_trace_nanos: parameters.duration("minWall")?,
        max_trace_nanos: parameters.duration("maxWall")?,
        ..filter_of(parameters)?
    })
}

/// `tags={"error":"true"}` and `tag=key:value`; `error=true` asks for spans that failed.
fn tags(parameters: &Parameters) -> Result<(Vec<(String, String)>, bool), QueryError> {
    let mut tags: Vec<(String, String)> = Vec::new();
    for text in parameters.all("tags").iter().filter(|text| !text.is_empty()) {
        tags.extend(tags_of_json("tags", text)?);
    }
    for text in parameters.all("tag") {
        let (key, value) = text.split_once(':').ok_or_else(|| format!("tag: {text} is not key:value"))?;
        tags.push((key.to_owned(), value.to_owned()));
    }
    let is_error = take_error(&mut tags);
    Ok((tags, is_error))
}

/// Tags as a JSON object of strings.
pub(super) fn tags_of_json(name: &str, text: &str) -> Result<Vec<(String, String)>, QueryError> {
    let object: BTreeMap<String, Value> =
        serde_json::from_str(text).map_err(|_| format!("{name}: {text} is not a JSON object of strings"))?;
    let text_of = |(key, value): (String, Value)| match value {
        Value::String(value) => Ok((key, value)),
        _ => Err(QueryError::from(format!("{name}: the value of {key} is not a string"))),
    };
    object.into_iter().map(text_of).collect()
}

/// `error=true` asks for spans that failed; whether it was there.
pub(super) fn take_error(tags: &mut Vec<(String, String)>) -> bool {
    let before = tags.len();
    tags.retain(|(key, value)| !(key == "error" && value == "true"));
    before > tags.len()
}

async fn dependencies(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Enveloped {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let until = parameters.millis("endTs")?.unwrap_or_else(now);
        let calls = calls(&store, parameters.since(until, DEPENDENCIES_MILLIS)?, until)?;
        let rows: Vec<Value> =
            calls.into_iter().map(|((parent, child), count)| json!({ "parent": parent, "child": child, "callCount": count })).collect();
        Ok(json!(rows))
    };
    Enveloped(off_the_reactor::<_, QueryError>(found).await)
}

/// How often one service calls another, in the newest traces of a time.
pub(super) fn calls(store: &LiveStore, from: Timestamp, until: Timestamp) -> Result<BTreeMap<(String, String), u64>, StoreError> {
    let filter = SpanFilter { from: Some(from), until: Some(until), ..SpanFilter::default() };
    let mut map = ServiceMap::default();
    for found in store.find(&filter, DEPENDENCY_TRACES_MAX)? {
        add_to_map(store, &mut map, found.trace_id)?;
    }
    store.limits().take(LIST_ANSWER_TIMES * map.bytes() as u64)?;
    Ok(map.calls().map(|(pair, count)| (pair.clone(), count as u64)).collect())
}

/// Adds the calls of a trace, whose spans are gone then. One that no query can read is left out: it must not take the map of all others away.
pub(super) fn add_to_map(store: &LiveStore, map: &mut ServiceMap, trace_id: TraceId) -> Result<(), StoreError> {
    let before = map.bytes();
    store.limits().briefly(|| match store.trace(trace_id) {
        Ok(spans) => {
            map.add(&spans);
            Ok(())
        }
        Err(StoreError::TraceTooLarge { .. }) => Ok(()),
        Err(error) => Err(error),
    })?;
    store.limits().take((map.bytes() - before) as u64)
}

/// A trace id in a path.
pub(super) fn id_of(text: &str) -> Result<TraceId, QueryError> {
    Ok(trace_id(text).ok_or_else(|| format!("{text:?} is not a trace id: expected up to 32 hexadecimal digits"))?)
}
