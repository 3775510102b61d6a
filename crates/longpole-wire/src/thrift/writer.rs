//! Writes thrift for the tests, in either protocol.

use super::{ThriftProtocol, ThriftType};
use crate::leb128;

/// Bytes under way.
pub(crate) struct ThriftWriter {
    protocol: ThriftProtocol,
    pub(crate) out: Vec<u8>,
    /// Number of the last field of each open struct.
    previous: Vec<i16>,
}

impl ThriftWriter {
    pub(crate) fn new(protocol: ThriftProtocol) -> Self {
        ThriftWriter { protocol, out: Vec::new(), previous: Vec::new() }
    }

    fn is_compact(&self) -> bool {
        self.protocol == ThriftProtocol::Compact
    }

    fn code(&self, kind: ThriftType) -> u8 {
        let (binary, compact) = match kind {
            ThriftType::Bool => (2, 1),
            ThriftType::Byte => (3, 3),
            ThriftType::Double => (4, 7),
            ThriftType::I16 => (6, 4),
            ThriftType::I32 => (8, 5),
            ThriftType::I64 => (10, 6),
            ThriftType::String => (11, 8),
            ThriftType::Struct => (12, 12),
            ThriftType::Map => (13, 11),
            ThriftType::Set => (14, 10),
            ThriftType::List => (15, 9),
            ThriftType::Uuid => (16, 13),
            ThriftType::Unknown => (0, 0),
        };
        if self.is_compact() { compact } else { binary }
    }

    pub(crate) fn message(&mut self, kind: u8, name: &str, sequence_number: u8) {
        if self.is_compact() {
            self.out.extend([0x82, kind << 5 | 1, sequence_number]);
            self.string(name.as_bytes());
        } else {
            self.out.extend([0x80, 1, 0, kind]);
            self.string(name.as_bytes());
            self.out.extend([0, 0, 0, sequence_number]);
        }
    }

    /// A struct as a value; `fill` writes its fields.
    pub(crate) fn structure(&mut self, fill: impl FnOnce(&mut Self)) {
        self.previous.push(0);
        fill(self);
        self.previous.pop();
        self.out.push(0);
    }

    /// The header of a field.
    pub(crate) fn field(&mut self, kind: ThriftType, number: i16) {
        let code = self.code(kind);
        self.header(code, number);
    }

    fn header(&mut self, code: u8, number: i16) {
        let previous = std::mem::replace(self.previous.last_mut().expect("a field of a struct"), number);
        match i32::from(number) - i32::from(previous) {
            _ if !self.is_compact() => {
                self.out.push(code);
                self.out.extend(number.to_be_bytes());
            }
            difference @ 1..=15 => self.out.push((difference as u8) << 4 | code),
            _ => {
                self.out.push(code);
                self.integer(i64::from(number));
            }
        }
    }

    /// A truth value as a field.
    pub(crate) fn truth_field(&mut self, number: i16, truth: bool) {
        if self.is_compact() {
            self.header(if truth { 1 } else { 2 }, number);
        } else {
            self.field(ThriftType::Bool, number);
            self.out.push(u8::from(truth));
        }
    }

    pub(crate) fn list(&mut self, kind: ThriftType, count: u32) {
        let code = self.code(kind);
        if !self.is_compact() {
            self.out.push(code);
            self.out.extend(count.to_be_bytes());
        } else if count < 15 {
            self.out.push((count as u8) << 4 | code);
        } else {
            self.out.push(0xf0 | code);
            leb128::put(&mut self.out, u64::from(count));
        }
    }

    pub(crate) fn map(&mut self, key: ThriftType, value: ThriftType, count: u32) {
        let (key, value) = (self.code(key), self.code(value));
        if !self.is_compact() {
            self.out.extend([key, value]);
            self.out.extend(count.to_be_bytes());
        } else if count == 0 {
            self.out.push(0);
        } else {
            leb128::put(&mut self.out, u64::from(count));
            self.out.push(key << 4 | value);
        }
    }

    fn integer(&mut self, number: i64) {
        leb128::put(&mut self.out, (number << 1 ^ number >> 63).cast_unsigned());
    }

    pub(crate) fn i16(&mut self, number: i16) {
        if self.is_compact() { self.integer(i64::from(number)) } else { self.out.extend(number.to_be_bytes()) }
    }

    pub(crate) fn i32(&mut self, number: i32) {
        if self.is_compact() { self.integer(i64::from(number)) } else { self.out.extend(number.to_be_bytes()) }
    }

    pub(crate) fn i64(&mut self, number: i64) {
        if self.is_compact() { self.integer(number) } else { self.out.extend(number.to_be_bytes()) }
    }

    pub(crate) fn double(&mut self, number: f64) {
        self.out.extend(if self.is_compact() { number.to_le_bytes() } else { number.to_be_bytes() });
    }

    pub(crate) fn string(&mut self, bytes: &[u8]) {
        if self.is_compact() {
            leb128::put(&mut self.out, bytes.len() as u64);
        } else {
            self.out.extend((bytes.len() as u32).to_be_bytes());
        }
        self.out.extend_from_slice(bytes);
    }
}
