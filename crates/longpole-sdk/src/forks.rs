//! Whether this process is a copy of the one that the SDK was set up in.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::sys;

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked off the one that the exporter's thread runs in. Nothing may wait for that thread then, nor
/// take a lock that it may have held.
#[inline]
pub(crate) fn is_forked_child() -> bool {
    FORKED.load(Relaxed)
}

/// Notes forks from now on. A module with more to do in a child registers it after this.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| sys::call_in_forked_children(note));
}

extern "C" fn note() {
    FORKED.store(true, Relaxed);
}
