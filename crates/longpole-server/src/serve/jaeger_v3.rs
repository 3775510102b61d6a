//! The queries of Jaeger's user interface, version 3: OTLP in JSON.
//!
//! | | |
//! |---|---|
//! | `/api/v3/services` | services |
//! | `/api/v3/operations?service=…&spanKind=…` | operations |
//! | `/api/v3/traces/{id}` | a trace; 404 if there is none |
//! | `/api/v3/traces?query.serviceName=…` | search: `operationName`, `attributes`, `startTimeMin`, `startTimeMax`, `durationMin`, `durationMax`, `searchDepth`, each behind `query.`; 404 if nothing is found |
//! | `/api/v3/trace-summaries?query.…` | the same, without spans |
//! | `/api/v3/dependencies?startTime=…&endTime=…` | which service calls which |
//!
//! Names may be written `service_name` as well. Times are RFC 3339, durations as Go writes them.

use std::collections::{BTreeMap, HashSet};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use longpole_model::{Span, SpanId, SpanKind, StatusCode as SpanStatus, Text, Timestamp};
use longpole_store::StoreError;
use longpole_store::live::{LiveStore, SpanFilter, TraceSummary};
use longpole_wire::{otlp, rfc3339};
use serde_json::{Value, json};

use super::found_traces::{FoundTraces, with_warning};
use super::jaeger::{as_json, calls, json_header, one_trace, service_names, tags_of_json, take_error};
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;

/// Traces of an answer without `searchDepth`, and at most.
pub(super) const DEPTH: usize = 100;
pub(super) const DEPTH_MAX: usize = 1_500;

pub(super) fn routes(store: LiveStore) -> Router {
    Router::new()
        .route("/api/v3/services", get(services))
        .route("/api/v3/operations", get(operations))
        .route("/api/v3/traces", get(traces))
        .route("/api/v3/traces/{id}", get(trace))
        .route("/api/v3/trace-summaries", get(summaries))
        .route("/api/v3/dependencies", get(dependencies))
        .with_state(store)
}

/// An answer, or an error as the gateway of gRPC writes it.
fn answer(found: Result<String, QueryError>) -> Response {
    match found {
        Ok(text) => (json_header(), text).into_response(),
        Err(error) => {
            let details = json!({ "httpCode": error.status().as_u16(), "message": error.to_string() });
            (error.status(), json_header(), json!({ "error": details }).to_string()).into_response()
        }
    }
}

async fn services(QueriedStore(store): QueriedStore) -> Response {
    let found = move || Ok(json!({ "services": service_names(&store)? }).to_string());
    answer(off_the_reactor::<_, QueryError>(found).await)
}

async fn operations(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let service = named(&parameters, "", "service", "service").ok_or("parameter 'service' is required")?;
        let rows = operations_of(&store, service, named(&parameters, "", "spanKind", "span_kind"))?;
        let rows: Vec<Value> = rows.into_iter().map(|(name, kind)| json!({ "name": name, "spanKind": kind })).collect();
        Ok(json!({ "operations": rows }).to_string())
    };
    answer(off_the_reactor::<_, QueryError>(found).await)
}

/// The operations of a service with their kinds, of one kind or of all.
pub(super) fn operations_of(store: &LiveStore, service: &str, kind: Option<&str>) -> Result<Vec<(String, &'static str)>, QueryError> {
    let of_service = store.operations()?.into_iter().filter(|(of, ..)| of == service);
    let named = of_service.map(|(_, name, kind)| (name, kind_of(kind)));
    Ok(named.filter(|(_, found)| kind.is_none_or(|kind| kind == *found)).collect())
}

/// What OpenTelemetry takes a span for whose kind was not sent.
fn kind_of(kind: SpanKind) -> &'static str {
    if kind == SpanKind::Unspecified { SpanKind::Internal.as_str() } else { kind.as_str() }
}

async fn trace(QueriedStore(store): QueriedStore, Path(id): Path<String>) -> Response {
    answer(off_the_reactor::<_, QueryError>(move || result(&store, &one_trace(&store, &id)?)).await)
}

