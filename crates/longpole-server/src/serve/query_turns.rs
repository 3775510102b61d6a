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
use hyper::body::Body;
use longpole_store::live::{LiveStore, MemoryPool};
use tokio::sync::Semaphore;

use super::metrics::Metrics;
use crate::limits::{QUERIES_AT_ONCE_MAX, RETRY_AFTER_SECS_MAX};
use crate::off_the_reactor::{QUERY, Query, query_limits};
use crate::receive::{MemoryAccount, QueryPlace};

/// The store, as the query under way may read it.
pub(super) struct QueriedStore(pub(super) LiveStore);

impl FromRequestParts<LiveStore> for QueriedStore {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, store: &LiveStore) -> Result<Self, Infallible> {
        Ok(QueriedStore(store.for_query(query_limits())))
    }
}

/// What all queries share.
#[derive(Debug, Clone)]
pub(super) struct QueryTurns {
    places: Arc<Semaphore>,
    memory: Arc<MemoryPool>,
    metrics: Arc<Metrics>,
}

impl QueryTurns {
    pub(super) fn new(metrics: Arc<Metrics>, memory: &MemoryAccount) -> QueryTurns {
        QueryTurns { places: Arc::new(Semaphore::new(QUERIES_AT_ONCE_MAX)), memory: Arc::clone(memory.queries()), metrics }
    }

    /// These routes, whose queries take turns.
    pub(super) fn of(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), in_turn))
    }
}

async fn in_turn(extract::State(turns): extract::State<QueryTurns>, request: Request, next: Next) -> Response {
    let query = Arc::new(Query::new(turns.places, &turns.memory));
    let under_way = UnderWay { query: Arc::clone(&query), metrics: &turns.metrics, has_answer: false };
    let mut response = QUERY.scope(Arc::clone(&query), next.run(request)).await;
    under_way.end();
    // One that took too long will take as long again.
    if response.status() == StatusCode::SERVICE_UNAVAILABLE && !query.timed_out() {
        // Those without memory do not all come at once.
        let secs = if query.found_no_place() { 1 } else { turns.memory.refused() % RETRY_AFTER_SECS_MAX + 1 };
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    // All that it read is gone; the bytes of the answer stay until they count as such.
    query.memory().release_to(response.body().size_hint().lower());
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

    /// Works until it is stopped.
    fn work<T>(stop: &QueryStop) -> Result<T, QueryError> {
        while !stop.is_stopped() {
            thread::yield_now();
        }
        Err(QueryError::NotFound(String::new()))
    }

    fn slow_routes(turns: &QueryTurns) -> Router {
        let slow = async || {
            let stop = query_limits().stop;
            match off_the_reactor::<(), QueryError>(move || work(&stop)).await {
                Ok(()) => "answered".into_response(),
                Err(error) => ApiError::from(error).into_response(),
            }
        };
        let call_slow = async |request: Request| {
            let stop = query_limits().stop;
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
        let turns = QueryTurns::new(Arc::clone(&metrics), &MemoryAccount::default());
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
    async fn a_query_that_takes_more_memory_than_there_is_says_so_and_gives_its_own_back() {
        let (metrics, memory) = (Arc::new(Metrics::default()), MemoryAccount::limited(64 << 20));
        let turns = QueryTurns::new(Arc::clone(&metrics), &memory);
        let ask = async |bytes: u64| {
            let take = async move || {
                let limits = query_limits();
                let taken = off_the_reactor::<(), QueryError>(move || Ok(limits.take(bytes)?)).await;
                taken.map_or_else(|error| ApiError::from(error).into_response(), |()| "answered".into_response())
            };
            turns.of(Router::new().route("/", get(take))).oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap()
        };
        let answered = ask(20 << 20).await;
        assert_eq!((answered.status().as_u16(), memory.queries().bytes()), (200, "answered".len() as u64));
        drop(answered);
        assert_eq!(memory.queries().bytes(), 0);
        let refused = ask(40 << 20).await;
        assert_eq!((refused.status().as_u16(), refused.headers().get(RETRY_AFTER)), (422, None));
        let text = text_of(refused).await;
        assert!(
            text.contains("too_large") && text.contains("takes more than 40 MiB") && text.contains("may take 32 MiB together"),
            "{text}"
        );
        let shown = metrics.text(LiveFigures::default(), 0, &memory, &[]);
        assert!(shown.contains("queries_refused_for_memory_total 1\n"), "{shown}");
        assert!(shown.contains("query_memory_limit_bytes 33554432\n"), "{shown}");
    }

    #[tokio::test]
    async fn a_query_whose_client_left_stops() {
        let metrics = Arc::new(Metrics::default());
        let turns = QueryTurns::new(Arc::clone(&metrics), &MemoryAccount::default());
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
