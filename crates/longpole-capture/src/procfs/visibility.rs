//! Whether a watched process goes on, where `/proc` may hide it.
//!
//! ```text
//! hidepid=2     sh ──── exec sudo ───────────┤        a plain user, and what runs as another user or may be run and not read
//! /proc/PID     shown ──╡ hidden             ╎        as if it had ended
//! descriptor            └ not readable ─ … ─ ┘ readable: it has ended
//! ```

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::procfs::stat::Stat;
use crate::sys::clock::monotonic_nanos;
use crate::sys::descriptors::{Ready, WaitSet};
use crate::sys::limits::open_files_limit;
use crate::sys::pidfd::open_process;

/// Part of the descriptors that is left to all others, as for binaries.
const DESCRIPTORS_PART: usize = 4;

/// How a process is seen that goes on.
#[derive(Debug)]
pub(crate) enum Visibility {
    /// `/proc` shows it: when it was made, in ticks, tells it from a later one of the same number.
    Shown { start: u64 },
    /// `/proc` does not, since then; the descriptor is readable once it has ended.
    Hidden { process: File, since: u64 },
}

impl Visibility {
    /// That of a process of which `/proc` has just said this; `None` where it has ended.
    pub(crate) fn of(pid: u32, stat: Option<&Stat>) -> Option<Visibility> {
        match stat {
            Some(stat) => (!stat.has_ended).then_some(Visibility::Shown { start: stat.start }),
            None => {
                // Numbers of processes are given out in turn: what has this one now had it when its last record was written.
                let process = open_process(pid).ok()?;
                let is_one_of_too_many =
                    process.as_raw_fd().unsigned_abs() as usize >= open_files_limit() / DESCRIPTORS_PART * (DESCRIPTORS_PART - 1);
                (!is_one_of_too_many && !has_ended(&process)).then(|| Visibility::Hidden { process, since: monotonic_nanos() })
            }
        }
    }

    /// Whether the process goes on of which `/proc` has just said this.
    pub(crate) fn goes_on(&mut self, pid: u32, stat: Option<&Stat>) -> bool {
        let now = match (&*self, stat) {
            (Visibility::Shown { start }, Some(stat)) if stat.start != *start => None,
            (Visibility::Hidden { process, .. }, _) if has_ended(process) => None,
            (Visibility::Hidden { .. }, None) => return true,
            // What was hidden has not ended, so the number is still its own, and so is what `/proc` said.
            _ => Visibility::of(pid, stat),
        };
        let goes_on = now.is_some();
        *self = now.unwrap_or(Visibility::Shown { start: 0 });
        goes_on
    }

    pub(crate) fn is_hidden(&self) -> bool {
        matches!(self, Visibility::Hidden { .. })
    }

    /// How long `/proc` has hidden it.
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
    fn what_proc_hides_goes_on_until_it_has_ended() {
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
        assert!(!earlier.goes_on(pid, stat.as_ref()), "its number is another's by now");
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
