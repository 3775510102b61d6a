//! Sums of times and weights that saturate.
//!
//! Times come from files and from processes of others, and each of them may be the largest there is: a span of 292 years, a sample
//! that stands for 584. Two of them overflow a sum of 64 bits, which panics where overflow is checked and is a wrong number
//! where it is not. A sum that stops at the end of what can be counted is neither. So times are summed by these two and by nothing else.

use std::borrow::Borrow;

/// A number of nanoseconds, with a sign or without.
pub trait Nanos: Copy + Default {
    /// Adds to it; stops at the largest number, and at the smallest.
    fn add_nanos(&mut self, nanos: Self);
}

impl Nanos for i64 {
    fn add_nanos(&mut self, nanos: i64) {
        *self = self.saturating_add(nanos);
    }
}

impl Nanos for u64 {
    fn add_nanos(&mut self, nanos: u64) {
        *self = self.saturating_add(nanos);
    }
}

/// For everything that gives numbers of nanoseconds one after the other.
pub trait SumNanos: Iterator + Sized {
    /// Their sum; stops at the largest number, and at the smallest.
    fn sum_nanos<N: Nanos>(self) -> N
    where
        Self::Item: Borrow<N>,
    {
        self.fold(N::default(), |mut sum, nanos| {
            sum.add_nanos(*nanos.borrow());
            sum
        })
    }
}

impl<I: Iterator> SumNanos for I {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_ends_of_what_can_be_counted() {
        assert_eq!([1u64, 2, 3].iter().sum_nanos::<u64>(), 6);
        assert_eq!([u64::MAX, 1].into_iter().sum_nanos::<u64>(), u64::MAX);
        assert_eq!([i64::MAX, i64::MAX].iter().sum_nanos::<i64>(), i64::MAX);
        assert_eq!([i64::MIN, -1].iter().sum_nanos::<i64>(), i64::MIN);
    }
}
