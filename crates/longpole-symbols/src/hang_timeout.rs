//! The timeout for a file system that hangs.
//!
//! A file of sshfs or NFS without its network, or of a FUSE daemon that is stopped, holds whoever opens or reads it for as long as it likes.
//! Nothing ends such a call from inside the process. So what may read such a file runs on a thread of its own; whoever needs the outcome waits
//! as long as that thread goes on, however slowly, and leaves it behind where it does not.
//!
//! ```text
//! this thread   ── order ──► worker: open ─ read ─ parse ─ read ─ read ─ …        steps 1 2 3 4 5 6 7, odd within a call
//!               ◄─ names ───   or steps stay at 7 ──► left behind; a new worker does the rest
//! ```

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use longpole_model::address::VirtOffset;
use longpole_model::loss::Loss;
use longpole_model::recording::Recording;
use longpole_model::stack::Mapping;

use crate::files::{Files, ReadSeek};
use crate::symbolizer::{self, Resolved, Symbolizer};

/// How long a thread may stand still within a call of the system until it is left behind: a disk that wakes up takes one second or two.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How often a thread is inspected in that time. Time alone would not do: a recorder that is stopped, or has no CPU, does not inspect either.
const LOOKS: u32 = 10;

/// The part of it that is waited where another file did not answer before.
const SILENCE_AGAIN_PART: u32 = 10;

/// What one call reads at most, so that a slow disk is not taken for one that does not answer.
const READ_BYTES_MAX: usize = 1 << 20;

/// Binaries whose file system may not answer; after this many the others are not tried. Most lie in the same one.
const HUNG_MAX: usize = 3;

/// How long naming may take in all, however busy its thread is: files of a recorded program decide how much work their names are.
const NAMING_MAX: Duration = Duration::from_secs(60);

/// A main thread's usual stack.
const STACK_BYTES: usize = 8 << 20;

/// What waiting for a thread came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// What it brought.
    Done(T),
    /// It ended without an outcome: it panicked.
    Failed,
    /// It stands still.
    Hung,
}

/// Waits for what a thread brings, as long as it goes on.
///
/// `reading` is a number that changes while it does; `None` where it is known to go on. A thread is taken to stand still where the number has not
/// changed for `silence_max`.
pub fn wait<T>(outcome: &Receiver<T>, silence_max: Duration, reading: impl FnMut() -> Option<u64>) -> Waited<T> {
    wait_unless(outcome, silence_max, reading, || false)
}

/// The same, but not longer than until `gives_up` returns true: the thread is left behind then, too.
pub fn wait_unless<T>(
    outcome: &Receiver<T>,
    silence_max: Duration,
    mut reading: impl FnMut() -> Option<u64>,
    mut gives_up: impl FnMut() -> bool,
) -> Waited<T> {
    let mut last = reading();
    let mut silent = 0;
    while silent < LOOKS && !gives_up() {
        match outcome.recv_timeout(silence_max / LOOKS) {
            Ok(outcome) => return Waited::Done(outcome),
            Err(RecvTimeoutError::Disconnected) => return Waited::Failed,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = reading();
        silent = if now.is_some() && now == last { silent + 1 } else { 0 };
        last = now;
    }
    Waited::Hung
}

/// Names what a recording has as addresses, as [`Symbolizer::fill`] does, and is not held by a file system that does not answer: what lies there
/// has no names, and is among the losses. The same holds for what is left after a minute, or when `is_memory_short` says so.
pub fn fill(files: Arc<dyn Files + Send + Sync>, recording: &mut Recording, is_memory_short: &dyn Fn() -> bool) -> Vec<Loss> {
    Patient { files, worker: None, hung: 0, silence_max: SILENCE_MAX, until: Instant::now() + NAMING_MAX, is_memory_short, stopped: None }
        .fill(recording)
}

struct Patient<'a> {
    files: Arc<dyn Files + Send + Sync>,
    worker: Option<Worker>,
    /// Workers that were left behind.
    hung: usize,
    silence_max: Duration,
    /// The end of naming, done or not.
    until: Instant,
    is_memory_short: &'a dyn Fn() -> bool,
    /// Why no further binary is read.
    stopped: Option<&'static str>,
}

