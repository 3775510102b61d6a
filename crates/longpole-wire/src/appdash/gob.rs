//! Go's encoding/gob, as far as a reader of `up.trace` needs it.
//!
//! ```text
//! 31 7f 03 01 01 0f "memoryStoreData" …   message of 0x31 bytes: type id -64 defines type 64, a struct
//! …
//! fe 0ce3  ff80                           message of 0x0ce3 bytes: a value of type 64
//!    01                                     next field (0 + 1 - 1 = 0, "Trace")
//!       01                                     a map of one pair
//!          f8 1122334455667788                    its key
//! ```
//!
//! | item | bytes |
//! |---|---|
//! | unsigned | below 0x80 itself; else 0x100 - n in one byte, and n bytes, most significant first |
//! | signed | unsigned u: u >> 1, all bits flipped where u is odd |
//! | struct | (distance to the next field, value) until distance 0; zero fields do not appear |
//! | text, bytes | length, bytes |
//! | list, map | count, elements or pairs |
//!
//! Everything is read from a stream and nothing by recursion: what is open around a value that is skipped stands in a list.

use std::collections::HashMap;
use std::io::Read;

use crate::error::FileError;

/// Ids of the types that every stream knows.
const BOOL: i64 = 1;
const INT: i64 = 2;
pub(super) const UINT: i64 = 3;
const FLOAT: i64 = 4;
pub(super) const BYTES: i64 = 5;
pub(super) const STRING: i64 = 6;
const COMPLEX: i64 = 7;

/// Name of the format in errors.
pub(super) const FORMAT: &str = "appdash";

/// How much is read from the file at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Type definitions of one stream, and fields of one struct. Pulumi's file has nine types of at most two fields.
const TYPES_MAX: usize = 4096;

/// Length of a name of a type or field. Go's longest are generic types, some 100 bytes.
const NAME_BYTES_MAX: u64 = 64 << 10;

/// Lists and structs that may be open around a value that is skipped: they are only counted, sixteen bytes each.
const OPEN_MAX: usize = 1 << 20;

/// What a type is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    /// Names and types of the fields.
    Struct(Vec<(String, i64)>),
    /// A list or an array of this.
    List(i64),
    /// Key and value.
    Map(i64, i64),
    /// Encodes itself, as bytes.
    Opaque,
}

