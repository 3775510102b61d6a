//! Stores that last for one command, and cleaning up after killed processes.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use longpole_capture::span_context::journal_dir;
use longpole_store::{RecordingName, Store};

use crate::input::import_file;
use crate::store::{new_folder, open_store};

/// Prefix of their directories, in the temporary directory.
const TEMPORARY_PREFIX: &str = "longpole-open-";

/// Held while a temporary store is in use.
const LOCK: &str = "in-use";

/// A temporary store without a lock is just being created, unless it is older than this.
const UNLOCKED_MAX: Duration = Duration::from_secs(60);

/// A store with one file in it that lasts for one command.
pub(crate) struct TemporaryStore {
    root: PathBuf,
    // The kernel releases it however this process ends; then the next one removes the store.
    _lock: File,
}

impl TemporaryStore {
    /// Imports a file into a new store.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, RecordingName)> {
        remove_stale_stores();
        let contents = import_file::read(path)?;
        let store = TemporaryStore::new()?;
        let (name, _) =
            longpole_recording::import::keep(&store.open()?, contents).context("failed to import the file into a temporary store")?;
        Ok((store, name))
    }

    fn new() -> Result<Self> {
        let root = new_folder(TEMPORARY_PREFIX)?;
        let path = root.join(LOCK);
        let locked =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).and_then(|lock| Ok((lock.try_lock()?, lock).1));
        let lock = locked.with_context(|| format!("failed to lock {}", path.display())).inspect_err(|_| {
            fs::remove_dir_all(&root).ok();
        })?;
        Ok(TemporaryStore { root, _lock: lock })
    }

    pub(crate) fn open(&self) -> Result<Store> {
        open_store(&self.root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        // If this fails, the next command removes it.
        fs::remove_dir_all(&self.root).ok();
    }
}

/// Removes temporary stores of killed processes: they contain copies of private files.
pub(crate) fn remove_stale_stores() {
    let own = longpole_store::users::Owner::current();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
        // Does not follow links.
        let is_own = || entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == own.uid);
        if is_named && is_own() && is_stale(&entry.path()) {
            // Another process may be removing it, too; the next command finds what is left.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn is_stale(store: &Path) -> bool {
    match journal_dir::is_locked(&store.join(LOCK)) {
        Ok(Some(is_locked)) => !is_locked,
        Ok(None) => {
            let made = fs::metadata(store).and_then(|data| data.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNLOCKED_MAX))
        }
        Err(_) => false,
    }
}
