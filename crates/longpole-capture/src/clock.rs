//! Ties CLOCK_MONOTONIC to CLOCK_REALTIME during a recording (clock_gettime(2)).
//!
//! ```text
//! reading    |    |    |    |    |    |      three clocks, 0.2 µs, each time the recorder has something to do
//! anchor     A                   A A         reported: one a second, and the two between which the wall clock was set
//! ```
//!
//! The kernel slews both clocks alike, so their difference changes only when somebody sets the wall clock or the machine sleeps: then
//! CLOCK_MONOTONIC stands still, and CLOCK_BOOTTIME does not.

use longpole_model::clock_steps::is_step;
use longpole_model::{ClockAnchor, Monotonic, Observation, Timestamp};

use crate::sys::clock::{boottime_nanos, monotonic_nanos, realtime_nanos};

/// Readings for one anchor; the narrowest bracket wins.
const BRACKETS: usize = 8;

/// A reading that took longer is useless: its thread was off the CPU meanwhile.
const BRACKET_NANOS_MAX: u32 = 200_000;

/// One reading of the clocks.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    anchor: ClockAnchor,
    /// How long the machine has slept since boot, in nanoseconds; `None` if there is no CLOCK_BOOTTIME.
    slept_nanos: Option<u64>,
}

/// Reads the clocks and finds steps of the wall clock.
#[derive(Debug)]
pub struct Clocks {
    last: ClockReading,
}

impl Clocks {
    /// Reads the clocks for the first time, and returns that reading.
    pub fn begin() -> (Clocks, Observation) {
        let last = ClockReading::narrowest();
        (Clocks { last }, Observation::Clock(last.anchor))
    }

    /// Reads the clocks, and reports both sides of a step if the wall clock was set since the last reading.
    pub fn look(&mut self, report: impl FnMut(Observation)) {
        let now = ClockReading::take();
        if now.anchor.bracket_nanos > BRACKET_NANOS_MAX {
            return;
        }
        if is_step(now.anchor.offset_nanos().saturating_sub(self.last.anchor.offset_nanos())) {
            self.anchor(report);
        } else {
            self.last = now;
        }
    }

    /// Reads the clocks and reports them in any case.
    pub fn anchor(&mut self, mut report: impl FnMut(Observation)) -> ClockAnchor {
        let now = ClockReading::narrowest();
        if is_step(now.anchor.offset_nanos().saturating_sub(self.last.anchor.offset_nanos())) {
            report(Observation::Clock(self.last.anchor));
            let slept = now.slept_nanos.zip(self.last.slept_nanos).map_or(0, |(now, before)| now.saturating_sub(before));
            if is_step(i64::try_from(slept).unwrap_or(i64::MAX)) {
                report(Observation::Slept { time: now.anchor.monotonic, nanos: slept });
            }
        }
        self.last = now;
        report(Observation::Clock(now.anchor));
        now.anchor
    }
}

/// Reads both clocks as close together as possible.
pub fn anchor() -> ClockAnchor {
    ClockReading::narrowest().anchor
}

impl ClockReading {
    fn take() -> ClockReading {
        let before = monotonic_nanos();
        let unix = realtime_nanos();
        let boot = boottime_nanos();
        let after = monotonic_nanos();
        let width = after.saturating_sub(before);
        ClockReading {
            anchor: ClockAnchor {
                monotonic: Monotonic(before + width / 2),
                unix: Timestamp::from_unix_nanos(unix),
                bracket_nanos: u32::try_from(width).unwrap_or(u32::MAX),
            },
            slept_nanos: boot.map(|boot| boot.saturating_sub(before + width / 2)),
        }
    }

    fn narrowest() -> ClockReading {
        let first = ClockReading::take();
        (1..BRACKETS)
            .map(|_| ClockReading::take())
            .fold(first, |best, reading| if reading.anchor.bracket_nanos < best.anchor.bracket_nanos { reading } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_step_only_anchors_are_reported() {
        let (mut clocks, first) = Clocks::begin();
        assert!(matches!(first, Observation::Clock(_)));
        for _ in 0..1_000 {
            clocks.look(|reported| panic!("{reported:?}"));
        }
        let (before, mut reported) = (monotonic_nanos(), Vec::new());
        let anchor = clocks.anchor(|observation| reported.push(observation));
        assert!(before <= anchor.monotonic.0 && anchor.monotonic.0 <= monotonic_nanos());
        assert!(anchor.unix.0 > 1_600_000_000_000_000_000);
        assert!(matches!(reported[..], [Observation::Clock(_)]), "{reported:?}");
    }

    #[test]
    fn a_step_is_reported_with_the_readings_on_both_sides() {
        let (mut clocks, _) = Clocks::begin();
        // As if the wall clock had been an hour behind until now.
        clocks.last.anchor.unix = clocks.last.anchor.unix.plus_nanos(-3_600_000_000_000);
        let (before, mut reported) = (clocks.last.anchor, Vec::new());
        while reported.is_empty() {
            clocks.look(|observation| reported.push(observation));
        }
        let [Observation::Clock(first), Observation::Clock(second)] = reported[..] else { panic!("{reported:?}") };
        assert_eq!(first, before);
        assert!(second.monotonic > first.monotonic);
    }
}
