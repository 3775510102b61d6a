//! Attributes from OTLP's JSON, without a tree of values in between: a recording has such a text for each span with a number.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longpole_model::{Attribute, AttributeValue, Text};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::memory::kept_texts::KeptTexts;

/// Reads the attributes of a row. Each value is an object of one member, as [`pairs_json`](super::attributes) writes it.
pub(super) fn pairs_from_json(texts: &mut KeptTexts, json: &str) -> serde_json::Result<Vec<Attribute>> {
    let mut json = serde_json::Deserializer::from_str(json);
    let pairs = Pairs(texts).deserialize(&mut json)?;
    json.end()?;
    Ok(pairs)
}

/// A text, and what it becomes.
struct Word<F>(F);

impl<'de, T, F: FnOnce(&str) -> Option<T>> DeserializeSeed<'de> for Word<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Word<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text of OTLP")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).ok_or_else(|| E::custom(format_args!("unexpected text {text:?}")))
    }
}

/// A list of keys and values.
struct Pairs<'t>(&'t mut KeptTexts);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = Vec<Attribute>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Attribute>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = Vec<Attribute>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of attributes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Attribute>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = list.next_element_seed(Pair(self.0))? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// `{"key": …, "value": …}`.
struct Pair<'t>(&'t mut KeptTexts);

impl<'de> DeserializeSeed<'de> for Pair<'_> {
    type Value = Attribute;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Attribute, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pair<'_> {
    type Value = Attribute;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Attribute, A::Error> {
        let (mut key, mut value): (Option<Text>, Option<AttributeValue>) = (None, None);
        while let Some(is_key) = members.next_key_seed(Word(|name: &str| {
            Some(match name {
                "key" => Some(true),
                "value" => Some(false),
                _ => None,
            })
        }))? {
            match is_key {
                Some(true) => key = Some(members.next_value_seed(Word(|text: &str| Some(self.0.text(text))))?),
                Some(false) => value = Some(members.next_value_seed(AnyValue(self.0))?),
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        match (key, value) {
            (Some(key), Some(value)) => Ok(Attribute { key, value }),
            _ => Err(A::Error::custom("an attribute without key or value")),
        }
    }
}

/// What the one member of a value is called.
enum ValueKind {
    Str,
    Bool,
    Int,
    Double,
    Bytes,
    Array,
    KeyValues,
}

/// `{"stringValue": …}` and the like; `{}` is empty.
struct AnyValue<'t>(&'t mut KeptTexts);

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = AttributeValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AttributeValue, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = AttributeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<AttributeValue, A::Error> {
        let kind = |name: &str| {
            Some(match name {
                "stringValue" => ValueKind::Str,
                "boolValue" => ValueKind::Bool,
                "intValue" => ValueKind::Int,
                "doubleValue" => ValueKind::Double,
                "bytesValue" => ValueKind::Bytes,
                "arrayValue" => ValueKind::Array,
                "kvlistValue" => ValueKind::KeyValues,
                _ => return None,
            })
        };
        let Some(kind) = members.next_key_seed(Word(kind))? else { return Ok(AttributeValue::Empty) };
        let value = match kind {
            ValueKind::Str => AttributeValue::Str(members.next_value_seed(Word(|text: &str| Some(self.0.text(text))))?),
            ValueKind::Bool => AttributeValue::Bool(members.next_value()?),
            ValueKind::Int => AttributeValue::Int(members.next_value_seed(Word(|text: &str| text.parse().ok()))?),
            // Rust reads "NaN", "Infinity" and "-Infinity" as proto3 spells them.
            ValueKind::Double => AttributeValue::Double(members.next_value_seed(Word(|text: &str| text.parse().ok()))?),
            ValueKind::Bytes => AttributeValue::Bytes(members.next_value_seed(Word(|text: &str| STANDARD.decode(text).ok()))?.into()),
            ValueKind::Array => AttributeValue::Array(members.next_value_seed(Wrapped(Values(self.0)))?.into()),
            ValueKind::KeyValues => AttributeValue::KeyValues(members.next_value_seed(Wrapped(Pairs(self.0)))?.into()),
        };
        match members.next_key::<IgnoredAny>()? {
            None => Ok(value),
            Some(_) => Err(A::Error::custom("a value of several kinds")),
        }
    }
}

/// A list of values.
struct Values<'t>(&'t mut KeptTexts);

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = Vec<AttributeValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<AttributeValue>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Vec<AttributeValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<AttributeValue>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(AnyValue(self.0))? {
            values.push(value);
        }
        Ok(values)
    }
}

/// `{"values": …}` around a list.
struct Wrapped<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Wrapped<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Wrapped<S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<S::Value, A::Error> {
        let values = |name: &str| (name == "values").then_some(());
        let Some(()) = members.next_key_seed(Word(values))? else { return Err(A::Error::missing_field("values")) };
        let list = members.next_value_seed(self.0)?;
        match members.next_key::<IgnoredAny>()? {
            None => Ok(list),
            Some(_) => Err(A::Error::custom("more than values")),
        }
    }
}
