//! The system call that a thread is blocked in, and what it waits for.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;

use longpole_model::WaitKind;

use super::listeners::Listeners;
use crate::sys::descriptors::is_fifo;
use crate::sys::remote_memory::read_memory;

/// Most descriptors of a `poll` to classify.
const POLLED_MAX: usize = 8;

/// Most bytes of the line of `/proc/PID/task/TID/syscall`: nine numbers.
const LINE_BYTES_MAX: usize = 256;

/// Most bytes of a file of `/proc`.
const PROC_BYTES_MAX: u64 = 4096;

/// The thread may not be probed: it is another user's, or closed by `kernel.yama.ptrace_scope` or by itself.
pub(super) struct Denied;

/// One line of `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockedCall {
    /// The number of the call; -1 if the thread is blocked outside of any call: a page fault.
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
    pub(super) sp: u64,
    pub(super) ip: u64,
}

impl BlockedCall {
    /// `NR A0 … A5 SP IP`, hexadecimal except the number; `-1 SP IP` outside of a call. `None` for `running`, and for anything
    /// else.
    fn parse(line: &str) -> Option<BlockedCall> {
        let mut words = line.split_ascii_whitespace();
        let number: i64 = words.next()?.parse().ok()?;
        let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        if number >= 0 {
            for argument in &mut arguments {
                *argument = hex()?;
            }
        }
        Some(BlockedCall { number, arguments, sp: hex()?, ip: hex()? })
    }

    /// Reads the open file of a thread; `None` if the thread runs or is gone.
    pub(super) fn read(syscall: &fs::File) -> Result<Option<BlockedCall>, Denied> {
        let mut line = [0; LINE_BYTES_MAX];
        match syscall.read_at(&mut line, 0) {
            Ok(read) => Ok(std::str::from_utf8(&line[..read]).ok().and_then(BlockedCall::parse)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Denied),
            Err(_) => Ok(None),
        }
    }

