//! The memory that requests and answers take, in one account, with what the store holds.
//!
//! ```text
//! bodies    from their first byte until the log has them          256 MiB   beyond it: wait 4 s, then 429
//! answers   from when they are made until their clients read them 512 MiB   beyond it: wait 10 s, then 503
//! store     spans that stand in no segment yet
//! all       of these                                              limit     beyond 80%: 429 at once
//! queries   what they read, and reports that are kept             limit     beyond it: wait 10 s, then 503; 422 if it is never enough
//! ```
//!
//! Queries have a limit of their own: they never make the server refuse spans.
//!
//! A client that holds memory and stalls loses it to others in need: after [`STALL_IN_NEED_MAX`], the longest stalled first. Then bodies lose it that
//! come slowly for what they hold: less than a sixteenth of it in that time, the slowest first. Else four clients that trickle the ends of large
//! bodies keep everybody out.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longpole_store::live::MemoryPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::limits::{
    ANSWERS_IN_MEMORY_BYTES_MAX, BODIES_IN_MEMORY_BYTES_MAX, MEMORY_BYTES_MAX, MEMORY_SHORT_PERCENT, QUERIES_IN_MEMORY_BYTES_MAX,
    RETRY_AFTER_SECS_MAX, STALL_IN_NEED_MAX,
};

/// Bytes that one permit stands for.
const PERMIT_BYTES: usize = 4 << 10;

/// What a server holds in memory.
#[derive(Debug)]
pub struct MemoryAccount {
    /// Bodies that are being read or wait to be kept.
    pub(super) bodies: Arc<MemoryShare>,
    /// Answers to queries that their clients have not read.
    pub(super) answers: Arc<MemoryShare>,
    /// What the store has.
    store: AtomicU64,
    limit: u64,
    /// What queries read, and reports that are kept for the next ones.
    queries: Arc<MemoryPool>,
    refused: AtomicU64,
}

impl Default for MemoryAccount {
    fn default() -> Self {
        MemoryAccount::limited(u64::MAX)
    }
}

impl MemoryAccount {
    /// An account of at most this many bytes: half of them for queries, and half for all else.
    pub(crate) fn limited(bytes: u64) -> Self {
        let limit = (bytes / 2).min(MEMORY_BYTES_MAX);
        let queries = Arc::new(MemoryPool::new((bytes / 2).min(QUERIES_IN_MEMORY_BYTES_MAX)));
        let share = |most: usize, part: u64| MemoryShare::new(most.min(usize::try_from(limit / part).unwrap_or(most)));
        let bodies = Arc::new(MemoryShare { grows: true, ..share(BODIES_IN_MEMORY_BYTES_MAX, 4) });
        let answers = Arc::new(share(ANSWERS_IN_MEMORY_BYTES_MAX, 2));
        MemoryAccount { bodies, answers, store: AtomicU64::new(0), limit, queries, refused: AtomicU64::new(0) }
    }

    /// Notes what the store holds.
    pub(crate) fn note_store(&self, bytes: u64) {
        self.store.store(bytes, Ordering::Relaxed);
    }

    /// The memory of queries.
    pub(crate) fn queries(&self) -> &Arc<MemoryPool> {
        &self.queries
    }

    /// Bytes of each share by its name.
    pub(crate) fn shares(&self) -> [(&'static str, u64); 3] {
        let store = self.store.load(Ordering::Relaxed);
        [("bodies", self.bodies.held_bytes()), ("answers", self.answers.held_bytes()), ("store", store)]
    }

    /// Bytes of all shares together that it allows.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Requests that it refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether no further request should come.
    pub(crate) fn is_short(&self) -> bool {
        let held = self.shares().iter().map(|(_, bytes)| bytes).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        held > self.limit / 100 * MEMORY_SHORT_PERCENT
    }

    /// Counts a request that is refused, and returns the seconds after which it may come again: not all of them at once.
    pub(super) fn retry_after_secs(&self) -> u64 {
        self.refused.fetch_add(1, Ordering::Relaxed) % RETRY_AFTER_SECS_MAX + 1
    }
}

/// A part of the memory that several hold together.
#[derive(Debug)]
pub(super) struct MemoryShare {
    limit: usize,
    permits: Arc<Semaphore>,
    holders: Mutex<HashMap<u64, Holder>>,
    next: AtomicU64,
    /// Whether what it holds comes, and should come fast: that of answers is there from the beginning.
    grows: bool,
}

/// Somebody who holds memory.
#[derive(Debug)]
struct Holder {
    /// When it went on last; `None` while it waits for memory, which is not its client's fault.
    progress: Option<Instant>,
    held_permits: usize,
    pace: Pace,
    cut: Arc<Notify>,
}

/// How fast a body comes for what it holds, in turns of [`STALL_IN_NEED_MAX`].
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// When this turn began, and what it held then.
    since: Instant,
    from_permits: usize,
    /// Share of what it held at the end of the turn before that came in it.
    before: Option<f64>,
}

