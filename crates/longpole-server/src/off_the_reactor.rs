//! Work that may block, for tasks that must not.
//!
//! A server does such work for queries. There are places for a few queries at once, each has a time limit, and all share their memory:
//!
//! ```text
//! task   ── waits for a place ── waits for the work ── answers ── counts the memory of the answer
//! place                       ╞════════════════════════════════════════════════════════════════╡
//! work                        ╞═════════════════════╡ stops soon if the client leaves or the time is over
//! memory                      ╞═══ what it reads ═══╪═══════════════ the answer ═════════════════╡
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longpole_store::live::{MemoryPool, QueryLimits, QueryMemory};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::{QUERIES_AT_ONCE_MAX, QUERY_TIME_MAX, QUERY_WAIT_MAX};

tokio::task_local! {
    /// The query that this task answers; none outside of a server.
    pub(crate) static QUERY: Arc<Query>;
}

/// Why such work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfinished {
    /// Its thread ended by a panic, which has printed itself.
    #[error("longpole has a bug: it failed to answer this request")]
    Panicked,
    /// It took longer than [`QUERY_TIME_MAX`].
    #[error("the query took longer than {} s: search a shorter time range, a single service or fewer traces", QUERY_TIME_MAX.as_secs())]
    TimedOut,
    /// Others had all places for [`QUERY_WAIT_MAX`].
    #[error("more than {QUERIES_AT_ONCE_MAX} queries at the same time: try again")]
    NoPlace,
}

/// A query of a server.
#[derive(Debug)]
pub(crate) struct Query {
    places: Arc<Semaphore>,
    place: Mutex<Place>,
    limits: QueryLimits,
    timed_out: AtomicBool,
    found_no_place: AtomicBool,
}

/// The place of a query.
#[derive(Debug, Default)]
struct Place {
    permit: Option<OwnedSemaphorePermit>,
    /// When the time of the query is over, once it had a place.
    until: Option<Instant>,
}

impl Query {
    /// A query that takes one of these places when it needs one, and memory of this pool.
    pub(crate) fn new(places: Arc<Semaphore>, memory: &Arc<MemoryPool>) -> Query {
        let limits = QueryLimits { memory: QueryMemory::of(memory), ..QueryLimits::default() };
        let (timed_out, found_no_place) = (AtomicBool::new(false), AtomicBool::new(false));
        Query { places, place: Mutex::default(), limits, timed_out, found_no_place }
    }

    /// Ends its work soon.
    pub(crate) fn stop(&self) {
        self.limits.stop.stop();
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> &QueryMemory {
        &self.limits.memory
    }

    /// Whether it took too long.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Notes that it took too long.
    pub(crate) fn note_timed_out(&self) {
        self.timed_out.store(true, Ordering::Relaxed);
    }

    /// Whether others had all places.
    pub(crate) fn found_no_place(&self) -> bool {
        self.found_no_place.load(Ordering::Relaxed)
    }

    /// Waits for a place, and returns when the time of the query is over.
    pub(crate) async fn begin(&self) -> Result<Instant, Unfinished> {
        let mut place = self.place.lock().await;
        if place.permit.is_none() {
            // The places are never closed.
            let permit = timeout(QUERY_WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await.ok().and_then(Result::ok);
            self.found_no_place.store(permit.is_none(), Ordering::Relaxed);
            place.permit = Some(permit.ok_or(Unfinished::NoPlace)?);
        }
        Ok(*place.until.get_or_insert_with(|| Instant::now() + QUERY_TIME_MAX))
    }

    /// Its place, for work that several queries wait for. It takes another one when it goes on.
    pub(crate) async fn give_place(&self) -> Option<OwnedSemaphorePermit> {
        self.place.lock().await.permit.take()
    }
}

/// What bounds the query that this task answers.
pub(crate) fn query_limits() -> QueryLimits {
    QUERY.try_with(|query| query.limits.clone()).unwrap_or_default()
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
        QUERY.sync_scope(held, work)
    };
    match timeout_at(until, tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or_else(|_| Err(Unfinished::Panicked.into())),
        Err(_) => {
            query.note_timed_out();
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
                let stop = query_limits().stop;
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
        let query = Arc::new(Query::new(Arc::clone(&places), &Arc::new(MemoryPool::new(1))));
        assert_eq!(ask(&query).await, Err(Unfinished::TimedOut));
        assert!(query.timed_out());
        drop(query);
        // The work sees that it is to stop, and gives the place back.
        let _place = timeout(Duration::from_secs(10), places.acquire()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_query_without_a_place_says_so() {
        let places = Arc::new(Semaphore::new(1));
        let first = Arc::new(Query::new(Arc::clone(&places), &Arc::new(MemoryPool::new(1))));
        let under_way = tokio::spawn({
            let first = Arc::clone(&first);
            async move { ask(&first).await }
        });
        while places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let second = Arc::new(Query::new(Arc::clone(&places), &Arc::new(MemoryPool::new(1))));
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
