//! Steps of the wall clock: who sets it moves all times that are read from then on.
//!
//! ```text
//! monotonic   0 s ───────── 2.0 s ─ 2.1 s ──────── 3 s      goes on, whatever the wall clock does
//! wall clock  12:00:00   12:00:02   13:00:02   13:00:03     set by an hour between two readings
//! era         ├── 0: offset 12:00 ──┤
//!                           ├──── 1: offset 13:00 ───┤
//! ```
//!
//! The time of a recording is the wall clock of its start, carried on by the monotonic clock. What other processes read off the wall
//! clock has to be placed on it: a time belongs to the era in which the clock could show it. Where that is one era, it is certain;
//! after a short step back the clock shows the same times twice, and then it is not.

use crate::time::{Clock, ClockAnchor, Monotonic, Timestamp};

/// A change of (REALTIME − MONOTONIC) between two anchors above this is a step of the wall clock: slewing moves both clocks.
pub const CLOCK_STEP_NANOS: i64 = 1_000_000;

/// Most steps that are undone: a clock that is set all the time tells nothing.
const STEPS_MAX: usize = 64;

/// How long before the first anchor, and after the last, spans may begin and end: the receiver takes what comes late.
const BEYOND_NANOS: i64 = 10_000_000_000;

/// The wall clock was set, or went on while the machine slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// The last reading before.
    pub before: Monotonic,
    /// The first reading after.
    pub after: Monotonic,
    /// How far it was moved, negative to the past.
    pub nanos: i64,
}

/// A stretch in which the wall clock was not set, and how far it was from the time of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Era {
    /// What is to be added to a wall-clock time of it.
    shift: i64,
    /// The earliest and the latest time of it, on the recording's axis.
    from: Timestamp,
    until: Timestamp,
}

impl Era {
    /// How far outside of it a wall-clock time lies; 0 inside.
    fn miss(&self, at: Timestamp) -> i64 {
        let at = at.plus_nanos(self.shift);
        self.from.nanos_since(at).max(at.nanos_since(self.until)).max(0)
    }
}

/// The stretches of a recording between steps of its wall clock, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Eras {
    eras: Vec<Era>,
}

/// Where a span lies on the recording's axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// Whether nothing else could have been meant.
    pub is_sure: bool,
}

impl Eras {
    /// The eras of a clock as it was read. One era, in which nothing is moved, where it was set too often.
    pub fn of(clock: &Clock) -> Eras {
        let (Some(first), Some(last)) = (clock.anchors().first(), clock.anchors().last()) else { return Eras::default() };
        let axis = |at: Monotonic| Timestamp(nanos(at).saturating_add(first.offset_nanos()));
        let mut eras = vec![Era { shift: 0, from: axis(first.monotonic).plus_nanos(-BEYOND_NANOS), until: Timestamp(i64::MAX) }];
        let mut shift = 0_i64;
        let steps = clock.steps();
        if steps.len() > STEPS_MAX {
            return Eras::default();
        }
        for step in steps {
            shift = shift.saturating_sub(step.nanos);
            if let Some(ended) = eras.last_mut() {
                ended.until = axis(step.after);
            }
            eras.push(Era { shift, from: axis(step.before), until: Timestamp(i64::MAX) });
        }
        if let Some(ended) = eras.last_mut() {
            ended.until = axis(last.monotonic).plus_nanos(BEYOND_NANOS);
        }
        Eras { eras }
    }

    /// Whether the clock was never set: then every time stands where it was read.
    pub fn is_one(&self) -> bool {
        self.eras.len() < 2
    }

    /// Places one time.
    pub fn place(&self, at: Timestamp) -> Timestamp {
        self.place_span(at, at).start
    }

    /// Places the two ends of a span, which came in this order. Most spans lie in one era; one that a step falls into has its start in
    /// one and its end in a later one, but where its emitter measured its length by a monotonic clock, and the end is in no era.
    pub fn place_span(&self, start: Timestamp, end: Timestamp) -> Placed {
        if self.is_one() {
            return Placed { start, end, is_sure: true };
        }
        let (mut chosen, mut is_sure) = (None::<(usize, usize)>, true);
        for (a, first) in self.eras.iter().enumerate().filter(|(_, era)| era.miss(start) == 0) {
            for (b, second) in self.eras.iter().enumerate().skip(a).filter(|(_, era)| era.miss(end) == 0) {
                if end.plus_nanos(second.shift) < start.plus_nanos(first.shift) {
                    continue;
                }
                is_sure = chosen.is_none();
                chosen = match chosen {
                    Some(known) if known.0 == known.1 || a != b => Some(known),
                    _ => Some((a, b)),
                };
            }
        }
        let nearest = || self.eras.iter().enumerate().min_by_key(|(_, era)| era.miss(start)).map_or(0, |(a, _)| a);
        let (a, b) = chosen.unwrap_or_else(|| (nearest(), nearest()));
        Placed { start: start.plus_nanos(self.eras[a].shift), end: end.plus_nanos(self.eras[b].shift), is_sure }
    }
}

/// How far the wall clock was moved between two readings.
fn moved_nanos(before: &ClockAnchor, after: &ClockAnchor) -> i64 {
    after.offset_nanos().saturating_sub(before.offset_nanos())
}

/// Whether a change of the offset is one that somebody made.
pub fn is_step(nanos: i64) -> bool {
    nanos.unsigned_abs() > CLOCK_STEP_NANOS.unsigned_abs()
}

