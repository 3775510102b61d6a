//! Whether a thread of the recorder goes on, or hangs in a file system that does not answer ([`longpole_symbols::patience`]).
//!
//! These threads read what the recorded processes have a hand in: files below their root, and their memory, of which a page may lie in such a
//! file. The pulse of a thread is its own CPU clock: whatever it does takes CPU time, however long it has to do, and a call that nobody answers
//! takes none. So no turn of a loop and no long step of it has to say that it lives.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use longpole_symbols::patience::{self, SILENCE_MAX, Waited};

use crate::sys::perf::{ThreadClock, monotonic_nanos};

/// What is known of a thread from outside.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    clock: OnceLock<ThreadClock>,
    /// It writes to our own log, whose disk may take its time.
    writes: AtomicBool,
    /// When it had written all that it had, last.
    written_at: AtomicU64,
    /// Nobody waits for it any more.
    is_left: AtomicBool,
}

impl Pulse {
    /// A number that changes while the thread goes on; `None` where it is known to, or its clock is not known.
    pub(crate) fn reading(&self) -> Option<u64> {
        if self.writes.load(Ordering::Relaxed) { None } else { self.clock.get()?.nanos() }
    }

    /// Writes; `None` where nobody waits for it any more: the recording may be sealed.
    pub(crate) fn writing<T>(&self, write: impl FnOnce() -> T) -> Option<T> {
        if self.is_left.load(Ordering::Relaxed) {
            return None;
        }
        self.writes.store(true, Ordering::Relaxed);
        let outcome = write();
        self.writes.store(false, Ordering::Relaxed);
        Some(outcome)
    }

    /// All that there was is written.
    pub(crate) fn has_written(&self) {
        self.written_at.store(monotonic_nanos(), Ordering::Relaxed);
    }

    /// When that was last.
    pub(crate) fn written_at(&self) -> u64 {
        self.written_at.load(Ordering::Relaxed)
    }
}

/// A thread that may be left behind.
#[derive(Debug)]
pub(crate) struct Leavable<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
    pulse: Arc<Pulse>,
}

impl<T: Send + 'static> Leavable<T> {
    /// Starts it.
    pub(crate) fn spawn(name: &str, pulse: Arc<Pulse>, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Leavable<T>> {
        let (done, outcome) = channel();
        let own = Arc::clone(&pulse);
        let run = move || {
            if let Some(clock) = ThreadClock::of_this_thread() {
                let _ = own.clock.set(clock);
            }
            // Nobody waits for who was left behind.
            let _ = done.send(work());
        };
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Leavable { thread, outcome, pulse })
    }

    pub(crate) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Waits for its end, as long as it goes on.
    pub(crate) fn wait(self) -> Waited<T> {
        let pulse = Arc::clone(&self.pulse);
        self.wait_by(|| pulse.reading())
    }

    /// The same, where something else tells whether it goes on.
    pub(crate) fn wait_by(self, reading: impl FnMut() -> Option<u64>) -> Waited<T> {
        self.wait_within(SILENCE_MAX, reading)
    }

    fn wait_within(self, silence_max: Duration, reading: impl FnMut() -> Option<u64>) -> Waited<T> {
        match patience::wait(&self.outcome, silence_max, reading) {
            Waited::Hung => self.leave(),
            ended => {
                // It has nothing left to do; a panic was said.
                let _ = self.thread.join();
                ended
            }
        }
    }

    /// Leaves it behind.
    pub(crate) fn leave(self) -> Waited<T> {
        self.pulse.is_left.store(true, Ordering::Relaxed);
        Waited::Hung
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn who_works_has_a_pulse_and_who_waits_has_none() {
        let pulse = Arc::new(Pulse::default());
        assert_eq!(pulse.reading(), None, "it has not begun");
        let ((told, tells), (goes_on, waits)) = (sync_channel(0), sync_channel(0));
        let thread = Leavable::spawn("test", Arc::clone(&pulse), move || {
            told.send(()).unwrap();
            waits.recv().unwrap();
            // Longer than anybody may stand still, in steps of CPU time.
            let begun = crate::sys::perf::thread_cpu_nanos();
            while crate::sys::perf::thread_cpu_nanos() < begun + 2_000_000 {}
            told.send(()).unwrap();
            waits.recv().unwrap();
            7
        })
        .unwrap();
        let settled = || {
            let mut last = pulse.reading();
            loop {
                let now = std::iter::repeat_with(|| pulse.reading()).take(1_000).last().unwrap();
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
    fn who_hangs_is_left_and_writes_no_more_and_who_writes_is_waited_for() {
        let pulse = Arc::new(Pulse::default());
        let ((goes_on, waits), (told, tells)) = (sync_channel::<()>(0), sync_channel(0));
        let own = Arc::clone(&pulse);
        let thread = Leavable::spawn("test", Arc::clone(&pulse), move || {
            waits.recv().ok();
            told.send(own.writing(|| ())).ok();
        })
        .unwrap();
        assert_eq!(pulse.writing(|| pulse.reading()), Some(None), "whoever writes goes on");
        let silence_max = Duration::from_millis(20);
        assert_eq!(thread.wait_within(silence_max, || pulse.reading()), Waited::Hung);
        // It comes back.
        drop(goes_on);
        assert_eq!(tells.recv(), Ok(None));
    }

    #[test]
    fn what_panics_has_failed() {
        let thread = Leavable::spawn("test", Arc::default(), || -> u8 { panic!("on purpose") }).unwrap();
        assert_eq!(thread.wait(), Waited::Failed);
    }
}
