//! Quotas for connections of other users. The receiver searches `/proc` to check which of them belong to the run, a few at a time; no user may keep
//! those of the run from a check.
//!
//! | user | |
//! |---|---|
//! | every user | has [`OTHER_USER_CHECKS_MAX`] places for checks of its own. Its other connections wait, and beyond the limit get 503 |
//! | with a refused connection | gives that place back after [`OTHER_USER_PAUSE`](crate::limits::OTHER_USER_PAUSE), so that it does not keep the receiver busy |
//! | of the run | keeps its places as long as the run; only [`OTHER_USERS_MAX`] others have places at a time |
//!
//! The answer to a refused connection takes another kind of place: a client that does not read it holds up no check.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::{
    OTHER_USER_CHECKS_MAX, OTHER_USER_WAITING_MAX, OTHER_USERS_MAX, OTHER_USERS_NAMED_MAX, REFUSALS_ANSWERED_MAX,
    REFUSALS_ANSWERED_PER_USER_MAX, RUN_USERS_MAX,
};
use crate::open_files;

/// The quotas of all other users.
#[derive(Debug)]
pub(super) struct UserQuotas {
    users: Mutex<HashMap<u32, Arc<UserQuota>>>,
    /// Users that the recording names with their refused connections.
    named: Mutex<Vec<u32>>,
    /// Places for refused connections that get an answer.
    answered: Semaphore,
    /// Connections of one user that may wait.
    waiting_max: usize,
}

/// The quota of one user.
#[derive(Debug)]
pub(super) struct UserQuota {
    checked: Semaphore,
    waiting: AtomicUsize,
    answered: Semaphore,
    of_the_run: AtomicBool,
}

/// A connection that waits for a place, or has one.
#[derive(Debug)]
pub(super) struct Queued(pub(super) Arc<UserQuota>);

impl UserQuotas {
    pub(super) fn new() -> Self {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let answered = Semaphore::new(REFUSALS_ANSWERED_MAX);
        UserQuotas { users: Mutex::default(), named: Mutex::default(), answered, waiting_max: waiting_max(&limits) }
    }

    /// Lets a connection of this user wait for a check. An error if too many of the user's own do, or if there are too many users.
    pub(super) fn queue(&self, uid: u32) -> Result<Queued, Option<Arc<UserQuota>>> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.contains_key(&uid) {
            // Users of the run stay, others only with a connection.
            users.retain(|_, user| user.is_of_the_run() || Arc::strong_count(user) > 1);
            if users.values().filter(|user| !user.is_of_the_run()).count() >= OTHER_USERS_MAX {
                return Err(None);
            }
        }
        let user = users.entry(uid).or_insert_with(|| Arc::new(UserQuota::new()));
        let is_queued = user.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < OTHER_USER_CHECKS_MAX + self.waiting_max).then_some(waiting + 1)
        });
        if is_queued.is_ok() { Ok(Queued(Arc::clone(user))) } else { Err(Some(Arc::clone(user))) }
    }

    /// Notes that a process of this user belongs to the run.
    pub(super) fn note_of_the_run(&self, user: &UserQuota) {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.values().filter(|user| user.is_of_the_run()).count() < RUN_USERS_MAX {
            user.of_the_run.store(true, Ordering::Relaxed);
        }
    }

    /// The loss of a connection of this user that does not belong to the run. One person may have thousands of users (`subuid`), which
    /// must not crowd out other losses.
    pub(super) fn refusal(&self, uid: u32) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.contains(&uid) && named.len() < OTHER_USERS_NAMED_MAX {
            named.push(uid);
        }
        if named.contains(&uid) {
            format!("connections of another user (uid {uid}), from processes that do not belong to the run")
        } else {
            "connections of more users, from processes that do not belong to the run".to_owned()
        }
    }

    /// Whether there is a place for an answer now.
    pub(super) fn may_answer(&self, user: Option<&UserQuota>) -> bool {
        self.place_for_answer(user).is_some()
    }

    /// A place for an answer, if there is one: one of all, and one of this user's own.
    pub(super) fn place_for_answer<'a>(
        &'a self,
        user: Option<&'a UserQuota>,
    ) -> Option<(SemaphorePermit<'a>, Option<SemaphorePermit<'a>>)> {
        let own = match user {
            Some(user) => Some(user.answered.try_acquire().ok()?),
            None => None,
        };
        Some((self.answered.try_acquire().ok()?, own))
    }
}

/// How many connections of one user may wait under these limits of the process (`/proc/self/limits`): each holds a descriptor, and the run
/// needs descriptors too.
fn waiting_max(limits: &str) -> usize {
    open_files::max(limits).map_or(OTHER_USER_WAITING_MAX, |files| (files / 32).clamp(1, OTHER_USER_WAITING_MAX))
}

impl UserQuota {
    fn new() -> Self {
        UserQuota {
            checked: Semaphore::new(OTHER_USER_CHECKS_MAX),
            waiting: AtomicUsize::new(0),
            answered: Semaphore::new(REFUSALS_ANSWERED_PER_USER_MAX),
            of_the_run: AtomicBool::new(false),
        }
    }

    /// Whether one of its processes belongs to the run.
    pub(super) fn is_of_the_run(&self) -> bool {
        self.of_the_run.load(Ordering::Relaxed)
    }
}

impl Queued {
    /// Waits for a place.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.checked.acquire().await.ok()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_few_files_may_be_open_few_connections_wait() {
        for (files, expected) in [("34", 1), ("256", 8), ("1024", OTHER_USER_WAITING_MAX), ("unlimited", OTHER_USER_WAITING_MAX)] {
            assert_eq!(
                waiting_max(&format!("Max processes 9 9\nMax open files            {files}    4096    files\n")),
                expected,
                "{files}"
            );
        }
    }

    #[test]
    fn many_users_take_no_place_of_one_of_the_run() {
        let quotas = UserQuotas::new();
        let run = quotas.queue(1).unwrap();
        quotas.note_of_the_run(&run.0);
        drop(run);
        let held: Vec<_> = (0..10_000).filter_map(|i| quotas.queue(2 + i % 1000).ok()).collect();
        assert!(held.len() >= OTHER_USERS_MAX && held.len() <= OTHER_USERS_MAX * (OTHER_USER_CHECKS_MAX + OTHER_USER_WAITING_MAX));
        assert!(quotas.queue(2000).is_err());
        let run: Vec<_> = (0..quotas.waiting_max).map_while(|_| quotas.queue(1).ok()).collect();
        assert_eq!(run.len(), quotas.waiting_max);
        drop(held);
        assert!(quotas.queue(2000).is_ok());
        assert_eq!(quotas.users.lock().unwrap().len(), 2, "who has no connection is forgotten");
    }

    #[test]
    fn few_users_are_named() {
        let quotas = UserQuotas::new();
        let said: std::collections::HashSet<String> = (0..1000).map(|uid| quotas.refusal(uid)).collect();
        assert_eq!(said.len(), OTHER_USERS_NAMED_MAX + 1);
        assert_eq!(quotas.refusal(0), "connections of another user (uid 0), from processes that do not belong to the run");
    }
}
