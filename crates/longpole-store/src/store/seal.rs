//! The steps of sealing: from a recording in memory to its segments.
//!
//! ```text
//!      step                           what a crash behind it leaves
//!   1  write all tables into          log; an unfinished `segments.partial`, thrown away by the next attempt
//!      `segments.partial`
//!   2  rename it to `segments`        log; segments that the catalog does not know, replaced by the next attempt
//!   3  the catalog says sealed        segments that are read; a log that is not needed any more
//!   4  remove `wal`                   segments that are read
//! ```

use std::fs;
use std::path::Path;

use longpole_model::Recording;

use crate::compact_spans::CompactRecording;
use crate::error::StoreError;
use crate::files;
use crate::layout::{self, PARTIAL};
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

/// Step 4: removes the log.
pub(crate) fn remove_wal(directory: &Path) -> Result<(), StoreError> {
    remove_directory(&layout::wal_directory(directory))
}
