//! A list for each id, all of them in one piece of memory.
//!
//! ```text
//! pairs   (a, 1) (c, 2) (a, 3)
//! lists   a: 1 3     b:       c: 2          in the order of the pairs
//! ```

use longpole_model::{Id, IdVec};

/// A list of values for each id.
#[derive(Debug, Clone)]
pub(crate) struct Lists<I, T> {
    /// Where the list of each id begins; one more says where the last one ends.
    base: IdVec<I, u32>,
    values: Vec<T>,
}

impl<I, T> Default for Lists<I, T> {
    fn default() -> Self {
        Lists { base: vec![0].into(), values: Vec::new() }
    }
}

impl<I: Id, T: Copy> Lists<I, T> {
    /// Appends the list of the next id.
    pub(crate) fn push(&mut self, values: impl Iterator<Item = T>) {
        self.values.extend(values);
        self.base.push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
    }

    /// The lists of the ids before `count`: counted in a first pass over the pairs, filled in a second one.
    pub(crate) fn group(count: usize, pairs: impl Iterator<Item = (I, T)> + Clone) -> Lists<I, T> {
        let mut base: IdVec<I, u32> = IdVec::filled(0, count + 1);
        let mut first = None;
        for (id, value) in pairs.clone() {
            base[I::at(id.place() + 1)] += 1;
            first = first.or(Some(value));
        }
        let mut sum = 0;
        base.iter_mut().for_each(|base| {
            sum += *base;
            *base = sum;
        });
        let mut fill = base.clone();
        let mut values = first.map_or_else(Vec::new, |first| vec![first; sum as usize]);
        for (id, value) in pairs {
            let at = &mut fill[id];
            values[*at as usize] = value;
            *at += 1;
        }
        Lists { base, values }
    }

    /// Where the list of an id stands among the values of all lists.
    pub(crate) fn range(&self, id: I) -> std::ops::Range<usize> {
        self.base[id] as usize..self.base[I::at(id.place() + 1)] as usize
    }

    /// How many lists there are.
    pub(crate) fn len(&self) -> usize {
        self.base.len() - 1
    }

    /// The list of an id.
    pub(crate) fn get(&self, id: I) -> &[T] {
        &self.values[self.range(id)]
    }

    /// All lists, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &[T])> {
        I::at(0).until(I::at(self.base.len() - 1)).map(|id| (id, self.get(id)))
    }

    /// The list of an id.
    pub(crate) fn get_mut(&mut self, id: I) -> &mut [T] {
        let range = self.range(id);
        &mut self.values[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::NodeId;

    #[test]
    fn each_id_has_its_values_in_their_order() {
        let [a, b, c] = [0, 1, 2].map(NodeId::at);
        let lists = Lists::group(3, [(a, 1), (c, 2), (a, 3)].into_iter());
        assert_eq!([lists.get(a), lists.get(b), lists.get(c)], [&[1, 3][..], &[], &[2]]);
        assert!(Lists::<NodeId, u8>::group(1, std::iter::empty()).get(a).is_empty());
    }
}
