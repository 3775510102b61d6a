//! A set of ids that answers two questions: how many there are, and which one if it is alone. It changes a million times without a list.

use std::marker::PhantomData;

use longpole_model::Id;

/// Which ids are there: how many, and the sum of their places, which is the place itself when there is one.
#[derive(Debug)]
pub(crate) struct Leaves<I> {
    pub(crate) count: u32,
    sum: usize,
    ids: PhantomData<fn(I) -> I>,
}

impl<I> Default for Leaves<I> {
    fn default() -> Self {
        Leaves { count: 0, sum: 0, ids: PhantomData }
    }
}

impl<I: Id> Leaves<I> {
    /// An id that was not there comes.
    pub(crate) fn add(&mut self, id: I) {
        self.count += 1;
        self.sum += id.place();
    }

    /// An id that was there goes.
    pub(crate) fn remove(&mut self, id: I) {
        self.count -= 1;
        self.sum -= id.place();
    }

    /// The only one there, `None` when there are none or several.
    pub(crate) fn only(&self) -> Option<I> {
        (self.count == 1).then(|| I::at(self.sum))
    }
}
