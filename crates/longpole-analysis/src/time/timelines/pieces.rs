//! What a thread or a node does at a moment, and pieces of time in which it does.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use longpole_model::WaitKind;

use crate::link::wait_order::blocked_rank;

/// What a node does, or one of its threads. Being in a child is none of these: then there is no piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    OnCpu,
    Runnable,
    Blocked(WaitKind),
    /// Nobody looked what for.
    BlockedUnseen,
    Remote,
    Awaiting,
    Unknown,
}

impl Doing {
    /// The state to report where several are true: the lowest rank.
    fn rank(self) -> usize {
        let kinds = WaitKind::ALL.len();
        match self {
            Doing::OnCpu => 0,
            Doing::Runnable => 1,
            Doing::Blocked(kind) => 2 + blocked_rank(kind),
            Doing::BlockedUnseen => 2 + kinds,
            Doing::Remote => 3 + kinds,
            Doing::Awaiting => 4 + kinds,
            Doing::Unknown => 5 + kinds,
        }
    }

    /// Whether a child that is open is why.
    pub(super) fn gives_way_to_children(self) -> bool {
        !matches!(self, Doing::OnCpu | Doing::Runnable)
    }
}

/// A piece of time, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) doing: Doing,
}

/// A piece that is open in [`flatten`]: the one to report is the greatest.
#[derive(PartialEq, Eq)]
struct Open(Reverse<usize>, i64, Doing);

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
    let mut at = i64::MIN;
    loop {
        while let Some(piece) = pieces.next_if(|piece| piece.from <= at) {
            open.push(Open(Reverse(piece.doing.rank()), piece.to, piece.doing));
        }
        // What has ended below the top is in nobody's way.
        while open.peek().is_some_and(|top| top.1 <= at) {
            open.pop();
        }
        let next = pieces.peek().map(|piece| piece.from);
        let Some(&Open(_, end, doing)) = open.peek() else {
            let Some(next) = next else { return out };
            at = next;
            continue;
        };
        let to = next.map_or(end, |next| end.min(next));
        match out.last_mut() {
            Some(last) if last.to == at && last.doing == doing => last.to = to,
            _ => out.push(Piece { from: at, to, doing }),
        }
        at = to;
    }
}
