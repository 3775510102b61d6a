//! The last words of a process: what ended and was not sent yet is sent when the process ends by `exit` or by returning from `main`,
//! whether or not anybody kept a guard.
//!
//! The C library calls us on the thread that ends the process. Others may go on meanwhile, stand still for ever, or, where `exit` was
//! called by a signal handler, be this very thread in the middle of our own work. So nothing here takes a lock for longer than the
//! deadline, and nothing panics.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, Weak};

use crate::locks::{LOCK_MAX, lock, lock_within};
use crate::{forks, sys};

/// What has spans to send at the end.
pub(crate) trait Ends: Send + Sync {
    /// Sends what is left and waits no longer than its own deadline.
    fn end(&self);
}

static ENDING: Mutex<Vec<Weak<dyn Ends>>> = Mutex::new(Vec::new());

/// Has this one ended when the process ends, if it is still there.
pub(crate) fn register(it: Weak<dyn Ends>) {
    watch();
    let mut ending = lock(&ENDING);
    ending.retain(|known| known.strong_count() > 0);
    ending.push(it);
}

/// Has the C library call us when this process ends by `exit` or by returning from `main`.
fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        forks::watch();
        EXITING_PROCESS.store(std::process::id(), Relaxed);
        // Where this fails, what nobody flushed is lost.
        sys::call_at_exit(at_exit);
    });
}

/// Whose end is ours: a child that was made by a system call of its own has the handler, too, and none of the threads.
static EXITING_PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn at_exit() {
    if forks::is_forked_child() || EXITING_PROCESS.load(Relaxed) != std::process::id() {
        return;
    }
    // A panic would abort a program that is about to end well.
    let _ = std::panic::catch_unwind(end_all);
}

/// Called once, when the process ends, in no forked child.
fn end_all() {
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
