//! Locks and deadlines. At the end of a process the owner of a lock may be the thread that asks for it, so there a lock is tried
//! until a deadline and not waited for.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long a lock is tried that no thread keeps for more than a moment.
pub(crate) const LOCK_MAX: Duration = Duration::from_millis(20);

/// Between two tries.
const LOCK_PAUSE: Duration = Duration::from_micros(200);

/// A panic while a lock of ours is held would be a bug of ours; the data behind it stays usable, and the program matters more.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A wait without end is what a deadline exists to prevent; a day is as good as any larger answer.
pub(crate) fn deadline(within: Duration) -> Instant {
    Instant::now() + within.min(Duration::from_secs(86_400))
}

/// The lock, or `None` where its owner, which may be this very thread, keeps it for longer.
pub(crate) fn lock_within<T: ?Sized>(mutex: &Mutex<T>, within: Duration) -> Option<MutexGuard<'_, T>> {
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
pub(crate) fn lock_briefly<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    lock_within(mutex, LOCK_MAX)
}