/// A body that comes slower than this share of what it holds, in one turn, is slow.
const SLOW_SHARE: f64 = 1.0 / 16.0;

impl Pace {
    fn new(from_permits: usize, now: Instant) -> Pace {
        Pace { since: now, from_permits, before: None }
    }

    /// The share of this turn, if it is over.
    fn of_turn(&self, held_permits: usize, now: Instant) -> Option<f64> {
        let turns = now.saturating_duration_since(self.since).as_secs_f64() / STALL_IN_NEED_MAX.as_secs_f64();
        let came = held_permits.saturating_sub(self.from_permits) as f64;
        (turns >= 1.0).then(|| came / turns / held_permits.max(1) as f64)
    }

    /// Notes what it holds now.
    fn note(&mut self, held_permits: usize, now: Instant) {
        if let Some(share) = self.of_turn(held_permits, now) {
            *self = Pace { before: Some(share), ..Pace::new(held_permits, now) };
        }
    }

    /// The share that it came by last, if that is slow.
    fn slow_share(&self, held_permits: usize, now: Instant) -> Option<f64> {
        self.of_turn(held_permits, now).or(self.before).filter(|share| *share < SLOW_SHARE)
    }
}

/// All memory is taken, and stayed so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoMemory;

impl MemoryShare {
    fn new(limit: usize) -> Self {
        let permits = Arc::new(Semaphore::new(limit / PERMIT_BYTES));
        MemoryShare { limit, permits, holders: Mutex::default(), next: AtomicU64::new(0), grows: false }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that it allows.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    fn held_bytes(&self) -> u64 {
        ((self.limit / PERMIT_BYTES - self.permits.available_permits()) * PERMIT_BYTES) as u64
    }

    /// Room for this number of bytes, if there is some at once.
    pub(super) fn room_now(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).ok()?;
        let room = Arc::clone(&self.permits).try_acquire_many_owned(permits).ok();
        if room.is_none() {
            self.cut_stalled(permits as usize);
        }
        room
    }

    /// Cuts those who have stalled longest, and then those who are slowest, until `wanted` permits come free.
    fn cut_stalled(&self, wanted: usize) {
        let mut holders = self.lock();
        let now = Instant::now();
        let stalled = |holder: &Holder| holder.progress.filter(|at| now.saturating_duration_since(*at) > STALL_IN_NEED_MAX);
        let mut stalling: Vec<(Instant, u64)> = holders.iter().filter_map(|(id, holder)| Some((stalled(holder)?, *id))).collect();
        stalling.sort_unstable();
        let slow = |holder: &Holder| holder.pace.slow_share(holder.held_permits, now).filter(|_| self.grows && holder.progress.is_some());
        let mut slowest: Vec<(f64, u64)> = holders.iter().filter_map(|(id, holder)| Some((slow(holder)?, *id))).collect();
        slowest.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut free = 0;
        for id in stalling.into_iter().map(|(_, id)| id).chain(slowest.into_iter().map(|(_, id)| id)) {
            if free >= wanted {
                return;
            }
            if let Some(holder) = holders.remove(&id) {
                free += holder.held_permits;
                holder.cut.notify_one();
            }
        }
    }

    /// Cuts all who have stalled for this long.
    pub(super) fn cut_stalled_for(&self, time: Duration) {
        self.lock().retain(|_, holder| {
            let has_stalled = holder.progress.is_some_and(|progress| progress.elapsed() > time);
            if has_stalled {
                holder.cut.notify_one();
            }
            !has_stalled
        });
    }
}

/// What one holds of a share. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    share: Arc<MemoryShare>,
    permit: Option<OwnedSemaphorePermit>,
    /// Ends who holds it.
    pub(super) cut: Arc<Notify>,
    /// Its place among the holders, once it holds something.
    id: Option<u64>,
}

impl Charge {
    pub(super) fn new(share: &Arc<MemoryShare>, cut: Arc<Notify>) -> Self {
        Charge { share: Arc::clone(share), permit: None, cut, id: None }
    }

