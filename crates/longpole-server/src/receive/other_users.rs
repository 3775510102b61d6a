//! Places for connections of other users. Which of them are of the run is found by reading through `/proc`, so this is done for a few at
//! a time; and none of them may keep those of the run from being looked into.
//!
//! | a user | |
//! |---|---|
//! | has a few places to be looked into, which no other user takes | the others of its connections wait, and beyond that get 503 |
//! | whose connection was refused | gives that place back a moment later, so that it does not keep us busy |
//! | of the run | has its places as long as the run; of others there are some at a time |
//!
//! The answer to a refused connection is not part of that: who does not read it holds a place of another kind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::{
    OTHER_USER_CHECKS_MAX, OTHER_USER_WAITING_MAX, OTHER_USERS_MAX, OTHER_USERS_NAMED_MAX, REFUSALS_ANSWERED_MAX,
    REFUSALS_ANSWERED_PER_USER_MAX, RUN_USERS_MAX,
};
use crate::page_connections::files_max;

/// The places of all other users.
#[derive(Debug)]
pub(super) struct OtherUsers {
    users: Mutex<HashMap<u32, Arc<User>>>,
    /// Users that the recording names where their connections are refused.
    named: Mutex<Vec<u32>>,
    /// Refused connections that still get an answer.
    told: Semaphore,
    /// Connections of one user that may wait.
    waiting_max: usize,
}

/// The places of one user.
#[derive(Debug)]
pub(super) struct User {
    judged: Semaphore,
    waiting: AtomicUsize,
    told: Semaphore,
    of_the_run: AtomicBool,
}

/// A connection that waits for a place, or has one.
#[derive(Debug)]
pub(super) struct Queued(pub(super) Arc<User>);

impl OtherUsers {
    pub(super) fn new() -> Self {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let told = Semaphore::new(REFUSALS_ANSWERED_MAX);
        OtherUsers { users: Mutex::default(), named: Mutex::default(), told, waiting_max: waiting_max(&limits) }
    }

    /// Lets a connection of this user wait to be looked into. An error where too many of its own do, or where there are too many users.
    pub(super) fn queue(&self, uid: u32) -> Result<Queued, Option<Arc<User>>> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.contains_key(&uid) {
            // Who has no connection left is forgotten, unless it is of the run.
            users.retain(|_, user| user.is_of_the_run() || Arc::strong_count(user) > 1);
            if users.values().filter(|user| !user.is_of_the_run()).count() >= OTHER_USERS_MAX {
                return Err(None);
            }
        }
        let user = users.entry(uid).or_insert_with(|| Arc::new(User::new()));
        let is_queued = user.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < OTHER_USER_CHECKS_MAX + self.waiting_max).then_some(waiting + 1)
        });
        if is_queued.is_ok() { Ok(Queued(Arc::clone(user))) } else { Err(Some(Arc::clone(user))) }
    }

    /// Notes that a process of this user is of the run.
    pub(super) fn note_of_the_run(&self, user: &User) {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.values().filter(|user| user.is_of_the_run()).count() < RUN_USERS_MAX {
            user.of_the_run.store(true, Ordering::Relaxed);
        }
    }

    /// What the recording says of a connection of this user that is not of the run. Somebody may have thousands of users (`subuid`), which
    /// must not crowd out what else is missing.
    pub(super) fn refusal(&self, uid: u32) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.contains(&uid) && named.len() < OTHER_USERS_NAMED_MAX {
            named.push(uid);
        }
        if named.contains(&uid) {
            format!("connections of another user (uid {uid}) that is not of the run")
        } else {
            "connections of further users that are not of the run".to_owned()
        }
    }

    /// A place to be answered at, where there is one: of all, and of this user's own.
    pub(super) fn place_to_be_told<'a>(&'a self, user: Option<&'a User>) -> Option<(SemaphorePermit<'a>, Option<SemaphorePermit<'a>>)> {
        let own = match user {
            Some(user) => Some(user.told.try_acquire().ok()?),
            None => None,
        };
        Some((self.told.try_acquire().ok()?, own))
    }
}

/// How many connections of one user may wait where these are the limits of this process: each has a descriptor, of which the run must not
/// run out.
fn waiting_max(limits: &str) -> usize {
    files_max(limits).map_or(OTHER_USER_WAITING_MAX, |files| (files / 32).clamp(1, OTHER_USER_WAITING_MAX))
}

impl User {
    fn new() -> Self {
        User {
            judged: Semaphore::new(OTHER_USER_CHECKS_MAX),
            waiting: AtomicUsize::new(0),
            told: Semaphore::new(REFUSALS_ANSWERED_PER_USER_MAX),
            of_the_run: AtomicBool::new(false),
        }
    }

    /// Whether one of its processes was found to be of the run.
    pub(super) fn is_of_the_run(&self) -> bool {
        self.of_the_run.load(Ordering::Relaxed)
    }
}

impl Queued {
    /// Waits for a place.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.judged.acquire().await.ok()
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
        let other_users = OtherUsers::new();
        let run = other_users.queue(1).unwrap();
        other_users.note_of_the_run(&run.0);
        drop(run);
        let held: Vec<_> = (0..10_000).filter_map(|i| other_users.queue(2 + i % 1000).ok()).collect();
        assert!(held.len() >= OTHER_USERS_MAX && held.len() <= OTHER_USERS_MAX * (OTHER_USER_CHECKS_MAX + OTHER_USER_WAITING_MAX));
        assert!(other_users.queue(2000).is_err());
        let run: Vec<_> = (0..other_users.waiting_max).map_while(|_| other_users.queue(1).ok()).collect();
        assert_eq!(run.len(), other_users.waiting_max);
        drop(held);
        assert!(other_users.queue(2000).is_ok());
        assert_eq!(other_users.users.lock().unwrap().len(), 2, "who has no connection is forgotten");
    }

    #[test]
    fn few_users_are_named() {
        let other_users = OtherUsers::new();
        let said: std::collections::HashSet<String> = (0..1000).map(|uid| other_users.refusal(uid)).collect();
        assert_eq!(said.len(), OTHER_USERS_NAMED_MAX + 1);
        assert_eq!(other_users.refusal(0), "connections of another user (uid 0) that is not of the run");
    }
}
