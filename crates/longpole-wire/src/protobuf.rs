//! The protobuf wire format, as far as OTLP, Zipkin and AppDash use it: reading fields in place, writing them.
//!
//! ```text
//! 0a 07            field 1, wire type 2 (length-delimited), 7 bytes
//!    0a 03 61 62 63    field 1, length-delimited: "abc"
//!    10 2a             field 2, wire type 0 (varint): 42
//! ```

use crate::error::{DecodeError, Problem};
use crate::leb128::{self, Leb128Fault};
use crate::limits::{GROUP_NESTING_MAX, PROTOBUF_BYTES_A_MESSAGE, PROTOBUF_MESSAGES_MIN};

/// The content of one field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: a text, bytes or a message, with its own reader.
    Bytes(Reader<'a>),
    /// Wire types 3 and 4: the fields between, with their own reader. OTLP has none, AppDash is made of them.
    Group(Reader<'a>),
    /// Wire type 5.
    Fixed32(u32),
}

/// One field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Its number.
    pub(crate) number: u32,
    /// Offset of its key in the request.
    pub(crate) offset: usize,
    /// Its content.
    pub(crate) value: Value<'a>,
}

/// Walks over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The message, from the next field to its end.
    rest: &'a [u8],
    /// Offset in the request of the first byte of `rest`.
    offset: usize,
    /// What to call the message in an error.
    message: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads a whole request.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, offset: 0, message: "request" }
    }

    /// The same bytes, read as this message.
    pub(crate) fn named(self, message: &'static str) -> Self {
        Reader { message, ..self }
    }

    /// The bytes not yet read.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// Offset in the request of the bytes not yet read.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The next field, or `None` at the end of the message. A group is checked and skipped as one field.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let (number, wire_type) = self.key()?;
        let value = match wire_type {
            WIRE_GROUP_START => {
                let start = *self;
                let end = self.skip_group(number, offset)?;
                let length = end - start.offset;
                Value::Group(Reader { rest: start.rest.get(..length).unwrap_or_default(), ..start })
            }
            WIRE_GROUP_END => return Err(self.error_at(offset, Problem::Group { field: number })),
            _ => self.value(number, wire_type, offset)?,
        };
        Ok(Some(Field { number, offset, value }))
    }

    /// The next number of a packed list, or `None` at its end.
    pub(crate) fn next_packed(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    /// An error in this message.
    #[cold]
    pub(crate) fn error_at(&self, offset: usize, problem: Problem) -> DecodeError {
        DecodeError::Protobuf { problem, message: self.message, offset }
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, u8), DecodeError> {
        let offset = self.offset;
        let key = self.varint()?;
        let wire_type = (key & 7) as u8;
        // Protobuf has field numbers of 29 bits, so that a key is one of 32.
        match u32::try_from(key) {
            Ok(key) if key >> 3 != 0 => Ok((key >> 3, wire_type)),
            _ => Err(self.error_at(offset, Problem::FieldNumber)),
        }
    }

    #[inline]
    fn value(&mut self, field: u32, wire_type: u8, offset: usize) -> Result<Value<'a>, DecodeError> {
        Ok(match wire_type {
            WIRE_VARINT => Value::Varint(self.varint()?),
            WIRE_FIXED64 => Value::Fixed64(u64::from_le_bytes(self.array(offset)?)),
            WIRE_BYTES => {
                let length = self.varint()?;
                let start = self.offset;
                let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX), offset)?;
                Value::Bytes(Reader { rest: bytes, offset: start, message: self.message })
            }
            WIRE_FIXED32 => Value::Fixed32(u32::from_le_bytes(self.array(offset)?)),
            _ => return Err(self.error_at(offset, Problem::WireType { field })),
        })
    }

    /// Skips to the end of a group whose start was just read, and returns the offset of the key that ends it. Its open groups
    /// are kept in an array, not in the call stack.
    fn skip_group(&mut self, number: u32, offset: usize) -> Result<usize, DecodeError> {
        let mut open = [0; GROUP_NESTING_MAX as usize];
        open[0] = number;
        let mut depth = 1;
        loop {
            if self.rest.is_empty() {
                return Err(self.error_at(offset, Problem::Group { field: open[depth - 1] }));
            }
            let at = self.offset;
            let (inner, wire_type) = self.key()?;
            match wire_type {
                WIRE_GROUP_START => {
                    let Some(slot) = open.get_mut(depth) else {
                        return Err(self.error_at(at, Problem::TooDeep { limit: GROUP_NESTING_MAX }));
                    };
                    *slot = inner;
                    depth += 1;
                }
                WIRE_GROUP_END if inner == open[depth - 1] => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at);
                    }
                }
                WIRE_GROUP_END => return Err(self.error_at(at, Problem::Group { field: inner })),
                _ => {
                    self.value(inner, wire_type, at)?;
                }
            }
        }
    }

    #[inline]
    fn take(&mut self, length: usize, field_offset: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.error_at(field_offset, Problem::Truncated));
        };
        self.rest = rest;
        self.offset += length;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self, field_offset: usize) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.error_at(field_offset, Problem::Truncated));
        };
        self.rest = rest;
        self.offset += N;
        Ok(*taken)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, DecodeError> {
        // Keys and lengths are nearly always below 128.
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                self.offset += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let (value, length) = leb128::read(self.rest).map_err(|fault| match fault {
            Leb128Fault::Truncated => self.error_at(self.offset, Problem::Truncated),
            Leb128Fault::TooLong => self.error_at(self.offset, Problem::Varint),
        })?;
        self.rest = &self.rest[length..];
        self.offset += length;
        Ok(value)
    }
}

