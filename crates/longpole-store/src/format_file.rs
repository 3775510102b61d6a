//! The file `format` of a recording's directory: its version, in one line.

use std::path::Path;

use crate::error::StoreError;
use crate::files;
use crate::format::RECORDING_VERSION;

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
        None => Err(StoreError::Corrupt { path: path.to_owned(), reason: "it does not state the version of the recording".into() }),
    }
}
