//! Addresses, each kind a type of its own: nobody passes a bare integer.

use std::fmt;

/// An address in a process ("absolute virtual memory address").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsAddr(pub u64);

/// An address in the address space that a binary's own headers state (its "stated virtual memory address"): what its
/// symbol table and DWARF speak of, the same in every process that maps the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtOffset(pub u64);

impl fmt::Display for AbsAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl fmt::Display for VirtOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// Where code was: at an instruction (leaf of a stack), or about to return to an address (every caller).
///
/// A return address is the instruction *after* the call, which may belong to another line, another inlined function, or,
/// behind a call that never returns, to another function. So a lookup uses [`CodeAddress::for_lookup`], one byte less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeAddress<A> {
    /// The instruction that was executing.
    Instruction(A),
    /// The instruction that would run next after the callee returns.
    Return(A),
}

impl CodeAddress<VirtOffset> {
    /// The address to look up.
    pub fn for_lookup(self) -> VirtOffset {
        match self {
            CodeAddress::Instruction(at) => at,
            CodeAddress::Return(at) => VirtOffset(at.0.saturating_sub(1)),
        }
    }
}

impl CodeAddress<AbsAddr> {
    /// The address to look up.
    pub fn for_lookup(self) -> AbsAddr {
        match self {
            CodeAddress::Instruction(at) => at,
            CodeAddress::Return(at) => AbsAddr(at.0.saturating_sub(1)),
        }
    }
}
