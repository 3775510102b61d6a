//! Jobs that share slots, by their times alone: how many ran at once, and which end made room for which start.
//!
//! ```text
//! slot 1  ├── a ──┤├──── c ────┤├─ f ─┤
//! slot 2  ├─ b ─┤├─ d ─┤├─── e ───┤            c follows a, d follows b, e follows d, f follows c
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longpole_model::Nanos;

/// A number of slots; the next job takes the one that is free first.
#[derive(Debug)]
pub(crate) struct Slots<Job> {
    count: usize,
    /// When each used slot is free, and whose it was.
    free: BinaryHeap<Reverse<(Nanos, Job)>>,
}

impl<Job: Ord> Slots<Job> {
    pub(crate) fn new(count: usize) -> Slots<Job> {
        Slots { count, free: BinaryHeap::new() }
    }

    /// When the slot for the next job is free, and whose it was; `None` for one that nobody used.
    pub(crate) fn take(&mut self) -> Option<(Nanos, Job)> {
        if self.free.len() < self.count {
            return None;
        }
        self.free.pop().map(|Reverse(used)| used)
    }

    /// A job took a slot, and gives it back at that moment.
    pub(crate) fn give_back(&mut self, at: Nanos, job: Job) {
        self.free.push(Reverse((at, job)));
    }
}

/// How many of these jobs `(start, end)`, which stand by their start, ran at once.
pub(crate) fn peak(jobs: impl Iterator<Item = (Nanos, Nanos)>) -> usize {
    let mut open: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
    let mut peak = 0;
    for (start, end) in jobs {
        while open.peek().is_some_and(|Reverse(end)| *end <= start) {
            open.pop();
        }
        open.push(Reverse(end));
        peak = peak.max(open.len());
    }
    peak
}

/// For each of these jobs `(end, job)`, which stand by their start, when its slot became free and whose it was; `None` for a slot that
/// nobody had used.
pub(crate) fn slot_free<Job: Ord>(slots: usize, jobs: impl Iterator<Item = (Nanos, Job)>) -> Vec<Option<(Nanos, Job)>> {
    let mut slots = Slots::new(slots);
    let give = |(end, job)| {
        let free = slots.take();
        slots.give_back(end, job);
        free
    };
    jobs.map(give).collect()
}
