//! Polls `/proc` for a tree of processes, where the kernel refuses performance events: in a container, in a sandbox.
//!
//! ```text
//! poll      |        |        |        |        |        |      every few milliseconds, within a fiftieth of a CPU
//! thread         ├=======..............................====┤    began and ended between two polls
//! turns          1            1        1        1       2      on a CPU, by the scheduler's count: unchanged, the thread slept throughout
//! wait                  |-----------------------------|        at most one interval longer than the thread was found asleep
//! ```
//!
//! A process that lived only between two polls is missed. The scheduler's totals of a thread (time on a CPU, time runnable) are exact as of
//! the last poll, so the rest of the time between two polls is sleep. That rest is added to the wait found at one of the polls, or half of it
//! to each if both found one: a wait that no poll met goes to its neighbour, and their sum is right. The kernel updates the totals of a
//! running thread once a tick (1 to 10 ms), so a wait may seem to end that much later.

use std::collections::HashSet;
use std::fs;

use longpole_model::proc_stat::TICK_NANOS;
use longpole_model::{Loss, LossKind, ThreadTotals};

use crate::procfs::process_snapshot::ProcessSnapshot;
use crate::procfs::stat::Stat;
use crate::procfs::visibility::Visibility;
use crate::sys::clock::{boottime_nanos, monotonic_nanos};
use longpole_model::fast_hash::FastMap;

/// Shortest time between two polls.
pub(crate) const PAUSE_NANOS: u64 = 5_000_000;

/// Longest time between two polls, however large the tree.
pub(crate) const PAUSE_NANOS_MAX: u64 = 1_000_000_000;

/// Polls may take one part in this many of a CPU.
pub(crate) const POLL_PART: i64 = 50;

/// CPU time that polls may take in a burst: the binaries of a program that starts are read once.
pub(crate) const POLL_NANOS_AT_ONCE: i64 = 50_000_000;

/// Most processes that are polled: no command has more.
const PROCESSES_MAX: usize = 4_096;

/// What changed between two polls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A process was forked.
    Forked { pid: u32, parent: u32 },
    /// A process executed a program.
    Executed { pid: u32, name: String },
    /// A thread was made, other than the first of its process.
    Began { pid: u32, tid: u32 },
    /// A thread took another name.
    Named { pid: u32, tid: u32, name: String },
    /// A thread fell asleep.
    Asleep { pid: u32, tid: u32, since: u64 },
    /// A thread that slept has run.
    Awake { pid: u32, tid: u32, until: u64 },
    /// A thread has ended, the last of its process or not; with its last known totals.
    Ended { pid: u32, tid: u32, totals: Option<ThreadTotals> },
}

/// A process at the last poll.
struct KnownProcess {
    visibility: Visibility,
    /// Where its code and its stack begin: another exec puts them elsewhere.
    program: (u64, u64),
    name: String,
    threads: FastMap<u32, KnownThread>,
    /// When the kernel stopped reporting it, if it did.
    unsampled_since: Option<u64>,
    /// Whether it is counted as hidden by `/proc`.
    is_hidden_counted: bool,
}

impl KnownProcess {
    fn new(visibility: Visibility, program: (u64, u64), name: String) -> Self {
        KnownProcess { visibility, program, name, threads: FastMap::default(), unsampled_since: None, is_hidden_counted: false }
    }
}

/// A process hidden for less than this has mostly ended: `/proc` hides an unreadable process also at its end.
const HIDDEN_NANOS_MIN: u64 = 50_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct KnownThread {
    name: String,
    schedule: Option<Schedule>,
    /// Its totals from before the recording began.
    before: ThreadTotals,
    /// When it was polled last.
    polled: u64,
    /// Whether it slept then.
    is_asleep: bool,
}

/// `/proc/PID/task/TID/schedstat`: nanoseconds on a CPU, nanoseconds runnable, and turns on a CPU
/// (`Documentation/scheduler/sched-stats.rst` of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Schedule {
    totals: ThreadTotals,
    turns: u64,
}

