//! The same on Linux, by libc.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// The kernel's id of this thread.
pub(crate) fn gettid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail; the system call is used because older C libraries have no wrapper.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

/// CLOCK_MONOTONIC, in nanoseconds.
#[inline]
pub(crate) fn monotonic_nanos() -> u64 {
    nanos_of(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, in nanoseconds since 1970.
pub(crate) fn unix_nanos() -> u64 {
    nanos_of(libc::CLOCK_REALTIME)
}

/// CLOCK_BOOTTIME, in nanoseconds.
pub(crate) fn boot_nanos() -> u64 {
    nanos_of(libc::CLOCK_BOOTTIME)
}

#[inline]
fn nanos_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure it is given, and these clocks are always there.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether a file may be so large: where it may not (`ulimit -f`), who makes it so gets a signal that ends the program.
pub(crate) fn file_may_have(bytes: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    is_known && limit.rlim_cur >= bytes as libc::rlim_t
}

/// Whether this program has more rights than whoever started it (set-user-id, capabilities of its file): then the environment is not its
/// user's word, as for the C library's own variables.
pub(crate) fn has_more_rights_than_its_caller() -> bool {
    // SAFETY: takes a number and reads what the kernel handed to this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Has the C library call this in the child of each fork of this process, after the handlers before it. A child that execs at once
/// loses nothing by it. The handler does only what is allowed between fork and exec: system calls, and stores to memory of its own thread
/// and to atomics. Failure (out of memory) leaves the child without the call.
pub(crate) fn call_in_forked_children(handler: extern "C" fn()) {
    // SAFETY: the handler has the required signature and lives as long as the program.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Has the C library call this when the process ends by `exit` or by returning from `main`. Failure (out of memory) leaves the end without
/// the call.
pub(crate) fn call_at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler has the required signature and lives as long as the program.
    unsafe { libc::atexit(handler) };
}

/// Writes to stderr, all of it or what it takes.
pub(crate) fn write_stderr(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the pointer and the length are those of the slice.
        let written = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = &bytes[written.min(bytes.len())..],
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Runs `start`, which starts a thread, so that the thread takes none of the program's signals: a program that waits for
/// signals on a thread of its own must not lose them to ours. Faults stay deliverable.
pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised by the calls before they are read, the pointers are to locals that outlive the
    // calls, and the mask that was found is put back.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut all);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS] {
            libc::sigdelset(&mut all, fault);
        }
        let changed = libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) == 0;
        let result = start();
        if changed {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        }
        result
    }
}

/// A mapping of this process, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Mapping {
    /// Maps the first `bytes` of a file, to be seen by all who map it.
    pub(crate) fn shared(file: &File, bytes: usize) -> io::Result<Self> {
        Mapping::new(bytes, file.as_raw_fd(), libc::MAP_SHARED)
    }

    /// Maps memory of this process alone: of a file, whose name shows in the list of its mappings, or of none.
    pub(crate) fn private(file: Option<&File>, bytes: usize) -> io::Result<Self> {
        match file {
            Some(file) => Mapping::new(bytes, file.as_raw_fd(), libc::MAP_PRIVATE),
            None => Mapping::new(bytes, -1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        }
    }

    fn new(bytes: usize, descriptor: i32, flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: maps new memory where the kernel likes; nothing else lies there.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, 0) };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Mapping { start, bytes }) }
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> *mut libc::c_void {
        self.start
    }

    /// Leaves it mapped, for as long as the process lives or until [`unmap`].
    pub(crate) fn into_start(self) -> *mut libc::c_void {
        let start = self.start;
        std::mem::forget(self);
        start
    }

    /// Keeps it from the children of a fork; whether that is so now.
    pub(crate) fn is_kept_from_children(&self) -> bool {
        // SAFETY: the range is the mapping; this process has it as before.
        unsafe { libc::madvise(self.start, self.bytes, libc::MADV_DONTFORK) == 0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is of this length, and whoever has a pointer into it has kept it by `into_start`.
        unsafe { unmap(self.start, self.bytes) };
    }
}

/// Takes a mapping away.
///
/// # Safety
///
/// It is of this length, and nobody refers to it any more.
pub(crate) unsafe fn unmap(start: *mut libc::c_void, bytes: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::munmap(start, bytes) };
}

/// Bytes of a page of memory; `otherwise` where the system does not say.
pub(crate) fn page_bytes(otherwise: usize) -> usize {
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(otherwise).max(1)
}

/// Has the kernel put memory behind a range of a mapping, or say that it has none. What lies there stays as it is.
pub(crate) fn populate(start: *mut libc::c_void, bytes: usize) -> io::Result<()> {
    // SAFETY: it changes nothing of what lies there; a range that is not mapped is an error.
    match unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the file system give a file all of its first `bytes`, or say that it has no room.
pub(crate) fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    // SAFETY: takes a descriptor that is open and two numbers.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file without a place, whose name shows where it is mapped.
pub(crate) fn file_in_memory(name: &CStr) -> Option<File> {
    [libc::MFD_NOEXEC_SEAL, 0].into_iter().find_map(|more| {
        // SAFETY: takes a text that ends with zero, and flags; gives a descriptor that is ours, or -1.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | more) };
        // SAFETY: as above.
        (descriptor >= 0).then(|| unsafe { File::from(OwnedFd::from_raw_fd(descriptor)) })
    })
}

/// Gives a range of memory a name that shows in the list of mappings, which some kernels cannot; whether it has it.
pub(crate) fn name_memory(start: *const libc::c_void, bytes: usize, name: &CStr) -> bool {
    // SAFETY: names a range of this process, which changes nothing of what lies there; the text ends with zero.
    unsafe { libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start.addr(), bytes, name.as_ptr()) == 0 }
}
