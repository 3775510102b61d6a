//! The queries of Zipkin, version 2, beside its door on the same port.
//!
//! | | |
//! |---|---|
//! | `/api/v2/services`, `/api/v2/spans`, `/api/v2/remoteServices` | names; empty for a service that is not there |
//! | `/api/v2/traces` | search: `serviceName`, `spanName`, `annotationQuery`, `minDuration`, `maxDuration`, `endTs`, `lookback`, `limit` |
//! | `/api/v2/trace/{id}`, `/api/v2/traceMany?traceIds=…` | traces |
//! | `/api/v2/dependencies?endTs=…` | which service calls which |
//! | `/health`, `/info` | |
//!
//! Times of a search are milliseconds, durations microseconds.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use longpole_model::Span;
use longpole_store::live::{LiveStore, SpanFilter};
use longpole_wire::zipkin;
use serde_json::json;

use super::found_traces::{FoundTraces, with_warning};
use super::jaeger::{DEPENDENCIES_MILLIS, as_json, calls, id_of, json_header, service_names};
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::wall_clock::now;

const LIMIT: usize = 10;
const LIMIT_MAX: usize = 1_000;

/// How far a search goes back without `lookback`, in milliseconds: what Zipkin keeps for a search.
const LOOKBACK_MILLIS: u64 = 7 * 86_400_000;

/// Traces that tell the names of other services.
const REMOTE_TRACES_MAX: usize = 500;

pub(super) fn routes(store: LiveStore) -> Router {
    Router::new()
        .route("/api/v2/services", get(services))
        .route("/api/v2/spans", get(span_names))
        .route("/api/v2/remoteServices", get(remote_services))
        .route("/api/v2/traces", get(traces))
        .route("/api/v2/trace/{id}", get(trace))
        .route("/api/v2/traceMany", get(trace_many))
        .route("/api/v2/dependencies", get(dependencies))
        .route("/api/v2/autocompleteKeys", get(async || (json_header(), "[]")))
        .route("/api/v2/autocompleteValues", get(async || (json_header(), "[]")))
        .route("/health", get(async || (json_header(), json!({ "status": "UP", "zipkin": { "status": "UP" } }).to_string())))
        .route(
            "/info",
            get(async || (json_header(), json!({ "zipkin": { "version": "3.0.0" }, "longpole": env!("CARGO_PKG_VERSION") }).to_string())),
        )
        .with_state(store)
}

/// An answer of Zipkin: its JSON as it is, errors as text.
struct Plain(Result<Vec<u8>, QueryError>);

impl IntoResponse for Plain {
    fn into_response(self) -> Response {
        match self.0 {
            Ok(body) => (json_header(), body).into_response(),
            Err(error) => (error.status(), error.to_string()).into_response(),
        }
    }
}

/// Answers with a list of traces, each a list of spans.
async fn lists(store: LiveStore, found: impl FnOnce(&LiveStore) -> Result<FoundTraces, QueryError> + Send + 'static) -> Response {
    let read = move || {
        let found = found(&store)?;
        Ok((list_of_lists(&store, &found.traces)?, found.warning()))
    };
    match off_the_reactor::<_, QueryError>(read).await {
        Ok((body, warning)) => with_warning(warning, Plain(Ok(body)).into_response()),
        Err(error) => Plain(Err(error)).into_response(),
    }
}

/// Answers with names.
async fn names(found: impl FnOnce() -> Result<BTreeSet<String>, QueryError> + Send + 'static) -> Plain {
    Plain(off_the_reactor::<_, QueryError>(move || Ok(json!(found()?).to_string().into_bytes())).await)
}

/// Zipkin knows services by lower-case names.
fn is_service(name: &str, wanted: &str) -> bool {
    name.to_lowercase() == wanted.to_lowercase()
}

async fn services(QueriedStore(store): QueriedStore) -> Plain {
    names(move || Ok(service_names(&store)?.into_iter().map(|name| name.to_lowercase()).collect())).await
}

async fn span_names(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Plain {
    names(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let Some(service) = parameters.text("serviceName") else { return Ok(BTreeSet::new()) };
        Ok(store.operations()?.into_iter().filter(|(of, ..)| is_service(of, service)).map(|(_, name, _)| name.to_lowercase()).collect())
    })
    .await
}

async fn remote_services(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Plain {
    names(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let Some(service) = service_as_kept(&store, parameters.text("serviceName"))? else { return Ok(BTreeSet::new()) };
        let filter = SpanFilter { service: Some(service.clone()), ..SpanFilter::default() };
        let mut names = BTreeSet::new();
        for found in store.find(&filter, REMOTE_TRACES_MAX)? {
            let others = found.services.into_iter().map(|(name, _)| name.to_lowercase());
            names.extend(others.filter(|name| !is_service(name, &service)));
        }
        Ok(names)
    })
    .await
}