/// The tree of processes.
#[derive(Default)]
pub(crate) struct Poller {
    /// The process that waits at its gate at first; 0 if there is none.
    root: u32,
    known: FastMap<u32, KnownProcess>,
    /// Processes hidden by `/proc` and not yet reported.
    hidden: u64,
}

impl Poller {
    /// Polls process `root`, which waits to exec, and its descendants.
    pub(crate) fn new(root: u32) -> Poller {
        let mut known = FastMap::default();
        if let Some(stat) = Stat::of_process(root) {
            // Until its exec it is a copy of this process.
            known.insert(root, KnownProcess::new(Visibility::Shown { start: stat.start }, stat.program, stat.name));
        }
        Poller { root, known, hidden: 0 }
    }

    /// Polls a tree that runs already, and its descendants.
    pub(crate) fn of_running(tree: &[ProcessSnapshot]) -> Poller {
        let mut known = FastMap::default();
        for process in tree {
            let Some(stat) = Stat::of_process(process.pid) else { continue };
            let thread = |tid: u32, name: &String| {
                let before = Schedule::read(process.pid, tid).map(|schedule| schedule.totals).unwrap_or_default();
                (tid, KnownThread { name: name.clone(), before, ..KnownThread::default() })
            };
            let threads = process.threads.iter().map(|it| thread(it.tid, &it.name)).collect();
            known.insert(
                process.pid,
                KnownProcess { threads, ..KnownProcess::new(Visibility::Shown { start: stat.start }, stat.program, stat.name) },
            );
        }
        Poller { root: tree.first().map_or(0, |root| root.pid), known, hidden: 0 }
    }

    /// Polls one more process, if it ran at `time` and still exists, and its descendants. Its totals from `before` the recording began are
    /// subtracted.
    pub(crate) fn add(&mut self, pid: u32, time: u64, before: ThreadTotals) -> Option<&Visibility> {
        // Another process may have its id by now.
        let slept = boottime_nanos().map_or(0, |now| now.saturating_sub(monotonic_nanos()));
        let ran_then = |stat: &Stat| stat.start.saturating_mul(TICK_NANOS) <= time.saturating_add(slept);
        let stat = Stat::of_process(pid);
        if stat.as_ref().is_some_and(|stat| stat.is_ending || !ran_then(stat)) {
            return None;
        }
        let visibility = Visibility::of(pid, stat.as_ref())?;
        let (name, program) = stat.map(|stat| (stat.name, stat.program)).unwrap_or_default();
        let first = KnownThread { name: name.clone(), before, ..KnownThread::default() };
        let threads = [(pid, first)].into_iter().collect();
        let known = KnownProcess { threads, unsampled_since: Some(time), ..KnownProcess::new(visibility, program, name) };
        Some(&self.known.entry(pid).insert_entry(known).into_mut().visibility)
    }

    /// Stops polling a process that was added because its records had ended, if a record of a later `time` arrived after all.
    pub(crate) fn forget(&mut self, pid: u32, time: u64) -> Option<Visibility> {
        self.known.get(&pid).filter(|known| known.unsampled_since.is_some_and(|since| since < time))?;
        let forgotten = self.known.remove(&pid)?;
        self.hidden = self.hidden.saturating_sub(u64::from(forgotten.is_hidden_counted));
        Some(forgotten.visibility)
    }

