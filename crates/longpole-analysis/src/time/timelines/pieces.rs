//! What a thread or a node does at a moment, and pieces of time in which it does.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use longpole_model::{Nanos, StateKind, WaitKind};

use crate::link::wait_order::blocked_rank;

/// Which state to report where several are true: the one of the lowest rank.
fn rank(state: StateKind) -> usize {
    let kinds = WaitKind::ALL.len();
    match state {
        StateKind::OnCpu => 0,
        StateKind::Runnable => 1,
        StateKind::InChild => 2,
        StateKind::Blocked(kind) => 3 + blocked_rank(kind),
        StateKind::BlockedUnseen => 3 + kinds,
        StateKind::Remote => 4 + kinds,
        StateKind::Awaiting => 5 + kinds,
        StateKind::Unaccounted => 6 + kinds,
    }
}

/// Whether a node in this state is in its child while one is open.
pub(super) fn gives_way_to_children(state: StateKind) -> bool {
    !matches!(state, StateKind::OnCpu | StateKind::Runnable)
}

/// A piece of time in one state, in nanoseconds from the start of the run. Time in a child has no piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) state: StateKind,
}

impl Piece {
    /// How long it is.
    pub(crate) fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// A piece that is open in [`flatten`]: the one to report is the greatest.
#[derive(PartialEq, Eq)]
struct Open(Reverse<usize>, Nanos, StateKind);

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pieces that may overlap → pieces that do not, by time: at each moment the state of the lowest rank.
pub(crate) fn flatten(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_unstable_by_key(|piece| piece.from);
    if pieces.windows(2).all(|pair| pair[0].to <= pair[1].from) {
        return pieces;
    }
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut open: BinaryHeap<Open> = BinaryHeap::new();
    let mut pieces = pieces.into_iter().peekable();
    let mut at = Nanos::MIN;
    loop {
        while let Some(piece) = pieces.next_if(|piece| piece.from <= at) {
            open.push(Open(Reverse(rank(piece.state)), piece.to, piece.state));
        }
        // What has ended below the top is in nobody's way.
        while open.peek().is_some_and(|top| top.1 <= at) {
            open.pop();
        }
        let next = pieces.peek().map(|piece| piece.from);
        let Some(&Open(_, end, state)) = open.peek() else {
            let Some(next) = next else { return out };
            at = next;
            continue;
        };
        let to = next.map_or(end, |next| end.min(next));
        match out.last_mut() {
            Some(last) if last.to == at && last.state == state => last.to = to,
            _ => out.push(Piece { from: at, to, state }),
        }
        at = to;
    }
}
