//! A JSON document that is held in memory, and what of it stands before a cut.

use std::io::Read;

use longpole_model::sink::SpanSink;

use super::Counting;
use crate::error::{DecodeError, FileError};
use crate::limits::Limits;

/// What Windows editors put before a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a whole file as one document. `spans_depth` says how many brackets are around a span.
pub(super) fn decode(
    input: impl Read,
    limits: &Limits,
    sink: &mut Counting<'_>,
    spans_depth: impl Fn(&[u8]) -> usize,
    read: impl Fn(&[u8], &Limits, &mut dyn SpanSink) -> Result<(), DecodeError>,
) -> Result<(), FileError> {
    let mut bytes = Vec::new();
    input.take(limits.document_bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(FileError::Read)?;
    if bytes.len() > limits.document_bytes_max {
        return Err(FileError::TooLarge { limit_bytes: limits.document_bytes_max, offset: 0 });
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let Err(error) = read(text, limits, sink) else { return Ok(()) };
    match before_cut(text, spans_depth(text.trim_ascii_start())) {
        Some(whole) => {
            if !whole.is_empty() {
                // A document that was wrong before it was cut is wrong still.
                read(&whole, limits, sink).map_err(|error| FileError::Document { error, offset: 0 })?;
            }
            Err(FileError::Truncated { offset: bytes.len() as u64, spans: sink.spans })
        }
        None => Err(FileError::Document { error, offset: 0 }),
    }
}

/// A document that was cut off, closed behind its last whole value that has no more than `levels` brackets around it; empty
/// where there is none. `None` where nothing is open at the end, so that it was not cut, or where brackets do not match.
pub(super) fn before_cut(text: &[u8], depth_max: usize) -> Option<Vec<u8>> {
    let mut whole = 0;
    let open = walk(text, |at, depth| {
        if depth <= depth_max {
            whole = at + 1;
        }
    })?;
    if open.brackets.is_empty() && !open.in_text {
        return None;
    }
    let mut document = text[..whole].to_vec();
    let closing = walk(&document, |_, _| ())?.brackets;
    document.extend(closing.iter().rev());
    Some(document)
}

/// What is open at the end of a text.
struct Unclosed {
    /// The brackets that would close it, outermost first.
    brackets: Vec<u8>,
    in_text: bool,
}

/// Walks over brackets and texts; calls the function behind each closing bracket with its place and the depth around it.
/// `None` where one closes what is not open.
fn walk(text: &[u8], mut closed: impl FnMut(usize, usize)) -> Option<Unclosed> {
    let mut brackets = Vec::new();
    let mut in_text = false;
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate() {
        if in_text {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' => brackets.push(b'}'),
            b'[' => brackets.push(b']'),
            b'}' | b']' => {
                if brackets.pop() != Some(*byte) {
                    return None;
                }
                closed(at, brackets.len());
            }
            _ => {}
        }
    }
    Some(Unclosed { brackets, in_text })
}
