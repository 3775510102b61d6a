//! Pieces of another process's memory: those that are expected to be needed copied all at once, others one by one.

use std::collections::HashMap;
use std::ops::Range;

use super::read_error::ReadError;
use crate::memory::{self, Memory, MemoryPart};

/// Most parts of one look, expected or not: a thousand frames, and what belongs to them.
pub(super) const PARTS_MAX: usize = 4096;

/// Most bytes of one part: the table of lines of a large module.
pub(super) const PART_BYTES_MAX: usize = 1 << 20;

/// Most bytes of all parts of one look: usual ones have 20 to 200 KB. A thousand frames can have a code object each, with a table of a megabyte
/// that takes no memory there, because all of it is the kernel's page of zeros. What is beyond is torn, and read by the looks that follow.
pub(super) const LOOK_BYTES_MAX: usize = 16 << 20;

/// Bytes whose memory is kept from one look to the next.
const BYTES_AT_HAND: usize = 256 << 10;

/// What was copied in one look.
#[derive(Debug, Default)]
pub(super) struct Copies {
    parts: Vec<MemoryPart>,
    bytes: Vec<u8>,
    by_address: HashMap<u64, usize>,
    /// Parts that hold several objects.
    blocks: Vec<usize>,
    /// Parts in front of this one need not be copied any more.
    fetched: usize,
}

/// Memory is there or not in pages of 4,096 bytes, or of a multiple.
const PAGE_BYTES: u64 = 4096;

/// Bytes below an object that are copied with it where others are expected there. Each cache line of them is taken from the CPU that wrote
/// it, so a page would cost more than the calls that it saves.
const BELOW_BYTES: u64 = 1024;

impl Copies {
    /// Forgets everything: another look begins.
    pub(super) fn begin(&mut self) {
        self.parts.clear();
        self.bytes.clear();
        self.by_address.clear();
        self.blocks.clear();
        self.fetched = 0;
    }

    /// Gives back the memory of a look that copied more than usual.
    pub(super) fn end(&mut self) {
        if self.bytes.capacity() > BYTES_AT_HAND {
            self.begin();
            self.bytes.shrink_to(BYTES_AT_HAND);
        }
    }

    /// Says that these bytes are probably needed.
    pub(super) fn expect(&mut self, address: u64, bytes: u64) {
        if self.parts.len() < PARTS_MAX {
            self.add(address, bytes);
        }
    }

    fn add(&mut self, address: u64, bytes: u64) -> Option<usize> {
        let number = self.push(address, bytes)?;
        // Where the same is expected twice, the copy that was made first counts.
        self.by_address.entry(address).or_insert(number);
        Some(number)
    }

    fn push(&mut self, address: u64, bytes: u64) -> Option<usize> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= PART_BYTES_MAX)?;
        let place = self.bytes.len()..self.bytes.len().checked_add(bytes).filter(|end| *end <= LOOK_BYTES_MAX)?;
        self.bytes.resize(place.end, 0);
        let number = self.parts.len();
        self.parts.push(MemoryPart { address, place, is_there: false });
        Some(number)
    }

    /// Copies what is expected and was not copied.
    pub(super) fn fetch(&mut self, memory: &dyn Memory) -> Result<(), ReadError> {
        let first = std::mem::replace(&mut self.fetched, self.parts.len());
        Ok(memory.copy(self.parts.get_mut(first..).unwrap_or_default(), &mut self.bytes)?)
    }

    /// Where bytes lie that have been copied.
    fn find(&self, address: u64, length: usize) -> Option<Range<usize>> {
        let within = |number: &usize| {
            let part = self.parts.get(*number).filter(|part| part.is_there)?;
            let start = part.place.start.checked_add(usize::try_from(address.checked_sub(part.address)?).ok()?)?;
            let end = start.checked_add(length)?;
            (end <= part.place.end).then_some(start..end)
        };
        self.by_address.get(&address).and_then(within).or_else(|| self.blocks.iter().rev().find_map(within))
    }

    /// Whether these bytes have been copied.
    pub(super) fn has(&self, address: u64, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|length| self.find(address, length).is_some())
    }

    /// Copies an object that was not, and what lies below it in its page.
    pub(super) fn fetch_with_those_below(&mut self, memory: &dyn Memory, address: u64, bytes: u64) -> Result<(), ReadError> {
        let below = (address % PAGE_BYTES).min(BELOW_BYTES);
        if self.has(address, bytes) || self.parts.len() >= PARTS_MAX {
            return Ok(());
        }
        let block = self.push(address - below, bytes.saturating_add(below));
        self.blocks.extend(block);
        self.fetch(memory)
    }

    /// Bytes at an address: those of the copy, or copied now. Bytes that are not there are torn: a pointer led nowhere.
    pub(super) fn get(&mut self, memory: &dyn Memory, address: u64, bytes: u64) -> Result<&[u8], ReadError> {
        let length = usize::try_from(bytes).map_err(|_| ReadError::Torn)?;
        if let Some(place) = self.find(address, length) {
            return Ok(&self.bytes[place]);
        }
        if address == 0 || self.parts.len() >= PARTS_MAX {
            return Err(ReadError::Torn);
        }
        let number = self.add(address, bytes).ok_or(ReadError::Torn)?;
        self.by_address.insert(address, number);
        self.fetched = number;
        self.fetch(memory)?;
        let part = &self.parts[number];
        if part.is_there { Ok(&self.bytes[part.place.clone()]) } else { Err(ReadError::Torn) }
    }

    /// A pointer, or another word of 64 bits.
    pub(super) fn word(&mut self, memory: &dyn Memory, address: u64) -> Result<u64, ReadError> {
        self.get(memory, address, 8).map(|bytes| word(bytes, 0))
    }
}

/// The word at an offset of an object; 0 where the object is shorter.
pub(super) fn word(object: &[u8], offset: u64) -> u64 {
    memory::word(object, offset).unwrap_or(0)
}

/// The `int` at an offset of an object; 0 where the object is shorter.
pub(super) fn int(object: &[u8], offset: u64) -> i32 {
    memory::int(object, offset).unwrap_or(0)
}
