//! What was counted between two profiles of one program that count since its start.
//!
//! ```text
//! earlier   main;remember 100                      left    main;remember 50
//! later     main;remember 150   main;load 20               main;load 20
//! ```
//!
//! Numbers of stacks differ between two profiles, so a stack is found by its functions, files and lines, and by its labels.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use super::{Profile, ProfileSample};

impl Profile {
    /// Leaves of some types, by their places, what was counted after an earlier profile. What is less than before, because the program began anew,
    /// becomes nothing.
    pub fn keep_since(&mut self, earlier: &Profile, places: &[usize]) {
        // With a key of its own: nobody can choose stacks that are taken for each other.
        let hasher = RandomState::new();
        let place_before = |place: &usize| earlier.types.iter().position(|kind| self.types.get(*place) == Some(kind));
        let pairs: Vec<(usize, usize)> = places.iter().filter_map(|place| Some((*place, place_before(place)?))).collect();
        let mut counted: HashMap<(u64, usize), i64> = HashMap::new();
        let of_earlier = Keys::new(earlier, &hasher);
        for sample in &earlier.samples {
            for (place, before) in &pairs {
                let sum = counted.entry((of_earlier.of(sample), *place)).or_default();
                *sum = sum.saturating_add(sample.values.get(*before).copied().unwrap_or(0));
            }
        }
        let keys = Keys::new(self, &hasher);
        let keys: Vec<u64> = self.samples.iter().map(|sample| keys.of(sample)).collect();
        for (sample, key) in self.samples.iter_mut().zip(keys) {
            for (place, _) in &pairs {
                let (Some(value), Some(before)) = (sample.values.get_mut(*place), counted.get_mut(&(key, *place))) else { continue };
                // Several samples may have one stack.
                let taken = (*value).clamp(0, (*before).max(0));
                (*value, *before) = (*value - taken, *before - taken);
            }
        }
    }

    /// Leaves nothing of some types, by their places. Returns how many values they had.
    pub fn drop_values(&mut self, places: &[usize]) -> u64 {
        let mut dropped = 0;
        for sample in &mut self.samples {
            for place in places {
                if let Some(value) = sample.values.get_mut(*place).filter(|value| **value != 0) {
                    (*value, dropped) = (0, dropped + 1);
                }
            }
        }
        dropped
    }
}

/// Keys of stacks with labels, the same in two profiles.
struct Keys<'a> {
    profile: &'a Profile,
    hasher: &'a RandomState,
    /// Keys of locations and label sets, by number.
    locations: Vec<u64>,
    label_sets: Vec<u64>,
}

impl<'a> Keys<'a> {
    fn new(profile: &'a Profile, hasher: &'a RandomState) -> Self {
        let location = |frames: &[longpole_model::Frame]| {
            let mut state = hasher.build_hasher();
            frames.iter().for_each(|frame| (frame.function.as_str(), frame.file.as_str(), frame.line).hash(&mut state));
            state.finish()
        };
        Keys {
            profile,
            hasher,
            locations: profile.locations.iter().map(|it| location(&it.frames)).collect(),
            label_sets: profile.label_sets.iter().map(|set| hasher.hash_one(set)).collect(),
        }
    }

    fn of(&self, sample: &ProfileSample) -> u64 {
        let mut state = self.hasher.build_hasher();
        let stack = self.profile.stacks.get(sample.stack as usize);
        for location in stack.map_or(&[][..], |stack| &stack.locations) {
            self.locations.get(location.0 as usize).hash(&mut state);
        }
        // Set 0 is empty, whether it is there or not.
        self.label_sets.get(sample.labels as usize).filter(|_| sample.labels > 0).hash(&mut state);
        state.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ProfileFormat, decode};
    use super::*;

    fn folded(text: &str) -> Profile {
        decode(text.as_bytes(), ProfileFormat::Folded, u64::MAX).unwrap()
    }

    #[test]
    fn what_was_counted_before_is_taken_away() {
        let mut later = folded("main;load 20\nmain;remember 150\nmain;forget 3\n");
        later.keep_since(&folded("main;remember 100\nmain;forget 9\nmain;gone 7\n"), &[0]);
        let values: Vec<i64> = later.samples.iter().map(|sample| sample.values[0]).collect();
        assert_eq!(values, [20, 50, 0]);
        assert_eq!((later.drop_values(&[0, 5]), later.drop_values(&[0])), (2, 0));
    }

    #[test]
    fn other_types_and_other_labels_stay() {
        let mut later = folded("main 20\n");
        later.keep_since(&folded("main 5\n"), &[]);
        assert_eq!(later.samples[0].values, [20]);
        let mut earlier = folded("main 5\n");
        earlier.types[0].name = "bytes".to_owned();
        later.keep_since(&earlier, &[0, 7]);
        assert_eq!(later.samples[0].values, [20]);
        let mut labelled = folded("main 5\n");
        labelled.label_sets = vec![Vec::new(), vec![("env".into(), "prod".into())]];
        labelled.samples[0].labels = 1;
        later.keep_since(&labelled, &[0]);
        assert_eq!(later.samples[0].values, [20]);
    }
}
