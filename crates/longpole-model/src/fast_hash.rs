//! Maps for ids and names of a million spans: the standard map with a hash that costs a multiplication for each word.
//!
//! Half of the time to build a forest went into SipHash. Multiply and fold does not resist an attacker who sees the hashes; nobody sees
//! these, and each map has a seed of its own.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map with the fast hash.
pub type FastMap<K, V> = HashMap<K, V, FastState>;

/// An odd number without pattern; Knuth's of MMIX.
const MULTIPLIER: u64 = 0x5851_f42d_4c95_7f2d;

/// The seed of a map.
#[derive(Debug, Clone)]
pub struct FastState(u64);

impl Default for FastState {
    fn default() -> Self {
        FastState(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for FastState {
    type Hasher = FastHasher;

    fn build_hasher(&self) -> FastHasher {
        FastHasher(self.0)
    }
}

/// The hash so far.
#[derive(Debug)]
pub struct FastHasher(u64);

impl FastHasher {
    fn add(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.add(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
