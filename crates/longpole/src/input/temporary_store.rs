//! Stores that last for one command, and cleaning up after killed processes.

use std::path::Path;

use anyhow::{Context, Result};
use longpole_capture::private_dir::{self, PrivateDirectory};
use longpole_store::{RecordingName, Store};

use crate::input::import_file;
use crate::store::open_store;

/// Prefix of their directories, in the temporary directory.
const TEMPORARY_PREFIX: &str = "longpole-open-";

/// A store with one file in it that lasts for one command. However this process ends, the next one can remove it.
pub(crate) struct TemporaryStore(PrivateDirectory);

impl TemporaryStore {
    /// Imports a file into a new store.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, RecordingName)> {
        remove_stale_stores();
        let contents = import_file::read(path)?;
        let base = std::env::temp_dir();
        let directory = PrivateDirectory::create_in(&base, TEMPORARY_PREFIX);
        let store = TemporaryStore(directory.with_context(|| format!("failed to create a directory in {}", base.display()))?);
        let (name, _) =
            longpole_recording::import::keep(&store.open()?, contents).context("failed to import the file into a temporary store")?;
        Ok((store, name))
    }

    pub(crate) fn open(&self) -> Result<Store> {
        open_store(self.root())
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }
}

/// Removes temporary stores of killed processes: they contain copies of private files.
pub(crate) fn remove_stale_stores() {
    private_dir::remove_stale_in(&std::env::temp_dir(), TEMPORARY_PREFIX);
}
