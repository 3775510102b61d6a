//! The page of a server: a list of traces, and each trace shown as a recording is.
//!
//! | | |
//! |---|---|
//! | `/longpole/v1/services` | services and their operations |
//! | `/longpole/v1/services/map` | calls between services, in the newest traces from `start` to `end`; an hour without `start` |
//! | `/longpole/v1/traces` | search: `service`, `operation`, `tags`, `minDuration`, `maxDuration`, `start`, `end`, `limit`, as Jaeger spells them; `minWall` and `maxWall` for the whole trace; `after`, the `next` of another answer, for the traces behind it |
//! | `/longpole/v1/traces/poles` | the long poles of the traces that the same search finds, 2,000 of them without `limit` |
//! | `/api/recordings/{trace}/…` | views of a trace, as of a recording |
//! | `/trace/{trace}` | its page |
//! | PUT `/longpole/v1/traces/{trace}/recording` | makes a recording of a trace, which retention leaves alone |
//! | `/longpole/v1/traces/{trace}/recordings` | recordings with spans of a trace: its code |
//! | `/longpole/v1/recordings/{recording}/traces` | the traces of a recording that the server received as well |
//! | PUT `/longpole/v1/recordings` | takes a recording or another tool's file ([`pushed`](super::pushed)), which `/r/{recording}` shows |

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, put};
use http::StatusCode;
use longpole_model::Timestamp;
use longpole_recording::import;
use longpole_recording::view::{
    ReceivedTraceView, RecordingView, RecordingsView, ServerView, ServiceMap, ServiceMapView, ServicesView, TracesOfRecordingView,
    TracesView,
};
use longpole_store::live::{LiveStore, MemoryPool, SpanFilter, TraceCursor};
use longpole_wire::jaeger::trace_id;

use super::jaeger::{add_to_map, filter_of_page};
use super::pushed::Pushed;
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use super::shared_poles::shared_poles;
use crate::api::{self, Answer, ApiError, ReportCache, json};
use crate::off_the_reactor::{off_the_reactor, query_limits};
use crate::query_parameters::Parameters;
use crate::wall_clock::now;
use crate::{auth, server};

/// Traces of an answer without `limit`, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 5_000;

/// Recordings of one trace, and traces of one recording, that an answer lists.
const LINKED_MAX: u32 = 10;

/// How far a map goes back without `start`.
const MAP_NANOS: i64 = 3_600_000_000_000;

/// Traces that a map is made from: enough for a 95th percentile of calls that one trace in ten makes.
const MAP_TRACES_MAX: usize = 2_000;

/// How long they are read. Then the map is of fewer, and says so: the half of them says as much as all do, and nobody waits longer for a page.
const MAP_TIME_MAX: Duration = Duration::from_secs(10);

/// The routes of the page, and of the API that it reads.
pub(super) fn routes(live: &LiveStore, pushed: &Pushed, view: ServerView, memory: &Arc<MemoryPool>) -> Router {
    let own = Router::new()
        .route("/longpole/v1/services", get(services))
        .route("/longpole/v1/services/map", get(service_map))
        .route("/longpole/v1/traces", get(traces))
        .route("/longpole/v1/traces/poles", get(shared_poles))
        .route("/", get(async || Redirect::to("/search")))
        .with_state(live.clone());
    let kept = Router::new()
        .route("/trace/{id}", get(page_of_trace))
        .route("/longpole/v1/traces/{id}/recording", put(keep_trace))
        .route("/longpole/v1/traces/{id}/recordings", get(recordings_of_trace))
        .route("/longpole/v1/recordings/{recording}/traces", get(traces_of_recording))
        .with_state((live.clone(), pushed.clone()));
    let cache = ReportCache::of_server(live.clone(), pushed.root().to_owned(), view, memory);
    api::routes(cache).merge(own).merge(kept).fallback(file)
}

/// A file of the page.
async fn file(request: Request) -> Response {
    auth::with_policy(server::other(request).await)
}

/// Where the page has a trace: that of its spans, or of a recording if nobody sent them. Jaeger's links may lack the zeros of an id.
async fn page_of_trace(State((store, pushed)): State<(LiveStore, Pushed)>, Path(id): Path<String>, request: Request) -> Response {
    // The page says that there is nothing here.
    let Some(id) = trace_id(&id) else { return file(request).await };
    let store = store.for_query(query_limits());
    let recording = off_the_reactor::<_, QueryError>(move || {
        let is_received = store.limits().briefly(|| store.trace_extent(id))?.is_some();
        Ok(if is_received { None } else { pushed.with_trace(id, 1)?.first().map(|recording| recording.name) })
    });
    // A store that does not answer says so on the page of the trace.
    match recording.await {
        Ok(Some(recording)) => Redirect::to(&format!("/r/{recording}")).into_response(),
        Ok(None) | Err(_) => Redirect::to(&format!("/r/{id}")).into_response(),
    }
}

