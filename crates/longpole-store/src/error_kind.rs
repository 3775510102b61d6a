//! Kinds of errors, whatever failed: what a caller decides on.

/// What a caller decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The name was misspelled.
    Usage,
    /// There is no such recording.
    NotFound,
    /// It is being recorded.
    Living,
    /// The file system: permission, space, a missing file. Or memory.
    Environment,
    /// It belongs to another user, or others can change it.
    NotOurs,
    /// A newer longpole wrote it.
    Incompatible,
    /// Damaged data.
    Corrupt,
    /// A bug of ours.
    Bug,
}
