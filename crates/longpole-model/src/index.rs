//! Numbers that stand for things: places in lists, processes, threads.
//!
//! ```text
//! NodeId(3)      forest.nodes[3]           FunctionId(3)  functions.list[3]      PoleId(3)  poles[3]
//! SampleId(3)    recording.samples[3]      WaitId(3)      recording.waits[3]
//! SpanRow(3)     recording.spans[3]        ProcessRow(3)  recording.processes[3]
//! ```
//!
//! A place in one list is no place in another, so each list has an id of its own and an [`IdVec`] takes no other. An id says nothing
//! outside the recording, or the forest, that it came from. Rooms declare ids of their own lists by [`ids!`](crate::ids).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A place in a list, in 32 bits: no recording holds more.
pub trait Id: Copy + Eq + Ord {
    /// The id of this place.
    fn at(place: usize) -> Self;
    /// The place.
    fn place(self) -> usize;

    /// The id after this one.
    #[inline]
    fn next(self) -> Self {
        Self::at(self.place() + 1)
    }

    /// The ids from this one to the one before `end`, in order.
    #[inline]
    fn until(self, end: Self) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (self.place()..end.place()).map(Self::at)
    }
}

/// Declares ids: `ids! { /// A row. pub struct RowId; }`. An `Option` of one takes no more memory than the id.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $vis:vis struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        // The place and 1, so that 0 is left for `None`.
        $vis struct $name(::std::num::NonZeroU32);

        impl $crate::Id for $name {
            #[inline]
            fn at(place: usize) -> Self {
                debug_assert!(place < u32::MAX as usize, "a list of more than 2^32 things");
                // One compare: below the last place, adding 1 cannot overflow.
                let place = place.min(u32::MAX as usize - 1) as u32;
                $name(::std::num::NonZeroU32::MIN.saturating_add(place))
            }

            #[inline]
            fn place(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}({})", stringify!($name), $crate::Id::place(*self))
            }
        }
    )*};
}

ids! {
    /// A node of a forest, by its place in tree order; the run comes first, and the nodes below a node follow it.
    pub struct NodeId;
    /// A sample, by its place in `recording.samples`.
    pub struct SampleId;
    /// A wait, by its place in `recording.waits`.
    pub struct WaitId;
    /// A function, by its rank in total weight.
    pub struct FunctionId;
    /// A long pole, by its rank.
    pub struct PoleId;
    /// A span, by its place in `recording.spans`. Its [`SpanId`](crate::SpanId) comes from who made it.
    pub struct SpanRow;
    /// A process, by its place in `recording.processes`. Its [`Pid`] may be another one's later.
    pub struct ProcessRow;
}

impl NodeId {
    /// The run.
    pub const RUN: NodeId = NodeId(std::num::NonZeroU32::MIN);
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
    /// No value, and room for as many as `count`.
    pub fn with_capacity(count: usize) -> Self {
        IdVec::from(Vec::with_capacity(count))
    }

    /// As many values as `count`, all the same.
    pub fn filled(value: T, count: usize) -> Self
    where
        T: Clone,
    {
        IdVec::from(vec![value; count])
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Leaves out all values from this id on.
    pub fn truncate(&mut self, id: I) {
        self.list.truncate(id.place());
    }

    /// The id that the next value gets.
    #[inline]
    pub fn next_id(&self) -> I {
        I::at(self.list.len())
    }

    /// Appends a value and returns its id.
    #[inline]
    pub fn push(&mut self, value: T) -> I {
        let id = self.next_id();
        self.list.push(value);
        id
    }

    /// The value of an id, `None` behind the end.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.list.get(id.place())
    }

    /// The value of an id, `None` behind the end.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.list.get_mut(id.place())
    }

    /// All ids, in order.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.list.len()).map(I::at)
    }

    /// The values, in order.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// The values, in order.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.list
    }

    /// The values, in order.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.list.iter_mut()
    }

    /// The values with their ids, in order.
    #[inline]
    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.list.iter().enumerate().map(|(place, value)| (I::at(place), value))
    }

    /// How many of the values, which are in order, come before the first that is not so.
    pub fn partition_point(&self, is_so: impl FnMut(&T) -> bool) -> usize {
        self.list.partition_point(is_so)
    }

    /// The values from one id to the one before another.
    #[inline]
    pub fn between(&self, from: I, end: I) -> &[T] {
        &self.list[from.place()..end.place()]
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

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.list[id.place()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.list[id.place()]
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
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
        assert_eq!((run, build, names[build]), (NodeId::RUN, NodeId::at(1), "build"));
        names[run] = "make";
        assert_eq!(names.enumerated().collect::<Vec<_>>(), [(run, &"make"), (build, &"build")]);
        assert_eq!((names.get(NodeId::at(2)), names.ids().next_back(), names.len()), (None, Some(build), 2));
        assert_eq!((format!("{build:?}"), size_of::<Option<NodeId>>()), ("NodeId(1)".to_owned(), 4));
    }

    #[test]
    fn the_last_place_has_an_id() {
        let last = u32::MAX as usize - 1;
        assert_eq!((NodeId::at(last).place(), NodeId::at(last - 1).next().place()), (last, last));
    }

    #[test]
    fn threads_of_a_process_stand_beside_each_other() {
        let mut threads = [ThreadKey::new(2, 1), ThreadKey::new(1, 9), ThreadKey::new(1, 1)];
        threads.sort_unstable();
        assert_eq!(threads, [ThreadKey::new(1, 1), ThreadKey::new(1, 9), ThreadKey::new(2, 1)]);
        assert!(threads[0].is_main() && !threads[1].is_main());
    }
}
