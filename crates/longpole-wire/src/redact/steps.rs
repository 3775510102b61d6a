//! What may still be spent on a text, so that a hostile one cannot hold up the spans behind it.

/// The next place of something, for all who ask from before it: a text that asks at each of its bytes is still read once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ahead {
    from: usize,
    /// Behind the place: 0 where nobody asked.
    end: usize,
}

impl Ahead {
    /// Where it stands from `at` on. `find` looks for it, and says so with the length of the text where there is none.
    pub(super) fn next(&mut self, at: usize, steps: &mut Steps, find: impl FnOnce() -> usize) -> usize {
        if !(self.from..self.end).contains(&at) {
            let place = find();
            steps.looked = true;
            steps.spend(place.saturating_sub(at));
            *self = Ahead { from: at, end: place + 1 };
        }
        self.end - 1
    }
}

/// Steps that a text may take for each of its bytes. A step is a byte that is read, other than a few around a mark. Ordinary texts
/// take 1 to 17.
pub(super) const STEPS_A_BYTE: u64 = 100;

/// Steps that any text may take: a short one is cheap whatever it has inside.
pub(super) const STEPS_MIN: u64 = 8192;

/// What may still be spent on a text. A sender can write a text so that each of its bytes leads to all that follow; a span must not
/// hold up those behind it, so such a text is taken out as a whole.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) left: u64,
    /// Something was looked for.
    pub(super) looked: bool,
    #[cfg(test)]
    pub(super) taken: u64,
}

impl Steps {
    pub(super) fn of(bytes: usize) -> Self {
        let mut steps = Steps::default();
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
