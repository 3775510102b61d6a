//! The logs of a node and tenant, by their numbers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files;

/// The greatest number of a log: its name has ten digits. A log a second for 300 years has a smaller one.
pub(super) const NUMBER_MAX: u64 = 9_999_999_998;

/// Name of the log of this number.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:010}.wal")
}

/// The number of the log of this name.
fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".wal")?.parse().ok()?;
    (number <= NUMBER_MAX && name == file_name(number)).then_some(number)
}

/// The folder of logs.
pub(super) struct Generations<'a> {
    folder: &'a Path,
}

impl<'a> Generations<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        Generations { folder }
    }

    /// The numbers of the logs that are there, in order.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, StoreError> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.folder).map_err(StoreError::io("list", self.folder))? {
            let name = entry.map_err(StoreError::io("list", self.folder))?.file_name();
            numbers.extend(name.to_str().and_then(number_of));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Logs by their names that longpole did not give them.
    pub(super) fn strays(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut strays = Vec::new();
        for entry in fs::read_dir(self.folder).map_err(StoreError::io("list", self.folder))? {
            let name = entry.map_err(StoreError::io("list", self.folder))?.file_name();
            let is_stray = name.to_str().is_some_and(|name| name.ends_with(".wal") && number_of(name).is_none());
            strays.extend(is_stray.then(|| self.folder.join(name)));
        }
        Ok(strays)
    }

    /// Removes a log.
    pub(super) fn remove(&self, number: u64) -> Result<(), StoreError> {
        let path = self.folder.join(file_name(number));
        files::remove_all(&path).map_err(StoreError::io("remove", path))
    }

    /// Removes the logs up to this number.
    pub(super) fn remove_until(&self, last: u64) -> Result<(), StoreError> {
        self.numbers()?.into_iter().filter(|number| *number <= last).try_for_each(|number| self.remove(number))
    }
}
