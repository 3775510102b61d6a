//! Where time went, and what blocked it.

use longpole_analysis::time::states::States;
use longpole_model::{StateKind, SumNanos, WaitKind};
use serde::Serialize;

/// Where time went; the parts, all but `cpu_nanos`, sum to the duration of what they describe.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StatesView {
    /// Running code of its own.
    pub on_cpu_nanos: i64,
    /// Ready to, and without a CPU because others had it.
    pub runnable_nanos: i64,
    /// Covered by children.
    pub in_child_nanos: i64,
    /// Blocked, by what for.
    pub blocked_nanos: BlockedView,
    /// Blocked, and nobody looked what for.
    pub blocked_unseen_nanos: i64,
    /// Open, and no thread worked for it: an asynchronous span between two polls.
    pub awaiting_nanos: i64,
    /// The same of the calling side: the network or another host worked for it.
    pub remote_nanos: i64,
    /// None of these is known.
    pub unaccounted_nanos: i64,
    /// On CPUs, of all its threads together; no part of the sum.
    pub cpu_nanos: i64,
    /// Whether these are the figures, and not an estimate of them.
    pub exact: bool,
    /// `journal`, `inferred` or `samples`.
    pub evidence: &'static str,
}

impl From<States> for StatesView {
    fn from(states: States) -> Self {
        StatesView {
            on_cpu_nanos: states.of(StateKind::OnCpu).0,
            runnable_nanos: states.of(StateKind::Runnable).0,
            in_child_nanos: states.of(StateKind::InChild).0,
            blocked_nanos: BlockedView::new(|kind| states.of(StateKind::Blocked(kind)).0),
            blocked_unseen_nanos: states.of(StateKind::BlockedUnseen).0,
            awaiting_nanos: states.of(StateKind::Awaiting).0,
            remote_nanos: states.of(StateKind::Remote).0,
            unaccounted_nanos: states.of(StateKind::Unaccounted).0,
            cpu_nanos: states.cpu.0,
            exact: states.is_exact(),
            evidence: states.evidence.as_str(),
        }
    }
}

/// Blocked time by what was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BlockedView {
    /// A lock, or another thread to go on.
    pub lock: i64,
    /// Another thread to end.
    pub join: i64,
    /// A file.
    pub disk: i64,
    /// A socket.
    pub network: i64,
    /// Time to pass.
    pub sleep: i64,
    /// Memory to be brought in.
    pub page_fault: i64,
    /// A child process to end.
    pub child: i64,
    /// A pipe.
    pub pipe: i64,
    /// None of these, or not known.
    pub other: i64,
}

impl BlockedView {
    /// What for and how long, longest first; what did not occur is left out.
    pub fn parts(&self) -> Vec<(&'static str, i64)> {
        let BlockedView { lock, join, disk, network, sleep, page_fault, child, pipe, other } = *self;
        let mut parts = vec![
            ("lock", lock),
            ("join", join),
            ("disk", disk),
            ("network", network),
            ("sleep", sleep),
            ("page fault", page_fault),
            ("child", child),
            ("pipe", pipe),
            ("other", other),
        ];
        parts.retain(|(_, nanos)| *nanos > 0);
        parts.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        parts
    }

    /// With another one.
    pub(super) fn plus(&self, other: &Self) -> Self {
        BlockedView {
            lock: self.lock.saturating_add(other.lock),
            join: self.join.saturating_add(other.join),
            disk: self.disk.saturating_add(other.disk),
            network: self.network.saturating_add(other.network),
            sleep: self.sleep.saturating_add(other.sleep),
            page_fault: self.page_fault.saturating_add(other.page_fault),
            child: self.child.saturating_add(other.child),
            pipe: self.pipe.saturating_add(other.pipe),
            other: self.other.saturating_add(other.other),
        }
    }

    /// All of it.
    pub fn sum(&self) -> i64 {
        self.parts().iter().map(|(_, nanos)| nanos).sum_nanos()
    }
}

impl BlockedView {
    pub(super) fn new(of: impl Fn(WaitKind) -> i64) -> Self {
        BlockedView {
            lock: of(WaitKind::Lock),
            join: of(WaitKind::Join),
            disk: of(WaitKind::Disk),
            network: of(WaitKind::Network),
            sleep: of(WaitKind::Sleep),
            page_fault: of(WaitKind::PageFault),
            child: of(WaitKind::Child),
            pipe: of(WaitKind::Pipe),
            other: of(WaitKind::Other),
        }
    }
}
