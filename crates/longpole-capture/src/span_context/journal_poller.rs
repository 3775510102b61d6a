//! Polls the journals of all threads of a recording: finds them, and schedules when to read each.
//!
//! A file is removed once it is open, so the directory holds only new journals, and the memory of a journal is freed when its thread and we
//! have closed it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longpole_model::{Loss, LossKind, Monotonic, Observation};

use super::journal::{Header, Journal, Refusal};
use crate::clock;
use crate::private_dir::LOCK;
use crate::regular_file::{self, Symlinks};
use crate::sys::clock::monotonic_nanos;

/// How often to list the directory. A thread makes its journal with its first span, and has room for 8,192 entries until it is found.
const LISTING_NANOS: u64 = 20_000_000;

/// For how long after a change the directory is listed again, whatever its modification time is.
const SETTLED: Duration = Duration::from_millis(100);

/// Pause before a journal that had new entries is read again: it is full after 10 ms at 800,000 entries a second.
const POLL_NANOS: u64 = 10_000_000;

/// Longest pause for one that had none: it is full after that at 200,000 entries a second.
const POLL_NANOS_MAX: u64 = 40_000_000;

/// How often to check that the thread of a journal without new entries still lives.
const ALIVE_NANOS: u64 = 1_000_000_000;

/// How far ahead of ours the clock of a journal may be: those of two time namespaces are not read at once.
const AHEAD_NANOS_MAX: u64 = 1_000_000_000;

/// Most journals open at a time, because of descriptors. The others are read when one ends, or at the end.
const OPEN_MAX: usize = 4_096;

/// Most files opened at once.
const LISTED_MAX: usize = 512;

/// How often to list the directory at the end: processes that outlive the recording may go on to make threads.
const LAST_LISTINGS_MAX: usize = 64;

/// Most entries kept a second, on average: 13 MB of the log. A program that writes more is read more slowly, and the lost entries are counted;
/// otherwise its log would fill the disk.
const ENTRIES_PER_SECOND: u64 = 400_000;

/// Most entries kept at once: the full journals of 32 threads.
const ENTRIES_AT_ONCE: u64 = 32 * 8_192;

/// Most entries of a recording: 900 MB of memory when it is sealed.
const ENTRIES_MAX: u64 = 1 << 24;

/// Most files in the directory to remember that can neither be read nor removed.
const STRANGERS_MAX: usize = 64;

/// A journal that is open.
#[derive(Debug)]
struct OpenJournal {
    file: File,
    /// `None` while its header is not written.
    journal: Option<Journal>,
    /// Added to its times, which may be of another time namespace.
    shift: u64,
    /// Whether some of its entries were reported, which the next ones follow.
    is_told: bool,
    next_poll: u64,
    pause: u64,
    next_alive: u64,
}

impl OpenJournal {
    fn thread(&self) -> Option<(u32, u32)> {
        self.journal.as_ref().map(|journal| (journal.header().pid, journal.header().tid))
    }

    fn made_at(&self) -> Option<u64> {
        self.journal.as_ref().map(|journal| journal.header().monotonic)
    }
}

/// What becomes of a journal after it was read.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

/// The journals of a recording.
#[derive(Debug)]
pub(crate) struct JournalPoller {
    /// Its path by descriptor: the command may put anything at its own path.
    directory: PathBuf,
    // Keeps the descriptor of that path open.
    _open: Option<File>,
    /// The user and the namespaces that journals must belong to.
    uid: u32,
    pid_namespace: u64,
    time_namespace: u64,
    open: Vec<OpenJournal>,
    next_listing: u64,
    /// The modification time of the directory, if it was listed completely since.
    listed: Option<SystemTime>,
    strangers: HashSet<OsString>,
    /// How many entries may be kept now, and as of when.
    allowance: u64,
    allowed_at: u64,
    /// Entries kept so far.
    taken: u64,
    refused: HashMap<Refusal, u64>,
    lost: u64,
    // Kept for its memory.
    bytes: Vec<u8>,
}

