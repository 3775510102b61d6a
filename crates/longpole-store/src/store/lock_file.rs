//! The lock files of a recording: whether its recorder lives, whether the machine has started anew since it began, and why it ended.
//!
//! ```text
//! lock         locked by the recorder    boot 5c3f…          the machine's start that it ran in
//!                                        ended disk full     only where it could not seal: why not
//! seal.lock    locked by who seals       empty
//! ```
//!
//! Nothing is synced while a recording is made: what was acknowledged survives the recorder's death, but not a power cut. So how much of a
//! log can be missing depends on whether the machine has restarted.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::error::StoreError;
use crate::files;
use crate::layout::{LOCK, SEAL_LOCK};
use crate::wal::Since;

/// A number the kernel makes at each start.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const PREFIX: &str = "boot ";

/// The line that the lock file of a recording holds; empty where the kernel does not tell.
pub(crate) fn line() -> String {
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    if boot.trim().is_empty() { String::new() } else { format!("{PREFIX}{}\n", boot.trim()) }
}

/// Compares the line in this lock file with the machine's own.
pub(crate) fn since(lock: &Path) -> Since {
    let (then, now) = (files::read_to_string(lock).unwrap_or_default(), line());
    let then = then.lines().next().unwrap_or_default();
    if !then.starts_with(PREFIX) || now.is_empty() {
        Since::Unknown
    } else if then == now.trim_end() {
        Since::SameBoot
    } else {
        Since::OtherBoot
    }
}

/// What the line begins with in which a recorder says that it ended, and why it could not seal.
const ENDED: &str = "ended ";

/// The longest of its reasons.
const REASON_BYTES_MAX: usize = 500;

/// The line. It stands in the lock file, which has a block already: that of a disk that is full takes it, too.
pub(crate) fn ended_line(reason: &str) -> String {
    let mut reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    format!("{ENDED}{reason}\n")
}

/// Why the recorder could not seal, where it said so.
pub(crate) fn why_ended(lock: &Path) -> Option<String> {
    let text = files::read_to_string(lock).ok()?;
    text.lines().find_map(|line| line.strip_prefix(ENDED)).map(str::to_owned)
}

/// Whether the recorder holds its lock. Asking takes a shared lock for a moment, so that two who ask do not take each
/// other for the recorder.
pub(super) fn recorder_lives(directory: &Path) -> Result<bool, StoreError> {
    let path = directory.join(LOCK);
    let file = match files::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io("open", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
    }
}

/// Waits until no one else seals or removes the recording of this directory.
pub(super) fn lock_sealing(directory: &Path) -> Result<Option<File>, StoreError> {
    let path = directory.join(SEAL_LOCK);
    let file = match files::open_lock(&path) {
        Ok(file) => file,
        // The directory is gone: nothing to guard.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("open", path)(error)),
    };
    file.lock().map_err(StoreError::io("lock", path))?;
    Ok(Some(file))
}
