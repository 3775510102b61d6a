//! Why the frames of an interpreter could not be read.

use std::fmt;

use super::layout::Version;

/// Why nothing, or not all, could be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trouble {
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

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Gone => f.write_str("the process had ended"),
            Trouble::Closed => f.write_str(
                "longpole may not read the interpreter's memory: another user's, or protected by kernel.yama.ptrace_scope, a container, \
                 or the program itself",
            ),
            Trouble::UnknownVersion(version) => write!(f, "this longpole does not support CPython {version}"),
            Trouble::UnknownLayout(version) => {
                write!(f, "longpole does not support the options that this CPython {version} was built with")
            }
            Trouble::Torn => f.write_str("the interpreter changed its frames while they were read"),
        }
    }
}

impl std::error::Error for Trouble {}
