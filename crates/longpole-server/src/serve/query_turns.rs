//! The turns of queries: a few at once, each with a time limit, none for a client that left.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Router, extract};
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use http::request::Parts;
use longpole_store::live::LiveStore;
use tokio::sync::Semaphore;

use super::metrics::Metrics;
use crate::limits::QUERIES_AT_ONCE_MAX;
use crate::off_the_reactor::{QUERY, Query, query_stop};
use crate::receive::QueryPlace;

/// The store, as the query under way may read it.
pub(super) struct QueriedStore(pub(super) LiveStore);

impl FromRequestParts<LiveStore> for QueriedStore {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, store: &LiveStore) -> Result<Self, Infallible> {
        Ok(QueriedStore(store.for_query(query_stop())))
    }
}

/// What all queries share.
#[derive(Debug, Clone)]
pub(super) struct QueryTurns {
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl QueryTurns {
    pub(super) fn new(metrics: Arc<Metrics>) -> QueryTurns {
        QueryTurns { places: Arc::new(Semaphore::new(QUERIES_AT_ONCE_MAX)), metrics }
    }

    /// These routes, whose queries take turns.
    pub(super) fn of(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), in_turn))
    }
}

async fn in_turn(extract::State(turns): extract::State<QueryTurns>, request: Request, next: Next) -> Response {
    let query = Arc::new(Query::new(turns.places));
    let under_way = UnderWay { query: Arc::clone(&query), metrics: &turns.metrics, has_answer: false };
    let mut response = QUERY.scope(Arc::clone(&query), next.run(request)).await;
    under_way.end();
    if query.found_no_place() && response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    // Its place is free again when the memory of the answer is counted.
    response.extensions_mut().insert(QueryPlace(query));
    response
}

/// A query that is being answered. Nobody waits for one that is dropped.
struct UnderWay<'a> {
    query: Arc<Query>,
    metrics: &'a Metrics,
    has_answer: bool,
}

impl UnderWay<'_> {
    /// It has an answer.
    fn end(mut self) {
        self.has_answer = true;
        if self.query.timed_out() {
            self.metrics.count_timed_out_query();
        } else if self.query.found_no_place() {
            self.metrics.count_refused_query();
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_answer {
            self.query.stop();
            self.metrics.count_cancelled_query();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use axum::body::Body;
    use axum::response::IntoResponse;
    use axum::routing::{any, get};
    use http::header::CONTENT_TYPE;
    use http_body_util::BodyExt;
    use longpole_store::live::{LiveFigures, QueryStop};
    use tower::ServiceExt;

    use super::super::grpc_queries::call;
    use super::super::query_error::QueryError;
    use super::*;
    use crate::api::ApiError;
    use crate::off_the_reactor::off_the_reactor;
    use crate::receive::MemoryAccount;

    /// Works until it is stopped.
    fn work<T>(stop: &QueryStop) -> Result<T, QueryError> {
        while !stop.is_stopped() {
            thread::yield_now();
        }
        Err(QueryError::Bug)
    }

    fn slow_routes(turns: &QueryTurns) -> Router {
        let slow = async || {
            let stop = query_stop();
            match off_the_reactor::<(), QueryError>(move || work(&stop)).await {
                Ok(()) => "answered".into_response(),
                Err(error) => ApiError::from(error).into_response(),
            }
        };
        let call_slow = async |request: Request| {
            let stop = query_stop();
            call(request, move |_| work(&stop)).await
        };
        turns.of(Router::new().route("/slow", get(slow)).route("/slow.Service/Slow", any(call_slow)))
    }

    async fn text_of(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn queries_that_take_too_long_and_those_beyond_the_places_end_with_an_error() {
        let metrics = Arc::new(Metrics::default());
        let turns = QueryTurns::new(Arc::clone(&metrics));
        let ask = || slow_routes(&turns).oneshot(Request::get("/slow").body(Body::empty()).unwrap());
        let all: Vec<_> = (0..QUERIES_AT_ONCE_MAX).map(|_| tokio::spawn(ask())).collect();
        while turns.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let beyond = ask().await.unwrap();
        assert_eq!((beyond.status().as_u16(), &beyond.headers()[RETRY_AFTER]), (503, &HeaderValue::from_static("1")));
        assert!(text_of(beyond).await.contains("more than 8 queries at the same time: try again"));
        for answer in all {
            let answer = answer.await.unwrap().unwrap();
            assert_eq!((answer.status().as_u16(), answer.headers().get(RETRY_AFTER)), (503, None));
            assert!(text_of(answer).await.contains("the query took longer than 0 s"));
        }
        // Its place comes free, although the client never read the answer.
        let grpc = Request::post("/slow.Service/Slow").version(http::Version::HTTP_2).header(CONTENT_TYPE, "application/grpc");
        let answer = slow_routes(&turns).oneshot(grpc.body(Body::from(vec![0; 5])).unwrap()).await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], "4", "{answer:?}");
        assert!(answer.headers()["grpc-message"].to_str().unwrap().starts_with("the query took longer than"), "{answer:?}");
        let shown = metrics.text(LiveFigures::default(), 0, &MemoryAccount::default(), &[]);
        for line in ["queries_timed_out_total 9\n", "queries_refused_total 1\n", "queries_cancelled_total 0\n"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[tokio::test]
    async fn a_query_whose_client_left_stops() {
        let metrics = Arc::new(Metrics::default());
        let turns = QueryTurns::new(Arc::clone(&metrics));
        let asked = tokio::spawn(slow_routes(&turns).oneshot(Request::get("/slow").body(Body::empty()).unwrap()));
        while turns.places.available_permits() == QUERIES_AT_ONCE_MAX {
            tokio::task::yield_now().await;
        }
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
        while turns.places.available_permits() < QUERIES_AT_ONCE_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let shown = metrics.text(LiveFigures::default(), 0, &MemoryAccount::default(), &[]);
        assert!(shown.contains("queries_cancelled_total 1\n") && shown.contains("queries_timed_out_total 0\n"), "{shown}");
    }
}
