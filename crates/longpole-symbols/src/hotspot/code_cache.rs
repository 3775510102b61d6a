//! Where compiled code lies: the heaps of the code cache, and the blob that holds an address.
//!
//! ```text
//! heap      | block | blob: header, code, … | block | blob …            in segments of 64 or 128 bytes
//! segments     0       1   2   3   4  …       0       1                  how far back the block begins, at most; 255 is free
//! ```

use super::layout::{CodeBegin, JvmLayout};
use super::process_bytes::{count, fills, object, word_at};
use crate::memory::{Memory, half, int, word};
use std::ops::Range;

/// Most heaps: there are three.
const HEAPS_MAX: u64 = 16;

/// Most steps back in a segment map. Each leads up to 254 segments back; the largest blob has some thousands.
const STEPS_MAX: usize = 4096;

/// What a free segment has in the map.
const FREE: u8 = 0xff;

/// Largest blob.
const BLOB_BYTES_MAX: u64 = 64 << 20;

/// Largest frame, in words.
const FRAME_WORDS_MAX: u64 = 1 << 17;

/// Most bytes of a blob's name.
const NAME_BYTES_MAX: usize = 64;

/// A part of the code cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heap {
    memory: Range<u64>,
    segments: Range<u64>,
    log2_segment: u32,
}

/// A piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    /// From its header to its end.
    pub(super) range: Range<u64>,
    pub(super) header: Vec<u8>,
    pub(super) name: String,
    /// Where its code begins.
    pub(super) code: u64,
    /// From where on the frame is whole.
    pub(super) frame_complete: u64,
    /// Bytes of its frame, return address included; 0 where it has none of its own.
    pub(super) frame_bytes: u64,
    /// The method, if it is a compiled one.
    pub(super) method: Option<u64>,
}

pub(super) fn heaps(memory: &dyn Memory, layout: &JvmLayout) -> Option<Vec<Heap>> {
    let list = word_at(memory, layout.heaps)?;
    let header = object(memory, list, layout.array_data.max(layout.array_length).checked_add(8)?)?;
    let length = count(&header, layout.array_length)?.min(HEAPS_MAX);
    let pointers = object(memory, word(&header, layout.array_data)?, length.checked_mul(8)?)?;
    let space_bytes = layout.space_low.max(layout.space_high) + 8;
    let bytes = (layout.heap_memory.max(layout.heap_segments) + space_bytes).max(layout.heap_log2_segment + 4);
    let mut heaps = Vec::new();
    for number in 0..length {
        let heap = object(memory, word(&pointers, number * 8)?, bytes)?;
        let space = |offset: u64| Some(word(&heap, offset + layout.space_low)?..word(&heap, offset + layout.space_high)?);
        let log2_segment = u32::try_from(count(&heap, layout.heap_log2_segment)?).ok().filter(|log2| *log2 <= 16)?;
        let (memory, segments) = (space(layout.heap_memory)?, space(layout.heap_segments)?);
        if memory.start < memory.end && segments.start < segments.end {
            heaps.push(Heap { memory, segments, log2_segment });
        }
    }
    Some(heaps)
}

/// The blob that holds an address, if one does.
pub(super) fn find(memory: &dyn Memory, layout: &JvmLayout, heaps: &[Heap], address: u64) -> Option<Blob> {
    let heap = heaps.iter().find(|heap| heap.memory.contains(&address))?;
    let mut segment = (address - heap.memory.start) >> heap.log2_segment;
    let mut window = [0; FREE as usize];
    let mut window_start = 0;
    let mut window_length = 0;
    for _ in 0..STEPS_MAX {
        if segment < window_start || segment - window_start >= window_length {
            window_start = segment.saturating_sub(window.len() as u64 - 1);
            window_length = segment - window_start + 1;
            let at = heap.segments.start.checked_add(window_start)?;
            if at.checked_add(window_length)? > heap.segments.end {
                return None;
            }
            let length = usize::try_from(window_length).ok()?;
            if !fills(memory, at, window.get_mut(..length)?) {
                return None;
            }
        }
        match *window.get(usize::try_from(segment - window_start).ok()?)? {
            FREE => return None,
            0 => {
                let block = heap.memory.start.checked_add(segment << heap.log2_segment)?;
                let blob = read(memory, layout, heap, block.checked_add(layout.block_bytes)?)?;
                return blob.range.contains(&address).then_some(blob);
            }
            back => segment = segment.checked_sub(back.into())?,
        }
    }
    None
}

fn read(memory: &dyn Memory, layout: &JvmLayout, heap: &Heap, start: u64) -> Option<Blob> {
    let header = object(memory, start, layout.blob_bytes)?;
    let bytes = count(&header, layout.blob_size).filter(|bytes| *bytes <= BLOB_BYTES_MAX)?;
    let range = start..start.checked_add(bytes).filter(|end| *end <= heap.memory.end)?;
    let code = match layout.blob_code {
        CodeBegin::Pointer(offset) => word(&header, offset)?,
        CodeBegin::Offset(offset) => start.checked_add(count(&header, offset)?)?,
    };
    if !range.contains(&code) {
        return None;
    }
    let frame_complete = match layout.is_frame_complete_short {
        true => half(&header, layout.blob_frame_complete).map(|value| i64::from(value.cast_signed())),
        false => int(&header, layout.blob_frame_complete).map(i64::from),
    }?;
    // A negative one stands for code that is never in the middle of its frame.
    let frame_complete = code.checked_add_signed(frame_complete.max(0))?;
    let frame_bytes = count(&header, layout.blob_frame_words).filter(|words| *words <= FRAME_WORDS_MAX).unwrap_or(0) * 8;
    let name = name(memory, word(&header, layout.blob_name)?)?;
    let is_method = name == "nmethod" || name == "native nmethod";
    let method = if is_method { Some(word(&header, layout.compiled_method)?) } else { None };
    Some(Blob { range, header, name, code, frame_complete, frame_bytes, method })
}

fn name(memory: &dyn Memory, address: u64) -> Option<String> {
    // A text may lie at the end of a page behind which nothing is.
    let mut bytes = [0; NAME_BYTES_MAX];
    let to_page_end = usize::try_from(4096 - address % 4096).unwrap_or(NAME_BYTES_MAX).min(NAME_BYTES_MAX);
    if !fills(memory, address, &mut bytes) && !fills(memory, address, &mut bytes[..to_page_end]) {
        return None;
    }
    let length = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..length].to_vec()).ok()
}

impl Blob {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.header.len() + self.name.len()
    }

    /// Whether the same piece of code is still there; `None` where that cannot be read.
    pub(super) fn is_there(&self, memory: &dyn Memory, layout: &JvmLayout) -> Option<bool> {
        let header = object(memory, self.range.start, layout.blob_bytes)?;
        let same = |offset: u64, bytes: u64| {
            let range = usize::try_from(offset).ok()?..usize::try_from(offset + bytes).ok()?;
            Some(header.get(range.clone())? == self.header.get(range)?)
        };
        let is_method = self.method.is_some();
        Some(
            same(layout.blob_name, 8)?
                && same(layout.blob_size, 4)?
                && same(layout.blob_frame_words, 4)?
                && (!is_method || same(layout.compiled_method, 8)?),
        )
    }
}
