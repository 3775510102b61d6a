//! The memory that queries take together.
//!
//! ```text
//! limit │ query ▓▓▓▓▓▓▓▓▓▓ │ query ▓▓ │ report that is kept ▒▒▒▒▒ │ free
//!          │ reads on: waits for the free part, then for the kept one, then for the other queries
//! ```
//!
//! What is kept only to answer the next query sooner goes first. A query that finds no memory waits; if all that hold some wait, none would
//! ever go on, so the last of them fails at once.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::query_stop::QueryStop;

/// How long a query waits for memory. Most queries end sooner and give theirs back.
const WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });

/// How often it checks meanwhile whether it was stopped.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Why there is no memory for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoMemory {
    /// Others have it.
    Short,
    /// There is never so much.
    Never { needed: u64, limit: u64 },
    /// The query was stopped while it waited.
    Stopped,
}

/// Gives up what is kept only to be faster.
type Reclaim = Box<dyn Fn() + Send + Sync>;

/// The memory that all queries of a server may take.
pub struct MemoryPool {
    limit: u64,
    taken: Mutex<Taken>,
    freed: Condvar,
    reclaim: OnceLock<Reclaim>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// Queries and kept reports that have some of it, and those of them that wait for more.
    holders: usize,
    waiting: usize,
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryPool").field("limit", &self.limit).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl MemoryPool {
    /// A pool of this number of bytes.
    pub fn new(limit: u64) -> MemoryPool {
        MemoryPool { limit, taken: Mutex::default(), freed: Condvar::new(), reclaim: OnceLock::new(), refused: AtomicU64::new(0) }
    }

    /// What is called when memory is short: it gives up what is kept only to be faster. The first one counts.
    pub fn on_shortage(&self, reclaim: impl Fn() + Send + Sync + 'static) {
        let _ = self.reclaim.set(Box::new(reclaim));
    }

    /// Bytes that it has.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are taken.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// How often a query got no memory.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` for somebody who has `own` of them.
    fn take(&self, own: u64, bytes: u64, stop: &QueryStop) -> Result<(), NoMemory> {
        let needed = own.saturating_add(bytes);
        if needed > self.limit {
            return Err(NoMemory::Never { needed, limit: self.limit });
        }
        let fits = |taken: &Taken| self.limit - taken.bytes >= bytes;
        let give = |mut taken: MutexGuard<'_, Taken>| {
            taken.bytes += bytes;
            taken.holders += usize::from(own == 0 && bytes > 0);
        };
        let taken = self.lock();
        if fits(&taken) {
            give(taken);
            return Ok(());
        }
        drop(taken);
        if let Some(reclaim) = self.reclaim.get() {
            reclaim();
        }
        let until = Instant::now() + WAIT_MAX;
        let mut taken = self.lock();
        let is_holder = usize::from(own > 0);
        taken.waiting += is_holder;
        let waited = loop {
            if fits(&taken) {
                break Ok(());
            }
            if stop.is_stopped() {
                break Err(NoMemory::Stopped);
            }
            if Instant::now() >= until || is_holder > 0 && taken.waiting == taken.holders {
                break Err(NoMemory::Short);
            }
            taken = self.freed.wait_timeout(taken, LOOK_PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        };
        taken.waiting -= is_holder;
        if waited.is_ok() {
            give(taken);
        }
        waited
    }

    /// Takes `bytes` back of somebody who keeps `rest`.
    fn give_back(&self, bytes: u64, rest: u64) {
        if bytes > 0 {
            let mut taken = self.lock();
            taken.bytes = taken.bytes.saturating_sub(bytes);
            taken.holders = taken.holders.saturating_sub(usize::from(rest == 0));
            drop(taken);
            self.freed.notify_all();
        }
    }
}

/// The memory of one query, given back with the last clone. One thread at a time works for a query.
#[derive(Debug, Clone, Default)]
pub struct QueryMemory(Arc<Lease>);

#[derive(Debug, Default)]
struct Lease {
    /// `None` for a query without a limit.
    pool: Option<Arc<MemoryPool>>,
    used: AtomicU64,
    /// What it will use, about, taken before it begins: two that read in turns would wait for each other halfway.
    reserved: AtomicU64,
}

impl Lease {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What it has of the pool.
    fn taken(&self) -> u64 {
        self.used().max(self.reserved.load(Ordering::Relaxed))
    }

    /// Changes what it uses and reserves, to less than before, and gives back the rest.
    fn shrink(&self, used: u64, reserved: u64) {
        let before = self.taken();
        self.used.store(used, Ordering::Relaxed);
        self.reserved.store(reserved, Ordering::Relaxed);
        if let Some(pool) = &self.pool {
            pool.give_back(before.saturating_sub(self.taken()), self.taken());
        }
    }
}

impl QueryMemory {
    /// Memory of this pool; none of it at first.
    pub fn of(pool: &Arc<MemoryPool>) -> QueryMemory {
        QueryMemory(Arc::new(Lease { pool: Some(Arc::clone(pool)), used: AtomicU64::new(0), reserved: AtomicU64::new(0) }))
    }

    /// Whether others take of the same memory.
    pub fn is_bounded(&self) -> bool {
        self.0.pool.is_some()
    }

    /// Bytes that it uses.
    pub fn bytes(&self) -> u64 {
        self.0.used()
    }

    pub(crate) fn take(&self, bytes: u64, stop: &QueryStop) -> Result<(), NoMemory> {
        let used = self.0.used().saturating_add(bytes);
        self.grow_to(used, stop)?;
        self.0.used.store(used, Ordering::Relaxed);
        Ok(())
    }

