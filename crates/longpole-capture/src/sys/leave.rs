//! Ends this process as the command ended.
#![expect(unsafe_code, reason = "a process that ends itself")]

use longpole_model::Exit;

use crate::sys::command_state::encode_exit;
use crate::sys::signal::{SignalSet, change_mask, send_to_own_thread, set_disposition, unblock};

/// Ends this process as `exit` says. Async-signal-safe.
pub(crate) fn leave_as(exit: Exit) -> ! {
    leave(encode_exit(exit))
}

/// The same, from [`encode_exit`].
pub(super) fn leave(encoded: i32) -> ! {
    if encoded < 0 {
        die_of(-encoded);
    }
    // SAFETY: always safe. No destructor and no exit handler runs: other threads may still use what those take away.
    unsafe { libc::_exit(encoded) }
}

fn die_of(signal: i32) -> ! {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limits and flags of this process, which is about to end. The limit keeps the kernel from writing a core
    // file, the flag keeps it from starting a core-dump helper, which no limit does.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    change_mask(libc::SIG_BLOCK, SignalSet::ALL);
    set_disposition(signal, false);
    send_to_own_thread(signal);
    unblock(SignalSet::of([signal]));
    // Still here: PID 1, which no signal kills by default.
    // SAFETY: always safe.
    unsafe { libc::_exit(128 + signal) }
}
