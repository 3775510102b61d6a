//! The store: recordings by name.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use longpole_model::{CaptureMode, Exit, Loss, LossKind, Recording, Run, SpanId, Timestamp, TraceId};

use self::catalog::{Catalog, CatalogRow, RowState};
use self::lock_file::Since;
use self::trust::Trust;
use crate::archive;
use crate::compact_spans::PackedRecording;
use crate::error::StoreError;
use crate::files;
use crate::format;
use crate::memory::budget::limit_of_file;
use crate::name::RecordingName;
use crate::wal::{AtEnd, Replay, SyncPolicy, WalWriter};

mod catalog;
pub(crate) mod lock_file;
pub mod prune;
pub(crate) mod seal;
mod trust;

const RECORDINGS: &str = "recordings";
const CATALOG: &str = "catalog.sqlite";
const CATALOG_ENDS: [&str; 4] = ["", "-wal", "-shm", "-journal"];
const CACHE: &str = "cache";
const LOCK: &str = "lock";
const SEAL_LOCK: &str = "seal.lock";
const RESERVE: &str = "reserve";

/// What a folder may hold that is not a store yet: what is left where the catalog was lost, the lock of a store for the time of one
/// command, and what file systems and other tools put into a folder that is empty to its user.
const UNUSED_HAS: [&str; 6] = [RECORDINGS, CACHE, "in-use", "lost+found", ".gitignore", "CACHEDIR.TAG"];

/// Space that a recording keeps for its own end: how the command ended and what is missing can be said of it when the disk is full.
const RESERVE_BYTES: usize = 64 << 10;

/// A directory of recordings. Clones share the open catalog.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    catalog: Arc<Catalog>,
    trust: Trust,
    was_open: bool,
}

/// What is in a store.
#[derive(Debug, Default)]
pub struct Listing {
    /// The recordings, the newest first.
    pub recordings: Vec<StoredRecording>,
    /// Rows of the catalog that are no recordings, and why. [`Store::remove`] takes them away.
    pub damaged: Vec<StoreError>,
}

/// What `ls` shows of a recording without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it started.
    pub start: Timestamp,
    /// How long it ran; `None` while it runs, or where the recorder was killed.
    pub wall_nanos: Option<u64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Number of spans.
    pub spans: u64,
    /// Number of samples.
    pub samples: u64,
    /// The long pole in one line, as the JSON object that `docs/formats/http-api.md` calls `answer`; kept as it is given.
    pub answer_json: Option<String>,
}

impl SummaryRow {
    /// The row of a run as far as it is known.
    pub fn of_run(run: &Run) -> Self {
        SummaryRow {
            command: run.command.clone(),
            start: run.start,
            wall_nanos: run.end.map(|end| end.nanos_since(run.start).max(0).cast_unsigned()),
            exit: run.exit,
            spans: 0,
            samples: 0,
            answer_json: None,
        }
    }

    /// What is left to say of a run whose description is damaged: what the catalog knows of it.
    fn unknown_run(&self) -> Run {
        Run {
            command: self.command.clone(),
            working_directory: String::new(),
            host: String::new(),
            cpus: 1,
            version: String::new(),
            trace_id: TraceId::new([0xff; TraceId::BYTES]).unwrap_or_else(|| unreachable!("not all zero")),
            root_span_id: SpanId::new([0xff; SpanId::BYTES]).unwrap_or_else(|| unreachable!("not all zero")),
            root_pid: None,
            start: self.start,
            end: None,
            exit: None,
            rate_hz: 0,
            mode: CaptureMode::Off,
            cpu_nanos: None,
            usage: None,
            recorder_cost: None,
        }
    }

    /// The row of a recording, with its answer.
    pub fn of_recording(recording: &Recording, answer_json: Option<String>) -> Self {
        SummaryRow {
            spans: recording.spans.len() as u64,
            samples: recording.samples.len() as u64,
            answer_json,
            ..SummaryRow::of_run(&recording.run)
        }
    }
}

/// Where a recording is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingState {
    /// Its recorder lives. It can be replayed as far as it is.
    Recording,
    /// Its recorder died before it sealed. It can be replayed and sealed.
    Killed,
    /// Its recorder ended and could not seal, because the disk was full for one. It can be replayed and sealed.
    Ended,
    /// It can be read.
    Sealed {
        /// Whether its recorder had died before it sealed.
        recorder_killed: bool,
    },
}

