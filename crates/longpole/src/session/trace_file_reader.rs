//! Reads trace files of the command on a thread of its own, which longpole leaves behind if a file system does not answer.
//!
//! Only a file counts that nobody but the user can write, and that was written since the command started. What others wrote is data of
//! the command, even if an argument names it: their spans would join the run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Builder;

use anyhow::{Context, Result, anyhow, bail};
use longpole_capture::launch::signals;
use longpole_model::{Recording, units};
use longpole_recording::import::{self, ImportError};
use longpole_store::outside::{self, Links};
use longpole_symbols::hang_timeout::{SILENCE_MAX, Waited, wait_unless};

use super::moment::timestamp;

/// A file to read.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) path: PathBuf,
    /// The flag of Pulumi that names it. Without one, an argument names it, and it may be anything.
    pub(super) flag: Option<&'static str>,
}

/// Files that no flag names delay the end of the run; this much of them takes a second or two.
const UNANNOUNCED_BYTES_MAX: u64 = 128 << 20;

/// Times of files come from a clock that ticks some hundred times a second.
pub(super) const CLOCK_OF_FILES_NANOS: i64 = 20_000_000;

/// Files whose file system may not answer; after this many, longpole does not try the others.
const HUNG_MAX: usize = 3;

/// The part of the timeout for files after the first one that did not answer.
const SILENCE_AGAIN_PART: u32 = 10;

/// Calls `each` for each file that holds spans of the command, as far as files can tell, or that a flag names. `since` is when the command
/// started, in nanoseconds of Unix time.
pub(super) fn read_all(files: &[Wanted], since: i64, mut each: impl FnMut(&Wanted, Result<Recording>)) {
    let (mut next, mut hung) = (0, 0);
    while next < files.len() {
        if hung == HUNG_MAX {
            files[next..].iter().for_each(|file| each(file, Err(anyhow!("not read, because {HUNG_MAX} others did not answer"))));
            return;
        }
        let thread = match FileThread::spawn(files[next..].to_vec(), since) {
            Ok(thread) => thread,
            Err(error) => {
                files[next..].iter().for_each(|file| each(file, Err(anyhow!("no thread to read it: {error}"))));
                return;
            }
        };
        let silence_max = if hung == 0 { SILENCE_MAX } else { SILENCE_MAX / SILENCE_AGAIN_PART };
        while let Some(file) = files.get(next) {
            let read = wait_unless(&thread.outcomes, silence_max, || thread.steps.within_call(), signals::interrupted);
            next += 1;
            match read {
                Waited::Done(Ok(None)) => {}
                Waited::Done(read) => each(file, read.and_then(|found| found.context("it holds no spans"))),
                Waited::Failed => {
                    each(file, Err(anyhow!("longpole failed to read it")));
                    break;
                }
                Waited::Hung if signals::interrupted() => {
                    files[next - 1..].iter().filter(|file| file.flag.is_some()).for_each(|file| each(file, Err(anyhow!("interrupted"))));
                    return;
                }
                Waited::Hung => {
                    hung += 1;
                    each(file, Err(anyhow!("its file system does not answer")));
                    break;
                }
            }
        }
    }
}

/// The number of calls of the system that began or returned.
#[derive(Debug, Default)]
struct Steps(AtomicU64);

impl Steps {
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::Relaxed);
        let outcome = call();
        self.0.fetch_add(1, Ordering::Relaxed);
        outcome
    }

    /// The number within a call; `None` between two, where the thread goes on by itself.
    fn within_call(&self) -> Option<u64> {
        let steps = self.0.load(Ordering::Relaxed);
        (steps % 2 == 1).then_some(steps)
    }
}

/// A thread that reads one file after the other.
struct FileThread {
    outcomes: Receiver<Result<Option<Recording>>>,
    steps: Arc<Steps>,
}

