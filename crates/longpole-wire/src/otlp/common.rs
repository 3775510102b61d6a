//! Attributes, resources and scopes: what traces share with the other signals.
//!
//! The decoding half is the second walk: [`schema::survey`](super::schema::survey) has been over the same bytes, so a field
//! has the shape its number promises, texts are UTF-8 and the nesting is bounded. Where a message stands twice, or a
//! field in it, the rules of protobuf hold: fields merge, the last scalar wins, lists grow.

use longpole_model::attribute::{AttributeValue, Attributes};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::ValueRef;

use crate::error::DecodeError;
use crate::number::uint32;
use crate::protobuf::{Reader, Value, put_bytes, put_message, put_set_bytes, put_set_fixed64, put_set_integer};

/// A pair as a decoder lends it.
pub(super) type PairRef<'a> = (&'a str, ValueRef<'a>);

/// A text of a surveyed request.
pub(super) fn text<'a>(reader: &Reader<'a>) -> &'a str {
    // The survey replaced what is not UTF-8, so nothing is lost here.
    std::str::from_utf8(reader.bytes()).unwrap_or_default()
}

/// Reads one `KeyValue`.
pub(super) fn pair<'a>(mut reader: Reader<'a>) -> Result<PairRef<'a>, DecodeError> {
    let mut pair = ("", ValueRef::Empty);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(key)) => pair.0 = text(&key),
            (2, Value::Bytes(inner)) => value(inner, &mut pair.1)?,
            _ => {}
        }
    }
    Ok(pair)
}

/// Reads an `AnyValue` over what is already known of it.
pub(super) fn value<'a>(mut reader: Reader<'a>, into: &mut ValueRef<'a>) -> Result<(), DecodeError> {
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(bytes)) => *into = ValueRef::Str(text(&bytes)),
            (2, Value::Varint(number)) => *into = ValueRef::Bool(number != 0),
            (3, Value::Varint(number)) => *into = ValueRef::Int(number as i64),
            (4, Value::Fixed64(bits)) => *into = ValueRef::Double(f64::from_bits(bits)),
            (5, Value::Bytes(inner)) => list(inner, into)?,
            (6, Value::Bytes(inner)) => pairs(inner, into)?,
            (7, Value::Bytes(bytes)) => *into = ValueRef::Bytes(bytes.bytes()),
            // An index into a table that only profiles have: to be treated as absent.
            (8, Value::Varint(_)) => *into = ValueRef::Empty,
            _ => {}
        }
    }
    Ok(())
}

fn list<'a>(mut reader: Reader<'a>, into: &mut ValueRef<'a>) -> Result<(), DecodeError> {
    let mut values = match std::mem::take(into) {
        ValueRef::Array(values) => values,
        _ => Vec::new(),
    };
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            let mut element = ValueRef::Empty;
            value(inner, &mut element)?;
            values.push(element);
        }
    }
    *into = ValueRef::Array(values);
    Ok(())
}

fn pairs<'a>(mut reader: Reader<'a>, into: &mut ValueRef<'a>) -> Result<(), DecodeError> {
    let mut pairs = match std::mem::take(into) {
        ValueRef::KeyValues(pairs) => pairs,
        _ => Vec::new(),
    };
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            pairs.push(pair(inner)?);
        }
    }
    *into = ValueRef::KeyValues(pairs);
    Ok(())
}

fn push_owned(attributes: &mut Attributes, reader: Reader<'_>) -> Result<(), DecodeError> {
    let (key, value) = pair(reader)?;
    attributes.push(key, value.to_owned());
    Ok(())
}

/// Reads a `Resource` into the resource; returns the count of attributes the emitter dropped, if it says one.
pub(super) fn resource(mut reader: Reader<'_>, into: &mut Resource) -> Result<Option<u32>, DecodeError> {
    let mut dropped = None;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(inner)) => push_owned(&mut into.attributes, inner)?,
            (2, Value::Varint(count)) => dropped = Some(uint32(count)),
            _ => {}
        }
    }
    Ok(dropped)
}

/// Reads an `InstrumentationScope` into the scope; returns the count of attributes the emitter dropped, if it
/// says one.
pub(super) fn scope(mut reader: Reader<'_>, into: &mut Scope) -> Result<Option<u32>, DecodeError> {
    let mut dropped = None;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(name)) => into.name = text(&name).to_owned(),
            (2, Value::Bytes(version)) => into.version = text(&version).to_owned(),
            (3, Value::Bytes(inner)) => push_owned(&mut into.attributes, inner)?,
            (4, Value::Varint(count)) => dropped = Some(uint32(count)),
            _ => {}
        }
    }
    Ok(dropped)
}

/// Writes attributes as `KeyValue`s of this field.
pub(super) fn put_attributes(out: &mut Vec<u8>, number: u32, attributes: &Attributes) {
    for attribute in attributes.iter() {
        put_pair(out, number, &attribute.key, &attribute.value);
    }
}

fn put_pair(out: &mut Vec<u8>, number: u32, key: &str, value: &AttributeValue) {
    put_message(out, number, |out| {
        put_bytes(out, 1, key.as_bytes());
        put_value(out, 2, value);
    });
}

fn put_value(out: &mut Vec<u8>, number: u32, value: &AttributeValue) {
    put_message(out, number, |out| match value {
        AttributeValue::Empty => {}
        AttributeValue::Str(text) => put_set_bytes(out, 1, text.as_bytes()),
        AttributeValue::Bool(truth) => put_set_integer(out, 2, u64::from(*truth)),
        AttributeValue::Int(number) => put_set_integer(out, 3, *number as u64),
        AttributeValue::Double(number) => put_set_fixed64(out, 4, number.to_bits()),
        AttributeValue::Array(values) => put_message(out, 5, |out| {
            for value in values {
                put_value(out, 1, value);
            }
        }),
        AttributeValue::KeyValues(pairs) => put_message(out, 6, |out| {
            for pair in pairs {
                put_pair(out, 1, &pair.key, &pair.value);
            }
        }),
        AttributeValue::Bytes(bytes) => put_set_bytes(out, 7, bytes),
    });
}
