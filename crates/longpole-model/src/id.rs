//! Trace and span ids: non-zero by construction, lower-case hex outside, parsed strictly.

use std::fmt;
use std::str::FromStr;

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdError {
    /// The text has another length than the id has hex digits.
    Length {
        /// Digits the id has.
        expected: usize,
        /// Bytes the text has.
        found: usize,
    },
    /// A byte is not a hex digit.
    Digit {
        /// Offset of the byte.
        offset: usize,
    },
    /// All digits are zero: the field's spelling of "no id".
    Zero,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdError::Length { expected, found } => {
                write!(f, "an id of {expected} hex digits, found {found} characters")
            }
            IdError::Digit { offset } => write!(f, "not a hex digit at offset {offset}"),
            IdError::Zero => f.write_str("the id is zero"),
        }
    }
}

impl std::error::Error for IdError {}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], IdError> {
    let bytes = text.as_bytes();
    if bytes.len() != 2 * N {
        return Err(IdError::Length { expected: 2 * N, found: bytes.len() });
    }
    let mut out = [0u8; N];
    for (i, slot) in out.iter_mut().enumerate() {
        let high = hex_digit(bytes[2 * i]).ok_or(IdError::Digit { offset: 2 * i })?;
        let low = hex_digit(bytes[2 * i + 1]).ok_or(IdError::Digit { offset: 2 * i + 1 })?;
        *slot = high << 4 | low;
    }
    Ok(out)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for byte in bytes {
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Bytes of the id.
            pub const BYTES: usize = $bytes;

            /// All bits set: an id that no generator gives, for who has to name one that is nobody's.
            pub const MAX: $name = $name([0xff; $bytes]);

            /// The id, or `None` where all bytes are zero.
            pub fn new(bytes: [u8; $bytes]) -> Option<Self> {
                (bytes != [0; $bytes]).then_some(Self(bytes))
            }

            /// The id, or `None` where the slice has another length or is all zero.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                Self::new(bytes.try_into().ok()?)
            }

            /// The bytes, in W3C order.
            pub fn bytes(&self) -> [u8; $bytes] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(parse_hex(text)?).ok_or(IdError::Zero)
            }
        }
    };
}

id! {
    /// Id of a trace: 16 bytes, not all zero.
    TraceId, 16
}
id! {
    /// Id of a span: 8 bytes, not all zero. Unique within its trace only.
    SpanId, 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_what_they_parse_and_refuse_the_rest() {
        let text = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(text.parse::<TraceId>().unwrap().to_string(), text);
        assert_eq!("00".repeat(16).parse::<TraceId>(), Err(IdError::Zero));
        assert_eq!("0af7".parse::<SpanId>(), Err(IdError::Length { expected: 16, found: 4 }));
        assert_eq!("0af765191-cd43dd".parse::<SpanId>(), Err(IdError::Digit { offset: 9 }));
    }
}
