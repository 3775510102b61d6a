//! Ids as numbers and as hex.

use std::borrow::Cow;

use longpole_model::id::{SpanId, TraceId};

use crate::json;

/// A 64-bit trace id as one of 128 bits.
pub(crate) fn trace_id(high: u64, low: u64) -> Option<TraceId> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    TraceId::new(bytes)
}

/// A span id, `None` for zero.
pub(crate) fn span_id(number: u64) -> Option<SpanId> {
    SpanId::new(number.to_be_bytes())
}

/// The number of an id of up to 16 bytes, the highest first.
pub(crate) fn number_of_bytes(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// A trace id of such bytes; shorter ones lack leading zeroes.
pub(crate) fn trace_id_of_bytes(bytes: &[u8]) -> Option<TraceId> {
    TraceId::new(number_of_bytes(bytes)?.to_be_bytes())
}

/// A span id of such bytes.
pub(crate) fn span_id_of_bytes(bytes: &[u8]) -> Option<SpanId> {
    span_id(u64::try_from(number_of_bytes(bytes)?).ok()?)
}

/// The two halves of a trace id.
pub(crate) fn halves(id: TraceId) -> (u64, u64) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = id.bytes();
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes([i, j, k, l, m, n, o, p]))
}

/// The number of a span id.
pub(crate) fn number(id: SpanId) -> u64 {
    u64::from_be_bytes(id.bytes())
}

/// Hex of up to 32 digits without the zeroes before it, as Jaeger writes ids. `None` where it is no id; zero is one here.
pub(crate) fn hex_id(text: &str) -> Option<u128> {
    if text.is_empty() || text.len() > 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// An id that a text names: none, a wrong one, or one.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum HexId {
    #[default]
    None,
    Invalid,
    Valid(u128),
}

impl HexId {
    pub(crate) fn trace_id(self) -> Option<TraceId> {
        match self {
            HexId::Valid(number) => TraceId::new(number.to_be_bytes()),
            HexId::None | HexId::Invalid => None,
        }
    }

    pub(crate) fn span_id(self) -> Option<SpanId> {
        match self {
            HexId::Valid(number) => span_id(u64::try_from(number).ok()?),
            HexId::None | HexId::Invalid => None,
        }
    }

    /// Whether a reference was meant that names nothing.
    pub(crate) fn is_bad_reference(self) -> bool {
        self != HexId::None && self.span_id().is_none()
    }
}

impl<'de> json::Json<'de> for HexId {
    const EXPECTED: &'static str = "an id in hex";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(match hex_id(&text) {
            Some(0) => HexId::None,
            Some(number) => HexId::Valid(number),
            None if text.is_empty() => HexId::None,
            None => HexId::Invalid,
        })
    }
}
