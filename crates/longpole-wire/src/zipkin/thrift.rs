//! v1 in thrift's binary protocol: a list of structs without a message around it.
//!
//! ```text
//! 0c 00000001                       list of structs, one of them
//!    0a 0001 5b6794d1b1db5ba6          field 1, i64: trace id
//!    0b 0003 00000006 "pulumi"         field 3, text: name
//!    …
//!    00                                end of the struct
//! ```

use std::borrow::Cow;

use longpole_model::attribute::AttributeValue;

use super::raw::{Endpoint, Note, Raw, Tag, address, known};
use crate::convert::{Losses, span_id, trace_id};
use crate::error::DecodeError;
use crate::limits::{Limits, THRIFT_NESTING_MAX};

const STOP: u8 = 0;
const BOOL: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 4;
const I16: u8 = 6;
const I32: u8 = 8;
const I64: u8 = 10;
const STRING: u8 = 11;
const STRUCT: u8 = 12;
const MAP: u8 = 13;
const SET: u8 = 14;
const LIST: u8 = 15;

/// Reads a whole body.
pub(super) fn read<'a>(bytes: &'a [u8], limits: &Limits, losses: &mut Losses) -> Result<Vec<Raw<'a>>, DecodeError> {
    let mut input = Input { bytes, at: 0, values: 0, values_max: limits.values_max, losses };
    let count = input.list_of_structs()?;
    let mut spans = Vec::new();
    for _ in 0..count {
        input.values = 0;
        spans.push(input.span()?);
    }
    if input.at < bytes.len() {
        return Err(input.error("bytes after the end of the list"));
    }
    Ok(spans)
}

struct Input<'a, 'l> {
    bytes: &'a [u8],
    at: usize,
    /// Annotations of the span under way.
    values: u32,
    values_max: u32,
    losses: &'l mut Losses,
}

