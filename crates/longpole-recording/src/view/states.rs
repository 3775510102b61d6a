//! Where time went, and what blocked it.

use longpole_analysis::time::states::{StateEvidence, States};
use longpole_model::{StateKind, SumNanos, WaitKind};
use serde::{Deserialize, Serialize};

use super::waits::WaitKindView;

/// Where time went. All parts but `cpu_nanos` sum to the duration of what they describe, to the nanosecond.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StatesView {
    /// Running its own code.
    pub on_cpu_nanos: i64,
    /// Ready to run while others had the CPUs.
    pub runnable_nanos: i64,
    /// Covered by children.
    pub in_child_nanos: i64,
    /// Blocked, by what it waited for.
    pub blocked_nanos: BlockedView,
    /// Blocked in waits that were not sampled: mostly waits shorter than 5 ms.
    pub blocked_unseen_nanos: i64,
    /// Open with no thread working for it and no child: an asynchronous span between two polls.
    pub awaiting_nanos: i64,
    /// The same for a span of kind `client` or `producer`: the network or another host works for it. In estimates, the rest of such a
    /// span.
    pub remote_nanos: i64,
    /// No record tells.
    pub unaccounted_nanos: i64,
    /// On CPUs, summed over all its threads. May exceed the duration; not part of the sum.
    pub cpu_nanos: i64,
    /// False for estimates, and where the recording lost records of a journal or of switches.
    pub exact: bool,
    /// Where the figures come from; for several sources, the weakest.
    pub evidence: StateEvidenceView,
}

/// Where the figures of states come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateEvidenceView {
    /// The journals of its threads and their switch records.
    Journal,
    /// Switch records of a process with one thread, which can only have worked for this span.
    Inferred,
    /// Samples: an estimate.
    Samples,
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
            evidence: states.evidence.into(),
        }
    }
}

/// Blocked time by what it waited for, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedView {
    /// A lock.
    pub lock: i64,
    /// Another thread to go on.
    pub queue: i64,
    /// Another thread to end.
    pub join: i64,
    /// A file.
    pub disk: i64,
    /// A socket.
    pub network: i64,
    /// Time to pass.
    pub sleep: i64,
    /// Memory to be loaded.
    pub page_fault: i64,
    /// A child process to end.
    pub child: i64,
    /// A pipe.
    pub pipe: i64,
    /// Work to arrive.
    pub idle: i64,
    /// Something else, or unknown.
    pub other: i64,
}

impl BlockedView {
    /// What for and how long, longest first; what did not occur is left out.
    pub fn parts(&self) -> Vec<(WaitKindView, i64)> {
        let BlockedView { lock, queue, join, disk, network, sleep, page_fault, child, pipe, idle, other } = *self;
        let mut parts = vec![
            (WaitKindView::Lock, lock),
            (WaitKindView::Queue, queue),
            (WaitKindView::Join, join),
            (WaitKindView::Disk, disk),
            (WaitKindView::Network, network),
            (WaitKindView::Sleep, sleep),
            (WaitKindView::PageFault, page_fault),
            (WaitKindView::Child, child),
            (WaitKindView::Pipe, pipe),
            (WaitKindView::Idle, idle),
            (WaitKindView::Other, other),
        ];
        parts.retain(|(_, nanos)| *nanos > 0);
        parts.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        parts
    }

    /// With another one.
    pub(super) fn plus(&self, other: &Self) -> Self {
        BlockedView {
            lock: self.lock.saturating_add(other.lock),
            queue: self.queue.saturating_add(other.queue),
            join: self.join.saturating_add(other.join),
            disk: self.disk.saturating_add(other.disk),
            network: self.network.saturating_add(other.network),
            sleep: self.sleep.saturating_add(other.sleep),
            page_fault: self.page_fault.saturating_add(other.page_fault),
            child: self.child.saturating_add(other.child),
            pipe: self.pipe.saturating_add(other.pipe),
            idle: self.idle.saturating_add(other.idle),
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
            queue: of(WaitKind::Queue),
            join: of(WaitKind::Join),
            disk: of(WaitKind::Disk),
            network: of(WaitKind::Network),
            sleep: of(WaitKind::Sleep),
            page_fault: of(WaitKind::PageFault),
            child: of(WaitKind::Child),
            pipe: of(WaitKind::Pipe),
            idle: of(WaitKind::Idle),
            other: of(WaitKind::Other),
        }
    }
}

impl From<StateEvidence> for StateEvidenceView {
    fn from(it: StateEvidence) -> Self {
        match it {
            StateEvidence::Journal => StateEvidenceView::Journal,
            StateEvidence::Inferred => StateEvidenceView::Inferred,
            StateEvidence::Samples => StateEvidenceView::Samples,
        }
    }
}
