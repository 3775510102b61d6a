//! Reads trace files of the command on a thread of its own, which longpole leaves behind if a file system does not answer, or if reading,
//! unpacking and checking the files takes longer than they may delay the end of the run.
//!
//! Only a file counts that nobody but the user can write, and that was written since the command started. What others wrote is data of
//! the command, even if an argument names it: their spans would join the run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use longpole_capture::launch::signals;
use longpole_model::{Recording, units};
use longpole_recording::import::{self, ImportError};
use longpole_store::outside::{self, Links};
use longpole_symbols::hang_timeout::{SILENCE_MAX, Waited, wait_unless};
use longpole_wire::file::GZIP_MAGIC;

use super::moment::timestamp;

/// A file to read.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) path: PathBuf,
    /// The flag of Pulumi that names it. Without one, an argument names it, and it may be anything.
    pub(super) flag: Option<&'static str>,
}

/// How far files of one kind may delay the end of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// For reading, unpacking, checking and logging all of them together.
    pub(super) time: Duration,
    /// Bytes that longpole reads of all of them together.
    pub(super) bytes: u64,
}

/// The limits of both kinds.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindLimits {
    /// Files that a flag names.
    pub(super) flagged: Limit,
    /// Files that only an argument names.
    pub(super) unannounced: Limit,
}

/// The user asks for the spans of a file that a flag names, and waits for them: longpole reads some ten megabytes a second. Nobody asks for
/// those of other files; as much of them as there may be takes a second or two, unless a file is made to take longer.
pub(super) const LIMITS: KindLimits = KindLimits {
    flagged: Limit { time: Duration::from_secs(60), bytes: 1 << 30 },
    unannounced: Limit { time: Duration::from_secs(5), bytes: 128 << 20 },
};

impl KindLimits {
    fn of(&self, file: &Wanted) -> Limit {
        if file.flag.is_some() { self.flagged } else { self.unannounced }
    }
}

impl Limit {
    /// What a loss says of files that take longer.
    pub(super) fn exceeded(&self) -> Error {
        anyhow!("reading such files takes more than {} s; longpole import reads it", self.time.as_secs())
    }
}

/// When files have to be read, for the kind of the file at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Limit,
}

impl Deadline {
    fn of(limit: Limit) -> Self {
        Deadline { at: Instant::now() + limit.time, limit }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }

    /// An error if it is over.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_over() { Err(self.limit.exceeded()) } else { Ok(()) }
    }
}

/// Times of files come from a clock that ticks some hundred times a second.
pub(super) const CLOCK_OF_FILES_NANOS: i64 = 20_000_000;

/// Files whose file system may not answer; after this many, longpole does not try the others.
const HUNG_MAX: usize = 3;

/// The part of the timeout for files after the first one that did not answer.
const SILENCE_AGAIN_PART: u32 = 10;

/// Calls `each` for each file that holds spans of the command, as far as files can tell, or that a flag names, with the time up to which it
/// may take the spans. `since` is when the command started, in nanoseconds of Unix time. Files that a flag names come first.
pub(super) fn read_all(files: &[Wanted], since: i64, limits: KindLimits, mut each: impl FnMut(&Wanted, Deadline, Result<Recording>)) {
    let (mut next, mut hung) = (0, 0);
    let shared = Arc::new(SharedCounts::new(limits));
    // Each kind has its own time, from its first file on.
    let (mut flagged, mut unannounced) = (None, None);
    let mut deadline_of = |file: &Wanted| {
        let deadline = if file.flag.is_some() { &mut flagged } else { &mut unannounced };
        *deadline.get_or_insert_with(|| Deadline::of(limits.of(file)))
    };
    while next < files.len() {
        // Nobody starts a thread for a file that is late already.
        let deadline = deadline_of(&files[next]);
        if let Err(error) = deadline.check() {
            each(&files[next], deadline, Err(error));
            next += 1;
            continue;
        }
        let mut skip = |files: &[Wanted], why: &dyn Fn() -> Error| files.iter().for_each(|file| each(file, deadline, Err(why())));
        if hung == HUNG_MAX {
            skip(&files[next..], &|| anyhow!("not read, because {HUNG_MAX} others did not answer"));
            return;
        }
        let thread = match FileThread::spawn(files[next..].to_vec(), since, &shared) {
            Ok(thread) => thread,
            Err(error) => {
                skip(&files[next..], &|| anyhow!("no thread to read it: {error}"));
                return;
            }
        };
        let silence_max = if hung == 0 { SILENCE_MAX } else { SILENCE_MAX / SILENCE_AGAIN_PART };
        while let Some(file) = files.get(next) {
            let deadline = deadline_of(file);
            let mut is_late = false;
            let gives_up = || {
                is_late = deadline.is_over();
                is_late || signals::interrupted()
            };
            let read = wait_unless(&thread.outcomes, silence_max, || thread.steps.within_call(), gives_up);
            next += 1;
            match read {
                Waited::Done(Ok(None)) => {}
                Waited::Done(read) => each(file, deadline, read.and_then(|found| found.context("it holds no spans"))),
                Waited::Failed => {
                    each(file, deadline, Err(anyhow!("longpole failed to read it")));
                    break;
                }
                Waited::Hung if signals::interrupted() => {
                    let flagged = files[next - 1..].iter().filter(|file| file.flag.is_some());
                    flagged.for_each(|file| each(file, deadline, Err(anyhow!("interrupted"))));
                    return;
                }
                Waited::Hung if is_late => {
                    each(file, deadline, Err(deadline.limit.exceeded()));
                    break;
                }
                Waited::Hung => {
                    hung += 1;
                    each(file, deadline, Err(anyhow!("its file system does not answer")));
                    break;
                }
            }
        }
    }
}

