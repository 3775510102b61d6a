//! What there is to know of a process that is to be looked at while it runs.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::process_tree::arguments_of;
use crate::signals;
use crate::sys::perf::{Ready, WaitSet, open_process};

/// Longest time until it is noticed that somebody asked to stop: the signal may come just before the wait, or to another thread, and
/// then it ends no `poll`.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The command line of a process; its name where it has none, as a thread of the kernel. `None` where there is no such process.
pub fn command_of(pid: u32) -> Option<Vec<String>> {
    let arguments = arguments_of(pid);
    if !arguments.is_empty() {
        return Some(arguments);
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(vec![name.trim().to_owned()])
}

/// Waits until the process has ended, the time is over, or somebody asked to stop ([`signals::install_interrupts`]).
pub fn wait_for_end(pid: u32, patience: Option<Duration>) -> io::Result<()> {
    let process = match open_process(pid) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
        Err(error) => return Err(error),
    };
    let begun = Instant::now();
    let mut set = WaitSet::new([process.as_raw_fd()]);
    loop {
        let left = patience.map_or(LOOK_EVERY, |patience| patience.saturating_sub(begun.elapsed()));
        if left.is_zero() || signals::interrupted() {
            return Ok(());
        }
        // Rounded up, so that the last wait is not one of no time.
        set.wait(left.min(LOOK_EVERY).as_millis() as i32 + 1);
        if set.ready(0) != Ready::No {
            return Ok(());
        }
    }
}
