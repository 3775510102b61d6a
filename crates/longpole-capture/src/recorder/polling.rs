//! Turns the changes that polling finds into the records that the kernel would have written.

use std::collections::hash_map::Entry;
use std::time::Duration;

use longpole_model::Observation;

use super::drain::{CloseOnDrop, Handover, Taken};
use super::processor::Processor;
use super::stats::Stats;
use crate::cpu_budget::CpuBudget;
use crate::perf::record::{Body, Record};
use crate::procfs::poller::{self, Change, Poller};
use crate::procfs::process_snapshot;
use crate::sink::ObservationWriter;
use crate::span_context::journal_poller::JournalPoller;
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::thread::block_signals_of_this_thread;

/// How old the mappings of a polled process may be when a thread falls asleep. While a program is young and loads its libraries, they may be
/// only as old as the program was when they were read.
const MAPS_NANOS: u64 = 100_000_000;

impl Processor {
    /// Records by polling, until the hand-over is closed.
    pub(super) fn run_watching(mut self, handover: &Handover, mut poller: Poller, mut journals: Option<JournalPoller>) -> Stats {
        let _close = CloseOnDrop(handover);
        block_signals_of_this_thread();
        let mut told = Vec::new();
        let mut poll_journals = |is_last, out: &mut ObservationWriter| {
            if let Some(journals) = &mut journals {
                journals.poll(is_last, &mut told);
                for observation in told.drain(..) {
                    out.give(observation);
                }
            }
        };
        let mut budget = CpuBudget::new(poller::POLL_PART, poller::POLL_NANOS_AT_ONCE);
        loop {
            let before = thread_cpu_nanos();
            self.look_at_tree(&mut poller);
            poll_journals(false, &mut self.out);
            self.keep_up(true);
            if self.is_memory_short {
                break;
            }
            budget.spend(thread_cpu_nanos().saturating_sub(before));
            let pause = budget.wait_nanos(monotonic_nanos()).clamp(poller::PAUSE_NANOS, poller::PAUSE_NANOS_MAX);
            if let Taken::Closed = handover.take(Duration::from_nanos(pause)) {
                break;
            }
        }
        self.look_at_tree(&mut poller);
        poll_journals(true, &mut self.out);
        for (pid, tid, totals) in poller.totals() {
            self.out.give(Observation::ThreadTotals { pid, tid, totals });
        }
        self.end()
    }

    fn look_at_tree(&mut self, poller: &mut Poller) {
        let now = monotonic_nanos();
        self.changed_all(now, poller.poll(|_| false));
        if let Some(loss) = poller.losses() {
            self.out.give(Observation::Loss(loss));
        }
    }

    /// Polls the processes that the kernel stopped sampling.
    pub(super) fn look_at_unsampled(&mut self, now: u64) {
        let tree = &self.tree;
        let (changes, last) = self.unsampled.look(now, |pid| tree.space(pid).is_some());
        if changes.is_empty() {
            return;
        }
        // The end of a child must not be later than the record of its sampled parent going on.
        let (ends, others): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| matches!(change, Change::Ended { .. }));
        self.changed_all(now, others);
        self.changed_all(last, ends);
    }

    fn changed_all(&mut self, now: u64, changes: Vec<Change>) {
        for change in changes {
            self.changed(now, change);
        }
        let mapped_at = std::mem::take(&mut self.mapped_at);
        self.walk_blocked_threads(|pid| mapped_at.get(&pid).map(|(_, last)| *last));
        self.mapped_at = mapped_at;
    }

    /// Processes one change.
    fn changed(&mut self, time: u64, change: Change) {
        let (pid, tid, body) = match &change {
            Change::Forked { pid, parent } => (*pid, *pid, Body::Fork { pid: *pid, tid: *pid, parent_pid: *parent, parent_tid: *parent }),
            Change::Began { pid, tid } => (*pid, *tid, Body::Fork { pid: *pid, tid: *tid, parent_pid: *pid, parent_tid: *pid }),
            Change::Executed { pid, name } => (*pid, *pid, Body::Comm { name: name.as_bytes(), exec: true }),
            Change::Named { pid, tid, name } => (*pid, *tid, Body::Comm { name: name.as_bytes(), exec: false }),
            Change::Ended { pid, tid, totals } => {
                if let Some(totals) = *totals {
                    self.out.give(Observation::ThreadTotals { pid: *pid, tid: *tid, totals });
                }
                (*pid, *tid, Body::Exit { pid: *pid, tid: *tid })
            }
            Change::Asleep { pid, tid, since } => {
                self.waits.switched(*pid, *tid, *since, true);
                let may_be_old = self.mapped_at.get(pid).map_or(0, |(first, last)| MAPS_NANOS.min(last - first));
                return self.map_again(*pid, time, time.saturating_sub(may_be_old));
            }
            Change::Awake { pid, tid, until } => {
                self.waits.switched(*pid, *tid, *until, false);
                if let Some(blocked) = self.waits.over(*tid, time) {
                    self.map_again(*pid, time, blocked.at);
                    let end = blocked.at.max(*until);
                    self.wait(*tid, blocked, end);
                }
                return;
            }
        };
        let record = Record { pid, tid, time, cpu: 0, body };
        self.announce(&record);
        self.count_usage(&record);
        self.record(&record, None);
        if let Change::Executed { pid, .. } = change {
            self.mapped_at.remove(&pid);
            self.map_again(pid, time, time);
        }
    }

    /// Reads the mappings of a process, if they were last read before `since`.
    fn map_again(&mut self, pid: u32, now: u64, since: u64) {
        let (_, last) = match self.mapped_at.entry(pid) {
            Entry::Occupied(known) if known.get().1 >= since => return,
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert((now, now)),
        };
        *last = now;
        self.found_code(pid, now, &process_snapshot::maps_of(pid));
    }
}
