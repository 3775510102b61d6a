//! The functions that a CPython interpreter runs, out of its own memory.
//!
//! You bring the memory of a process ([`Memory`](crate::memory::Memory)), the address of its `_PyRuntime` and its version. You get, for each of its
//! threads, the frames it runs ([`Interpreter::read`]), and of each code object its name, its file and which instruction belongs
//! to which line ([`Codes`]). The process is not stopped and knows nothing of it.
//!
//! ```text
//! _PyRuntime ─ interpreters ─► PyInterpreterState ─ threads ─► PyThreadState ─► frame ─► frame ─► …  leaf to root
//!                                     │ next                        │ next        └─ code object: name, file, lines
//! ```
//!
//! A coroutine that waits is on no thread's stack: [`EventLoops`] finds the one for which a loop of `asyncio` waits.
//!
//! It reads while the interpreter writes, so any pointer may lead anywhere, and any number may be any number. Every list has a
//! limit, every object must have its type, and what does not hold together is a [`ReadError`], not a stack. Because it reads
//! what it read last time all at once and only then follows the pointers that changed, a look takes two or three system calls.

mod code;
mod copies;
mod coroutines;
mod interpreter;
mod layout;
mod lines;
mod objects;
mod read_error;

pub use code::{Code, CodeId, Codes};
pub use coroutines::{Awaited, AwaitedFrame, EventLoops};
pub use interpreter::{FrameRead, Interpreter, ThreadRead};
pub use layout::Version;
pub use read_error::ReadError;

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
