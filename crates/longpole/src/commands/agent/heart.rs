//! The heart of a worker: beats on standard output while the worker goes on, so that its supervisor knows.
//!
//! What can stand still for ever is what reads processes: the record thread, and the main thread in some places. A thread that goes on uses CPU
//! time; everything else of a worker has limits of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_capture::recorder::WatchedRecorder;
use longpole_capture::watched_thread::WatchedThread;

use crate::failure::Kind;
use crate::terminal::screen::print_beat;

/// How often it beats.
const EVERY: Duration = Duration::from_secs(1);

/// After this many looks at which nothing went on, it stops to beat.
const STILL_MAX: u32 = 5;

/// What a worker does that may stand still.
#[derive(Debug, Default)]
struct Watched {
    /// The main thread, while it reads processes.
    reading: Option<WatchedThread>,
    recorder: Option<WatchedRecorder>,
}

/// The heart of this process. It beats until it is dropped.
#[derive(Debug)]
pub(super) struct Heart {
    watched: Arc<Mutex<Watched>>,
    _lives: Sender<()>,
}

/// How often in a row a number stayed the same.
#[derive(Debug, Default)]
struct Still {
    last: Option<u64>,
    looks: u32,
}

impl Still {
    fn look(&mut self, progress: Option<u64>) -> bool {
        self.looks = if progress.is_some() && progress == self.last { self.looks + 1 } else { 0 };
        self.last = progress;
        self.looks >= STILL_MAX
    }
}

impl Heart {
    /// Begins to beat.
    pub(super) fn start() -> Result<Heart> {
        let (watched, (lives, ended)) = (Arc::<Mutex<Watched>>::default(), channel());
        let beating = Arc::clone(&watched);
        Builder::new().name("longpole-heart".to_owned()).spawn(move || beat(&beating, &ended)).context("failed to start a thread")?;
        Ok(Heart { watched, _lives: lives })
    }

    /// Reads processes on this thread.
    pub(super) fn reads<T>(&self, read: impl FnOnce() -> T) -> T {
        lock(&self.watched).reading = WatchedThread::this();
        let read = read();
        lock(&self.watched).reading = None;
        read
    }

    /// Watches a recorder, or none.
    pub(super) fn watches(&self, recorder: Option<WatchedRecorder>) {
        lock(&self.watched).recorder = recorder;
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beat(watched: &Mutex<Watched>, ended: &Receiver<()>) {
    let (mut reading, mut recorder) = (Still::default(), Still::default());
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let progress = {
            let watched = lock(watched);
            [watched.reading.as_ref().and_then(WatchedThread::progress), watched.recorder.as_ref().and_then(WatchedRecorder::progress)]
        };
        if reading.look(progress[0]) | recorder.look(progress[1]) {
            continue;
        }
        if print_beat().is_err() {
            #[expect(clippy::exit, reason = "the supervisor is gone, and nobody else would end this process")]
            std::process::exit(i32::from(Kind::Failed.exit_code()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_when_nothing_goes_on_that_should() {
        let mut still = Still::default();
        let looks = |still: &mut Still, progress: &[Option<u64>]| progress.iter().map(|it| still.look(*it)).collect::<Vec<_>>();
        assert_eq!(looks(&mut still, &[Some(7); 6]), [false, false, false, false, false, true]);
        assert_eq!(looks(&mut still, &[Some(8), Some(8)]), [false; 2]);
        assert_eq!(looks(&mut still, &[None; 9]), [false; 9], "it has nothing to do");
    }
}
