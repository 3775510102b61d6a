//! The step budget of a text, so that a hostile one cannot hold up the spans behind it.

/// Steps that a text may take for each of its bytes. A step is a byte that is read, other than a few around a mark. Ordinary texts
/// take 1 to 17.
pub(super) const STEPS_A_BYTE: u64 = 100;

/// Steps that any text may take: a short one is cheap whatever it has inside.
pub(super) const STEPS_MIN: u64 = 8192;

/// What may still be spent on a text. A sender can write a text so that each of its bytes leads to all that follow; a span must not
/// hold up those behind it, so such a text is taken out as a whole.
#[derive(Debug, Default)]
pub(super) struct StepBudget {
    pub(super) left: u64,
    /// Whether a search ahead took place.
    pub(super) looked: bool,
    #[cfg(test)]
    pub(super) taken: u64,
}

impl StepBudget {
    pub(super) fn of(bytes: usize) -> Self {
        let mut steps = StepBudget::default();
        steps.begin(bytes);
        steps
    }

    /// A text of this length begins.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.left = STEPS_MIN + STEPS_A_BYTE * bytes as u64;
        #[cfg(test)]
        {
            self.taken = 0;
        }
    }

    pub(super) fn spend(&mut self, steps: usize) {
        #[cfg(test)]
        {
            self.taken += steps as u64;
        }
        self.left = self.left.saturating_sub(steps as u64);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }
}