/// Gives each field of a message, with its reader for errors.
pub(crate) fn each<'a>(
    mut reader: Reader<'a>,
    mut take: impl FnMut(&Reader<'a>, Field<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while let Some(field) = reader.next()? {
        take(&reader, field)?;
    }
    Ok(())
}

/// A field that is a message of this name.
pub(crate) fn message<'a>(reader: &Reader<'a>, field: Field<'a>, name: &'static str) -> Result<Reader<'a>, DecodeError> {
    if let Value::Bytes(inner) = field.value { Ok(inner.named(name)) } else { Err(unexpected(reader, field)) }
}

/// A field that is a text or bytes.
pub(crate) fn bytes<'a>(reader: &Reader<'a>, field: Field<'a>) -> Result<&'a [u8], DecodeError> {
    if let Value::Bytes(inner) = field.value { Ok(inner.bytes()) } else { Err(unexpected(reader, field)) }
}

/// A field that is an integer.
pub(crate) fn number(reader: &Reader<'_>, field: Field<'_>) -> Result<u64, DecodeError> {
    if let Value::Varint(number) = field.value { Ok(number) } else { Err(unexpected(reader, field)) }
}

/// The error of a field of this message whose contents are of another wire type than it has.
#[cold]
pub(crate) fn unexpected(reader: &Reader<'_>, field: Field<'_>) -> DecodeError {
    reader.error_at(field.offset, Problem::UnexpectedWireType { field: field.number })
}

const WIRE_VARINT: u8 = 0;
const WIRE_FIXED64: u8 = 1;
const WIRE_BYTES: u8 = 2;
const WIRE_GROUP_START: u8 = 3;
const WIRE_GROUP_END: u8 = 4;
const WIRE_FIXED32: u8 = 5;

fn put_key(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    leb128::put(out, u64::from(number) << 3 | u64::from(wire_type));
}

/// Writes an integer; 0 is the default and is left out, as proto3 wants.
pub(crate) fn put_integer(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_set_integer(out, number, value);
    }
}

/// Writes an integer of a oneof, where 0 says that it is set.
pub(crate) fn put_set_integer(out: &mut Vec<u8>, number: u32, value: u64) {
    put_key(out, number, WIRE_VARINT);
    leb128::put(out, value);
}

/// Writes eight bytes unless zero.
pub(crate) fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_set_fixed64(out, number, value);
    }
}

/// Writes eight bytes of a oneof, where zero says that it is set.
pub(crate) fn put_set_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_key(out, number, WIRE_FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes four bytes unless zero.
pub(crate) fn put_fixed32(out: &mut Vec<u8>, number: u32, value: u32) {
    if value != 0 {
        put_key(out, number, WIRE_FIXED32);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Writes bytes or a text unless empty.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_set_bytes(out, number, bytes);
    }
}

/// Writes bytes or a text of a oneof, where empty says that it is set.
pub(crate) fn put_set_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_key(out, number, WIRE_BYTES);
    leb128::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a message: `fill` writes its fields, whose length is put before them afterwards.
pub(crate) fn put_message(out: &mut Vec<u8>, number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    put_key(out, number, WIRE_BYTES);
    let start = out.len();
    fill(out);
    let mut length = Vec::with_capacity(5);
    leb128::put(&mut length, (out.len() - start) as u64);
    out.splice(start..start, length);
}

/// Counts the messages of a request that is read as a whole: empty ones take time and memory, and two bytes.
pub(crate) struct MessageCount {
    seen: usize,
    most: usize,
}

impl MessageCount {
    /// The count of a request of this many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        MessageCount { seen: 0, most: (bytes / PROTOBUF_BYTES_A_MESSAGE).max(PROTOBUF_MESSAGES_MIN) }
    }

    /// Counts one more, which begins at this offset.
    pub(crate) fn add(&mut self, reader: &Reader<'_>, offset: usize) -> Result<(), DecodeError> {
        self.seen += 1;
        if self.seen <= self.most {
            return Ok(());
        }
        let limit = u32::try_from(self.most).unwrap_or(u32::MAX);
        Err(reader.error_at(offset, Problem::TooManyOf { what: "messages, one for each 8 bytes", limit }))
    }
}
