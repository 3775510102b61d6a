//! Reads the context record of our SDK from copied stack bytes.
//!
//! `docs/formats/span-context.md` describes the layout and the duties of a reader.
//!
//! ```text
//! sp                                                        sp + dump.len()
//! |..frames..|..frames..|..top of the thread's stack: TLS..|
//!                              ^ multiple of 16: magic | version | tid | sequence | trace id | span id | valid …
//! ```

use longpole_model::{ContextRecord, SpanId, TraceId};

/// The layout this reader knows.
const VERSION: u32 = 1;

/// Size of a record.
const RECORD_BYTES: usize = 64;

/// Records lie at multiples of this.
const ALIGNMENT: usize = 16;

/// Finds the record of thread `tid` in the bytes copied from `sp` upwards.
///
/// `hint` belongs to the thread: the address of its record, once found, which the next call tries first. `dump` must hold only bytes that were
/// copied.
pub fn find(dump: &[u8], sp: u64, tid: u32, hint: &mut Option<u64>) -> ContextRecord {
    if let Some(address) = *hint
        && let Some(at) = address.checked_sub(sp).and_then(|at| usize::try_from(at).ok())
        && let Some(found) = read(dump, at, tid)
    {
        return found;
    }
    // The first address at or above the stack pointer that is a multiple of 16.
    let first = (sp.wrapping_neg() % ALIGNMENT as u64) as usize;
    let Some(aligned) = dump.get(first..) else { return ContextRecord::Absent };
    let (lines, _) = aligned.as_chunks::<ALIGNMENT>();
    // Lines are compared as numbers, which is fast: most samples have no record, so all their bytes are searched.
    let magic = u128::from_ne_bytes(ContextRecord::MAGIC);
    for (i, _) in lines.iter().enumerate().filter(|(_, line)| u128::from_ne_bytes(**line) == magic) {
        let at = first + i * ALIGNMENT;
        if let Some(found) = read(dump, at, tid) {
            *hint = sp.checked_add(at as u64);
            return found;
        }
    }
    ContextRecord::Absent
}

/// The record at this offset; `None` unless a whole one of this thread and version is there.
fn read(dump: &[u8], at: usize, tid: u32) -> Option<ContextRecord> {
    let record = dump.get(at..)?.first_chunk::<RECORD_BYTES>()?;
    if record[..16] != ContextRecord::MAGIC || word(record, 16) != VERSION || word(record, 20) != tid {
        return None;
    }
    // An odd sequence marks a write under way.
    let sequence = u64::from_ne_bytes(*record[24..].first_chunk()?);
    if sequence % 2 == 1 {
        return Some(ContextRecord::Torn);
    }
    let ids = (TraceId::from_slice(&record[32..48]), SpanId::from_slice(&record[48..56]));
    Some(match (record[56], ids) {
        (1, (Some(trace_id), Some(span_id))) => ContextRecord::Span { trace_id, span_id },
        _ => ContextRecord::NoSpan,
    })
}

fn word(record: &[u8; RECORD_BYTES], at: usize) -> u32 {
    u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SP: u64 = 0x7f00_0000_1008;

    /// The worked example of the format's page, as its hex stands there.
    fn example() -> Vec<u8> {
        let hex = "9c4c4f4e47504f4c452d4354583 1f3a7 01000000 67120000 2a00000000000000 \
                   4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7 01 01 0000 00000000";
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn dump_with(record: &[u8], at: usize) -> Vec<u8> {
        let mut dump = vec![0x11; 4096];
        dump[at..at + record.len()].copy_from_slice(record);
        dump
    }

    fn the_span() -> ContextRecord {
        ContextRecord::Span { trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(), span_id: "00f067aa0ba902b7".parse().unwrap() }
    }

    #[test]
    fn the_worked_example_is_read_and_its_address_is_kept() {
        let mut hint = None;
        let dump = dump_with(&example(), 8 + 160);
        assert_eq!(find(&dump, SP, 4711, &mut hint), the_span());
        assert_eq!(hint, Some(SP + 168));
        // The stack pointer moved, the record did not.
        assert_eq!(find(&dump[16..], SP + 16, 4711, &mut hint), the_span());
    }

    #[test]
    fn only_own_whole_aligned_records_of_a_known_version_count() {
        let absent = |dump: &[u8], tid| find(dump, SP, tid, &mut None) == ContextRecord::Absent;
        assert!(absent(&dump_with(&example(), 8 + 160), 4712), "another thread's");
        assert!(absent(&dump_with(&example(), 160), 4711), "not a multiple of 16");
        assert!(absent(&dump_with(&example(), 8 + 160)[..8 + 160 + 63], 4711), "cut off");
        let mut next_version = example();
        next_version[16] = 2;
        assert!(absent(&dump_with(&next_version, 8 + 160), 4711));
        let mut both = dump_with(&next_version, 8 + 160);
        both[8 + 320..8 + 384].copy_from_slice(&example());
        assert_eq!(find(&both, SP, 4711, &mut None), the_span(), "a record that does not count does not end the search");
    }

    #[test]
    fn odd_is_torn_and_invalid_is_no_span() {
        let mut torn = example();
        torn[24] = 0x2b;
        assert_eq!(find(&dump_with(&torn, 8), SP, 4711, &mut None), ContextRecord::Torn);
        let mut invalid = example();
        invalid[56] = 0;
        assert_eq!(find(&dump_with(&invalid, 8), SP, 4711, &mut None), ContextRecord::NoSpan);
        let mut zero = example();
        zero[48..56].fill(0);
        assert_eq!(find(&dump_with(&zero, 8), SP, 4711, &mut None), ContextRecord::NoSpan);
    }

    #[test]
    fn a_hint_that_no_longer_holds_is_replaced() {
        let mut hint = Some(SP + 8);
        let dump = dump_with(&example(), 8 + 480);
        assert_eq!(find(&dump, SP, 4711, &mut hint), the_span());
        assert_eq!(hint, Some(SP + 488));
        let mut above = Some(u64::MAX);
        assert_eq!(find(&dump, SP, 4711, &mut above), the_span());
    }

    proptest! {
        #[test]
        fn any_dump_and_any_hint_are_survived(
            dump in prop::collection::vec(any::<u8>(), 0..300), sp in any::<u64>(), hint in any::<Option<u64>>(), planted in any::<bool>(), at in 0usize..300,
        ) {
            let mut dump = dump;
            if planted && at < dump.len() {
                let end = dump.len().min(at + 16);
                dump[at..end].copy_from_slice(&ContextRecord::MAGIC[..end - at]);
            }
            let mut hint = hint;
            find(&dump, sp, 4711, &mut hint);
        }
    }
}