impl RecordingState {
    /// The word SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordingState::Recording => "recording",
            RecordingState::Ended => "ended",
            RecordingState::Killed | RecordingState::Sealed { recorder_killed: true } => "killed",
            RecordingState::Sealed { recorder_killed: false } => "sealed",
        }
    }
}

impl Store {
    /// Opens the store in this directory; makes it if it is not there. Refuses one that another user owns or can change, and a directory
    /// that is no store and holds something else; closes one that others can read.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let trust = Trust::new();
        let mut was_there = false;
        let check = |root: &Path| {
            // SQLite gives the files beside the catalog the catalog's mode; older ones may be there.
            for end in CATALOG_ENDS {
                trust.check_entry_if_there(&root.join(format!("{CATALOG}{end}")))?;
            }
            was_there = root.join(CATALOG).exists();
            if was_there { Ok(()) } else { check_unused(root) }
        };
        let (root, was_open) = trust.open_root(&root.into(), RECORDINGS, check)?;
        // It says whether this is a catalog of ours; before, nothing is closed.
        let catalog = Catalog::open(&root.join(CATALOG))?;
        if was_open {
            close(&trust, &root, was_there)?;
        }
        Ok(Store { root, catalog: Arc::new(catalog), trust, was_open })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether other users could read the store until it was opened just now.
    pub fn was_open(&self) -> bool {
        self.was_open
    }

    /// Where what is slow to find out may be kept. Nobody misses it when it is gone.
    pub fn cache(&self) -> PathBuf {
        self.root.join(CACHE)
    }

    /// Begins a recording. It is seen by others from now on, and taken for dead when the writer is dropped unsealed.
    pub fn create(&self, run: &Run) -> Result<RecordingWriter, StoreError> {
        let (name, directory, lock, wal) =
            self.catalog.create(&SummaryRow::of_run(run), || self.largest_directory(), |name| self.prepare(name, run))?;
        Ok(RecordingWriter { store: self.clone(), name, directory, wal, run: run.clone(), lock })
    }

