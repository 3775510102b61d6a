//! OTLP in protobuf: `TracesData`, which is a list of `ResourceSpans`, one after the other.
//!
//! ```text
//! 0a 8f02 …   field 1, 271 bytes: ResourceSpans         read and given one by one
//! 0a …
//! ```
//!
//! The Collector's file exporter puts four bytes with the length before each `TracesData`; these are recognised by their first
//! byte, which is 0, as no key is.

use std::io::{BufReader, Read};

use super::Counting;
use crate::error::FileError;
use crate::leb128;
use crate::limits::Limits;
use crate::otlp;
use crate::protobuf::Reader;

const FORMAT: &str = "otlp-protobuf";

/// Key of a field 1 with a length: `ResourceSpans` in `TracesData`.
const KEY_RESOURCE_SPANS: u8 = 0x0a;
/// Key of a field 2 with a length: `ScopeSpans` in `ResourceSpans`, and a span in `ScopeSpans`.
const KEY_INNER: u8 = 0x12;

/// How much is read from the file at once.
const BUFFER_BYTES: usize = 256 << 10;

struct Input<R> {
    input: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    fn byte(&mut self) -> Result<Option<u8>, FileError> {
        let mut byte = [0];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    self.offset += 1;
                    return Ok(Some(byte[0]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::Read(error)),
            }
        }
    }

    fn broken(&self, problem: &'static str) -> FileError {
        FileError::Broken { problem, format: FORMAT, offset: self.offset }
    }
}

/// Reads message by message; no more than one `ResourceSpans` is held.
pub(super) fn decode(input: impl Read, limits: &Limits, sink: &mut Counting<'_>) -> Result<(), FileError> {
    let mut input = Input { input: BufReader::with_capacity(BUFFER_BYTES, input), offset: 0 };
    let mut message = Vec::new();
    // End of the current `TracesData`, where the file has lengths.
    let mut frame_end = None;
    while let Some(first) = input.byte()? {
        let start = input.offset - 1;
        let cut = |input: &Input<_>, sink: &Counting<'_>| FileError::Truncated { offset: input.offset, spans: sink.spans };
        if start == 0 && first == 0 || frame_end.is_some_and(|end| end <= start) {
            let mut length = u64::from(first);
            for _ in 0..3 {
                length = length << 8 | u64::from(input.byte()?.ok_or_else(|| cut(&input, sink))?);
            }
            frame_end = Some(input.offset + length);
            continue;
        }
        if first != KEY_RESOURCE_SPANS {
            return Err(FileError::Broken { problem: "something other than spans", format: FORMAT, offset: start });
        }
        message.clear();
        message.push(first);
        let mut length = 0u64;
        loop {
            let byte = input.byte()?.ok_or_else(|| cut(&input, sink))?;
            message.push(byte);
            length |= u64::from(byte & 0x7f) << (7 * (message.len() - 2));
            if byte < 0x80 {
                break;
            }
            if message.len() > 9 {
                return Err(input.broken("a length of more than 63 bits"));
            }
        }
        if length > limits.document_bytes_max as u64 {
            return Err(FileError::TooLarge { limit_bytes: limits.document_bytes_max, offset: start });
        }
        let prefix = message.len();
        let read = (&mut input.input).take(length).read_to_end(&mut message).map_err(FileError::Read)?;
        input.offset += read as u64;
        let refused = |error| FileError::Document { error, offset: start };
        if (read as u64) < length {
            let mut whole = Vec::new();
            put(&mut whole, KEY_RESOURCE_SPANS, &before_cut(&message[prefix..], 1));
            otlp::trace::decode(&whole, limits, sink).map_err(refused)?;
            return Err(cut(&input, sink));
        }
        otlp::trace::decode(&message, limits, sink).map_err(refused)?;
    }
    Ok(())
}

/// The whole fields at the start of a message that was cut, and those of the message in which the cut is: `levels` of
/// field 2 are looked into.
fn before_cut(message: &[u8], levels: u32) -> Vec<u8> {
    let mut reader = Reader::new(message);
    let mut end = 0;
    while let Ok(Some(_)) = reader.next() {
        end = reader.offset();
    }
    let (whole, rest) = message.split_at(end);
    let mut whole = whole.to_vec();
    if let ([KEY_INNER, rest @ ..], true) = (rest, levels > 0) {
        let length = rest.iter().position(|byte| *byte < 0x80).map_or(rest.len(), |last| last + 1);
        put(&mut whole, KEY_INNER, &before_cut(&rest[length..], levels - 1));
    }
    whole
}

fn put(out: &mut Vec<u8>, key: u8, message: &[u8]) {
    out.push(key);
    leb128::put(out, message.len() as u64);
    out.extend_from_slice(message);
}
