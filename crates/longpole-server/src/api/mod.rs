//! The HTTP API of `docs/formats/http-api.md`: one resource per file, each a view as JSON.

mod diff;
mod excerpt;
mod flame;
mod frame;
mod lanes;
mod poles;
mod processes;
mod recordings;
mod report_cache;
mod span;
mod summary;
mod threads;
mod tree;
mod what_if;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use longpole_model::TraceId;
use longpole_recording::seal::SealError;
use longpole_store::live::QueryLimits;
use longpole_store::{ErrorKind, RecordingName, StoreError};
use serde::Serialize;
use serde_json::json;

pub(crate) use self::report_cache::ReportCache;
use crate::off_the_reactor::{Unfinished, query_limits};

/// Bytes that an answer begins with.
const BODY_BYTES: usize = 16 << 10;

/// The routes. All are GET; axum answers HEAD by them, and everything else with 405.
pub(crate) fn routes(cache: Arc<ReportCache>) -> Router {
    Router::new()
        .route("/api/server", get(recordings::server))
        .route("/api/recordings", get(recordings::list))
        .route("/api/recordings/{rec}", get(summary::get))
        .route("/api/recordings/{rec}/poles", get(poles::get))
        .route("/api/recordings/{rec}/tree", get(tree::get))
        .route("/api/recordings/{rec}/whatif", get(what_if::get))
        .route("/api/recordings/{rec}/spans/{handle}", get(span::get))
        .route("/api/recordings/{rec}/flame", get(flame::get))
        .route("/api/recordings/{rec}/frames/{handle}", get(frame::get))
        .route("/api/recordings/{rec}/frames/{handle}/source", get(frame::source))
        .route("/api/recordings/{rec}/names/{name}", get(span::of_name))
        .route("/api/recordings/{rec}/processes", get(processes::get))
        .route("/api/recordings/{rec}/threads", get(threads::get))
        .route("/api/recordings/{rec}/lanes", get(lanes::get))
        .route("/api/recordings/{rec}/diff", get(diff::get))
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
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// The status of a failure of the store, for whoever asked it something.
pub(crate) fn status_of_store(error: &StoreError) -> StatusCode {
    match error {
        // The same question has an answer when others have theirs, and nobody waits for that of a question that was stopped.
        StoreError::MemoryShort | StoreError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        // As Tempo answers: the request is a good one, and what it asks for is too large.
        StoreError::TooMuchMemory { .. } | StoreError::TraceTooLarge { .. } | StoreError::TooLarge { .. } => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => match error.kind() {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Living => StatusCode::CONFLICT,
            ErrorKind::Environment | ErrorKind::NotOurs | ErrorKind::Incompatible | ErrorKind::Corrupt | ErrorKind::Bug => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        },
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = status_of_store(&error);
        let code = match status {
            StatusCode::BAD_REQUEST => "bad_name",
            StatusCode::NOT_FOUND => "recording_not_found",
            StatusCode::CONFLICT => "still_recording",
            StatusCode::SERVICE_UNAVAILABLE => "busy",
            StatusCode::UNPROCESSABLE_ENTITY => "too_large",
            _ => "unreadable",
        };
        ApiError::new(status, code, format!("cannot {}", causes(&error)))
    }
}

impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Store(error) => error.into(),
            SealError::Living { .. } => ApiError::new(StatusCode::CONFLICT, "still_recording", error.to_string()),
            SealError::Interrupted { .. } => StoreError::Stopped.into(),
            SealError::TooLarge { .. } | SealError::TooLargeForServer { .. } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_large", error.to_string())
            }
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
    let mut body = CountedBody { limits: query_limits(), text: Vec::new(), refusal: None };
    let written = serde_json::to_writer(&mut body, view);
    if let Some(refusal) = body.refusal {
        return Err(refusal.into());
    }
    written.map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", format!("cannot write JSON: {error}")))?;
    Ok(respond(StatusCode::OK, body.text))
}

/// The text of an answer, whose memory its query takes while it grows.
struct CountedBody {
    limits: QueryLimits,
    text: Vec<u8>,
    /// Why it is not whole.
    refusal: Option<StoreError>,
}

impl io::Write for CountedBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (length, capacity) = (self.text.len() + bytes.len(), self.text.capacity());
        if length > capacity {
            let wanted = length.max(2 * capacity).max(BODY_BYTES);
            if let Err(refusal) = self.limits.take((wanted - capacity) as u64) {
                self.refusal = Some(refusal);
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.text.reserve_exact(wanted - self.text.len());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

impl From<Unfinished> for ApiError {
    fn from(unfinished: Unfinished) -> Self {
        let (status, code) = match unfinished {
            Unfinished::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "bug"),
            Unfinished::TimedOut => (StatusCode::SERVICE_UNAVAILABLE, "timed_out"),
            Unfinished::NoPlace => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
        };
        ApiError::new(status, code, unfinished.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_store::live::MemoryPool;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::off_the_reactor::{QUERY, Query};

    #[tokio::test]
    async fn an_answer_takes_the_memory_of_its_query_while_it_grows() {
        let pool = Arc::new(MemoryPool::new(1 << 20));
        let query = || Arc::new(Query::new(Arc::new(Semaphore::new(1)), &pool));
        let answer = |view: Vec<String>| QUERY.sync_scope(query(), || json(&view).map(|_| pool.bytes()).map_err(|error| error.status));
        let held = answer(vec!["x".repeat(1_000); 300]).unwrap();
        assert!((300_000..1 << 20).contains(&held), "{held} bytes");
        assert_eq!(pool.bytes(), 0, "the query is over");
        assert_eq!(answer(vec!["x".repeat(1_000); 3_000]), Err(StatusCode::UNPROCESSABLE_ENTITY));
    }
}
