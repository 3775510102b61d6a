//! What can go wrong when keeping and fetching.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use longpole_model::TraceId;
use rustix::io::Errno;

use crate::error_kind::ErrorKind;
use crate::name::RecordingName;
use crate::wal::WalError;

/// An error of a foreign library, kept for its message only.
pub(crate) type Source = Box<dyn Error + Send + Sync>;

/// Why something could not be kept or fetched. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("{action} the catalog {}", path.display())]
    Catalog {
        /// What was tried.
        action: &'static str,
        /// The catalog.
        path: PathBuf,
        /// Why not.
        source: Source,
    },
    /// The write-ahead log could not be written or read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// Parquet or Arrow refused.
    #[error("{action} table {table} in {}", path.display())]
    Segment {
        /// What was tried.
        action: &'static str,
        /// Name of the table.
        table: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Source,
    },
    /// A file is not what longpole writes.
    #[error("make sense of {}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file takes more memory than its reader allows. It is not damaged.
    #[error("read {}: {reason}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How much it takes.
        reason: String,
    },
    /// Somebody else owns it, or can change it.
    #[error("trust {}: {reason}; {remedy}", path.display())]
    NotOurs {
        /// The file or folder.
        path: PathBuf,
        /// Whose it is, or who can write to it.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// A newer longpole wrote it.
    #[error(
        "read the {what} {}: it has format {found}, and this longpole reads up to {known}; a newer longpole can read it",
        path.display()
    )]
    Newer {
        /// What kind of thing.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version this program reads.
        known: u32,
    },
    /// A text is not the name of a recording.
    #[error("find the recording `{text}`: name one by its number (r7 or 7), last, or its tag")]
    Name {
        /// The text.
        text: String,
    },
    /// A text cannot be a tag.
    #[error(
        "use the tag `{text}`: a tag has at most 64 bytes of letters, digits and - _ . + @ :, and must not look like r7, 7, p1 or last"
    )]
    Tag {
        /// The text.
        text: String,
    },
    /// There is no such recording.
    #[error("find the recording {name} in {}", root.display())]
    NotFound {
        /// Its name.
        name: RecordingName,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// There is no recording yet that `last` could name.
    #[error("find the last recording: there is none yet in {}", root.display())]
    Empty {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// It is being recorded.
    #[error("{action} the recording {name}: it is still being recorded")]
    Living {
        /// What was tried.
        action: &'static str,
        /// Its name.
        name: RecordingName,
    },
    /// Another server keeps its spans there.
    #[error("use the store {}: another longpole serves it; stop that one, or name another store: --store DIR", root.display())]
    Served {
        /// The store.
        root: PathBuf,
    },
    /// Nobody waits for the answer of this query any more.
    #[error("answer the query: it was stopped")]
    Stopped,
    /// A search has too many conditions.
    #[error("search: {count} conditions are given, and longpole takes {most} at most")]
    TooManyConditions {
        /// How many it has.
        count: usize,
        /// How many it may have.
        most: usize,
    },
    /// Other queries have the memory for it.
    #[error("answer the query: other queries have the memory for it; try again")]
    MemoryShort,
    /// A query takes more memory than all of them may.
    #[error(
        "answer the query: it takes more than {} MiB of memory, and the queries of this server may take {} MiB together",
        needed >> 20,
        limit >> 20
    )]
    TooMuchMemory {
        /// Bytes that it takes at least.
        needed: u64,
        /// Bytes that all queries may take.
        limit: u64,
    },
    /// A trace takes more memory than all queries may.
    #[error(
        "read the trace {trace_id}: its {spans} spans take more than {} MiB of memory, and the queries of this server may take {} MiB together",
        needed >> 20,
        limit >> 20
    )]
    TraceTooLarge {
        /// The trace.
        trace_id: TraceId,
        /// Its spans, as often as they came.
        spans: u64,
        /// Bytes that they take at least.
        needed: u64,
        /// Bytes that all queries may take.
        limit: u64,
    },
    /// Its segments are not written yet.
    #[error("read the recording {name}: it is not sealed")]
    NotSealed {
        /// Its name.
        name: RecordingName,
    },
    /// It was taken away while longpole recorded.
    #[error("find the {what} {}: it was removed or replaced while longpole recorded", path.display())]
    Taken {
        /// What kind of thing.
        what: &'static str,
        /// Where it was.
        path: PathBuf,
    },
    /// The values contradict each other: a bug of the caller.
    #[error("write the recording: {reason}")]
    Inconsistent {
        /// What contradicts what.
        reason: String,
    },
}

impl StoreError {
    /// For `map_err` after a call into the file system.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.into();
        move |source| StoreError::Io { action, path, source }
    }

    /// The same, where it says that a query takes too much, with the trace that does.
    pub fn of_trace(self, trace_id: TraceId, spans: u64) -> StoreError {
        match self {
            StoreError::TooMuchMemory { needed, limit } => StoreError::TraceTooLarge { trace_id, spans, needed, limit },
            error => error,
        }
    }

    /// Whether a file cannot be read because of itself or its disk. A process without descriptors or memory fails for every file.
    pub(crate) fn is_of_file(&self) -> bool {
        let source = match self {
            StoreError::Io { source, .. } => Some(source),
            StoreError::Segment { source, .. } => source.downcast_ref::<io::Error>(),
            _ => None,
        };
        let of_process = |code| matches!(code, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR);
        source.is_some_and(|source| !Errno::from_io_error(source).is_some_and(of_process))
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Io { .. }
            | StoreError::Catalog { .. }
            | StoreError::Taken { .. }
            | StoreError::Served { .. }
            | StoreError::Stopped
            | StoreError::MemoryShort
            | StoreError::TooMuchMemory { .. }
            | StoreError::TraceTooLarge { .. }
            | StoreError::TooLarge { .. } => ErrorKind::Environment,
            StoreError::Wal(error) => error.kind(),
            StoreError::Segment { source, .. } if source.is::<io::Error>() => ErrorKind::Environment,
            StoreError::Segment { .. } | StoreError::Corrupt { .. } => ErrorKind::Corrupt,
            StoreError::NotOurs { .. } => ErrorKind::NotOurs,
            StoreError::Newer { .. } => ErrorKind::Incompatible,
            StoreError::Name { .. } | StoreError::Tag { .. } | StoreError::TooManyConditions { .. } => ErrorKind::Usage,
            StoreError::NotFound { .. } | StoreError::Empty { .. } => ErrorKind::NotFound,
            StoreError::Living { .. } | StoreError::NotSealed { .. } => ErrorKind::Living,
            StoreError::Inconsistent { .. } => ErrorKind::Bug,
        }
    }
}
