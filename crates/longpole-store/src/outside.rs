//! Files outside of a store, at paths where others may have a hand in. What is read must not make us wait, and what is written must not
//! go where another user points.
//!
//! ```text
//! at the path          to be read                   to be written
//! nothing              an error                     it is made
//! a plain file         it is read                   it is emptied and written
//! a link               followed, if that is wanted  followed, if it is ours or root's and nobody else can exchange it
//! a pipe or a device   an error                     written, with the same condition
//! ```

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::files;
use crate::users::{self, Owner};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Whether a path may be a link to the file that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It may.
    Followed,
    /// It may not.
    Refused,
}

/// Opens a plain file to be read. All else is an error, and is not waited for: neither the writer of a pipe nor a device, even where
/// somebody exchanges them while this looks.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let found = match links {
        Links::Followed => fs::metadata(path),
        Links::Refused => fs::symlink_metadata(path),
    };
    // To open a device can do something, such as wind a tape.
    if !found?.is_file() {
        return Err(files::not_plain());
    }
    match links {
        Links::Followed => files::open_through_links(path),
        Links::Refused => files::open(path),
    }
}

/// The bytes of a plain file, through links. One that is larger than this is an error.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, Links::Followed)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Why nothing can be written to a path.
#[derive(Debug, thiserror::Error)]
pub enum NotCreated {
    /// Something that leads elsewhere belongs to another user.
    #[error("it is {what} of another user (uid {uid})")]
    OfAnother {
        /// A link, a pipe.
        what: &'static str,
        /// The user.
        uid: u32,
    },
    /// Something that leads elsewhere can be made to lead elsewhere again.
    #[error("it is {what} in a folder where other users can exchange it")]
    Exchangeable {
        /// A link, a pipe.
        what: &'static str,
    },
    /// The system refuses it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a file to be written from its beginning; makes it, with this mode, where it is not there. A file that is there keeps its mode.
pub fn create(path: &Path, mode: u32) -> Result<File, NotCreated> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(mode);
    if let Some(found) = path.symlink_metadata().ok().filter(|data| !data.is_file()) {
        check_owner(path, &found)?;
        check_folder(path, &found)?;
        // A pipe of our own waits for its reader, as its user wants it.
        return Ok(options.truncate(true).open(path)?);
    }
    // What came there since is neither followed nor waited for, and emptied only where it is a file.
    let file = files::plain(options.custom_flags(files::flags()).open(path)?)?;
    file.set_len(0)?;
    Ok(file)
}

fn words_of(found: &Metadata) -> &'static str {
    if found.is_symlink() { "a link" } else { "a pipe or a device" }
}

/// Refuses to write through a link, or into a pipe, that another user put in its place. What root put there is used, and what stands in
/// /dev, such as /dev/stdout: in a user namespace nobody seems to own it.
fn check_owner(path: &Path, found: &Metadata) -> Result<(), NotCreated> {
    if Owner::current()?.relies_on(found.uid()) || path.parent() == Some(Path::new("/dev")) {
        return Ok(());
    }
    Err(NotCreated::OfAnother { what: words_of(found), uid: found.uid() })
}

/// Refuses to write through a link, or into a pipe, that another user can exchange for another between the look and the opening.
fn check_folder(path: &Path, found: &Metadata) -> Result<(), NotCreated> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.starts_with("/dev") || folder.starts_with("/proc") {
        return Ok(());
    }
    let own = Owner::current()?;
    let data = folder.metadata()?;
    let (everybody, group, sticky) = (data.mode() & OTHERS_WRITE != 0, data.mode() & GROUP_WRITES != 0, data.mode() & STICKY != 0);
    if sticky || !everybody && (!group || users::is_private_group(data.gid(), own)) {
        return Ok(());
    }
    Err(NotCreated::Exchangeable { what: words_of(found) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;
    use crate::testing::Directory;

    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn what_is_no_plain_file_is_not_read_and_not_waited_for() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        pipe(&at("pipe"));
        for name in ["file", "pipe"] {
            symlink(at(name), at(&format!("link to {name}"))).unwrap();
        }
        assert_eq!(read(&at("file"), 4).unwrap(), b"text");
        assert_eq!(read(&at("link to file"), 4).unwrap(), b"text");
        assert_eq!(read(&at("file"), 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        assert!(open(&at("file"), Links::Refused).is_ok());
        assert_eq!(open(&at("link to file"), Links::Refused).unwrap_err().to_string(), "it is not a plain file");
        for path in [at("pipe"), at("link to pipe"), directory.path().to_owned(), "/dev/zero".into()] {
            for links in [Links::Followed, Links::Refused] {
                assert_eq!(open(&path, links).unwrap_err().to_string(), "it is not a plain file", "{}", path.display());
            }
        }
        // Where it was exchanged after the look.
        assert!(files::open_through_links(&at("link to pipe")).is_err());
    }

    #[test]
    fn a_file_is_written_through_links_that_nobody_else_can_exchange() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        let write = |name: &str| create(&at(name), 0o600).map(|mut file| io::Write::write_all(&mut file, b"new").unwrap());
        fs::write(at("file"), "longer than new").unwrap();
        fs::set_permissions(at("file"), PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        for name in ["file", "link", "made"] {
            write(name).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "new", "{name}");
        }
        let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o777;
        assert_eq!((mode("file"), mode("made")), (0o640, 0o600));
        pipe(&at("pipe"));
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        for (name, what) in [("link", "a link"), ("pipe", "a pipe or a device")] {
            let refused = write(name).unwrap_err().to_string();
            assert_eq!(refused, format!("it is {what} in a folder where other users can exchange it"));
        }
        write("file").unwrap();
        let device = create(Path::new("/dev/null"), 0o600);
        assert!(device.is_ok(), "{device:?}");
    }
}
