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
        }
    }
}
