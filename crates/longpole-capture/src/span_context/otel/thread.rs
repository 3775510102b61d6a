//! The thread context of OTEP 4947, read from the copied stack of a sample.
//!
//! Except for the main thread, a C library puts the record of a thread and its static thread-local storage at the top of the thread's stack.
//! So a copy that reaches that far holds all that is needed, as it was when the thread was interrupted:
//!
//! ```text
//!   sp                                     variable            thread pointer
//!   ├─ frames, innermost first ─┤ … record │ pointer ─┐ … │ self │ … │ self │ tid …
//!                                 ▲───────────────────┘
//! ```
//!
//! The reader does not follow a pointer out of the copy: memory read later may belong to another moment. A copy may reach beyond the stack, into
//! the storage of the main thread, which glibc puts there; the thread id in the storage shows whose it is.

use longpole_model::{ContextRecord, SpanId, TraceId};

/// Bytes of a record before its attributes.
const RECORD_BYTES: usize = 28;

/// Bytes in which static thread-local storage lies below the thread pointer.
const STATIC_STORAGE_BYTES_MAX: u64 = 1 << 20;

/// A thread's record is aligned to this at least.
const ALIGNMENT: usize = 16;

/// Where glibc and musl keep the id of a thread, from its thread pointer.
const TID_AT: [u64; 2] = [720, 48];

/// What a copied stack says of the span that is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextInStack {
    /// Something.
    Context(ContextRecord),
    /// The copy does not hold what would say it.
    OutOfReach,
}

impl ContextInStack {
    /// The context; absent if it is out of reach.
    pub(crate) fn or_absent(self) -> ContextRecord {
        match self {
            ContextInStack::Context(context) => context,
            ContextInStack::OutOfReach => ContextRecord::Absent,
        }
    }
}

/// Follows the variable of thread `tid`, an id as the thread itself knows it, in the bytes copied from `sp` upwards. `hint` is the
/// thread's own: its thread pointer, once it was found.
pub fn find(dump: &[u8], sp: u64, tid: u32, offset: i64, hint: &mut Option<u64>) -> ContextInStack {
    if !hint.is_some_and(|pointer| is_thread_pointer(dump, sp, pointer, tid)) {
        *hint = find_thread_pointer(dump, sp, tid);
    }
    let Some(pointer) = *hint else { return ContextInStack::OutOfReach };
    match word(dump, sp, pointer.wrapping_add_signed(offset)) {
        None => ContextInStack::OutOfReach,
        Some(0) => ContextInStack::Context(ContextRecord::NoSpan),
        Some(record) => at(dump, sp, record).map_or(ContextInStack::OutOfReach, |record| ContextInStack::Context(read(record))),
    }
}

/// What a record says. One that is not valid may be a detached one, or one that is being written: it says nothing.
fn read(record: &[u8; RECORD_BYTES]) -> ContextRecord {
    match (record[24], TraceId::from_slice(&record[..16]), SpanId::from_slice(&record[16..24])) {
        (1, Some(trace_id), Some(span_id)) => ContextRecord::Span { trace_id, span_id },
        (1, ..) => ContextRecord::NoSpan,
        _ => ContextRecord::Absent,
    }
}

/// The distance that a word of the dynamic linker's says, if it is one.
pub(super) fn offset_of_word(word: u64) -> Option<i64> {
    let offset = word.cast_signed();
    (offset.unsigned_abs() <= STATIC_STORAGE_BYTES_MAX && offset != 0).then_some(offset)
}

fn find_thread_pointer(dump: &[u8], sp: u64, tid: u32) -> Option<u64> {
    let first = (sp.wrapping_neg() % ALIGNMENT as u64) as usize;
    let mut places = (first..dump.len()).step_by(ALIGNMENT).map(|at| sp.wrapping_add(at as u64));
    places.find(|place| is_thread_pointer(dump, sp, *place, tid))
}

/// Whether the C library's record of this thread begins there: its first word is its own address, and the id stands where it should.
fn is_thread_pointer(dump: &[u8], sp: u64, place: u64, tid: u32) -> bool {
    let is_own = |from: u64| at::<4>(dump, sp, place.wrapping_add(from)).is_some_and(|id| u32::from_ne_bytes(*id) == tid);
    word(dump, sp, place) == Some(place) && TID_AT.into_iter().any(is_own)
}

fn word(dump: &[u8], sp: u64, address: u64) -> Option<u64> {
    at(dump, sp, address).map(|bytes| u64::from_ne_bytes(*bytes))
}

