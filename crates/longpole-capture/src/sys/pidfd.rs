//! Descriptors of processes (pidfd_open(2)).
#![expect(unsafe_code, reason = "pidfd_open and its ioctl")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use longpole_model::Exit;

use crate::sys::exit_status::exit_of_status;

/// A descriptor that becomes readable when the process ends.
///
/// # Errors
///
/// `ESRCH` if there is no such process; `ENOSYS` before Linux 5.3.
pub(crate) fn open_process(pid: u32) -> io::Result<File> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has just returned this descriptor, so nobody else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// `struct pidfd_info` of `<linux/pidfd.h>`, in its first version: a request and its answer.
#[repr(C)]
struct ProcessInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// How the process of this descriptor ended; `None` until it is reaped, and before Linux 6.15.
pub(crate) fn exit_of(process: &File) -> Option<Exit> {
    const EXIT: u64 = 1 << 3;
    // _IOWR(0xff, 11, struct pidfd_info)
    const GET_INFO: u32 = 3 << 30 | (size_of::<ProcessInfo>() as u32) << 16 | 0xff << 8 | 11;
    let mut info = ProcessInfo { mask: EXIT, cgroup: 0, ids: [0; 11], exit_code: 0 };
    // SAFETY: the request says the size of the structure, and the kernel writes no more than that.
    let outcome = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO as libc::Ioctl, &raw mut info) };
    (outcome == 0 && info.mask & EXIT != 0).then(|| exit_of_status(info.exit_code))
}
