//! Intervals of time by the id that they belong to, searched by time.
//!
//! The list of each id stands by start. Its middle is the root of a tree, the middles of the two halves are the children of the root, and so on. Each
//! interval knows the latest end of its subtree, itself included, and a search leaves out subtrees that ended before its time:
//!
//! ```text
//! interval     0–99    1–2     3–4     5–6     7–8     9–10    11–12
//! root                                  ▲
//! halves                ▲                               ▲
//! quarters      ▲               ▲               ▲               ▲
//! latest end   99      99       4      99       8      12      12
//! at 9         found            out             out    found             4 ≤ 9, 8 ≤ 9
//! ```
//!
//! The latest end of all intervals up to each one would leave out nothing here: it is always 99.

use std::ops::Range;

use longpole_model::Id;

use crate::lists::Lists;

/// What has a start and an end.
pub(crate) trait Timed {
    type Time: Ord + Copy;

    fn start(&self) -> Self::Time;
    fn end(&self) -> Self::Time;
}

/// For each id a list of intervals, by start.
#[derive(Debug)]
pub(crate) struct IntervalIndex<I, T: Timed> {
    lists: Lists<I, T>,
    /// For each interval of all lists the latest end in its subtree.
    latest: Vec<T::Time>,
}

impl<I, T: Timed> Default for IntervalIndex<I, T> {
    fn default() -> Self {
        IntervalIndex { lists: Lists::default(), latest: Vec::new() }
    }
}

impl<I: Id, T: Timed + Copy> IntervalIndex<I, T> {
    /// The intervals of the ids before `count`. Those of one id that start together keep their order.
    pub(crate) fn new(count: usize, intervals: &[(I, T)]) -> Self {
        let mut lists = Lists::group(count, intervals.iter().copied());
        let mut latest = Vec::with_capacity(intervals.len());
        let mut subtrees = Vec::new();
        for id in I::at(0).until(I::at(count)) {
            let list = lists.get_mut(id);
            list.sort_by_key(Timed::start);
            push_latest(list, &mut subtrees, &mut latest);
        }
        IntervalIndex { lists, latest }
    }

    /// How many ids there are.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// All, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.lists.iter().flat_map(|(id, list)| list.iter().map(move |interval| (id, interval)))
    }

    /// Those of an id.
    pub(crate) fn get(&self, id: I) -> &[T] {
        self.lists.get(id)
    }

    /// Those of an id that touch this time, by start.
    pub(crate) fn within(&self, id: I, (from, to): (T::Time, T::Time)) -> impl Iterator<Item = &T> {
        self.search(id, move |start| start < to, move |end| end > from)
    }

    /// Those of an id that are there at this moment, by start.
    pub(crate) fn at(&self, id: I, moment: T::Time) -> impl Iterator<Item = &T> {
        self.search(id, move |start| start <= moment, move |end| end > moment)
    }

    /// Those of an id in which this time lies from its start to its end, by start.
    pub(crate) fn covering(&self, id: I, (from, to): (T::Time, T::Time)) -> impl Iterator<Item = &T> {
        self.search(id, move |start| start <= from, move |end| end >= to)
    }

    /// Those of an id that start early enough and end late enough, by start.
    fn search(&self, id: I, starts: impl Fn(T::Time) -> bool, ends: impl Fn(T::Time) -> bool) -> impl Iterator<Item = &T> {
        let list = self.lists.get(id);
        Search { list, latest: &self.latest[self.lists.range(id)], open: Vec::new(), next: Subtree::of(0..list.len()), starts, ends }
    }
}

/// A part of a list, whose middle is its root.
#[derive(Debug, Clone, Copy)]
struct Subtree {
    first: usize,
    behind: usize,
}

impl Subtree {
    fn of(range: Range<usize>) -> Subtree {
        Subtree { first: range.start, behind: range.end }
    }

    /// The place of its root, unless it is empty.
    fn root(self) -> Option<usize> {
        (self.first < self.behind).then(|| self.first + (self.behind - self.first) / 2)
    }

    /// What stands before the root, and what stands behind it.
    fn halves(self, root: usize) -> [Subtree; 2] {
        [Subtree::of(self.first..root), Subtree::of(root + 1..self.behind)]
    }
}

