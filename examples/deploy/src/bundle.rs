//! Bundling web assets: a hand-written compressor, and a pipeline of tasks around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::Instrument;

/// Bytes to compress between two awaits: one to two milliseconds of work.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes of assets; after the last one the bundler starts over.
const ASSET_BYTES: usize = 2 << 20;

/// Shortest repetition worth a reference: a reference takes five bytes.
const SHORTEST_MATCH: usize = 6;

/// Longest repetition: its length takes one byte.
const LONGEST_MATCH: usize = SHORTEST_MATCH + 255;

/// Number of earlier places with the same start to try.
const CANDIDATES: usize = 64;

const HASH_BITS: u32 = 15;
const NOWHERE: u32 = u32::MAX;

/// The result.
#[derive(Debug, Default)]
pub struct Bundle {
    /// Bytes of assets read.
    pub input_bytes: u64,
    /// Bytes after compression.
    pub output_bytes: u64,
    /// Adler-32 of the compressed chunks, so that the optimiser cannot remove the work.
    pub checksum: u32,
}

/// Bundles assets for a time. `block_in_place` tells the runtime that a chunk is work, not waiting: the runtime moves the thread's
/// other tasks to another thread, and this task continues there after it has let them run. So it moves with every chunk.
pub async fn bundle(time: Duration) -> Bundle {
    let start = Instant::now();
    let (sender, mut chunks) = mpsc::channel::<Vec<u8>>(1);
    let reader = tokio::spawn(read_assets(sender).in_current_span());
    let mut bundle = Bundle { checksum: 1, ..Bundle::default() };
    let mut output = Vec::with_capacity(2 * CHUNK_BYTES);
    let mut places = Places::new();
    while let Some(chunk) = chunks.recv().await {
        output.clear();
        bundle.checksum = tokio::task::block_in_place(|| compress_bundle(&chunk, &mut places, &mut output, bundle.checksum));
        bundle.input_bytes += chunk.len() as u64;
        bundle.output_bytes += output.len() as u64;
        if start.elapsed() >= time {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(chunks);
    // The reader ends at its next chunk, which nobody takes.
    let _ = reader.await;
    bundle
}

/// Reads assets chunk by chunk, one chunk ahead of the compressor.
async fn read_assets(sender: mpsc::Sender<Vec<u8>>) {
    let assets: Arc<[u8]> = assets(ASSET_BYTES).into();
    loop {
        for chunk in assets.chunks(CHUNK_BYTES) {
            if sender.send(chunk.to_vec()).await.is_err() {
                return;
            }
        }
    }
}

/// Text that looks like minified scripts to a compressor: few words in endless order.
fn assets(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "function(",
        "return ",
        "const ",
        "=>{",
        "}",
        ";",
        "document.",
        "querySelector",
        "await ",
        "import ",
        "export ",
        "default ",
        "[",
        "]",
        "length",
        "0x",
    ];
    let mut text = Vec::with_capacity(bytes + 16);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    while text.len() < bytes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        text.extend_from_slice(WORDS[(random >> 60) as usize].as_bytes());
        if random & 7 == 0 {
            text.extend_from_slice(format!("{:x}", random >> 40 & 0xffff).as_bytes());
        }
    }
    text.truncate(bytes);
    text
}

/// Earlier places of the bytes of a chunk, by a hash of their start.
pub struct Places {
    /// Latest place of each hash.
    heads: Vec<u32>,
    /// For each place, the one before it with the same hash.
    earlier: Vec<u32>,
}

impl Places {
    /// Makes tables for one chunk.
    pub fn new() -> Self {
        Self { heads: vec![NOWHERE; 1 << HASH_BITS], earlier: vec![NOWHERE; CHUNK_BYTES] }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::new()
    }
}

