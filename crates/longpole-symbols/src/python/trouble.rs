//! Why the frames of an interpreter could not be read.

use std::fmt;

use super::layout::Version;

/// Why nothing, or not all, could be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The process is gone.
    Gone,
    /// Its memory may not be read.
    Closed,
    /// A version whose objects are laid out in a way that is not known here.
    UnknownVersion(Version),
    /// The objects are not laid out as they are in this version: a build with other options.
    UnknownLayout(Version),
    /// What was read does not hold together: the interpreter changed it meanwhile.
    Torn,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Gone => f.write_str("the process had ended"),
            Trouble::Closed => f.write_str("the memory of the interpreter may not be read: another user's, or closed by kernel.yama.ptrace_scope, a container, or the program itself"),
            Trouble::UnknownVersion(version) => write!(f, "CPython {version} is not known to this longpole"),
            Trouble::UnknownLayout(version) => write!(f, "this CPython {version} was built with options that are not known"),
            Trouble::Torn => f.write_str("the interpreter changed its frames while they were read"),
        }
    }
}

impl std::error::Error for Trouble {}
