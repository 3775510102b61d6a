//! Pieces of another process's memory.

use std::collections::HashMap;

use crate::memory::{Memory, int, word};

/// Most bytes of an object that are read at once.
const OBJECT_BYTES_MAX: usize = 1 << 20;

/// Fills `into` with the bytes at an address; whether all of them are there.
pub(super) fn fills(memory: &dyn Memory, address: u64, into: &mut [u8]) -> bool {
    memory.fill(address, into).unwrap_or(false)
}

/// The bytes of an object.
pub(super) fn object(memory: &dyn Memory, address: u64, bytes: u64) -> Option<Vec<u8>> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= OBJECT_BYTES_MAX)?;
    let mut object = vec![0; bytes];
    fills(memory, address, &mut object).then_some(object)
}

/// The word at an address.
pub(super) fn word_at(memory: &dyn Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    fills(memory, address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// The `int` at an offset of an object, as an offset or a count; `None` where it is negative.
pub(super) fn count(object: &[u8], offset: u64) -> Option<u64> {
    u64::try_from(int(object, offset)?).ok()
}

const PAGE_BYTES: u64 = 4096;

/// Most pages that the tables of a machine and their texts take: they have 100 of them.
const PAGES_MAX: usize = 2048;

/// Most bytes of a name in these tables.
const TEXT_BYTES_MAX: u64 = 256;

/// Memory that is read by pages and kept: the tables of a machine lead to thousands of short texts.
pub(super) struct Pages<'a> {
    memory: &'a dyn Memory,
    pages: HashMap<u64, Option<Vec<u8>>>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(memory: &'a dyn Memory) -> Self {
        Pages { memory, pages: HashMap::new() }
    }

    fn page(&mut self, start: u64) -> Option<&[u8]> {
        if self.pages.len() >= PAGES_MAX && !self.pages.contains_key(&start) {
            return None;
        }
        let memory = self.memory;
        self.pages.entry(start).or_insert_with(|| object(memory, start, PAGE_BYTES)).as_deref()
    }

    pub(super) fn object(&mut self, address: u64, bytes: u64) -> Option<Vec<u8>> {
        let end = address.checked_add(bytes)?;
        let mut object = Vec::new();
        let mut at = address;
        while at < end {
            let start = at - at % PAGE_BYTES;
            let page = self.page(start)?;
            let (from, to) = (usize::try_from(at - start).ok()?, usize::try_from((end - start).min(PAGE_BYTES)).ok()?);
            object.extend_from_slice(page.get(from..to)?);
            at = start.checked_add(PAGE_BYTES)?;
        }
        Some(object)
    }

    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        word(&self.object(address, 8)?, 0)
    }

    /// The text at an address, up to its zero.
    pub(super) fn text(&mut self, address: u64) -> Option<String> {
        let mut bytes = Vec::new();
        let end = address.checked_add(TEXT_BYTES_MAX)?;
        let mut at = address;
        while at < end {
            let start = at - at % PAGE_BYTES;
            let rest = self.page(start)?.get(usize::try_from(at - start).ok()?..)?;
            match rest.iter().position(|byte| *byte == 0) {
                Some(length) => {
                    bytes.extend_from_slice(&rest[..length]);
                    return String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= TEXT_BYTES_MAX);
                }
                None => bytes.extend_from_slice(rest),
            }
            at = start.checked_add(PAGE_BYTES)?;
        }
        None
    }
}