impl JournalPoller {
    /// Reads the journals of this directory.
    pub(crate) fn new(directory: PathBuf) -> JournalPoller {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let open = OpenOptions::new().read(true).custom_flags(flags).open(&directory).ok();
        // If it cannot be opened, there is nothing to list.
        let directory = open.as_ref().map_or(PathBuf::new(), |open| PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())));
        JournalPoller {
            _open: open,
            uid: fs::metadata(&directory).map_or(u32::MAX, |meta| meta.uid()),
            pid_namespace: namespace("pid"),
            time_namespace: namespace("time"),
            directory,
            open: Vec::new(),
            next_listing: 0,
            listed: None,
            strangers: HashSet::new(),
            allowance: ENTRIES_AT_ONCE,
            allowed_at: 0,
            taken: 0,
            refused: HashMap::new(),
            lost: 0,
            bytes: Vec::new(),
        }
    }

    /// The longest pause between two readings, in milliseconds; `None` if there is no journal.
    pub(crate) fn patience_millis(&self) -> Option<i32> {
        (!self.open.is_empty()).then_some((POLL_NANOS_MAX / 1_000_000) as i32)
    }

    /// Reads the journals that are due and reports new entries. The last time it reads all of them.
    pub(crate) fn poll(&mut self, is_last: bool, out: &mut Vec<Observation>) {
        let now = monotonic_nanos();
        let earned = u128::from(now.saturating_sub(self.allowed_at)) * u128::from(ENTRIES_PER_SECOND) / 1_000_000_000;
        if earned > 0 {
            self.allowance = self.allowance.saturating_add(earned as u64).min(ENTRIES_AT_ONCE);
            self.allowed_at = now;
        }
        let mut has_new = now >= self.next_listing && self.has_changed(now) && self.list(now);
        self.poll_open(now, is_last, has_new, out);
        // Journals that were read for the last time are closed, so there are descriptors for the rest.
        has_new = is_last;
        for _ in 0..LAST_LISTINGS_MAX {
            if !has_new {
                break;
            }
            has_new = self.list(now);
            self.poll_open(now, true, has_new, out);
        }
        self.tell_losses(out);
    }

    fn poll_open(&mut self, now: u64, is_last: bool, has_new: bool, out: &mut Vec<Observation>) {
        let mut open = std::mem::take(&mut self.open);
        let mut newest: HashMap<(u32, u32), u64> = HashMap::new();
        if has_new || open.iter().any(|it| it.journal.is_none()) {
            open.retain_mut(|it| it.journal.is_some() || self.open_journal(it, now));
            // A thread that executes a program, and a later thread with its id, have new journals: older ones are read first, to their end.
            open.sort_by_key(|it| it.made_at().unwrap_or(u64::MAX));
            newest.extend(open.iter().filter_map(|it| Some((it.thread()?, it.made_at()?))));
        }
        open.retain_mut(|it| {
            let is_replaced = it.thread().is_some_and(|thread| newest.get(&thread).is_some_and(|newest| Some(*newest) != it.made_at()));
            let is_last = is_last || is_replaced;
            (!is_last && now < it.next_poll) || self.poll_one(it, now, is_last, out) == Fate::Stays
        });
        self.open = open;
    }

    /// Whether the directory may have changed since it was listed. Most programs make no journal.
    fn has_changed(&mut self, now: u64) -> bool {
        self.next_listing = now + LISTING_NANOS;
        let changed = fs::metadata(&self.directory).and_then(|meta| meta.modified()).ok();
        // A file that is added within one tick of the kernel's clock after a listing does not change the time.
        let is_old = |changed: SystemTime| SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED);
        let is_known = changed.is_some() && changed == self.listed;
        self.listed = changed.filter(|changed| is_old(*changed));
        !is_known
    }

    /// Opens new files in the directory; whether there was one.
    fn list(&mut self, now: u64) -> bool {
        self.next_listing = now + LISTING_NANOS;
        let mut has_new = false;
        let mut count = 0;
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name == LOCK || self.strangers.contains(&name) {
                continue;
            }
            if self.open.len() >= OPEN_MAX || count >= LISTED_MAX {
                self.listed = None;
                break;
            }
            count += 1;
            let opened = self.open_file(&entry);
            if matches!(&opened, Err(error) if is_out_of_descriptors(error)) {
                self.listed = None;
                break;
            }
            if fs::remove_file(entry.path()).is_err() {
                if self.strangers.len() >= STRANGERS_MAX {
                    self.listed = None;
                    break;
                }
                self.strangers.insert(name);
            }
            let Ok(Some(file)) = opened else {
                *self.refused.entry(Refusal::Stranger).or_default() += 1;
                continue;
            };
            has_new = true;
            let next_alive = now + ALIVE_NANOS;
            self.open.push(OpenJournal { file, journal: None, shift: 0, is_told: false, next_poll: 0, pause: POLL_NANOS, next_alive });
        }
        has_new
    }

    /// Reads the header; whether it may be a journal.
    fn open_journal(&mut self, it: &mut OpenJournal, now: u64) -> bool {
        let file = &it.file;
        let opened = Journal::open(&mut |offset, into: &mut [u8]| file.read_at(into, offset));
        let opened = opened.and_then(|journal| match journal {
            Some(journal) => {
                let shift = self.shift_of(journal.header())?;
                // It would be the newest of its thread for ever.
                let is_from_the_future = journal.header().monotonic.wrapping_add(shift) > now.saturating_add(AHEAD_NANOS_MAX);
                if is_from_the_future { Err(Refusal::Garbled) } else { Ok(Some((shift, journal))) }
            }
            None => Ok(None),
        });
        match opened {
            Ok(Some((shift, journal))) => {
                (it.shift, it.journal) = (shift, Some(journal));
                true
            }
            // Its thread is about to write the header, or is gone.
            Ok(None) => now < it.next_alive,
            Err(refusal) => {
                *self.refused.entry(refusal).or_default() += 1;
                false
            }
        }
    }

    /// The file, if a thread of this user may have made it.
    fn open_file(&self, entry: &fs::DirEntry) -> io::Result<Option<File>> {
        // Opening anything else may have effects.
        if !entry.file_type()?.is_file() {
            return Ok(None);
        }
        let opened = regular_file::open(&entry.path(), Symlinks::Refused)?;
        Ok(opened.filter(|(_, meta)| meta.uid() == self.uid).map(|(file, _)| file))
    }

    /// Reads the new entries of a journal; if `is_last`, to its end.
    fn poll_one(&mut self, it: &mut OpenJournal, now: u64, is_last: bool, out: &mut Vec<Observation>) -> Fate {
        let was_alive = is_last || now < it.next_alive || it.journal.as_ref().is_none_or(|journal| lives(journal.header()));
        // A thread that is gone has written all its entries.
        let is_last = is_last || !was_alive;
        match self.read(it, is_last, out) {
            Ok(has_news) => {
                it.pause = if has_news { POLL_NANOS } else { (it.pause * 2).min(POLL_NANOS_MAX) };
                it.next_poll = now + it.pause;
                if has_news || now >= it.next_alive {
                    it.next_alive = now + ALIVE_NANOS;
                }
                if is_last { Fate::Goes } else { Fate::Stays }
            }
            Err(Over::Ended) => Fate::Goes,
            Err(Over::Refused(refusal)) => {
                *self.refused.entry(refusal).or_default() += 1;
                Fate::Goes
            }
        }
    }

    /// Reads new entries and reports them; whether there were some.
    fn read(&mut self, it: &mut OpenJournal, is_last: bool, out: &mut Vec<Observation>) -> Result<bool, Over> {
        let OpenJournal { file, journal, shift, is_told, .. } = it;
        let Some(journal) = journal else { return Ok(false) };
        if self.allowance == 0 && !is_last {
            // Over the limit: later. Entries that are overwritten until then are counted.
            return Ok(true);
        }
        let mut at = |offset, into: &mut [u8]| file.read_at(into, offset);
        let (pid, tid, shift) = (journal.header().pid, journal.header().tid, *shift);
        let until = monotonic_nanos();
        let mut read = journal.read(&mut at, || monotonic_nanos().wrapping_sub(shift), &mut self.bytes)?;
        let room = usize::try_from(ENTRIES_MAX.saturating_sub(self.taken)).unwrap_or(usize::MAX);
        let beyond = read.entries.len().saturating_sub(room);
        read.entries.truncate(room);
        self.allowance = self.allowance.saturating_sub(read.entries.len() as u64);
        self.taken += read.entries.len() as u64;
        self.lost += read.lost + beyond as u64;
        let has_news = read.lost > 0 || !read.entries.is_empty();
        // At the end of a journal its last span held until now.
        if has_news || (is_last || read.is_over) && *is_told {
            for entry in &mut read.entries {
                entry.time = Monotonic(entry.time.0.wrapping_add(shift));
            }
            // If there is no room for more, nobody knows how long the last span held.
            let until = if beyond > 0 { read.entries.last().map_or(until, |last| last.time.0) } else { until };
            let follows = *is_told && read.lost == 0;
            out.push(Observation::Journal { pid, tid, follows, entries: read.entries, until: Monotonic(until) });
            *is_told = beyond == 0;
        }
        match (read.is_over, read.is_out_of_memory) {
            (true, true) => Err(Over::Refused(Refusal::OutOfMemory)),
            (true, false) => Err(Over::Ended),
            (false, _) => Ok(has_news),
        }
    }

    /// What to add to the times of a journal.
    fn shift_of(&self, header: &Header) -> Result<u64, Refusal> {
        let differ = |own: u64, other: u64| own != 0 && other != 0 && own != other;
        if differ(self.pid_namespace, header.pid_namespace) {
            return Err(Refusal::OtherPidNamespace);
        }
        if !differ(self.time_namespace, header.time_namespace) {
            return Ok(0);
        }
        let own = clock::anchor();
        let of_own = own.monotonic.0.wrapping_sub(own.unix.unix_nanos().cast_unsigned());
        Ok(of_own.wrapping_sub(header.monotonic.wrapping_sub(header.unix)))
    }

    fn tell_losses(&mut self, out: &mut Vec<Observation>) {
        if self.lost > 0 {
            let detail = if self.taken < ENTRIES_MAX {
                "threads entered and left spans faster than the recorder reads their journals"
            } else {
                "more entries than a recording keeps"
            };
            out.push(Observation::Loss(Loss::new(LossKind::JournalGaps, std::mem::take(&mut self.lost), detail)));
        }
        for (refusal, count) in self.refused.drain() {
            out.push(Observation::Loss(Loss::new(LossKind::JournalsRefused, count, refusal.as_str())));
        }
    }
}

