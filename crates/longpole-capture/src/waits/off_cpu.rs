//! Which threads are blocked, and when to probe each of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use longpole_model::WaitKind;

use super::blocked_call::Denied;
use super::blocked_thread::BlockedThread;
use super::goroutines::GoPrograms;
use super::listeners::Listeners;
use super::probe::{Probed, probe};
use crate::cpu_budget::CpuBudget;
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::remote_memory::StackPages;
use longpole_model::fast_hash::FastMap;

/// Shorter waits are not probed, except for a thread that waits for a disk, or that has many short waits.
pub(crate) const THRESHOLD_NANOS: u64 = 5_000_000;

/// A longer wait is missed only if the recorder was busy; a shorter one may end before the record of its beginning arrives.
const LONG_NANOS: u64 = 20_000_000;

/// The threshold for a thread that waited for a disk, and how long after that wait it applies: one call waits for many blocks, one after the
/// other, and most of these waits are short.
const DISK_THRESHOLD_NANOS: u64 = 500_000;
const DISK_NANOS: u64 = 20_000_000;

/// For how long after a probe that found a disk wait records are wanted soon, so that the end of the wait is not missed.
const DISK_HURRY_NANOS: u64 = 100_000_000;

/// A thread that was blocked for this long in unprobed waits is probed at once at its next wait, however short: a few probes show what most
/// of its short waits are for.
const UNSEEN_NANOS: u64 = 20_000_000;

/// By how much a probe may be delayed to be made together with later ones.
const GATHER_NANOS: u64 = 500_000;

/// Probes may take one part in this many of a CPU on average. At 7 to 60 µs each that is 300 to 3,000 probes a second.
const PROBES_PART: i64 = 50;

/// CPU time that probes may take in a burst: for a few hundred threads that block at the same time.
const PROBES_NANOS_AT_ONCE: i64 = 10_000_000;

/// CPU time that must be available again after the budget was used up: for ten probes.
const PROBES_NANOS_GATHERED: i64 = 250_000;

/// Most stacks held at a time: 32 MB.
const HELD_MAX: usize = 2_000;

/// The last switch of a thread among the records that have arrived.
#[derive(Debug, Clone, Copy)]
struct Switch {
    time: u64,
    /// The thread was switched out because it had to wait, not to make room for another.
    blocked: bool,
    /// Whether a probe is scheduled, for this switch or for an earlier one.
    is_due: bool,
    /// Whether the last probe found it waiting for a disk.
    on_disk: OnDisk,
    /// How long it was blocked in total since its last probe.
    unseen_nanos: u64,
    /// The pages of its stack at its last probe.
    stack: StackPages,
}

/// Whether a thread waits for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    /// It did not.
    No,
    /// It did, and that wait goes on.
    Now,
    /// It did, and the lower threshold applies until this time.
    Until(u64),
}

impl Switch {
    /// How long the thread must be blocked before it is probed.
    fn threshold_nanos(&self) -> u64 {
        match self.on_disk {
            _ if self.unseen_nanos >= UNSEEN_NANOS => 0,
            OnDisk::Until(until) if self.time < until => DISK_THRESHOLD_NANOS,
            _ => THRESHOLD_NANOS,
        }
    }
}

/// A wait that was long enough to be probed.
#[derive(Debug)]
struct ProbedWait {
    /// When the thread was switched out.
    since: u64,
    /// Results of its probes, oldest first: two if the first was early; none while probes are over budget.
    results: Vec<BlockedThread>,
}

