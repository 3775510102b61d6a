//! The stacks that a query needs, out of all that a head or a segment has.
//!
//! ```text
//! sums   stack 7: 30, stack 9001: 5       stacks 7, 9001 ─ their locations 2, 5, 80,000 ─ numbered anew: stacks 0, 1; locations 0, 1, 2
//! ```
//!
//! Whoever may push fills a segment with stacks of its own. A query of another service must not pay for those.

use std::collections::BTreeSet;

use longpole_model::{Location, LocationId, Stack, StackId};

use super::query::{ProfilePart, ProfileStacks, ProfileSums, SeriesList};

/// Stacks and locations by the numbers that they have in the head or segment, each in their order.
#[derive(Debug, Default)]
pub(in crate::live) struct NamedStacks {
    pub(super) stacks: Vec<Stack>,
    pub(super) locations: Vec<Location>,
}

/// The stacks that sums name, each once, in their order.
pub(in crate::live) fn stacks_of<K>(sums: &ProfileSums<K>) -> BTreeSet<StackId> {
    sums.keys().map(|(_, stack)| *stack).collect()
}

/// The place of a number among those that are there, in their order.
fn place_of<T>(rows: &[T], id: u32, id_of: impl Fn(&T) -> u32) -> Option<u32> {
    rows.binary_search_by_key(&id, id_of).ok().and_then(|place| u32::try_from(place).ok())
}

impl NamedStacks {
    /// The locations of the stacks, each once, in their order.
    pub(in crate::live) fn wanted_locations(&self) -> Vec<LocationId> {
        let locations: BTreeSet<LocationId> = self.stacks.iter().flat_map(|stack| &stack.locations).copied().collect();
        locations.into_iter().collect()
    }

    /// What a head or segment has for a query. Stacks and locations get the numbers of their places; what a stack names and is not there is left out.
    pub(in crate::live) fn part<K: Ord>(mut self, series: SeriesList, sums: ProfileSums<K>) -> ProfilePart<K> {
        let mut by_place = ProfileSums::new();
        for ((key, stack), sum) in sums {
            let place = place_of(&self.stacks, stack.0, |stack| stack.id.0).unwrap_or(u32::MAX);
            let known = by_place.entry((key, StackId(place))).or_insert(0_i64);
            *known = known.saturating_add(sum);
        }
        for (place, stack) in (0..).zip(&mut self.stacks) {
            stack.id = StackId(place);
            let known = |id: &LocationId| place_of(&self.locations, id.0, |location| location.id.0).map(LocationId);
            stack.locations = stack.locations.iter().filter_map(known).collect();
        }
        (0..).zip(&mut self.locations).for_each(|(place, location)| location.id = LocationId(place));
        ProfilePart { series, sums: by_place, stacks: ProfileStacks { stacks: self.stacks, locations: self.locations } }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_model::{Runtime, stack::LocationKind};

    use super::*;

    #[test]
    fn stacks_and_locations_get_the_numbers_of_their_places() {
        let location =
            |id| Location { id: LocationId(id), kind: LocationKind::Named { runtime: Runtime::Other, address: None }, frames: Vec::new() };
        let stack = |id, locations: &[u32]| Stack { id: StackId(id), locations: locations.iter().map(|id| LocationId(*id)).collect() };
        let named = NamedStacks { stacks: vec![stack(7, &[80, 2]), stack(90, &[5, 99])], locations: [2, 5, 80].map(location).to_vec() };
        let sums = ProfileSums::from([((0, StackId(7)), 30), ((0, StackId(8)), 1), ((1, StackId(90)), i64::MAX)]);
        let part = named.part(Arc::from([]), sums);
        assert_eq!(part.stacks.stacks, [stack(0, &[2, 0]), stack(1, &[1])]);
        assert_eq!(part.stacks.locations, [0, 1, 2].map(location));
        let expected = [((0, StackId(0)), 30), ((0, StackId(u32::MAX)), 1), ((1, StackId(1)), i64::MAX)];
        assert_eq!(part.sums, ProfileSums::from(expected));
    }
}