/// Why a journal is not read any more.
enum Over {
    Ended,
    Refused(Refusal),
}

impl From<Refusal> for Over {
    fn from(refusal: Refusal) -> Over {
        Over::Refused(refusal)
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn lives(header: &Header) -> bool {
    Path::new(&format!("/proc/{}/task/{}", header.pid, header.tid)).exists()
}

fn namespace(kind: &str) -> u64 {
    fs::metadata(format!("/proc/self/ns/{kind}")).map_or(0, |meta| meta.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::private_dir::PrivateDirectory;
    use crate::span_context::journal_dir::PREFIX;
    use crate::span_context::testing::base;

    /// The file of a thread that has entered as many spans, made at that moment, as the format has it.
    fn file(tid: u32, made_at: u64, state: u32, spans: u64) -> Vec<u8> {
        let mut bytes = b"\x9cLONGPOLE-JRN1\xf3\xa7".to_vec();
        [1, 1, tid, 40, 64, state].into_iter().for_each(|word: u32| bytes.extend(word.to_ne_bytes()));
        [spans, made_at, 0, 0, 0].into_iter().for_each(|word: u64| bytes.extend(word.to_ne_bytes()));
        bytes.resize(128, 0);
        for number in 1..=spans {
            [number, made_at + number, 7, 7, number].into_iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        }
        bytes.resize(128 + 64 * 40, 0);
        bytes
    }

    /// What is reported: for each journal its thread, `+` if it follows, its first and its last time; and each loss.
    fn told(journals: &mut JournalPoller, is_last: bool) -> Vec<String> {
        let mut out = Vec::new();
        journals.next_listing = 0;
        journals.open.iter_mut().for_each(|it| it.next_poll = 0);
        journals.poll(is_last, &mut out);
        let shown = |observation: &Observation| match observation {
            Observation::Journal { tid, follows, entries, .. } => {
                let time = |entry: Option<&longpole_model::JournalEntry>| entry.map_or(0, |entry| entry.time.0);
                format!("{tid}{} {}-{}", if *follows { "+" } else { "" }, time(entries.first()), time(entries.last()))
            }
            Observation::Loss(loss) => format!("{} {} {}", loss.kind, loss.count, loss.detail),
            other => panic!("{other:?}"),
        };
        out.iter().map(shown).collect()
    }

    #[test]
    fn journals_are_found_read_on_and_read_to_their_end() {
        let base = base("journals");
        let directory = PrivateDirectory::create_in(&base, PREFIX).unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
        let mut journals = JournalPoller::new(directory.path().to_owned());
        assert_eq!(told(&mut journals, false), [""; 0]);
        put("a", &file(1, 100, 0, 2));
        put("b", &file(9, 200, 1, 3));
        assert_eq!(told(&mut journals, false), ["1 101-102", "9 201-203"]);
        assert_eq!(journals.open.len(), 1, "the journal of a thread that has ended is closed");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "only the lock is left");
        assert_eq!(told(&mut journals, false), [""; 0]);
        // Its thread executes a program: it has a new journal, and the last span of the old one held until now.
        put("c", &file(1, 300, 0, 1));
        assert_eq!(told(&mut journals, false), ["1+ 0-0", "1 301-301"]);
        assert_eq!(journals.open.len(), 1);
        put("d", &file(2, 400, 2, 1));
        let out_of_memory = format!("journals_refused 1 {}", Refusal::OutOfMemory.as_str());
        assert_eq!(told(&mut journals, true), ["1+ 0-0", "2 401-401", &out_of_memory]);
        assert!(journals.open.is_empty());
        let path = directory.path().to_owned();
        drop(directory);
        assert!(!path.exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn files_that_are_no_journals_are_counted_and_removed() {
        let base = base("strangers");
        let directory = PrivateDirectory::create_in(&base, PREFIX).unwrap();
        let precious = base.join("precious");
        fs::write(&precious, file(1, 1, 0, 1)).unwrap();
        symlink(&precious, directory.path().join("link")).unwrap();
        fs::create_dir(directory.path().join("folder")).unwrap();
        fs::write(directory.path().join("text"), [b'x'; 200]).unwrap();
        let mut wild = file(1, 1, 0, 5);
        wild[40..48].fill(0xff);
        fs::write(directory.path().join("wild"), wild).unwrap();
        fs::write(directory.path().join("empty"), b"").unwrap();
        fs::write(directory.path().join("future"), file(1, u64::MAX - 1, 0, 1)).unwrap();
        let mut journals = JournalPoller::new(directory.path().to_owned());
        let mut said = told(&mut journals, false);
        said.sort();
        let line = |refusal: Refusal, count: u64| format!("journals_refused {count} {}", refusal.as_str());
        let mut expected = [line(Refusal::Stranger, 2), line(Refusal::Unknown, 1), line(Refusal::Garbled, 2)];
        expected.sort();
        assert_eq!(said, expected);
        assert!(precious.exists(), "a link is not followed");
        assert_eq!(told(&mut journals, true), [""; 0], "each is counted once");
        drop(directory);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 1);
        fs::remove_dir_all(base).unwrap();
    }
}