/// The service of this name, as it was sent.
fn service_as_kept(store: &LiveStore, wanted: Option<&str>) -> Result<Option<String>, QueryError> {
    let Some(wanted) = wanted else { return Ok(None) };
    Ok(service_names(store)?.into_iter().find(|name| is_service(name, wanted)))
}

async fn traces(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move |store: &LiveStore| {
        let parameters = Parameters::of(query.as_deref())?;
        let until = parameters.millis("endTs")?.unwrap_or_else(now);
        let from = parameters.since(until, LOOKBACK_MILLIS)?;
        let (min, max) = (parameters.number("minDuration")?, parameters.number("maxDuration")?);
        if max.is_some() && min.is_none() {
            return Err("maxDuration is only valid with minDuration".into());
        }
        let wanted = parameters.text("serviceName").filter(|name| *name != "all");
        let service = service_as_kept(store, wanted)?;
        if wanted.is_some() && service.is_none() {
            return FoundTraces::read(store, []);
        }
        let (mut attributes, mut keys) = (Vec::new(), Vec::new());
        for condition in parameters.text("annotationQuery").unwrap_or_default().split(" and ").filter(|text| !text.trim().is_empty()) {
            match condition.trim().split_once('=') {
                Some((key, value)) => attributes.push((key.to_owned(), value.to_owned())),
                None => keys.push(condition.trim().to_owned()),
            }
        }
        let filter = SpanFilter {
            service,
            name: parameters.text("spanName").filter(|name| *name != "all").map(str::to_owned),
            attributes,
            keys,
            min_nanos: min.map(|micros| micros.saturating_mul(1_000)),
            max_nanos: max.map(|micros| micros.saturating_mul(1_000)),
            is_error: false,
            from: Some(from),
            until: Some(until),
            ..SpanFilter::default()
        };
        let limit = parameters.limit(LIMIT, LIMIT_MAX)?;
        let found = store.find(&filter, limit)?;
        FoundTraces::read(store, found.into_iter().map(|trace| trace.trace_id))
    };
    lists(store, found).await
}

/// A list of traces, each a list of spans.
fn list_of_lists(store: &LiveStore, traces: &[Vec<Span>]) -> Result<Vec<u8>, QueryError> {
    let mut out = vec![b'['];
    for (number, spans) in traces.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        // It is in memory twice for a moment, and the list grows.
        let list = as_json(store, spans, |spans| zipkin::encode_v2_json(spans).0)?;
        store.limits().take(list.len() as u64)?;
        out.extend(list);
    }
    out.push(b']');
    Ok(out)
}

async fn trace(QueriedStore(store): QueriedStore, Path(id): Path<String>) -> Plain {
    let found = move || {
        let spans = store.trace(id_of(&id)?)?;
        if spans.is_empty() {
            Err(QueryError::NotFound(format!("{id} not found")))
        } else {
            as_json(&store, &spans, |spans| zipkin::encode_v2_json(spans).0)
        }
    };
    Plain(off_the_reactor::<_, QueryError>(found).await)
}

async fn trace_many(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    let found = move |store: &LiveStore| {
        let parameters = Parameters::of(query.as_deref())?;
        let ids: BTreeSet<_> =
            parameters.text("traceIds").unwrap_or_default().split(',').filter(|id| !id.is_empty()).map(id_of).collect::<Result<_, _>>()?;
        if ids.len() < 2 {
            return Err("traceIds must name at least two distinct traces".into());
        }
        let mut found = FoundTraces::read(store, ids)?;
        found.traces.retain(|spans| !spans.is_empty());
        Ok(found)
    };
    lists(store, found).await
}

async fn dependencies(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Plain {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let until = parameters.millis("endTs")?.ok_or("endTs is required")?;
        let rows: Vec<_> = calls(&store, parameters.since(until, DEPENDENCIES_MILLIS)?, until)?
            .into_iter()
            .map(|((parent, child), count)| json!({ "parent": parent.to_lowercase(), "child": child.to_lowercase(), "callCount": count }))
            .collect();
        Ok(json!(rows).to_string().into_bytes())
    };
    Plain(off_the_reactor::<_, QueryError>(found).await)
}

/// Any other address of this port.
pub(super) async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "no such address: this port takes Zipkin's and OpenTelemetry's spans, and answers Zipkin's queries (/api/v2/…)")
}
