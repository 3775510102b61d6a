//! Where the time of a span went: the parts, and how each is known. [`activity`](super::activity) finds them.

use longpole_model::{ByState, Nanos, StateKind, WaitKind};

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
    /// Time in each state.
    pub parts: ByState<Nanos>,
    /// On CPUs, of all its threads together: none of the parts, and may be more than the whole.
    pub cpu: Nanos,
    /// How it is known; of several the weakest.
    pub evidence: StateEvidence,
    /// Records are missing that may have been about it.
    pub incomplete: bool,
}

impl States {
    /// Time in one state.
    pub fn of(&self, state: StateKind) -> Nanos {
        self.parts[state]
    }

    /// All of it.
    pub fn sum(&self) -> Nanos {
        self.parts.iter().map(|(_, nanos)| nanos).sum()
    }

    /// Outside of children.
    pub fn own(&self) -> Nanos {
        self.parts.iter().filter(|(state, _)| *state != StateKind::InChild).map(|(_, nanos)| nanos).sum()
    }

    /// Blocked in sampled waits, of all kinds.
    pub fn blocked_seen(&self) -> Nanos {
        WaitKind::ALL.into_iter().map(|kind| self.of(StateKind::Blocked(kind))).sum()
    }

    /// Blocked, for any reason.
    pub fn blocked(&self) -> Nanos {
        self.blocked_seen() + self.of(StateKind::BlockedUnseen)
    }

    /// The kind of wait it was blocked in longest, and how long.
    pub fn longest_wait(&self) -> Option<(WaitKind, Nanos)> {
        let kinds = WaitKind::ALL.into_iter().map(|kind| (kind, self.of(StateKind::Blocked(kind)))).rev();
        kinds.max_by_key(|(_, nanos)| *nanos).filter(|(_, nanos)| *nanos > Nanos::ZERO)
    }

    /// Whether these are the figures, and not an estimate of them.
    pub fn is_exact(&self) -> bool {
        self.evidence != StateEvidence::Samples && !self.incomplete
    }

    pub(super) fn add(&mut self, state: StateKind, time: Nanos) {
        self.parts[state] += time;
    }

    /// Adds those of another time.
    pub(super) fn join(&mut self, other: &States) {
        other.parts.iter().for_each(|(state, time)| self.add(state, *time));
        self.cpu += other.cpu;
        self.weaken(other.evidence);
        self.incomplete |= other.incomplete;
    }

    pub(super) fn weaken(&mut self, evidence: StateEvidence) {
        self.evidence = self.evidence.max(evidence);
    }
}