    /// Makes the directory of a recording; `None` where there is one already, left by a catalog that was lost.
    fn prepare(&self, name: RecordingName, run: &Run) -> Result<Option<(PathBuf, Prepared)>, StoreError> {
        let relative = directory_of(name);
        let directory = self.root.join(&relative);
        match files::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(StoreError::io("create", directory)(error)),
        }
        let filled = || {
            format::write(&directory)?;
            let path = directory.join(LOCK);
            let mut lock = files::create_new(&path).map_err(StoreError::io("create", &path))?;
            lock.write_all(lock_file::line().as_bytes()).map_err(StoreError::io("write", &path))?;
            lock.try_lock().map_err(|error| StoreError::io("lock", &path)(error.into()))?;
            let wal_directory = seal::wal_directory(&directory);
            files::create_dir(&wal_directory).map_err(StoreError::io("create", wal_directory))?;
            let wal = WalWriter::create(&seal::wal_file(&directory), run, SyncPolicy::None)?;
            let reserve = directory.join(RESERVE);
            files::write_new(&reserve, &vec![0; RESERVE_BYTES]).map_err(StoreError::io("write", reserve))?;
            Ok((lock, wal))
        };
        match filled() {
            Ok((lock, wal)) => Ok(Some((relative, (name, directory, lock, wal)))),
            Err(error) => {
                // The number will be given again, so nothing may stay; that it failed is what the caller has to know.
                let _ = seal::remove_directory(&directory);
                Err(error)
            }
        }
    }

    /// The largest number that has a directory.
    fn largest_directory(&self) -> Result<u32, StoreError> {
        let path = self.root.join(RECORDINGS);
        let mut largest = 0;
        for entry in fs::read_dir(&path).map_err(StoreError::io("list", &path))? {
            let entry = entry.map_err(StoreError::io("list", &path))?;
            if let Some(name) = entry.file_name().to_str().and_then(RecordingName::parse) {
                largest = largest.max(name.number());
            }
        }
        Ok(largest)
    }

    /// Every recording, the newest first. One that cannot be read does not hide the others.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for row in self.catalog.rows()? {
            match row.and_then(|row| self.stored(row)) {
                Ok(recording) => listing.recordings.push(recording),
                Err(error) => listing.damaged.push(error),
            }
        }
        for (tag, name) in self.catalog.tags()? {
            if let Some(recording) = listing.recordings.iter_mut().find(|recording| recording.name == name) {
                recording.tags.push(tag);
            }
        }
        Ok(listing)
    }

    /// The name that `r7`, `7`, `last` or a tag means. Whether `r7` is there, [`Store::recording`] says.
    pub fn resolve(&self, text: &str) -> Result<RecordingName, StoreError> {
        if text == "last" {
            return self.catalog.last()?.ok_or_else(|| StoreError::Empty { root: self.root.clone() });
        }
        match RecordingName::parse(text) {
            Some(name) => Ok(name),
            None => self.catalog.tagged(text)?.ok_or_else(|| StoreError::Name { text: text.to_owned() }),
        }
    }

    /// Gives a recording a name of the user's own, and says which recording had it before.
    pub fn tag(&self, name: RecordingName, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        if !is_tag(tag) {
            return Err(StoreError::Tag { text: tag.to_owned() });
        }
        self.recording(name)?;
        self.catalog.tag(name, tag)
    }

    /// Takes a tag away, and says what it named.
    pub fn untag(&self, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        self.catalog.untag(tag)
    }

    /// A recording.
    pub fn recording(&self, name: RecordingName) -> Result<StoredRecording, StoreError> {
        let row = self.catalog.row(name)?.ok_or_else(|| self.not_found(name))?;
        let stored = self.stored(row)?;
        if let RecordingState::Sealed { .. } = stored.state {
            // A recorder that died between the last two steps of sealing left its log. It only takes space: where it
            // cannot be removed, the recording is as good as with it.
            let _ = seal::remove_wal(&stored.directory);
        }
        Ok(stored)
    }

    /// Removes a recording with all its files. Refuses one that is being recorded; one that is being sealed is waited for. Where its files
    /// lie follows from its number alone, so a row that is damaged goes as well.
    pub fn remove(&self, name: RecordingName) -> Result<(), StoreError> {
        if !self.catalog.has(name)? {
            return Err(self.not_found(name));
        }
        let directory = self.root.join(directory_of(name));
        let is_folder = fs::symlink_metadata(&directory).is_ok_and(|data| data.is_dir());
        if is_folder && recorder_lives(&directory)? {
            return Err(StoreError::Living { action: "remove", name });
        }
        // Files first: a crash in between leaves a row that can be removed again, not files that no one knows of.
        let _sealing = if is_folder { lock_sealing(&directory)? } else { None };
        seal::remove_directory(&directory)?;
        self.catalog.remove(name)
    }

    fn not_found(&self, name: RecordingName) -> StoreError {
        StoreError::NotFound { name, root: self.root.clone() }
    }

    fn stored(&self, row: CatalogRow) -> Result<StoredRecording, StoreError> {
        let directory = self.root.join(directory_of(row.name));
        self.trust.check_entry_if_there(&directory)?;
        let state = match row.state {
            RowState::Recording if recorder_lives(&directory)? => RecordingState::Recording,
            RowState::Recording if lock_file::why_ended(&directory.join(LOCK)).is_some() => RecordingState::Ended,
            RowState::Recording => RecordingState::Killed,
            RowState::Sealed => RecordingState::Sealed { recorder_killed: false },
            RowState::Killed => RecordingState::Sealed { recorder_killed: true },
        };
        Ok(StoredRecording { store: self.clone(), name: row.name, state, summary: row.summary, tags: Vec::new(), directory })
    }
}

/// Refuses a folder that is no store yet and holds what longpole did not put there: its user may have meant another, and as a store it
/// would be closed to others.
fn check_unused(root: &Path) -> Result<(), StoreError> {
    let names = |folder: &Path| -> Result<Vec<OsString>, StoreError> {
        match fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map_err(StoreError::io("list", folder)),
        }
    };
    let is_ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with(CATALOG) || UNUSED_HAS.contains(&name));
    let is_recording = |name: &OsString| name.to_str().is_some_and(is_name_of_recording);
    let in_recordings = names(&root.join(RECORDINGS))?;
    let other = names(root)?.into_iter().find(|name| !is_ours(name)).map(PathBuf::from);
    // Others make folders of this name, too. One with a recording in it is ours, and something else may have been put beside.
    let others = || in_recordings.first().filter(|_| !in_recordings.iter().any(is_recording)).map(|name| Path::new(RECORDINGS).join(name));
    match other.or_else(others) {
        None => Ok(()),
        Some(other) => Err(StoreError::NotOurs {
            path: root.to_owned(),
            reason: format!("it is no store of longpole, and has files of others in it, such as {}", other.display()),
            remedy: "name an empty or a new folder: --store DIR".to_owned(),
        }),
    }
}

