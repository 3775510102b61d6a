//! Versions of what lies on disk, and who reads whom.
//!
//! A reader reads its own version and every older one; it refuses a newer one and names it. Each kind of file says its
//! version itself, so that a file that was copied out of its recording can still be read or refused.
//!
//! | file | where its version stands | version |
//! |---|---|---|
//! | `catalog.sqlite` | `PRAGMA user_version` | [`CATALOG_VERSION`] |
//! | `recordings/r7/format` | its only line: `longpole recording 6` | [`RECORDING_VERSION`] |
//! | `recordings/r7/wal/000001.wal` | bytes 8 to 11 | [`WAL_VERSION`] |
//! | `recordings/r7/segments/*.parquet` | key `longpole.format` of the footer's key-value metadata | [`RECORDING_VERSION`] |
//! | `r7.lpole` | its first member, which is that `format` file | [`RECORDING_VERSION`] |

use std::path::Path;

use crate::error::StoreError;
use crate::files;

/// Version of the catalog's tables.
pub const CATALOG_VERSION: u32 = 2;

/// Version of a recording's directory and of the tables in its segments. Version 1 had no `waits`, and no `runtime` in `locations`;
/// version 2 had no `process_usage`, and no exits in `processes`; version 3 had no `current_spans`;
/// version 4 had no futexes in `waits`, and no kind `join`; version 5 had no checksums of its segments.
pub const RECORDING_VERSION: u32 = 6;

/// The first version whose segments have checksums.
pub(crate) const CHECKSUMS_SINCE: u32 = 6;

/// Version of the write-ahead log's bytes. Version 1 had no observations above 16, version 2 none above 19, version 3 none above 23,
/// version 4 none above 28, version 5 none above 29 and did not say in journals who is sent.
pub const WAL_VERSION: u32 = 6;

/// Name of the file that holds the version of a recording's directory.
pub(crate) const FILE_NAME: &str = "format";

const PREFIX: &str = "longpole recording ";

/// The line that says that a recording has this version.
pub(crate) fn line_of(version: u32) -> String {
    format!("{PREFIX}{version}\n")
}

/// Says in the directory which version it has.
pub(crate) fn write(directory: &Path) -> Result<(), StoreError> {
    let path = directory.join(FILE_NAME);
    files::write_new(&path, line_of(RECORDING_VERSION).as_bytes()).map_err(StoreError::io("write", path))
}

/// The version of a directory. Refuses one that is newer, and one that does not say it.
pub(crate) fn check(directory: &Path) -> Result<u32, StoreError> {
    let path = directory.join(FILE_NAME);
    let text = files::read_to_string(&path).map_err(StoreError::io("read", path.clone()))?;
    check_line(text.as_bytes(), directory)
}

/// The same before a log is read, which says its own version: a power cut can leave this file without its line.
pub(crate) fn check_of_log(directory: &Path) -> Result<(), StoreError> {
    if is_blank(directory) { Ok(()) } else { check(directory).map(|_| ()) }
}

/// Writes the line where a power cut took it.
pub(crate) fn mend(directory: &Path) -> Result<(), StoreError> {
    if !is_blank(directory) {
        return Ok(());
    }
    let path = directory.join(FILE_NAME);
    files::remove_all(&path).map_err(StoreError::io("remove", path))?;
    write(directory)
}

fn is_blank(directory: &Path) -> bool {
    files::read_to_string(&directory.join(FILE_NAME)).is_ok_and(|text| text.bytes().all(|byte| byte == 0))
}

/// The version that a line says. Refuses a newer one, and what is no such line; `path` is what it stands in.
pub(crate) fn check_line(line: &[u8], path: &Path) -> Result<u32, StoreError> {
    let version = std::str::from_utf8(line).ok().and_then(|text| text.trim_end().strip_prefix(PREFIX)?.parse().ok());
    match version {
        Some(found) if found <= RECORDING_VERSION => Ok(found),
        Some(found) => Err(StoreError::Newer { what: "recording", path: path.to_owned(), found, known: RECORDING_VERSION }),
        None => Err(StoreError::Corrupt { path: path.to_owned(), reason: "it does not say the version of the recording".into() }),
    }
}