/// Appends the latest ends of a list. `subtrees` is memory that is used again.
fn push_latest<T: Timed>(list: &[T], subtrees: &mut Vec<Subtree>, latest: &mut Vec<T::Time>) {
    let base = latest.len();
    latest.extend(list.iter().map(Timed::end));
    let latest = &mut latest[base..];
    subtrees.clear();
    subtrees.push(Subtree::of(0..list.len()));
    // Each one stands before its halves.
    let mut done = 0;
    while let Some(&subtree) = subtrees.get(done) {
        if let Some(root) = subtree.root() {
            subtrees.extend(subtree.halves(root).into_iter().filter(|half| half.root().is_some()));
        }
        done += 1;
    }
    for subtree in subtrees.iter().rev() {
        let Some(root) = subtree.root() else { continue };
        for half in subtree.halves(root).into_iter().filter_map(Subtree::root) {
            latest[root] = latest[root].max(latest[half]);
        }
    }
}

/// A walk over the intervals that start early enough and end late enough.
struct Search<'a, T: Timed, Starts, Ends> {
    list: &'a [T],
    latest: &'a [T::Time],
    /// Roots that come next, the last one first, each with what stands behind it.
    open: Vec<(usize, Subtree)>,
    /// What comes before these.
    next: Subtree,
    starts: Starts,
    ends: Ends,
}

impl<'a, T: Timed, Starts: Fn(T::Time) -> bool, Ends: Fn(T::Time) -> bool> Iterator for Search<'a, T, Starts, Ends> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            while let Some(root) = self.next.root().filter(|&root| (self.ends)(self.latest[root])) {
                let [before, behind] = self.next.halves(root);
                self.open.push((root, behind));
                self.next = before;
            }
            let (root, behind) = self.open.pop()?;
            let interval = &self.list[root];
            if !(self.starts)(interval.start()) {
                // So do all that follow.
                self.open.clear();
                return None;
            }
            self.next = behind;
            if (self.ends)(interval.end()) {
                return Some(interval);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use longpole_model::NodeId;
    use proptest::prelude::*;

    use super::*;

    /// Start, end and number.
    type Numbered = (i64, i64, usize);

    impl Timed for Numbered {
        type Time = i64;

        fn start(&self) -> i64 {
            self.0
        }

        fn end(&self) -> i64 {
            self.1
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_a_search_through_all_finds(
            intervals in proptest::collection::vec((0_usize..3, 0_i64..60, 0_i64..40), 0..80),
            from in -5_i64..110,
            length in -3_i64..30,
        ) {
            let numbered = intervals.iter().enumerate();
            let numbered: Vec<(NodeId, Numbered)> =
                numbered.map(|(number, &(id, start, length))| (NodeId::at(id), (start, start + length, number))).collect();
            let index = IntervalIndex::new(3, &numbered);
            for id in [0, 1, 2].map(NodeId::at) {
                let all = |is_hit: &dyn Fn(&Numbered) -> bool| {
                    let mut hits: Vec<Numbered> =
                        numbered.iter().filter(|(of, it)| *of == id && is_hit(it)).map(|(_, it)| *it).collect();
                    hits.sort_by_key(|it| (it.0, it.2));
                    hits
                };
                let to = from + length;
                prop_assert_eq!(index.get(id), all(&|_| true));
                prop_assert_eq!(index.within(id, (from, to)).copied().collect::<Vec<_>>(), all(&|it| it.0 < to && it.1 > from));
                prop_assert_eq!(index.covering(id, (from, to)).copied().collect::<Vec<_>>(), all(&|it| it.0 <= from && it.1 >= to));
                prop_assert_eq!(index.at(id, from).copied().collect::<Vec<_>>(), all(&|it| it.0 <= from && it.1 > from));
            }
        }
    }

    /// The latest end of all intervals up to each one made a search begin at the long one: 5,000,000,000 steps for these.
    #[test]
    fn a_search_does_not_go_back_to_a_long_interval_for_those_behind_it() {
        const MANY: usize = 100_000;
        let short = (1..MANY).map(|number| (number as i64 * 10, number as i64 * 10 + 5, number));
        let all: Vec<(NodeId, Numbered)> = [(0, i64::MAX, 0)].into_iter().chain(short).map(|it| (NodeId::RUN, it)).collect();
        let index = IntervalIndex::new(1, &all);
        let steps = Cell::new(0_usize);
        for number in 1..MANY {
            let at = number as i64 * 10 + 2;
            let ends = |end: i64| {
                steps.set(steps.get() + 1);
                end > at
            };
            let found = index.search(NodeId::RUN, |start| start <= at, ends).map(|it| it.2);
            assert!(found.eq([0, number]));
        }
        // The tree has 17 levels: a search goes down to its two hits and to the end of what starts in time.
        assert!(steps.get() < MANY * 6 * 17, "{}", steps.get());
    }
}
