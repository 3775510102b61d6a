//! Processes that the kernel stops sampling in the middle of a recording, and their descendants: they are polled instead.
//!
//! ```text
//! plain user   sh ──── exec sudo                                (or another set-user-id program, or one that may not be read)
//! events       ════════╡ an exit record, as if sh had ended     the kernel reports neither it nor its children to this user
//! /proc                └─ poll ─ poll ─ poll ─ … ┤ ended
//! ```

use longpole_model::{Loss, LossKind, ThreadTotals};

use crate::cpu_budget::CpuBudget;
use crate::procfs::poller::{self, Change, Poller};
use crate::sys::clock::thread_cpu_nanos;
use longpole_model::fast_hash::FastMap;

/// The trees of such processes.
pub(crate) struct Unsampled {
    poller: Poller,
    /// Recent execs: the time of the last one, by process.
    execs: FastMap<u32, u64>,
    /// Totals of first threads from before the recording began, by process.
    before: FastMap<u32, ThreadTotals>,
    budget: CpuBudget,
    next_look: u64,
    last_look: u64,
    /// Programs not yet reported.
    untold: u64,
}

impl Unsampled {
    pub(crate) fn new() -> Unsampled {
        let budget = CpuBudget::new(poller::POLL_PART, poller::POLL_NANOS_AT_ONCE);
        Unsampled {
            poller: Poller::default(),
            execs: FastMap::default(),
            before: FastMap::default(),
            budget,
            next_look: u64::MAX,
            last_look: 0,
            untold: 0,
        }
    }

    /// A process was running when the recording began.
    pub(crate) fn found(&mut self, pid: u32) {
        self.before.extend(poller::totals_of(pid).map(|totals| (pid, totals)));
    }

    /// An exit record has arrived. If the process still exists, it is polled from the turn of this record on.
    pub(crate) fn exit_arrived(&mut self, pid: u32, time: u64) {
        if self.execs.get(&pid).is_none_or(|exec| *exec < time) {
            let before = self.before.get(&pid).copied().unwrap_or_default();
            match self.poller.add(pid, time, before) {
                Some(visibility) => self.untold += u64::from(!visibility.is_hidden()),
                None => _ = self.before.remove(&pid),
            }
        }
    }

    /// A record of an exec has arrived, so the process is sampled.
    pub(crate) fn exec_arrived(&mut self, pid: u32, time: u64) {
        self.execs.entry(pid).and_modify(|last| *last = time.max(*last)).or_insert(time);
        if self.poller.forget(pid, time).is_some_and(|visibility| !visibility.is_hidden()) {
            self.untold = self.untold.saturating_sub(1);
        }
    }

    /// All records up to `horizon` have arrived.
    pub(crate) fn all_arrived(&mut self, horizon: u64) {
        self.execs.retain(|_, time| *time > horizon);
    }

    /// Whether the process still exists whose exit record has its turn at `now`.
    pub(crate) fn outlives_its_exit(&mut self, pid: u32, now: u64) -> bool {
        let goes_on = self.has(pid);
        if goes_on {
            self.next_look = self.next_look.min(now);
            self.last_look = self.last_look.max(now);
        }
        goes_on
    }

    /// Whether a process is polled.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.poller.has(pid)
    }

    /// When to poll next.
    pub(crate) fn next_look(&self) -> Option<u64> {
        Some(self.next_look).filter(|next| *next < u64::MAX)
    }

    /// Polls. Returns what has changed, and the time of the poll before. Processes that are `sampled` are left out, whoever started them.
    pub(crate) fn look(&mut self, now: u64, sampled: impl Fn(u32) -> bool) -> (Vec<Change>, u64) {
        let before = thread_cpu_nanos();
        let changes = self.poller.poll(sampled);
        for change in &changes {
            if let Change::Ended { pid, tid, .. } = change
                && pid == tid
            {
                self.before.remove(pid);
            }
        }
        self.budget.spend(thread_cpu_nanos().saturating_sub(before));
        let pause = self.budget.wait_nanos(now).clamp(poller::PAUSE_NANOS, poller::PAUSE_NANOS_MAX);
        self.next_look = if self.poller.is_empty() { u64::MAX } else { now + pause };
        (changes, std::mem::replace(&mut self.last_look, now))
    }

    /// The processes that are polled.
    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// What could not be sampled and is not yet reported.
    pub(crate) fn losses(&mut self) -> impl Iterator<Item = Loss> {
        let count = std::mem::take(&mut self.untold);
        let detail = "programs that run as another user (sudo, set-user-id) or whose file the user cannot read: the kernel stops sampling \
                      them and everything they start, so longpole only polls them in /proc; as root, longpole samples them";
        let shown = (count > 0).then(|| Loss::new(LossKind::ProfilingRefused, count, detail));
        shown.into_iter().chain(self.poller.losses())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::sys::clock::monotonic_nanos;

    #[test]
    fn an_exec_after_the_exit_record_shows_that_sampling_goes_on() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, time) = (child.id(), monotonic_nanos());
        let after = |arrive: &dyn Fn(&mut Unsampled)| {
            let mut unsampled = Unsampled::new();
            arrive(&mut unsampled);
            (unsampled.outlives_its_exit(pid, time), unsampled.losses().count() == 1)
        };
        assert_eq!(after(&|it| it.exit_arrived(pid, time)), (true, true), "sudo");
        // The exec of the program that is no longer sampled comes first.
        let executed_before = |it: &mut Unsampled| {
            it.exec_arrived(pid, time - 1);
            it.exit_arrived(pid, time);
        };
        assert_eq!(after(&executed_before), (true, true));
        // The ring buffers of two CPUs are read one after the other, so records arrive in either order.
        let exec_first = |it: &mut Unsampled| {
            it.exec_arrived(pid, time + 1);
            it.exit_arrived(pid, time);
        };
        let exit_first = |it: &mut Unsampled| {
            it.exit_arrived(pid, time);
            it.exec_arrived(pid, time + 1);
        };
        assert_eq!((after(&exec_first), after(&exit_first)), ((false, false), (false, false)), "another thread executed");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn totals_from_before_the_recording_are_left_out() {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = shell.id();
        let worked = poller::totals_of(pid).unwrap().on_cpu_nanos;
        let counted = |attach: &dyn Fn(&mut Unsampled)| {
            let mut unsampled = Unsampled::new();
            attach(&mut unsampled);
            unsampled.exit_arrived(pid, monotonic_nanos());
            unsampled.look(monotonic_nanos(), |_| false);
            unsampled.poller().totals().map(|(_, _, totals)| totals.on_cpu_nanos).sum::<u64>()
        };
        // The shell does a little work between writing its line and waiting for ours.
        assert!(counted(&|it| it.found(pid)) < worked / 2, "attach");
        assert!(counted(&|_| {}) >= worked, "run");
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        shell.wait().unwrap();
    }
}
