//! Attributes: typed key–value pairs, as OTLP's `KeyValue`.

use crate::interned_text::Text;
use crate::thin_vec::ThinVec;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum AttributeValue {
    /// OTLP's `AnyValue` with nothing set.
    #[default]
    Empty,
    /// A text.
    Str(Text),
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// Bytes.
    Bytes(ThinVec<u8>),
    /// A list.
    Array(ThinVec<AttributeValue>),
    /// Nested pairs.
    KeyValues(ThinVec<Attribute>),
}

impl AttributeValue {
    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            AttributeValue::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, where it is one, or a text that spells one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttributeValue::Int(number) => Some(*number),
            AttributeValue::Str(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// One pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Key, as sent.
    pub key: Text,
    /// Value.
    pub value: AttributeValue,
}

/// Pairs in the order they were sent; a key may stand twice, as in OTLP.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes(pub Vec<Attribute>);

impl Attributes {
    /// The value of the last pair of this key.
    pub fn get(&self, key: &str) -> Option<&AttributeValue> {
        self.0.iter().rev().find(|a| a.key == key).map(|a| &a.value)
    }

    /// The text of the last pair of this key, where it is one.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Appends a pair.
    pub fn push(&mut self, key: impl Into<Text>, value: AttributeValue) {
        self.0.push(Attribute { key: key.into(), value });
    }

    /// The pairs.
    pub fn iter(&self) -> std::slice::Iter<'_, Attribute> {
        self.0.iter()
    }
}
