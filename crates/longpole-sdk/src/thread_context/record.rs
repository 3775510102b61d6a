//! The context record: what is current on a thread now.

use std::mem::{align_of, offset_of, size_of};
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

use crate::span_context::ContextWords;

/// `LONGPOLE-CTX1` between bytes that are not ASCII.
const MAGIC: [u8; 16] = *b"\x9cLONGPOLE-CTX1\xf3\xa7";
const VERSION: u32 = 1;

/// The magic of a record that readers recognise.
pub(super) const MAGIC_WORDS: [u64; 2] = in_words(MAGIC);

/// A magic in two words of the host's order, as they lie in memory.
pub(super) const fn in_words(magic: [u8; 16]) -> [u64; 2] {
    let (mut low, mut high) = ([0; 8], [0; 8]);
    let mut i = 0;
    while i < 8 {
        low[i] = magic[i];
        high[i] = magic[i + 8];
        i += 1;
    }
    [u64::from_ne_bytes(low), u64::from_ne_bytes(high)]
}

/// The record. Only its own thread touches it, yet the fields are atomics: the reader looks at the memory between any two
/// instructions of that thread, so each store must happen, once, and in this order. A relaxed store is a plain `mov`.
#[repr(C, align(16))]
pub(super) struct Record {
    magic: [AtomicU64; 2],
    version: AtomicU32,
    pub(super) thread_id: AtomicU32,
    sequence: AtomicU64,
    pub(super) trace_id: [AtomicU64; 2],
    span_id: AtomicU64,
    /// `valid`, `flags`, attribute size and padding, stored as one word: they change together.
    tail: AtomicU64,
}

const _: () = assert!(size_of::<Record>() == 64 && align_of::<Record>() == 16);
const _: () = assert!(offset_of!(Record, version) == 16 && offset_of!(Record, thread_id) == 20 && offset_of!(Record, sequence) == 24);
const _: () = assert!(offset_of!(Record, trace_id) == 32 && offset_of!(Record, span_id) == 48 && offset_of!(Record, tail) == 56);

impl Record {
    /// A record that no reader recognises: it must not be one before it is where it stays, because a moved record leaves a
    /// copy behind on the stack.
    pub(super) const fn blank() -> Self {
        Self::with_magic([0, 0])
    }

    pub(super) const fn with_magic(magic: [u64; 2]) -> Self {
        Self {
            magic: [AtomicU64::new(magic[0]), AtomicU64::new(magic[1])],
            version: AtomicU32::new(VERSION),
            thread_id: AtomicU32::new(0),
            sequence: AtomicU64::new(0),
            trace_id: [const { AtomicU64::new(0) }; 2],
            span_id: AtomicU64::new(0),
            tail: AtomicU64::new(0),
        }
    }

    /// Writes the owner's id into a record that is used for the first time.
    pub(super) fn sign(&self, thread_id: u32) {
        self.thread_id.store(thread_id, Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Makes a blank record one that readers recognise, or blank again.
    pub(super) fn set_magic(&self, magic: [u64; 2]) {
        self.magic[0].store(magic[0], Relaxed);
        self.magic[1].store(magic[1], Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// What its own thread wrote last; no span in the middle of a change, which a signal handler finds.
    #[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
    pub(super) fn read(&self) -> ContextWords {
        let (sequence, tail) = (self.sequence.load(Relaxed), self.tail.load(Relaxed));
        if sequence % 2 != 0 || tail == 0 {
            return ContextWords::NONE;
        }
        let trace_id = [self.trace_id[0].load(Relaxed), self.trace_id[1].load(Relaxed)];
        ContextWords { trace_id, span_id: self.span_id.load(Relaxed), tail }
    }

    /// Says what is current, in the order the format asks for.
    #[inline(always)]
    pub(super) fn write(&self, context: ContextWords) {
        self.write_around(context, || ());
    }

    /// The same, and does something while the record says that it is being written.
    #[inline(always)]
    pub(super) fn write_around<T>(&self, context: ContextWords, meanwhile: impl FnOnce() -> T) -> T {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.tail.store(0, Relaxed);
        compiler_fence(Ordering::SeqCst);
        let result = meanwhile();
        compiler_fence(Ordering::SeqCst);
        self.trace_id[0].store(context.trace_id[0], Relaxed);
        self.trace_id[1].store(context.trace_id[1], Relaxed);
        self.span_id.store(context.span_id, Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.tail.store(context.record_tail(), Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.sequence.store(sequence.wrapping_add(2), Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span_context::SpanContext;
    use crate::thread_context::tests::worked_example;

    impl Record {
        /// The bytes as a reader sees them.
        fn bytes(&self) -> Vec<u8> {
            let words = [&self.magic[0], &self.magic[1]];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
            bytes.extend(self.version.load(Relaxed).to_ne_bytes());
            bytes.extend(self.thread_id.load(Relaxed).to_ne_bytes());
            for word in [&self.sequence, &self.trace_id[0], &self.trace_id[1], &self.span_id, &self.tail] {
                bytes.extend(word.load(Relaxed).to_ne_bytes());
            }
            bytes
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_record_is_the_worked_example_of_the_format_byte_for_byte() {
        let record = Record::with_magic(MAGIC_WORDS);
        record.thread_id.store(4711, Relaxed);
        record.sequence.store(40, Relaxed);
        let context = SpanContext::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        record.write(ContextWords::new(&context));
        assert_eq!(record.bytes(), worked_example(1));
    }

    #[test]
    fn no_span_is_all_zero_behind_an_even_sequence() {
        let record = Record::with_magic(MAGIC_WORDS);
        let context = SpanContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 };
        record.write(ContextWords::new(&context));
        record.write(ContextWords::NONE);
        let bytes = record.bytes();
        assert_eq!(bytes[24..32], 4u64.to_ne_bytes());
        assert_eq!(bytes[32..64], [0; 32]);
    }
}