/// The recordings with spans of a trace, the newest first.
async fn recordings_of_trace(State((_, pushed)): State<(LiveStore, Pushed)>, Path(id): Path<String>) -> Answer {
    let id = trace_id(&id).ok_or_else(|| QueryError::from(format!("{id:?} is not a trace id")))?;
    let found = off_the_reactor::<_, ApiError>(move || Ok(pushed.with_trace(id, LINKED_MAX)?)).await?;
    json(&RecordingsView { recordings: found.iter().map(RecordingView::new).collect(), damaged: Vec::new() })
}

/// The traces of a recording that were received as well.
async fn traces_of_recording(State((store, pushed)): State<(LiveStore, Pushed)>, Path(recording): Path<String>) -> Answer {
    let store = store.for_query(query_limits());
    let view = off_the_reactor::<_, ApiError>(move || {
        let ids = pushed.traces_of(&recording, LINKED_MAX + 1)?;
        let mut traces = Vec::new();
        for id in ids.iter().take(LINKED_MAX as usize) {
            if let Some(extent) = store.limits().briefly(|| store.trace_extent(*id))? {
                traces.push(ReceivedTraceView { trace_id: id.to_string(), spans: extent.rows });
            }
        }
        Ok(TracesOfRecordingView { traces, truncated: ids.len() > LINKED_MAX as usize })
    });
    json(&view.await?)
}

/// Makes a recording of a trace.
async fn keep_trace(State((store, pushed)): State<(LiveStore, Pushed)>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let Some(id) = trace_id(&id) else { return Err(QueryError::from(format!("{id:?} is not a trace id")).into()) };
    let (store, limits) = (store.for_query(query_limits()), query_limits());
    let kept = off_the_reactor::<_, ApiError>(move || {
        pushed.keep_trace(id, || {
            let spans = store.trace(id)?;
            if spans.is_empty() {
                return Err(ApiError::not_found(format!("there is no trace {id}")));
            }
            Ok(import::trace_to_keep(id, spans, &limits)?)
        })
    });
    let mut answer = json(&kept.await?)?;
    *answer.status_mut() = StatusCode::CREATED;
    Ok(answer)
}

async fn services(QueriedStore(store): QueriedStore) -> Answer {
    json(&off_the_reactor::<_, QueryError>(move || Ok(ServicesView::new(store.operations()?))).await?)
}

async fn service_map(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let until = parameters.micros("end")?;
        let hour_before = || Timestamp(until.unwrap_or_else(now).unix_nanos().saturating_sub(MAP_NANOS));
        let from = parameters.micros("start")?.unwrap_or_else(hour_before);
        map_of(&store, &SpanFilter { from: Some(from), until, ..SpanFilter::default() }, MAP_TRACES_MAX)
    };
    json(&off_the_reactor::<_, QueryError>(found).await?)
}

/// The map of the newest traces that a filter matches, `limit` at most, and fewer if they take long to read.
fn map_of(store: &LiveStore, filter: &SpanFilter, limit: usize) -> Result<ServiceMapView, QueryError> {
    let found = store.find(filter, limit + 1)?;
    let begun = Instant::now();
    let mut map = ServiceMap::default();
    for trace in found.iter().take(limit) {
        if begun.elapsed() > MAP_TIME_MAX {
            break;
        }
        add_to_map(store, &mut map, trace.trace_id)?;
    }
    Ok(map.view(found.len()))
}

async fn traces(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let limit = parameters.limit(LIMIT, LIMIT_MAX)?;
        let mut filter = filter_of_page(&parameters)?;
        filter.after = parameters.text("after").map(cursor).transpose()?;
        Ok(TracesView::new(&store.find_page(&filter, limit)?))
    };
    json(&off_the_reactor::<_, QueryError>(found).await?)
}

/// `1795867200000000000,5b8aa5a2d2c872e8321cf37308d69df2`: a start in nanoseconds since 1970, and a trace.
fn cursor(text: &str) -> Result<TraceCursor, QueryError> {
    let parts = text.split_once(',').and_then(|(start, id)| Some((start.parse().ok()?, trace_id(id)?)));
    let (start, trace_id) = parts.ok_or_else(|| {
        format!("after: {text} is not the next of an answer, such as 1795867200000000000,5b8aa5a2d2c872e8321cf37308d69df2")
    })?;
    Ok(TraceCursor { start: Timestamp(start), trace_id })
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let code = match error {
            QueryError::Unfinished(unfinished) => return unfinished.into(),
            QueryError::Store(error) => return error.into(),
            _ if error.status().is_client_error() => "bad_request",
            _ => "unreadable",
        };
        ApiError::new(error.status(), code, error.to_string())
    }
}
