//! What each thread did, in equal pieces of a range of time: as much as a picture shows.
//!
//! ```text
//! thread   |==on CPU==|..blocked..|==|      range of 3 pieces
//!          |      |      |      |
//! on-CPU    100%   60%    30%              the state of the rest: -, lock, lock
//! ```

use longpole_model::{Nanos, StateKind};

use crate::time::timelines::Piece;

/// One thread in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Its place in `recording.threads`.
    pub thread: usize,
    /// Whether switch records tell, and not only samples: then only time on CPUs is known.
    pub is_exact: bool,
    /// For each piece of the range the share of it on a CPU, in per mille.
    pub on_cpu: Vec<u16>,
    /// The same for runnable.
    pub runnable: Vec<u16>,
    /// The state that takes most of what is left of each piece; `None` where the thread did not live, or nothing is known.
    pub rest: Vec<Option<StateKind>>,
}

/// Sums of one thread, piece by piece.
pub(crate) struct LaneBins {
    from: Nanos,
    to: Nanos,
    sums: Vec<[Nanos; StateKind::ALL.len()]>,
}

impl LaneBins {
    pub(crate) fn new((from, to): (Nanos, Nanos), bins: usize) -> LaneBins {
        LaneBins { from, to, sums: vec![[Nanos::ZERO; StateKind::ALL.len()]; bins] }
    }

    /// When a piece begins.
    fn start_of(&self, bin: usize) -> Nanos {
        let (length, bins) = (i128::from((self.to - self.from).0), self.sums.len() as i128);
        self.from + Nanos(i64::try_from(length * bin as i128 / bins.max(1)).unwrap_or(i64::MAX))
    }

    fn bin_at(&self, at: Nanos) -> usize {
        let (length, bins) = (i128::from((self.to - self.from).0).max(1), self.sums.len() as i128);
        // The last one that begins by then: `start_of` rounds down, and of a range that is shorter than its pieces are many, some are empty.
        let bin = ((i128::from((at - self.from).0) + 1) * bins + length - 1) / length - 1;
        usize::try_from(bin.clamp(0, bins - 1)).unwrap_or(0)
    }

    /// Adds what the thread did.
    pub(crate) fn add(&mut self, piece: Piece) {
        let (mut from, to) = (piece.from.max(self.from), piece.to.min(self.to));
        while from < to {
            let bin = self.bin_at(from);
            let end = if bin + 1 < self.sums.len() { self.start_of(bin + 1).min(to) } else { to };
            self.sums[bin][piece.state.place()] += end - from;
            from = end;
        }
    }

    /// Adds time on a CPU at a moment.
    pub(crate) fn add_sample(&mut self, at: Nanos, weight: Nanos) {
        let bin = self.bin_at(at);
        self.sums[bin][StateKind::OnCpu.place()] += weight;
    }

    pub(crate) fn lane(&self, thread: usize, is_exact: bool) -> Lane {
        let share = |bin: usize, state: StateKind| {
            let end = if bin + 1 < self.sums.len() { self.start_of(bin + 1) } else { self.to };
            let length = (end - self.start_of(bin)).magnitude().max(1);
            let part = u128::from(self.sums[bin][state.place()].magnitude()) * 1_000;
            u16::try_from(part.div_ceil(u128::from(length)).min(1_000)).unwrap_or(1_000)
        };
        let rest = |sums: &[Nanos; StateKind::ALL.len()]| {
            let others = StateKind::ALL.into_iter().filter(|state| !matches!(state, StateKind::OnCpu | StateKind::Runnable));
            let (most, nanos) =
                others.map(|state| (state, sums[state.place()])).max_by_key(|(state, nanos)| (*nanos, std::cmp::Reverse(*state)))?;
            (nanos > Nanos::ZERO && most != StateKind::Unaccounted).then_some(most)
        };
        Lane {
            thread,
            is_exact,
            on_cpu: (0..self.sums.len()).map(|bin| share(bin, StateKind::OnCpu)).collect(),
            runnable: (0..self.sums.len()).map(|bin| share(bin, StateKind::Runnable)).collect(),
            rest: self.sums.iter().map(rest).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::WaitKind;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_piece_has_its_shares_and_the_longest_other_state() {
        let mut bins = LaneBins::new((Nanos(100), Nanos(200)), 4);
        let lock = StateKind::Blocked(WaitKind::Lock);
        let sleep = StateKind::Blocked(WaitKind::Sleep);
        for (from, to, state) in
            [(90, 130, StateKind::OnCpu), (130, 140, lock), (140, 150, StateKind::Runnable), (150, 155, sleep), (155, 260, lock)]
        {
            bins.add(Piece { from: Nanos(from), to: Nanos(to), state });
        }
        let lane = bins.lane(7, true);
        assert_eq!(lane.on_cpu, [1_000, 200, 0, 0]);
        assert_eq!(lane.runnable, [0, 400, 0, 0]);
        assert_eq!(lane.rest, [None, Some(lock), Some(lock), Some(lock)]);
    }

    proptest! {
        #[test]
        fn no_time_is_lost_at_any_resolution(from in -9_000i64..9_000, length in 1i64..9_000, bins in 1usize..70, cut in 0i64..9_000) {
            let (from, to) = (Nanos(from), Nanos(from + length));
            let at = from + Nanos(cut % length);
            let mut lane = LaneBins::new((from, to), bins);
            lane.add(Piece { from: Nanos(i64::MIN / 4), to: at, state: StateKind::OnCpu });
            lane.add(Piece { from: at, to: Nanos(i64::MAX / 4), state: StateKind::Runnable });
            let sum = |state: StateKind| lane.sums.iter().map(|sums| sums[state.place()]).sum::<Nanos>();
            prop_assert_eq!((sum(StateKind::OnCpu), sum(StateKind::Runnable)), (at - from, to - at));
        }
    }
}
