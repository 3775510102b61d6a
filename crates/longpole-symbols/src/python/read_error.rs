//! Why the frames of an interpreter could not be read.

use std::fmt;

use super::layout::Version;
use crate::memory::{CLOSED_BY, Unreadable};

/// Why nothing, or not all, could be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReadError {
    /// The process is gone.
    Gone,
    /// longpole may not read its memory.
    Closed,
    /// A version whose object layout longpole does not have.
    UnknownVersion(Version),
    /// The objects do not have the layout of this version: a build with other options.
    UnknownLayout(Version),
    /// The values do not fit together: the interpreter changed them during the read.
    Torn,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Gone => Unreadable::Gone.fmt(f),
            ReadError::Closed => write!(f, "longpole may not read the interpreter's memory: {CLOSED_BY}"),
            ReadError::UnknownVersion(version) => write!(f, "this longpole does not support CPython {version}"),
            ReadError::UnknownLayout(version) => {
                write!(f, "longpole does not support the options that this CPython {version} was built with")
            }
            ReadError::Torn => f.write_str("the interpreter changed its frames while they were read"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<Unreadable> for ReadError {
    fn from(why: Unreadable) -> ReadError {
        match why {
            Unreadable::Gone => ReadError::Gone,
            Unreadable::Closed => ReadError::Closed,
        }
    }
}
