//! Numbers, texts and lists as compact bytes: what the log and the compact spans are made of.
//!
//! ```text
//! 96 01          150: LEB128, 7 bits a byte, lowest first; a set high bit says that more follow
//! 03             -2 where a number has a sign: zigzag, 0 -1 1 -2 2 …
//! 02 68 69       "hi": texts, bytes and lists begin with their length
//! ```
//!
//! The decoder is bounded by its input: nothing is reserved that the remaining bytes could not fill.

use longpole_model::{SpanId, Timestamp, TraceId};

use crate::numbers::usize_of;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Offset within the payload.
    pub(crate) offset: usize,
    /// What was expected there.
    pub(crate) expected: &'static str,
}

pub(crate) type Decoded<T> = Result<T, Malformed>;

/// Appends a number.
pub(crate) fn put_u64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Appends a number.
pub(crate) fn put_u32(out: &mut Vec<u8>, number: u32) {
    put_u64(out, u64::from(number));
}

/// Appends a number with a sign.
pub(crate) fn put_i64(out: &mut Vec<u8>, number: i64) {
    put_u64(out, (number << 1 ^ number >> 63) as u64);
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a payload from its start to its end.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, offset: 0 }
    }

    /// Where the next byte stands.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Whether all is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// Something else stands here than what was expected.
    pub(crate) fn malformed<T>(&self, expected: &'static str) -> Decoded<T> {
        Err(Malformed { offset: self.offset, expected })
    }

    pub(crate) fn take(&mut self, length: usize, expected: &'static str) -> Decoded<&'a [u8]> {
        let rest = &self.bytes[self.offset..];
        if length > rest.len() {
            return self.malformed(expected);
        }
        self.offset += length;
        Ok(&rest[..length])
    }

    pub(crate) fn u8(&mut self, expected: &'static str) -> Decoded<u8> {
        Ok(self.take(1, expected)?[0])
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        let start = self.offset;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8("a number")?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed { offset: start, expected: "a number of 64 bits" })
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        let start = self.offset;
        self.u64()?.try_into().map_err(|_| Malformed { offset: start, expected: "a number of 32 bits" })
    }

    pub(crate) fn i64(&mut self) -> Decoded<i64> {
        let number = self.u64()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// 0 or 1.
    pub(crate) fn bool(&mut self) -> Decoded<bool> {
        match self.u8("a truth value")? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.malformed("0 or 1"),
        }
    }

    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let start = self.offset;
        let length = usize::try_from(self.u64()?).map_err(|_| Malformed { offset: start, expected: "a length" })?;
        self.take(length, "as many bytes as the length says")
    }

    /// A length in bytes, then UTF-8.
    pub(crate) fn text(&mut self) -> Decoded<String> {
        let start = self.offset;
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Malformed { offset: start, expected: "a string in UTF-8" }),
        }
    }

    /// A count, then elements. Each takes at least one byte, which bounds what is reserved.
    pub(crate) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.u64()?;
        let room = self.bytes.len() - self.offset;
        if count > room as u64 {
            return self.malformed("as many elements as the length says");
        }
        // A list of texts takes 24 bytes of memory for one of input; so grow beyond a page only as elements come.
        let mut list = Vec::with_capacity(usize_of(count).min(4096 / size_of::<T>().max(1)));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    pub(crate) fn timestamp(&mut self) -> Decoded<Timestamp> {
        self.i64().map(Timestamp)
    }

    pub(crate) fn trace_id(&mut self) -> Decoded<TraceId> {
        let start = self.offset;
        let bytes = self.take(TraceId::BYTES, "a trace id")?;
        TraceId::from_slice(bytes).ok_or(Malformed { offset: start, expected: "a trace id that is not zero" })
    }

    pub(crate) fn span_id(&mut self) -> Decoded<SpanId> {
        let start = self.offset;
        let bytes = self.take(SpanId::BYTES, "a span id")?;
        SpanId::from_slice(bytes).ok_or(Malformed { offset: start, expected: "a span id that is not zero" })
    }
}
