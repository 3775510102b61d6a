//! The directory of a recording's span journals. It holds a lock, so that a later recorder finds and removes that of a killed one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::regular_file::{self, Symlinks};

/// A file system in memory, the better place for journals (shm_overview(7)).
const MEMORY: &str = "/dev/shm";

/// Prefix of the directories, by which those of killed recorders are found.
const PREFIX: &str = "longpole-journals-";

/// How many names to try.
const TRIES_MAX: usize = 4;

/// Held while the recorder lives.
pub(super) const LOCK: &str = "lock";

/// A directory without a lock is being made, unless it is older than this.
const UNLOCKED_MAX: Duration = Duration::from_secs(60);

/// The directory of one recording's journals; removed on drop.
#[derive(Debug)]
pub struct JournalDirectory {
    path: PathBuf,
    // Its lock goes with it.
    _lock: File,
}

impl JournalDirectory {
    /// Makes a directory, and removes those of killed recorders.
    ///
    /// # Errors
    ///
    /// If neither `/dev/shm` nor the folder for temporary files takes it.
    pub fn create() -> io::Result<JournalDirectory> {
        remove_stale();
        let [memory, other] = bases();
        JournalDirectory::create_in(&memory).or_else(|_| JournalDirectory::create_in(&other))
    }

    pub(super) fn create_in(base: &Path) -> io::Result<JournalDirectory> {
        let pid = std::process::id();
        for _ in 0..TRIES_MAX {
            // Everybody can write to the folder, so the name must be one that nobody can guess and take first.
            let path = base.join(format!("{PREFIX}{pid}-{:016x}", getrandom::u64()?));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let lock = OpenOptions::new()
                        .write(true)
                        .create_new(true)
                        .mode(0o600)
                        .open(path.join(LOCK))
                        .and_then(|lock| Ok((lock.try_lock()?, lock).1));
                    return lock.map(|lock| JournalDirectory { path: path.clone(), _lock: lock }).inspect_err(|_| {
                        // A later recorder removes the rest.
                        let _ = fs::remove_dir_all(&path);
                    });
                }
                // By chance: try another name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JournalDirectory {
    fn drop(&mut self) {
        // A later recorder removes the rest.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The folders of such directories, the better one first. It may be missing or closed.
fn bases() -> [PathBuf; 2] {
    [PathBuf::from(MEMORY), std::env::temp_dir()]
}

/// Removes the directories of killed recorders.
pub fn remove_stale() {
    bases().iter().for_each(|base| remove_stale_in(base));
}

fn remove_stale_in(base: &Path) {
    let Ok(own) = fs::metadata("/proc/self") else { return };
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Does not follow a link.
        let is_own = || entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own.uid());
        if is_named && is_own() && is_stale(&entry.path()) {
            // Another recorder may do the same; a later one finds the rest.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_stale(directory: &Path) -> bool {
    match is_locked(&directory.join(LOCK)) {
        Ok(Some(is_locked)) => !is_locked,
        Ok(None) => {
            let made = fs::metadata(directory).and_then(|meta| meta.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNLOCKED_MAX))
        }
        Err(_) => false,
    }
}

/// Whether a process holds the lock of this file; `None` if there is no such file. Does not wait for anything else in its place: opening a
/// named pipe would wait for a writer, and a command can leave one.
///
/// # Errors
///
/// If the file cannot be opened.
pub fn is_locked(path: &Path) -> io::Result<Option<bool>> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::span_context::testing::base;

    #[test]
    fn only_directories_of_killed_recorders_are_removed() {
        let base = base("stale");
        let living = JournalDirectory::create_in(&base).unwrap();
        let dead = base.join(format!("{PREFIX}1-0"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), b"").unwrap();
        let young = base.join(format!("{PREFIX}2-0"));
        fs::create_dir(&young).unwrap();
        let other = base.join("other");
        fs::create_dir(&other).unwrap();
        remove_stale_in(&base);
        assert!(living.path().exists() && young.exists() && other.exists() && !dead.exists());
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
        // Such a directory counts as one without a lock, and is removed when it is old.
        let directory = base.join(format!("{PREFIX}x"));
        fs::create_dir(&directory).unwrap();
        fs::rename(base.join("pipe"), directory.join(LOCK)).unwrap();
        remove_stale_in(&base);
        assert!(directory.exists());
        File::open(&directory).unwrap().set_modified(SystemTime::now() - 2 * UNLOCKED_MAX).unwrap();
        remove_stale_in(&base);
        assert!(!directory.exists());
        fs::remove_dir_all(base).unwrap();
    }
}
