//! CPU time that a part of the recorder may take.

/// A budget of CPU time: one part in `part` of a CPU, saved up to a limit. Work that began within the budget is finished, and what it took
/// beyond the budget is a debt.
#[derive(Debug)]
pub(crate) struct CpuBudget {
    part: i64,
    most_nanos: i64,
    /// What is left, in nanoseconds; a debt if negative.
    nanos: i64,
    earned_until: u64,
}

impl CpuBudget {
    /// One part in `part` of a CPU. It saves up at most `most_nanos`, and starts with that.
    pub(crate) fn new(part: i64, most_nanos: i64) -> CpuBudget {
        CpuBudget { part, most_nanos, nanos: most_nanos, earned_until: 0 }
    }

    /// Whether there is some left at `now`.
    pub(crate) fn has_some(&mut self, now: u64) -> bool {
        let earned = now.saturating_sub(self.earned_until).cast_signed() / self.part;
        // The rest of the division is earned next time.
        self.earned_until += (earned * self.part).cast_unsigned();
        self.nanos = self.nanos.saturating_add(earned).min(self.most_nanos);
        self.nanos > 0
    }

    /// How long to wait until there is some, in nanoseconds.
    pub(crate) fn wait_nanos(&mut self, now: u64) -> u64 {
        if self.has_some(now) { 0 } else { self.available_at(1).saturating_sub(now) }
    }

    /// Takes CPU time from the budget.
    pub(crate) fn spend(&mut self, nanos: u64) {
        self.nanos = self.nanos.saturating_sub_unsigned(nanos);
    }

    /// When there is some: 0 if there is some now, else when `gathered_nanos` have been earned beyond the debt.
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
    fn small_pieces_add_up_to_the_part_of_a_cpu() {
        let mut budget = CpuBudget::new(PART, MOST_NANOS);
        let mut pieces = |now: u64| {
            let one = |_: &u64| budget.has_some(now).then(|| budget.spend(10_000)).is_some();
            (0..100_000).take_while(one).count() as i64
        };
        assert_eq!(pieces(0), MOST_NANOS / 10_000);
        let a_second = 1_000_000_000 / PART / 10_000;
        assert_eq!((1..=1_000).map(|millis| pieces(millis * 1_000_000)).sum::<i64>(), a_second);
        // Asking more often than a piece is earned yields no more.
        assert_eq!((1..=100_000).map(|times| pieces(1_000_000_000 + times * 10_000)).sum::<i64>(), a_second);
    }

    #[test]
    fn the_share_holds_whatever_a_piece_takes() {
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
    fn after_a_debt_some_must_gather() {
        let mut budget = CpuBudget::new(PART, MOST_NANOS);
        assert_eq!(budget.available_at(1_000), 0);
        budget.spend(MOST_NANOS.unsigned_abs() + 500);
        assert_eq!(budget.available_at(1_000), 1_500 * PART.unsigned_abs());
        assert!(!budget.has_some(500 * PART.unsigned_abs()) && budget.has_some(501 * PART.unsigned_abs()));
    }
}
