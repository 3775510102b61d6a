//! Threads of the recorder that can be abandoned when they hang in a file system that does not answer ([`longpole_symbols::hang_timeout`]).
//!
//! These threads read what the recorded processes control: files below their root, and their memory, whose pages may lie in such a
//! file. A thread that makes progress uses CPU time, however long its work is; one that waits for an answer uses none. So the CPU clock of the
//! thread shows whether it makes progress, and no loop needs to report that it lives.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use longpole_symbols::hang_timeout::{self, SILENCE_MAX, Waited};

use crate::sys::clock::{ThreadClock, monotonic_nanos};

/// How long a thread may work after it was to end. What it works on comes from the recorded processes, and they decide how much that is.
const END_MAX: Duration = Duration::from_secs(30);

/// What others know about a thread.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    clock: OnceLock<ThreadClock>,
    /// It writes to our own log, whose disk may be slow.
    writes: AtomicBool,
    /// When it last had nothing left to write.
    written_at: AtomicU64,
    /// Nobody waits for it any more.
    is_abandoned: AtomicBool,
}

impl Liveness {
    /// A number that changes while the thread makes progress; `None` while it writes, or before its clock is known.
    pub(crate) fn progress(&self) -> Option<u64> {
        if self.writes.load(Ordering::Relaxed) { None } else { self.clock.get()?.nanos() }
    }

    /// Runs `write`, unless the thread is abandoned: then the recording may be sealed, and this is `None`.
    pub(crate) fn writing<T>(&self, write: impl FnOnce() -> T) -> Option<T> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            return None;
        }
        self.writes.store(true, Ordering::Relaxed);
        let outcome = write();
        self.writes.store(false, Ordering::Relaxed);
        Some(outcome)
    }

    /// Notes that nothing is left to write.
    pub(crate) fn has_written(&self) {
        self.written_at.store(monotonic_nanos(), Ordering::Relaxed);
    }

    /// When nothing was left to write, last (CLOCK_MONOTONIC).
    pub(crate) fn written_at(&self) -> u64 {
        self.written_at.load(Ordering::Relaxed)
    }
}

/// A thread that can be abandoned.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
    liveness: Arc<Liveness>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread.
    ///
    /// # Errors
    ///
    /// Where the system has no room for a thread.
    pub(crate) fn spawn(name: &str, liveness: Arc<Liveness>, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Worker<T>> {
        let (done, outcome) = channel();
        let own = Arc::clone(&liveness);
        let run = move || {
            if let Some(clock) = ThreadClock::of_this_thread() {
                let _ = own.clock.set(clock);
            }
            // Fails only if the thread was abandoned.
            let _ = done.send(work());
        };
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Worker { thread, outcome, liveness })
    }

    pub(crate) fn liveness(&self) -> &Arc<Liveness> {
        &self.liveness
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end as long as it makes progress, but not longer than [`END_MAX`].
    pub(crate) fn wait(self) -> Waited<T> {
        let liveness = Arc::clone(&self.liveness);
        self.wait_by(|| liveness.progress())
    }

    /// The same, with another measure of progress.
    pub(crate) fn wait_by(self, progress: impl FnMut() -> Option<u64>) -> Waited<T> {
        self.wait_within(SILENCE_MAX, Instant::now() + END_MAX, progress)
    }

    fn wait_within(self, silence_max: Duration, until: Instant, progress: impl FnMut() -> Option<u64>) -> Waited<T> {
        // A thread that is busy in our own log is waited for.
        let gives_up = || Instant::now() >= until && !self.liveness.writes.load(Ordering::Relaxed);
        match hang_timeout::wait_unless(&self.outcome, silence_max, progress, gives_up) {
            Waited::Hung => self.abandon(),
            ended => {
                // It has nothing left to do. A panic has been printed.
                let _ = self.thread.join();
                ended
            }
        }
    }

    /// Abandons it.
    pub(crate) fn abandon(self) -> Waited<T> {
        self.liveness.is_abandoned.store(true, Ordering::Relaxed);
        Waited::Hung
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_thread_that_works_makes_progress_and_one_that_waits_makes_none() {
        let liveness = Arc::new(Liveness::default());
        assert_eq!(liveness.progress(), None, "it has not begun");
        let ((told, tells), (goes_on, waits)) = (sync_channel(0), sync_channel(0));
        let thread = Worker::spawn("test", Arc::clone(&liveness), move || {
            told.send(()).unwrap();
            waits.recv().unwrap();
            // More CPU time than one step of the clock.
            let begun = crate::sys::clock::thread_cpu_nanos();
            while crate::sys::clock::thread_cpu_nanos() < begun + 2_000_000 {}
            told.send(()).unwrap();
            waits.recv().unwrap();
            7
        })
        .unwrap();
        let settled = || {
            let mut last = liveness.progress();
            loop {
                let now = std::iter::repeat_with(|| liveness.progress()).take(1_000).last().unwrap();
                if now == last {
                    return now.unwrap();
                }
                last = now;
            }
        };
        tells.recv().unwrap();
        let before = settled();
        goes_on.send(()).unwrap();
        tells.recv().unwrap();
        assert!(settled() >= before + 2_000_000);
        goes_on.send(()).unwrap();
        assert_eq!(thread.wait(), Waited::Done(7));
    }

    #[test]
    fn who_hangs_is_abandoned_and_writes_no_more_and_who_writes_is_waited_for() {
        let liveness = Arc::new(Liveness::default());
        let ((goes_on, waits), (told, tells)) = (sync_channel::<()>(0), sync_channel(0));
        let own = Arc::clone(&liveness);
        let thread = Worker::spawn("test", Arc::clone(&liveness), move || {
            waits.recv().ok();
            told.send(own.writing(|| ())).ok();
        })
        .unwrap();
        assert_eq!(liveness.writing(|| liveness.progress()), Some(None), "a thread that writes counts as making progress");
        let silence_max = Duration::from_millis(20);
        assert_eq!(thread.wait_within(silence_max, Instant::now() + END_MAX, || liveness.progress()), Waited::Hung);
        // It comes back.
        drop(goes_on);
        assert_eq!(tells.recv(), Ok(None));
    }

    #[test]
    fn who_works_for_too_long_is_abandoned() {
        let thread = Worker::spawn("test", Arc::default(), std::thread::park).unwrap();
        let mut steps = 0;
        let works = || {
            steps += 1;
            Some(steps)
        };
        assert_eq!(thread.wait_within(Duration::from_millis(20), Instant::now(), works), Waited::Hung);
    }

    #[test]
    fn a_thread_that_panics_has_failed() {
        let thread = Worker::spawn("test", Arc::default(), || -> u8 { panic!("on purpose") }).unwrap();
        assert_eq!(thread.wait(), Waited::Failed);
    }
}
