//! The HTTP API of `docs/formats/http-api.md`: one resource per file, each a view as JSON.

mod flame;
mod frame;
mod poles;
mod processes;
mod recordings;
mod span;
mod summary;
mod threads;
mod tree;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use longpole_analysis::Report;
use longpole_model::{Span, Timestamp, TraceId};
use longpole_store::live::LiveStore;
use longpole_store::{DirectoryIdentity, ErrorKind, RecordingName, RecordingState, Store, StoreError, StoredRecording};
use serde::Serialize;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::limits::{QUERIES_AT_ONCE_MAX, QUERY_TIME_MAX, REPORTS_MAX};
use crate::off_the_reactor::{Unfinished, off_the_reactor, query_stop};
use longpole_recording::import;
use longpole_recording::seal::{self, SealError};
use longpole_recording::source_file::SourceConsent;
use longpole_wire::jaeger::trace_id;

/// The routes. All are GET; axum answers HEAD by them, and everything else with 405.
pub(crate) fn routes(cache: Arc<ReportCache>) -> Router {
    Router::new()
        .route("/api/recordings", get(recordings::list))
        .route("/api/recordings/{rec}", get(summary::get))
        .route("/api/recordings/{rec}/poles", get(poles::get))
        .route("/api/recordings/{rec}/tree", get(tree::get))
        .route("/api/recordings/{rec}/spans/{handle}", get(span::get))
        .route("/api/recordings/{rec}/flame", get(flame::get))
        .route("/api/recordings/{rec}/frames/{handle}", get(frame::get))
        .route("/api/recordings/{rec}/frames/{handle}/source", get(frame::source))
        .route("/api/recordings/{rec}/names/{name}", get(span::of_name))
        .route("/api/recordings/{rec}/processes", get(processes::get))
        .route("/api/recordings/{rec}/threads", get(threads::get))
        .method_not_allowed_fallback(|| async {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address is read-only: use GET")
        })
        .layer(middleware::map_response(in_our_shape))
        .with_state(cache)
}

/// Gives axum's own refusals (a path that is not UTF-8, a parameter that appears twice) the shape of all errors.
async fn in_our_shape(response: Response) -> Response {
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|value| value == "application/json");
    if is_json || !response.status().is_client_error() {
        return response;
    }
    let status = response.status();
    let text = axum::body::to_bytes(response.into_body(), REFUSAL_BYTES_MAX).await.unwrap_or_default();
    ApiError::new(status, "bad_request", String::from_utf8_lossy(&text)).into_response()
}

/// Bytes of a refusal in axum's own words: they are one sentence.
const REFUSAL_BYTES_MAX: usize = 4096;

/// Why a request has no answer: a status, a stable code, and a message for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        ApiError { status, code, message: message.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// No span, pole or function of this name.
    fn no_handle(name: ReportName, handle: &str) -> Self {
        ApiError::not_found(format!("{name} has no {handle}"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        respond(self.status, body.to_string().into_bytes())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = format!("cannot {}", causes(&error));
        match error.kind() {
            ErrorKind::Usage => ApiError::new(StatusCode::BAD_REQUEST, "bad_name", message),
            ErrorKind::NotFound => ApiError::new(StatusCode::NOT_FOUND, "recording_not_found", message),
            ErrorKind::Living => ApiError::new(StatusCode::CONFLICT, "still_recording", message),
            ErrorKind::Environment | ErrorKind::NotOurs | ErrorKind::Incompatible | ErrorKind::Corrupt | ErrorKind::Bug => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", message)
            }
        }
    }
}

impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Store(error) => error.into(),
            SealError::Living { .. } => ApiError::new(StatusCode::CONFLICT, "still_recording", error.to_string()),
            error => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", causes(&error)),
        }
    }
}

/// An error with its causes.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn respond(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(crate) type Answer = Result<Response, ApiError>;

/// A view as JSON.
pub(crate) fn json(view: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(view)
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", format!("cannot write JSON: {error}")))?;
    Ok(respond(StatusCode::OK, body))
}

/// What a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportName {
    /// A recording of the store.
    Recording(RecordingName),
    /// A trace of a server.
    Trace(TraceId),
}

impl fmt::Display for ReportName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportName::Recording(name) => name.fmt(formatter),
            ReportName::Trace(id) => id.fmt(formatter),
        }
    }
}

/// Where reports come from, and the reports of the last requests. A sealed recording never changes, so its report stays valid; each request
/// checks that the recording still exists. A trace changes as long as spans of it come.
pub(crate) struct ReportCache {
    source: ReportSource,
    consent: SourceConsent,
    reports: Mutex<VecDeque<Shelved>>,
}

/// What there are reports of.
enum ReportSource {
    /// Recordings of the store in this directory.
    Recordings(PathBuf),
    /// Traces of a server, and the recordings that were pushed to it: its clients may be anybody, so those that a user made here are not
    /// among them.
    Served {
        traces: LiveStore,
        /// The store of what was pushed.
        pushed: PathBuf,
    },
}

/// Which report this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// The number alone is not enough: a store that was removed and made again counts from 1 again.
    Recording { name: RecordingName, directory: DirectoryIdentity, start: Timestamp },
    /// With the number of its spans and their last end, by which it changes.
    Trace { id: TraceId, spans: usize, end: Timestamp },
}

impl Label {
    fn of(stored: &StoredRecording) -> Result<Self, StoreError> {
        Ok(Label::Recording { name: stored.name, directory: stored.directory_identity()?, start: stored.summary.start })
    }

