//! Whether a polled process still exists, where `/proc` may hide it (proc(5), `hidepid`).
//!
//! ```text
//! hidepid=2     sh ──── exec sudo ───────────┤        another user's program, or one that may be executed and not read
//! /proc/PID     shown ──╡ hidden             ╎        as if the process had ended
//! pidfd                 └ not readable ─ … ─ ┘ readable: the process has ended
//! ```

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::procfs::stat::Stat;
use crate::sys::clock::monotonic_nanos;
use crate::sys::descriptors::{Ready, WaitSet};
use crate::sys::limits::open_files_limit;
use crate::sys::pidfd::open_process;

/// One part in this many of the descriptors is left for other uses, such as binaries.
const DESCRIPTORS_PART: usize = 4;

/// How an existing process can be seen.
#[derive(Debug)]
pub(crate) enum Visibility {
    /// `/proc` shows it. Its start time, in ticks, tells it from a later process with the same id.
    Shown { start: u64 },
    /// `/proc` has hidden it since then. Its pidfd becomes readable when it ends.
    Hidden { process: File, since: u64 },
}

impl Visibility {
    /// The visibility of a process with this `stat` file, read just now; `None` if it has ended.
    pub(crate) fn of(pid: u32, stat: Option<&Stat>) -> Option<Visibility> {
        match stat {
            Some(stat) => (!stat.has_ended).then_some(Visibility::Shown { start: stat.start }),
            None => {
                // The kernel hands out process ids in turn, so the process that has this id now is the one that wrote the last record.
                let process = open_process(pid).ok()?;
                let is_one_of_too_many =
                    process.as_raw_fd().unsigned_abs() as usize >= open_files_limit() / DESCRIPTORS_PART * (DESCRIPTORS_PART - 1);
                (!is_one_of_too_many && !has_ended(&process)).then(|| Visibility::Hidden { process, since: monotonic_nanos() })
            }
        }
    }

    /// Whether the process still exists, given its `stat` file, read just now.
    pub(crate) fn goes_on(&mut self, pid: u32, stat: Option<&Stat>) -> bool {
        let now = match (&*self, stat) {
            (Visibility::Shown { start }, Some(stat)) if stat.start != *start => None,
            (Visibility::Hidden { process, .. }, _) if has_ended(process) => None,
            (Visibility::Hidden { .. }, None) => return true,
            // The hidden process has not ended, so the id and the `stat` file are still its own.
            _ => Visibility::of(pid, stat),
        };
        let goes_on = now.is_some();
        *self = now.unwrap_or(Visibility::Shown { start: 0 });
        goes_on
    }

    pub(crate) fn is_hidden(&self) -> bool {
        matches!(self, Visibility::Hidden { .. })
    }

    /// For how long `/proc` has hidden it.
    pub(crate) fn hidden_nanos(&self) -> u64 {
        match self {
            Visibility::Shown { .. } => 0,
            Visibility::Hidden { since, .. } => monotonic_nanos().saturating_sub(*since),
        }
    }
}

fn has_ended(process: &File) -> bool {
    let mut set = WaitSet::new([process.as_raw_fd()]);
    set.wait(0);
    set.ready(0) != Ready::No
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_hidden_process_exists_until_its_pidfd_is_readable() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        let stat = Stat::of_process(pid);
        let mut visibility = Visibility::of(pid, stat.as_ref()).unwrap();
        assert!(!visibility.is_hidden());
        // It executes sudo, and sudo becomes what it was.
        assert!(visibility.goes_on(pid, None) && visibility.is_hidden());
        assert!(visibility.goes_on(pid, None) && visibility.is_hidden());
        assert!(visibility.goes_on(pid, stat.as_ref()) && !visibility.is_hidden());
        let mut earlier = Visibility::Shown { start: stat.as_ref().unwrap().start - 1 };
        assert!(!earlier.goes_on(pid, stat.as_ref()), "another process has its id now");
        let mut hidden = Visibility::of(pid, None).unwrap();
        assert!(hidden.is_hidden());
        child.kill().unwrap();
        while Visibility::of(pid, None).is_some() {
            std::thread::yield_now();
        }
        // It waits to be reaped, and then it does not.
        assert!(!hidden.goes_on(pid, None));
        let mut shown = Visibility::Shown { start: stat.unwrap().start };
        assert!(!shown.goes_on(pid, Stat::of_process(pid).as_ref()));
        child.wait().unwrap();
        assert!(!hidden.goes_on(pid, None) && Visibility::of(pid, None).is_none());
    }
}
