//! Which instruction belongs to which line, in the three ways that CPython has written it down.

use super::layout::LineTable;

/// The line of the instruction that starts `instruction` bytes into the code; 0 where none is known.
pub(super) fn line_of(kind: LineTable, table: &[u8], first_line: i32, instruction: i64) -> u32 {
    // Before the first instruction a function is where it begins.
    let instruction = instruction.max(0);
    let line = match kind {
        LineTable::Increments => increments(table, first_line, instruction),
        LineTable::Ranges => ranges(table, first_line, instruction),
        LineTable::Locations => locations(table, first_line, instruction),
    };
    line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
}

/// `co_lnotab`: pairs of bytes, what to add to the instruction and, with a sign, to the line. Described in
/// `Objects/lnotab_notes.txt`.
///
/// ```text
/// 00 01  06 01   line +1 at once; line +1 from instruction 6 on
/// ```
fn increments(table: &[u8], first_line: i32, instruction: i64) -> Option<i32> {
    let (mut at, mut line) = (0, first_line);
    for pair in table.chunks_exact(2) {
        at += i64::from(pair[0]);
        if at > instruction {
            break;
        }
        line = line.wrapping_add(i32::from(pair[1].cast_signed()));
    }
    Some(line)
}

/// What stands for "no line" in 3.10.
const NO_LINE: i8 = -128;

/// `co_linetable` of 3.10: pairs of bytes, the number of bytes of instructions and, with a sign, what to add to the line before them.
fn ranges(table: &[u8], first_line: i32, instruction: i64) -> Option<i32> {
    let (mut end, mut line) = (0, first_line);
    for pair in table.chunks_exact(2) {
        end += i64::from(pair[0]);
        let delta = pair[1].cast_signed();
        if delta != NO_LINE {
            line = line.wrapping_add(i32::from(delta));
        }
        if instruction < end {
            return (delta != NO_LINE).then_some(line);
        }
    }
    None
}

/// `co_linetable` from 3.11, described in `Objects/locations.md`: entries that begin with a byte whose highest bit is set. Bits 3 to
/// 6 are a code, bits 0 to 2 one less than the number of instructions, of two bytes each; what follows depends on the code.
///
/// ```text
/// f0 03 01 01 01   code 14, one instruction: line +1 (a signed 3 is -1, 2 is +1), then end line, columns
/// ```
fn locations(table: &[u8], first_line: i32, instruction: i64) -> Option<i32> {
    let (mut at, mut end, mut line) = (0, 0, first_line);
    while let Some(&head) = table.get(at) {
        at += 1;
        if head < 0x80 {
            // Not the beginning of an entry.
            return None;
        }
        end += (i64::from(head & 7) + 1) * 2;
        let mut has_line = true;
        match (head >> 3) & 15 {
            // Same line, columns in one byte.
            0..=9 => at += 1,
            // Line +0, +1, +2, columns in two bytes.
            code @ 10..=12 => {
                line = line.wrapping_add(i32::from(code) - 10);
                at += 2;
            }
            // Line only.
            13 => line = line.wrapping_add(signed(table, &mut at)?),
            // Line, end line, column, end column.
            14 => {
                line = line.wrapping_add(signed(table, &mut at)?);
                for _ in 0..3 {
                    unsigned(table, &mut at)?;
                }
            }
            _ => has_line = false,
        }
        if instruction < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// Six bits a byte, lowest first; the seventh says that more follow.
fn unsigned(table: &[u8], at: &mut usize) -> Option<u32> {
    let mut number = 0u32;
    for shift in (0..32).step_by(6) {
        let byte = *table.get(*at)?;
        *at += 1;
        number |= u32::from(byte & 0x3f).checked_shl(shift)?;
        if byte & 0x40 == 0 {
            return Some(number);
        }
    }
    None
}

/// The same with the sign in the lowest bit.
fn signed(table: &[u8], at: &mut usize) -> Option<i32> {
    let number = unsigned(table, at)?;
    let magnitude = (number >> 1).cast_signed();
    Some(if number & 1 == 1 { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tables of this function, and its lines as `dis.findlinestarts` tells them (each from that instruction on):
    ///
    /// ```python
    /// def work(n):          # line 1
    ///     total = 0
    ///     for i in range(n):
    ///         total += i
    ///
    ///     return total      # line 6
    /// ```
    #[allow(clippy::type_complexity)]
    const OF_WORK: [(LineTable, &[u8], i64, &[(i64, u32)]); 5] = [
        // 3.8.18 and 3.9.18
        (LineTable::Increments, b"\x00\x01\x04\x01\x0c\x01\n\x02", 30, &[(0, 2), (4, 3), (16, 4), (26, 6)]),
        // 3.10.13
        (LineTable::Ranges, b"\x04\x01\x0c\x01\n\x01\x04\x02", 30, &[(0, 2), (4, 3), (16, 4), (26, 6)]),
        // 3.11.2 and 3.11.7
        (
            LineTable::Locations,
            b"\x80\x00\xd8\x0c\r\x80E\xdd\r\x12\x901\x89X\x8cX\xf0\x00\x01\x05\x13\xf0\x00\x01\x05\x13\x88\x01\xd8\x08\r\x90\x11\x89\n\x88\x05\x88\x05\xe0\x0b\x10\x80L",
            56,
            &[(0, 1), (2, 2), (6, 3), (40, 4), (52, 6)],
        ),
        // 3.12.1
        (
            LineTable::Locations,
            b"\x80\x00\xd8\x0c\r\x80E\xdc\r\x12\x901\x8bX\xf2\x00\x01\x05\x13\x88\x01\xd8\x08\r\x90\x11\x89\n\x89\x05\xf0\x03\x01\x05\x13\xf0\x06\x00\x0c\x11\x80L",
            52,
            &[(0, 1), (2, 2), (6, 3), (34, 4), (46, 3), (48, 6)],
        ),
        // 3.13.0
        (
            LineTable::Locations,
            b"\x80\x00\xd8\x0c\r\x80E\xdc\r\x12\x901\x8eX\x88\x01\xd8\x08\r\x89\n\x8a\x05\xf1\x03\x00\x0e\x16\xf0\x06\x00\x0c\x11\x80L",
            54,
            &[(0, 1), (2, 2), (6, 3), (34, 4), (46, 3), (50, 6)],
        ),
    ];

    #[test]
    fn each_table_tells_the_lines_of_a_real_function() {
        for (kind, table, end, starts) in OF_WORK {
            for instruction in (0..end).step_by(2) {
                let (_, line) = starts.iter().rfind(|(start, _)| *start <= instruction).unwrap();
                assert_eq!(line_of(kind, table, 1, instruction), *line, "{kind:?} at {instruction}");
            }
        }
    }

    #[test]
    fn code_without_a_line_has_none_and_before_the_first_instruction_it_is_where_it_begins() {
        assert_eq!(line_of(LineTable::Ranges, &[2, 1, 4, 0x80, 2, 1], 10, 3), 0);
        assert_eq!(line_of(LineTable::Ranges, &[2, 1, 4, 0x80, 2, 1], 10, 6), 12);
        assert_eq!(line_of(LineTable::Locations, &[0xf8], 10, 0), 0);
        assert_eq!(line_of(LineTable::Increments, &[], 10, -2), 10);
    }

    proptest! {
        #[test]
        fn any_table_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), line in any::<i32>(), at in any::<i64>()) {
            for kind in [LineTable::Increments, LineTable::Ranges, LineTable::Locations] {
                line_of(kind, &bytes, line, at);
            }
        }
    }
}
