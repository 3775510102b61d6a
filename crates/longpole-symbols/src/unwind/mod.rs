//! Registers and stack bytes to a stack of addresses.
//!
//! You bring the binaries that a process has mapped ([`Binary`], read from any `Read + Seek`), the registers of a thread at
//! one instant and a copy of the bytes above its stack pointer. You get the addresses it would return to, leaf first, each
//! with the binary it lies in, and how the walk ended: at the root, or cut short and why ([`StackEnd`]).
//!
//! The walk itself is framehop's: call frame information of `.eh_frame` where a binary has it, frame pointers where not.
//! No file is opened here and no memory of another process is read.

mod address_space;
mod binary;
mod frame;
mod realigned;
mod saved_stack_pointer;
mod sleeping;
mod stack_end;
mod unwind_budget;
mod walk;
mod x86_call;
mod x86_prologue;

pub use address_space::{AddressSpace, Code, Place};
pub use binary::{Binary, BinaryError};
pub use frame::{Frame, Registers};
pub use stack_end::StackEnd;
pub use unwind_budget::UnwindBudget;
pub use walk::StackWalker;

pub use crate::probe::otel_thread::ThreadVariable;

#[cfg(test)]
mod tests;