/// A thread that names addresses.
struct Worker {
    orders: Sender<(Mapping, Vec<VirtOffset>)>,
    names: Receiver<Resolved>,
    steps: Arc<AtomicU64>,
}

impl Worker {
    fn start(files: &Arc<dyn Files + Send + Sync>) -> io::Result<Worker> {
        let steps = Arc::new(AtomicU64::new(0));
        let files = Counted { files: Arc::clone(files), steps: Arc::clone(&steps) };
        let (orders, taken) = channel::<(Mapping, Vec<VirtOffset>)>();
        let (named, names) = channel();
        let work = move || {
            let symbolizer = Symbolizer::new(Box::new(files));
            for (mapping, addresses) in taken {
                // Nobody waits any more for who comes back.
                if named.send(symbolizer.resolve(&mapping, &addresses)).is_err() {
                    break;
                }
            }
        };
        Builder::new().name("longpole-names".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Worker { orders, names, steps })
    }
}

impl Patient<'_> {
    fn fill(&mut self, recording: &mut Recording) -> Vec<Loss> {
        symbolizer::fill_by(recording, |mapping, addresses| self.resolve(mapping, addresses))
    }

    /// After one file that did not answer, the next ones get a moment only: mostly they lie in the same file system.
    fn silence_max(&self) -> Duration {
        if self.hung == 0 { self.silence_max } else { self.silence_max / SILENCE_AGAIN_PART }
    }

    /// Why naming ends here, whatever is left.
    fn limit(&self) -> Option<&'static str> {
        if Instant::now() >= self.until {
            Some("skipped, because the names of all binaries would take longer than 60 s")
        } else if (self.is_memory_short)() {
            Some("skipped, because the names of all binaries would take more than half of the free memory")
        } else {
            None
        }
    }

    fn resolve(&mut self, mapping: &Mapping, addresses: &[VirtOffset]) -> Resolved {
        if self.hung >= HUNG_MAX {
            self.stopped.get_or_insert("skipped, because the file system of earlier binaries did not answer");
        }
        if let Some(why) = self.stopped {
            return without_names(mapping, addresses, why);
        }
        let worker = self.worker.take().map_or_else(|| Worker::start(&self.files), Ok);
        // Without a thread there is nobody else to do it.
        let Ok(worker) = worker else { return Symbolizer::new(Box::new(Arc::clone(&self.files))).resolve(mapping, addresses) };
        let reading = || Some(worker.steps.load(Ordering::Relaxed)).filter(|steps| steps % 2 == 1);
        let waited = match worker.orders.send((mapping.clone(), addresses.to_vec())) {
            Ok(()) => {
                let mut stopped = None;
                let waited = wait_unless(&worker.names, self.silence_max(), reading, || {
                    stopped = self.limit();
                    stopped.is_some()
                });
                self.stopped = stopped;
                waited
            }
            Err(_) => Waited::Failed,
        };
        match waited {
            Waited::Done(resolved) => {
                self.worker = Some(worker);
                resolved
            }
            Waited::Failed => without_names(mapping, addresses, "a bug in longpole"),
            Waited::Hung => {
                self.hung += 1;
                without_names(mapping, addresses, self.stopped.unwrap_or("its file system does not answer"))
            }
        }
    }
}

