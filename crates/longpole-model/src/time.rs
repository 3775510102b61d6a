//! Time: nanoseconds since the Unix epoch for spans, nanoseconds of CLOCK_MONOTONIC for samples, and the anchors between them.

use std::fmt;

/// Nanoseconds since the Unix epoch, as OTLP has it; saturates in the years 1677 and 2262.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// From OTLP's unsigned field; later than 2262 saturates.
    pub fn from_unix_nanos(nanos: u64) -> Self {
        Timestamp(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// Nanoseconds since the Unix epoch.
    pub fn unix_nanos(self) -> i64 {
        self.0
    }

    /// `self - earlier` in nanoseconds, negative where the order is reversed; saturates.
    pub fn nanos_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment moved by a number of nanoseconds; saturates.
    #[must_use]
    pub fn plus_nanos(self, nanos: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(nanos))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Nanoseconds of CLOCK_MONOTONIC of the recording machine: the clock of samples, switch records and mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Monotonic(pub u64);

impl Monotonic {
    /// Nanoseconds since `earlier`, 0 where the order is reversed.
    pub fn nanos_since(self, earlier: Monotonic) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One reading of both clocks: CLOCK_REALTIME bracketed between two readings of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockAnchor {
    /// Middle of the bracket.
    pub monotonic: Monotonic,
    /// CLOCK_REALTIME inside the bracket.
    pub unix: Timestamp,
    /// Width of the bracket: the anchor is right within half of it.
    pub bracket_nanos: u32,
}

impl ClockAnchor {
    /// CLOCK_REALTIME − CLOCK_MONOTONIC: changes only where the wall clock is set, or the machine sleeps.
    pub fn offset_nanos(&self) -> i64 {
        self.unix.0.saturating_sub(i64::try_from(self.monotonic.0).unwrap_or(i64::MAX))
    }
}

/// The mapping from monotonic to wall time: anchors in order of their monotonic time.
///
/// Between two anchors the offset is interpolated; before the first and after the last it is theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clock {
    anchors: Vec<ClockAnchor>,
}

impl Clock {
    /// A clock of these anchors, in any order.
    pub fn new(mut anchors: Vec<ClockAnchor>) -> Self {
        anchors.sort_by_key(|a| a.monotonic);
        Clock { anchors }
    }

    /// The anchors, by monotonic time.
    pub fn anchors(&self) -> &[ClockAnchor] {
        &self.anchors
    }

    /// Wall time of a monotonic time; `None` without an anchor.
    pub fn to_unix(&self, at: Monotonic) -> Option<Timestamp> {
        let next = self.anchors.partition_point(|a| a.monotonic <= at);
        let offset = match (next.checked_sub(1).map(|i| &self.anchors[i]), self.anchors.get(next)) {
            (None, None) => return None,
            (Some(only), None) | (None, Some(only)) => only.offset_nanos(),
            (Some(before), Some(after)) => {
                let (a, b) = (before.offset_nanos(), after.offset_nanos());
                let span = after.monotonic.nanos_since(before.monotonic).max(1);
                let done = at.nanos_since(before.monotonic);
                let moved = i128::from(b.saturating_sub(a)) * i128::from(done) / i128::from(span);
                // It lies between the two offsets, so it fits.
                (i128::from(a) + moved) as i64
            }
        };
        Some(Timestamp(i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(offset)))
    }
}

/// A half-open stretch of wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First nanosecond inside.
    pub start: Timestamp,
    /// First nanosecond after.
    pub end: Timestamp,
}

impl TimeRange {
    /// Length in nanoseconds, 0 where the end lies before the start.
    pub fn nanos(&self) -> i64 {
        self.end.nanos_since(self.start).max(0)
    }

    /// Whether the moment lies inside.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(monotonic: u64, unix: i64) -> ClockAnchor {
        ClockAnchor { monotonic: Monotonic(monotonic), unix: Timestamp(unix), bracket_nanos: 35 }
    }

    #[test]
    fn a_clock_interpolates_between_anchors_and_extends_beyond_them() {
        let clock = Clock::new(vec![anchor(2_000, 9_200), anchor(1_000, 8_000)]);
        assert_eq!(clock.to_unix(Monotonic(500)), Some(Timestamp(7_500)));
        assert_eq!(clock.to_unix(Monotonic(1_500)), Some(Timestamp(8_600)));
        assert_eq!(clock.to_unix(Monotonic(3_000)), Some(Timestamp(10_200)));
        assert_eq!(Clock::default().to_unix(Monotonic(1)), None);
    }

    #[test]
    fn clocks_at_the_ends_of_time_do_not_overflow() {
        let clock = Clock::new(vec![anchor(0, i64::MIN), anchor(u64::MAX, i64::MAX), anchor(5, i64::MAX)]);
        assert!(clock.to_unix(Monotonic(u64::MAX - 1)).is_some());
    }
}
