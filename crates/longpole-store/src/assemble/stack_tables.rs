//! Mappings, locations and stacks, numbered anew in the order in which they are defined.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use longpole_model::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Stack, StackId};
use longpole_model::time::Monotonic;
use longpole_model::{Sample, Text, Wait};

use crate::numbers::u32_of;

/// Shown instead of a stack entry whose definition the recorder could not write.
pub(super) const UNDEFINED_LOCATION: &str = "the recording lacks the definition of this address";

/// Shown instead of a stack whose definition the recorder could not write.
pub(super) const UNDEFINED_STACK: &str = "the recording lacks the definition of this stack";

/// Shown instead of an address whose binary the recorder could not write.
pub(super) const UNDEFINED_MAPPING: &str = "the recording lacks the binary of this address";

/// Mappings, locations and stacks as far as they have come, by the recorder's numbers and by ours.
#[derive(Debug, Default)]
pub(super) struct StackTables {
    pub(super) mappings: Vec<Mapping>,
    mapping_numbers: HashMap<u32, u32>,
    pub(super) locations: Vec<Location>,
    location_numbers: HashMap<u32, u32>,
    /// Functions and files of locations that came with them, each once: a function may run at a million addresses.
    names: HashSet<Text>,
    undefined_location: Option<LocationId>,
    /// What stands for a location from some time on.
    replaced: HashMap<u32, Vec<(Monotonic, LocationId)>>,
    pub(super) stacks: Vec<Stack>,
    stack_numbers: HashMap<u32, u32>,
    undefined_stack: Option<StackId>,
}

impl StackTables {
    pub(super) fn define_mapping(&mut self, mapping: Mapping) {
        let number = u32_of(self.mappings.len());
        if let Entry::Vacant(entry) = self.mapping_numbers.entry(mapping.id.0) {
            entry.insert(number);
            self.mappings.push(Mapping { id: MappingId(number), ..mapping });
        }
    }

    pub(super) fn define_location(&mut self, id: LocationId, kind: LocationKind) {
        let kind = match kind {
            LocationKind::Code { mapping, address } => match self.mapping_numbers.get(&mapping.0) {
                Some(&number) => LocationKind::Code { mapping: MappingId(number), address },
                None => LocationKind::Cut { reason: UNDEFINED_MAPPING.into() },
            },
            other => other,
        };
        if let Entry::Vacant(entry) = self.location_numbers.entry(id.0) {
            entry.insert(push_location(&mut self.locations, kind).0);
        }
    }

    pub(super) fn shared(&mut self, name: String) -> Text {
        if let Some(known) = self.names.get(name.as_str()) {
            return known.clone();
        }
        let name = Text::from(name);
        self.names.insert(name.clone());
        name
    }

    /// Defines a location with its frame. One that is known as unmapped gets both: its name comes when its process ends.
    pub(super) fn name_location(&mut self, id: LocationId, kind: LocationKind, frame: Frame) {
        let at = match self.location_numbers.entry(id.0) {
            Entry::Vacant(entry) => *entry.insert(push_location(&mut self.locations, kind.clone()).0),
            Entry::Occupied(entry) => *entry.get(),
        };
        if let Some(location) = self.locations.get_mut(at as usize)
            && (location.kind == kind && location.frames.is_empty() || matches!(location.kind, LocationKind::Unmapped { .. }))
        {
            location.kind = kind;
            location.frames = vec![frame];
        }
    }

    pub(super) fn replace_location(&mut self, id: LocationId, since: Monotonic, by: LocationId) {
        if let (Some(number), Some(by)) = (self.location_numbers.get(&id.0), self.location_numbers.get(&by.0)) {
            self.replaced.entry(*number).or_default().push((since, LocationId(*by)));
        }
    }

    /// Gives samples and waits the stacks of their time, where other code came to lie at an address of their stack.
    pub(super) fn replace_in_stacks(&mut self, samples: &mut [Sample], waits: &mut [Wait]) {
        if self.replaced.is_empty() {
            return;
        }
        self.replaced.values_mut().for_each(|stretches| stretches.sort_by_key(|(since, _)| *since));
        let (replaced, stacks) = (&self.replaced, &mut self.stacks);
        let concerned: Vec<bool> = stacks.iter().map(|stack| stack.locations.iter().any(|it| replaced.contains_key(&it.0))).collect();
        let mut known: HashMap<Vec<LocationId>, StackId> = HashMap::new();
        let mut at = |stack: StackId, time: Monotonic| {
            if !concerned[stack.0 as usize] {
                return stack;
            }
            let now = |location: &LocationId| {
                let stretches = replaced.get(&location.0).map(Vec::as_slice).unwrap_or_default();
                let begun = stretches.partition_point(|(since, _)| *since <= time);
                begun.checked_sub(1).map_or(*location, |place| stretches[place].1)
            };
            let locations: Vec<LocationId> = stacks[stack.0 as usize].locations.iter().map(now).collect();
            if locations == stacks[stack.0 as usize].locations {
                return stack;
            }
            *known.entry(locations).or_insert_with_key(|locations| push_stack(stacks, locations.clone()))
        };
        for sample in samples {
            sample.stack = at(sample.stack, sample.time);
        }
        for wait in waits {
            wait.stack = wait.stack.map(|stack| at(stack, wait.start));
        }
    }

    pub(super) fn define_stack(&mut self, id: StackId, mut locations: Vec<LocationId>) {
        for location in &mut locations {
            *location = match self.location_numbers.get(&location.0) {
                Some(&number) => LocationId(number),
                None => *self
                    .undefined_location
                    .get_or_insert_with(|| push_location(&mut self.locations, LocationKind::Cut { reason: UNDEFINED_LOCATION.into() })),
            };
        }
        if let Entry::Vacant(entry) = self.stack_numbers.entry(id.0) {
            entry.insert(push_stack(&mut self.stacks, locations).0);
        }
    }

    /// The stack of a sample. A sample whose stack is not known still counts: the time was spent.
    pub(super) fn stack(&mut self, id: StackId) -> StackId {
        if let Some(&number) = self.stack_numbers.get(&id.0) {
            return StackId(number);
        }
        let (stacks, locations) = (&mut self.stacks, &mut self.locations);
        *self.undefined_stack.get_or_insert_with(|| {
            let location = push_location(locations, LocationKind::Cut { reason: UNDEFINED_STACK.into() });
            push_stack(stacks, vec![location])
        })
    }
}

fn push_location(locations: &mut Vec<Location>, kind: LocationKind) -> LocationId {
    let id = LocationId(u32_of(locations.len()));
    locations.push(Location { id, kind, frames: Vec::new() });
    id
}

fn push_stack(stacks: &mut Vec<Stack>, locations: Vec<LocationId>) -> StackId {
    let id = StackId(u32_of(stacks.len()));
    stacks.push(Stack { id, locations });
    id
}
