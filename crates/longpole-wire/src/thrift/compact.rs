//! The compact protocol: types, integers, counts and headers.
//!
//! ```text
//! 82 81 07 09 "emitBatch"     message: kind 4 (one-way call) and version 1 in one byte, sequence number, name
//! 16                          field: number of the field before + 1, type i64
//! 06 28                       field: type i64, number 20 in zigzag
//! 29 3c                       field: number of the field before + 2, type list; a list of 3 structs
//! 29 fc 0f                    the same, of 15 structs
//! 11                          field: number of the field before + 1, the truth value true
//! 00                          end of a struct
//! ```

use super::{MessageHeader, ThriftReader, ThriftType};
use crate::error::DecodeError;
use crate::leb128::{self, Leb128Fault};

/// First byte of a message.
pub(super) const MESSAGE: u8 = 0x82;

/// Truth value in a list; any other byte is false.
pub(super) const TRUE: u8 = 1;

const STOP: u8 = 0;
const FIELD_TRUE: u8 = 1;
const FIELD_FALSE: u8 = 2;

/// Size in the header of a list whose size follows.
const SIZE_FOLLOWS: u8 = 15;

fn type_of(code: u8) -> ThriftType {
    match code {
        FIELD_TRUE | FIELD_FALSE => ThriftType::Bool,
        3 => ThriftType::Byte,
        4 => ThriftType::I16,
        5 => ThriftType::I32,
        6 => ThriftType::I64,
        7 => ThriftType::Double,
        8 => ThriftType::String,
        9 => ThriftType::List,
        10 => ThriftType::Set,
        11 => ThriftType::Map,
        12 => ThriftType::Struct,
        13 => ThriftType::Uuid,
        _ => ThriftType::Unknown,
    }
}

/// 0, -1, 1, -2, … for 0, 1, 2, 3, …
fn of_zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

impl<'a> ThriftReader<'a> {
    fn varint(&mut self) -> Result<u64, DecodeError> {
        let (value, length) = leb128::read(self.rest()).map_err(|fault| match fault {
            Leb128Fault::Truncated => self.error("bytes end inside a value"),
            Leb128Fault::TooLong => self.error("integer longer than 64 bits"),
        })?;
        self.at += length;
        Ok(value)
    }

    pub(super) fn compact_integer<T: TryFrom<i64>>(&mut self) -> Result<T, DecodeError> {
        let number = of_zigzag(self.varint()?);
        T::try_from(number).map_err(|_| self.error("integer out of range of its type"))
    }

    pub(super) fn compact_count(&mut self) -> Result<u32, DecodeError> {
        let count = self.varint()?;
        u32::try_from(count).map_err(|_| self.error("length of more than 32 bits"))
    }

    pub(super) fn compact_field(&mut self, previous: i16) -> Result<Option<(ThriftType, i16)>, DecodeError> {
        let header = self.byte()?;
        if header == STOP {
            return Ok(None);
        }
        let (difference, code) = (header >> 4, header & 0x0f);
        let number = match difference {
            0 => self.i16()?,
            _ => previous.checked_add(i16::from(difference)).ok_or_else(|| self.error("field number out of range"))?,
        };
        self.truth_in_header = match code {
            FIELD_TRUE => Some(true),
            FIELD_FALSE => Some(false),
            _ => None,
        };
        Ok(Some((type_of(code), number)))
    }

    pub(super) fn compact_list(&mut self) -> Result<(ThriftType, u32), DecodeError> {
        let header = self.byte()?;
        let count = match header >> 4 {
            SIZE_FOLLOWS => self.compact_count()?,
            size => u32::from(size),
        };
        Ok((type_of(header & 0x0f), count))
    }

    pub(super) fn compact_map(&mut self) -> Result<(ThriftType, ThriftType, u32), DecodeError> {
        let count = self.compact_count()?;
        if count == 0 {
            return Ok((ThriftType::Unknown, ThriftType::Unknown, 0));
        }
        let types = self.byte()?;
        Ok((type_of(types >> 4), type_of(types & 0x0f), count))
    }

    pub(super) fn compact_message(&mut self) -> Result<MessageHeader<'a>, DecodeError> {
        let [protocol, kind_and_version] = self.array()?;
        if protocol != MESSAGE || kind_and_version & 0x1f != 1 {
            return Err(self.error("unknown version of the compact protocol"));
        }
        let _sequence_number = self.varint()?;
        Ok(MessageHeader { kind: kind_and_version >> 5, name: self.string()? })
    }
}
