//! Which methods are inlined at a place of compiled code.
//!
//! Compiled code has a list of places, each with where its scope is written: the method by its number, the bytecode, and the scope that it
//! is inlined into. Places are those where the machine may stop the code: calls and loops. The others belong to the next one.
//!
//! ```text
//! PcDesc  code +0x1c0, scope at 17 ──► sender: 5, method: 2, bytecode: 11 + 1, …
//!                                                └──► sender: 0, method: 1, bytecode: 3 + 1, …
//! ```
//!
//! Numbers are compressed: a byte below 192 is the number; higher ones add 6 bits each, for at most five bytes. From Java 20 on, all bytes
//! are one more than they stand for.

use super::code_cache::Blob;
use super::layout::{JvmLayout, Metadata, Scopes};
use super::process_bytes::{count, object, word_at};
use crate::memory::{Memory, int, word};

/// Bytes of a `PcDesc`: the place, its scope, its objects, flags.
const PLACE_BYTES: usize = 16;

/// Most bytes of the places, and of the scopes of one piece of code.
const BYTES_MAX: u64 = 1 << 20;

/// Most inlined calls inside each other.
const DEPTH_MAX: usize = 64;

/// The scopes of a piece of code.
#[derive(Debug, Clone, Default)]
pub(super) struct Inlined {
    places: Vec<u8>,
    scopes: Vec<u8>,
    metadata: u64,
    has_zeroes: bool,
}

impl Inlined {
    pub(super) fn read(memory: &dyn Memory, layout: &JvmLayout, blob: &Blob) -> Option<Inlined> {
        let header = &blob.header;
        let start = blob.range.start;
        let (places, scopes, metadata) = match layout.scopes? {
            Scopes::Inside { metadata, scopes, places, places_end } => {
                let at = |offset| start.checked_add(count(header, offset)?);
                let places = at(places)?..at(places_end)?;
                (places.clone(), word(header, scopes)?..places.start, at(metadata)?)
            }
            Scopes::Outside { data, data_bytes, places, scopes, metadata } => {
                let data = word(header, data)?;
                let at = |offset| data.checked_add(count(header, offset)?);
                let metadata = match metadata {
                    Metadata::Inside { offset } => start.checked_add(count(header, offset)?)?,
                    Metadata::Outside { data, relocations } => {
                        word(header, data)?.checked_add(count(header, relocations)?.checked_next_multiple_of(8)?)?
                    }
                };
                (at(places)?..at(scopes)?, at(scopes)?..at(data_bytes)?, metadata)
            }
        };
        let bytes = |range: std::ops::Range<u64>| {
            let bytes = range.end.checked_sub(range.start).filter(|bytes| *bytes <= BYTES_MAX)?;
            object(memory, range.start, bytes)
        };
        Some(Inlined { places: bytes(places)?, scopes: bytes(scopes)?, metadata, has_zeroes: layout.has_zeroes })
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.places.len() + self.scopes.len()
    }

    /// The methods at an offset of the code, and their bytecodes, innermost first.
    pub(super) fn at(&self, memory: &dyn Memory, offset: u64) -> Vec<(u64, i32)> {
        let mut found = Vec::new();
        let Some(mut scope) = self.scope_at(offset) else { return found };
        while scope > 0 && found.len() < DEPTH_MAX {
            let Some((sender, method, bytecode)) = self.scope(memory, scope) else { return Vec::new() };
            found.push((method, bytecode));
            // The sender was written first, except where scopes share one: it lies in front all the same.
            if sender >= scope {
                return Vec::new();
            }
            scope = sender;
        }
        found
    }

    /// Where the scope of the next place is written.
    fn scope_at(&self, offset: u64) -> Option<usize> {
        let count = self.places.len() / PLACE_BYTES;
        let place = |number: usize| int(&self.places, (number * PLACE_BYTES) as u64).unwrap_or(i32::MAX);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if i64::from(place(middle)) < i64::try_from(offset).ok()? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The last one stands for the end.
        if low >= count {
            return None;
        }
        usize::try_from(int(&self.places, (low * PLACE_BYTES + 4) as u64)?).ok().filter(|scope| *scope > 0)
    }

    fn scope(&self, memory: &dyn Memory, at: usize) -> Option<(usize, u64, i32)> {
        let mut numbers = Numbers::new(&self.scopes, at, self.has_zeroes);
        let sender = usize::try_from(numbers.number()?).ok()?;
        let method = numbers.number()?.checked_sub(1)?;
        // Counted from −1, which stands for the beginning of the method.
        let bytecode = i32::try_from(numbers.number()?).ok()? - 1;
        let method = word_at(memory, self.metadata.checked_add(u64::from(method).checked_mul(8)?)?)?;
        Some((sender, method, bytecode))
    }
}

/// Reads compressed numbers.
pub(super) struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
    has_zeroes: bool,
}

/// Numbers of one byte are smaller than this.
const ONE_BYTE_END: u32 = 192;

/// Most bytes of a number.
const NUMBER_BYTES_MAX: u32 = 5;

impl<'a> Numbers<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, has_zeroes: bool) -> Self {
        Numbers { bytes, at, has_zeroes }
    }

    /// Where the next number begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let excluded = u32::from(!self.has_zeroes);
        let mut sum = 0u32;
        for place in 0..NUMBER_BYTES_MAX {
            let byte = u32::from(self.byte()?);
            sum = sum.wrapping_add(byte.checked_sub(excluded)?.wrapping_shl(6 * place));
            if byte < ONE_BYTE_END {
                break;
            }
        }
        Some(sum)
    }

    /// A number whose lowest bit is its sign.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }
}
