//! Files and folders of a store: only their user can open them, whatever the umask is, and no symbolic link is followed to them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

pub mod outside;
mod remove;
pub mod users;

pub(crate) use remove::remove_all;

/// Mode of a folder.
pub(crate) const FOLDER_MODE: u32 = 0o700;

/// Mode of a file.
pub(crate) const FILE_MODE: u32 = 0o600;

/// A link instead of the file is an error, and opening a named pipe does not block.
pub(crate) fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

/// Makes a folder that must not be there yet.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

/// Makes folders below a folder that is there, each in the one before it; the last one's path.
pub(crate) fn make_dirs(below: &Path, names: &[&OsStr]) -> io::Result<PathBuf> {
    let mut path = below.to_owned();
    for name in names {
        path.push(name);
        match create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A link in its place leads elsewhere.
                drop(open_dir(&path)?);
            }
            made => made?,
        }
    }
    Ok(path)
}

/// Waits until the disk has the files of a folder, and their names; their bytes.
pub(crate) fn sync_dir_with_files(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let file = open(&entry?.path())?;
        bytes += file.metadata()?.len();
        file.sync_all()?;
    }
    sync_dir(path)?;
    Ok(bytes)
}

/// Waits until the disk has the names in a folder.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Opens a folder as a place, not to be listed: no right to read it is needed, and no link is followed to it.
pub(crate) fn open_dir(path: &Path) -> io::Result<File> {
    Ok(rustix::fs::open(path, PLACE, Mode::empty())?.into())
}

/// Opens the folder of this name in a folder; makes it where it is not there. XDG asks for 0700 there, too.
pub(crate) fn open_or_create_dir(folder: &File, name: &OsStr) -> io::Result<File> {
    match open_dir_in(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(FOLDER_MODE)) {
        // Somebody else was quicker. Whose it is, the caller looks at.
        Ok(()) | Err(Errno::EXIST) => open_dir_in(folder, name),
        Err(error) => Err(error.into()),
    }
}

/// Opens the folder of this name in a folder, or above it (`..`). No link is followed.
pub(crate) fn open_dir_in(folder: &File, name: &OsStr) -> io::Result<File> {
    Ok(rustix::fs::openat(folder, name, PLACE, Mode::empty())?.into())
}

/// The same where this name is a link that the kernel follows.
pub(crate) fn open_dir_through_link(folder: &File, name: &OsStr) -> io::Result<File> {
    Ok(rustix::fs::openat(folder, name, PLACE.difference(OFlags::NOFOLLOW), Mode::empty())?.into())
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What stands under a name in a folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) kind: FileType,
    pub(crate) uid: u32,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
}

/// Reads an entry of a folder; for a link, the link's own.
pub(crate) fn entry(folder: &File, name: &OsStr) -> io::Result<Entry> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Entry { kind: FileType::from_raw_mode(found.st_mode), uid: found.st_uid, identity: (found.st_dev, found.st_ino) })
}

/// What a link says.
pub(crate) fn read_link(folder: &File, name: &OsStr) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes())
}

/// Whether a folder is one of /proc, whose links lead to what processes have open.
pub(crate) fn is_of_proc(folder: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Opens a file to be written; makes it where it is not there.
pub(crate) fn open_or_create_in(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    open_in(folder, name, OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK, mode)
}

/// Makes a file that must not be there yet, to be written.
pub(crate) fn create_new_in(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    open_in(folder, name, OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)
}

/// Opens a pipe or a device to be written, and waits for who reads it.
pub(crate) fn open_to_write_in(folder: &File, name: &OsStr) -> io::Result<File> {
    open_in(folder, name, OFlags::TRUNC | OFlags::NOFOLLOW, 0)
}

/// The same of whatever a link of the kernel leads to.
pub(crate) fn open_to_write_through_link(folder: &File, name: &OsStr) -> io::Result<File> {
    open_in(folder, name, OFlags::TRUNC, 0)
}

fn open_in(folder: &File, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | flags;
    let open = || rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode));
    Ok(rustix::io::retry_on_intr(open)?.into())
}

/// Renames a file within a folder; it replaces the file of that name.
pub(crate) fn rename_in(folder: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat(folder, from, folder, to)?)
}

/// Removes a file of a folder.
pub(crate) fn remove_in(folder: &File, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

/// Makes a file that must not be there yet, to be written.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).custom_flags(flags()).open(path)
}

/// The same with these bytes in it.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut create_new(path)?, bytes)
}

/// Gives a file these bytes, all at once: whoever reads it finds the old ones or these. What stood there goes, a link itself.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}", std::process::id()));
    let written = write_new(Path::new(&partial), bytes).and_then(|()| fs::rename(&partial, path));
    written.inspect_err(|_| drop(fs::remove_file(&partial)))
}

/// Makes a file that must not be there yet, to be appended to, and read by who made it, also where somebody has removed it.
pub(crate) fn create_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(FILE_MODE).custom_flags(flags()).open(path)
}