impl<'a> Input<'a, '_> {
    #[cold]
    fn error(&self, problem: &'static str) -> DecodeError {
        DecodeError::Thrift { problem, offset: self.at }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or_else(|| self.error("bytes end inside a value"))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some(taken) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.error("bytes end inside a value"));
        };
        self.at += N;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.i32()?;
        let length = usize::try_from(length).map_err(|_| self.error("length below zero"))?;
        self.take(length)
    }

    fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let bytes = self.string()?;
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.losses.texts += 1;
                String::from_utf8_lossy(bytes)
            }
        })
    }

    /// The next field of a struct: type and number.
    fn field(&mut self) -> Result<Option<(u8, i16)>, DecodeError> {
        match self.byte()? {
            STOP => Ok(None),
            kind => Ok(Some((kind, self.i16()?))),
        }
    }

    fn count(&mut self) -> Result<u32, DecodeError> {
        let count = self.i32()?;
        u32::try_from(count).map_err(|_| self.error("length below zero"))
    }

    fn list_of_structs(&mut self) -> Result<u32, DecodeError> {
        let kind = self.byte()?;
        let count = self.count()?;
        if kind != STRUCT && count > 0 {
            return Err(self.error("a list of something other than structs"));
        }
        Ok(count)
    }

    fn count_value(&mut self) -> Result<(), DecodeError> {
        self.values += 1;
        if self.values > self.values_max { Err(self.error("too many annotations in one span")) } else { Ok(()) }
    }

    fn span(&mut self) -> Result<Raw<'a>, DecodeError> {
        let mut raw = Raw::default();
        let (mut high, mut low, mut id, mut parent) = (0, 0, 0, 0);
        while let Some(field) = self.field()? {
            match field {
                (I64, 1) => low = self.i64()? as u64,
                (STRING, 3) => raw.name = self.text()?,
                (I64, 4) => id = self.i64()? as u64,
                (I64, 5) => parent = self.i64()? as u64,
                (LIST, 6) => {
                    for _ in 0..self.list_of_structs()? {
                        let note = self.note()?;
                        raw.notes.push(note);
                    }
                }
                (LIST, 8) => {
                    for _ in 0..self.list_of_structs()? {
                        let tag = self.tag()?;
                        raw.tags.push(tag);
                    }
                }
                (BOOL, 9) => raw.debug = self.byte()? != 0,
                (I64, 10) => raw.start_micros = known(i128::from(self.i64()?)),
                (I64, 11) => raw.duration_micros = Some(i128::from(self.i64()?)),
                (I64, 12) => high = self.i64()? as u64,
                (kind, _) => self.skip(kind)?,
            }
        }
        raw.trace_id = trace_id(high, low);
        raw.span_id = span_id(id);
        raw.parent = span_id(parent);
        Ok(raw)
    }

    fn note(&mut self) -> Result<Note<'a>, DecodeError> {
        self.count_value()?;
        let mut note = Note { micros: 0, text: Cow::Borrowed(""), by: None };
        while let Some(field) = self.field()? {
            match field {
                (I64, 1) => note.micros = i128::from(self.i64()?),
                (STRING, 2) => note.text = self.text()?,
                (STRUCT, 3) => note.by = Some(self.endpoint()?),
                (kind, _) => self.skip(kind)?,
            }
        }
        Ok(note)
    }

    fn tag(&mut self) -> Result<Tag<'a>, DecodeError> {
        self.count_value()?;
        let mut tag = Tag { key: Cow::Borrowed(""), value: AttributeValue::Empty, by: None };
        let (mut bytes, mut kind): (&[u8], i32) = (&[], 6);
        while let Some(field) = self.field()? {
            match field {
                (STRING, 1) => tag.key = self.text()?,
                (STRING, 2) => bytes = self.string()?,
                (I32, 3) => kind = self.i32()?,
                (STRUCT, 4) => tag.by = Some(self.endpoint()?),
                (kind, _) => self.skip(kind)?,
            }
        }
        tag.value = value(kind, bytes);
        Ok(tag)
    }

    fn endpoint(&mut self) -> Result<Endpoint<'a>, DecodeError> {
        let mut endpoint = Endpoint::default();
        while let Some(field) = self.field()? {
            match field {
                (I32, 1) => {
                    let four = address(&self.array::<4>()?);
                    if endpoint.address.is_empty() {
                        endpoint.address = four;
                    }
                }
                (I16, 2) => endpoint.port = u32::from(self.i16()? as u16),
                (STRING, 3) => endpoint.service = self.text()?,
                (STRING, 4) => {
                    let sixteen = address(self.string()?);
                    if !sixteen.is_empty() {
                        endpoint.address = sixteen;
                    }
                }
                (kind, _) => self.skip(kind)?,
            }
        }
        Ok(endpoint)
    }

    /// Skips a value of this type. What is open around it is kept in a list, not in the call stack.
    fn skip(&mut self, kind: u8) -> Result<(), DecodeError> {
        enum OpenValue {
            Struct,
            /// Values left, and their types in turn: those of a map alternate.
            Values(u64, [u8; 2]),
        }
        let mut open: Vec<OpenValue> = Vec::new();
        let mut next = Some(kind);
        loop {
            if let Some(kind) = next.take() {
                match kind {
                    BOOL | BYTE => drop(self.take(1)?),
                    I16 => drop(self.take(2)?),
                    I32 => drop(self.take(4)?),
                    DOUBLE | I64 => drop(self.take(8)?),
                    STRING => drop(self.string()?),
                    STRUCT => open.push(OpenValue::Struct),
                    MAP => {
                        let (key, value) = (self.byte()?, self.byte()?);
                        open.push(OpenValue::Values(u64::from(self.count()?) * 2, [value, key]));
                    }
                    SET | LIST => {
                        let kind = self.byte()?;
                        open.push(OpenValue::Values(u64::from(self.count()?), [kind, kind]));
                    }
                    _ => return Err(self.error("unknown type of a field")),
                }
                if open.len() > THRIFT_NESTING_MAX {
                    return Err(self.error("fields nested too deep"));
                }
            }
            match open.last_mut() {
                None => return Ok(()),
                Some(OpenValue::Struct) => match self.field()? {
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

/// The value of a binary annotation, by the type it says; one whose bytes do not fit its type is kept as bytes.
fn value(kind: i32, bytes: &[u8]) -> AttributeValue {
    let int = |number: Option<i64>| number.map_or_else(|| AttributeValue::Bytes(bytes.to_vec().into()), AttributeValue::Int);
    match kind {
        0 if bytes.len() == 1 => AttributeValue::Bool(bytes != [0]),
        2 => int(bytes.try_into().ok().map(|bytes| i64::from(i16::from_be_bytes(bytes)))),
        3 => int(bytes.try_into().ok().map(|bytes| i64::from(i32::from_be_bytes(bytes)))),
        4 => int(bytes.try_into().ok().map(i64::from_be_bytes)),
        5 if bytes.len() == 8 => bytes.try_into().map_or(AttributeValue::Empty, |bytes| AttributeValue::Double(f64::from_be_bytes(bytes))),
        6 => match std::str::from_utf8(bytes) {
            Ok(text) => AttributeValue::Str(text.into()),
            Err(_) => AttributeValue::Bytes(bytes.to_vec().into()),
        },
        _ => AttributeValue::Bytes(bytes.to_vec().into()),
    }
}
