//! Lists that are empty for most of those who could have one.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list that is as large as a pointer while it is empty: of a million spans few have links, and an empty `Vec` for each would
/// take more memory than all links there are.
#[derive(Clone)]
// A `Vec` alone is three words; the box makes the empty list one.
#[allow(clippy::box_collection)]
pub struct ThinVec<T>(Option<Box<Vec<T>>>);

impl<T> ThinVec<T> {
    /// The empty list.
    pub const fn new() -> Self {
        ThinVec(None)
    }

    /// Appends an element.
    pub fn push(&mut self, element: T) {
        self.0.get_or_insert_default().push(element);
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl<T> Default for ThinVec<T> {
    fn default() -> Self {
        ThinVec(None)
    }
}

impl<T> Deref for ThinVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], |list| list)
    }
}

impl<T> DerefMut for ThinVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], |list| list)
    }
}

impl<T> From<Vec<T>> for ThinVec<T> {
    fn from(list: Vec<T>) -> Self {
        ThinVec((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> FromIterator<T> for ThinVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<T> Extend<T> for ThinVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

impl<T> IntoIterator for ThinVec<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|list| *list).unwrap_or_default().into_iter()
    }
}

impl<'a, T> IntoIterator for &'a ThinVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut ThinVec<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: PartialEq> PartialEq for ThinVec<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for ThinVec<T> {}

impl<T: fmt::Debug> fmt::Debug for ThinVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_like_a_vector_and_costs_a_pointer_while_it_is_empty() {
        let mut list: ThinVec<u64> = ThinVec::new();
        assert_eq!((list.len(), list.iter().next(), size_of::<ThinVec<u64>>()), (0, None, size_of::<usize>()));
        assert_eq!(list, ThinVec::from(Vec::new()));
        list.extend([3, 1]);
        list.push(2);
        list.sort_unstable();
        assert_eq!(list, ThinVec::from_iter(1..=3));
        assert_eq!(format!("{list:?}"), "[1, 2, 3]");
        assert_eq!(list.into_iter().sum::<u64>(), 6);
    }
}
