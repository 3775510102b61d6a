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
use crate::limits::Limits;
use crate::thrift::{ThriftProtocol, ThriftReader, ThriftType};

/// Reads a whole body.
pub(super) fn read<'a>(bytes: &'a [u8], limits: &Limits, losses: &mut Losses) -> Result<Vec<Raw<'a>>, DecodeError> {
    let reader = ThriftReader::new(bytes, ThriftProtocol::Binary, "list of spans");
    let mut input = Input { reader, values: 0, values_max: limits.values_max, losses };
    let count = input.reader.list_of_structs()?;
    if count as usize > limits.zipkin_spans_max {
        return Err(input.reader.error("more spans than a request may have"));
    }
    let mut spans = Vec::new();
    for _ in 0..count {
        input.values = 0;
        spans.push(input.span()?);
    }
    input.reader.end("bytes after the end of the list")?;
    Ok(spans)
}

struct Input<'a, 'l> {
    reader: ThriftReader<'a>,
    /// Annotations of the span under way.
    values: u32,
    values_max: u32,
    losses: &'l mut Losses,
}

impl<'a> Input<'a, '_> {
    fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        Ok(self.losses.text(self.reader.string()?))
    }

    fn count_value(&mut self) -> Result<(), DecodeError> {
        self.values += 1;
        if self.values > self.values_max { Err(self.reader.error("too many annotations in one span")) } else { Ok(()) }
    }

    fn span(&mut self) -> Result<Raw<'a>, DecodeError> {
        let mut raw = Raw::default();
        let (mut high, mut low, mut id, mut parent) = (0, 0, 0, 0);
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I64, 1) => low = self.reader.i64()? as u64,
                (ThriftType::String, 3) => raw.name = self.text()?,
                (ThriftType::I64, 4) => id = self.reader.i64()? as u64,
                (ThriftType::I64, 5) => parent = self.reader.i64()? as u64,
                (ThriftType::List, 6) => {
                    for _ in 0..self.reader.list_of_structs()? {
                        let note = self.note()?;
                        raw.notes.push(note);
                    }
                }
                (ThriftType::List, 8) => {
                    for _ in 0..self.reader.list_of_structs()? {
                        let tag = self.tag()?;
                        raw.tags.push(tag);
                    }
                }
                (ThriftType::Bool, 9) => raw.debug = self.reader.truth()?,
                (ThriftType::I64, 10) => raw.start_micros = known(i128::from(self.reader.i64()?)),
                (ThriftType::I64, 11) => raw.duration_micros = Some(i128::from(self.reader.i64()?)),
                (ThriftType::I64, 12) => high = self.reader.i64()? as u64,
                (kind, _) => self.reader.skip(kind)?,
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
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I64, 1) => note.micros = i128::from(self.reader.i64()?),
                (ThriftType::String, 2) => note.text = self.text()?,
                (ThriftType::Struct, 3) => note.by = Some(self.endpoint()?),
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(note)
    }

    fn tag(&mut self) -> Result<Tag<'a>, DecodeError> {
        self.count_value()?;
        let mut tag = Tag { key: Cow::Borrowed(""), value: AttributeValue::Empty, by: None };
        let (mut bytes, mut kind): (&[u8], i32) = (&[], 6);
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::String, 1) => tag.key = self.text()?,
                (ThriftType::String, 2) => bytes = self.reader.string()?,
                (ThriftType::I32, 3) => kind = self.reader.i32()?,
                (ThriftType::Struct, 4) => tag.by = Some(self.endpoint()?),
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        tag.value = value(kind, bytes);
        Ok(tag)
    }

    fn endpoint(&mut self) -> Result<Endpoint<'a>, DecodeError> {
        let mut endpoint = Endpoint::default();
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I32, 1) => {
                    let four = address(&self.reader.i32()?.to_be_bytes());
                    if endpoint.address.is_empty() {
                        endpoint.address = four;
                    }
                }
                (ThriftType::I16, 2) => endpoint.port = u32::from(self.reader.i16()? as u16),
                (ThriftType::String, 3) => endpoint.service = self.text()?,
                (ThriftType::String, 4) => {
                    let sixteen = address(self.reader.string()?);
                    if !sixteen.is_empty() {
                        endpoint.address = sixteen;
                    }
                }
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(endpoint)
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
