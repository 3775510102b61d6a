//! The last words of a process: what ended and was not sent yet is sent when the process ends by `exit` or by returning from `main`,
//! whether or not anybody kept a guard.
//!
//! The C library calls us on the thread that ends the process. Others may go on meanwhile, stand still for ever, or, where `exit` was
//! called by a signal handler, be this very thread in the middle of our own work. So nothing here takes a lock for longer than the
//! deadline, and nothing panics.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use crate::thread_context;

/// How long a lock is tried that no thread keeps for more than a moment.
pub(crate) const LOCK_MAX: Duration = Duration::from_millis(20);

/// Between two tries.
const LOCK_PAUSE: Duration = Duration::from_micros(200);

/// What has spans to send at the end.
pub(crate) trait Ends: Send + Sync {
    /// Sends what is left and waits no longer than its own deadline.
    fn end(&self);
}

static ENDING: Mutex<Vec<Weak<dyn Ends>>> = Mutex::new(Vec::new());

/// Has this one ended when the process ends, if it is still there.
pub(crate) fn register(it: Weak<dyn Ends>) {
    thread_context::watch_exit();
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    ending.retain(|known| known.strong_count() > 0);
    ending.push(it);
}

/// Called once, when the process ends, in no forked child.
pub(crate) fn end_all() {
    let ending: Vec<Arc<dyn Ends>> = match lock_within(&ENDING, LOCK_MAX) {
        Some(ending) => ending.iter().filter_map(Weak::upgrade).collect(),
        None => return,
    };
    for it in ending {
        it.end();
        // Its destructor is not for this moment.
        std::mem::forget(it);
    }
}

/// A wait without end is what a deadline exists to prevent; a day is as good as any larger answer.
pub(crate) fn deadline(within: Duration) -> Instant {
    Instant::now() + within.min(Duration::from_secs(86_400))
}

/// The lock, or `None` where it cannot be had in this time: its owner may be the thread that asks.
pub(crate) fn lock_within<T: ?Sized>(mutex: &Mutex<T>, within: Duration) -> Option<std::sync::MutexGuard<'_, T>> {
    let deadline = deadline(within);
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// The lock of something that no thread keeps for more than a moment.
pub(crate) fn lock_briefly<T: ?Sized>(mutex: &Mutex<T>) -> Option<std::sync::MutexGuard<'_, T>> {
    lock_within(mutex, LOCK_MAX)
}
