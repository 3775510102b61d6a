//! What is kept of a sampled allocation, and arrays of it that lie in the static memory of the program.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crate::span_context::ContextWords;

/// A sampled allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) bytes: usize,
    /// Its number in the table of stacks.
    pub(crate) stack: u32,
    /// The number of the span's name; 0 for none.
    pub(crate) name: u32,
    /// The span that the thread was in.
    pub(crate) context: ContextWords,
}

/// Samples by their place. Atomics, so that all of it is safe code and lies in memory that is zero when the program starts: pages that nobody
/// writes take none. Who may write a place is a matter of its owner.
pub(super) struct Samples<const N: usize> {
    bytes: [AtomicUsize; N],
    stacks: [AtomicU32; N],
    names: [AtomicU32; N],
    contexts: [[AtomicU64; 4]; N],
}

impl<const N: usize> Samples<N> {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [const { AtomicUsize::new(0) }; N],
            stacks: [const { AtomicU32::new(0) }; N],
            names: [const { AtomicU32::new(0) }; N],
            contexts: [const { [const { AtomicU64::new(0) }; 4] }; N],
        }
    }

    /// Writes a place; one behind the end is nothing.
    pub(super) fn set(&self, at: usize, sample: &Sample) {
        if at >= N {
            return;
        }
        self.bytes[at].store(sample.bytes, Relaxed);
        self.stacks[at].store(sample.stack, Relaxed);
        self.names[at].store(sample.name, Relaxed);
        let ContextWords { trace_id, span_id, tail } = sample.context;
        for (word, value) in self.contexts[at].iter().zip([trace_id[0], trace_id[1], span_id, tail]) {
            word.store(value, Relaxed);
        }
    }

    /// Reads a place.
    pub(super) fn get(&self, at: usize) -> Option<Sample> {
        let [first, second, span_id, tail] = self.contexts.get(at)?.each_ref().map(|word| word.load(Relaxed));
        Some(Sample {
            bytes: self.bytes.get(at)?.load(Relaxed),
            stack: self.stacks.get(at)?.load(Relaxed),
            name: self.names.get(at)?.load(Relaxed),
            context: ContextWords { trace_id: [first, second], span_id, tail },
        })
    }
}
