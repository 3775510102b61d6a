//! Where things lie in a store: names of its files and folders, and nothing that opens them.

use std::path::{Path, PathBuf};

use crate::name::RecordingName;

/// Folder of the recordings.
pub(crate) const RECORDINGS: &str = "recordings";

/// File of the catalog.
pub(crate) const CATALOG: &str = "catalog.sqlite";

/// What SQLite appends to the name of the catalog for the files beside it.
pub(crate) const CATALOG_ENDS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Folder of what is slow to find out.
pub(crate) const CACHE: &str = "cache";

/// Locked while the recorder lives.
pub(crate) const LOCK: &str = "lock";

/// Locked while somebody seals.
pub(crate) const SEAL_LOCK: &str = "seal.lock";

/// Space that is given back for the last words of the log.
pub(crate) const RESERVE: &str = "reserve";

/// Segments that are being written.
pub(crate) const PARTIAL: &str = "segments.partial";

/// Where the files of a recording lie, relative to the root.
pub(crate) fn directory_of(name: RecordingName) -> PathBuf {
    Path::new(RECORDINGS).join(name.to_string())
}

/// Directory of the segments of a sealed recording.
pub(crate) fn segments(directory: &Path) -> PathBuf {
    directory.join("segments")
}

/// Directory of the log.
pub(crate) fn wal_directory(directory: &Path) -> PathBuf {
    directory.join("wal")
}

/// The log.
pub(crate) fn wal_file(directory: &Path) -> PathBuf {
    wal_directory(directory).join("000001.wal")
}
