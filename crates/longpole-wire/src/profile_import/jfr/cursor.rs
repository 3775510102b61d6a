//! Values of a recording, one behind the other.
//!
//! ```text
//! integer   ac 02 = 300       seven bits a byte, the lowest first; a ninth byte has eight
//! float     four bytes, double eight: the highest first
//! text      00 none, 01 empty, 02 number of a constant, 03 UTF-8, 04 UTF-16 as integers, 05 Latin-1
//! ```

use std::borrow::Cow;

/// Why a recording cannot be read.
pub(super) type Fault = &'static str;

pub(super) const CUT: Fault = "the bytes end inside a value";

/// Characters of the longest number of 64 bits, with its sign.
const NUMBER_BYTES_MAX: usize = 20;

/// The number that a text writes. A longer text is not read: classes and settings may each refer to the same one of a million zeros.
pub(super) fn number(text: &str) -> Option<i64> {
    if text.len() > NUMBER_BYTES_MAX { None } else { text.parse().ok() }
}

/// A text, or the number of a constant that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JfrText<'a> {
    Here(Cow<'a, str>),
    Constant(i64),
}

/// Walks over the bytes of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn integer(&mut self) -> Result<i64, Fault> {
        let mut value = 0u64;
        for place in 0..8 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value.cast_signed());
            }
        }
        Ok((value | u64::from(self.byte()?) << 56).cast_signed())
    }

    /// A number of things that take a byte each, at least: no more than there are bytes.
    pub(super) fn count(&mut self) -> Result<usize, Fault> {
        let count = usize::try_from(self.integer()?).map_err(|_| CUT)?;
        if count > self.rest.len() { Err(CUT) } else { Ok(count) }
    }

    pub(super) fn text(&mut self) -> Result<JfrText<'a>, Fault> {
        let text = match self.byte()? {
            0 | 1 => Cow::Borrowed(""),
            2 => return Ok(JfrText::Constant(self.integer()?)),
            3 => {
                let length = self.count()?;
                String::from_utf8_lossy(self.take(length)?)
            }
            4 => {
                let length = self.count()?;
                let units: Result<Vec<u16>, Fault> =
                    (0..length).map(|_| self.integer().map(|unit| u16::try_from(unit).unwrap_or(0xfffd))).collect();
                Cow::Owned(String::from_utf16_lossy(&units?))
            }
            5 => {
                let length = self.count()?;
                Cow::Owned(self.take(length)?.iter().map(|byte| char::from(*byte)).collect())
            }
            _ => return Err("a text in an encoding that nobody knows"),
        };
        Ok(JfrText::Here(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_nine_bytes_at_most() {
        let read = |bytes: &[u8]| Cursor::new(bytes).integer();
        assert_eq!((read(&[0xac, 2]), read(&[0]), read(&[0xff; 9])), (Ok(300), Ok(0), Ok(-1)));
        assert_eq!((read(&[0x80]), read(&[0xff; 8])), (Err(CUT), Err(CUT)));
    }

    #[test]
    fn numbers_in_texts_are_short() {
        assert_eq!((number("-9223372036854775808"), number("101")), (Some(i64::MIN), Some(101)));
        assert_eq!((number(""), number("7 ms"), number(&"0".repeat(21))), (None, None, None));
    }

    #[test]
    fn texts_have_five_encodings() {
        fn read(bytes: &[u8]) -> Result<JfrText<'_>, Fault> {
            Cursor::new(bytes).text()
        }
        let here = |text: &'static str| Ok(JfrText::Here(Cow::Borrowed(text)));
        assert_eq!((read(&[0]), read(&[1]), read(b"\x03\x03\xc3\xa4b")), (here(""), here(""), here("äb")));
        assert_eq!((read(&[4, 2, 0xe4, 1, b'b']), read(&[5, 2, 0xe4, b'b'])), (here("äb"), here("äb")));
        assert_eq!(read(&[2, 7]), Ok(JfrText::Constant(7)));
        assert_eq!((read(&[3, 5, b'a']), read(&[6])), (Err(CUT), Err("a text in an encoding that nobody knows")));
    }
}
