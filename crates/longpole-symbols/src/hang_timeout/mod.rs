//! The timeout for a file system that hangs.
//!
//! A file of sshfs or NFS without its network, or of a FUSE daemon that is stopped, holds whoever opens or reads it for as long as it likes.
//! Nothing ends such a call from inside the process. So what may read such a file runs on a thread of its own; whoever needs the outcome waits
//! as long as that thread goes on, however slowly, and leaves it behind where it does not.
//!
//! ```text
//! this thread   ── work ───► reader: open ─ read ─ parse ─ read ─ read ─ …        steps 1 2 3 4 5 6 7, odd within a call
//!               ◄─ names ───   or steps stay at 7 ──► left behind; a new reader does the rest
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use longpole_model::address::VirtOffset;
use longpole_model::loss::Loss;
use longpole_model::recording::Recording;
use longpole_model::stack::Mapping;

use crate::files::{Files, ReadSeek};
use crate::symbolizer::{self, Resolved, Symbolizer};

mod reader;

pub use reader::PatientReader;

/// How long a thread may stand still within a call of the system until it is left behind: a disk that wakes up takes one second or two.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How often a thread is inspected in that time. Time alone would not do: a recorder that is stopped, or has no CPU, does not inspect either.
const LOOKS: u32 = 10;

/// How long naming may take in all, however busy its thread is: files of a recorded program decide how much work their names are.
const NAMING_MAX: Duration = Duration::from_secs(60);

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
    Patient::new(PatientReader::new(files, Symbolizer::new), NAMING_MAX, is_memory_short).fill(recording)
}

/// Names addresses of one binary, as a [quick](Symbolizer::quick) symbolizer does, within `patience`: after it, and where its file system does not
/// answer, they have none.
pub fn resolve_quickly(files: Arc<dyn Files + Send + Sync>, mapping: &Mapping, addresses: &[VirtOffset], patience: Duration) -> Resolved {
    Patient::new(PatientReader::new(files, Symbolizer::quick), patience, &|| false).resolve(mapping, addresses)
}

struct Patient<'a> {
    reader: PatientReader<Symbolizer>,
    /// The end of naming, done or not, and how long that is from its start.
    until: Instant,
    patience: Duration,
    is_memory_short: &'a dyn Fn() -> bool,
    /// Why no further binary is read.
    stopped: Option<String>,
}

impl<'a> Patient<'a> {
    fn new(reader: PatientReader<Symbolizer>, patience: Duration, is_memory_short: &'a dyn Fn() -> bool) -> Self {
        Patient { reader, until: Instant::now() + patience, patience, is_memory_short, stopped: None }
    }

    fn fill(&mut self, recording: &mut Recording) -> Vec<Loss> {
        symbolizer::fill_by(recording, |mapping, addresses| self.resolve(mapping, addresses))
    }

    fn resolve(&mut self, mapping: &Mapping, addresses: &[VirtOffset]) -> Resolved {
        if self.reader.has_given_up() {
            self.stopped.get_or_insert_with(|| "skipped, because the file system of earlier binaries did not answer".to_owned());
        }
        if let Some(why) = &self.stopped {
            return without_names(mapping, addresses, why);
        }
        let (binary, wanted) = (mapping.clone(), addresses.to_vec());
        let waited = self.reader.read(
            move |symbolizer| symbolizer.resolve(&binary, &wanted),
            || {
                self.stopped = limit((self.until, self.patience), self.is_memory_short);
                self.stopped.is_some()
            },
        );
        match waited {
            Waited::Done(resolved) => resolved,
            Waited::Failed => without_names(mapping, addresses, "a bug in longpole"),
            Waited::Hung => without_names(mapping, addresses, self.stopped.as_deref().unwrap_or("its file system does not answer")),
        }
    }
}

/// Why naming ends here, whatever is left.
fn limit((until, patience): (Instant, Duration), is_memory_short: &dyn Fn() -> bool) -> Option<String> {
    if Instant::now() >= until {
        Some(format!("skipped, because the names of all binaries would take longer than {} s", patience.as_secs()))
    } else if is_memory_short() {
        Some("skipped, because the names of all binaries would take more than half of the free memory".to_owned())
    } else {
        None
    }
}

/// What there is to say of a binary that is not read.
pub fn without_names(mapping: &Mapping, addresses: &[VirtOffset], why: &str) -> Resolved {
    struct Closed(String);

    impl Files for Closed {
        fn open(&self, _: &Path) -> io::Result<Box<dyn ReadSeek>> {
            Err(io::Error::other(self.0.clone()))
        }
    }
    Symbolizer::new(Box::new(Closed(why.to_owned()))).resolve(mapping, addresses)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
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
        let reader = PatientReader::new(files, Symbolizer::new).with_silence_max(SHORT);
        Patient { reader, until, patience: NAMING_MAX, is_memory_short, stopped: None }
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
}