/// A gob stream from a file.
pub(super) struct Stream<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Offset in the file of the start of the buffer.
    base: u64,
    /// Bytes left of the message under way.
    left: u64,
    types: HashMap<i64, Type>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: R) -> Self {
        Stream { input, buffer: vec![0; BUFFER_BYTES], at: 0, end: 0, base: 0, left: u64::MAX, types: HashMap::new() }
    }

    /// Offset in the file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    #[cold]
    pub(super) fn broken(&self, problem: &'static str) -> FileError {
        FileError::Broken { problem, format: FORMAT, offset: self.offset() }
    }

    /// The type of this id, where the stream defined it.
    pub(super) fn type_of(&self, id: i64) -> Option<&Type> {
        self.types.get(&id)
    }

    /// Number and type of a field of a struct.
    pub(super) fn field(&self, of: i64, name: &str) -> Option<(i64, i64)> {
        match self.types.get(&of) {
            Some(Type::Struct(fields)) => {
                let index = fields.iter().position(|(known, _)| known == name)?;
                Some((i64::try_from(index).ok()?, fields[index].1))
            }
            _ => None,
        }
    }

    /// Reads more. The caller reports the spans before a cut.
    fn fill(&mut self) -> Result<(), FileError> {
        self.base += self.end as u64;
        (self.at, self.end) = (0, 0);
        loop {
            match self.input.read(&mut self.buffer) {
                Ok(0) => return Err(FileError::Truncated { offset: self.base, spans: 0 }),
                Ok(length) => {
                    self.end = length;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::Read(error)),
            }
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, FileError> {
        if self.at == self.end {
            self.fill()?;
        }
        if self.left == 0 {
            return Err(self.broken("a value reaches beyond its message"));
        }
        self.left -= 1;
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    #[inline]
    pub(super) fn uint(&mut self) -> Result<u64, FileError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let length = usize::from(first.wrapping_neg());
        if length > 8 {
            return Err(self.broken("an integer longer than 64 bits"));
        }
        let mut value = 0;
        for _ in 0..length {
            value = value << 8 | u64::from(self.byte()?);
        }
        Ok(value)
    }

    pub(super) fn int(&mut self) -> Result<i64, FileError> {
        let value = self.uint()?;
        Ok(if value & 1 == 0 { (value >> 1) as i64 } else { !((value >> 1) as i64) })
    }

    /// Passes over bytes, or keeps them.
    fn raw(&mut self, mut length: u64, mut keep: Option<&mut Vec<u8>>) -> Result<(), FileError> {
        if length > self.left {
            return Err(self.broken("a value reaches beyond its message"));
        }
        self.left -= length;
        while length > 0 {
            if self.at == self.end {
                self.fill()?;
            }
            let now = (self.end - self.at).min(usize::try_from(length).unwrap_or(usize::MAX));
            if let Some(kept) = keep.as_deref_mut() {
                kept.extend_from_slice(&self.buffer[self.at..self.at + now]);
            }
            self.at += now;
            length -= now as u64;
        }
        Ok(())
    }

    /// A text or bytes; `None`, skipped, where it is longer than this.
    pub(super) fn bytes(&mut self, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
        let length = self.uint()?;
        if length > bytes_max {
            self.raw(length, None)?;
            return Ok(None);
        }
        // Memory grows as bytes come, whatever the length says.
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(BUFFER_BYTES));
        self.raw(length, Some(&mut bytes))?;
        Ok(Some(bytes))
    }

    fn name(&mut self) -> Result<String, FileError> {
        let Some(bytes) = self.bytes(NAME_BYTES_MAX)? else { return Err(self.broken("a name of a type is too long")) };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The number of the next field, or `None` at the end of the struct.
    #[inline]
    pub(super) fn next_field(&mut self, before: i64) -> Result<Option<i64>, FileError> {
        let distance = self.uint()?;
        match i64::try_from(distance).ok().and_then(|distance| before.checked_add(distance)) {
            _ if distance == 0 => Ok(None),
            Some(field) if field < TYPES_MAX as i64 => Ok(Some(field)),
            _ => Err(self.broken("a field number out of range")),
        }
    }

    /// Reads messages up to the first value; returns its type. Its bytes follow.
    pub(super) fn value(&mut self) -> Result<i64, FileError> {
        loop {
            self.left = u64::MAX;
            let length = self.uint()?;
            self.left = length;
            let id = self.int()?;
            if id >= 0 {
                return Ok(id);
            }
            let defined = self.definition()?;
            if self.types.len() >= TYPES_MAX {
                return Err(self.broken("too many types"));
            }
            self.types.insert(id.checked_neg().unwrap_or(i64::MAX), defined);
            if self.left > 0 {
                return Err(self.broken("a definition of a type that is longer than it says"));
            }
        }
    }

    /// A `wireType`: one of its fields is set.
    fn definition(&mut self) -> Result<Type, FileError> {
        let mut defined = Type::Opaque;
        let mut number = -1;
        while let Some(field) = self.next_field(number)? {
            number = field;
            match field {
                // An array has its length behind the element, which its values say again.
                0 | 1 => {
                    let [element, _] = self.element_types()?;
                    defined = Type::List(element);
                }
                2 => defined = self.struct_type()?,
                3 => {
                    let [key, value] = self.element_types()?;
                    defined = Type::Map(key, value);
                }
                4..=6 => {
                    self.element_types()?;
                }
                _ => return Err(self.broken("an unknown kind of type")),
            }
        }
        Ok(defined)
    }

    /// `commonType`: name and id, which say nothing that is needed.
    fn common(&mut self) -> Result<(), FileError> {
        let mut number = -1;
        while let Some(field) = self.next_field(number)? {
            number = field;
            match field {
                0 => drop(self.name()?),
                1 => drop(self.int()?),
                _ => return Err(self.broken("an unknown field of a type")),
            }
        }
        Ok(())
    }

    /// The struct of a list, array or map type: common part, and up to two numbers.
    fn element_types(&mut self) -> Result<[i64; 2], FileError> {
        let mut types = [0; 2];
        let mut number = -1;
        while let Some(field) = self.next_field(number)? {
            number = field;
            match field {
                0 => self.common()?,
                1 => types[0] = self.int()?,
                2 => types[1] = self.int()?,
                _ => return Err(self.broken("an unknown field of a type")),
            }
        }
        Ok(types)
    }

    fn struct_type(&mut self) -> Result<Type, FileError> {
        let mut fields = Vec::new();
        let mut number = -1;
        while let Some(field) = self.next_field(number)? {
            number = field;
            match field {
                0 => self.common()?,
                1 => {
                    let count = self.uint()?;
                    if count > TYPES_MAX as u64 {
                        return Err(self.broken("a struct of too many fields"));
                    }
                    for _ in 0..count {
                        fields.push(self.field_type()?);
                    }
                }
                _ => return Err(self.broken("an unknown field of a type")),
            }
        }
        Ok(Type::Struct(fields))
    }

    fn field_type(&mut self) -> Result<(String, i64), FileError> {
        let (mut name, mut id) = (String::new(), 0);
        let mut number = -1;
        while let Some(field) = self.next_field(number)? {
            number = field;
            match field {
                0 => name = self.name()?,
                1 => id = self.int()?,
                _ => return Err(self.broken("an unknown field of a type")),
            }
        }
        Ok((name, id))
    }

    /// Skips a value of this type.
    pub(super) fn skip(&mut self, id: i64) -> Result<(), FileError> {
        enum OpenValue {
            /// Type, and number of the field before.
            Struct(i64, i64),
            /// Values left, and their types in turn: those of a map alternate.
            Values(u64, [i64; 2]),
        }
        let mut open = Vec::new();
        let mut next = Some(id);
        loop {
            if let Some(id) = next.take() {
                match id {
                    BOOL | INT | UINT | FLOAT => drop(self.uint()?),
                    COMPLEX => drop((self.uint()?, self.uint()?)),
                    BYTES | STRING => {
                        let length = self.uint()?;
                        self.raw(length, None)?;
                    }
                    _ => match self.types.get(&id) {
                        Some(Type::Struct(_)) => open.push(OpenValue::Struct(id, -1)),
                        Some(&Type::List(element)) => open.push(OpenValue::Values(self.uint()?, [element; 2])),
                        Some(&Type::Map(key, value)) => {
                            let pairs = self.uint()?;
                            open.push(OpenValue::Values(pairs.saturating_mul(2), [value, key]));
                        }
                        Some(Type::Opaque) => {
                            let length = self.uint()?;
                            self.raw(length, None)?;
                        }
                        None => return Err(self.broken("a value of an unknown type")),
                    },
                }
                if open.len() > OPEN_MAX {
                    return Err(self.broken("values nested too deep"));
                }
            }
            match open.last_mut() {
                None => return Ok(()),
                Some(OpenValue::Struct(of, number)) => {
                    let (of, before) = (*of, *number);
                    match self.next_field(before)? {
                        None => drop(open.pop()),
                        Some(field) => {
                            *number = field;
                            next = Some(self.field_id(of, field)?);
                        }
                    }
                }
                Some(OpenValue::Values(0, _)) => drop(open.pop()),
                Some(OpenValue::Values(left, kinds)) => {
                    // An even number is left before a key.
                    next = Some(kinds[usize::from(*left % 2 == 0)]);
                    *left -= 1;
                }
            }
        }
    }

    /// Type of a field by its number.
    pub(super) fn field_id(&self, of: i64, field: i64) -> Result<i64, FileError> {
        let fields = match self.types.get(&of) {
            Some(Type::Struct(fields)) => fields,
            _ => return Err(self.broken("a value of another type than its definition")),
        };
        let found = usize::try_from(field).ok().and_then(|index| fields.get(index));
        found.map(|(_, id)| *id).ok_or_else(|| self.broken("a field that its type does not have"))
    }
}

/// Writes an unsigned integer.
pub(super) fn put_uint(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    if value < 0x80 {
        out.push(bytes[7]);
        return;
    }
    let zeroes = bytes.iter().take_while(|byte| **byte == 0).count();
    // Minus the number of the bytes that follow.
    let [lowest, ..] = (zeroes as u64).wrapping_sub(8).to_le_bytes();
    out.push(lowest);
    out.extend_from_slice(&bytes[zeroes..]);
}

/// Writes a signed integer.
pub(super) fn put_int(out: &mut Vec<u8>, value: i64) {
    let shifted = (value as u64) << 1;
    put_uint(out, if value < 0 { !shifted } else { shifted });
}

/// Writes a text or bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
