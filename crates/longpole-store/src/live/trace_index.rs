//! `trace.idx`: whether a trace is in a segment, and where, without reading its tables.
//!
//! ```text
//! "LPOLEIDX"  version u32  traces u32  key 16 bytes               32 bytes
//! for each 128 entries: fingerprint of the first u64, where its block begins u32
//! blocks: for each entry the fingerprint less that of the entry before it, and its row in `traces`, both LEB128
//! CRC-32C of all before it u32                                    numbers are little-endian
//! ```
//!
//! A fingerprint is the upper 40 bits of the SipHash-1-3 of the trace id with the key, which is random: clients choose ids, and must not be able
//! to choose those of one fingerprint. Two ids may have the same one: who reads the row compares the ids. Version 1 had a hash without a key; such
//! an index is made anew from the table when it is read.

use std::hash::Hasher;

use longpole_model::TraceId;
use siphasher::sip::SipHasher13;

use crate::encoding::{Decoder, put_u64};
use crate::numbers::u32_of;

const MAGIC: [u8; 8] = *b"LPOLEIDX";
const VERSION: u32 = 2;
const KEYLESS_VERSION: u32 = 1;
const KEY_AT: usize = 16;
const HEADER_BYTES: usize = 32;
const BLOCK_ENTRIES: usize = 128;
const DIRECTORY_ENTRY_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// The index of one segment, in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TraceIndex {
    bytes: Vec<u8>,
    traces: usize,
}

/// What ids are hashed with.
type Key = [u8; HEADER_BYTES - KEY_AT];

fn fingerprint(trace_id: TraceId, key: &Key) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(&trace_id.bytes());
    hasher.finish() >> 24
}

/// A key that nobody knows. Where the system has no random numbers the index is as good, and a client could make it slow.
fn random_key() -> Key {
    let mut key = Key::default();
    let _ = getrandom_03::fill(&mut key);
    key
}

impl TraceIndex {
    /// The index of traces in the order of their rows.
    pub(super) fn of(traces: impl Iterator<Item = TraceId>) -> TraceIndex {
        let key = random_key();
        let mut entries: Vec<(u64, u32)> = traces.zip(0..).map(|(trace_id, row)| (fingerprint(trace_id, &key), row)).collect();
        entries.sort_unstable();
        let mut directory = Vec::new();
        let mut blocks = Vec::new();
        for block in entries.chunks(BLOCK_ENTRIES) {
            let first = block[0].0;
            directory.extend_from_slice(&first.to_le_bytes());
            directory.extend_from_slice(&u32_of(blocks.len()).to_le_bytes());
            let mut last = first;
            for (fingerprint, row) in block {
                put_u64(&mut blocks, fingerprint - last);
                put_u64(&mut blocks, u64::from(*row));
                last = *fingerprint;
            }
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + directory.len() + blocks.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&u32_of(entries.len()).to_le_bytes());
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(&directory);
        bytes.extend_from_slice(&blocks);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        TraceIndex { bytes, traces: entries.len() }
    }

    /// The bytes of its file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The index that these bytes are, or what is wrong with them; `None` for one whose hash has no key.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Option<TraceIndex>, &'static str> {
        if bytes.len() < KEY_AT + CHECKSUM_BYTES || bytes[..8] != MAGIC {
            return Err("it is no index of traces");
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if crc32c::crc32c(content).to_le_bytes() != checksum {
            return Err("its checksum does not match");
        }
        match u32_at(&bytes, 8) {
            Some(VERSION) if content.len() >= HEADER_BYTES => {}
            Some(KEYLESS_VERSION) => return Ok(None),
            Some(VERSION) => return Err("it is shorter than it says"),
            _ => return Err("a newer longpole wrote it"),
        }
        let traces = u32_at(&bytes, 12).unwrap_or(0) as usize;
        let blocks = traces.div_ceil(BLOCK_ENTRIES);
        if blocks.checked_mul(DIRECTORY_ENTRY_BYTES).is_none_or(|length| HEADER_BYTES + length > content.len()) {
            return Err("it is shorter than it says");
        }
        Ok(Some(TraceIndex { bytes, traces }))
    }