/// Opens a file to be locked; makes it where it is not there.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().append(true).create(true).mode(FILE_MODE).custom_flags(flags()).open(path)?)
}

/// Opens a file to be read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().read(true).custom_flags(flags()).open(path)?)
}

/// The bytes of a file that is there.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

/// Reads a short text.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(open(path)?, SHORT_BYTES_MAX), &mut text)?;
    Ok(text)
}

/// The longest of the texts that are read whole: a line each.
const SHORT_BYTES_MAX: u64 = 4096;

/// Whether this file still stands at this path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let own = file.metadata().map(|own| (own.dev(), own.ino()));
    own.is_ok_and(|own| identity(path).is_ok_and(|there| there == own))
}

/// Whether this file or folder is of our user, as the kernel sees it. Its number may not say so: in a user namespace one number stands for
/// all users whom that does not know. Only who owns a file may open it without setting the time of its last access.
pub(crate) fn is_owned(path: &Path, found: &fs::Metadata) -> bool {
    let flags = flags() | OFlags::NOATIME.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path).and_then(|file| file.metadata());
    opened.is_ok_and(|opened| (opened.dev(), opened.ino()) == (found.dev(), found.ino()))
}

/// The access control list of what stands at this path, of a link of the link; `None` where the mode says all.
pub(crate) fn access_list(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut list = vec![0; ACCESS_LIST_BYTES_MAX];
    match rustix::fs::lgetxattr(path, ACCESS_LIST, &mut list[..]) {
        Ok(bytes) => {
            list.truncate(bytes);
            Ok(Some(list))
        }
        // There is none, the file system has none, or the kernel knows none.
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same of a folder that is open.
pub(crate) fn access_list_of(folder: &File) -> io::Result<Option<Vec<u8>>> {
    // The dot is the folder and no link.
    access_list(Path::new(&format!("/proc/self/fd/{}/.", std::os::fd::AsRawFd::as_raw_fd(folder))))
}

/// Where POSIX keeps it.
pub(crate) const ACCESS_LIST: &str = "system.posix_acl_access";

/// No attribute is longer.
const ACCESS_LIST_BYTES_MAX: usize = 64 << 10;

/// Device and inode of what stands at this path.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()))
}

/// What tells a file from another one in its place, and from itself before it was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    identity: (u64, u64),
    pub(crate) length: u64,
    modified: (i64, i64),
}

impl FileVersion {
    pub(crate) fn of(file: &File) -> io::Result<FileVersion> {
        let found = file.metadata()?;
        let (identity, modified) = ((found.dev(), found.ino()), (found.mtime(), found.mtime_nsec()));
        Ok(FileVersion { identity, length: found.len(), modified })
    }
}

/// The same file, to be read at a place of its own.
pub(crate) fn again(file: &File) -> io::Result<File> {
    // By its path another one may be found by now.
    let own = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)));
    own.or_else(|_| {
        let mut shared = file.try_clone()?;
        io::Seek::rewind(&mut shared)?;
        Ok(shared)
    })
}

/// The file, where it is one.
pub(crate) fn plain(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_plain()) }
}

/// Said of all else.
pub(crate) fn not_plain() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::Directory;

    #[test]
    fn what_is_made_is_for_its_user_alone() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        let deep = open_or_create_dir(&open_dir(directory.path()).unwrap(), OsStr::new("deep")).unwrap();
        open_or_create_dir(&deep, OsStr::new("folder")).unwrap();
        open_or_create_dir(&deep, OsStr::new("folder")).unwrap();
        create_dir(&at("folder")).unwrap();
        write_new(&at("file"), b"text").unwrap();
        drop((create_log(&at("log")).unwrap(), open_lock(&at("lock")).unwrap()));
        for (name, mode) in [("deep", 0o700), ("deep/folder", 0o700), ("folder", 0o700), ("file", 0o600), ("log", 0o600), ("lock", 0o600)] {
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777, mode, "{name}");
        }
        assert_eq!(read_to_string(&at("file")).unwrap(), "text");
    }

    #[test]
    fn no_link_is_followed() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("precious")).unwrap();
        fs::write(at("precious/file"), "kept").unwrap();
        symlink(at("precious"), at("folder")).unwrap();
        symlink(at("precious/file"), at("file")).unwrap();
        assert!(open(&at("file")).is_err() && open_lock(&at("file")).is_err() && write_new(&at("file"), b"x").is_err());
        let place = open_dir(directory.path()).unwrap();
        for name in ["folder", "file"] {
            assert!(open_or_create_dir(&place, OsStr::new(name)).is_err() && open_dir(&at(name)).is_err());
        }
        assert_eq!(open(&at("precious")).unwrap_err().kind(), io::ErrorKind::InvalidData);
        for name in ["folder", "file", "nothing"] {
            remove_all(&at(name)).unwrap();
            assert!(fs::symlink_metadata(at(name)).is_err());
        }
        assert_eq!(fs::read_to_string(at("precious/file")).unwrap(), "kept");
    }
}