    fn held(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Takes memory until it holds this many bytes, for which it waits up to `wait_max`, and says whether that had to be waited for.
    pub(super) async fn up_to(&mut self, bytes: usize, wait_max: Duration) -> Result<bool, NoMemory> {
        let missing = bytes.div_ceil(PERMIT_BYTES).saturating_sub(self.held());
        let mut waited = false;
        // A body or an answer never has 2³² permits.
        let at_once = Arc::clone(&self.share.permits).try_acquire_many_owned(missing as u32).ok();
        let more = match at_once {
            Some(more) => more,
            None => {
                waited = true;
                self.wait_for(missing, wait_max).await?
            }
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        let (held_permits, now) = (self.held(), Instant::now());
        let mut holders = self.share.lock();
        match self.id {
            Some(id) => {
                if let Some(holder) = holders.get_mut(&id) {
                    holder.held_permits = held_permits;
                    // The time in which it waited for memory does not count.
                    if waited { holder.pace = Pace::new(held_permits, now) } else { holder.pace.note(held_permits, now) }
                }
            }
            None => {
                let id = self.share.next.fetch_add(1, Ordering::Relaxed);
                self.id = Some(id);
                holders.insert(
                    id,
                    Holder { progress: Some(now), held_permits, pace: Pace::new(held_permits, now), cut: Arc::clone(&self.cut) },
                );
            }
        }
        Ok(waited)
    }

    /// Waits until others give memory back; those that stall meanwhile are made to.
    async fn wait_for(&self, permits: usize, wait_max: Duration) -> Result<OwnedSemaphorePermit, NoMemory> {
        self.set_progress(None);
        let until = Instant::now() + wait_max;
        let mut room = pin!(Arc::clone(&self.share.permits).acquire_many_owned(permits as u32));
        loop {
            self.share.cut_stalled(permits);
            let look_again = Instant::now() + STALL_IN_NEED_MAX / 8;
            match timeout_at(look_again.min(until), room.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| NoMemory),
                Err(_) if Instant::now() >= until => return Err(NoMemory),
                Err(_) => {}
            }
        }
    }

    /// Notes that it goes on, or, with `None`, that it waits for others.
    pub(super) fn set_progress(&self, progress: Option<Instant>) {
        let mut holders = self.share.lock();
        if let Some(holder) = self.id.and_then(|id| holders.get_mut(&id)) {
            holder.progress = progress;
        }
    }

    /// The memory alone, for what cannot stall any more.
    pub(super) fn into_memory(mut self) -> Option<OwnedSemaphorePermit> {
        self.permit.take()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.share.lock().remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Four bodies of almost all the memory, whose last bytes trickle, and one that comes fast.
    #[tokio::test]
    async fn bodies_that_trickle_lose_their_memory_to_one_that_waits() {
        let share = Arc::new(MemoryShare { grows: true, ..MemoryShare::new(200 * PERMIT_BYTES) });
        let charge = || Charge::new(&share, Arc::default());
        let mut slow = [charge(), charge(), charge(), charge()];
        for slow in &mut slow {
            slow.up_to(40 * PERMIT_BYTES, Duration::ZERO).await.unwrap();
        }
        let mut fast = charge();
        for step in 1..=12 {
            sleep(STALL_IN_NEED_MAX / 4).await;
            // Each makes its progress all the time.
            for slow in &mut slow {
                slow.up_to((40 + step / 12) * PERMIT_BYTES, Duration::ZERO).await.unwrap();
                slow.set_progress(Some(Instant::now()));
            }
            fast.up_to(2 * step * PERMIT_BYTES, Duration::ZERO).await.unwrap();
            fast.set_progress(Some(Instant::now()));
        }
        let mut waits = charge();
        let cuts = async {
            let cut = |at: usize| Arc::clone(&slow[at].cut);
            let (a, b, c, d) = (cut(0), cut(1), cut(2), cut(3));
            tokio::select! { () = a.notified() => 0, () = b.notified() => 1, () = c.notified() => 2, () = d.notified() => 3 }
        };
        let (waited, cut) = tokio::join!(waits.up_to(20 * PERMIT_BYTES, STALL_IN_NEED_MAX / 2), async {
            let cut = cuts.await;
            (cut, share.lock().len())
        });
        // A body that is cut gives its memory back a moment later; here it does not.
        assert_eq!((waited, cut.1), (Err(NoMemory), 4), "one of the slow ones lost its place among the holders");
        assert!(share.lock().contains_key(&fast.id.unwrap()));
    }
}
