//! The functions of JavaScript that V8 (Node) runs, out of its own memory.
//!
//! You bring the memory of a process ([`Memory`](crate::memory::Memory)), the [`HeapLayout`] that its binary states, and the functions of the frames of a
//! sample ([`HeapLayout::function_of_frame`]). You get the name, file and line of each ([`Functions::look_up`]). The process needs no option and
//! is not stopped.
//!
//! ```text
//! frame ─► JSFunction ─► SharedFunctionInfo ─┬─► name, or ScopeInfo ─► name, where the function begins
//!                                            └─► Script ─► file, source ─► lines
//! ```
//!
//! It reads while the program runs and its collector moves objects, so any pointer may lead anywhere. An object that was moved a moment ago is
//! found by the address that V8 left in its old place. Each object must have its type, each list and text has a limit, and what does not hold
//! together has no name. A function that is known is not followed again: its own words are copied, and must be the same.

mod functions;
mod heap;
mod layout;
mod lines;
mod read_function;
mod text;

pub use functions::{Functions, LookUp, Missing};
pub use layout::{FrameFunction, HeapLayout};
pub use read_function::ScriptFunction;

#[cfg(test)]
mod tests;