    /// Whether a process is polled.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.known.contains_key(&pid)
    }

    /// Whether all polled processes have ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Polls all of them. Children that are `known` without it are left out.
    pub(crate) fn poll(&mut self, known: impl Fn(u32) -> bool) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut pids: Vec<u32> = self.known.keys().copied().collect();
        // Parents come before their children, because process ids grow; after they wrap around, a child is found one poll later.
        pids.sort_unstable();
        let mut next = 0;
        while let Some(pid) = pids.get(next).copied() {
            next += 1;
            let Some(children) = self.poll_process(pid, &mut changes) else { continue };
            for child in children {
                if self.known.contains_key(&child) || known(child) || self.known.len() >= PROCESSES_MAX {
                    continue;
                }
                let Some(visibility) = Visibility::of(child, Stat::of_process(child).as_ref()) else { continue };
                changes.push(Change::Forked { pid: child, parent: pid });
                let parent = self.known.get(&pid);
                // It may have executed a program already.
                let program = parent.map(|parent| parent.program).unwrap_or_default();
                let name = parent.map(|parent| parent.name.clone()).unwrap_or_default();
                self.known.insert(child, KnownProcess::new(visibility, program, name));
                pids.push(child);
            }
        }
        changes
    }

    /// Polls one process; its children, if it lives.
    fn poll_process(&mut self, pid: u32, changes: &mut Vec<Change>) -> Option<Vec<u32>> {
        let known = self.known.get_mut(&pid)?;
        let stat = Stat::of_process(pid);
        if !known.visibility.goes_on(pid, stat.as_ref()) {
            let mut ended = self.known.remove(&pid)?;
            // The first thread last: with it the process ends.
            let first = ended.threads.remove(&pid).unwrap_or_default();
            for (tid, thread) in ended.threads.into_iter().chain([(pid, first)]) {
                thread.end(pid, tid, changes);
            }
            return None;
        }
        let Some(stat) = stat else {
            // From now on nobody knows what it does.
            if !known.is_hidden_counted && known.visibility.hidden_nanos() >= HIDDEN_NANOS_MIN {
                known.is_hidden_counted = true;
                self.hidden += 1;
            }
            known.threads.iter_mut().for_each(|(tid, thread)| thread.wake(pid, *tid, thread.polled, changes));
            return None;
        };
        // In the middle of an exec and of its end a process shows no code. One that hides its code never shows any: there a new name tells.
        let is_hidden = stat.program.0 == 0 && known.program.0 == 0 && !known.threads.is_empty();
        let has_executed = if is_hidden { stat.name != known.name } else { stat.program != known.program && stat.program.0 != 0 };
        if has_executed {
            known.program = stat.program;
            known.name = stat.name.clone();
            for (tid, thread) in &mut known.threads {
                thread.wake(pid, *tid, thread.polled, changes);
                thread.name.clone_from(&stat.name);
            }
            changes.push(Change::Executed { pid, name: stat.name.clone() });
            known.threads.retain(|tid, _| *tid == pid);
        }
        let is_gate = pid == self.root && known.threads.is_empty() && !has_executed;
        if is_gate {
            return None;
        }
        let mut children = Vec::new();
        let mut alive = HashSet::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            alive.insert(tid);
            let of_process = known.name.clone();
            let thread = known.threads.entry(tid).or_insert_with(|| {
                if tid != pid {
                    changes.push(Change::Began { pid, tid });
                }
                // A thread starts with the name of the thread that made it.
                KnownThread { name: of_process, ..KnownThread::default() }
            });
            thread.poll(pid, tid, changes);
            children.extend(children_of(pid, tid));
        }
        let gone: Vec<u32> = known.threads.keys().copied().filter(|tid| !alive.contains(tid)).collect();
        for tid in gone {
            if let Some(thread) = known.threads.remove(&tid) {
                thread.end(pid, tid, changes);
            }
        }
        Some(children)
    }

    /// Processes hidden by `/proc` and not yet reported.
    pub(crate) fn losses(&mut self) -> Option<Loss> {
        let count = std::mem::take(&mut self.hidden);
        let detail = "programs that run as another user (sudo, set-user-id) or whose file the user cannot read: the kernel stops sampling \
                      them and /proc hides them (hidepid), so the recording lacks their work and everything they start; as root, longpole \
                      samples them";
        (count > 0).then(|| Loss::new(LossKind::ProfilingRefused, count, detail))
    }

    /// The totals of all threads that live.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (u32, u32, ThreadTotals)> {
        self.known.iter().flat_map(|(pid, known)| known.threads.iter().filter_map(|(tid, thread)| Some((*pid, *tid, thread.totals()?))))
    }
}

