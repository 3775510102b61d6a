//! Parts of numbers, and numbers of rows, without a cast that could lose something.

/// The lower and the upper half.
pub(crate) fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

/// A varint of protobuf as a `uint32` or a `bool` field reads it: the lowest 32 bits of it, as its encoding page wants.
pub(crate) fn uint32(varint: u64) -> u32 {
    halves(varint).0
}

/// The same of an `int32` or an `enum`, whose negative numbers take ten bytes.
pub(crate) fn int32(varint: u64) -> i32 {
    uint32(varint).cast_signed()
}

/// The number of the next row of a table with `rows` rows. No table that fits into memory has more than 32 bits count.
pub(crate) fn row(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The nearest number of 64 bits.
pub(crate) fn saturated(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_32_bits_take_the_lowest_ones() {
        assert_eq!(halves(0x0123_4567_89ab_cdef), (0x89ab_cdef, 0x0123_4567));
        assert_eq!((uint32(1 << 32 | 7), int32(u64::MAX)), (7, -1));
        assert_eq!((row(7), row(usize::MAX)), (7, u32::MAX));
        assert_eq!((saturated(-7), saturated(i128::MIN), saturated(i128::MAX)), (-7, i64::MIN, i64::MAX));
    }
}