impl FileThread {
    fn spawn(files: Vec<Wanted>, since: i64) -> io::Result<FileThread> {
        // Without room between the two: no more than the spans of two files are in memory.
        let (sender, outcomes) = sync_channel(0);
        let steps = Arc::new(Steps::default());
        let own = Arc::clone(&steps);
        let work = move || {
            let mut unannounced = Unannounced { seen: HashSet::new(), bytes_left: UNANNOUNCED_BYTES_MAX };
            for file in files {
                let Wanted { path, flag } = &file;
                let read = if flag.is_some() { read(path, since, &own).map(Some) } else { unannounced.read(path, since, &own) };
                if sender.send(read).is_err() {
                    return;
                }
            }
        };
        Builder::new().name("trace files".to_owned()).spawn(work)?;
        Ok(FileThread { outcomes, steps })
    }
}

/// The spans of a file that a flag names.
fn read(path: &Path, since: i64, steps: &Arc<Steps>) -> Result<Recording> {
    let shown = path.display();
    let file = steps.call(|| outside::open(path, Links::Followed)).with_context(|| format!("failed to read {shown}"))?;
    let About { written, bytes, is_ours, .. } = steps.call(|| about(&file)).with_context(|| format!("failed to read {shown}"))?;
    if !is_ours {
        bail!("{shown} belongs to another user, or others can write to it");
    }
    if written < since.saturating_sub(CLOCK_OF_FILES_NANOS) {
        bail!("the command did not write {shown}");
    }
    Ok(import::read_exported(path, Stepped { file: file.take(bytes), steps: Arc::clone(steps) })?.recording())
}

/// Files that no flag names.
struct Unannounced {
    /// Device and inode of those that were read: several links may lead to one file.
    seen: HashSet<(u64, u64)>,
    bytes_left: u64,
}

impl Unannounced {
    /// The spans of a file; `None` if it seems to be something else.
    fn read(&mut self, path: &Path, since: i64, steps: &Arc<Steps>) -> Result<Option<Recording>> {
        let Ok(file) = steps.call(|| outside::open(path, Links::Followed)) else { return Ok(None) };
        let Ok(About { written, bytes, is_ours, identity }) = steps.call(|| about(&file)) else { return Ok(None) };
        if !is_ours || written < since.saturating_sub(CLOCK_OF_FILES_NANOS) || !self.seen.insert(identity) {
            return Ok(None);
        }
        let mut file = Stepped { file: file.take(bytes), steps: Arc::clone(steps) };
        let mut head = Vec::new();
        if file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).is_err() || !holds_spans(&head) {
            return Ok(None);
        }
        let Some(bytes_left) = self.bytes_left.checked_sub(bytes) else {
            bail!("such files have more than {}; longpole import reads it", units::bytes(UNANNOUNCED_BYTES_MAX));
        };
        self.bytes_left = bytes_left;
        match import::read_exported(path, head.chain(file)) {
            Ok(contents) => Ok(Some(contents.recording())),
            Err(ImportError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

struct About {
    written: i64,
    bytes: u64,
    /// Nobody else can write it.
    is_ours: bool,
    /// Device and inode.
    identity: (u64, u64),
}

fn about(file: &File) -> io::Result<About> {
    let about = file.metadata()?;
    Ok(About {
        written: timestamp(about.modified()?).unix_nanos(),
        bytes: about.len(),
        is_ours: outside::is_only_ours(file)?,
        identity: (about.dev(), about.ino()),
    })
}

/// What tells the format stands at the beginning.
const HEAD_BYTES: u64 = 4096;

/// What gzip begins with; its header may hold any name.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether a file begins as exporters of spans write it: OTLP as JSON lines, or AppDash's memory.
fn holds_spans(head: &[u8]) -> bool {
    let holds = |words: &[u8]| head.windows(words.len()).any(|window| window == words);
    !head.starts_with(&GZIP) && (holds(b"\"resourceSpans\"") || holds(b"memoryStoreData"))
}

/// A file that counts its calls.
struct Stepped {
    file: io::Take<File>,
    steps: Arc<Steps>,
}

impl Read for Stepped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Stepped { file, steps } = self;
        steps.call(|| file.read(buffer))
    }
}