    /// Rows of `traces` that may be of this trace.
    pub(super) fn rows_of(&self, trace_id: TraceId) -> Vec<u32> {
        let Ok(key) = self.bytes[KEY_AT..HEADER_BYTES].try_into() else { return Vec::new() };
        let wanted = fingerprint(trace_id, &key);
        let blocks = self.traces.div_ceil(BLOCK_ENTRIES);
        // The last block whose first fingerprint is below, and those behind it that begin with it.
        let (mut low, mut high) = (0, blocks);
        while low < high {
            let middle = low.midpoint(high);
            if self.first_of(middle).is_some_and(|first| first < wanted) { low = middle + 1 } else { high = middle }
        }
        let mut rows = Vec::new();
        for block in low.saturating_sub(1)..blocks {
            if self.first_of(block).is_none_or(|first| first > wanted) {
                break;
            }
            self.rows_in(block, wanted, &mut rows);
        }
        rows
    }

    fn first_of(&self, block: usize) -> Option<u64> {
        let at = HEADER_BYTES + block * DIRECTORY_ENTRY_BYTES;
        Some(u64::from_le_bytes(self.bytes.get(at..at + 8)?.try_into().ok()?))
    }

    fn rows_in(&self, block: usize, wanted: u64, rows: &mut Vec<u32>) {
        let blocks_at = HEADER_BYTES + self.traces.div_ceil(BLOCK_ENTRIES) * DIRECTORY_ENTRY_BYTES;
        let begin = u32_at(&self.bytes, HEADER_BYTES + block * DIRECTORY_ENTRY_BYTES + 8).unwrap_or(u32::MAX) as usize;
        let content = self.bytes.get(blocks_at..self.bytes.len() - CHECKSUM_BYTES).and_then(|blocks| blocks.get(begin..));
        let (Some(content), Some(mut last)) = (content, self.first_of(block)) else { return };
        let mut decoder = Decoder::new(content);
        for _ in 0..BLOCK_ENTRIES.min(self.traces - block * BLOCK_ENTRIES) {
            let (Ok(step), Ok(row)) = (decoder.u64(), decoder.u32()) else { return };
            last = last.saturating_add(step);
            if last == wanted {
                rows.push(row);
            }
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u128) -> TraceId {
        TraceId::from_slice(&number.to_be_bytes()).unwrap()
    }

    #[test]
    fn each_trace_is_found_and_no_other() {
        let index = TraceIndex::of((1..=1000).map(|number| id(number * 7919)));
        let index = TraceIndex::parse(index.bytes().to_vec()).unwrap().unwrap();
        for number in 1..=1000_u32 {
            assert_eq!(index.rows_of(id(u128::from(number) * 7919)), [number - 1]);
        }
        assert!((1..=1000).all(|number| index.rows_of(id(number * 7919 + 1)).is_empty()));
        assert!(TraceIndex::of(std::iter::empty()).rows_of(id(1)).is_empty());
    }

    /// Ids come from elsewhere: all of one fingerprint are found, over the border of a block, too.
    #[test]
    fn equal_fingerprints_are_all_found() {
        let index = TraceIndex::of(std::iter::repeat_n(id(5), 300));
        assert_eq!(index.rows_of(id(5)).len(), 300);
    }

    #[test]
    fn ids_of_one_fingerprint_here_have_others_in_another_index() {
        let key = |number: u8| [number; HEADER_BYTES - KEY_AT];
        let same = (1..).map(id).find(|other| fingerprint(*other, &key(1)) >> 28 == fingerprint(id(0xabcd << 70), &key(1)) >> 28).unwrap();
        assert_ne!(fingerprint(same, &key(2)) >> 28, fingerprint(id(0xabcd << 70), &key(2)) >> 28);
        let keys: Vec<_> = (0..2).map(|_| TraceIndex::of([id(1)].into_iter()).bytes()[KEY_AT..HEADER_BYTES].to_vec()).collect();
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn an_index_of_the_first_version_is_to_be_made_anew() {
        let mut bytes: Vec<u8> = MAGIC.into_iter().chain(KEYLESS_VERSION.to_le_bytes()).chain([0; 4]).collect();
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        assert_eq!(TraceIndex::parse(bytes), Ok(None));
    }

    proptest! {
        #[test]
        fn damage_is_an_error(at in 0usize..1000, bit in 0u8..8) {
            let mut bytes = TraceIndex::of((1..100).map(id)).bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(TraceIndex::parse(bytes).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            bytes.splice(0..0, MAGIC.into_iter().chain(VERSION.to_le_bytes()));
            let checksum = crc32c::crc32c(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
            if let Ok(Some(index)) = TraceIndex::parse(bytes) {
                let _ = index.rows_of(id(77));
            }
        }
    }
}