/// What there is to say of a binary that is not read.
fn without_names(mapping: &Mapping, addresses: &[VirtOffset], why: &'static str) -> Resolved {
    struct Closed(&'static str);

    impl Files for Closed {
        fn open(&self, _: &Path) -> io::Result<Box<dyn ReadSeek>> {
            Err(io::Error::other(self.0))
        }
    }
    Symbolizer::new(Box::new(Closed(why))).resolve(mapping, addresses)
}

impl Files for Arc<dyn Files + Send + Sync> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        (**self).open(path)
    }

    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        (**self).open_mapped(mapping)
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
    use std::sync::{Condvar, Mutex};

    use longpole_model::stack::MappingId;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn who_does_not_go_on_is_left() {
        let (_held, outcome) = channel::<()>();
        assert_eq!(wait(&outcome, SHORT, || Some(7)), Waited::Hung);
        let (gone, outcome) = channel::<()>();
        drop(gone);
        assert_eq!(wait(&outcome, SHORT, || Some(7)), Waited::Failed);
    }

    #[test]
    fn who_goes_on_slowly_and_long_is_waited_for() {
        // Each sixth look finds it further: many times as long as anybody may stand still. The last one finds the outcome.
        let slow = |number: u64| Some(number / 6);
        // It is known to go on, and says nothing.
        let sure = |_| None;
        for reading in [slow as fn(u64) -> Option<u64>, sure] {
            let (done, outcome) = channel();
            let mut looks = 0;
            let waited = wait(&outcome, SHORT, || {
                looks += 1;
                if looks == u64::from(LOOKS) * 6 {
                    done.send(looks).unwrap();
                }
                reading(looks)
            });
            assert_eq!(waited, Waited::Done(60));
        }
    }

    #[test]
    fn who_gives_up_waits_no_longer() {
        let (_held, outcome) = channel::<()>();
        assert_eq!(wait_unless(&outcome, Duration::MAX, || None, || true), Waited::Hung);
    }

    /// Opens nothing below `/hung` before the test lets it.
    struct Hung(Arc<(Mutex<bool>, Condvar)>);

    impl Files for Hung {
        fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
            if path.starts_with("/hung") {
                let (answers, told) = &*self.0;
                drop(told.wait_while(answers.lock().unwrap(), |answers| !*answers).unwrap());
            }
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn patient(files: Arc<dyn Files + Send + Sync>, until: Instant, is_memory_short: &dyn Fn() -> bool) -> Patient<'_> {
        Patient { files, worker: None, hung: 0, silence_max: SHORT, until, is_memory_short, stopped: None }
    }

    #[test]
    fn naming_ends_at_its_limits() {
        let files: Arc<dyn Files + Send + Sync> = Arc::new(Hung(Arc::default()));
        let now = Instant::now();
        let past = patient(Arc::clone(&files), now, &|| false);
        let short = patient(files, now + NAMING_MAX, &|| true);
        for (mut patient, why) in [(past, "take longer than 60 s"), (short, "take more than half of the free memory")] {
            for path in ["/lib/a.so", "/lib/b.so"] {
                let mapping = Mapping { id: MappingId(0), path: path.to_owned(), build_id: Vec::new() };
                let resolved = patient.resolve(&mapping, &[VirtOffset(0x10)]);
                let told = resolved.trouble.map(|reason| reason.to_string()).unwrap_or_default();
                assert_eq!((resolved.frames.len(), told.ends_with(why)), (1, true), "{told}");
            }
        }
    }

    #[test]
    fn a_file_system_that_does_not_answer_holds_nobody() {
        let answers = Arc::new((Mutex::new(false), Condvar::new()));
        let files: Arc<dyn Files + Send + Sync> = Arc::new(Hung(Arc::clone(&answers)));
        let mut patient = patient(files, Instant::now() + NAMING_MAX, &|| false);
        let mut told = |path: &str| {
            let mapping = Mapping { id: MappingId(0), path: path.to_owned(), build_id: Vec::new() };
            let resolved = patient.resolve(&mapping, &[VirtOffset(0x10), VirtOffset(0x20)]);
            assert_eq!(resolved.frames.len(), 2);
            resolved.trouble.map(|reason| reason.to_string()).unwrap_or_default()
        };
        let silent = "file unreadable: its file system does not answer";
        assert_eq!(["/lib/a.so", "/hung/b", "/lib/c.so"].map(&mut told), ["file missing", silent, "file missing"]);
        assert_eq!(["/hung/d", "/hung/e"].map(&mut told), [silent; 2]);
        assert_eq!(told("/lib/f.so"), "file unreadable: skipped, because the file system of earlier binaries did not answer");
        *answers.0.lock().unwrap() = true;
        answers.1.notify_all();
    }

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
