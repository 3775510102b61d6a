//! The functions that a CPython interpreter runs, out of its own memory.
//!
//! You bring the memory of a process ([`Memory`]), the address of its `_PyRuntime` and its version. You get, for each of its
//! threads, the frames it runs ([`Interpreter::read`]), and of each code object its name, its file and which instruction belongs
//! to which line ([`Codes`]). The process is not stopped and knows nothing of it.
//!
//! ```text
//! _PyRuntime ─ interpreters ─► PyInterpreterState ─ threads ─► PyThreadState ─► frame ─► frame ─► …  leaf to root
//!                                     │ next                        │ next        └─ code object: name, file, lines
//! ```
//!
//! It reads while the interpreter writes, so any pointer may lead anywhere, and any number may be any number. Every list has a
//! limit, every object is asked for its type, and what does not hold together is a [`Trouble`], not a stack. Because it reads
//! what it read last time all at once and only then follows the pointers that changed, a look takes two or three system calls.

mod code;
mod copies;
mod interpreter;
mod layout;
mod lines;

pub use code::{Code, CodeId, Codes};
pub use copies::{Memory, Part};
pub use interpreter::{FrameRead, Interpreter, ThreadRead};
pub use layout::Version;

use std::fmt;

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

/// Where a binary holds an interpreter, by the addresses the file states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonSymbols {
    /// `_PyRuntime`.
    pub runtime: u64,
    /// The code that runs Python functions: `_PyEval_EvalFrameDefault` and what compilers split off it.
    pub eval: Vec<std::ops::Range<u64>>,
    /// The version, where the binary says it by a symbol (3.11 and later).
    pub version: Option<Version>,
}

#[cfg(test)]
mod tests;
