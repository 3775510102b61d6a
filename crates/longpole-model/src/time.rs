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

    /// This moment moved by so many nanoseconds; saturates.
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

/// The mapping from monotonic to wall time: anchors in order of their monotonic time.
///
/// Between two anchors the offset is interpolated; before the first and after the last it is theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clock {
    anchors: Vec<ClockAnchor>,
}

/// A change of (REALTIME − MONOTONIC) between two anchors above this is a step of the wall clock: slewing moves both.
pub const CLOCK_STEP_NANOS: i64 = 1_000_000;

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

    fn offset_nanos(anchor: &ClockAnchor) -> i64 {
        anchor.unix.0.saturating_sub(i64::try_from(anchor.monotonic.0).unwrap_or(i64::MAX))
    }

    /// Wall time of a monotonic time; `None` without an anchor.
    pub fn to_unix(&self, at: Monotonic) -> Option<Timestamp> {
        let next = self.anchors.partition_point(|a| a.monotonic <= at);
        let offset = match (next.checked_sub(1).map(|i| &self.anchors[i]), self.anchors.get(next)) {
            (None, None) => return None,
            (Some(only), None) | (None, Some(only)) => Self::offset_nanos(only),
            (Some(before), Some(after)) => {
                let (a, b) = (Self::offset_nanos(before), Self::offset_nanos(after));
                let span = after.monotonic.nanos_since(before.monotonic).max(1);
                let done = at.nanos_since(before.monotonic);
                let moved = i128::from(b.saturating_sub(a)) * i128::from(done) / i128::from(span);
                // It lies between the two offsets, so it fits.
                (i128::from(a) + moved) as i64
            }
        };
        Some(Timestamp(i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(offset)))
    }

    /// The largest jump of the wall clock between neighbouring anchors, where it is above [`CLOCK_STEP_NANOS`].
    pub fn step_nanos(&self) -> Option<i64> {
        self.anchors
            .windows(2)
            .map(|pair| Self::offset_nanos(&pair[1]).saturating_sub(Self::offset_nanos(&pair[0])))
            .max_by_key(|step| step.unsigned_abs())
            .filter(|step| step.unsigned_abs() > CLOCK_STEP_NANOS.unsigned_abs())
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
    fn a_step_of_the_wall_clock_is_noticed() {
        assert_eq!(Clock::new(vec![anchor(0, 0), anchor(10, 11)]).step_nanos(), None);
        assert_eq!(Clock::new(vec![anchor(0, 0), anchor(10, 5_000_010)]).step_nanos(), Some(5_000_000));
    }

    #[test]
    fn clocks_at_the_ends_of_time_do_not_overflow() {
        let clock = Clock::new(vec![anchor(0, i64::MIN), anchor(u64::MAX, i64::MAX), anchor(5, i64::MAX)]);
        assert_eq!(clock.step_nanos(), Some(i64::MAX));
        assert!(clock.to_unix(Monotonic(u64::MAX - 1)).is_some());
    }
}
