//! Work on files, one piece after the other, on a thread that is left behind where their file system does not answer.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use longpole_model::stack::Mapping;

use super::{SILENCE_MAX, Waited, wait_unless};
use crate::files::{FileId, Files, ReadSeek};

/// The part of the usual time that is waited where another file did not answer before.
const SILENCE_AGAIN_PART: u32 = 10;

/// What one call reads at most, so that a slow disk is not taken for one that does not answer.
const READ_BYTES_MAX: usize = 1 << 20;

/// Files whose file system may not answer; after this many the others are not tried. Most lie in the same one.
const HUNG_MAX: usize = 3;

/// A main thread's usual stack.
const STACK_BYTES: usize = 8 << 20;

type Work<S> = Box<dyn FnOnce(&S) + Send>;

/// The thread and what it works with, which is made of the files.
pub struct PatientReader<S> {
    files: Arc<dyn Files + Send + Sync>,
    state: fn(Box<dyn Files>) -> S,
    thread: Option<Thread<S>>,
    /// Threads that were left behind.
    hung: usize,
    silence_max: Duration,
}

struct Thread<S> {
    work: Sender<Work<S>>,
    /// Calls that begin or end.
    steps: Arc<AtomicU64>,
}

impl<S: 'static> PatientReader<S> {
    /// One that works on these files by way of what `state` makes of them.
    pub fn new(files: Arc<dyn Files + Send + Sync>, state: fn(Box<dyn Files>) -> S) -> PatientReader<S> {
        PatientReader { files, state, thread: None, hung: 0, silence_max: SILENCE_MAX }
    }

    /// The same, which waits this long for a file system.
    #[must_use]
    pub fn with_silence_max(self, silence_max: Duration) -> PatientReader<S> {
        PatientReader { silence_max, ..self }
    }

    /// Whether it tries no more files.
    pub fn has_given_up(&self) -> bool {
        self.hung >= HUNG_MAX
    }

    /// Does a piece of work, and waits for the outcome as long as the thread goes on and `gives_up` returns false.
    pub fn read<T: Send + 'static>(&mut self, work: impl FnOnce(&S) -> T + Send + 'static, gives_up: impl FnMut() -> bool) -> Waited<T> {
        if self.has_given_up() {
            return Waited::Hung;
        }
        let thread = self.thread.take().map_or_else(|| self.start(), Ok);
        // Without a thread there is nobody else to do it.
        let Ok(thread) = thread else { return Waited::Done(work(&(self.state)(Box::new(Arc::clone(&self.files))))) };
        let (done, outcome) = channel();
        let work: Work<S> = Box::new(move |state| {
            // Fails only if nobody waits any more.
            let _ = done.send(work(state));
        });
        if thread.work.send(work).is_err() {
            return Waited::Failed;
        }
        // After one file that did not answer, the next ones get a moment only: mostly they lie in the same file system.
        let silence_max = if self.hung == 0 { self.silence_max } else { self.silence_max / SILENCE_AGAIN_PART };
        let reading = || Some(thread.steps.load(Ordering::Relaxed)).filter(|steps| steps % 2 == 1);
        let waited = wait_unless(&outcome, silence_max, reading, gives_up);
        match waited {
            Waited::Done(_) => self.thread = Some(thread),
            Waited::Failed => {}
            Waited::Hung => self.hung += 1,
        }
        waited
    }

    fn start(&self) -> io::Result<Thread<S>> {
        let steps = Arc::new(AtomicU64::new(0));
        let files = Counted { files: Arc::clone(&self.files), steps: Arc::clone(&steps) };
        let (work, taken) = channel::<Work<S>>();
        let state = self.state;
        let run = move || {
            let state = state(Box::new(files));
            taken.into_iter().for_each(|work| work(&state));
        };
        Builder::new().name("longpole-names".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Thread { work, steps })
    }
}

impl Files for Arc<dyn Files + Send + Sync> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        (**self).open(path)
    }

    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        (**self).open_mapped(mapping)
    }

    fn id(&self, path: &Path) -> io::Result<FileId> {
        (**self).id(path)
    }
}

/// Files that count the calls which may have to wait.
struct Counted<F> {
    files: F,
    steps: Arc<AtomicU64>,
}

impl<F> Counted<F> {
    fn within<T>(&mut self, call: impl FnOnce(&mut F) -> T) -> T {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let outcome = call(&mut self.files);
        self.steps.fetch_add(1, Ordering::Relaxed);
        outcome
    }

    fn opened(&self, open: impl FnOnce(&F) -> io::Result<Box<dyn ReadSeek>>) -> io::Result<Box<dyn ReadSeek>> {
        let steps = Arc::clone(&self.steps);
        let files = Counted { files: &self.files, steps: Arc::clone(&steps) }.within(|files| open(files))?;
        Ok(Box::new(Counted { files, steps }))
    }
}

impl<F: Files> Files for Counted<F> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        self.opened(|files| files.open(path))
    }

    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        self.opened(|files| files.open_mapped(mapping))
    }

    fn id(&self, path: &Path) -> io::Result<FileId> {
        Counted { files: &self.files, steps: Arc::clone(&self.steps) }.within(|files| files.id(path))
    }
}

impl ReadSeek for Counted<Box<dyn ReadSeek>> {
    fn allocated_bytes(&self) -> Option<u64> {
        self.files.allocated_bytes()
    }
}

impl Read for Counted<Box<dyn ReadSeek>> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(READ_BYTES_MAX);
        self.within(|file| file.read(&mut into[..most]))
    }
}

impl Seek for Counted<Box<dyn ReadSeek>> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.within(|file| file.seek(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_read_is_many_steps() {
        let steps = Arc::new(AtomicU64::new(0));
        let files: Box<dyn ReadSeek> = Box::new(io::Cursor::new(vec![1; 5 * READ_BYTES_MAX]));
        let mut file = Counted { files, steps: Arc::clone(&steps) };
        let mut bytes = vec![0; 5 * READ_BYTES_MAX];
        file.read_exact(&mut bytes).unwrap();
        assert_eq!((steps.load(Ordering::Relaxed), bytes.iter().all(|byte| *byte == 1)), (10, true));
    }
}