    fn of_trace(id: TraceId, spans: &[Span]) -> Self {
        Label::Trace { id, spans: spans.len(), end: spans.iter().map(|span| span.end).max().unwrap_or(Timestamp(0)) }
    }
}

/// A report that is ready, or in the making; requests that arrive meanwhile wait for the same one.
type Shelved = (Label, Arc<OnceCell<Arc<Report>>>);

impl ReportCache {
    pub(crate) fn new(root: &FilePath, consent: SourceConsent) -> Self {
        ReportCache { source: ReportSource::Recordings(root.to_owned()), consent, reports: Mutex::default() }
    }

    /// Reports of the traces of a server, and of the recordings that were pushed to it.
    pub(crate) fn of_server(traces: LiveStore, pushed: PathBuf) -> Self {
        ReportCache { source: ReportSource::Served { traces, pushed }, consent: SourceConsent::default(), reports: Mutex::default() }
    }

    /// Whether it may read the source files that a recording names: never on a server, where anybody may have pushed the recording.
    fn reads_sources(&self) -> bool {
        matches!(self.source, ReportSource::Recordings(_))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Shelved>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a report, made the youngest.
    fn place(&self, label: Label) -> Arc<OnceCell<Arc<Report>>> {
        let mut reports = self.lock();
        let known = reports.iter().position(|(other, _)| *other == label).and_then(|at| reports.remove(at));
        let place = known.map_or_else(Arc::default, |(_, place)| place);
        reports.push_front((label, Arc::clone(&place)));
        reports.truncate(REPORTS_MAX);
        place
    }

    /// The report of `r7`, `7` or `last`, or of a trace by its id, made at the first call.
    pub(crate) async fn report(self: &Arc<Self>, text: &str) -> Result<(ReportName, Arc<Report>), ApiError> {
        match &self.source {
            ReportSource::Recordings(_) => self.report_of_recording(text).await,
            // A trace id has hexadecimal digits only.
            ReportSource::Served { .. } if text.starts_with('r') => self.report_of_recording(text).await,
            ReportSource::Served { traces, .. } => self.report_of_trace(traces.for_query(query_stop()), text).await,
        }
    }

    async fn report_of_recording(self: &Arc<Self>, text: &str) -> Result<(ReportName, Arc<Report>), ApiError> {
        let cache = Arc::clone(self);
        let text = text.to_owned();
        let (store, name, label) = off_the_reactor::<_, ApiError>(move || {
            let store = cache.open()?;
            let stored = store.recording(store.resolve(&text)?)?;
            if stored.state == RecordingState::Recording {
                return Err(SealError::Living { name: stored.name }.into());
            }
            Ok((store, stored.name, Label::of(&stored)?))
        })
        .await?;
        let make = || off_the_reactor::<_, ApiError>(move || Ok(Arc::new(seal::load(&store, name, &|| false)?)));
        let place = self.place(label);
        let report = place.get_or_try_init(make).await?;
        Ok((ReportName::Recording(name), Arc::clone(report)))
    }

    async fn report_of_trace(self: &Arc<Self>, store: LiveStore, text: &str) -> Result<(ReportName, Arc<Report>), ApiError> {
        let text = text.to_owned();
        let (id, spans) = off_the_reactor::<_, ApiError>(move || {
            let id = trace_id(&text).ok_or_else(|| ApiError::not_found(format!("{text} is no trace id")))?;
            let spans = store.trace(id)?;
            if spans.is_empty() { Err(ApiError::not_found(format!("there is no trace {id}"))) } else { Ok((id, spans)) }
        })
        .await?;
        let place = self.place(Label::of_trace(id, &spans));
        let make = || off_the_reactor::<_, ApiError>(move || Ok(Arc::new(import::report(import::of_trace(spans)))));
        let report = place.get_or_try_init(make).await?;
        Ok((ReportName::Trace(id), Arc::clone(report)))
    }

    fn open(&self) -> Result<Store, ApiError> {
        match &self.source {
            ReportSource::Recordings(root) | ReportSource::Served { pushed: root, .. } => Ok(Store::open(root)?),
        }
    }

    /// Makes a view of a report, off the reactor: views of large recordings take their time.
    pub(crate) async fn view(
        self: &Arc<Self>,
        recording: &str,
        view: impl FnOnce(ReportName, &Report) -> Answer + Send + 'static,
    ) -> Answer {
        let (name, report) = self.report(recording).await?;
        off_the_reactor::<_, ApiError>(move || view(name, &report)).await
    }

    /// Answers a query to the store.
    async fn store(self: &Arc<Self>, query: impl FnOnce(&Store) -> Answer + Send + 'static) -> Answer {
        let cache = Arc::clone(self);
        off_the_reactor::<_, ApiError>(move || query(&cache.open()?)).await
    }
}

impl From<Unfinished> for ApiError {
    fn from(unfinished: Unfinished) -> Self {
        let busy = |code, message| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
        match unfinished {
            Unfinished::Panicked => {
                let message = "longpole has a bug: it failed to answer this request; `longpole show` may report more";
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", message)
            }
            Unfinished::TimedOut => busy("timed_out", format!("the query took longer than {} s", QUERY_TIME_MAX.as_secs())),
            Unfinished::NoPlace => busy("busy", format!("more than {QUERIES_AT_ONCE_MAX} queries at the same time: try again")),
        }
    }
}
