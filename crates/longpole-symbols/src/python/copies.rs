//! Pieces of another process's memory: those that are expected to be needed copied all at once, others one by one.

use std::collections::HashMap;
use std::ops::Range;

use super::Trouble;

/// Memory of a process that goes on meanwhile.
pub trait Memory {
    /// Copies each part that can be had whole to its place in `bytes`, one after the other, and says so in it. Fails where no
    /// memory of the process can be read at all, now or later.
    fn copy(&self, parts: &mut [Part], bytes: &mut [u8]) -> Result<(), Trouble>;
}

/// A part of another process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it lies there.
    pub address: u64,
    /// Where it is to lie here.
    pub place: Range<usize>,
    /// Whether it does.
    pub is_there: bool,
}

/// Most parts of one look, expected or not: a thousand frames, and what belongs to them.
pub(super) const PARTS_MAX: usize = 4096;

/// Most bytes of one part: the table of lines of a large module.
pub(super) const PART_BYTES_MAX: usize = 1 << 20;

/// What was copied in one look.
#[derive(Debug, Default)]
pub(super) struct Copies {
    parts: Vec<Part>,
    bytes: Vec<u8>,
    by_address: HashMap<u64, usize>,
}

impl Copies {
    /// Forgets everything: another look begins.
    pub(super) fn begin(&mut self) {
        self.parts.clear();
        self.bytes.clear();
        self.by_address.clear();
    }

    /// Says that these bytes are probably needed.
    pub(super) fn expect(&mut self, address: u64, bytes: u64) {
        if self.parts.len() < PARTS_MAX {
            self.add(address, bytes);
        }
    }

    fn add(&mut self, address: u64, bytes: u64) -> Option<usize> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= PART_BYTES_MAX)?;
        let place = self.bytes.len()..self.bytes.len() + bytes;
        self.bytes.resize(place.end, 0);
        let number = self.parts.len();
        self.parts.push(Part { address, place, is_there: false });
        // Where the same is expected twice, the copy that was made first counts.
        self.by_address.entry(address).or_insert(number);
        Some(number)
    }

    /// Copies what is expected.
    pub(super) fn fetch(&mut self, memory: &dyn Memory) -> Result<(), Trouble> {
        memory.copy(&mut self.parts, &mut self.bytes)
    }

    /// Bytes at an address: those of the copy, or copied now. Bytes that are not there are torn: a pointer led nowhere.
    pub(super) fn get(&mut self, memory: &dyn Memory, address: u64, bytes: u64) -> Result<&[u8], Trouble> {
        let length = usize::try_from(bytes).map_err(|_| Trouble::Torn)?;
        let copied = self.by_address.get(&address).map(|number| &self.parts[*number]);
        if let Some(part) = copied.filter(|part| part.is_there && part.place.len() >= length) {
            return Ok(&self.bytes[part.place.start..part.place.start + length]);
        }
        if address == 0 || self.parts.len() >= PARTS_MAX {
            return Err(Trouble::Torn);
        }
        let number = self.add(address, bytes).ok_or(Trouble::Torn)?;
        self.by_address.insert(address, number);
        memory.copy(&mut self.parts[number..], &mut self.bytes)?;
        let part = &self.parts[number];
        if part.is_there { Ok(&self.bytes[part.place.clone()]) } else { Err(Trouble::Torn) }
    }

    /// A pointer, or another word of 64 bits.
    pub(super) fn word(&mut self, memory: &dyn Memory, address: u64) -> Result<u64, Trouble> {
        self.get(memory, address, 8).map(|bytes| word(bytes, 0))
    }
}

/// The word at an offset of an object; 0 where the object is shorter.
pub(super) fn word(object: &[u8], offset: u64) -> u64 {
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    let word = at.checked_add(8).and_then(|end| object.get(at..end)).and_then(|word| word.try_into().ok());
    word.map(u64::from_le_bytes).unwrap_or(0)
}

/// The `int` at an offset of an object; 0 where the object is shorter.
pub(super) fn int(object: &[u8], offset: u64) -> i32 {
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    let word = at.checked_add(4).and_then(|end| object.get(at..end)).and_then(|word| word.try_into().ok());
    word.map(i32::from_le_bytes).unwrap_or(0)
}
