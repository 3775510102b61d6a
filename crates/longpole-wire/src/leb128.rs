//! LEB128, the integers of variable length that protobuf, AppDash's framing and DWARF share: seven bits a byte, the lowest
//! first, and the eighth bit set in all bytes but the last.
//!
//! ```text
//! 300 = 0b10_0101100  ─►  0xac 0x02
//! ```

/// Appends an unsigned integer.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

/// Why bytes do not begin with an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leb128Fault {
    /// They end inside it.
    Truncated,
    /// It has more than 64 bits.
    TooLong,
}

/// The integer at the beginning of the bytes, and how many of them it takes.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Result<(u64, usize), Leb128Fault> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate() {
        // Nine bytes hold 63 bits: the tenth has room for one, and there is no eleventh.
        if i == 9 && byte > 1 {
            return Err(Leb128Fault::TooLong);
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(Leb128Fault::Truncated)
}

/// The seven lowest bits.
fn low_bits(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_a_byte_for_seven_bits() {
        for (value, bytes) in
            [(0, &[0][..]), (127, &[0x7f]), (128, &[0x80, 1]), (300, &[0xac, 2]), (u64::MAX, &[&[0xff; 9][..], &[1]].concat())]
        {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(read(&[bytes, &[7]].concat()), Ok((value, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), Err(Leb128Fault::Truncated));
        }
        assert_eq!(read(&[&[0xff; 9][..], &[2]].concat()), Err(Leb128Fault::TooLong));
    }
}
