//! Kernel calls of the recorder: performance events, memory shared with the kernel, waiting, clocks.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use longpole_model::Exit;
use perf_event_open_sys::bindings::{self, perf_event_attr};

use crate::procfs::usage::exit_of_status;

/// Opens an event on one process (and what it will fork, where the attribute says so) for one CPU, closed on exec.
pub(crate) fn open_event(attr: &perf_event_attr, pid: u32, cpu: u32) -> io::Result<File> {
    let (Ok(pid), Ok(cpu)) = (i32::try_from(pid), i32::try_from(cpu)) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let mut attr = *attr;
    let flags = libc::c_ulong::from(bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a whole attribute structure whose `size` field states its size, and it outlives the call; the
    // kernel writes to it only where it refuses that size.
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, -1, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor, so nobody else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Lets an event write into the ring of another one on the same CPU.
pub(crate) fn set_output(event: &File, into: &File) -> io::Result<()> {
    // SAFETY: the call takes two open descriptors and touches no memory of ours.
    let outcome = unsafe { libc::ioctl(event.as_raw_fd(), bindings::SET_OUTPUT as libc::Ioctl, into.as_raw_fd()) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Starts or stops an event and all that inherited it. Of an event that is there nothing can be refused.
pub(crate) fn set_enabled(event: &File, enabled: bool) {
    let request = if enabled { bindings::ENABLE } else { bindings::DISABLE };
    // SAFETY: the call takes an open descriptor and touches no memory of ours.
    unsafe { libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, 0) };
}

/// Raises the number of descriptors that the process may have to what it may raise it to.
pub(crate) fn raise_open_files_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or fill the structure they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A descriptor that is readable once the process has ended.
pub(crate) fn open_process(pid: u32) -> io::Result<File> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has just returned this descriptor, so nobody else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// What the kernel is asked of a descriptor of a process, and what it answers: `struct pidfd_info` of its first version.
#[repr(C)]
struct ProcessInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// How the process of this descriptor ended; `None` before it is reaped, and before Linux 6.15.
pub(crate) fn exit_of(process: &File) -> Option<Exit> {
    const EXIT: u64 = 1 << 3;
    // _IOWR(0xff, 11, struct pidfd_info)
    const GET_INFO: u32 = 3 << 30 | (size_of::<ProcessInfo>() as u32) << 16 | 0xff << 8 | 11;
    let mut info = ProcessInfo { mask: EXIT, cgroup: 0, ids: [0; 11], exit_code: 0 };
    // SAFETY: the request says the size of the structure, and the kernel writes no more than that.
    let outcome = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO as libc::Ioctl, &raw mut info) };
    (outcome == 0 && info.mask & EXIT != 0).then(|| exit_of_status(info.exit_code))
}

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// How many descriptors the process may have.
pub(crate) fn open_files_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure it is given.
    let outcome = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if outcome == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}

/// Memory of an event that the kernel writes while we read; unmapped on drop.
pub(crate) struct SharedMemory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this value is its only owner here.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Maps the first `bytes` of an event.
    pub(crate) fn map(event: &File, bytes: usize) -> io::Result<SharedMemory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address the kernel chooses, of a descriptor that is open, touches no memory in use.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, event.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(SharedMemory { base, bytes }),
            None => Err(io::Error::other("mapped at address zero")),
        }
    }

    /// Its first byte; valid as long as `self`.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map`, is unmapped only here, and all pointers into it live shorter than `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// What [`wait`] looks at.
pub(crate) struct WaitSet(Vec<libc::pollfd>);

/// What became of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Nothing.
    No,
    /// It has something to read.
    Readable,
    /// It will never have anything again; it is not looked at any more.
    Gone,
}

impl WaitSet {
    /// A set of these descriptors, which must stay open as long as it is used.
    pub(crate) fn new(descriptors: impl IntoIterator<Item = RawFd>) -> WaitSet {
        WaitSet(descriptors.into_iter().map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect())
    }

    /// Waits until one of them is ready or the time has passed.
    pub(crate) fn wait(&mut self, timeout_millis: i32) {
        let count = self.0.len() as libc::nfds_t;
        // SAFETY: the pointer and count describe the vector, which the kernel writes only within.
        let outcome = unsafe { libc::poll(self.0.as_mut_ptr(), count, timeout_millis) };
        if outcome < 0 {
            // Interrupted by a signal: nothing is known to be ready, and the caller looks at everything anyway.
            for entry in &mut self.0 {
                entry.revents = 0;
            }
        }
    }

    /// What the last wait found for the descriptor at this place.
    pub(crate) fn ready(&mut self, place: usize) -> Ready {
        let Some(entry) = self.0.get_mut(place) else { return Ready::Gone };
        if entry.revents & libc::POLLIN != 0 {
            Ready::Readable
        } else if entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            // An event hangs up when its last process has ended, and would end every wait at once from then on.
            entry.fd = -1;
            Ready::Gone
        } else {
            Ready::No
        }
    }
}

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

/// CPU time of all threads of a process, of anybody's; `None` where it is gone.
pub(crate) fn process_cpu_nanos(pid: u32) -> Option<u64> {
    // As clock_getcpuclockid(3) makes it: the process, and 2 for the scheduler's own time.
    let clock = !libc::pid_t::try_from(pid).ok()? << 3 | 2;
    clock_nanos_of(clock)
}

/// The CPU clock of one of our threads, which all others can read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// That of the calling thread; `None` where there is no such clock.
    pub(crate) fn of_this_thread() -> Option<ThreadClock> {
        // SAFETY: the call takes nothing and cannot fail.
        let tid = unsafe { libc::gettid() };
        // As pthread_getcpuclockid(3) makes it: 4 for a thread, 2 for the scheduler's own time.
        let clock = ThreadClock(!tid << 3 | 6);
        clock.nanos().map(|_| clock)
    }

    /// User and system time; `None` where the thread has ended.
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

/// CLOCK_BOOTTIME, which goes on while the machine sleeps; `None` where there is no such clock.
pub(crate) fn boottime_nanos() -> Option<u64> {
    clock_nanos_of(libc::CLOCK_BOOTTIME)
}

/// CPU time of the calling thread, user and system.
pub(crate) fn thread_cpu_nanos() -> u64 {
    clock_nanos(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Lets the calling thread run before others where that is allowed, and does nothing where not.
pub(crate) fn prefer_this_thread() {
    // SAFETY: changes the nice value of the calling thread only (0 names the caller, and on Linux a thread).
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
}

/// Keeps signals of the process away from the calling thread: they are for the thread that waits for the command.
pub(crate) fn block_signals_of_this_thread() {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both calls write or read the set of ours only, and change the mask of the calling thread only.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}
