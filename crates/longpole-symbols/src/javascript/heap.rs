//! Objects of V8's heap, in the memory of a process.

use super::layout::{HeapLayout, is_pointer};
use crate::memory::{self, Memory, Unreadable};
use longpole_model::fast_hash::FastMap;

/// Most objects and texts that are read for one function: a usual one takes 15.
const READS_MAX: u32 = 256;

/// Most maps whose types are kept: there are some dozen that count.
const MAPS_MAX: usize = 1 << 12;

/// Bytes of the words of an object that are read at once: the longest that count are those of a script.
pub(super) const OBJECT_BYTES: usize = 64;

/// Types of objects by their map.
pub(super) type Types = FastMap<u64, u16>;

/// The heap of a process, while one function is read.
pub(super) struct Heap<'a> {
    memory: &'a dyn Memory,
    pub(super) layout: &'a HeapLayout,
    types: &'a mut Types,
    reads: u32,
}

/// The first words of an object.
pub(super) struct Object {
    pub(super) kind: u16,
    words: [u8; OBJECT_BYTES],
}

impl Object {
    /// The word at an offset; 0 behind its first words.
    pub(super) fn word(&self, offset: u64) -> u64 {
        word(&self.words, offset)
    }

    pub(super) fn int(&self, offset: u64) -> i32 {
        memory::int(&self.words, offset).unwrap_or(0)
    }
}

/// The word at an offset of these bytes; 0 behind them.
pub(super) fn word(bytes: &[u8], offset: u64) -> u64 {
    memory::word(bytes, offset).unwrap_or(0)
}

impl<'a> Heap<'a> {
    pub(super) fn new(memory: &'a dyn Memory, layout: &'a HeapLayout, types: &'a mut Types) -> Heap<'a> {
        Heap { memory, layout, types, reads: 0 }
    }

    /// Copies bytes from an address; `None` if they are not there.
    pub(super) fn copy(&mut self, address: u64, into: &mut [u8]) -> Result<Option<()>, Unreadable> {
        self.reads += 1;
        if self.reads > READS_MAX {
            return Ok(None);
        }
        Ok(self.memory.fill(address, into)?.then_some(()))
    }

    /// Copies bytes of an object, from an offset on.
    pub(super) fn copy_of(&mut self, pointer: u64, offset: u64, into: &mut [u8]) -> Result<Option<()>, Unreadable> {
        match address(pointer).and_then(|object| object.checked_add(offset)) {
            Some(address) => self.copy(address, into),
            None => Ok(None),
        }
    }

    /// The object that a word points to; `None` if there is none. If the collector has moved it, its new place follows from the old one for as
    /// long as nothing else lies there.
    pub(super) fn object(&mut self, pointer: u64) -> Result<Option<Object>, Unreadable> {
        let Some(words) = self.words(pointer)? else { return Ok(None) };
        let words = match moved_to(word(&words, 0)) {
            Some(pointer) => self.words(pointer)?,
            None => Some(words),
        };
        let Some(words) = words else { return Ok(None) };
        Ok(self.kind(word(&words, 0))?.map(|kind| Object { kind, words }))
    }

    /// The first words of the object that a word points to.
    fn words(&mut self, pointer: u64) -> Result<Option<[u8; OBJECT_BYTES]>, Unreadable> {
        let mut words = [0; OBJECT_BYTES];
        let Some(at) = address(pointer) else { return Ok(None) };
        // The last object of a heap may be shorter than that, and nothing behind it.
        if self.copy(at, &mut words)?.is_none() {
            let there = usize::try_from(PAGE_BYTES - at % PAGE_BYTES).unwrap_or(OBJECT_BYTES);
            if there >= OBJECT_BYTES || self.copy(at, &mut words[..there])?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(words))
    }

    /// The type of the objects of a map.
    fn kind(&mut self, map: u64) -> Result<Option<u16>, Unreadable> {
        if let Some(kind) = self.types.get(&map) {
            return Ok(Some(*kind));
        }
        let mut kind = [0; 2];
        if self.copy_of(map, self.layout.map_type, &mut kind)?.is_none() {
            return Ok(None);
        }
        if self.types.len() >= MAPS_MAX {
            self.types.clear();
        }
        let kind = u16::from_le_bytes(kind);
        self.types.insert(map, kind);
        Ok(Some(kind))
    }
}

/// Memory is there or not in pages of this size, or of a multiple.
const PAGE_BYTES: u64 = 4096;

/// Where an object is now, if the collector has moved it: V8 leaves the new address instead of its map, without the bits of a pointer.
fn moved_to(map: u64) -> Option<u64> {
    (map & 3 == 0 && is_pointer(map | 1)).then_some(map | 1)
}

/// Where the object lies that a word points to.
pub(super) fn address(pointer: u64) -> Option<u64> {
    is_pointer(pointer).then(|| pointer - 1)
}
