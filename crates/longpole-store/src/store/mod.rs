//! The store: recordings by name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longpole_model::{Run, TraceId};

use self::catalog::{Catalog, CatalogRow, RowState};
pub use self::lock_file::EndReason;
use self::ownership::OwnershipCheck;
pub use self::recording_writer::RecordingWriter;
pub use self::stored_recording::{DirectoryIdentity, RecordingState, StoredRecording};
pub use self::summary_row::SummaryRow;
pub use self::trace_ids::TraceIds;
use crate::error::StoreError;
use crate::files;
use crate::format_file;
use crate::layout::{self, CACHE, CATALOG, CATALOG_ENDS, LOCK, RECORDINGS, RESERVE, directory_of};
use crate::name::RecordingName;
use crate::wal::{SyncPolicy, WalWriter};

mod catalog;
mod kept_token;
mod kept_view;
mod lock_file;
mod ownership;
pub mod prune;
mod recording_writer;
mod seal;
mod stored_recording;
mod summary_row;
mod tag;
mod trace_ids;

/// What a server keeps in a store, and the part by which it is known.
const SERVER_HAS: [&str; 2] = ["node", "tenants"];
const SERVED: &str = "tenants/default/manifest";

/// What a folder may hold that is not a store yet: what is left where the catalog was lost, the lock of a store for the time of one
/// command, and what file systems and other tools put into a folder that is empty to its user.
const UNUSED_HAS: [&str; 6] = [RECORDINGS, CACHE, "in-use", "lost+found", ".gitignore", "CACHEDIR.TAG"];

/// Space that a recording keeps for its own end, in bytes: room in the log for how the command ended and what is missing when the disk is full.
const RESERVE_BYTES: usize = 64 << 10;

/// Recordings before a new one whose logs may still be there. Those of older ones go when they are read.
const LEFT_LOGS_MAX: u32 = 8;

/// A directory of recordings. Clones share the open catalog.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    catalog: Arc<Catalog>,
    ownership: OwnershipCheck,
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