impl KnownThread {
    fn poll(&mut self, pid: u32, tid: u32, changes: &mut Vec<Change>) {
        let schedule = Schedule::read(pid, tid);
        let now = monotonic_nanos();
        let (before, polled) = (self.schedule, std::mem::replace(&mut self.polled, now));
        // A thread that has ended meanwhile keeps its last totals.
        self.schedule = schedule.or(before);
        if schedule.is_some() && schedule == before && self.is_asleep {
            // It has not run since, so nothing else has changed.
            return;
        }
        let stat = Stat::of_thread(pid, tid);
        let is_asleep = schedule.is_some() && stat.as_ref().is_some_and(|stat| stat.is_asleep);
        let slept = match (before, schedule) {
            (Some(before), Some(schedule)) => (now - polled).saturating_sub(schedule.awake_nanos().saturating_sub(before.awake_nanos())),
            _ => 0,
        };
        let share = if self.is_asleep && is_asleep { slept / 2 } else { slept };
        self.wake(pid, tid, polled + share, changes);
        if let Some(stat) = stat
            && stat.name != self.name
        {
            self.name.clone_from(&stat.name);
            changes.push(Change::Named { pid, tid, name: stat.name });
        }
        if is_asleep {
            self.is_asleep = true;
            changes.push(Change::Asleep { pid, tid, since: now - share });
        }
    }

    fn wake(&mut self, pid: u32, tid: u32, until: u64, changes: &mut Vec<Change>) {
        if std::mem::take(&mut self.is_asleep) {
            changes.push(Change::Awake { pid, tid, until });
        }
    }

    fn end(mut self, pid: u32, tid: u32, changes: &mut Vec<Change>) {
        self.wake(pid, tid, self.polled, changes);
        changes.push(Change::Ended { pid, tid, totals: self.totals() });
    }

    /// Its totals since the recording began, as of the last poll.
    fn totals(&self) -> Option<ThreadTotals> {
        let ThreadTotals { on_cpu_nanos, ready_nanos } = self.schedule?.totals;
        Some(ThreadTotals {
            on_cpu_nanos: on_cpu_nanos.saturating_sub(self.before.on_cpu_nanos),
            ready_nanos: ready_nanos.saturating_sub(self.before.ready_nanos),
        })
    }
}

impl Schedule {
    /// How long it ran or was runnable.
    fn awake_nanos(&self) -> u64 {
        self.totals.on_cpu_nanos.saturating_add(self.totals.ready_nanos)
    }

