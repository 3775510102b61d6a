//! What is kept of a sampled allocation, and arrays of it that lie in the static memory of the program.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::span_context::ContextWords;

/// A sampled allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeapSample {
    pub(crate) bytes: usize,
    /// Its number in the table of stacks.
    pub(crate) stack: u32,
    /// The number of the span's name; 0 for none.
    pub(crate) name: u32,
    /// The span that the thread was in.
    pub(crate) context: ContextWords,
}

/// Samples by their place. Atomics, so that all of it is safe code and lies in memory that is zero when the program starts: pages that nobody
/// writes take none. The owner of an array says which thread may write a place.
pub(super) struct Samples<const N: usize>([[AtomicU64; 6]; N]);

impl<const N: usize> Samples<N> {
    pub(super) const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; 6] }; N])
    }

    /// Writes a place; one behind the end is nothing.
    pub(super) fn set(&self, at: usize, sample: &HeapSample) {
        let Some(place) = self.0.get(at) else { return };
        let HeapSample { bytes, stack, name, context: ContextWords { trace_id, span_id, tail } } = *sample;
        let words = [bytes as u64, u64::from(stack) << 32 | u64::from(name), trace_id[0], trace_id[1], span_id, tail];
        for (word, value) in place.iter().zip(words) {
            word.store(value, Relaxed);
        }
    }

    /// Reads a place.
    pub(super) fn get(&self, at: usize) -> Option<HeapSample> {
        let [bytes, numbers, first, second, span_id, tail] = self.0.get(at)?.each_ref().map(|word| word.load(Relaxed));
        Some(HeapSample {
            bytes: bytes as usize,
            stack: (numbers >> 32) as u32,
            name: numbers as u32,
            context: ContextWords { trace_id: [first, second], span_id, tail },
        })
    }
}
