//! Opening a store.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longpole_store::{ErrorKind, Store};

use crate::failure::{Failure, Kind};
use crate::terminal::stderr::note;

pub(crate) fn open_store(root: &Path) -> Result<Store> {
    let store = Store::open(root).map_err(|error| match error.kind() {
        ErrorKind::NotOurs => Failure::new(Kind::NotPermitted, format!("failed to open the store {}: {error}", root.display())).into(),
        _ => anyhow::Error::new(error).context(format!("failed to open the store {}", root.display())),
    })?;
    if store.was_open() {
        note(format!("made the store {} private: other users could read it", root.display()));
    }
    Ok(store)
}

/// Creates a directory in the temporary one that only this user can open.
pub(crate) fn new_folder(prefix: &str) -> Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"))?;
    let path = std::env::temp_dir().join(format!("{prefix}{:016x}", u64::from_ne_bytes(random)));
    DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    Ok(path)
}
