//! The running process that `attach` records.

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

/// How often to check for an interrupt: a signal that comes just before the wait, or to another thread, ends no poll(2).
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its id.
    pub pid: u32,
    /// Its command line; its name if it has none, like a kernel thread.
    pub command: Vec<String>,
}

/// Why there is no process to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// There is no process or thread with this id.
    Unknown,
    /// It has ended and waits to be reaped.
    Ended,
}

/// Finds the process with this id. The id of a thread means its process, as it does for `kill`.
///
/// # Errors
///
/// Why there is none.
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

/// The value of a field of a `status` file (proc_pid_status(5)).
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Why this user may read neither the system calls nor the memory of a process; `None` if it may. Without them there is nothing to record.
pub fn closed(pid: u32) -> Option<Refused> {
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        _ => return None,
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = fs::metadata("/proc/self").ok()?.uid().to_string();
    // Real, effective, saved and file system user ids.
    let foreign = field(&status, "Uid:")?.split_whitespace().find(|uid| *uid != own).and_then(|uid| uid.parse().ok());
    Some(foreign.map_or(Refused::Undumpable, |uid| Refused::OtherUser { uid }))
}

/// Waits until the process has ended, the time is over, or an interrupt came ([`install_interrupts`](crate::launch::signals::install_interrupts)).
pub fn wait_for_end(pid: u32, patience: Option<Duration>) {
    // Before Linux 5.3, and behind some seccomp filters, there is no pidfd.
    let process = match open_process(pid) {
        Ok(process) => Some(process),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
        Err(_) => None,
    };
    let mut set = WaitSet::new(process.iter().map(AsRawFd::as_raw_fd));
    wait(&mut set, patience, |set| if process.is_some() { set.ready(0) != Ready::No } else { find(pid).is_err() });
}

/// Waits until the time is over, or an interrupt came.
pub fn wait_for_interrupt(patience: Duration) {
    wait(&mut WaitSet::new(std::iter::empty()), Some(patience), |_| false);
}

fn wait(set: &mut WaitSet, patience: Option<Duration>, has_ended: impl Fn(&mut WaitSet) -> bool) {
    let begun = Instant::now();
    loop {
        let left = patience.map_or(LOOK_EVERY, |patience| patience.saturating_sub(begun.elapsed()));
        if left.is_zero() || interrupted() {
            return;
        }
        // Rounded up, so that the last wait is not empty.
        set.wait(left.min(LOOK_EVERY).as_millis() as i32 + 1);
        if has_ended(set) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_thread_means_its_process_and_an_ended_one_is_not_unknown() {
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
