//! This process in its session, and stopping it as the command was stopped.
#![expect(unsafe_code, reason = "the system calls of sessions and stops")]

use std::mem::{self, MaybeUninit};
use std::ptr;

use crate::sys::signal::{Pid, SignalSet, change_mask, send_to_own_thread, take, unblock};
use crate::sys::wait::has_gone_on;

/// Our own process id.
pub(crate) fn own_pid() -> Pid {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// Whether we lead our session.
pub(crate) fn leads_session() -> bool {
    // SAFETY: always succeeds.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Returns once every signal to a process group that the kernel has begun to send has reached all its members.
///
/// The kernel sends such a signal member by member and reads the list of processes meanwhile; setpgid(2) waits until nobody reads it. The call
/// itself asks for the group that we have, and changes nothing.
pub(crate) fn finish_group_signals() {
    // SAFETY: always safe; a session leader gets an error, after the wait.
    unsafe { libc::setpgid(0, libc::getpgrp()) };
}

/// Stops this process by `signal`, as the child was stopped; returns when it is continued. Returns at once if the child runs already, or if the
/// kernel does not let us stop: in an orphaned process group, and as PID 1.
pub(crate) fn stop_like(child: Pid, signal: i32) {
    if signal == libc::SIGSTOP {
        if !has_gone_on(child) {
            send_to_own_thread(signal);
        }
        return;
    }
    // The signal that stopped the child may be on its way to us, and would stop us a second time after somebody has continued us.
    finish_group_signals();
    // A SIGCONT may reach the whole group between the check of the child and our own stop, and then nobody would continue us. So the stop is made
    // pending first: the kernel drops it when a SIGCONT comes; an earlier SIGCONT shows in the child.
    let one = SignalSet::of([signal]);
    let before = change_mask(libc::SIG_BLOCK, one);
    // SAFETY: a zeroed sigaction is valid, and is "default"; `handler` is a valid place for the old one.
    let handler = unsafe {
        let mut handler = MaybeUninit::<libc::sigaction>::zeroed();
        let default: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &default, handler.as_mut_ptr());
        handler.assume_init()
    };
    send_to_own_thread(signal);
    if has_gone_on(child) {
        take(one);
    }
    unblock(one);
    // SAFETY: puts back the action that was there.
    unsafe { libc::sigaction(signal, &handler, ptr::null_mut()) };
    change_mask(libc::SIG_SETMASK, before);
}
