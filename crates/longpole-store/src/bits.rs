//! A set of places.

/// Which of some places are marked, a bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// An empty set for places below `length`.
    pub(crate) fn none(length: usize) -> Bits {
        Bits { words: vec![0; length.div_ceil(64)], length }
    }

    /// Marks a place; one that is not there is none.
    pub(crate) fn set(&mut self, place: usize) {
        if place < self.length {
            self.words[place / 64] |= 1 << (place % 64);
        }
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Those that the other has as well.
    pub(crate) fn retain(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// All places that are marked, in their order.
    #[cfg(test)]
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        let of_word = |(number, word): (usize, &u64)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let place = left.trailing_zeros();
                (left != 0).then(|| {
                    left &= left - 1;
                    number * 64 + place as usize
                })
            })
        };
        self.words.iter().enumerate().flat_map(of_word)
    }

    /// The next place from here on that is marked.
    pub(crate) fn next_from(&self, place: usize) -> Option<usize> {
        let mut word = self.words.get(place / 64)? & (u64::MAX << (place % 64));
        let mut number = place / 64;
        while word == 0 {
            number += 1;
            word = *self.words.get(number)?;
        }
        Some(number * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_that_were_marked() {
        let mut bits = Bits::none(200);
        let marked = [0, 1, 63, 64, 130, 199];
        marked.iter().for_each(|place| bits.set(*place));
        bits.set(200);
        assert_eq!(bits.places().collect::<Vec<_>>(), marked);
        assert!((0..300).all(|place| bits.has(place) == marked.contains(&place)));
        assert_eq!([0, 2, 64, 131, 200, 999].map(|place| bits.next_from(place)), [Some(0), Some(63), Some(64), Some(199), None, None]);
        let mut other = Bits::none(200);
        other.set(64);
        bits.retain(&other);
        assert_eq!((bits, other.is_empty()), (other.clone(), false));
    }
}
