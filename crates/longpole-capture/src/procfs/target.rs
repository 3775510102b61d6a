//! What there is to know of a process that is to be looked at while it runs.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::procfs::command_line::arguments_of;
use crate::procfs::process_snapshot;
use crate::refusal::Refused;
use crate::sys::descriptors::{Ready, WaitSet};
use crate::sys::handler::interrupted;
use crate::sys::pidfd::open_process;

/// Longest time until it is noticed that somebody asked to stop: the signal may come just before the wait, or to another thread, and
/// then it ends no `poll`.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its id.
    pub pid: u32,
    /// Its command line; its name where it has none, as a thread of the kernel.
    pub command: Vec<String>,
}

/// Why there is nothing to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// There is no process or thread of this id.
    Unknown,
    /// It has ended, and its parent has not asked how.
    Ended,
}

/// Finds the process of this id. The id of one of its threads means the process, as it does for `kill`.
pub fn find(id: u32) -> Result<Running, Absent> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).map_err(|_| Absent::Unknown)?;
    let pid = field(&status, "Tgid:").and_then(|words| words.parse().ok()).ok_or(Absent::Unknown)?;
    if field(&status, "State:").is_some_and(|state| state.starts_with(['Z', 'X'])) && process_snapshot::threads_of(pid).len() < 2 {
        return Err(Absent::Ended);
    }
    let mut command = arguments_of(pid);
    if command.is_empty() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|_| Absent::Unknown)?;
        command.push(name.trim().to_owned());
    }
    Ok(Running { pid, command })
}

/// What stands behind a name in a `status` file.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Why this user may see neither the calls nor the memory of a process, if it may not: then there is nothing to record of it.
pub fn closed(pid: u32) -> Option<Refused> {
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        _ => return None,
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = fs::metadata("/proc/self").ok()?.uid().to_string();
    // Real, effective, saved, and that of file systems.
    let foreign = field(&status, "Uid:")?.split_whitespace().find(|uid| *uid != own);
    let (reason, as_whom) = match foreign {
        Some(uid) => (format!("it belongs to another user (uid {uid})"), "as that user or "),
        None => ("it keeps itself closed to other processes of its user (set-user-id, capabilities, or PR_SET_DUMPABLE)".to_owned(), ""),
    };
    Some(Refused { reason, remedy: format!("run longpole {as_whom}as root, or with the capabilities CAP_PERFMON and CAP_SYS_PTRACE") })
}

/// Waits until the process has ended, the time is over, or somebody asked to stop ([`install_interrupts`](crate::launch::signals::install_interrupts)).
pub fn wait_for_end(pid: u32, patience: Option<Duration>) {
    // Before Linux 5.3, and where a filter refuses it, the process has no descriptor.
    let process = match open_process(pid) {
        Ok(process) => Some(process),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
        Err(_) => None,
    };
    let begun = Instant::now();
    let mut set = WaitSet::new(process.iter().map(AsRawFd::as_raw_fd));
    loop {
        let left = patience.map_or(LOOK_EVERY, |patience| patience.saturating_sub(begun.elapsed()));
        if left.is_zero() || interrupted() {
            return;
        }
        // Rounded up, so that the last wait is not one of no time.
        set.wait(left.min(LOOK_EVERY).as_millis() as i32 + 1);
        let has_ended = if process.is_some() { set.ready(0) != Ready::No } else { find(pid).is_err() };
        if has_ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_thread_means_its_process_and_the_dead_are_told_from_the_unknown() {
        let own = std::process::id();
        let running = find(own).unwrap();
        assert_eq!(running.pid, own);
        assert!(running.command[0].contains("longpole_capture"), "{running:?}");
        let of_a_thread = std::thread::spawn(|| {
            find(std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap())
        });
        assert_eq!(of_a_thread.join().unwrap(), Ok(running));
        assert_eq!(closed(own), None);
        let mut child = Command::new("true").spawn().unwrap();
        while find(child.id()) != Err(Absent::Ended) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(find(child.id()), Err(Absent::Unknown));
    }
}
