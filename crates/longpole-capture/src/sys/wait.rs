//! Children: whether they stopped, go on or ended, and reaping them (wait4(2), waitid(2)).
#![expect(unsafe_code, reason = "the system calls that wait for children")]

use std::ffi::c_int;
use std::io;
use std::mem::{self, MaybeUninit};
use std::sync::atomic::Ordering;

use longpole_model::{Exit, RunUsage};

use crate::sys::command_state::{COMMAND, REAPED_AS, encode_exit};
use crate::sys::exit_status::exit_of_status;
use crate::sys::signal::Pid;

/// What became of a child since the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// This signal stopped it.
    Stopped(i32),
    /// It goes on.
    Continued,
    /// It ended, and is reaped.
    Ended {
        /// How.
        exit: Exit,
        /// CPU time of it and of each descendant that it waited for, in nanoseconds.
        cpu_nanos: u64,
        /// Memory and page faults of the same.
        usage: RunUsage,
    },
    /// It is no longer our child: another part of this process has reaped it.
    Lost,
}

/// Checks the child without waiting.
pub(crate) fn look_at(pid: Pid) -> Change {
    wait4(pid, libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED)
}

/// Whether the child has ended and is not reaped.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the call fills the structure it is given; all zero is a valid one, and says that nobody has ended.
    unsafe { libc::waitid(libc::P_PID, pid.unsigned_abs(), info.as_mut_ptr(), options) == 0 && info.assume_init().si_pid() == pid }
}

/// Waits for the end of a child.
pub(super) fn reap(pid: Pid) {
    wait4(pid, 0);
}

pub(super) fn wait4(pid: Pid, options: c_int) -> Change {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let result = loop {
        // SAFETY: both places are valid for the answer.
        let result = unsafe { libc::wait4(pid, &mut status, options, usage.as_mut_ptr()) };
        if result != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break result;
        }
    };
    // SAFETY: all zero is a valid rusage, and so is what the kernel writes.
    let usage = unsafe { usage.assume_init() };
    let has_ended = libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
    if result > 0 && has_ended && result == COMMAND.load(Ordering::Relaxed) {
        REAPED_AS.store(encode_exit(exit_of_status(status)), Ordering::Relaxed);
    }
    match result {
        0 => Change::None,
        -1 => Change::Lost,
        _ if libc::WIFSTOPPED(status) => Change::Stopped(libc::WSTOPSIG(status)),
        _ if libc::WIFCONTINUED(status) => Change::Continued,
        _ => Change::Ended {
            exit: exit_of_status(status),
            cpu_nanos: nanos(usage.ru_utime).saturating_add(nanos(usage.ru_stime)),
            usage: RunUsage {
                peak_resident_bytes: u64::try_from(usage.ru_maxrss).ok().and_then(|kilobytes| kilobytes.checked_mul(1024)),
                minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
                major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            },
        },
    }
}

fn nanos(time: libc::timeval) -> u64 {
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_usec).saturating_mul(1_000))
}

/// Whether we reap orphans: as PID 1, or as a subreaper (prctl(2)).
pub(crate) fn adopts_orphans() -> bool {
    let mut subreaper: c_int = 0;
    // SAFETY: `subreaper` is a valid place for the answer.
    unsafe { libc::getpid() == 1 || libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut subreaper) == 0 && subreaper != 0 }
}

/// Reaps children that ended, except `own`.
pub(crate) fn reap_orphans(own: &[Pid]) {
    loop {
        // SAFETY: a zeroed siginfo is valid; the kernel fills it, and leaves its pid 0 where no child has ended.
        let ended = unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, options) != 0 { 0 } else { info.si_pid() }
        };
        if ended == 0 || own.contains(&ended) {
            return;
        }
        reap(ended);
    }
}

/// Whether a stopped child was continued, or has ended, since.
pub(super) fn has_gone_on(child: Pid) -> bool {
    // SAFETY: a zeroed siginfo is valid; the kernel fills it, and leaves its pid 0 where nothing is to report.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let options = libc::WEXITED | libc::WCONTINUED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as libc::id_t, &mut info, options) != 0 || info.si_pid() != 0
    }
}