fn nanos(at: Monotonic) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

impl Clock {
    /// Where the wall clock was set, in the order of time.
    pub fn steps(&self) -> Vec<ClockStep> {
        let pairs = self.anchors().iter().zip(self.anchors().iter().skip(1));
        pairs
            .map(|(before, after)| ClockStep { before: before.monotonic, after: after.monotonic, nanos: moved_nanos(before, after) })
            .filter(|step| is_step(step.nanos))
            .collect()
    }

    /// The clock as it would have been read if nobody had set it.
    #[must_use]
    pub fn without_steps(&self) -> Clock {
        let (mut shift, mut before) = (0_i64, None::<&ClockAnchor>);
        let moved = self.anchors().iter().map(|anchor| {
            let moved = before.map_or(0, |before| moved_nanos(before, anchor));
            before = Some(anchor);
            if is_step(moved) {
                shift = shift.saturating_sub(moved);
            }
            ClockAnchor { unix: anchor.unix.plus_nanos(shift), ..*anchor }
        });
        Clock::new(moved.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Noon, at the start.
    const NOON: i64 = 1_700_000_000 * SECOND;

    /// Anchors at these tenths of a second; the wall clock is as far from where it should be as said, in tenths of a second.
    fn clock(readings: &[(i64, i64)]) -> Clock {
        let anchor = |&(at, off): &(i64, i64)| ClockAnchor {
            monotonic: Monotonic((at * SECOND / 10).cast_unsigned()),
            unix: wall(at + off),
            bracket_nanos: 40,
        };
        Clock::new(readings.iter().map(anchor).collect())
    }

    fn wall(tenths: i64) -> Timestamp {
        Timestamp(NOON + tenths * SECOND / 10)
    }

    /// Start and end in tenths of a second as they were read, and where they are; `?` where that is not sure.
    fn placed(clock: &Clock, start: i64, end: i64) -> String {
        let placed = Eras::of(clock).place_span(wall(start), wall(end));
        let tenths = |at: Timestamp| (at.0 - NOON) / (SECOND / 10);
        format!("{}..{}{}", tenths(placed.start), tenths(placed.end), if placed.is_sure { "" } else { "?" })
    }

    const HOUR: i64 = 36_000;

    #[test]
    fn an_hour_forward_and_an_hour_back_are_undone_for_every_span() {
        for hour in [HOUR, -HOUR] {
            let clock = clock(&[(0, 0), (10, 0), (11, hour), (20, hour)]);
            assert_eq!(clock.steps().iter().map(|step| step.nanos).collect::<Vec<_>>(), [hour * SECOND / 10]);
            assert_eq!(placed(&clock, 2, 8), "2..8", "before");
            assert_eq!(placed(&clock, 13 + hour, 18 + hour), "13..18", "after");
            assert_eq!(placed(&clock, 5, 15 + hour), "5..15", "across");
            assert_eq!(placed(&clock, 5, 15), "5..15", "across, its length by a monotonic clock");
            let flat = clock.without_steps();
            assert!(flat.steps().is_empty());
            assert_eq!(flat.to_unix(Monotonic(1_500_000_000)), Some(wall(15)));
        }
    }

    #[test]
    fn after_a_short_step_back_a_repeated_time_is_not_sure() {
        let clock = clock(&[(0, 0), (10, 0), (10, -5), (20, -5)]);
        assert_eq!(placed(&clock, 1, 4), "1..4");
        assert_eq!(placed(&clock, 7, 8), "7..8?");
        assert_eq!(placed(&clock, 9, 7), "9..12", "across");
        assert_eq!(placed(&clock, 4, 1), "4..1", "as its emitter says");
        assert_eq!(placed(&clock, 12, 14), "17..19");
    }

    #[test]
    fn there_and_back_again_are_three_eras() {
        let clock = clock(&[(0, 0), (10, 0), (11, HOUR), (20, HOUR), (21, 0), (30, 0)]);
        assert_eq!(clock.steps().len(), 2);
        assert_eq!(placed(&clock, 2, 8), "2..8");
        assert_eq!(placed(&clock, 13 + HOUR, 18 + HOUR), "13..18");
        assert_eq!(placed(&clock, 24, 28), "24..28");
        assert_eq!(placed(&clock, 2, 28), "2..28");
    }

    #[test]
    fn a_clock_that_nobody_sets_moves_nothing_and_ends_of_time_do_not_overflow() {
        assert_eq!(placed(&clock(&[(0, 0), (10, 0)]), 7, 3), "7..3");
        assert_eq!(Eras::default().place(Timestamp(5)), Timestamp(5));
        let edge = |monotonic, unix| ClockAnchor { monotonic: Monotonic(monotonic), unix: Timestamp(unix), bracket_nanos: 1 };
        let clock = Clock::new(vec![edge(0, i64::MIN), edge(u64::MAX, i64::MAX), edge(5, i64::MAX), edge(9, i64::MIN)]);
        let eras = Eras::of(&clock);
        for at in [i64::MIN, -1, 0, i64::MAX] {
            eras.place_span(Timestamp(at), Timestamp(i64::MAX));
            eras.place_span(Timestamp(at), Timestamp(i64::MIN));
        }
        assert_eq!(clock.without_steps().anchors().len(), 4);
    }
}
