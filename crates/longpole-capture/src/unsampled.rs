//! Programs off which the kernel takes sampling in the middle of the recording, and all that they start.
//!
//! ```text
//! plain user   sh ──── exec sudo                                (or what else is set-user-id, or may be run and not read)
//! events       ════════╡ an exit record, as if sh had ended     whoever may not see what runs gets no records of it, nor of its children
//! /proc                └─ look ─ look ─ look ─ … ┤ ended        so these are watched by looking
//! ```

use longpole_model::{Loss, LossKind};

use crate::allowance::Allowance;
use crate::sys::perf::thread_cpu_nanos;
use crate::watch::{self, Change, Watch};

/// The trees of such programs.
pub(crate) struct Unsampled {
    watch: Watch,
    allowance: Allowance,
    next_look: u64,
    last_look: u64,
    /// Programs since that was last told.
    untold: u64,
}

impl Unsampled {
    pub(crate) fn new() -> Unsampled {
        let allowance = Allowance::new(watch::LOOKS_PART, watch::LOOKS_NANOS_AT_ONCE);
        Unsampled { watch: Watch::default(), allowance, next_look: u64::MAX, last_look: 0, untold: 0 }
    }

    /// An exit record of a process has arrived. Where the process goes on, it is watched from the turn of the record on.
    pub(crate) fn exit_arrived(&mut self, pid: u32, time: u64) {
        self.untold += u64::from(self.watch.add(pid, time));
    }

    /// Whether a process goes on whose exit record has its turn.
    pub(crate) fn goes_on(&mut self, pid: u32, now: u64) -> bool {
        if self.has(pid) {
            self.next_look = self.next_look.min(now);
            self.last_look = self.last_look.max(now);
        }
        self.has(pid)
    }

    /// Whether a process is watched.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.watch.has(pid)
    }

    /// When to look next.
    pub(crate) fn next_look(&self) -> Option<u64> {
        Some(self.next_look).filter(|next| *next < u64::MAX)
    }

    /// Looks: what is different, and when that was looked at last. Processes that are `sampled` are not watched, whoever started them.
    pub(crate) fn look(&mut self, now: u64, sampled: impl Fn(u32) -> bool) -> (Vec<Change>, u64) {
        let before = thread_cpu_nanos();
        let changes = self.watch.look(sampled);
        self.allowance.spend(thread_cpu_nanos().saturating_sub(before));
        let pause = self.allowance.wait_nanos(now).clamp(watch::PAUSE_NANOS, watch::PAUSE_NANOS_MAX);
        self.next_look = if self.watch.is_empty() { u64::MAX } else { now + pause };
        (changes, std::mem::replace(&mut self.last_look, now))
    }

    /// What is watched.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// What could not be sampled since it was last told.
    pub(crate) fn losses(&mut self) -> Option<Loss> {
        let count = std::mem::take(&mut self.untold);
        let detail = "programs that run as another user (sudo, set-user-id) or that may be run and not read: the kernel takes sampling off them \
                      and off all that they start, which are watched by /proc alone; as root, longpole samples them";
        (count > 0).then(|| Loss::new(LossKind::ProfilingRefused, count, detail))
    }
}
