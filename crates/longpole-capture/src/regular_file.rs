//! The one way to open a file that a program of the run, or anybody, put at a path: something else may stand there by now.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys::descriptors::{find_in, is_of_the_kernel};

/// Whether a path may be a link to the file that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symlinks {
    /// It may.
    Followed,
    /// It may not, nor may another file system be mounted there.
    Refused,
}

/// What stands at a path, found without opening it: to open a device can do something, such as arm a watchdog.
#[derive(Debug)]
pub(crate) struct Found {
    place: File,
    pub(crate) metadata: Metadata,
}

/// The plain file at this path; `None` where something else stands there, or something that the kernel makes up, which may never end.
pub(crate) fn find(path: &Path, links: Symlinks) -> io::Result<Option<Found>> {
    let look = |path: &Path| OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
    let place = match (links, path.parent(), path.file_name()) {
        (Symlinks::Refused, Some(folder), Some(name)) => find_in(&look(folder)?, name)?,
        _ => Some(look(path)?),
    };
    let Some(place) = place else { return Ok(None) };
    let metadata = place.metadata()?;
    let is_plain = metadata.is_file() && !is_of_the_kernel(&place);
    Ok(is_plain.then_some(Found { place, metadata }))
}

impl Found {
    /// This very file, to be read, whatever stands at its path by now, with what is known of it. Whoever holds a lease of it is not waited
    /// for.
    pub(crate) fn open(&self) -> io::Result<(File, Metadata)> {
        let path = format!("/proc/self/fd/{}", self.place.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }
}

/// Finds a plain file and opens it. Nothing is waited for, neither the writer of a named pipe nor a terminal.
pub(crate) fn open(path: &Path, links: Symlinks) -> io::Result<Option<(File, Metadata)>> {
    find(path, links)?.map(|found| found.open()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_are_opened() {
        let folder = std::env::temp_dir().join(format!("longpole-plain-file-{}", std::process::id()));
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
