//! Nanoseconds whose arithmetic saturates.
//!
//! Times come from files and from processes of others, and each of them may be the largest there is: a span of 292 years, a sample
//! that stands for 584. Two of them overflow a sum of 64 bits, which panics where overflow is checked and is a wrong number
//! where it is not. A sum that stops at the end of what can be counted is neither. So times are [`Nanos`], and [`UnsignedNanos`] where
//! they are counted without a sign; bare numbers of nanoseconds, as records and rows hold them, are summed by [`AddNanos`] and
//! [`SumNanos`] and by nothing else.

use std::borrow::Borrow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A length of time, or an offset from a start, in nanoseconds; 292 years at most. Arithmetic stops at the largest and the smallest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Nanos(pub i64);

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);
    /// The longest time, and the latest offset.
    pub const MAX: Nanos = Nanos(i64::MAX);
    /// The earliest offset.
    pub const MIN: Nanos = Nanos(i64::MIN);

    /// Nanoseconds without a sign, as clocks and weights have them; what is too large is [`Nanos::MAX`].
    pub fn from_u64(nanos: u64) -> Nanos {
        Nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// The number without a sign, 0 for a negative one.
    pub fn to_u64(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// At least 0.
    pub fn or_zero(self) -> Nanos {
        self.max(Nanos::ZERO)
    }

    /// Its distance from 0.
    pub fn magnitude(self) -> u64 {
        self.0.unsigned_abs()
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

impl Neg for Nanos {
    type Output = Nanos;

    fn neg(self) -> Nanos {
        Nanos(self.0.saturating_neg())
    }
}

impl Mul<i64> for Nanos {
    type Output = Nanos;

    fn mul(self, times: i64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

/// Whole nanoseconds, towards 0; a division by 0 is one by 1.
impl Div<i64> for Nanos {
    type Output = Nanos;

    fn div(self, by: i64) -> Nanos {
        Nanos(if by == 0 { self.0 } else { self.0.saturating_div(by) })
    }
}

/// A length of time in nanoseconds as weights of samples and differences of [`Monotonic`](crate::Monotonic) count it, without a sign;
/// 584 years at most. Arithmetic stops at the largest, and at 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnsignedNanos(pub u64);

impl UnsignedNanos {
    /// No time.
    pub const ZERO: UnsignedNanos = UnsignedNanos(0);
    /// The longest time.
    pub const MAX: UnsignedNanos = UnsignedNanos(u64::MAX);
}

impl fmt::Debug for UnsignedNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// Sums and differences of a type of times, which stop at its ends.
macro_rules! saturating {
    ($($times:ident),+) => {$(
        impl Add for $times {
            type Output = $times;

            #[inline]
            fn add(self, other: $times) -> $times {
                $times(self.0.saturating_add(other.0))
            }
        }

        impl Sub for $times {
            type Output = $times;

            #[inline]
            fn sub(self, other: $times) -> $times {
                $times(self.0.saturating_sub(other.0))
            }
        }

        impl AddAssign for $times {
            #[inline]
            fn add_assign(&mut self, other: $times) {
                *self = *self + other;
            }
        }

        impl SubAssign for $times {
            #[inline]
            fn sub_assign(&mut self, other: $times) {
                *self = *self - other;
            }
        }

        impl Sum for $times {
            fn sum<Times: Iterator<Item = $times>>(times: Times) -> $times {
                times.fold($times::ZERO, Add::add)
            }
        }

        impl<'a> Sum<&'a $times> for $times {
            fn sum<Times: Iterator<Item = &'a $times>>(times: Times) -> $times {
                times.copied().sum()
            }
        }
    )+};
}

saturating!(Nanos, UnsignedNanos);

/// A bare number of nanoseconds, with a sign or without.
pub trait AddNanos: Copy + Default {
    /// Adds to it; stops at the largest number, and at the smallest.
    fn add_nanos(&mut self, nanos: Self);
}

impl AddNanos for i64 {
    fn add_nanos(&mut self, nanos: i64) {
        *self = self.saturating_add(nanos);
    }
}

impl AddNanos for u64 {
    fn add_nanos(&mut self, nanos: u64) {
        *self = self.saturating_add(nanos);
    }
}

/// For everything that gives bare numbers of nanoseconds one after the other.
pub trait SumNanos: Iterator + Sized {
    /// Their sum; stops at the largest number, and at the smallest.
    fn sum_nanos<N: AddNanos>(self) -> N
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

    #[test]
    fn arithmetic_of_times_stops_at_the_ends_too() {
        assert_eq!([Nanos::MAX + Nanos(1), Nanos::MAX - Nanos::MIN, Nanos::MAX * 2, -Nanos::MIN], [Nanos::MAX; 4]);
        assert_eq!([Nanos::MIN - Nanos(1), Nanos::MIN + Nanos::MIN, Nanos::MIN * 3], [Nanos::MIN; 3]);
        assert_eq!([Nanos::MAX, Nanos::MAX, Nanos::MIN].iter().sum::<Nanos>(), Nanos(-1));
        assert_eq!([Nanos(7) / 2, Nanos(-7) / 2, Nanos(7) / 0, Nanos::MIN / -1], [Nanos(3), Nanos(-3), Nanos(7), Nanos::MAX]);
        assert_eq!((Nanos::from_u64(u64::MAX), Nanos(-4).to_u64(), Nanos(-4).or_zero()), (Nanos::MAX, 0, Nanos::ZERO));
    }

    #[test]
    fn times_without_a_sign_stop_at_nothing_and_at_the_largest() {
        let (none, one, two, max) = (UnsignedNanos::ZERO, UnsignedNanos(1), UnsignedNanos(2), UnsignedNanos::MAX);
        assert_eq!([max + one, [max, max].iter().sum()], [max; 2]);
        assert_eq!([one - two, none - max, two - one, [one, one].into_iter().sum::<UnsignedNanos>() - two], [none, none, one, none]);
        // Beyond 292 years they still differ.
        assert!(UnsignedNanos(1 << 63) < max);
    }
}
