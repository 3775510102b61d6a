//! What a walk starts from, and what it finds.

use longpole_model::{AbsAddr, CodeAddress};

use super::address_space::Place;

/// The registers an unwinder starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 on machines without one.
    pub lr: u64,
    /// rbx, in which few functions keep where the stack was before they aligned it; 0 on other machines, and where it is not known.
    pub bx: u64,
}

/// Most frames of one stack. The smallest frame takes 8 bytes, so no copy of 16 KiB holds more.
pub(super) const FRAMES_MAX: usize = 2048;

/// One entry of an unwound stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The address in the process.
    pub address: CodeAddress<AbsAddr>,
    /// Where the address to look up lies.
    pub place: Place,
    /// Where its part of the stack begins: at its stack pointer. It ends where that of the next frame begins.
    pub sp: u64,
    /// The frame pointer while its code runs, as far as it is known. A function without one has that of a caller.
    pub fp: u64,
}