/// A name that longpole gives a directory of a recording.
fn is_name_of_recording(text: &str) -> bool {
    RecordingName::parse(text).is_some_and(|name| name.to_string() == text)
}

/// Closes a store to other users, its root last: where this is interrupted it is done again. Nothing but what longpole writes: a user can
/// have put something else beside it.
fn close(trust: &Trust, root: &Path, was_there: bool) -> Result<(), StoreError> {
    let recordings = root.join(RECORDINGS);
    if was_there {
        let mut written: Vec<PathBuf> = CATALOG_ENDS.iter().map(|end| root.join(format!("{CATALOG}{end}"))).collect();
        written.push(root.join(CACHE));
        for entry in fs::read_dir(&recordings).map_err(StoreError::io("list", &recordings))?.flatten() {
            if entry.file_name().to_str().is_some_and(is_name_of_recording) {
                written.push(entry.path());
            }
        }
        trust.close(&written)?;
    }
    trust.close_only(&recordings)?;
    trust.close_only(root)
}

/// Where the files of a recording lie, relative to the root.
pub(crate) fn directory_of(name: RecordingName) -> PathBuf {
    Path::new(RECORDINGS).join(name.to_string())
}

/// Longest tag. Lists give it a column.
const TAG_BYTES_MAX: usize = 64;

/// Whether a text can be a tag: one word that is neither a recording's own name, nor a path, nor the handle of something in a recording.
fn is_tag(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@' | ':');
    let begins = text.chars().next().is_some_and(char::is_alphanumeric);
    // `flame p1` is about the long pole of the last recording, whatever is tagged `p1`.
    let is_handle = text
        .strip_prefix(['s', 'p', 'f'])
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.bytes().next().is_some_and(|first| first != b'0'));
    let is_name = text == "last" || RecordingName::parse(text).is_some() || is_handle;
    begins && text.len() <= TAG_BYTES_MAX && text.chars().all(plain) && !is_name
}

type Prepared = (RecordingName, PathBuf, File, WalWriter);

/// Whether the recorder holds its lock. Asking takes a shared lock for a moment, so that two who ask do not take each
/// other for the recorder.
fn recorder_lives(directory: &Path) -> Result<bool, StoreError> {
    let path = directory.join(LOCK);
    let file = match files::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io("open", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
    }
}

/// A recording under way: held by its recorder.
#[derive(Debug)]
pub struct RecordingWriter {
    store: Store,
    name: RecordingName,
    directory: PathBuf,
    wal: WalWriter,
    run: Run,
    /// Locked as long as this lives; the kernel lets go when the process dies, however it dies.
    lock: File,
}

