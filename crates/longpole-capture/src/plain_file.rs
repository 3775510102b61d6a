//! The one way to open a file that a program of the run, or anybody, put at a path: something else may stand there by now.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
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
/// neither the writer of a named pipe nor a terminal, nor who holds a lease of the file, and no device is opened: that alone can do
/// something, such as arm a watchdog.
pub(crate) fn open(path: &Path, links: Links) -> io::Result<Option<(File, Metadata)>> {
    let no_link = if links == Links::Refused { libc::O_NOFOLLOW } else { 0 };
    // What stands there is found without opening it, and then this very file is opened, whatever stands there by now.
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH | no_link).open(path)?;
    if !found.metadata()?.is_file() {
        return Ok(None);
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let metadata = file.metadata()?;
    Ok(Some((file, metadata)))
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
        assert!(is_opened(&plain, Links::Refused) && is_opened(&link, Links::Followed));
        assert!(!is_opened(&link, Links::Refused) && !is_opened(&socket, Links::Followed) && !is_opened(&folder, Links::Followed));
        assert!(!is_opened(Path::new("/dev/zero"), Links::Followed));
        assert_eq!(open(&folder.join("none"), Links::Followed).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_file(&plain).unwrap();
        assert!(open(&link, Links::Followed).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
