//! The binary protocol: types, counts and headers.
//!
//! ```text
//! 80 01 00 04  00000009 "emitBatch"  00000007     message: version 1, kind 4 (one-way call), name, sequence number
//! 0a 0001                                         field: type i64, number 1
//! 0f 0002  0c 00000003                            field: type list, number 2; a list of three structs
//! 00                                              end of a struct
//! ```

use super::{MessageHeader, ThriftReader, ThriftType};
use crate::error::DecodeError;

/// First byte of a message. Older programs leave it and the next three out; the message begins with its name.
pub(super) const MESSAGE: u8 = 0x80;

/// First two bytes of a message.
const VERSION_1: u32 = 0x8001;

const STOP: u8 = 0;

fn type_of(code: u8) -> ThriftType {
    match code {
        2 => ThriftType::Bool,
        3 => ThriftType::Byte,
        4 => ThriftType::Double,
        6 => ThriftType::I16,
        8 => ThriftType::I32,
        10 => ThriftType::I64,
        11 => ThriftType::String,
        12 => ThriftType::Struct,
        13 => ThriftType::Map,
        14 => ThriftType::Set,
        15 => ThriftType::List,
        16 => ThriftType::Uuid,
        _ => ThriftType::Unknown,
    }
}

impl<'a> ThriftReader<'a> {
    pub(super) fn binary_count(&mut self) -> Result<u32, DecodeError> {
        let count = self.array().map(i32::from_be_bytes)?;
        u32::try_from(count).map_err(|_| self.error("length below zero"))
    }

    pub(super) fn binary_field(&mut self) -> Result<Option<(ThriftType, i16)>, DecodeError> {
        match self.byte()? {
            STOP => Ok(None),
            code => Ok(Some((type_of(code), self.i16()?))),
        }
    }

    pub(super) fn binary_list(&mut self) -> Result<(ThriftType, u32), DecodeError> {
        let kind = type_of(self.byte()?);
        Ok((kind, self.binary_count()?))
    }

    pub(super) fn binary_map(&mut self) -> Result<(ThriftType, ThriftType, u32), DecodeError> {
        let (key, value) = (type_of(self.byte()?), type_of(self.byte()?));
        Ok((key, value, self.binary_count()?))
    }

    pub(super) fn binary_message(&mut self) -> Result<MessageHeader<'a>, DecodeError> {
        let first = self.array()?;
        let word = u32::from_be_bytes(first);
        let header = if word >> 31 == 1 {
            if word >> 16 != VERSION_1 {
                return Err(self.error("unknown version of the binary protocol"));
            }
            let [.., kind] = first;
            MessageHeader { kind, name: self.string()? }
        } else {
            let name = self.take(usize::try_from(word).unwrap_or(usize::MAX))?;
            MessageHeader { kind: self.byte()?, name }
        };
        let _sequence_number: [u8; 4] = self.array()?;
        Ok(header)
    }
}