impl RecordingWriter {
    /// Its name.
    pub fn name(&self) -> RecordingName {
        self.name
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its log.
    pub fn wal(&self) -> &WalWriter {
        &self.wal
    }

    /// Gives the space back that was kept for the last words of the log, which follow. For a disk that is full.
    pub fn release_reserve(&self) {
        // It is gone, or its space is not to be had: the append that follows tells.
        let _ = fs::remove_file(self.directory.join(RESERVE));
    }

    /// What the log holds so far.
    pub fn replay(&self) -> Result<Replay, StoreError> {
        Ok(self.wal.replay(&self.run)?)
    }

    /// What of its files was taken away while it was made. What was in the log is read all the same where that was only removed.
    pub fn taken(&self) -> Vec<Loss> {
        let mut taken = Vec::new();
        if !self.wal.is_there() {
            let detail = format!(
                "the log {} was removed while longpole wrote it; what longpole had kept open of it is here",
                self.wal.path().display()
            );
            taken.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        let lock = self.directory.join(LOCK);
        if !files::is_at(&self.lock, &lock) {
            let detail =
                format!("the lock {} was removed while longpole held it; others may have taken the recorder for dead", lock.display());
            taken.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if let Err(error) = self.store.catalog.check_is_there() {
            taken.push(Loss::new(LossKind::NotWritten, 1, format!("the row in the list of recordings: failed to {error}")));
        }
        taken
    }

    /// Whether its log can be read by others.
    pub fn has_log(&self) -> bool {
        self.wal.is_there()
    }

    /// Says that the recorder ends and could not seal, so that nobody takes it for killed. There is nobody to tell where that fails.
    pub fn note_ended(&self, error: &dyn std::error::Error) {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason.push_str(&format!(": {error}"));
            cause = error.source();
        }
        let _ = (&self.lock).write_all(lock_file::ended_line(&reason).as_bytes());
    }

    /// Seals: writes the segments, tells the catalog, removes the log. Nothing can be appended afterwards.
    ///
    /// After an error the log is still there, and the recording can be sealed later by whoever opens it.
    pub fn write_segments(&self, recording: &Recording, summary: &SummaryRow) -> Result<(), StoreError> {
        self.write(recording)?;
        self.seal(summary)
    }

    /// The first half of sealing: writes the segments, where nobody looks yet. From then on the recording is not needed here.
    pub fn write(&self, recording: &Recording) -> Result<(), StoreError> {
        self.release_reserve();
        seal::write_partial(&self.directory, recording)
    }

    /// The same for a recording whose spans are packed: they are taken out as they are written.
    pub fn write_packed(&self, recording: &PackedRecording) -> Result<(), StoreError> {
        self.release_reserve();
        seal::write_partial_packed(&self.directory, recording)
    }

    /// The second half, which needs the first.
    pub fn seal(&self, summary: &SummaryRow) -> Result<(), StoreError> {
        // In a file that nobody finds any more it would be sealed, and lost.
        self.store.catalog.check_is_there()?;
        seal::publish(&self.directory)?;
        self.store.catalog.seal(self.name, RowState::Sealed, summary)?;
        seal::remove_wal(&self.directory)
    }

    /// Takes it back, as if it had never begun; its number is not given again. For a command that could not be started.
    pub fn discard(self) -> Result<(), StoreError> {
        seal::remove_directory(&self.directory)?;
        self.store.catalog.remove(self.name)?;
        drop(self.lock);
        Ok(())
    }
}

/// A recording in the store, as it was when it was looked up.
#[derive(Debug, Clone)]
pub struct StoredRecording {
    store: Store,
    /// Its name.
    pub name: RecordingName,
    /// Where it is in its life.
    pub state: RecordingState,
    /// What `ls` shows of it.
    pub summary: SummaryRow,
    /// The names people gave it; only [`Store::list`] says them.
    pub tags: Vec<String>,
    /// Its directory.
    pub directory: PathBuf,
}

/// Which directory it is, whatever its name: that of a recording which took the place of another is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryIdentity {
    device: u64,
    inode: u64,
    /// When it was made, where the file system knows it: numbers of inodes come again.
    made: Option<SystemTime>,
}

impl StoredRecording {
    /// Which directory its files are in.
    pub fn directory_identity(&self) -> Result<DirectoryIdentity, StoreError> {
        let data = fs::symlink_metadata(&self.directory).map_err(StoreError::io("examine", &self.directory))?;
        Ok(DirectoryIdentity { device: data.dev(), inode: data.ino(), made: data.created().ok() })
    }

    /// The frames of its log, in the order they were appended. For a recorder that died, a loss that says so comes last.
    pub fn replay(&self) -> Result<Replay, StoreError> {
        format::check_of_log(&self.directory)?;
        let at_end = match self.state {
            RecordingState::Recording => AtEnd::Living,
            RecordingState::Killed => AtEnd::Killed(lock_file::since(&self.directory.join(LOCK))),
            // It had said all; but what had not reached the disk is lost with the power.
            RecordingState::Ended => match lock_file::since(&self.directory.join(LOCK)) {
                Since::OtherBoot => AtEnd::Killed(Since::OtherBoot),
                Since::SameBoot | Since::Unknown => AtEnd::Sealing,
            },
            RecordingState::Sealed { .. } => AtEnd::Sealing,
        };
        Ok(Replay::open(&seal::wal_file(&self.directory), &self.summary.unknown_run(), at_end)?)
    }

