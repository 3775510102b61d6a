//! Files, pipes and sockets: found without opening them, and waited for.
#![expect(unsafe_code, reason = "poll, pipes, openat2, statfs, statx, sockets")]

use std::ffi::{CString, OsStr, c_int};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// Descriptors for poll(2).
pub(crate) struct WaitSet(Vec<libc::pollfd>);

/// The state of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Not ready.
    No,
    /// It has something to read.
    Readable,
    /// It will never have anything again, and is left out from now on.
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
            // Interrupted by a signal: no descriptor is known to be ready, and the caller checks all of them anyway.
            for entry in &mut self.0 {
                entry.revents = 0;
            }
        }
    }

    /// The state of the descriptor at this place after the last wait.
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

/// Read end and write end.
pub(super) fn pipe(flags: c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the call fills both ends or fails; each is owned by nobody else.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), flags) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Waits until the descriptor can be read, or the time is over.
pub(super) fn readable(descriptor: &OwnedFd, millis: c_int) -> bool {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut entry, 1, millis) > 0 }
}

/// Whether a file is in proc, sysfs, tracefs or debugfs.
pub(crate) fn is_of_the_kernel(file: &File) -> bool {
    // TRACEFS_MAGIC and DEBUGFS_MAGIC of <linux/magic.h>.
    const KERNEL: [u64; 4] = [libc::PROC_SUPER_MAGIC as u64, libc::SYSFS_MAGIC as u64, 0x7472_6163, 0x6462_6720];
    // SAFETY: all zero is a value of the type, and a place for the answer.
    let found = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &mut found) == 0).then_some(found.f_type)
    };
    found.is_some_and(|kind| KERNEL.contains(&(kind as u64)))
}

/// Whether there is a fifo(7) at a path, as far as the kernel knows without a question to its file system: one in user space may never answer.
pub(crate) fn is_fifo(path: &str) -> bool {
    let Ok(path) = CString::new(path) else { return false };
    // SAFETY: all zero is a value of the type, and a place for the answer; the path ends with a zero.
    let (outcome, found) = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (libc::statx(libc::AT_FDCWD, path.as_ptr(), libc::AT_STATX_DONT_SYNC, libc::STATX_TYPE, &mut found), found)
    };
    outcome == 0 && libc::mode_t::from(found.stx_mode) & libc::S_IFMT == libc::S_IFIFO
}

/// Finds the file with this name in a folder without opening it, and does not follow a link. `None` if another file system is mounted there: a
/// FUSE daemon may never answer.
///
/// # Errors
///
/// If there is no such file, or the folder may not be searched.
pub(crate) fn find_in(folder: &File, name: &OsStr) -> io::Result<Option<File>> {
    let name = CString::new(name.as_bytes())?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: all zero is a value of the type, which the kernel only reads.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    (how.flags, how.resolve) = (flags as u64, libc::RESOLVE_NO_XDEV);
    // SAFETY: the name ends with a zero, and the last argument is the size of `how`.
    let found = unsafe { libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), name.as_ptr(), &how, size_of_val(&how)) };
    let found = match (found, io::Error::last_os_error()) {
        (..0, error) if error.raw_os_error() == Some(libc::EXDEV) => return Ok(None),
        // Before Linux 5.6, and behind filters that do not know the call.
        (..0, error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            // SAFETY: the name ends with a zero.
            let found = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
            if found < 0 {
                return Err(io::Error::last_os_error());
            }
            found
        }
        (..0, error) => return Err(error),
        (found, _) => i32::try_from(found).map_err(io::Error::other)?,
    };
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(Some(unsafe { File::from_raw_fd(found) }))
}

/// A netlink socket for sock_diag(7). The answer is there when the request is written.
pub(crate) fn sock_diag_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a call without pointers.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was made here and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Packets that a socket had no room for; of a listening socket, connections that their clients began while its queue was full.
///
/// # Errors
///
/// Before Linux 4.12, and in sandboxes without the option.
pub(crate) fn dropped_by(socket: BorrowedFd<'_>) -> io::Result<u32> {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut counts = [0_u32; DROPS + 1];
    let mut bytes = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the kernel writes no more than this number of bytes, which is the size of the array.
    let got = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, counts.as_mut_ptr().cast(), &mut bytes) };
    match got {
        0 if bytes as usize == size_of_val(&counts) => Ok(counts[DROPS]),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
