//! Time to unwind the stacks of a `perf.data`.

use std::time::{Duration, Instant};

/// Time for all stacks of a file. A stack takes some 10 µs, so that is time for millions; a binary that somebody else wrote can have unwind
/// information that takes 100 ms for each.
pub(super) const WALKS_MAX: Duration = Duration::from_secs(60);

/// What is left of it.
#[derive(Debug)]
pub(super) struct WalkTime(Duration);

impl Default for WalkTime {
    fn default() -> Self {
        WalkTime(WALKS_MAX)
    }
}

impl WalkTime {
    /// Walks a stack; `None` without a walk if no time is left.
    pub(super) fn walk<T>(&mut self, walk: impl FnOnce() -> T) -> Option<T> {
        if self.0.is_zero() {
            return None;
        }
        let start = Instant::now();
        let walked = walk();
        self.0 = self.0.saturating_sub(start.elapsed());
        Some(walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_time_no_stack_is_walked() {
        let mut time = WalkTime(Duration::from_millis(2));
        let start = Instant::now();
        let slow = || while start.elapsed() < Duration::from_millis(3) {};
        assert_eq!(time.walk(slow), Some(()));
        assert_eq!(time.walk(|| ()), None);
    }
}