/// What the threads share: what one spent that longpole left behind is spent.
#[derive(Debug)]
struct SharedCounts {
    /// Device and inode of the files that were read: several links may lead to one file.
    seen: Mutex<HashSet<(u64, u64)>>,
    limits: KindLimits,
    flagged_bytes: AtomicU64,
    unannounced_bytes: AtomicU64,
}

impl SharedCounts {
    fn new(limits: KindLimits) -> Self {
        SharedCounts { seen: Mutex::default(), limits, flagged_bytes: AtomicU64::new(0), unannounced_bytes: AtomicU64::new(0) }
    }

    /// Whether nobody read this file before.
    fn is_new(&self, identity: (u64, u64)) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(identity)
    }

    /// Counts the bytes of a file that is about to be read.
    fn spend(&self, is_flagged: bool, bytes: u64) -> Result<()> {
        let (spent, limit) = match is_flagged {
            true => (&self.flagged_bytes, self.limits.flagged),
            false => (&self.unannounced_bytes, self.limits.unannounced),
        };
        // One thread spends at a time, beside those that were left behind.
        if spent.load(Ordering::Relaxed).saturating_add(bytes) > limit.bytes {
            bail!("such files have more than {}; longpole import reads it", units::bytes(limit.bytes));
        }
        spent.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
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

/// A thread that reads one file after the other. Dropped, it is left behind: it ends at its next call of the system.
struct FileThread {
    outcomes: Receiver<Result<Option<Recording>>>,
    steps: Arc<Steps>,
    left: Arc<AtomicBool>,
}

impl Drop for FileThread {
    fn drop(&mut self) {
        self.left.store(true, Ordering::Relaxed);
    }
}

impl FileThread {
    fn spawn(files: Vec<Wanted>, since: i64, shared: &Arc<SharedCounts>) -> io::Result<FileThread> {
        // Without room between the two: no more than the spans of two files are in memory.
        let (sender, outcomes) = sync_channel(0);
        let (steps, left) = (Arc::new(Steps::default()), Arc::new(AtomicBool::new(false)));
        let reader = ThreadReader { since, shared: Arc::clone(shared), steps: Arc::clone(&steps), left: Arc::clone(&left) };
        let work = move || {
            for Wanted { path, flag } in &files {
                let read = if flag.is_some() { reader.flagged(path).map(Some) } else { reader.unannounced(path) };
                if sender.send(read).is_err() {
                    return;
                }
            }
        };
        Builder::new().name("trace files".to_owned()).spawn(work)?;
        Ok(FileThread { outcomes, steps, left })
    }
}

/// Reads files on the thread.
struct ThreadReader {
    since: i64,
    shared: Arc<SharedCounts>,
    steps: Arc<Steps>,
    left: Arc<AtomicBool>,
}

impl ThreadReader {
    /// The spans of a file that a flag names.
    fn flagged(&self, path: &Path) -> Result<Recording> {
        let shown = path.display();
        let file = self.steps.call(|| outside::open(path, Links::Followed)).with_context(|| format!("failed to read {shown}"))?;
        let about = self.steps.call(|| about(&file)).with_context(|| format!("failed to read {shown}"))?;
        if !about.is_ours {
            bail!("{shown} belongs to another user, or others can write to it");
        }
        if about.written < self.since.saturating_sub(CLOCK_OF_FILES_NANOS) {
            bail!("the command did not write {shown}");
        }
        self.shared.spend(true, about.bytes)?;
        self.shared.is_new(about.identity);
        self.spans(import::read_exported(path, self.stepped(file, about.bytes))?)
    }

    /// The spans of a file that no flag names; `None` if it seems to be something else.
    fn unannounced(&self, path: &Path) -> Result<Option<Recording>> {
        let Ok(file) = self.steps.call(|| outside::open(path, Links::Followed)) else { return Ok(None) };
        let Ok(About { written, bytes, is_ours, identity }) = self.steps.call(|| about(&file)) else { return Ok(None) };
        if !is_ours || written < self.since.saturating_sub(CLOCK_OF_FILES_NANOS) || !self.shared.is_new(identity) {
            return Ok(None);
        }
        let mut file = self.stepped(file, bytes);
        let mut head = Vec::new();
        if file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).is_err() || !holds_spans(&head) {
            return Ok(None);
        }
        self.shared.spend(false, bytes)?;
        match import::read_exported(path, head.chain(file)) {
            Ok(contents) => self.spans(contents).map(Some),
            Err(ImportError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Unpacks the spans, unless nobody waits for them.
    fn spans(&self, contents: import::Contents) -> Result<Recording> {
        if self.left.load(Ordering::Relaxed) {
            bail!("nobody waits for it");
        }
        Ok(contents.recording())
    }

    fn stepped(&self, file: File, bytes: u64) -> Stepped {
        Stepped { file: file.take(bytes), steps: Arc::clone(&self.steps), left: Arc::clone(&self.left) }
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

/// Whether a file begins as exporters of spans write it: OTLP as JSON lines, or AppDash's memory. The header of gzip may hold any name.
fn holds_spans(head: &[u8]) -> bool {
    let holds = |words: &[u8]| head.windows(words.len()).any(|window| window == words);
    !head.starts_with(&GZIP_MAGIC) && (holds(b"\"resourceSpans\"") || holds(b"memoryStoreData"))
}

/// A file that counts its calls, and fails once nobody waits for it.
struct Stepped {
    file: io::Take<File>,
    steps: Arc<Steps>,
    left: Arc<AtomicBool>,
}

impl Read for Stepped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Stepped { file, steps, left } = self;
        if left.load(Ordering::Relaxed) {
            return Err(io::Error::other("nobody waits for it"));
        }
        steps.call(|| file.read(buffer))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    use super::*;

    /// A directory of one test.
    struct Directory(PathBuf);

    impl Directory {
        fn of(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("longpole-trace-files-{test}-{}", std::process::id()));
            std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// OTLP as JSON lines, a span in each.
    fn file_of(directory: &Path, name: &str, spans: usize) -> PathBuf {
        let line = |at: usize| {
            let id = format!("{:016x}", at + 1);
            format!(
                "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{id}{id}\",\"spanId\":\"{id}\",\"name\":\"n\",\
                 \"startTimeUnixNano\":\"1790000000000000000\",\"endTimeUnixNano\":\"1790000000000001000\"}}]}}]}}]}}\n"
            )
        };
        let path = directory.join(name);
        std::fs::write(&path, (0..spans).map(line).collect::<String>()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// What [`read_all`] says of each file: the number of its spans, or why it has none.
    fn read(files: &[Wanted], limits: KindLimits) -> Vec<String> {
        let mut said = Vec::new();
        read_all(files, 0, limits, |file, _, read| {
            let name = file.path.file_name().unwrap().to_string_lossy().into_owned();
            said.push(read.map_or_else(|error| format!("{name}: {error:#}"), |recording| format!("{name}: {}", recording.spans.len())));
        });
        said
    }

    fn named(path: PathBuf) -> Wanted {
        Wanted { path, flag: None }
    }

    fn flagged(path: PathBuf) -> Wanted {
        Wanted { path, flag: Some("--tracing") }
    }

    #[test]
    fn all_files_of_a_kind_share_one_limit_of_bytes() {
        let directory = Directory::of("bytes");
        let of = |name: &str| file_of(&directory.0, name, 3);
        let files = [flagged(of("a")), flagged(of("b")), named(of("c")), named(of("d"))];
        let bytes = std::fs::metadata(&files[0].path).unwrap().len();
        let limit = Limit { time: Duration::from_secs(60), bytes };
        let more = format!("such files have more than {}; longpole import reads it", units::bytes(bytes));
        let said = read(&files, KindLimits { flagged: limit, unannounced: limit });
        assert_eq!(said, ["a: 3".to_owned(), format!("b: {more}"), "c: 3".to_owned(), format!("d: {more}")]);
    }

    #[test]
    fn a_thread_that_goes_on_for_too_long_is_left_behind() {
        let directory = Directory::of("time");
        let of = |name: &str, spans: usize| file_of(&directory.0, name, spans);
        let files = [flagged(of("a", 3)), named(of("b", 3)), named(of("c", 3))];
        let enough = Limit { time: Duration::from_secs(60), bytes: 1 << 20 };
        let none = Limit { time: Duration::ZERO, ..enough };
        let late = "reading such files takes more than 0 s; longpole import reads it";
        let said = read(&files, KindLimits { flagged: enough, unannounced: none });
        assert_eq!(said, ["a: 3".to_owned(), format!("b: {late}"), format!("c: {late}")]);
        // The other files have their own time.
        assert_eq!(
            read(&files, KindLimits { flagged: none, unannounced: enough }),
            [format!("a: {late}"), "b: 3".to_owned(), "c: 3".to_owned()]
        );
    }

    #[test]
    fn nobody_reads_on_for_a_thread_that_is_left() {
        let directory = Directory::of("left");
        let path = file_of(&directory.0, "a", 3);
        let left = Arc::new(AtomicBool::new(false));
        let reader = ThreadReader { since: 0, shared: Arc::new(SharedCounts::new(LIMITS)), steps: Arc::default(), left: Arc::clone(&left) };
        assert_eq!(reader.flagged(&path).unwrap().spans.len(), 3);
        left.store(true, Ordering::Relaxed);
        assert!(reader.flagged(&path).is_err());
    }
}
