//! The stacks of samples, each kept once, and what was allocated with each of them.
//!
//! ```text
//!  heads   hash → number of the newest stack with it → next → 0
//!  stacks  7: hash, words 120..143, next, objects and bytes allocated so far
//!  words   return addresses, innermost first
//! ```
//!
//! Nothing is ever removed: a program has as many stacks as it has ways to allocate. One thread at a time uses the table.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// Stacks that are kept, and the one that stands for all others.
const STACKS: usize = 1 << 15;

/// Addresses of all stacks: 64 for each.
const WORDS: usize = 1 << 21;

const HEADS: usize = 1 << 15;

/// Number of the stack that stands for those that the table has no room for.
pub(crate) const NOT_KEPT: u32 = 0;

struct Stack {
    hash: AtomicU64,
    start: AtomicU32,
    len: AtomicU32,
    next: AtomicU32,
    /// Bits of `f64`: the sum of weights, which are no whole numbers.
    objects: AtomicU64,
    bytes: AtomicU64,
}

/// What was allocated with a stack since the start, or in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Allocated {
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
}

/// The table.
pub(super) struct StackTable {
    heads: [AtomicU32; HEADS],
    stacks: [Stack; STACKS],
    words: [AtomicUsize; WORDS],
    /// Numbers given so far.
    count: AtomicU32,
    words_used: AtomicUsize,
    /// Samples whose stack had no room.
    pub(super) not_kept: AtomicU64,
}

impl StackTable {
    pub(super) const fn new() -> Self {
        Self {
            heads: [const { AtomicU32::new(0) }; HEADS],
            stacks: [const {
                Stack {
                    hash: AtomicU64::new(0),
                    start: AtomicU32::new(0),
                    len: AtomicU32::new(0),
                    next: AtomicU32::new(0),
                    objects: AtomicU64::new(0),
                    bytes: AtomicU64::new(0),
                }
            }; STACKS],
            words: [const { AtomicUsize::new(0) }; WORDS],
            count: AtomicU32::new(0),
            words_used: AtomicUsize::new(0),
            not_kept: AtomicU64::new(0),
        }
    }

    /// The number of a stack, which is kept if it is new and there is room.
    pub(super) fn number(&self, frames: &[usize]) -> u32 {
        let hash = hash_of(frames);
        let head = &self.heads[(hash >> 32) as usize % HEADS];
        let mut number = head.load(Relaxed);
        while number != NOT_KEPT {
            let Some(stack) = self.stacks.get(number as usize) else { break };
            if stack.hash.load(Relaxed) == hash && self.words_of(stack).is_some_and(|words| is_same(words, frames)) {
                return number;
            }
            number = stack.next.load(Relaxed);
        }
        let (number, start) = (self.count.load(Relaxed) + 1, self.words_used.load(Relaxed));
        let (Some(stack), Some(words)) = (self.stacks.get(number as usize), self.words.get(start..start + frames.len())) else {
            self.not_kept.fetch_add(1, Relaxed);
            return NOT_KEPT;
        };
        for (word, frame) in words.iter().zip(frames) {
            word.store(*frame, Relaxed);
        }
        stack.hash.store(hash, Relaxed);
        stack.start.store(start as u32, Relaxed);
        stack.len.store(frames.len() as u32, Relaxed);
        stack.next.store(head.load(Relaxed), Relaxed);
        head.store(number, Relaxed);
        self.count.store(number, Relaxed);
        self.words_used.store(start + frames.len(), Relaxed);
        number
    }

    /// Adds an allocation to those of a stack.
    pub(super) fn add(&self, number: u32, objects: f64, bytes: f64) {
        let Some(stack) = self.stacks.get(number as usize) else { return };
        for (sum, more) in [(&stack.objects, objects), (&stack.bytes, bytes)] {
            sum.store((f64::from_bits(sum.load(Relaxed)) + more).to_bits(), Relaxed);
        }
    }

    /// Numbers of stacks, the one for all others among them.
    pub(super) fn len(&self) -> usize {
        self.count.load(Relaxed) as usize + 1
    }

    /// What was allocated with each stack since the start.
    pub(super) fn allocated(&self) -> impl Iterator<Item = Allocated> + '_ {
        let of = |sum: &AtomicU64| f64::from_bits(sum.load(Relaxed));
        self.stacks.iter().take(self.len()).map(move |stack| Allocated { objects: of(&stack.objects), bytes: of(&stack.bytes) })
    }

    /// The return addresses of a stack, innermost first.
    pub(super) fn frames(&self, number: u32) -> Vec<usize> {
        let words = self.stacks.get(number as usize).and_then(|stack| self.words_of(stack));
        words.unwrap_or_default().iter().map(|word| word.load(Relaxed)).collect()
    }

    fn words_of(&self, stack: &Stack) -> Option<&[AtomicUsize]> {
        let start = stack.start.load(Relaxed) as usize;
        self.words.get(start..start + stack.len.load(Relaxed) as usize)
    }
}

fn is_same(words: &[AtomicUsize], frames: &[usize]) -> bool {
    words.len() == frames.len() && words.iter().zip(frames).all(|(word, frame)| word.load(Relaxed) == *frame)
}

fn hash_of(frames: &[usize]) -> u64 {
    frames.iter().fold(frames.len() as u64, |hash, frame| {
        let mixed = (hash ^ *frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_kept_once_and_adds_up() {
        static TABLE: StackTable = StackTable::new();
        let first = TABLE.number(&[1, 2, 3]);
        let second = TABLE.number(&[1, 2]);
        assert_eq!([TABLE.number(&[1, 2, 3]), TABLE.number(&[1, 2])], [first, second]);
        assert_eq!([first, second], [1, 2]);
        assert_eq!((TABLE.frames(first), TABLE.frames(second), TABLE.frames(9)), (vec![1, 2, 3], vec![1, 2], vec![]));
        TABLE.add(first, 1.5, 150.0);
        TABLE.add(first, 1.0, 50.0);
        let all: Vec<Allocated> = TABLE.allocated().collect();
        let allocated = |objects, bytes| Allocated { objects, bytes };
        assert_eq!(all, [allocated(0.0, 0.0), allocated(2.5, 200.0), allocated(0.0, 0.0)]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "32,768 stacks")]
    fn a_full_table_counts_the_others_together() {
        static TABLE: StackTable = StackTable::new();
        let numbers: Vec<u32> = (1..STACKS + 10).map(|first| TABLE.number(&[first, 7])).collect();
        assert_eq!(numbers.iter().filter(|number| **number == NOT_KEPT).count(), 10);
        assert_eq!(TABLE.not_kept.load(Relaxed), 10);
        assert_eq!(TABLE.number(&[1, 7]), 1, "known ones stay known");
        assert_eq!(TABLE.number(&[0; WORDS + 1]), NOT_KEPT);
    }
}