async fn traces(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move || {
        let search = TraceSearch::of(&Parameters::of(query.as_deref())?)?;
        let found = search.traces(&store)?;
        let warning = found.warning();
        let spans: Vec<Span> = found.traces.into_iter().flatten().collect();
        if spans.is_empty() {
            return Err(QueryError::NotFound("No traces found".to_owned()));
        }
        Ok((result(&store, &spans)?, warning))
    };
    match off_the_reactor::<_, QueryError>(found).await {
        Ok((text, warning)) => with_warning(warning, answer(Ok(text))),
        Err(error) => answer(Err(error)),
    }
}

/// Spans as the gateway of gRPC wraps them.
fn result(store: &LiveStore, spans: &[Span]) -> Result<String, QueryError> {
    let document = as_json(store, spans, otlp::json::encode)?;
    // The copy that has the frame around it.
    let _second = store.limits().hold(document.len() as u64)?;
    Ok(format!("{{\"result\":{}}}", String::from_utf8_lossy(&document)))
}

async fn summaries(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move || {
        let search = TraceSearch::of(&Parameters::of(query.as_deref())?)?;
        let mut rows = Vec::new();
        for found in search.found(&store)? {
            rows.push(Summary::read(&store, &found)?.json());
        }
        Ok(json!({ "summaries": rows }).to_string())
    };
    answer(off_the_reactor::<_, QueryError>(found).await)
}

async fn dependencies(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let from = required_time(&parameters, "", "startTime", "start_time")?;
        let until = required_time(&parameters, "", "endTime", "end_time")?;
        let row =
            |((parent, child), count): ((String, String), u64)| json!({ "parent": parent, "child": child, "callCount": count.to_string() });
        let rows: Vec<Value> = calls(&store, from, until)?.into_iter().map(row).collect();
        Ok(json!({ "dependencies": rows }).to_string())
    };
    answer(off_the_reactor::<_, QueryError>(found).await)
}

/// A search.
#[derive(Debug)]
pub(super) struct TraceSearch {
    pub(super) filter: SpanFilter,
    /// How many traces are wanted.
    pub(super) depth: usize,
}

impl TraceSearch {
    fn of(parameters: &Parameters) -> Result<TraceSearch, QueryError> {
        const OF: &str = "query.";
        if named(parameters, OF, "filter", "filter").is_some() {
            return Err("query.filter: structured filters are not supported; use query.serviceName, query.attributes and the like".into());
        }
        let from = required_time(parameters, OF, "startTimeMin", "start_time_min")?;
        let until = required_time(parameters, OF, "startTimeMax", "start_time_max")?;
        if from >= until {
            return Err("query.startTimeMin must be before query.startTimeMax".into());
        }
        let mut attributes = match named(parameters, OF, "attributes", "attributes") {
            Some(text) => tags_of_json("query.attributes", text)?,
            None => Vec::new(),
        };
        let is_error = take_error(&mut attributes);
        let depth = ["query.searchDepth", "query.search_depth", "query.num_traces"]
            .into_iter()
            .find_map(|name| parameters.number(name).transpose());
        let duration = |camel: &str, snake: &str| {
            let name = [format!("query.{camel}"), format!("query.{snake}")].into_iter().find(|name| parameters.text(name).is_some());
            name.map_or(Ok(None), |name| parameters.duration(&name))
        };
        Ok(TraceSearch {
            filter: SpanFilter {
                service: named(parameters, OF, "serviceName", "service_name").map(str::to_owned),
                name: named(parameters, OF, "operationName", "operation_name").map(str::to_owned),
                attributes,
                keys: Vec::new(),
                min_nanos: duration("durationMin", "duration_min")?,
                max_nanos: duration("durationMax", "duration_max")?,
                is_error,
                from: Some(from),
                until: Some(until),
                ..SpanFilter::default()
            },
            depth: depth_of(depth.transpose()?),
        })
    }

    /// What it finds, the newest trace first.
    pub(super) fn found(&self, store: &LiveStore) -> Result<Vec<TraceSummary>, QueryError> {
        Ok(store.find(&self.filter, self.depth)?)
    }

    /// The same with their spans.
    pub(super) fn traces(&self, store: &LiveStore) -> Result<FoundTraces, QueryError> {
        FoundTraces::read(store, self.found(store)?.into_iter().map(|trace| trace.trace_id))
    }
}

/// How many traces a search returns: as many as it asks for, within bounds.
pub(super) fn depth_of(wanted: Option<u64>) -> usize {
    let wanted = wanted.filter(|depth| *depth > 0).map_or(DEPTH, |depth| usize::try_from(depth).unwrap_or(DEPTH_MAX));
    wanted.min(DEPTH_MAX)
}