/// Blocked threads, and the waits that were probed.
#[derive(Debug)]
pub(crate) struct Waits {
    switches: FastMap<u32, Switch>,
    /// By thread, oldest first: a thread may block again before the record of its waking has had its turn.
    probed: FastMap<u32, VecDeque<ProbedWait>>,
    /// Stacks held.
    held: usize,
    /// Threads whose stack is held and not yet unwound.
    unwalked: Vec<u32>,
    /// Scheduled probes, at most one for a thread: when, process, thread, and since when the thread must be blocked.
    due: BinaryHeap<Reverse<(u64, u32, u32, u64)>>,
    budget: CpuBudget,
    listeners: Listeners,
    pub(crate) go_programs: GoPrograms,
    /// Until when records are wanted soon.
    hurry_until: u64,
    /// Waits that were not probed in time, because there were too many or the recorder was busy: those shorter than [`LONG_NANOS`].
    pub(crate) skipped: u64,
    /// The longer ones.
    pub(crate) skipped_long: u64,
    /// Probes that the kernel denied.
    pub(crate) refused: u64,
}

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits {
            switches: FastMap::default(),
            probed: FastMap::default(),
            held: 0,
            unwalked: Vec::new(),
            due: BinaryHeap::new(),
            budget: CpuBudget::new(PROBES_PART, PROBES_NANOS_AT_ONCE),
            listeners: Listeners::default(),
            go_programs: GoPrograms::new(),
            hurry_until: 0,
            skipped: 0,
            skipped_long: 0,
            refused: 0,
        }
    }

    /// A record of a switch has arrived, possibly out of order.
    pub(crate) fn switched(&mut self, pid: u32, tid: u32, time: u64, blocked: bool) {
        let new = || Switch { time: 0, blocked: false, is_due: false, on_disk: OnDisk::No, unseen_nanos: 0, stack: StackPages::default() };
        let last = self.switches.entry(tid).or_insert_with(new);
        if time < last.time {
            return;
        }
        let since = std::mem::replace(&mut last.time, time);
        let was_blocked = std::mem::replace(&mut last.blocked, blocked);
        if was_blocked && !blocked {
            let wait = self.probed.get(&tid).and_then(|waits| waits.back()).filter(|wait| wait.since == since);
            // A probe after this wait ended says nothing about it.
            let was_probed = wait.and_then(|wait| wait.results.first()).is_some_and(|blocked| blocked.at <= time);
            last.unseen_nanos = if was_probed { 0 } else { last.unseen_nanos.saturating_add(time - since) };
            if wait.is_none() && time - since >= LONG_NANOS {
                self.probed.entry(tid).or_default().push_back(ProbedWait { since, results: Vec::new() });
            }
        }
        if last.on_disk == OnDisk::Now {
            last.on_disk = OnDisk::Until(time + DISK_NANOS);
        }
        if let OnDisk::Until(until) = last.on_disk {
            self.hurry_until = self.hurry_until.max(until);
        }
        if blocked && !std::mem::replace(&mut last.is_due, true) {
            self.due.push(Reverse((time + last.threshold_nanos(), pid, tid, time)));
        }
    }

    /// Until when records are wanted soon, because a thread may have short waits for a disk.
    pub(crate) fn hurry_until(&self) -> u64 {
        self.hurry_until
    }

    /// A thread has ended.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.switches.remove(&tid);
    }

    /// When to probe next. Threads that blocked one after the other are probed together: to be woken takes as long as a probe.
    pub(crate) fn next_probe(&mut self) -> Option<u64> {
        self.next_due().map(|due| (due + GATHER_NANOS).max(self.budget.available_at(PROBES_NANOS_GATHERED)))
    }

    /// When the next probe is due.
    fn next_due(&mut self) -> Option<u64> {
        while let Some(Reverse((due, pid, tid, since))) = self.due.peek().copied() {
            // A thread that blocks ten thousand times a second must not wake the recorder as often.
            match self.switches.get_mut(&tid).filter(|last| last.is_due) {
                Some(last) if last.blocked && last.time == since => return Some(due),
                Some(last) if last.blocked => {
                    self.due.pop();
                    self.due.push(Reverse((last.time + last.threshold_nanos(), pid, tid, last.time)));
                }
                last => {
                    last.into_iter().for_each(|last| last.is_due = false);
                    self.due.pop();
                }
            }
        }
        None
    }

    /// Probes the threads that have been blocked for long enough; whether one was found blocked. `hint` returns the address at which the
    /// context record of a thread was found last. `polling` is extended by those that wait for several descriptors, each with its process, unless they
    /// are idle.
    pub(crate) fn probe(&mut self, now: u64, hint: impl Fn(u32) -> Option<u64>, polling: &mut Vec<(u32, u32)>) -> bool {
        let mut found_one = false;
        while self.next_due().is_some_and(|due| due <= now)
            && let Some(Reverse((_, pid, tid, since))) = self.due.pop()
        {
            let mut unknown = StackPages::default();
            let pages = match self.switches.get_mut(&tid) {
                Some(last) => {
                    last.is_due = false;
                    &mut last.stack
                }
                None => &mut unknown,
            };
            let mut result = None;
            if self.held < HELD_MAX && self.budget.has_some(now) {
                let before = thread_cpu_nanos();
                let outcome = probe((pid, tid, since), hint(tid), pages);
                let (listeners, go_programs) = (&mut self.listeners, &mut self.go_programs);
                let outcome = outcome.map(|probed| probed.map(|probed| (probed.call.kind(pid, listeners), probed)));
                self.budget.spend(thread_cpu_nanos() - before);
                let outcome = outcome.map(|probed| {
                    let ((kind, syscall), probed) = probed?;
                    let goroutine = go_programs.awaited((pid, now), &probed.call, &probed.stack, kind);
                    Some((kind, syscall, goroutine, probed))
                });
                match outcome {
                    Ok(Some((mut kind, syscall, goroutine, Probed { call, stack, context, futex, deadline }))) => {
                        if futex.is_some_and(|futex| futex.is_join) {
                            kind = WaitKind::Join;
                        }
                        if kind == WaitKind::Disk {
                            self.hurry_until = self.hurry_until.max(now + DISK_HURRY_NANOS);
                        }
                        if let Some(last) = self.switches.get_mut(&tid) {
                            last.on_disk = if kind == WaitKind::Disk { OnDisk::Now } else { OnDisk::No };
                        }
                        let (at, place) = (monotonic_nanos(), (call.ip, call.sp));
                        let is_polling = call.is_poll() && kind != WaitKind::Idle;
                        if is_polling {
                            polling.push((pid, tid));
                        }
                        result = Some(BlockedThread {
                            pid,
                            since,
                            at,
                            kind,
                            syscall,
                            place,
                            stack,
                            context,
                            futex,
                            deadline,
                            goroutine,
                            is_polling,
                            walked: None,
                        });
                        self.held += 1;
                        self.unwalked.push(tid);
                        found_one = true;
                        if at < since + THRESHOLD_NANOS
                            && let Some(last) = self.switches.get_mut(&tid)
                        {
                            // If it lasts, it is probed again: another thread may hold the lock by then.
                            last.is_due = true;
                            self.due.push(Reverse((since + THRESHOLD_NANOS, pid, tid, since)));
                        }
                    }
                    // It runs again; its record will follow.
                    Ok(None) => continue,
                    Err(Denied) => {
                        self.refused += 1;
                        continue;
                    }
                }
            }
            if result.is_none()
                && let Some(last) = self.switches.get_mut(&tid)
            {
                // Over budget: try later, since one long wait is worth more than many short ones.
                last.is_due = true;
                self.due.push(Reverse((now + (now - since).max(THRESHOLD_NANOS), pid, tid, since)));
            }
            let waits = self.probed.entry(tid).or_default();
            match waits.back_mut().filter(|wait| wait.since == since) {
                // The earlier result stays: it counts if this wait turns out to have ended before the second probe.
                Some(wait) => wait.results.extend(result),
                None => waits.push_back(ProbedWait { since, results: result.into_iter().collect() }),
            }
        }
        found_one
    }

    /// Calls `walk` for each blocked thread whose stack is not yet unwound, until `walk` says it is done. A thread that ends as soon as it
    /// wakes must be unwound while it lives.
    pub(crate) fn walk(&mut self, mut walk: impl FnMut(&mut BlockedThread) -> bool) {
        let probed = &mut self.probed;
        self.unwalked.retain(|tid| {
            let results = probed.get_mut(tid).and_then(|waits| Some(&mut waits.back_mut()?.results));
            results.is_some_and(|results| !results.iter_mut().all(&mut walk))
        });
    }

    /// The result of probing the wait that ends at `time`. Called in order of time.
    pub(crate) fn over(&mut self, tid: u32, time: u64) -> Option<BlockedThread> {
        let waits = self.probed.get_mut(&tid)?;
        let mut last = None;
        while waits.front().is_some_and(|wait| wait.since < time) {
            last = waits.pop_front();
            self.held -= last.as_ref().map_or(0, |wait| wait.results.len());
        }
        if waits.is_empty() {
            self.probed.remove(&tid);
        }
        let ProbedWait { since, mut results } = last?;
        // A probe after the end of this wait found a later one, whose beginning was not known yet.
        results.retain(|blocked| blocked.at <= time);
        if results.is_empty() && time - since >= THRESHOLD_NANOS {
            *if time - since < LONG_NANOS { &mut self.skipped } else { &mut self.skipped_long } += 1;
        }
        results.pop()
    }

    /// The waits that go on when the recording ends.
    pub(crate) fn rest(&mut self) -> Vec<(u32, BlockedThread)> {
        let last = |(tid, mut waits): (u32, VecDeque<ProbedWait>)| Some((tid, waits.pop_back()?.results.pop()?));
        std::mem::take(&mut self.probed).into_iter().filter_map(last).collect()
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::ContextRecord;

    use super::*;

    #[test]
    fn only_blocked_threads_are_probed_and_each_result_belongs_to_one_wait() {
        let mut waits = Waits::new();
        waits.switched(1, 7, 100, true);
        assert_eq!(waits.next_due(), Some(100 + THRESHOLD_NANOS));
        waits.switched(1, 7, 200, false);
        waits.probe(u64::MAX / 4, |_| None, &mut Vec::new());
        assert!(waits.probed.is_empty() && waits.next_due().is_none());
        let (kind, context, stack) = (WaitKind::Lock, ContextRecord::Absent, Vec::new());
        let blocked = |since, at| BlockedThread {
            pid: 1,
            since,
            at,
            kind,
            syscall: "futex",
            place: (0, 0),
            stack: stack.clone(),
            context,
            futex: None,
            deadline: None,
            goroutine: None,
            is_polling: false,
            walked: None,
        };
        let probed = |since, at| ProbedWait { since, results: vec![blocked(since, at)] };
        waits.probed.entry(7).or_default().extend([probed(1_000, 1_500), probed(2_500, 2_900), probed(3_000, 9_000)]);
        waits.held = 3;
        assert!(waits.over(7, 900).is_none(), "an earlier wait");
        assert_eq!(waits.over(7, 2_000).map(|blocked| blocked.since), Some(1_000));
        assert_eq!(waits.over(7, 2_950).map(|blocked| blocked.since), Some(2_500));
        assert!(waits.over(7, 8_000).is_none(), "the probe came after the end of this wait");
        assert_eq!((waits.skipped, waits.held), (0, 0), "and it was short");
        waits.probed.entry(7).or_default().push_back(ProbedWait { since: 10_000, results: Vec::new() });
        assert!(waits.over(7, 10_000 + THRESHOLD_NANOS).is_none());
        waits.probed.entry(7).or_default().push_back(ProbedWait { since: 10_000, results: Vec::new() });
        assert!(waits.over(7, 10_000 + LONG_NANOS).is_none());
        assert_eq!((waits.skipped, waits.skipped_long), (1, 1));
        for (end, at) in [(70_000, 60_000), (50_000, 30_000)] {
            let results = vec![blocked(20_000, 30_000), blocked(20_000, 60_000)];
            waits.probed.entry(7).or_default().push_back(ProbedWait { since: 20_000, results });
            waits.held = 2;
            assert_eq!(waits.over(7, end).map(|blocked| blocked.at), Some(at), "the last probe that was in time");
            assert_eq!(waits.held, 0);
        }
        assert!(waits.rest().is_empty());
    }

    #[test]
    fn a_thread_that_blocks_often_has_one_probe_scheduled_for_its_last_wait() {
        let mut waits = Waits::new();
        for time in (0..1_000).step_by(10) {
            waits.switched(1, 7, time, true);
            waits.switched(1, 7, time + 5, false);
        }
        assert_eq!((waits.due.len(), waits.next_due()), (1, None));
        for time in [2_000, 3_000, 4_000] {
            waits.switched(1, 7, time, true);
        }
        assert_eq!((waits.due.len(), waits.next_due()), (1, Some(4_000 + THRESHOLD_NANOS)));
    }

    #[test]
    fn after_a_disk_wait_a_thread_is_probed_sooner_for_20_ms() {
        let mut waits = Waits::new();
        waits.switched(1, 7, 100, true);
        waits.switches.get_mut(&7).unwrap().on_disk = OnDisk::Now;
        let woken = 15_000_000;
        waits.switched(1, 7, woken, false);
        assert_eq!((waits.next_due(), waits.hurry_until()), (None, woken + DISK_NANOS));
        waits.switched(1, 7, woken + 1_000, true);
        assert_eq!(waits.next_due(), Some(woken + 1_000 + DISK_THRESHOLD_NANOS));
        waits.switched(1, 7, woken + 2_000, false);
        let later = woken + DISK_NANOS;
        waits.switched(1, 7, later, true);
        assert_eq!((waits.next_due(), waits.hurry_until()), (Some(later + THRESHOLD_NANOS), later));
    }

    #[test]
    fn after_20_ms_of_short_waits_a_thread_is_probed_at_once() {
        let mut waits = Waits::new();
        let mut now = 0;
        while now < 2 * UNSEEN_NANOS {
            waits.switched(1, 7, now, true);
            assert_eq!(waits.next_due(), Some(now + if now < UNSEEN_NANOS { THRESHOLD_NANOS } else { 0 }));
            now += 1_000_000;
            waits.switched(1, 7, now, false);
        }
    }
}
