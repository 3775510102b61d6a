//! Pieces of another process's memory.

use std::fmt;
use std::ops::Range;

/// Memory of a process that goes on meanwhile.
pub trait Memory {
    /// Copies each part that is readable as a whole to its place in `bytes`, one after the other, and says so in it.
    ///
    /// # Errors
    ///
    /// If no memory of the process can be read at all, now or later.
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable>;

    /// Fills `into` with the bytes at an address; whether all of them are there.
    ///
    /// # Errors
    ///
    /// As [`copy`](Memory::copy).
    fn fill(&self, address: u64, into: &mut [u8]) -> Result<bool, Unreadable> {
        let mut part = [MemoryPart { address, place: 0..into.len(), is_there: false }];
        self.copy(&mut part, into)?;
        Ok(part[0].is_there)
    }
}

/// A part of another process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// Where it lies there.
    pub address: u64,
    /// Where it is to lie here.
    pub place: Range<usize>,
    /// Whether it does.
    pub is_there: bool,
}

/// Why no memory of a process can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// The process is gone.
    Gone,
    /// longpole may not read it.
    Closed,
}

/// Why longpole may not read the memory of a process.
pub const CLOSED_BY: &str = "another user's, or protected by kernel.yama.ptrace_scope, a container, or the program itself";

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Gone => f.write_str("the process had ended"),
            Unreadable::Closed => write!(f, "longpole may not read the memory of the process: {CLOSED_BY}"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Copies parts out of bytes that are at hand, such as those of a made-up process; `find` has the bytes at an address, of a length.
pub fn copy_found<'a>(parts: &mut [MemoryPart], bytes: &mut [u8], find: impl Fn(u64, usize) -> Option<&'a [u8]>) {
    for part in parts {
        if let Some(found) = find(part.address, part.place.len()) {
            bytes[part.place.clone()].copy_from_slice(found);
            part.is_there = true;
        }
    }
}

fn array<const N: usize>(object: &[u8], offset: u64) -> Option<[u8; N]> {
    Some(*object.get(usize::try_from(offset).ok()?..)?.first_chunk()?)
}

/// The word at an offset of an object.
pub(crate) fn word(object: &[u8], offset: u64) -> Option<u64> {
    array(object, offset).map(u64::from_le_bytes)
}

/// The `int` at an offset of an object.
pub(crate) fn int(object: &[u8], offset: u64) -> Option<i32> {
    array(object, offset).map(i32::from_le_bytes)
}

/// The number of 16 bits at an offset of an object.
pub(crate) fn half(object: &[u8], offset: u64) -> Option<u16> {
    array(object, offset).map(u16::from_le_bytes)
}
