//! Maps by addresses and numbers of processes, threads and locations, which are small and come from no adversary.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes addresses and numbers, which come by the thousand a second and from no adversary.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // An odd number with its bits well spread (the fraction of the golden ratio).
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