    fn read(pid: u32, tid: u32) -> Option<Schedule> {
        Schedule::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Schedule> {
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let (on_cpu_nanos, ready_nanos, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
        // A kernel that does not count shows zeros.
        (turns > 0).then_some(Schedule { totals: ThreadTotals { on_cpu_nanos, ready_nanos }, turns })
    }
}

/// The totals of the first thread of a process up to now.
pub(crate) fn totals_of(pid: u32) -> Option<ThreadTotals> {
    Schedule::read(pid, pid).map(|schedule| schedule.totals)
}

/// The children of a thread, if the kernel lists them (CONFIG_PROC_CHILDREN).
fn children_of(pid: u32, tid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn times_of_the_scheduler_are_read() {
        let schedule = Schedule { totals: ThreadTotals { on_cpu_nanos: 12, ready_nanos: 3 }, turns: 4 };
        assert_eq!(Schedule::parse("12 3 4\n"), Some(schedule));
        assert_eq!((Schedule::parse("0 0 0\n"), Schedule::parse("1 2"), Schedule::parse("a b c")), (None, None, None));
    }

    #[test]
    fn a_thread_that_ends_under_the_look_keeps_what_was_counted() {
        let none_has = 4_000_000_000;
        let totals = ThreadTotals { on_cpu_nanos: 12, ready_nanos: 3 };
        let mut thread = KnownThread { schedule: Some(Schedule { totals, turns: 4 }), ..KnownThread::default() };
        thread.poll(none_has, none_has, &mut Vec::new());
        assert_eq!(thread.totals(), Some(totals));
    }

    /// Looks until something is so; all that changed up to then.
    fn until(poller: &mut Poller, all: &mut Vec<Change>, is_so: impl Fn(&[Change]) -> bool) {
        while !is_so(all) {
            all.extend(poller.poll(|_| false));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_that_began_later_is_another_one() {
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut poller = Poller::default();
        let (second, none) = (1_000_000_000, ThreadTotals::default());
        assert!(poller.add(sleep.id(), monotonic_nanos() - 10 * second, none).is_none() && poller.is_empty());
        assert!(poller.add(sleep.id(), monotonic_nanos(), none).is_some() && poller.has(sleep.id()));
        sleep.kill().unwrap();
        assert!(poller.add(4_000_000_000, monotonic_nanos(), none).is_none());
        // It waits to be reaped.
        let mut all = Vec::new();
        until(&mut poller, &mut all, |all| all.iter().any(|change| matches!(change, Change::Ended { tid, .. } if *tid == sleep.id())));
        assert!(poller.add(sleep.id(), monotonic_nanos(), none).is_none() && poller.is_empty());
        sleep.wait().unwrap();
    }

    #[test]
    fn a_shell_its_child_their_sleep_and_their_ends_are_seen() {
        // What becomes the shell waits at its gate first.
        let mut gate = Command::new("sh");
        gate.args(["-c", "read line; exec sh -c 'sleep 1000 & read line; kill $!; read line; wait'"]).stdin(Stdio::piped());
        let mut shell = gate.spawn().unwrap();
        let pid = shell.id();
        while Stat::of_process(pid).is_none_or(|stat| !stat.is_asleep || stat.name != "sh") {
            std::thread::yield_now();
        }
        let mut poller = Poller::new(pid);
        let mut all = Vec::new();
        assert_eq!(poller.poll(|_| false), []);
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        until(&mut poller, &mut all, |all| all.iter().any(|change| matches!(change, Change::Executed { name, .. } if name == "sleep")));
        let child = all.iter().find_map(|change| if let Change::Forked { pid, .. } = change { Some(*pid) } else { None }).unwrap();
        assert!(all.contains(&Change::Executed { pid, name: "sh".to_owned() }));
        assert!(all.contains(&Change::Forked { pid: child, parent: pid }));
        until(&mut poller, &mut all, |all| {
            let asleep = |it: &Change| matches!(it, Change::Asleep { tid, .. } if *tid == child);
            let executed = all.iter().position(|it| matches!(it, Change::Executed { pid, .. } if *pid == child)).unwrap();
            all[executed..].iter().any(asleep)
        });
        assert!(poller.totals().any(|(_, tid, totals)| tid == child && totals.on_cpu_nanos > 0));
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        // It is reaped, and its totals gone, only when its end was seen.
        until(&mut poller, &mut all, |all| all.iter().any(|change| matches!(change, Change::Ended { tid, .. } if *tid == child)));
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        until(&mut poller, &mut all, |all| all.iter().any(|change| matches!(change, Change::Ended { tid, .. } if *tid == pid)));
        let woke = all.iter().position(|change| matches!(change, Change::Awake { tid, .. } if *tid == child)).unwrap();
        let ended = all.iter().position(|change| matches!(change, Change::Ended { tid, totals: Some(_), .. } if *tid == child)).unwrap();
        assert!(woke < ended);
        assert!(poller.known.is_empty());
        shell.wait().unwrap();
    }
}
