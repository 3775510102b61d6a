//! The SDK's own threads.

use std::cell::Cell;

/// Name of the threads that send.
pub(crate) const NAME: &str = "longpole-sdk";

/// Stack of these threads. Said, because `RUST_MIN_STACK`, which speaks of the program's threads, can be too little for reading an answer.
const STACK_BYTES: usize = 1 << 20;

/// A thread that sends, to be started.
pub(crate) fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name(NAME.into()).stack_size(STACK_BYTES)
}

thread_local! {
    static IS_OWN_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Spans of this thread, those of an HTTP library say, would be sent by it, and make more of them.
pub(crate) fn mark() {
    IS_OWN_THREAD.set(true);
}

pub(crate) fn is_own() -> bool {
    IS_OWN_THREAD.get()
}
