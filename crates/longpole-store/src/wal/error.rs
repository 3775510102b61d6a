//! Why the log could not be written or read.

use std::io;
use std::path::PathBuf;

use super::frame::FRAME_BYTES_MAX;
use crate::error_kind::ErrorKind;
use crate::format::WAL_VERSION;

/// Why the log could not be written or read. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The file system refused.
    #[error("{action} the write-ahead log {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The log.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An earlier append failed half-way and could not be undone; nothing more can be appended.
    #[error("append to the write-ahead log {}: an earlier error left a broken frame at its end", path.display())]
    Broken {
        /// The log.
        path: PathBuf,
    },
    /// An earlier sync failed; nothing more can be acknowledged.
    #[error("append to the write-ahead log {}: an earlier sync failed, so the disk may lack a part of it", path.display())]
    NotSynced {
        /// The log.
        path: PathBuf,
    },
    /// The payload is larger than a frame can be.
    #[error("append {bytes} bytes to the write-ahead log {}: a frame holds {FRAME_BYTES_MAX} at most", path.display())]
    TooLarge {
        /// The log.
        path: PathBuf,
        /// Length of the payload.
        bytes: usize,
    },
    /// What is in it is being sealed.
    #[error("append to the write-ahead log {}: the recording is over", path.display())]
    Closed {
        /// The log.
        path: PathBuf,
    },
    /// The recording may not grow any more.
    #[error("append to the write-ahead log {}: the recording has reached its limit of {limit} bytes (--max-recording-bytes)", path.display())]
    Full {
        /// The log.
        path: PathBuf,
        /// How long it may become.
        limit: u64,
    },
    /// The profiles in memory have no place for the series of a request. They become a segment soon.
    #[error("append to the write-ahead log {}: too many series of profiles came since the last segment; there is room again soon", path.display())]
    SeriesFull {
        /// The log.
        path: PathBuf,
    },
    /// The file does not begin like a log.
    #[error("read {}: it is not a write-ahead log of longpole", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// A newer longpole wrote it.
    #[error(
        "read the write-ahead log {}: it has format {found}, and this longpole reads up to {WAL_VERSION}; a newer longpole can read it",
        path.display()
    )]
    Newer {
        /// The log.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl WalError {
    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            WalError::Io { .. }
            | WalError::Broken { .. }
            | WalError::NotSynced { .. }
            | WalError::Closed { .. }
            | WalError::Full { .. }
            | WalError::SeriesFull { .. } => ErrorKind::Environment,
            WalError::TooLarge { .. } => ErrorKind::Usage,
            WalError::NotALog { .. } => ErrorKind::Corrupt,
            WalError::Newer { .. } => ErrorKind::Incompatible,
        }
    }
}