    /// Why its recorder, which ended, could not seal it.
    pub fn why_ended(&self) -> Option<String> {
        lock_file::why_ended(&self.directory.join(LOCK)).filter(|_| self.state == RecordingState::Ended)
    }

    /// Seals the recording of a recorder that died. Where another process has done so meanwhile, that one's segments stay.
    pub fn write_segments(&self, recording: &Recording, summary: &SummaryRow) -> Result<(), StoreError> {
        let living = || StoreError::Living { action: "seal", name: self.name };
        if self.state == RecordingState::Recording {
            return Err(living());
        }
        let _sealing = lock_sealing(&self.directory)?;
        let as_what = match self.store.recording(self.name)?.state {
            RecordingState::Recording => return Err(living()),
            RecordingState::Sealed { .. } => return Ok(()),
            RecordingState::Killed => RowState::Killed,
            RecordingState::Ended => RowState::Sealed,
        };
        let _ = fs::remove_file(self.directory.join(RESERVE));
        format::mend(&self.directory)?;
        seal::write_partial(&self.directory, recording)?;
        seal::publish(&self.directory)?;
        self.store.catalog.seal(self.name, as_what, summary)?;
        seal::remove_wal(&self.directory)
    }

    /// Everything it holds; spans come traces by start and in tree pre-order. Only for a sealed recording.
    pub fn read(&self) -> Result<Recording, StoreError> {
        seal::read(&self.directory, self.check_sealed()?)
    }

    /// What its rows take in memory when they are read, as its writer counted it; `None` where it did not. Only for a sealed recording.
    pub fn memory_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(seal::figures(&self.directory, self.check_sealed()?)?.map(|figures| figures.memory))
    }

    /// Name and file of every table, each of them checked, for a query engine. Only for a sealed recording.
    pub fn table_files(&self) -> Result<Vec<(&'static str, PathBuf)>, StoreError> {
        let tables = seal::verified_tables(&self.directory, self.check_sealed()?)?;
        Ok(tables.into_iter().map(|(table, path)| (table.name, path)).collect())
    }

    /// Writes it as one file, which [`crate::archive::read`] reads, and says how many bytes that has. Only for a sealed recording.
    pub fn pack(&self, out: &mut dyn Write) -> Result<u64, StoreError> {
        archive::write(&self.directory, self.check_sealed()?, out)
    }

    /// Why nobody can read a file of so many bytes that is made of this recording, if so: that takes more than its reader gives to a file
    /// that somebody sent. Most that might take too much do not, so what might is read to know.
    pub fn refusal_as_file(&self, file_bytes: u64) -> Result<Option<String>, StoreError> {
        if file_bytes > archive::PACK_BYTES_MAX {
            return Ok(Some(archive::too_long()));
        }
        let version = self.check_sealed()?;
        let limit = limit_of_file(file_bytes);
        if seal::figures(&self.directory, version)?.is_some_and(|figures| figures.limit <= limit) {
            return Ok(None);
        }
        match seal::read_within(&self.directory, version, limit) {
            Ok(_) => Ok(None),
            Err(StoreError::TooLarge { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    /// Bytes of its files. What comes or goes meanwhile is not counted.
    pub fn bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(data) if data.is_dir() => directories.push(entry.path()),
                    Ok(data) => bytes += data.len(),
                    Err(_) => {}
                }
            }
        }
        bytes
    }

    /// The version of a sealed recording.
    fn check_sealed(&self) -> Result<u32, StoreError> {
        match self.state {
            RecordingState::Sealed { .. } => format::check(&self.directory),
            RecordingState::Recording | RecordingState::Killed | RecordingState::Ended => Err(StoreError::NotSealed { name: self.name }),
        }
    }
}

/// Waits until no one else seals or removes the recording of this directory.
fn lock_sealing(directory: &Path) -> Result<Option<File>, StoreError> {
    let path = directory.join(SEAL_LOCK);
    let file = match files::open_lock(&path) {
        Ok(file) => file,
        // The directory is gone: nothing to guard.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("open", path)(error)),
    };
    file.lock().map_err(StoreError::io("lock", path))?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests;
