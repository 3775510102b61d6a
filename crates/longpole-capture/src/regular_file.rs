//! Opens a file at a path that programs of the run, or anybody, can write to: something else may be there by now.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys::descriptors::{find_in, is_of_the_kernel};

/// Whether to follow a symbolic link at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symlinks {
    /// Follow it.
    Followed,
    /// Refuse it, and a file system mounted there.
    Refused,
}

/// A regular file, found without opening it: opening a device can have effects, such as arming a watchdog.
#[derive(Debug)]
pub(crate) struct UnopenedFile {
    place: File,
    pub(crate) metadata: Metadata,
}

/// Finds the regular file at this path. `None` if something else is there, or a file of proc, sysfs or the like, which may never end.
///
/// # Errors
///
/// If nothing is there, or the path may not be searched.
pub(crate) fn find(path: &Path, links: Symlinks) -> io::Result<Option<UnopenedFile>> {
    let look = |path: &Path| OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
    let place = match (links, path.parent(), path.file_name()) {
        (Symlinks::Refused, Some(folder), Some(name)) => find_in(&look(folder)?, name)?,
        _ => Some(look(path)?),
    };
    let Some(place) = place else { return Ok(None) };
    let metadata = place.metadata()?;
    let is_plain = metadata.is_file() && !is_of_the_kernel(&place);
    Ok(is_plain.then_some(UnopenedFile { place, metadata }))
}

impl UnopenedFile {
    /// Opens this file for reading, whatever is at its path by now. Does not wait for the holder of a lease (fcntl(2), F_SETLEASE).
    ///
    /// # Errors
    ///
    /// If the file may not be read.
    pub(crate) fn open(&self) -> io::Result<(File, Metadata)> {
        let path = format!("/proc/self/fd/{}", self.place.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }
}

/// Finds a regular file and opens it for reading. Waits for nothing: neither for the writer of a named pipe nor for a terminal.
///
/// # Errors
///
/// Those of [`find`] and [`UnopenedFile::open`].
pub(crate) fn open(path: &Path, links: Symlinks) -> io::Result<Option<(File, Metadata)>> {
    find(path, links)?.map(|found| found.open()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = std::env::temp_dir().join(format!("longpole-regular-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (plain, link, socket) = (folder.join("plain"), folder.join("link"), folder.join("socket"));
        std::fs::write(&plain, "x").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let is_opened = |path: &Path, links| open(path, links).unwrap().is_some();
        assert!(is_opened(&plain, Symlinks::Refused) && is_opened(&link, Symlinks::Followed));
        assert!(!is_opened(&link, Symlinks::Refused) && !is_opened(&socket, Symlinks::Followed) && !is_opened(&folder, Symlinks::Followed));
        assert!(!is_opened(Path::new("/dev/zero"), Symlinks::Followed) && !is_opened(Path::new("/proc/version"), Symlinks::Followed));
        assert_eq!(open(&folder.join("none"), Symlinks::Followed).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_file(&plain).unwrap();
        assert!(open(&link, Symlinks::Followed).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