    /// Whether it waits for several descriptors or for a time, as event loops do.
    pub(super) fn is_poll(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait].contains(&self.number) {
            return true;
        }
        [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2].contains(&self.number)
    }

    /// What it waits for, and the name of the call; empty if the name is unknown.
    pub(super) fn kind(&self, pid: u32, listeners: &mut Listeners) -> (WaitKind, &'static str) {
        let [first, second, ..] = self.arguments;
        let of_descriptor = || kind_of_descriptor(pid, first);
        let polled = &mut Polled { pid, listeners };
        match self.number {
            -1 => (WaitKind::PageFault, ""),
            libc::SYS_futex => (WaitKind::Lock, "futex"),
            libc::SYS_flock => (WaitKind::Lock, "flock"),
            // Only a lock of a range makes fcntl wait.
            libc::SYS_fcntl => (WaitKind::Lock, "fcntl"),
            libc::SYS_semop => (WaitKind::Lock, "semop"),
            libc::SYS_semtimedop => (WaitKind::Lock, "semtimedop"),
            libc::SYS_nanosleep => (WaitKind::Sleep, "nanosleep"),
            libc::SYS_clock_nanosleep => (WaitKind::Sleep, "clock_nanosleep"),
            libc::SYS_wait4 => (WaitKind::Child, "wait4"),
            libc::SYS_waitid => (WaitKind::Child, "waitid"),
            // Until the child that borrows the memory has executed a program: `vfork`, `posix_spawn`.
            libc::SYS_clone => (WaitKind::Child, "clone"),
            libc::SYS_clone3 => (WaitKind::Child, "clone3"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork => (WaitKind::Child, "vfork"),
            libc::SYS_read => (of_descriptor(), "read"),
            libc::SYS_write => (of_descriptor(), "write"),
            libc::SYS_readv => (of_descriptor(), "readv"),
            libc::SYS_writev => (of_descriptor(), "writev"),
            libc::SYS_pread64 => (of_descriptor(), "pread64"),
            libc::SYS_pwrite64 => (of_descriptor(), "pwrite64"),
            libc::SYS_sendfile => (of_descriptor(), "sendfile"),
            libc::SYS_splice => (of_descriptor(), "splice"),
            libc::SYS_fsync => (WaitKind::Disk, "fsync"),
            libc::SYS_fdatasync => (WaitKind::Disk, "fdatasync"),
            libc::SYS_sync => (WaitKind::Disk, "sync"),
            libc::SYS_syncfs => (WaitKind::Disk, "syncfs"),
            libc::SYS_openat => (WaitKind::Disk, "openat"),
            libc::SYS_unlinkat => (WaitKind::Disk, "unlinkat"),
            libc::SYS_renameat2 => (WaitKind::Disk, "renameat2"),
            libc::SYS_getdents64 => (WaitKind::Disk, "getdents64"),
            libc::SYS_fallocate => (WaitKind::Disk, "fallocate"),
            libc::SYS_ftruncate => (WaitKind::Disk, "ftruncate"),
            libc::SYS_msync => (WaitKind::Disk, "msync"),
            libc::SYS_io_getevents => (WaitKind::Disk, "io_getevents"),
            libc::SYS_connect => (WaitKind::Network, "connect"),
            libc::SYS_accept => (WaitKind::Idle, "accept"),
            libc::SYS_accept4 => (WaitKind::Idle, "accept4"),
            libc::SYS_recvfrom => (WaitKind::Network, "recvfrom"),
            libc::SYS_recvmsg => (WaitKind::Network, "recvmsg"),
            libc::SYS_recvmmsg => (WaitKind::Network, "recvmmsg"),
            libc::SYS_sendto => (WaitKind::Network, "sendto"),
            libc::SYS_sendmsg => (WaitKind::Network, "sendmsg"),
            libc::SYS_ppoll => (polled.kind_of_poll(first, second), "ppoll"),
            libc::SYS_pselect6 => (polled.kind_of_select(&self.arguments), "pselect6"),
            libc::SYS_epoll_pwait => (polled.kind_of_epoll(first), "epoll_pwait"),
            libc::SYS_epoll_pwait2 => (polled.kind_of_epoll(first), "epoll_pwait2"),
            libc::SYS_io_uring_enter => (WaitKind::Other, "io_uring_enter"),
            libc::SYS_rt_sigtimedwait => (WaitKind::Other, "rt_sigtimedwait"),
            libc::SYS_rt_sigsuspend => (WaitKind::Other, "rt_sigsuspend"),
            libc::SYS_restart_syscall => (WaitKind::Sleep, "restart_syscall"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => (WaitKind::Disk, "open"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => (WaitKind::Disk, "unlink"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => (WaitKind::Disk, "rename"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => (polled.kind_of_poll(first, second), "poll"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => (polled.kind_of_select(&self.arguments), "select"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => (polled.kind_of_epoll(first), "epoll_wait"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pause => (WaitKind::Other, "pause"),
            _ => (WaitKind::Other, ""),
        }
    }
}

fn read_proc(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(PROC_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// What a descriptor of another process stands for.
fn kind_of_descriptor(pid: u32, descriptor: u64) -> WaitKind {
    target(pid, descriptor).map_or(WaitKind::Other, |target| kind_of_open(pid, descriptor, &target))
}

/// The same, for the target of its link.
fn kind_of_open(pid: u32, descriptor: u64, target: &str) -> WaitKind {
    match kind_of_target(target) {
        // A pipe with a name, whose target looks like that of a file.
        WaitKind::Disk if is_fifo(&format!("/proc/{pid}/fd/{descriptor}")) => WaitKind::Pipe,
        kind => kind,
    }
}

fn target(pid: u32, descriptor: u64) -> Option<String> {
    let target = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

fn kind_of_target(target: &str) -> WaitKind {
    if target.starts_with("socket:") {
        WaitKind::Network
    } else if target.starts_with("pipe:") {
        WaitKind::Pipe
    } else if target.contains("[timerfd]") {
        WaitKind::Sleep
    } else if target.contains("[eventfd]") {
        WaitKind::Queue
    } else if target.starts_with('/') && !target.starts_with("/dev/") {
        WaitKind::Disk
    } else if target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") {
        WaitKind::Idle
    } else {
        WaitKind::Other
    }
}

/// A socket that listens is that of a server, which answers others when they call. Other sockets come before what is mostly there for threads to
/// wake each other.
fn strongest(kinds: impl Iterator<Item = WaitKind>) -> WaitKind {
    let rank = |kind: &WaitKind| match kind {
        WaitKind::Idle => 5,
        WaitKind::Network => 4,
        WaitKind::Pipe => 3,
        WaitKind::Sleep => 2,
        WaitKind::Queue => 1,
        _ => 0,
    };
    kinds.max_by_key(rank).unwrap_or(WaitKind::Other)
}

/// What the descriptors of one process stand for that a thread waits for together.
struct Polled<'a> {
    pid: u32,
    listeners: &'a mut Listeners,
}

impl Polled<'_> {
    /// One of them. By a pipe whose two ends the process has, its threads wake each other: both ends stand side by side, as pipe(2) returned them. A
    /// thread that waits for connections waits for work.
    fn kind(&mut self, descriptor: u64) -> WaitKind {
        let Some(found) = target(self.pid, descriptor) else { return WaitKind::Other };
        let kind = kind_of_open(self.pid, descriptor, &found);
        let is_other_end = |beside: Option<u64>| beside.and_then(|beside| target(self.pid, beside)).is_some_and(|beside| beside == found);
        match kind {
            WaitKind::Pipe if is_other_end(descriptor.checked_add(1)) || is_other_end(descriptor.checked_sub(1)) => WaitKind::Queue,
            WaitKind::Network if self.listeners.is_listening(self.pid, &found) => WaitKind::Idle,
            kind => kind,
        }
    }

    /// The strongest of several.
    fn strongest(&mut self, descriptors: impl Iterator<Item = u64>) -> WaitKind {
        strongest(descriptors.map(|descriptor| self.kind(descriptor)))
    }

    /// `struct pollfd` has 8 bytes; the descriptor is the first 4.
    fn kind_of_poll(&mut self, address: u64, count: u64) -> WaitKind {
        if count == 0 {
            return WaitKind::Sleep;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(POLLED_MAX);
        let mut polled = [0; POLLED_MAX * 8];
        let read = read_memory(self.pid, address, &mut polled[..count * 8]).unwrap_or(0);
        let descriptors = polled[..read].chunks_exact(8).filter_map(|entry| entry.first_chunk::<4>().map(|fd| u32::from_ne_bytes(*fd)));
        self.strongest(descriptors.map(u64::from))
    }

    /// Each set that `select` reads is an array of bits, one for each descriptor below the first argument.
    fn kind_of_select(&mut self, arguments: &[u64; 6]) -> WaitKind {
        let [count, read, write, ..] = *arguments;
        if count == 0 {
            return WaitKind::Sleep;
        }
        let pid = self.pid;
        let bytes = usize::try_from(count).unwrap_or(usize::MAX).min(libc::FD_SETSIZE).div_ceil(8);
        let selected = [read, write].into_iter().filter(|address| *address != 0).flat_map(|address| {
            let mut set = [0; libc::FD_SETSIZE / 8];
            let read = read_memory(pid, address, &mut set[..bytes]).unwrap_or(0);
            let bits = (0..8 * read as u64).filter(move |bit| set[(bit / 8) as usize] & (1 << (bit % 8)) != 0);
            bits.take_while(move |bit| *bit < count)
        });
        self.strongest(selected.take(POLLED_MAX))
    }

    /// `/proc/PID/fdinfo/FD` of an epoll lists what it watches: `tfd:       14 events: …`.
    fn kind_of_epoll(&mut self, descriptor: u64) -> WaitKind {
        let Ok(watched) = read_proc(&format!("/proc/{}/fdinfo/{descriptor}", self.pid)) else { return WaitKind::Other };
        let descriptors = watched.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse::<u64>().ok());
        self.strongest(descriptors.take(POLLED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_is_read_in_each_of_its_forms() {
        let line = "202 0x55d0c7f2b2a0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd4c3b2a38 0x7f3d1a2b3c4d\n";
        let call = BlockedCall::parse(line).unwrap();
        assert_eq!((call.number, call.sp, call.ip), (202, 0x7ffd_4c3b_2a38, 0x7f3d_1a2b_3c4d));
        assert_eq!(call.arguments, [0x55d0_c7f2_b2a0, 0x189, 0, 0, 0, 0xffff_ffff]);
        let fault = BlockedCall::parse("-1 0x7ffd4c3b2a38 0x7f3d1a2b3c4d").unwrap();
        assert_eq!((fault.number, fault.kind(1, &mut Listeners::default()).0), (-1, WaitKind::PageFault));
        for other in ["running\n", "", "202 0x1", "x 0x1 0x2", "1 2 3 4 5 6 7 8 9"] {
            assert_eq!(BlockedCall::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_pipe_with_a_name_is_a_pipe() {
        use std::os::fd::AsRawFd;
        let folder = std::env::temp_dir().join(format!("longpole-fifo-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let fifo = fs::File::options().read(true).write(true).open(&path).unwrap();
        let file = fs::File::create(folder.join("file")).unwrap();
        let kind = |file: &fs::File| kind_of_descriptor(std::process::id(), file.as_raw_fd() as u64);
        assert_eq!([kind(&fifo), kind(&file)], [WaitKind::Pipe, WaitKind::Disk]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn descriptors_show_what_a_thread_waits_for() {
        let kinds =
            ["socket:[12]", "pipe:[3]", "anon_inode:[timerfd]", "/var/lib/db", "/dev/pts/0", "anon_inode:[eventfd]"].map(kind_of_target);
        let expected = [WaitKind::Network, WaitKind::Pipe, WaitKind::Sleep, WaitKind::Disk, WaitKind::Idle, WaitKind::Queue];
        assert_eq!(kinds, expected);
        assert_eq!(strongest([WaitKind::Other, WaitKind::Network, WaitKind::Pipe].into_iter()), WaitKind::Network);
        assert_eq!(strongest([WaitKind::Network, WaitKind::Idle].into_iter()), WaitKind::Idle);
        assert_eq!(strongest(std::iter::empty()), WaitKind::Other);
    }
}
