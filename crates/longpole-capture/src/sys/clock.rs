//! The clocks of clock_gettime(2): the machine's, and the CPU time of processes and threads.
#![expect(unsafe_code, reason = "clock_gettime")]

use std::mem::MaybeUninit;

fn clock_nanos(clock: libc::clockid_t) -> u64 {
    clock_nanos_of(clock).unwrap_or(0)
}

fn clock_nanos_of(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to a timespec of ours, which the call fills; all-zero bytes are a valid timespec too.
    let (outcome, time) = unsafe { (libc::clock_gettime(clock, time.as_mut_ptr()), time.assume_init()) };
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    (outcome == 0).then(|| part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec)))
}

/// CPU time of all threads of any process, in nanoseconds; `None` if it is gone.
pub(crate) fn process_cpu_nanos(pid: u32) -> Option<u64> {
    // As clock_getcpuclockid(3) encodes it: the process, and 2 for the scheduler's own time.
    let clock = !libc::pid_t::try_from(pid).ok()? << 3 | 2;
    clock_nanos_of(clock)
}

/// The CPU clock of one of our threads, which the others can read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// The clock of the calling thread; `None` if there is none.
    pub(crate) fn of_this_thread() -> Option<ThreadClock> {
        // SAFETY: the call takes nothing and cannot fail.
        let tid = unsafe { libc::gettid() };
        // As pthread_getcpuclockid(3) encodes it: 4 for a thread, 2 for the scheduler's own time.
        let clock = ThreadClock(!tid << 3 | 6);
        clock.nanos().map(|_| clock)
    }

    /// User and system time, in nanoseconds; `None` if the thread has ended.
    pub(crate) fn nanos(self) -> Option<u64> {
        clock_nanos_of(self.0)
    }
}

/// CLOCK_MONOTONIC.
pub(crate) fn monotonic_nanos() -> u64 {
    clock_nanos(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME; 0 before 1970.
pub(crate) fn realtime_nanos() -> u64 {
    clock_nanos(libc::CLOCK_REALTIME)
}

/// CLOCK_BOOTTIME, which runs while the machine sleeps; `None` if there is none.
pub(crate) fn boottime_nanos() -> Option<u64> {
    clock_nanos_of(libc::CLOCK_BOOTTIME)
}

/// CPU time of the calling thread, user and system, in nanoseconds.
pub(crate) fn thread_cpu_nanos() -> u64 {
    clock_nanos(libc::CLOCK_THREAD_CPUTIME_ID)
}
