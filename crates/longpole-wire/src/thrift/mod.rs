//! Thrift's binary and compact protocols: reading values in place, skipping unknown ones.
//!
//! ```text
//! a struct: field 1 is the i64 2, field 5 is the bool true
//! binary    0a 0001 0000000000000002    02 0005 01    00
//! compact   16 04                       41            00
//!           ││ └ 2 in zigzag            │└ true       └ end of the struct
//!           │└ type i64                 └ number 1 + 4
//!           └ number 0 + 1
//! ```
//!
//! Zipkin v1 and Jaeger use it. The structs and their fields are in `zipkin/thrift.rs` and `jaeger/thrift.rs`.

mod binary;
mod compact;

use crate::error::DecodeError;
use crate::limits::{THRIFT_BYTES_A_STRUCT, THRIFT_NESTING_MAX, THRIFT_STRUCTS_MIN};

/// How values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThriftProtocol {
    /// Integers of their full width, the highest byte first.
    Binary,
    /// Integers of variable length, numbers of fields as differences.
    Compact,
}

impl ThriftProtocol {
    /// The protocol of a message, by its first byte. The binary protocol begins with its version, and in older programs with the length of a
    /// name.
    pub(crate) fn of_message(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? {
            &compact::MESSAGE => Some(ThriftProtocol::Compact),
            &binary::MESSAGE | 0 => Some(ThriftProtocol::Binary),
            _ => None,
        }
    }
}

/// The type of a field or an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThriftType {
    Bool,
    Byte,
    Double,
    I16,
    I32,
    I64,
    /// A text or bytes.
    String,
    Struct,
    Map,
    Set,
    List,
    Uuid,
    /// A code without a type, which only an empty list may have.
    Unknown,
}

/// What stands before the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageHeader<'a> {
    /// Call, reply, exception or one-way call.
    pub(crate) kind: u8,
    /// Name of the method.
    pub(crate) name: &'a [u8],
}

impl MessageHeader<'_> {
    /// Whether it calls the method, with or without an answer.
    pub(crate) fn is_call(&self) -> bool {
        const CALL: u8 = 1;
        const ONE_WAY: u8 = 4;
        matches!(self.kind, CALL | ONE_WAY)
    }
}

/// Walks over the values of one document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThriftReader<'a> {
    bytes: &'a [u8],
    at: usize,
    protocol: ThriftProtocol,
    /// What to call the document in an error.
    document: &'static str,
    /// Elements of its lists so far.
    elements: usize,
    /// The value of the field whose header was read last, if the header holds it. A truth value of compact has no byte of its own.
    truth_in_header: Option<bool>,
}