    /// Takes so much that [`take`](Self::take) finds these bytes, or all that there is if that is less.
    pub(crate) fn reserve(&self, bytes: u64, stop: &QueryStop) -> Result<(), NoMemory> {
        let Some(pool) = &self.0.pool else { return Ok(()) };
        let reserved = self.0.used().saturating_add(bytes).min(pool.limit);
        self.grow_to(reserved, stop)?;
        self.0.reserved.fetch_max(reserved, Ordering::Relaxed);
        Ok(())
    }

    fn grow_to(&self, bytes: u64, stop: &QueryStop) -> Result<(), NoMemory> {
        let (Some(pool), taken) = (&self.0.pool, self.0.taken()) else { return Ok(()) };
        if bytes <= taken {
            return Ok(());
        }
        pool.take(taken, bytes - taken, stop).inspect_err(|none| {
            pool.refused.fetch_add(u64::from(*none != NoMemory::Stopped), Ordering::Relaxed);
        })
    }

    pub(crate) fn hold(&self, bytes: u64, stop: &QueryStop) -> Result<Held, NoMemory> {
        self.take(bytes, stop)?;
        Ok(Held { memory: self.clone(), bytes })
    }

    /// Gives back what it uses beyond this number of bytes, and all that it reserved.
    pub fn release_to(&self, bytes: u64) {
        self.0.shrink(self.0.used().min(bytes), 0);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shrink(0, 0);
    }
}

/// Memory that is held for a moment.
#[derive(Debug)]
pub struct Held {
    memory: QueryMemory,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let lease = &self.memory.0;
        lease.shrink(lease.used().saturating_sub(self.bytes), lease.reserved.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn pool() -> Arc<MemoryPool> {
        Arc::new(MemoryPool::new(100))
    }

    #[test]
    fn memory_is_there_once_and_comes_back() {
        let (pool, stop) = (pool(), QueryStop::default());
        let (first, second) = (QueryMemory::of(&pool), QueryMemory::of(&pool));
        assert_eq!(first.take(101, &stop), Err(NoMemory::Never { needed: 101, limit: 100 }));
        first.take(40, &stop).unwrap();
        let held = first.hold(30, &stop).unwrap();
        assert_eq!((first.bytes(), pool.bytes()), (70, 70));
        assert_eq!(second.take(40, &stop), Err(NoMemory::Short));
        drop(held);
        second.take(40, &stop).unwrap();
        first.release_to(10);
        assert_eq!(pool.bytes(), 50);
        drop((first, second));
        assert_eq!((pool.bytes(), pool.lock().holders, pool.refused()), (0, 0, 2));
    }

    #[test]
    fn what_is_reserved_is_there_later() {
        let (pool, stop) = (pool(), QueryStop::default());
        let (first, second) = (QueryMemory::of(&pool), QueryMemory::of(&pool));
        first.reserve(70, &stop).unwrap();
        assert_eq!((first.bytes(), pool.bytes()), (0, 70));
        assert_eq!(second.reserve(40, &stop), Err(NoMemory::Short));
        first.take(50, &stop).unwrap();
        drop(first.hold(30, &stop).unwrap());
        assert_eq!((first.bytes(), pool.bytes()), (50, 70));
        first.release_to(50);
        second.reserve(40, &stop).unwrap();
        assert_eq!(pool.bytes(), 90);
        // More than there is, so what it really takes decides.
        drop(first);
        second.reserve(1_000, &stop).unwrap();
        assert_eq!((pool.bytes(), pool.lock().holders), (100, 1));
        drop(second);
        assert_eq!((pool.bytes(), pool.lock().holders), (0, 0));
    }

    #[test]
    fn one_that_waits_gets_what_another_gives_back() {
        let (pool, stop) = (pool(), QueryStop::default());
        let (first, second) = (QueryMemory::of(&pool), QueryMemory::of(&pool));
        first.take(80, &stop).unwrap();
        second.take(1, &stop).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| second.take(60, &stop));
            while pool.lock().waiting == 0 {
                thread::yield_now();
            }
            drop(first);
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn two_that_wait_for_each_other_do_not_both_wait() {
        let (pool, stop) = (pool(), QueryStop::default());
        let (first, second) = (QueryMemory::of(&pool), QueryMemory::of(&pool));
        first.take(45, &stop).unwrap();
        second.take(45, &stop).unwrap();
        let begun = Instant::now();
        thread::scope(|scope| {
            let waits = scope.spawn(|| first.take(20, &stop));
            while pool.lock().waiting == 0 {
                thread::yield_now();
            }
            assert_eq!(second.take(20, &stop), Err(NoMemory::Short));
            drop(second);
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert!(begun.elapsed() < WAIT_MAX);
    }

    #[test]
    fn what_is_kept_to_be_faster_goes_first_and_a_stop_ends_the_wait() {
        let (pool, stop) = (pool(), QueryStop::default());
        let kept = Arc::new(Mutex::new(Some(QueryMemory::of(&pool))));
        kept.lock().unwrap().as_ref().unwrap().take(90, &stop).unwrap();
        pool.on_shortage({
            let kept = Arc::clone(&kept);
            move || drop(kept.lock().unwrap().take())
        });
        let query = QueryMemory::of(&pool);
        query.take(60, &stop).unwrap();
        assert_eq!(pool.bytes(), 60);
        stop.stop();
        assert_eq!(QueryMemory::of(&pool).take(60, &stop), Err(NoMemory::Stopped));
        assert_eq!(QueryMemory::default().take(u64::MAX, &stop), Ok(()));
    }
}
