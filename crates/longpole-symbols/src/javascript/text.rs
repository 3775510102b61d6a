//! Texts: one piece, or pieces of others.

use super::heap::{Heap, Object};
use super::layout::small_integer;
use crate::memory::Unreadable;

/// Most pieces of a text.
const PIECES_MAX: usize = 32;

/// A text that lies in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where its characters begin.
    pub(super) address: u64,
    /// How many there are.
    pub(super) characters: u64,
    /// Bytes of each: 1 in Latin-1, 2 in UTF-16.
    pub(super) width: u64,
}

/// A bit of the type of a text outside the heap: what points to it does not say where its characters are.
const IS_UNCACHED: u16 = 1 << 4;

impl Heap<'_> {
    /// The piece that a text is, where it is a single one; `None` if it is not, or no text.
    pub(super) fn piece(&mut self, pointer: u64) -> Result<Option<Piece>, Unreadable> {
        let (mut pointer, mut skipped, mut wanted) = (pointer, 0, None);
        for _ in 0..PIECES_MAX {
            let Some(text) = self.object(pointer)?.filter(|object| object.kind < self.layout.type_not_text) else { return Ok(None) };
            let length = u64::from(text.int(self.layout.text_length).max(0).cast_unsigned());
            let wanted = *wanted.get_or_insert(length);
            let kind = text.kind & self.layout.text_kind_mask;
            let layout = self.layout;
            if kind == layout.kind_thin {
                pointer = text.word(layout.thin_actual);
            } else if kind == layout.kind_sliced {
                let offset = small_integer(text.word(layout.sliced_offset)).and_then(|offset| u64::try_from(offset).ok());
                let Some(offset) = offset else { return Ok(None) };
                skipped += offset;
                pointer = text.word(layout.sliced_parent);
            } else if kind == layout.kind_cons {
                // A text that was put together lies in its first part once somebody has read it.
                let second = self.object(text.word(layout.cons_second))?;
                if second.is_none_or(|second| second.int(layout.text_length) != 0) {
                    return Ok(None);
                }
                pointer = text.word(layout.cons_first);
            } else {
                return self.flat(pointer, &text, (skipped, wanted));
            }
        }
        Ok(None)
    }

    /// The piece of these characters of a text that has its own.
    fn flat(&mut self, pointer: u64, text: &Object, (skipped, wanted): (u64, u64)) -> Result<Option<Piece>, Unreadable> {
        let layout = self.layout;
        let width = if text.kind & layout.text_is_latin == 0 { 2 } else { 1 };
        let first = match text.kind & layout.text_kind_mask {
            0 => pointer.checked_add(if width == 1 { layout.text_latin } else { layout.text_wide }).map(|at| at - 1),
            kind if kind == layout.kind_external && text.kind & IS_UNCACHED == 0 => {
                // The word after the one that points to its owner.
                Some(text.word(layout.external_resource + super::layout::WORD_BYTES))
            }
            _ => None,
        };
        let length = u64::from(text.int(layout.text_length).max(0).cast_unsigned());
        let is_within = skipped.checked_add(wanted).is_some_and(|end| end <= length);
        let address = first.filter(|_| is_within).and_then(|first| first.checked_add(skipped * width));
        Ok(address.map(|address| Piece { address, characters: wanted, width }))
    }

    /// The beginning of a text, at most this many characters of it; `None` if it is none.
    pub(super) fn text(&mut self, pointer: u64, characters_max: u64) -> Result<Option<String>, Unreadable> {
        let mut read = String::new();
        let mut left = characters_max;
        let mut pieces = vec![pointer];
        for _ in 0..PIECES_MAX {
            let Some(pointer) = pieces.pop().filter(|_| left > 0) else { return Ok(Some(read)) };
            let Some(text) = self.object(pointer)?.filter(|object| object.kind < self.layout.type_not_text) else { return Ok(None) };
            if text.kind & self.layout.text_kind_mask == self.layout.kind_cons {
                pieces.extend([text.word(self.layout.cons_second), text.word(self.layout.cons_first)]);
                continue;
            }
            let Some(piece) = self.piece(pointer)? else { return Ok(None) };
            let characters = piece.characters.min(left);
            left -= characters;
            let mut bytes = vec![0; usize::try_from(characters * piece.width).unwrap_or(0)];
            if !bytes.is_empty() && self.copy(piece.address, &mut bytes)?.is_none() {
                return Ok(None);
            }
            if piece.width == 1 {
                read.extend(bytes.iter().map(|byte| char::from(*byte)));
            } else {
                let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
                read.extend(char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
        }
        Ok(Some(read))
    }
}