/// Compresses a chunk of at most 64 KiB to literal bytes and references to earlier ones, each after a byte with its type;
/// returns the checksum continued over the output. This is the function behind the first pole.
///
/// ```text
///   0x00 n  then n literal bytes            0x01 length distance(2, little-endian)
/// ```
#[inline(never)]
pub fn compress_bundle(input: &[u8], places: &mut Places, output: &mut Vec<u8>, checksum: u32) -> u32 {
    let input = &input[..input.len().min(CHUNK_BYTES)];
    places.heads.fill(NOWHERE);
    let begin = output.len();
    let (mut at, mut literals_from) = (0, 0);
    while at < input.len() {
        let (mut best_len, mut best_at) = (0, 0);
        if at + SHORTEST_MATCH <= input.len() {
            let mut word = 0u32;
            let mut i = 0;
            while i < 4 {
                word = word << 8 | u32::from(input[at + i]);
                i += 1;
            }
            let hash = (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
            let longest = LONGEST_MATCH.min(input.len() - at);
            let mut candidate = places.heads[hash];
            let mut tried = 0;
            while candidate != NOWHERE && tried < CANDIDATES && best_len < longest {
                let from = candidate as usize;
                let mut len = 0;
                while len < longest && input[from + len] == input[at + len] {
                    len += 1;
                }
                if len > best_len {
                    (best_len, best_at) = (len, from);
                }
                candidate = places.earlier[from];
                tried += 1;
            }
            places.earlier[at] = places.heads[hash];
            places.heads[hash] = at as u32;
        }
        let is_match = best_len >= SHORTEST_MATCH;
        let literals_end = if is_match { at } else { at + 1 };
        let literals = literals_end - literals_from;
        if literals > 0 && (is_match || literals == 255 || literals_end == input.len()) {
            output.push(0);
            output.push(literals as u8);
            output.extend_from_slice(&input[literals_from..literals_end]);
            literals_from = literals_end;
        }
        if is_match {
            let distance = at - best_at;
            output.extend_from_slice(&[1, (best_len - SHORTEST_MATCH) as u8, distance as u8, (distance >> 8) as u8]);
            at += best_len;
            literals_from = at;
        } else {
            at += 1;
        }
    }
    let (mut low, mut high) = (checksum & 0xffff, checksum >> 16);
    let mut i = begin;
    while i < output.len() {
        low = (low + u32::from(output[i])) % 65_521;
        high = (high + low) % 65_521;
        i += 1;
    }
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompress(mut input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        while let [kind, rest @ ..] = input {
            if *kind == 0 {
                let (len, rest) = (usize::from(rest[0]), &rest[1..]);
                output.extend_from_slice(&rest[..len]);
                input = &rest[len..];
            } else {
                let len = usize::from(rest[0]) + SHORTEST_MATCH;
                let distance = usize::from(rest[1]) | usize::from(rest[2]) << 8;
                for _ in 0..len {
                    output.push(output[output.len() - distance]);
                }
                input = &rest[3..];
            }
        }
        output
    }

    #[test]
    fn compressed_bytes_decompress_to_the_original() {
        let mut places = Places::new();
        let assets = assets(3 * CHUNK_BYTES + 17);
        let inputs = assets.chunks(CHUNK_BYTES).chain([&b""[..], b"a", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"abcabc"]);
        for input in inputs {
            let mut output = Vec::new();
            compress_bundle(input, &mut places, &mut output, 1);
            assert!(decompress(&output) == input);
            if input.len() == CHUNK_BYTES {
                assert!(output.len() < input.len() / 2, "{} of {}", output.len(), input.len());
            }
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_output() {
        let (mut places, mut output) = (Places::new(), Vec::new());
        let checksum = compress_bundle(b"Wikipedia", &mut places, &mut output, 1);
        assert_eq!(output, b"\x00\x09Wikipedia");
        let (low, high) = output.iter().fold((1u32, 0u32), |(low, high), byte| (low + u32::from(*byte), high + low + u32::from(*byte)));
        assert_eq!(checksum, high << 16 | low);
    }
}
