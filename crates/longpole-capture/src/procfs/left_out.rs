//! Processes that a recorder of a host leaves out, because they hold up whoever reads their memory.
//!
//! A process can keep the lock of its own address space for ever: one thread reads a page of a file whose file system never answers, another
//! one waits to map something. Then all who read its command line, its environment or its memory wait as well, in a state that only
//! SIGKILL ends, and sometimes not even that. Nothing shows it from outside but that they wait.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use super::command_line::arguments_of;
use super::process_snapshot::{ids_of_tree, pids};
use super::stat::Stat;

/// How long the command line of a process may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most processes to find at a time: each takes [`PATIENCE`], and a thread that stays.
const FOUND_MAX: usize = 16;

/// Processes of a user after which none of this user is read.
const OF_USER_MAX: usize = 3;

/// Processes and users to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Processes by their id and their start, in ticks since boot.
    processes: Vec<(u32, u64)>,
    /// Their real users.
    users: Vec<u32>,
}

/// A process that holds up its readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldUp {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether no other process of its user is read either.
    pub with_its_user: Option<u32>,
}

impl LeftOut {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Whether to leave out a process.
    pub fn has(&self, pid: u32) -> bool {
        if self.is_empty() {
            return false;
        }
        let start = || Stat::of_process(pid).map(|stat| stat.start);
        self.processes.iter().any(|(known, since)| *known == pid && start() == Some(*since)) || self.has_user_of(pid)
    }

    fn has_user_of(&self, pid: u32) -> bool {
        let is_barred = |user: u32| self.users.iter().filter(|known| **known == user).count() >= OF_USER_MAX;
        user_of(pid).is_some_and(is_barred)
    }

    /// Finds processes that hold up whoever reads their memory, at most [`FOUND_MAX`], and leaves them out. After some of one user, but not root,
    /// all of that user.
    pub fn find_more(&mut self) -> Vec<HeldUp> {
        let all: Arc<[u32]> = pids().filter(|pid| !self.has(*pid)).collect();
        let mut found = Vec::new();
        let mut next = 0;
        while next < all.len() && found.len() < FOUND_MAX {
            let Some(place) = first_that_hangs(&all, next) else { break };
            next = place + 1;
            if !self.has(all[place]) {
                found.extend(self.leave_out(all[place]));
            }
        }
        found
    }

    fn leave_out(&mut self, pid: u32) -> Option<HeldUp> {
        let stat = Stat::of_process(pid)?;
        self.processes.push((pid, stat.start));
        self.users.extend(user_of(pid).filter(|user| *user != 0));
        let with_its_user = if self.has_user_of(pid) { user_of(pid) } else { None };
        Some(HeldUp { pid, name: stat.name, with_its_user })
    }
}

/// As an argument of a command: `17@4711,18@4712;1000,1000`.
impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let processes: Vec<String> = self.processes.iter().map(|(pid, start)| format!("{pid}@{start}")).collect();
        let users: Vec<String> = self.users.iter().map(u32::to_string).collect();
        write!(f, "{};{}", processes.join(","), users.join(","))
    }
}

impl std::str::FromStr for LeftOut {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<LeftOut, Self::Err> {
        let (processes, users) = text.split_once(';').unwrap_or((text, ""));
        let process = |word: &str| {
            let (pid, start) = word.split_once('@').unwrap_or((word, "0"));
            Ok((pid.parse()?, start.parse()?))
        };
        Ok(LeftOut {
            processes: words(processes).map(process).collect::<Result<_, Self::Err>>()?,
            users: words(users).map(str::parse).collect::<Result<_, _>>()?,
        })
    }
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|word| !word.is_empty())
}

/// The process, or the first of those that descend from it, that holds up whoever reads its memory.
pub fn held_up_below(pid: u32) -> Option<u32> {
    let tree: Arc<[u32]> = ids_of_tree(pid).into();
    first_that_hangs(&tree, 0).map(|place| tree[place])
}

/// The first of these processes, from a place on, whose command line does not come.
fn first_that_hangs(all: &Arc<[u32]>, from: usize) -> Option<usize> {
    let at = Arc::new(AtomicUsize::new(from));
    let (done, ended) = channel();
    let (pids, place) = (Arc::clone(all), Arc::clone(&at));
    // It is left behind where it hangs.
    let read = move || {
        for (number, pid) in pids.iter().enumerate().skip(from) {
            place.store(number, Ordering::Relaxed);
            drop(arguments_of(*pid));
        }
        let _ = done.send(());
    };
    Builder::new().name("longpole-probe".to_owned()).spawn(read).ok()?;
    let mut last = usize::MAX;
    loop {
        match ended.recv_timeout(PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = at.load(Ordering::Relaxed);
        if now == last {
            return Some(now);
        }
        last = now;
    }
}

/// The real user of a process. The owner of its folder is root where it forbids dumps.
fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_as_an_argument() {
        let left_out = LeftOut { processes: vec![(17, 4_711), (18, 4_712)], users: vec![1_000, 1_000] };
        assert_eq!(left_out.to_string(), "17@4711,18@4712;1000,1000");
        assert_eq!(left_out.to_string().parse(), Ok(left_out));
        assert_eq!(";".parse(), Ok(LeftOut::default()));
        assert!("x".parse::<LeftOut>().is_err());
    }

    #[test]
    fn a_process_is_left_out_by_its_start_and_a_user_after_some() {
        let own = std::process::id();
        let start = Stat::of_process(own).unwrap().start;
        assert!(LeftOut { processes: vec![(own, start)], users: Vec::new() }.has(own));
        assert!(!LeftOut { processes: vec![(own, start + 1)], users: Vec::new() }.has(own));
        let user = user_of(own).unwrap();
        let of_user = |count: usize| LeftOut { processes: vec![(1, 0)], users: vec![user; count] };
        assert_eq!([OF_USER_MAX - 1, OF_USER_MAX].map(|count| of_user(count).has(own)), [false, true]);
        assert!(!LeftOut::default().has(own));
        // Nothing here hangs.
        assert_eq!(LeftOut::default().find_more(), []);
    }
}
