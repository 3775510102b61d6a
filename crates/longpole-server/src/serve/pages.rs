//! The page of a server: a list of traces, and each trace shown as a recording is.
//!
//! | | |
//! |---|---|
//! | `/longpole/v1/services` | services and their operations |
//! | `/longpole/v1/traces` | search: `service`, `operation`, `tags`, `minDuration`, `maxDuration`, `start`, `end`, `limit`, as Jaeger spells them |
//! | `/api/recordings/{trace}/…` | views of a trace, as of a recording |
//! | `/trace/{trace}` | its page |

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use longpole_recording::view::{ServicesView, TracesView};
use longpole_store::live::LiveStore;
use serde::Serialize;
use serde_json::json;

use super::jaeger::{filter_of, json_header};
use super::query_error::{QueryError, off_the_reactor};
use crate::api::{self, ReportCache};
use crate::query_parameters::{Parameters, trace_id};
use crate::{auth, server};

/// Traces of an answer without `limit`, and at most.
const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 5_000;

/// The routes of the page, and of the API that it reads.
pub(super) fn routes(live: &LiveStore) -> Router {
    let own = Router::new()
        .route("/longpole/v1/services", get(services))
        .route("/longpole/v1/traces", get(traces))
        .route("/", get(async || Redirect::to("/search")))
        .route("/trace/{id}", get(page_of_trace))
        .with_state(live.clone());
    api::routes(Arc::new(ReportCache::of_traces(live.clone()))).merge(own).fallback(file)
}

/// A file of the page.
async fn file(request: Request) -> Response {
    auth::with_policy(server::other(request).await)
}

/// Where the page has a trace. Jaeger's links may lack the zeros of an id.
async fn page_of_trace(Path(id): Path<String>) -> Response {
    match trace_id(&id) {
        Some(id) => Redirect::to(&format!("/r/{id}")).into_response(),
        None => Shaped(Err::<(), _>(QueryError::from(format!("{id:?} is no trace id")))).into_response(),
    }
}

/// A view as JSON, or an error in the shape of the other errors of the page.
struct Shaped<T>(Result<T, QueryError>);

impl<T: Serialize> IntoResponse for Shaped<T> {
    fn into_response(self) -> Response {
        let body = self.0.and_then(|view| serde_json::to_vec(&view).map_err(|_| QueryError::Bug));
        match body {
            Ok(body) => (json_header(), body).into_response(),
            Err(error) => {
                let code = if error.status().is_client_error() { "bad_request" } else { "unreadable" };
                let body = json!({ "error": { "code": code, "message": error.to_string() } });
                (error.status(), json_header(), body.to_string()).into_response()
            }
        }
    }
}

async fn services(State(store): State<LiveStore>) -> Shaped<ServicesView> {
    Shaped(off_the_reactor(move || Ok(ServicesView::new(store.operations()?))).await)
}

async fn traces(State(store): State<LiveStore>, RawQuery(query): RawQuery) -> Shaped<TracesView> {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let limit = parameters.number("limit")?.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = store.find(&filter_of(&parameters)?, limit.saturating_add(1))?;
        Ok(TracesView::new(&found, limit))
    };
    Shaped(off_the_reactor(found).await)
}
