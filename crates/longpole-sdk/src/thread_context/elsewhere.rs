//! Where nobody reads what a thread publishes.

use crate::span_context::ContextWords;

pub(crate) fn publish(_context: ContextWords) {}

pub(crate) fn thread_id() -> Option<u32> {
    None
}

pub(crate) fn with_main_record<T>(body: impl FnOnce() -> T) -> T {
    body()
}

pub(crate) fn watch_forks() {}