/// A parameter by either of its names.
fn named<'a>(parameters: &'a Parameters, of: &str, camel: &str, snake: &str) -> Option<&'a str> {
    parameters.text(&format!("{of}{camel}")).or_else(|| parameters.text(&format!("{of}{snake}")))
}

fn required_time(parameters: &Parameters, of: &str, camel: &str, snake: &str) -> Result<Timestamp, QueryError> {
    let text = named(parameters, of, camel, snake).ok_or_else(|| format!("parameter '{of}{camel}' is required"))?;
    Ok(rfc3339::timestamp(text).ok_or_else(|| format!("{of}{camel}: {text} is not a time such as 2026-11-28T16:30:00Z"))?)
}

/// What a service of a trace in a list takes beside its name, about.
const SUMMARY_SERVICE_BYTES: usize = 128;

/// A trace in a list.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) trace_id: String,
    pub(super) root_service: Text,
    pub(super) root_name: Text,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) spans: usize,
    pub(super) errors: usize,
    /// Spans whose parent is not there.
    pub(super) orphans: usize,
    /// Spans and failed spans of each service.
    pub(super) services: BTreeMap<Text, [usize; 2]>,
}

impl Summary {
    /// The summary of a trace that was found, from its spans, which are gone then.
    pub(super) fn read(store: &LiveStore, found: &TraceSummary) -> Result<Summary, StoreError> {
        let summary = store.limits().briefly(|| match store.trace(found.trace_id) {
            Ok(spans) => Ok(Summary::new(found, &spans)),
            Err(StoreError::TraceTooLarge { .. }) => Ok(Summary::of_unread(found)),
            Err(error) => Err(error),
        })?;
        let services: usize = summary.services.keys().map(|name| name.len() + SUMMARY_SERVICE_BYTES).sum();
        let texts = services + summary.root_service.len() + summary.root_name.len();
        // The summary, an answer made of it, and its text.
        store.limits().take(3 * texts as u64)?;
        Ok(summary)
    }

    fn new(found: &TraceSummary, spans: &[Span]) -> Summary {
        let known: HashSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
        let mut services: BTreeMap<Text, [usize; 2]> = BTreeMap::new();
        for span in spans {
            let [all, errors] = services.entry(span.resource.service()).or_default();
            *all += 1;
            *errors += usize::from(span.status.code == SpanStatus::Error);
        }
        Summary {
            trace_id: found.trace_id.to_string(),
            root_service: found.root_service.clone(),
            root_name: found.root_name.clone(),
            start: spans.iter().map(|span| span.start).min().unwrap_or(found.start),
            end: spans.iter().map(|span| span.end).max().unwrap_or(found.end),
            spans: spans.len(),
            errors: services.values().map(|[_, errors]| errors).sum(),
            orphans: spans.iter().filter(|span| span.parent_span_id.is_some_and(|parent| !known.contains(&parent))).count(),
            services,
        }
    }

    /// The summary of a trace that is too large to be read: orphans and the errors of each service are unknown.
    fn of_unread(found: &TraceSummary) -> Summary {
        Summary {
            trace_id: found.trace_id.to_string(),
            root_service: found.root_service.clone(),
            root_name: found.root_name.clone(),
            start: found.start,
            end: found.end,
            spans: found.spans as usize,
            errors: found.errors as usize,
            orphans: 0,
            services: found.services.iter().map(|(name, spans)| (name.clone(), [*spans as usize, 0])).collect(),
        }
    }

    fn json(&self) -> Value {
        let services: Vec<Value> = self
            .services
            .iter()
            .map(|(name, [spans, errors])| json!({ "name": name.as_str(), "spanCount": spans, "errorSpanCount": errors }))
            .collect();
        json!({
            "traceId": self.trace_id,
            "rootServiceName": self.root_service.as_str(),
            "rootOperationName": self.root_name.as_str(),
            "minStartTimeUnixNano": self.start.unix_nanos().to_string(),
            "maxEndTimeUnixNano": self.end.unix_nanos().to_string(),
            "spanCount": self.spans,
            "errorSpanCount": self.errors,
            "orphanSpanCount": self.orphans,
            "services": services,
        })
    }
}
