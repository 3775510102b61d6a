//! Numbers that stand for things: places in lists, processes, threads.
//!
//! ```text
//! NodeId(3)      the fourth node of a forest       FunctionId(3)  the fourth function of a recording
//! SampleId(3)    recording.samples[3]              WaitId(3)      recording.waits[3]
//! ```
//!
//! A place in one list is no place in another, so each list has an id of its own and an [`IdVec`] takes no other. An id says nothing
//! outside the recording, or the forest, that it came from.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A place in a list, in 32 bits: no recording holds more.
pub trait Id: Copy + Eq + Ord {
    /// The id of this place.
    fn at(place: usize) -> Self;
    /// The place.
    fn place(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl Id for $name {
            fn at(place: usize) -> Self {
                debug_assert!(u32::try_from(place).is_ok(), "a list of more than 2^32 things");
                $name(place as u32)
            }

            fn place(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A node of a forest, in tree order; 0 is the run.
    NodeId;
    /// A sample, by its place in `recording.samples`.
    SampleId;
    /// A wait, by its place in `recording.waits`.
    WaitId;
    /// A function, by its rank in total weight.
    FunctionId;
    /// A long pole, by its rank.
    PoleId;
}

/// A process, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(pub u32);

/// A thread, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thread of a process. Ordered by process, so that the threads of one stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
}

impl ThreadKey {
    /// The thread of these numbers.
    pub fn new(pid: u32, tid: u32) -> ThreadKey {
        ThreadKey { pid: Pid(pid), tid: Tid(tid) }
    }

    /// Whether it is the main thread of its process.
    pub fn is_main(self) -> bool {
        self.pid.0 == self.tid.0
    }
}

/// A list that only its own ids index.
#[derive(PartialEq, Eq)]
pub struct IdVec<I, T> {
    list: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        IdVec::from(self.list.clone())
    }

    /// Keeps the memory that it has.
    fn clone_from(&mut self, from: &Self) {
        self.list.clone_from(&from.list);
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// As many values as `count`, all the same.
    pub fn filled(value: T, count: usize) -> Self
    where
        T: Clone,
    {
        IdVec::from(vec![value; count])
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends a value and returns its id.
    pub fn push(&mut self, value: T) -> I {
        self.list.push(value);
        I::at(self.list.len() - 1)
    }

    /// The value of an id, `None` behind the end.
    pub fn get(&self, id: I) -> Option<&T> {
        self.list.get(id.place())
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.list.len()).map(I::at)
    }

    /// The values, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// The values with their ids, in order.
    pub fn enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        self.list.iter().enumerate().map(|(place, value)| (I::at(place), value))
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(list: Vec<T>) -> Self {
        IdVec { list, ids: PhantomData }
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        IdVec::from(Vec::new())
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<Values: IntoIterator<Item = T>>(values: Values) -> Self {
        IdVec::from(Vec::from_iter(values))
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.list[id.place()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.list[id.place()]
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_indexed_by_the_ids_it_gave() {
        let mut names: IdVec<NodeId, &str> = IdVec::default();
        let (run, build) = (names.push("run"), names.push("build"));
        assert_eq!((run, build, names[build]), (NodeId(0), NodeId(1), "build"));
        names[run] = "make";
        assert_eq!(names.enumerated().collect::<Vec<_>>(), [(NodeId(0), &"make"), (NodeId(1), &"build")]);
        assert_eq!((names.get(NodeId(2)), names.ids().next_back(), names.len()), (None, Some(NodeId(1)), 2));
    }

    #[test]
    fn threads_of_a_process_stand_beside_each_other() {
        let mut threads = [ThreadKey::new(2, 1), ThreadKey::new(1, 9), ThreadKey::new(1, 1)];
        threads.sort_unstable();
        assert_eq!(threads, [ThreadKey::new(1, 1), ThreadKey::new(1, 9), ThreadKey::new(2, 1)]);
        assert!(threads[0].is_main() && !threads[1].is_main());
    }
}
