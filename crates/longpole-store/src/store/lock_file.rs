//! The lock files of a recording: whether its recorder lives, whether the machine has started anew since it began, and why it ended.
//!
//! ```text
//! lock         locked by the recorder    boot 5c3f…          the machine's start that it ran in
//!                                        ended write: full   only if it could not seal: why not
//!                                        cause full          and the innermost error of that
//! seal.lock    locked by who seals       empty
//! ```
//!
//! Nothing is synced while a recording is made: what was acknowledged survives the recorder's death, but not a power cut. So how much of a
//! log can be missing depends on whether the machine has restarted.

use std::error::Error;
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

/// What the line after it begins with, which has the innermost error.
const CAUSE: &str = "cause ";

/// The longest text of such a line.
const LINE_BYTES_MAX: usize = 500;

/// Why a recorder ended without sealing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndReason {
    /// The error and its causes: `write segments: No space left on device`.
    pub text: String,
    /// The innermost cause; `None` if the recorder is of an older version.
    pub cause: Option<String>,
}

impl EndReason {
    pub(crate) fn of(error: &dyn Error) -> EndReason {
        let mut texts = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            texts.push(error.to_string());
            cause = error.source();
        }
        EndReason { text: texts.join(": "), cause: texts.pop() }
    }

    /// Its lines. They stand in the lock file, which has a block already: that of a disk that is full takes them, too.
    pub(crate) fn lines(&self) -> String {
        let cause = self.cause.as_deref().map(|cause| line_of(CAUSE, cause));
        format!("{}{}", line_of(ENDED, &self.text), cause.unwrap_or_default())
    }
}

fn line_of(prefix: &str, text: &str) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
    format!("{prefix}{text}\n")
}

/// Why the recorder could not seal, where it said so.
pub(crate) fn why_ended(lock: &Path) -> Option<EndReason> {
    let text = files::read_to_string(lock).ok()?;
    let line = |prefix| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
    Some(EndReason { text: line(ENDED)?, cause: line(CAUSE) })
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
