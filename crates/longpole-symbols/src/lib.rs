//! Addresses to frames, registers and stack bytes to stacks.
//!
//! You bring a [`Recording`](longpole_model::Recording) whose locations are addresses, and [`Files`] to read binaries
//! from; [`Symbolizer::fill`] gives every location its frames: function, file and line, with the calls that the compiler
//! inlined. Or you bring the registers and the stack bytes of a thread; [`unwind`] makes a stack of addresses of them.
//!
//! It reads ELF symbol tables and DWARF, also where they were split off or compressed. It does not fetch anything from a
//! network, and never fails: where an address has no name, its frame says where it is and, as a [`Reason`], why. The kernel's own
//! functions are named by the list that a running kernel makes of them ([`kernel`]).
//!
//! It is fast because it looks all addresses of a binary up together: the parts of a file that hold none of them are not
//! read, the others once. It is safe with anyone's binaries because every loop is bounded by the size of what it reads,
//! no tree is walked by recursion, and every limit has a name in `limits.rs`.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]
// Tests cast what they chose themselves.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod demangle;
mod dwarf;
mod eh_frame;
pub mod files;
pub mod go;
pub mod hang_timeout;
pub mod hotspot;
pub mod javascript;
pub mod jitdump;
mod kept;
pub mod kernel;
mod limits;
mod load;
pub mod made_code;
#[cfg(test)]
mod made_up;
pub mod memory;
mod object;
pub mod perf_map;
mod probe;
pub mod python;
mod reason;
mod symbolizer;
pub mod unwind;

pub use files::{FileId, Files, HostFiles, OpenFirst, ReadSeek};
pub use reason::Reason;
pub use symbolizer::{Resolved, Symbolizer};
