//! The one way to open a file that a program of the run, or anybody, put at a path: something else may stand there by now.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Whether a path may be a link to the file that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// It may.
    Followed,
    /// It may not.
    Refused,
}

/// The plain file at this path, to be read, with what is known of it; `None` where something else stands there. Nothing is waited for,
/// neither the writer of a named pipe nor a terminal.
pub(crate) fn open(path: &Path, links: Links) -> io::Result<Option<(File, Metadata)>> {
    let no_link = if links == Links::Refused { libc::O_NOFOLLOW } else { 0 };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | no_link;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // A link, or a socket.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}
