//! The step budgets of a text, of a list and of a request, so that a hostile one cannot hold up the spans behind it.

/// Steps that a text may take for each of its bytes. A step is a byte that is read, other than a few around a mark. Ordinary texts
/// take 1 to 17.
pub(super) const STEPS_A_BYTE: u64 = 100;

/// Steps that any text may take: a short one is cheap whatever it has inside.
pub(super) const STEPS_MIN: u64 = 8192;

/// What a word of a list counts for beside its bytes: an empty one takes two bytes of a request.
pub(super) const WORD_BYTES: usize = 2;

/// Steps that all texts of a request may take for each of its bytes, which are more than those of its texts. Ordinary requests take 1 to 6,
/// and three times as many if each of their texts has a credential, because what is left of such a text is judged again.
const REQUEST_STEPS_A_BYTE: u64 = 32;

/// Steps that any request may take: some milliseconds.
const REQUEST_STEPS_MIN: u64 = 1 << 20;

/// What it takes to judge a name that is not known: a hundred words are compared with it.
const NAME_STEPS: u64 = 64;

/// What may still be spent on a text, and on the request in which it stands. A sender can write a text so that each of its bytes leads to all
/// that follow; a span must not hold up those behind it, so such a text is taken out as a whole, and the texts behind those that took
/// all of a request's steps, too.
#[derive(Debug, Default)]
pub(super) struct StepBudget {
    pub(super) left: u64,
    /// What this text had at its beginning.
    granted: u64,
    /// What the request had then; `None` if it may take any number.
    of_request: Option<u64>,
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

    /// A request of this length begins.
    pub(super) fn begin_request(&mut self, bytes: usize) {
        *self = StepBudget {
            of_request: Some(REQUEST_STEPS_MIN + REQUEST_STEPS_A_BYTE * bytes as u64),
            looked: self.looked,
            ..Self::default()
        };
    }

    /// A text of this length begins.
    pub(super) fn begin(&mut self, bytes: usize) {
        let wanted = STEPS_MIN + STEPS_A_BYTE * bytes as u64;
        self.of_request = self.left_of_request();
        self.granted = self.of_request.map_or(wanted, |left| left.min(wanted));
        self.left = self.granted;
        #[cfg(test)]
        {
            self.taken = 0;
        }
    }

    pub(super) fn left_of_request(&self) -> Option<u64> {
        Some(self.of_request?.saturating_sub(self.granted - self.left))
    }

    pub(super) fn spend(&mut self, steps: usize) {
        #[cfg(test)]
        {
            self.taken += steps as u64;
        }
        self.left = self.left.saturating_sub(steps as u64);
    }

    /// A name is judged, which has no part in the budget of its text: few names are not known.
    pub(super) fn spend_on_name(&mut self) {
        if let Some(left) = &mut self.of_request {
            *left = left.saturating_sub(NAME_STEPS);
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Whether nothing of this request is judged any more.
    pub(super) fn is_request_spent(&self) -> bool {
        self.left_of_request() == Some(0)
    }
}
