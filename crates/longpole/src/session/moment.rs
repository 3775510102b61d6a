//! The current time, on the wall clock and the monotonic clock.

use std::time::{Instant, SystemTime};

use longpole_model::Timestamp;

pub(crate) fn now() -> Timestamp {
    timestamp(SystemTime::now())
}

/// A time of the system; what lies before 1970 is 1970.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(Timestamp(0), |since| Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)))
}

/// A moment on both clocks. Later times are its wall time plus what the monotonic clock counted since, so that setting the wall clock
/// changes no duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    at: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Moment { wall: now(), at: Instant::now() }
    }

    /// The wall time of a later moment.
    pub(crate) fn later(self, at: Instant) -> Timestamp {
        self.wall.plus_nanos(i64::try_from(at.saturating_duration_since(self.at).as_nanos()).unwrap_or(i64::MAX))
    }
}
