//! Work that may block, for tasks that must not.
//!
//! A server does such work for queries. There are places for a few queries at once, and each has a time limit:
//!
//! ```text
//! task   ── waits for a place ── waits for the work ── answers ── counts the memory of the answer
//! place                       ╞════════════════════════════════════════════════════════════════╡
//! work                        ╞═════════════════════╡ stops soon if the client leaves or the time is over
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longpole_store::live::QueryStop;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::{QUERY_TIME_MAX, QUERY_WAIT_MAX};

tokio::task_local! {
    /// The query that this task answers; none outside of a server.
    pub(crate) static QUERY: Arc<Query>;
}

/// Why such work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Its thread ended by a panic, which has printed itself.
    Panicked,
    /// It took longer than [`QUERY_TIME_MAX`].
    TimedOut,
    /// Others had all places for [`QUERY_WAIT_MAX`].
    NoPlace,
}

/// A query of a server.
#[derive(Debug)]
pub(crate) struct Query {
    places: Arc<Semaphore>,
    /// Its place, and when its time is over.
    place: OnceCell<(OwnedSemaphorePermit, Instant)>,
    stop: QueryStop,
    timed_out: AtomicBool,
    found_no_place: AtomicBool,
}

impl Query {
    /// A query that takes one of these places when it needs one.
    pub(crate) fn new(places: Arc<Semaphore>) -> Query {
        let (timed_out, found_no_place) = (AtomicBool::new(false), AtomicBool::new(false));
        Query { places, place: OnceCell::new(), stop: QueryStop::default(), timed_out, found_no_place }
    }

    /// Ends its work soon.
    pub(crate) fn stop(&self) {
        self.stop.stop();
    }

    /// Whether it took too long.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Whether others had all places.
    pub(crate) fn found_no_place(&self) -> bool {
        self.found_no_place.load(Ordering::Relaxed)
    }

    /// Waits for a place, and returns when the time of the query is over.
    async fn begin(&self) -> Result<Instant, Unfinished> {
        let place = self.place.get_or_try_init(async || {
            // The places are never closed.
            let place = timeout(QUERY_WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await.ok().and_then(Result::ok);
            self.found_no_place.store(place.is_none(), Ordering::Relaxed);
            Ok((place.ok_or(Unfinished::NoPlace)?, Instant::now() + QUERY_TIME_MAX))
        });
        place.await.map(|(_, until)| *until)
    }
}

/// Stops the reading for the query that this task answers.
pub(crate) fn query_stop() -> QueryStop {
    QUERY.try_with(|query| query.stop.clone()).unwrap_or_default()
}

/// Runs work that reads files or computes on a thread that may block.
pub(crate) async fn off_the_reactor<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Unfinished> + Send + 'static,
{
    let Ok(query) = QUERY.try_with(Arc::clone) else {
        return tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Unfinished::Panicked.into()));
    };
    let until = query.begin().await?;
    let held = Arc::clone(&query);
    let work = move || {
        // It has its place until it is over, also when nobody waits for it any more.
        let _held = held;
        work()
    };
    match timeout_at(until, tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or_else(|_| Err(Unfinished::Panicked.into())),
        Err(_) => {
            query.timed_out.store(true, Ordering::Relaxed);
            query.stop();
            Err(Unfinished::TimedOut.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Works for this query until it is stopped.
    async fn ask(query: &Arc<Query>) -> Result<(), Unfinished> {
        QUERY
            .scope(Arc::clone(query), async {
                let stop = query_stop();
                off_the_reactor(move || {
                    while !stop.is_stopped() {
                        thread::yield_now();
                    }
                    Ok(())
                })
                .await
            })
            .await
    }

    #[tokio::test]
    async fn a_query_ends_at_its_limit_and_has_its_place_until_its_work_ended() {
        let places = Arc::new(Semaphore::new(1));
        let query = Arc::new(Query::new(Arc::clone(&places)));
        assert_eq!(ask(&query).await, Err(Unfinished::TimedOut));
        assert!(query.timed_out());
        drop(query);
        // The work sees that it is to stop, and gives the place back.
        let _place = timeout(Duration::from_secs(10), places.acquire()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_query_without_a_place_says_so() {
        let places = Arc::new(Semaphore::new(1));
        let first = Arc::new(Query::new(Arc::clone(&places)));
        let under_way = tokio::spawn({
            let first = Arc::clone(&first);
            async move { ask(&first).await }
        });
        while places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let second = Arc::new(Query::new(Arc::clone(&places)));
        assert_eq!(ask(&second).await, Err(Unfinished::NoPlace));
        assert!(second.found_no_place());
        // Its client leaves.
        first.stop();
        assert_eq!(under_way.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn work_that_is_for_no_query_has_no_limit() {
        assert_eq!(off_the_reactor(|| Ok::<_, Unfinished>(7)).await, Ok(7));
    }
}
