//! A search ahead in a text whose answer is kept, so that a text that asks at each of its bytes is still read once.

use super::step_budget::StepBudget;

/// The next place of something, for every position before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lookahead {
    from: usize,
    /// Behind the place: 0 where nobody asked.
    end: usize,
}

impl Lookahead {
    /// Where it stands from `at` on. `find` looks for it, and says so with the length of the text where there is none.
    pub(super) fn next(&mut self, at: usize, steps: &mut StepBudget, find: impl FnOnce() -> usize) -> usize {
        if !(self.from..self.end).contains(&at) {
            let place = find();
            steps.looked = true;
            steps.spend(place.saturating_sub(at));
            *self = Lookahead { from: at, end: place + 1 };
        }
        self.end - 1
    }
}