impl<'a> ThriftReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], protocol: ThriftProtocol, document: &'static str) -> Self {
        ThriftReader { bytes, at: 0, protocol, document, elements: 0, truth_in_header: None }
    }

    /// An error at the byte that is read next.
    #[cold]
    pub(crate) fn error(&self, problem: &'static str) -> DecodeError {
        DecodeError::Thrift { problem, document: self.document, offset: self.at }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Refuses bytes that follow what was read.
    pub(crate) fn end(&self, problem: &'static str) -> Result<(), DecodeError> {
        if self.is_at_end() { Ok(()) } else { Err(self.error(problem)) }
    }

    /// The bytes not yet read.
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.rest().get(..length).ok_or_else(|| self.error("bytes end inside a value"))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some(taken) = self.rest().first_chunk() else {
            return Err(self.error("bytes end inside a value"));
        };
        self.at += N;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.array().map(i16::from_be_bytes),
            ThriftProtocol::Compact => self.compact_integer(),
        }
    }

    pub(crate) fn i32(&mut self) -> Result<i32, DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.array().map(i32::from_be_bytes),
            ThriftProtocol::Compact => self.compact_integer(),
        }
    }

    pub(crate) fn i64(&mut self) -> Result<i64, DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.array().map(i64::from_be_bytes),
            ThriftProtocol::Compact => self.compact_integer(),
        }
    }

    pub(crate) fn double(&mut self) -> Result<f64, DecodeError> {
        let bytes = self.array()?;
        Ok(match self.protocol {
            ThriftProtocol::Binary => f64::from_be_bytes(bytes),
            ThriftProtocol::Compact => f64::from_le_bytes(bytes),
        })
    }

    pub(crate) fn truth(&mut self) -> Result<bool, DecodeError> {
        if let Some(truth) = self.truth_in_header.take() {
            return Ok(truth);
        }
        let byte = self.byte()?;
        Ok(match self.protocol {
            ThriftProtocol::Binary => byte != 0,
            ThriftProtocol::Compact => byte == compact::TRUE,
        })
    }

    /// A text or bytes.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.count()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn count(&mut self) -> Result<u32, DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.binary_count(),
            ThriftProtocol::Compact => self.compact_count(),
        }
    }

    /// Type and number of the next field of a struct, or `None` at its end. `previous` is the number of the field before, 0 before the first.
    pub(crate) fn field(&mut self, previous: &mut i16) -> Result<Option<(ThriftType, i16)>, DecodeError> {
        let field = match self.protocol {
            ThriftProtocol::Binary => self.binary_field()?,
            ThriftProtocol::Compact => self.compact_field(*previous)?,
        };
        if let Some((_, number)) = field {
            *previous = number;
        }
        Ok(field)
    }

    /// Type of the elements of a list or a set, and how many follow.
    fn list(&mut self) -> Result<(ThriftType, u32), DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.binary_list(),
            ThriftProtocol::Compact => self.compact_list(),
        }
    }

    /// How many structs follow.
    pub(crate) fn list_of_structs(&mut self) -> Result<u32, DecodeError> {
        let (kind, count) = self.list()?;
        if kind != ThriftType::Struct && count > 0 {
            return Err(self.error("a list of something other than structs"));
        }
        self.count_elements(kind, count)?;
        Ok(count)
    }

    /// Refuses lists of more structs or lists than its bytes can hold, before one of them is read: empty ones cost time, and bytes do not.
    fn count_elements(&mut self, kind: ThriftType, count: u32) -> Result<(), DecodeError> {
        if !matches!(kind, ThriftType::Struct | ThriftType::List | ThriftType::Set | ThriftType::Map) {
            return Ok(());
        }
        self.elements = self.elements.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        let most = (self.bytes.len() / THRIFT_BYTES_A_STRUCT).max(THRIFT_STRUCTS_MIN);
        if self.elements > most { Err(self.error("more structs than one for each 16 bytes")) } else { Ok(()) }
    }

    /// Types of the keys and the values of a map, and how many pairs follow.
    fn map(&mut self) -> Result<(ThriftType, ThriftType, u32), DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.binary_map(),
            ThriftProtocol::Compact => self.compact_map(),
        }
    }

    /// The header of a message; the struct of its arguments follows.
    pub(crate) fn message(&mut self) -> Result<MessageHeader<'a>, DecodeError> {
        match self.protocol {
            ThriftProtocol::Binary => self.binary_message(),
            ThriftProtocol::Compact => self.compact_message(),
        }
    }

    /// Skips a value of this type. What is open around it is kept in a list, not in the call stack.
    pub(crate) fn skip(&mut self, kind: ThriftType) -> Result<(), DecodeError> {
        enum OpenValue {
            /// Number of its last field.
            Struct(i16),
            /// Values left, and their types in turn: those of a map alternate.
            Values(u64, [ThriftType; 2]),
        }
        let mut open: Vec<OpenValue> = Vec::new();
        let mut next = Some(kind);
        loop {
            if let Some(kind) = next.take() {
                match kind {
                    ThriftType::Bool => drop(self.truth()?),
                    ThriftType::Byte => drop(self.byte()?),
                    ThriftType::I16 => drop(self.i16()?),
                    ThriftType::I32 => drop(self.i32()?),
                    ThriftType::I64 => drop(self.i64()?),
                    ThriftType::Double => drop(self.double()?),
                    ThriftType::Uuid => drop(self.take(16)?),
                    ThriftType::String => drop(self.string()?),
                    ThriftType::Struct => open.push(OpenValue::Struct(0)),
                    ThriftType::Map => {
                        let (key, value, count) = self.map()?;
                        self.count_elements(key, count)?;
                        self.count_elements(value, count)?;
                        open.push(OpenValue::Values(u64::from(count) * 2, [value, key]));
                    }
                    ThriftType::Set | ThriftType::List => {
                        let (kind, count) = self.list()?;
                        self.count_elements(kind, count)?;
                        open.push(OpenValue::Values(u64::from(count), [kind, kind]));
                    }
                    ThriftType::Unknown => return Err(self.error("unknown type of a field")),
                }
                if open.len() > THRIFT_NESTING_MAX {
                    return Err(self.error("fields nested too deep"));
                }
            }
            match open.last_mut() {
                None => return Ok(()),
                Some(OpenValue::Struct(previous)) => match self.field(previous)? {
                    Some((kind, _)) => next = Some(kind),
                    None => drop(open.pop()),
                },
                Some(OpenValue::Values(0, _)) => drop(open.pop()),
                Some(OpenValue::Values(left, kinds)) => {
                    // An even number is left before a key.
                    next = Some(kinds[usize::from(*left % 2 == 0)]);
                    *left -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod writer;
