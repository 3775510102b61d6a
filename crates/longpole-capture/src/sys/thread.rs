//! The calling thread: its priority and the signals it takes.
#![expect(unsafe_code, reason = "setpriority and the signal mask")]

use std::mem::MaybeUninit;

/// Lets the calling thread run before others, if allowed (setpriority(2)).
pub(crate) fn prefer_this_thread() {
    // SAFETY: changes the nice value of the calling thread only (0 names the caller, and on Linux a thread).
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
}

/// Blocks all signals in the calling thread: they are for the thread that waits for the command.
pub(crate) fn block_signals_of_this_thread() {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both calls write or read the set of ours only, and change the mask of the calling thread only.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}
