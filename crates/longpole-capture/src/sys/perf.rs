//! Performance events (perf_event_open(2)) and the memory they share with the kernel.
#![expect(unsafe_code, reason = "perf_event_open, its ioctls, mmap")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use perf_event_open_sys::bindings::{self, perf_event_attr};

/// Opens an event on one process (and its descendants, if the attribute says so), or on all, on one CPU, closed on exec.
pub(crate) fn open_event(attr: &perf_event_attr, pid: Option<u32>, cpu: u32) -> io::Result<File> {
    let (Ok(pid), Ok(cpu)) = (pid.map_or(Ok(-1), i32::try_from), i32::try_from(cpu)) else {
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

/// Lets an event write into the ring buffer of another one on the same CPU.
pub(crate) fn set_output(event: &File, into: &File) -> io::Result<()> {
    // SAFETY: the call takes two open descriptors and touches no memory of ours.
    let outcome = unsafe { libc::ioctl(event.as_raw_fd(), bindings::SET_OUTPUT as libc::Ioctl, into.as_raw_fd()) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Enables or disables an event and its inherited copies, which cannot fail.
pub(crate) fn set_enabled(event: &File, enabled: bool) {
    let request = if enabled { bindings::ENABLE } else { bindings::DISABLE };
    // SAFETY: the call takes an open descriptor and touches no memory of ours.
    unsafe { libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, 0) };
}

/// Memory of an event that the kernel writes while we read. Unmapped on drop.
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
