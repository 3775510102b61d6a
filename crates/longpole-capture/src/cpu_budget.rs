//! What a part of the recorder may take of the CPUs.

/// CPU time that may be taken: one part of a CPU in so many, of which some is saved up. What was begun while there was some is finished,
/// and what it took beyond that is owed.
#[derive(Debug)]
pub(crate) struct CpuBudget {
    part: i64,
    most_nanos: i64,
    /// Below 0 what is owed.
    nanos: i64,
    earned_until: u64,
}

impl CpuBudget {
    /// One part of a CPU in `part`. Of what is not taken `most_nanos` are kept, and so much is there at the beginning.
    pub(crate) fn new(part: i64, most_nanos: i64) -> CpuBudget {
        CpuBudget { part, most_nanos, nanos: most_nanos, earned_until: 0 }
    }

    /// Whether there is some now.
    pub(crate) fn has_some(&mut self, now: u64) -> bool {
        let earned = now.saturating_sub(self.earned_until).cast_signed() / self.part;
        // What is less than a nanosecond is earned next time.
        self.earned_until += (earned * self.part).cast_unsigned();
        self.nanos = self.nanos.saturating_add(earned).min(self.most_nanos);
        self.nanos > 0
    }

    /// How long to wait until there is some.
    pub(crate) fn wait_nanos(&mut self, now: u64) -> u64 {
        if self.has_some(now) { 0 } else { self.available_at(1).saturating_sub(now) }
    }

    pub(crate) fn spend(&mut self, nanos: u64) {
        self.nanos = self.nanos.saturating_sub_unsigned(nanos);
    }

    /// When to ask again: at any time while there was some when it was asked last, else as soon as there are `gathered_nanos`.
    pub(crate) fn available_at(&self, gathered_nanos: i64) -> u64 {
        match self.nanos {
            1.. => 0,
            owed => self.earned_until.saturating_add(gathered_nanos.saturating_sub(owed).saturating_mul(self.part).cast_unsigned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: i64 = 50;
    const MOST_NANOS: i64 = 10_000_000;

    #[test]
    fn what_is_taken_in_small_pieces_is_its_part_of_a_cpu() {
        let mut budget = CpuBudget::new(PART, MOST_NANOS);
        let mut pieces = |now: u64| {
            let one = |_: &u64| budget.has_some(now).then(|| budget.spend(10_000)).is_some();
            (0..100_000).take_while(one).count() as i64
        };
        assert_eq!(pieces(0), MOST_NANOS / 10_000);
        let a_second = 1_000_000_000 / PART / 10_000;
        assert_eq!((1..=1_000).map(|millis| pieces(millis * 1_000_000)).sum::<i64>(), a_second);
        // Asked more often than a piece takes to be earned, it allows no more.
        assert_eq!((1..=100_000).map(|times| pieces(1_000_000_000 + times * 10_000)).sum::<i64>(), a_second);
    }

    #[test]
    fn whatever_a_piece_takes_the_share_holds() {
        for piece_nanos in [5_000, 100_000, 2_000_000, 30_000_000] {
            let mut budget = CpuBudget::new(PART, MOST_NANOS);
            let (mut now, mut spent) = (0, 0);
            while now < 60_000_000_000 {
                now = budget.available_at(1).max(now + piece_nanos);
                if budget.has_some(now) {
                    spent += piece_nanos;
                    budget.spend(piece_nanos);
                }
            }
            let share = spent.saturating_sub(MOST_NANOS.unsigned_abs()) as f64 / now as f64;
            assert!(share * PART as f64 <= 1.05 && share * PART as f64 > 0.95, "{piece_nanos}: {share}");
        }
    }

    #[test]
    fn who_owes_waits_until_it_is_worth_it() {
        let mut budget = CpuBudget::new(PART, MOST_NANOS);
        assert_eq!(budget.available_at(1_000), 0);
        budget.spend(MOST_NANOS.unsigned_abs() + 500);
        assert_eq!(budget.available_at(1_000), 1_500 * PART.unsigned_abs());
        assert!(!budget.has_some(500 * PART.unsigned_abs()) && budget.has_some(501 * PART.unsigned_abs()));
    }
}