/// The bytes at an address, if they were copied.
fn at<const N: usize>(dump: &[u8], sp: u64, address: u64) -> Option<&[u8; N]> {
    let from = usize::try_from(address.checked_sub(sp)?).ok()?;
    dump.get(from..)?.first_chunk()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SP: u64 = 0x7f00_0000_1008;
    /// Where the parts of the example lie, from the stack pointer.
    const RECORD: usize = 0x302;
    /// Where the main thread has its storage, behind the stack of another one.
    const MAIN: usize = 0xa08;
    const VARIABLE: usize = 0x438;
    const THREAD: usize = 0x478;
    const OFFSET: i64 = VARIABLE as i64 - THREAD as i64;

    /// A stack with the record of glibc's thread at its top.
    fn stack(record: &[u8], pointer: u64) -> Vec<u8> {
        let mut dump = vec![0x11; 0x1000];
        let mut put = |at: usize, bytes: &[u8]| dump[at..at + bytes.len()].copy_from_slice(bytes);
        put(RECORD, record);
        put(VARIABLE, &pointer.to_ne_bytes());
        for (thread, tid) in [(THREAD, 4711u32), (MAIN, 4700)] {
            put(thread, &(SP + thread as u64).to_ne_bytes());
            put(thread + TID_AT[0] as usize, &tid.to_ne_bytes());
        }
        // An empty list, which points to itself as well.
        put(0x88, &(SP + 0x88).to_ne_bytes());
        put(0x90, &(SP + 0x88).to_ne_bytes());
        dump
    }

    fn record(valid: u8) -> Vec<u8> {
        let ids = u128::from_str_radix("4bf92f3577b34da6a3ce929d0e0e4736", 16).unwrap().to_be_bytes();
        [&ids[..], &0x00f0_67aa_0ba9_02b7_u64.to_be_bytes(), &[valid, 1, 0, 0]].concat()
    }

    fn found(dump: &[u8]) -> ContextInStack {
        find(dump, SP, 4711, OFFSET, &mut None)
    }

    #[test]
    fn the_pointer_is_followed_to_its_record() {
        let here = SP + RECORD as u64;
        let span = ContextRecord::Span {
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(),
            span_id: "00f067aa0ba902b7".parse().unwrap(),
        };
        let dump = stack(&record(1), here);
        let mut hint = None;
        assert_eq!(find(&dump, SP, 4711, OFFSET, &mut hint), ContextInStack::Context(span));
        assert_eq!(hint, Some(SP + THREAD as u64));
        assert_eq!(
            find(&dump[16..], SP + 16, 4711, OFFSET, &mut hint),
            ContextInStack::Context(span),
            "the stack pointer moved, the thread did not"
        );
        assert_eq!(found(&stack(&record(0), here)), ContextInStack::Context(ContextRecord::Absent), "detached, or being written");
        assert_eq!(found(&stack(&[&[0; 24][..], &[1, 0, 0, 0]].concat(), here)), ContextInStack::Context(ContextRecord::NoSpan));
        assert_eq!(found(&stack(&record(1), 0)), ContextInStack::Context(ContextRecord::NoSpan));
    }

    #[test]
    fn what_the_copy_does_not_hold_is_out_of_reach() {
        let here = SP + RECORD as u64;
        assert_eq!(found(&stack(&record(1), 0x5555_0000)), ContextInStack::OutOfReach, "on the heap");
        assert_eq!(found(&stack(&record(1), here)[..THREAD]), ContextInStack::OutOfReach, "too deep");
        assert_eq!(find(&stack(&record(1), here), SP, 4712, OFFSET, &mut None), ContextInStack::OutOfReach, "of other threads only");
        assert_eq!(find(&stack(&record(1), here), SP, 4711, i64::MIN, &mut None), ContextInStack::OutOfReach);
    }

    #[test]
    fn musl_has_the_id_of_the_thread_in_its_record() {
        let mut dump = stack(&record(1), SP + RECORD as u64);
        let [glibc, musl] = TID_AT.map(|at| THREAD + at as usize);
        dump[glibc] ^= 1;
        assert_eq!(found(&dump), ContextInStack::OutOfReach);
        dump[musl..musl + 4].copy_from_slice(&4711u32.to_ne_bytes());
        assert!(matches!(found(&dump), ContextInStack::Context(ContextRecord::Span { .. })));
    }

    #[test]
    fn a_word_of_the_linker_is_a_distance_or_the_address_of_something_else() {
        assert_eq!(offset_of_word((-64i64).cast_unsigned()), Some(-64));
        assert_eq!(offset_of_word(0x7f00_0000_0000), None);
        assert_eq!(offset_of_word(0), None);
    }

    proptest! {
        #[test]
        fn any_dump_is_survived(
            dump in prop::collection::vec(any::<u8>(), 0..300), sp in any::<u64>(), hint in any::<Option<u64>>(), offset in any::<i64>(), own in any::<bool>(),
        ) {
            let mut dump = dump;
            if own && dump.len() > 100 {
                let place = sp.wrapping_add(32);
                dump[32..40].copy_from_slice(&place.to_ne_bytes());
                dump[48..56].copy_from_slice(&place.to_ne_bytes());
            }
            find(&dump, sp, 4711, offset, &mut hint.clone());
        }
    }
}
