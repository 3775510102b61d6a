//! Now, on the wall clock and on the monotonic one.

use std::time::{Instant, SystemTime};

use longpole_model::Timestamp;

pub(crate) fn now() -> Timestamp {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(Timestamp(0), |since| Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)))
}

/// A moment on both clocks: from there on the time is the wall clock's of then and what the monotonic clock counted since, so that a
/// duration is one also where somebody sets the wall clock meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    at: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Moment { wall: now(), at: Instant::now() }
    }

    /// A later moment.
    pub(crate) fn later(self, at: Instant) -> Timestamp {
        self.wall.plus_nanos(i64::try_from(at.saturating_duration_since(self.at).as_nanos()).unwrap_or(i64::MAX))
    }
}
