//! The logs of a node and tenant, by their numbers.

use std::fs;
use std::path::Path;

use crate::error::StoreError;
use crate::files;

/// Name of the log of this number.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:010}.wal")
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
            let number = name.to_str().and_then(|name| name.strip_suffix(".wal")?.parse().ok());
            numbers.extend(number.filter(|number| name.to_str() == Some(&file_name(*number))));
        }
        numbers.sort_unstable();
        Ok(numbers)
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
