//! Private directories in folders that everybody can write to. Each belongs to one process, which holds a lock in it, so that a later process
//! finds and removes that of a killed one.
//!
//! Another user can put a directory of ours, or a file system that never answers, under such a name. So a directory is removed only if its
//! owner, its mode and the lock are those of a [`PrivateDirectory`], which nobody else can put into it, and no step goes through a link or into
//! another file system.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::regular_file::{self, Symlinks};
use crate::sys::descriptors::find_in;

/// How many names to try.
const TRIES_MAX: usize = 4;

/// Held while the process lives.
pub(crate) const LOCK: &str = "in-use";

const MODE: u32 = 0o700;

/// The bits of a mode that say who may do what. A folder may hand on its set-group-ID bit.
const RIGHTS: u32 = 0o777;

/// A directory without a lock is being made, unless it is older than this.
const UNLOCKED_MAX: Duration = Duration::from_secs(60);

/// Directories inside each other, at most, that are removed: more than a store has.
const DEPTH_MAX: usize = 8;

/// A directory of this process; removed on drop.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    /// The folder that it is in, and its name there.
    folder: File,
    name: OsString,
    /// The directory itself, whatever is at its path later.
    place: File,
    // Its lock goes with it.
    _lock: File,
}

impl PrivateDirectory {
    /// Makes a directory in a folder. Its name begins with `prefix`.
    ///
    /// # Errors
    ///
    /// If the folder does not take it, or somebody puts something else in its place at once.
    pub fn create_in(base: &Path, prefix: &str) -> io::Result<PrivateDirectory> {
        let folder = open_folder(base)?;
        let pid = std::process::id();
        for _ in 0..TRIES_MAX {
            // Everybody can write to the folder, so the name must be one that nobody can guess and take first.
            let name = OsString::from(format!("{prefix}{pid}-{:016x}", getrandom::u64()?));
            match DirBuilder::new().mode(MODE).create(inside(&folder).join(&name)) {
                // If that fails, a later process removes the rest.
                Ok(()) => return PrivateDirectory::lock(base.join(&name), folder, name),
                // By chance: try another name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Takes possession of a new directory. Where others can write to the folder and rename what is in it, they can have exchanged it by now for
    /// a link, or for a directory of ours with something in it, and all in it would be removed at the end.
    fn lock(path: PathBuf, folder: File, name: OsString) -> io::Result<PrivateDirectory> {
        let exchanged = || io::Error::other("another user put something else in its place");
        let place = find_in(&folder, &name)?.ok_or_else(exchanged)?;
        if !is_private(&place.metadata()?, &fs::metadata("/proc/self")?) || fs::read_dir(inside(&place))?.next().is_some() {
            return Err(exchanged());
        }
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(inside(&place).join(LOCK))?;
        lock.try_lock()?;
        Ok(PrivateDirectory { path, folder, name, place, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // A later process removes the rest.
        remove(&self.folder, &self.name, &self.place);
    }
}

/// Whether it is a directory of ours that nobody else can enter; `own` is a file of ours.
fn is_private(about: &fs::Metadata, own: &fs::Metadata) -> bool {
    about.is_dir() && about.uid() == own.uid() && about.mode() & RIGHTS == MODE
}

/// Removes the directories of killed processes whose names begin with `prefix`.
pub fn remove_stale_in(base: &Path, prefix: &str) {
    let (Ok(own), Ok(folder)) = (fs::metadata("/proc/self"), open_folder(base)) else { return };
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(prefix)) {
            continue;
        }
        let Ok(Some(place)) = find_in(&folder, &name) else { continue };
        let Ok(about) = place.metadata() else { continue };
        if !is_private(&about, &own) {
            continue;
        }
        match is_locked(&inside(&place).join(LOCK)) {
            // Another process may do the same; a later one finds the rest.
            Ok(Some(false)) => remove(&folder, &name, &place),
            // It may be anything, unless it is empty.
            Ok(None) if is_old(&about) => drop(fs::remove_dir(inside(&folder).join(&name))),
            _ => {}
        }
    }
}

fn is_old(about: &fs::Metadata) -> bool {
    about.modified().is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNLOCKED_MAX))
}

/// Whether a process holds the lock of this file; `None` if there is no such file. Does not wait for anything else in its place: opening a
/// named pipe would wait for a writer, and a command can leave one.
fn is_locked(path: &Path) -> io::Result<Option<bool>> {
    let file = match regular_file::open(path, Symlinks::Refused) {
        Ok(Some((file, _))) => file,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(false)),
        Err(TryLockError::WouldBlock) => Ok(Some(true)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Opens a folder as a place, without the right to list it.
fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
}

/// The path of an open directory, whatever its name is by now.
fn inside(place: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// Removes a directory and what is in it, as far as that goes. What is at its name by now stays, unless it is empty.
fn remove(folder: &File, name: &OsStr, place: &File) {
    empty(place, DEPTH_MAX);
    let _ = fs::remove_dir(inside(folder).join(name));
}

fn empty(place: &File, depth_max: usize) {
    for entry in fs::read_dir(inside(place)).into_iter().flatten().flatten() {
        let path = inside(place).join(entry.file_name());
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_file(path);
            continue;
        }
        if let Ok(Some(below)) = find_in(place, &entry.file_name())
            && depth_max > 0
        {
            empty(&below, depth_max - 1);
        }
        let _ = fs::remove_dir(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::span_context::testing::base;

    const PREFIX: &str = "longpole-test-";

    fn make(base: &Path, name: &str) -> PathBuf {
        let path = base.join(format!("{PREFIX}{name}"));
        DirBuilder::new().mode(MODE).create(&path).unwrap();
        path
    }

    #[test]
    fn only_directories_of_killed_processes_are_removed() {
        let base = base("stale");
        let living = PrivateDirectory::create_in(&base, PREFIX).unwrap();
        let dead = make(&base, "1-0");
        fs::write(dead.join(LOCK), b"").unwrap();
        fs::create_dir_all(dead.join("recordings/r1")).unwrap();
        fs::write(dead.join("recordings/r1/file"), b"").unwrap();
        let young = make(&base, "2-0");
        let other = base.join("other");
        fs::create_dir(&other).unwrap();
        remove_stale_in(&base, PREFIX);
        assert!(living.path().exists() && young.exists() && other.exists() && !dead.exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_ours_to_remove() {
        let base = base("renamed");
        // Another user renamed it, and made the lock.
        let renamed = make(&base, "x");
        fs::set_permissions(&renamed, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(renamed.join(LOCK), b"").unwrap();
        fs::write(renamed.join("precious"), b"").unwrap();
        remove_stale_in(&base, PREFIX);
        assert!(renamed.join("precious").exists());
        fs::remove_dir_all(base).unwrap();
    }

    fn make_old(directory: &Path) {
        File::open(directory).unwrap().set_modified(SystemTime::now() - 2 * UNLOCKED_MAX).unwrap();
    }

    #[test]
    fn without_a_lock_only_an_old_empty_directory_is_removed() {
        let base = base("unlocked");
        // Where the folder is not sticky, another user can rename a private one.
        let (precious, empty, young) = (make(&base, "precious"), make(&base, "empty"), make(&base, "young"));
        fs::write(precious.join("chapter"), b"").unwrap();
        make_old(&precious);
        make_old(&empty);
        remove_stale_in(&base, PREFIX);
        assert!(precious.join("chapter").exists() && young.exists() && !empty.exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn what_another_user_puts_in_the_place_of_a_new_directory_is_not_taken() {
        let base = base("exchanged");
        let folder = || open_folder(&base).unwrap();
        let thesis = make(&base, "thesis");
        fs::write(thesis.join("chapter"), b"").unwrap();
        symlink(&thesis, base.join("link")).unwrap();
        let open = make(&base, "open");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o770)).unwrap();
        for (path, name) in [(&thesis, "longpole-test-thesis"), (&base, "link"), (&open, "longpole-test-open"), (&base, "nothing")] {
            PrivateDirectory::lock(path.clone(), folder(), name.into()).unwrap_err();
        }
        assert!(thesis.join("chapter").exists() && !thesis.join(LOCK).exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn directories_as_deep_as_a_command_likes_use_up_nothing() {
        let base = base("deep");
        let own = PrivateDirectory::create_in(&base, PREFIX).unwrap();
        let mut deep = own.path().to_path_buf();
        (0..2 * DEPTH_MAX).for_each(|_| deep.push("a"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(own.path().join("journal"), b"").unwrap();
        let path = own.path().to_path_buf();
        drop(own);
        assert!(deep.exists() && !path.join("journal").exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_pipe_instead_of_a_lock_holds_up_nobody() {
        let base = base("locks");
        let made = std::process::Command::new("mkfifo").arg(base.join("pipe")).status().unwrap();
        assert!(made.success());
        let socket = std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
        fs::create_dir(base.join("folder")).unwrap();
        fs::write(base.join("free"), "").unwrap();
        let held = File::create(base.join("held")).unwrap();
        held.try_lock().unwrap();
        for (link, target) in [("link", "held"), ("dangling", "nothing"), ("around", "around")] {
            symlink(target, base.join(link)).unwrap();
        }
        for name in ["pipe", "socket", "folder", "link", "dangling", "around", "nothing"] {
            assert_eq!(is_locked(&base.join(name)).unwrap(), None, "{name}");
        }
        assert_eq!(is_locked(&base.join("free")).unwrap(), Some(false));
        assert_eq!(is_locked(&base.join("held")).unwrap(), Some(true));
        drop(socket);
        // Such a directory is like one without a lock: it may be anything.
        let directory = make(&base, "x");
        fs::rename(base.join("pipe"), directory.join(LOCK)).unwrap();
        make_old(&directory);
        remove_stale_in(&base, PREFIX);
        assert!(directory.exists());
        fs::remove_dir_all(base).unwrap();
    }
}
