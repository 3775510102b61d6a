//! Why a file is no recording.

use std::io;
use std::path::PathBuf;

use longpole_store::StoreError;
use longpole_wire::FileError;
use longpole_wire::file::FormatError;

use super::profile::NoTime;

/// Why a file is no recording. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is none of the formats that are read.
    #[error("read {}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The format that it seems to have, and the formats that longpole reads.
        source: FormatError,
    },
    /// Nothing of it could be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not, and where.
        source: FileError,
    },
    /// It names code by files of the machine that wrote it.
    #[error("read {}: it is a file of perf, which names code by files of its own machine. Import it there, and send the recording: longpole import FILE, longpole push", path.display())]
    OfAnotherMachine {
        /// The file.
        path: PathBuf,
    },
    /// It is a profile of something other than time.
    #[error("show {}", path.display())]
    NoTime {
        /// The file.
        path: PathBuf,
        /// What it is of.
        source: NoTime,
    },
    /// It does not go together with the other files.
    #[error("join {}: {why}", path.display())]
    NotTogether {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// It is a recording that cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
