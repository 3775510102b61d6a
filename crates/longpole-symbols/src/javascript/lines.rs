//! Where the lines of scripts begin.

use std::sync::Arc;

use super::heap::Heap;
use super::text::Piece;
use crate::memory::Unreadable;
use longpole_model::fast_hash::FastMap;

/// Largest source that is read for its lines, in bytes: a bundle of a large program has some megabytes.
const SOURCE_BYTES_MAX: u64 = 8 << 20;

/// Bytes that are read at once.
const BLOCK_BYTES: u64 = 64 << 10;

/// Most lines to keep of all scripts of a process: 16 MB.
const LINES_MAX: usize = 4 << 20;

/// How many lines a script counts as, beside its own: it takes their bytes even if it has none.
const LINES_OF_SCRIPT: usize = 16;

/// The scripts of a process whose lines are known, by their source. Each holds the characters after which a line begins.
#[derive(Debug, Default)]
pub(super) struct Lines {
    scripts: FastMap<(u64, u64), Arc<[u32]>>,
    lines: usize,
}

impl Lines {
    /// The line of a character of a script, from 1; 0 if it is unknown.
    pub(super) fn line(&mut self, heap: &mut Heap<'_>, source: u64, character: u32) -> Result<u32, Unreadable> {
        let Some(piece) = heap.piece(source)? else { return Ok(0) };
        let key = (piece.address, piece.characters);
        let ends = match self.scripts.get(&key) {
            Some(ends) => Arc::clone(ends),
            None => {
                let Some(ends) = line_ends(heap, piece)? else { return Ok(0) };
                self.keep(key, Arc::clone(&ends));
                ends
            }
        };
        if u64::from(character) > piece.characters {
            return Ok(0);
        }
        Ok(u32::try_from(ends.partition_point(|end| *end < character)).map_or(0, |line| line + 1))
    }

    fn keep(&mut self, key: (u64, u64), ends: Arc<[u32]>) {
        let lines = ends.len() + LINES_OF_SCRIPT;
        if self.lines + lines > LINES_MAX {
            self.scripts.clear();
            self.lines = 0;
        }
        self.lines += lines;
        self.scripts.insert(key, ends);
    }
}

/// The characters that end a line, ascending: a line feed, or a carriage return without one.
fn line_ends(heap: &mut Heap<'_>, piece: Piece) -> Result<Option<Arc<[u32]>>, Unreadable> {
    let bytes = piece.characters.saturating_mul(piece.width);
    if bytes > SOURCE_BYTES_MAX {
        return Ok(None);
    }
    let mut ends = Vec::new();
    let mut block = Vec::new();
    let mut at = 0;
    let mut number = 0u32;
    let mut is_after_return = false;
    while at < bytes {
        block.resize((bytes - at).min(BLOCK_BYTES) as usize, 0);
        let Some(address) = piece.address.checked_add(at) else { return Ok(None) };
        if heap.copy(address, &mut block)?.is_none() {
            return Ok(None);
        }
        let mut look = |character: u16| {
            if is_after_return && character != u16::from(b'\n') {
                ends.push(number - 1);
            }
            is_after_return = character == u16::from(b'\r');
            if character == u16::from(b'\n') {
                ends.push(number);
            }
            number += 1;
        };
        if piece.width == 1 {
            block.iter().for_each(|byte| look(u16::from(*byte)));
        } else {
            block.as_chunks::<2>().0.iter().for_each(|unit| look(u16::from_le_bytes(*unit)));
        }
        at += block.len() as u64;
    }
    Ok(Some(ends.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_a_line_are_forgotten_in_time() {
        let mut lines = Lines::default();
        for address in 0..1 << 19 {
            lines.keep((address, 1), Arc::default());
        }
        assert!(lines.scripts.len() <= LINES_MAX / LINES_OF_SCRIPT, "{}", lines.scripts.len());
        lines.keep((0, 1), vec![7; LINES_MAX].into());
        assert_eq!(lines.scripts.len(), 1);
    }
}