impl Store {
    /// Opens the store in this directory; makes it if it is not there. Refuses one that another user owns or can change, and a directory
    /// that is no store and holds something else; closes one that others can read.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOurs`] if another user owns or can change it, or if the directory holds something else; [`StoreError::Newer`] for
    /// a later format; [`StoreError::Io`] or [`StoreError::Catalog`] if the system or SQLite refuses it.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let ownership = OwnershipCheck::new();
        let mut was_there = false;
        let check = |root: &Path| {
            // SQLite gives the files beside the catalog the catalog's mode; older ones may be there.
            for end in CATALOG_ENDS {
                ownership.check_entry_if_there(&root.join(format!("{CATALOG}{end}")))?;
            }
            was_there = root.join(CATALOG).exists();
            if was_there { Ok(()) } else { check_unused(root) }
        };
        let (root, was_open) = ownership.open_root(&root.into(), RECORDINGS, check)?;
        // It says whether this is a catalog of ours; before, nothing is closed.
        let catalog = Catalog::open(&root.join(CATALOG))?;
        if was_open {
            close(&ownership, &root, was_there)?;
        }
        Ok(Store { root, catalog: Arc::new(catalog), ownership, was_open })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Bytes that its disk still takes; `None` where the system does not say.
    pub fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.root).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
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
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], [`StoreError::Catalog`] or [`StoreError::Wal`] if the system refuses the directory, the row or the log.
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
            format_file::write(&directory)?;
            let path = directory.join(LOCK);
            let mut lock = files::create_new(&path).map_err(StoreError::io("create", &path))?;
            lock.write_all(lock_file::line().as_bytes()).map_err(StoreError::io("write", &path))?;
            lock.try_lock().map_err(|error| StoreError::io("lock", &path)(error.into()))?;
            let wal_directory = layout::wal_directory(&directory);
            files::create_dir(&wal_directory).map_err(StoreError::io("create", wal_directory))?;
            let wal = WalWriter::create(&layout::wal_file(&directory), run, SyncPolicy::None)?;
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
    ///
    /// # Errors
    ///
    /// [`StoreError::Catalog`] if the catalog cannot be read.
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
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] if the text is neither a name nor a tag, [`StoreError::Empty`] if there is no last recording,
    /// [`StoreError::Catalog`] if the catalog cannot be read.
    pub fn resolve(&self, text: &str) -> Result<RecordingName, StoreError> {
        if text == "last" {
            return self.catalog.last()?.ok_or_else(|| StoreError::Empty { root: self.root.clone() });
        }
        match RecordingName::parse(text) {
            Some(name) => Ok(name),
            None => self.catalog.tagged(text)?.ok_or_else(|| StoreError::Name { text: text.to_owned() }),
        }
    }

    /// The same, or the newest recording with spans of the trace whose id the text is.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn resolve_or_trace(&self, text: &str) -> Result<RecordingName, StoreError> {
        let none = match self.resolve(text) {
            Err(none @ StoreError::Name { .. }) => none,
            resolved => return resolved,
        };
        let Ok(id) = text.parse() else { return Err(none) };
        self.catalog.with_trace(id, 1)?.first().copied().ok_or(none)
    }

    /// The newest recordings with spans of this trace, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Catalog`] if the catalog cannot be read.
    pub fn with_trace(&self, id: TraceId, limit: u32) -> Result<Vec<RecordingName>, StoreError> {
        self.catalog.with_trace(id, limit)
    }

    /// The traces by which a recording is found, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Catalog`] if the catalog cannot be read.
    pub fn traces_of(&self, name: RecordingName, limit: u32) -> Result<Vec<TraceId>, StoreError> {
        self.catalog.traces_of(name, limit)
    }

    /// Gives a recording a name of the user's own, and says which recording had it before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Tag`] if the text cannot be a tag, [`StoreError::NotFound`] if there is no such recording, [`StoreError::Catalog`] if
    /// the catalog cannot be changed.
    pub fn tag(&self, name: RecordingName, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        if !tag::is_tag(tag) {
            return Err(StoreError::Tag { text: tag.to_owned() });
        }
        self.recording(name)?;
        self.catalog.tag(name, tag)
    }

    /// Takes a tag away, and says what it named.
    ///
    /// # Errors
    ///
    /// [`StoreError::Catalog`] if the catalog cannot be changed.
    pub fn untag(&self, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        self.catalog.untag(tag)
    }

    /// A recording.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if there is none, [`StoreError::Corrupt`] or [`StoreError::Catalog`] if its row cannot be read.
    pub fn recording(&self, name: RecordingName) -> Result<StoredRecording, StoreError> {
        let row = self.catalog.row(name)?.ok_or_else(|| self.not_found(name))?;
        let stored = self.stored(row)?;
        if let RecordingState::Sealed { .. } = stored.state {
            // It only takes space: if it cannot be removed, the recording is as good as with it.
            if seal::is_settled(&stored.directory) {
                let _ = self.settle(&stored.directory);
            }
        }
        Ok(stored)
    }

    /// Removes the log of a sealed recording, when the disk has its segments.
    fn settle(&self, directory: &Path) -> Result<(), StoreError> {
        seal::settle(directory, &self.root)
    }

    /// Removes the logs that the last recordings before this one left: to look a sealed one up does it.
    fn settle_before(&self, name: RecordingName) {
        let before = (name.number().saturating_sub(LEFT_LOGS_MAX)..name.number()).map(RecordingName::new);
        for name in before.filter(|name| seal::is_settled(&self.root.join(directory_of(*name)))) {
            let _ = self.recording(name);
        }
    }

    /// Removes a recording with all its files. Refuses one that is being recorded; one that is being sealed is waited for. Where its files
    /// lie follows from its number alone, so a row that is damaged goes as well.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if there is none, [`StoreError::Living`] if it is being recorded, [`StoreError::Io`] or
    /// [`StoreError::Catalog`] if its files or its row cannot be removed.
    pub fn remove(&self, name: RecordingName) -> Result<(), StoreError> {
        if !self.catalog.has(name)? {
            return Err(self.not_found(name));
        }
        let directory = self.root.join(directory_of(name));
        let is_folder = fs::symlink_metadata(&directory).is_ok_and(|data| data.is_dir());
        if is_folder && lock_file::recorder_lives(&directory)? {
            return Err(StoreError::Living { action: "remove", name });
        }
        // Files first: a crash in between leaves a row that can be removed again, not files that no one knows of.
        let _sealing = if is_folder { lock_file::lock_sealing(&directory)? } else { None };
        seal::remove_directory(&directory)?;
        self.catalog.remove(name)
    }

    fn not_found(&self, name: RecordingName) -> StoreError {
        StoreError::NotFound { name, root: self.root.clone() }
    }

    fn stored(&self, row: CatalogRow) -> Result<StoredRecording, StoreError> {
        let directory = self.root.join(directory_of(row.name));
        self.ownership.check_entry_if_there(&directory)?;
        let state = match row.state {
            RowState::Recording if lock_file::recorder_lives(&directory)? => RecordingState::Recording,
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
    // What `longpole serve` keeps has lists of its own: where only the catalog is lost, another one takes its place.
    let is_served = fs::symlink_metadata(root.join(SERVED)).is_ok_and(|data| data.is_dir());
    let is_of_server = |name: &OsString| is_served && name.to_str().is_some_and(|name| SERVER_HAS.contains(&name));
    let in_recordings = names(&root.join(RECORDINGS))?;
    let other = names(root)?.into_iter().find(|name| !is_ours(name) && !is_of_server(name)).map(PathBuf::from);
    // Others make folders of this name, too. One with a recording in it is ours, and something else may have been put beside.
    let others = || in_recordings.first().filter(|_| !in_recordings.iter().any(is_recording)).map(|name| Path::new(RECORDINGS).join(name));
    match other.or_else(others) {
        None => Ok(()),
        Some(other) => Err(StoreError::NotOurs {
            path: root.to_owned(),
            reason: format!("it is not a longpole store and holds other files, such as {}", other.display()),
            remedy: "name an empty or a new directory: --store DIR".to_owned(),
        }),
    }
}

/// A name that longpole gives a directory of a recording.
fn is_name_of_recording(text: &str) -> bool {
    RecordingName::parse(text).is_some_and(|name| name.to_string() == text)
}

/// Closes a store to other users, its root last: where this is interrupted it is done again. Nothing but what longpole writes: a user can
/// have put something else beside it.
fn close(ownership: &OwnershipCheck, root: &Path, was_there: bool) -> Result<(), StoreError> {
    let recordings = root.join(RECORDINGS);
    if was_there {
        let mut written: Vec<PathBuf> = CATALOG_ENDS.iter().map(|end| root.join(format!("{CATALOG}{end}"))).collect();
        written.push(root.join(CACHE));
        for entry in fs::read_dir(&recordings).map_err(StoreError::io("list", &recordings))?.flatten() {
            if entry.file_name().to_str().is_some_and(is_name_of_recording) {
                written.push(entry.path());
            }
        }
        ownership.close(&written)?;
    }
    ownership.close_only(&recordings)?;
    ownership.close_only(root)
}

type Prepared = (RecordingName, PathBuf, File, WalWriter);

#[cfg(test)]
mod tests;
