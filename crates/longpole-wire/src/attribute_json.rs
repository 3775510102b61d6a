//! Attribute values as plain JSON: what OpenTracing clients write into a log, and what formats without types get instead.
//!
//! ```text
//! {"event":"retry","attempt":2,"hosts":["a","b"]}
//! ```

use std::borrow::Cow;

use longpole_model::attribute::{Attribute, AttributeValue};
use serde::de::{MapAccess, SeqAccess};

use crate::base64;
use crate::json::{self, Context, Json};
use crate::json_writer::{not_finite, push_debug, push_display, write_text};

/// Any JSON value.
#[derive(Default)]
pub(crate) struct Plain(pub(crate) AttributeValue);

impl<'de> Json<'de> for Plain {
    const EXPECTED: &'static str = "a value";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(Plain(AttributeValue::Str(text.into())))
    }

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        // Beyond 64 bits with a sign the digits are kept, for a double would lose some.
        Ok(Plain(i64::try_from(number).map(AttributeValue::Int).unwrap_or_else(|_| AttributeValue::Str(number.to_string().into()))))
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Ok(Plain(AttributeValue::Double(number)))
    }

    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        Ok(Plain(AttributeValue::Bool(truth)))
    }

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let context = context.nested()?;
        let mut values = Vec::new();
        while let Some(Plain(value)) = json::element(&mut list, context)? {
            context.count_value()?;
            values.push(value);
        }
        Ok(Plain(AttributeValue::Array(values.into())))
    }

    fn object<A: MapAccess<'de>>(object: A, context: Context<'_>) -> Result<Self, A::Error> {
        Ok(Plain(AttributeValue::KeyValues(PlainObject::object(object, context)?.0.into())))
    }
}

/// The members of a JSON object, in their order; a name may stand twice.
#[derive(Default)]
pub(crate) struct PlainObject(pub(crate) Vec<Attribute>);

impl<'de> Json<'de> for PlainObject {
    const EXPECTED: &'static str = "an object";

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        let context = context.nested()?;
        let mut members = Vec::new();
        while let Some(key) = json::name(&mut object, context)? {
            context.count_value()?;
            let Plain(value) = json::member(&mut object, context)?;
            members.push(Attribute { key: key.into(), value });
        }
        Ok(PlainObject(members))
    }
}

/// Writes a value as JSON. Returns whether reading it gives the same value: bytes become base64, and what is not a number
/// a text.
///
/// Recursion ends: values nest no deeper than [`NESTING_MAX`](crate::limits::NESTING_MAX), which every decoder obeys.
pub(crate) fn write_value(out: &mut String, value: &AttributeValue) -> bool {
    match value {
        AttributeValue::Empty => out.push_str("null"),
        AttributeValue::Str(text) => write_text(out, text),
        AttributeValue::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        AttributeValue::Int(number) => push_display(out, number),
        AttributeValue::Double(number) if number.is_finite() => push_debug(out, *number),
        AttributeValue::Double(number) => {
            write_text(out, not_finite(*number));
            return false;
        }
        AttributeValue::Bytes(bytes) => {
            write_text(out, &base64::encode(bytes));
            return false;
        }
        AttributeValue::Array(values) => {
            out.push('[');
            let mut exact = true;
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                exact &= write_value(out, value);
            }
            out.push(']');
            return exact;
        }
        AttributeValue::KeyValues(pairs) => {
            out.push('{');
            let exact = write_members(out, pairs);
            out.push('}');
            return exact;
        }
    }
    true
}

/// Writes the members of an object, without its braces. Returns whether reading them gives the same.
pub(crate) fn write_members(out: &mut String, pairs: &[Attribute]) -> bool {
    let mut exact = true;
    for (index, pair) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(out, &pair.key);
        out.push(':');
        exact &= write_value(out, &pair.value);
    }
    exact
}

/// A value as a text, for formats that have nothing else: texts as they are, the rest as JSON.
pub(crate) fn as_text(value: &AttributeValue) -> Cow<'_, str> {
    match value {
        AttributeValue::Str(text) => Cow::Borrowed(text),
        AttributeValue::Empty => Cow::Borrowed(""),
        AttributeValue::Double(number) if !number.is_finite() => Cow::Borrowed(not_finite(*number)),
        AttributeValue::Bytes(bytes) => Cow::Owned(base64::encode(bytes)),
        other => {
            let mut out = String::new();
            write_value(&mut out, other);
            Cow::Owned(out)
        }
    }
}
