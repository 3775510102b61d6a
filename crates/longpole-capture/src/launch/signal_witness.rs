//! The signal witness of this process ([`signals`](super::signals) says what it is for): one at a time, while the command lives.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::signal::Pid;
use crate::sys::signal_witness::SignalWitness;

static WITNESS: Mutex<Option<SignalWitness>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<SignalWitness>> {
    WITNESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a witness. Without one there is less evidence, but the command can run.
pub(super) fn start() {
    *lock() = SignalWitness::start().ok();
}

/// The pid of the witness.
pub(super) fn pid() -> Option<Pid> {
    lock().as_ref().map(SignalWitness::pid)
}

/// The signals that the witness got since the last call, each with its sender. `None` without a witness; one that does not answer ends.
pub(super) fn ask() -> Option<Vec<(i32, Pid)>> {
    let mut witness = lock();
    let signals = witness.as_ref().and_then(SignalWitness::ask);
    if signals.is_none() {
        *witness = None;
    }
    signals
}

/// Ends the witness: the command has ended, or this process is about to become another program.
pub(super) fn dismiss() {
    *lock() = None;
}
