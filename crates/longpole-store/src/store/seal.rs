//! The steps of sealing: from a recording in memory to its segments.
//!
//! ```text
//!      step                           what a crash behind it leaves
//!   1  write all tables into          log; an unfinished `segments.partial`, thrown away by the next attempt
//!      `segments.partial`
//!   2  rename it to `segments`        log; segments that the catalog does not know, replaced by the next attempt
//!   3  the catalog says sealed        segments that are read; a log that is not needed any more
//!   4  sync all of it                 the same
//!   5  remove `wal`                   segments that are read
//! ```
//!
//! A power cut takes back what the kernel had not written, in any order: before step 4 it can leave segments without content beside a catalog that
//! says sealed. The log is there then, and the recording is sealed again from it. A run does not wait for the disk: it leaves its log to whoever
//! comes by when the kernel has written everything by itself, [`SETTLED_AFTER`] later, and syncing costs nothing any more.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use longpole_model::Recording;

use crate::compact_spans::CompactRecording;
use crate::error::StoreError;
use crate::files;
use crate::layout::{self, CATALOG, CATALOG_ENDS, PARTIAL};
use crate::segment::checksums::{self, Checksums};
use crate::segment::recording;
use crate::tables::spans::Spans;

/// Removes a directory with all that is in it, if it is there; of a link in its place the link.
pub(crate) fn remove_directory(path: &Path) -> Result<(), StoreError> {
    files::remove_all(path).map_err(StoreError::io("remove", path))
}

/// Step 1: writes every table where no reader looks.
pub(crate) fn write_partial(directory: &Path, recording: &Recording) -> Result<(), StoreError> {
    write_partial_of(directory, recording, Spans::Whole(&recording.spans))
}

/// The same, of a recording whose spans are compact.
pub(crate) fn write_partial_compact(directory: &Path, recording: &CompactRecording) -> Result<(), StoreError> {
    write_partial_of(directory, &recording.rest, Spans::Compact(&recording.spans))
}

fn write_partial_of(directory: &Path, whole: &Recording, spans: Spans<'_>) -> Result<(), StoreError> {
    recording::check_consistent(whole, spans.len())?;
    let partial = directory.join(PARTIAL);
    remove_directory(&partial)?;
    files::create_dir(&partial).map_err(StoreError::io("create", &partial))?;
    recording::write(&partial, whole, spans).map(|_| ()).inspect_err(|_| {
        // What was written of it is of no use, and the disk may be full of it. That it failed is what the caller has to know.
        let _ = remove_directory(&partial);
    })
}

/// Step 2: makes them the segments, all at once.
pub(crate) fn publish(directory: &Path) -> Result<(), StoreError> {
    let segments = layout::segments(directory);
    remove_directory(&segments)?;
    fs::rename(directory.join(PARTIAL), &segments).map_err(StoreError::io("move the new segments to", segments))
}

/// When the kernel has written what a process left in its cache: by default it waits 30 s at most.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Whether the log of a sealed recording is there and old enough for step 4 to be quick.
pub(crate) fn is_settled(directory: &Path) -> bool {
    let written = fs::symlink_metadata(layout::wal_file(directory)).and_then(|data| data.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= SETTLED_AFTER))
}

/// Steps 4 and 5. If a file of the segments is missing or has another length than was written, the log stays: it is all there is.
pub(crate) fn settle(directory: &Path, root: &Path) -> Result<(), StoreError> {
    let segments = layout::segments(directory);
    let list = segments.join(checksums::FILE_NAME);
    let bytes = checksums::read(&list).map_err(StoreError::io("read", &list))?;
    let corrupt = |path: &Path, reason: &str| StoreError::Corrupt { path: path.to_owned(), reason: reason.to_owned() };
    let files = Checksums::parse(&bytes).map_err(|reason| corrupt(&list, reason))?;
    for (name, length) in files.files() {
        let path = segments.join(name);
        if fs::symlink_metadata(&path).map_err(StoreError::io("examine", &path))?.len() != length {
            return Err(corrupt(&path, "it has another length than was written"));
        }
    }
    files::sync_dir_with_files(&segments).map_err(StoreError::io("sync", &segments))?;
    files::sync_dir(directory).map_err(StoreError::io("sync", directory))?;
    // What SQLite has committed stands in the file beside the catalog, until it is moved into that.
    for end in CATALOG_ENDS {
        let path = root.join(format!("{CATALOG}{end}"));
        match files::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => opened.and_then(|file| file.sync_all()).map_err(StoreError::io("sync", path))?,
        }
    }
    remove_wal(directory)
}

/// Step 5: removes the log.
pub(crate) fn remove_wal(directory: &Path) -> Result<(), StoreError> {
    remove_directory(&layout::wal_directory(directory))
}
