//! Where the time of a span went: the parts, and how each is known. [`activity`](super::activity) finds them.

use longpole_model::{AddNanos, SumNanos, WaitKind};

use crate::time::timelines::{Doing, Piece};

/// How it is known where time went; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StateEvidence {
    /// The journals of its threads, and when these were on a CPU.
    #[default]
    Journal,
    /// When the only thread of its process was on a CPU, and that no other span can have had it.
    Inferred,
    /// Samples, and sampled waits: an estimate.
    Samples,
}

impl StateEvidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            StateEvidence::Journal => "journal",
            StateEvidence::Inferred => "inferred",
            StateEvidence::Samples => "samples",
        }
    }
}

/// Where time went. The parts sum to what is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// At least one thread ran code of it.
    pub on_cpu_nanos: i64,
    /// None did, and one could have, but others had the CPUs.
    pub runnable_nanos: i64,
    /// A child was there.
    pub in_child_nanos: i64,
    /// A thread was blocked: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_nanos: [i64; WaitKind::ALL.len()],
    /// A thread was blocked, and nobody looked what for.
    pub blocked_unseen_nanos: i64,
    /// It was open, and no thread worked for it.
    pub awaiting_nanos: i64,
    /// The same, and it is the calling side of something that the network or another host does.
    pub remote_nanos: i64,
    /// None of these is known.
    pub unaccounted_nanos: i64,
    /// On CPUs, of all its threads together: none of the parts, and may be more than the whole.
    pub cpu_nanos: i64,
    /// How it is known; of several the weakest.
    pub evidence: StateEvidence,
    /// Records are missing that may have been about it.
    pub incomplete: bool,
}

impl States {
    /// All of it.
    pub fn sum(&self) -> i64 {
        self.own().saturating_add(self.in_child_nanos)
    }

    /// Outside of children.
    pub fn own(&self) -> i64 {
        let parts =
            [self.on_cpu_nanos, self.runnable_nanos, self.blocked(), self.awaiting_nanos, self.remote_nanos, self.unaccounted_nanos];
        parts.into_iter().sum_nanos()
    }

    /// Blocked, whatever for.
    pub fn blocked(&self) -> i64 {
        self.blocked_nanos.iter().sum_nanos::<i64>().saturating_add(self.blocked_unseen_nanos)
    }

    /// What it was blocked for longest, and how long.
    pub fn longest_wait(&self) -> Option<(WaitKind, i64)> {
        let kinds = WaitKind::ALL.into_iter().zip(self.blocked_nanos).rev();
        kinds.max_by_key(|(_, nanos)| *nanos).filter(|(_, nanos)| *nanos > 0)
    }

    /// Whether these are the figures, and not an estimate of them.
    pub fn is_exact(&self) -> bool {
        self.evidence != StateEvidence::Samples && !self.incomplete
    }

    pub(super) fn add(&mut self, piece: &Piece) {
        let part = match piece.doing {
            Doing::OnCpu => &mut self.on_cpu_nanos,
            Doing::Runnable => &mut self.runnable_nanos,
            Doing::Blocked(kind) => &mut self.blocked_nanos[kind as usize],
            Doing::BlockedUnseen => &mut self.blocked_unseen_nanos,
            Doing::Remote => &mut self.remote_nanos,
            Doing::Awaiting => &mut self.awaiting_nanos,
            Doing::Unknown => &mut self.unaccounted_nanos,
        };
        part.add_nanos(piece.to.saturating_sub(piece.from));
    }

    /// Adds those of another time.
    pub(super) fn join(&mut self, other: &States) {
        self.on_cpu_nanos.add_nanos(other.on_cpu_nanos);
        self.runnable_nanos.add_nanos(other.runnable_nanos);
        self.in_child_nanos.add_nanos(other.in_child_nanos);
        self.blocked_nanos.iter_mut().zip(other.blocked_nanos).for_each(|(sum, nanos)| sum.add_nanos(nanos));
        self.blocked_unseen_nanos.add_nanos(other.blocked_unseen_nanos);
        self.awaiting_nanos.add_nanos(other.awaiting_nanos);
        self.remote_nanos.add_nanos(other.remote_nanos);
        self.unaccounted_nanos.add_nanos(other.unaccounted_nanos);
        self.cpu_nanos = self.cpu_nanos.saturating_add(other.cpu_nanos);
        self.weaken(other.evidence);
        self.incomplete |= other.incomplete;
    }

    pub(super) fn weaken(&mut self, evidence: StateEvidence) {
        self.evidence = self.evidence.max(evidence);
    }
}
