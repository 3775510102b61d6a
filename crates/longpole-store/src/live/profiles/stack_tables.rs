//! Binaries, locations and stacks of many requests, each once.

use std::collections::HashMap;

use longpole_model::profile::ProfileBatch;
use longpole_model::stack::LocationKind;
use longpole_model::{Frame, Location, LocationId, Mapping, MappingId, Stack, StackId};

use super::named_stacks::NamedStacks;
use super::query::{FRAME_BYTES, LOCATION_BYTES, STACK_BYTES, location_bytes, stack_bytes};
use crate::numbers::u32_of;

/// What a location is, whoever has it.
type LocationContent = (LocationKind, Vec<Frame>);

/// The tables.
#[derive(Debug, Default)]
pub(super) struct StackTables {
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    pub(super) stacks: Vec<Stack>,
    mapping_of: HashMap<(String, Vec<u8>), MappingId>,
    // Names come from whoever may send: the hash is one that they cannot steer.
    location_of: HashMap<LocationContent, LocationId>,
    stack_of: HashMap<Box<[LocationId]>, StackId>,
    bytes: usize,
}

impl StackTables {
    /// Takes what a request has; returns the number of each of its stacks here.
    pub(super) fn take(&mut self, batch: &ProfileBatch) -> Vec<StackId> {
        let mappings: Vec<MappingId> = batch.mappings.iter().map(|mapping| self.mapping(mapping)).collect();
        let locations: Vec<LocationId> = batch.locations.iter().map(|location| self.location(location, &mappings)).collect();
        let place = |location: &LocationId| locations.get(location.0 as usize).copied();
        batch.stacks.iter().map(|stack| self.stack(stack.locations.iter().filter_map(place).collect())).collect()
    }

    fn mapping(&mut self, mapping: &Mapping) -> MappingId {
        let key = (mapping.path.clone(), mapping.build_id.clone());
        if let Some(known) = self.mapping_of.get(&key) {
            return *known;
        }
        let id = MappingId(u32_of(self.mappings.len()));
        self.bytes += 2 * (key.0.len() + key.1.len() + size_of::<Mapping>());
        self.mappings.push(Mapping { id, ..mapping.clone() });
        self.mapping_of.insert(key, id);
        id
    }

    fn location(&mut self, location: &Location, mappings: &[MappingId]) -> LocationId {
        let mut kind = location.kind.clone();
        if let LocationKind::Code { mapping, .. } = &mut kind
            && let Some(known) = mappings.get(mapping.0 as usize)
        {
            *mapping = *known;
        }
        let content = (kind, location.frames.clone());
        if let Some(known) = self.location_of.get(&content) {
            return *known;
        }
        let id = LocationId(u32_of(self.locations.len()));
        let texts: usize = content.1.iter().map(|frame| frame.function.len() + frame.file.len()).sum();
        self.bytes += LOCATION_BYTES + content.1.len() * FRAME_BYTES + texts;
        self.locations.push(Location { id, kind: content.0.clone(), frames: content.1.clone() });
        self.location_of.insert(content, id);
        id
    }

    fn stack(&mut self, locations: Box<[LocationId]>) -> StackId {
        if let Some(known) = self.stack_of.get(&locations) {
            return *known;
        }
        let id = StackId(u32_of(self.stacks.len()));
        self.bytes += STACK_BYTES + 2 * size_of_val(&*locations);
        self.stacks.push(Stack { id, locations: locations.to_vec() });
        self.stack_of.insert(locations, id);
        id
    }

    /// Adds these stacks to those that a query needs, without their locations; one that is not here is passed over. Returns what they take.
    pub(super) fn copy_stacks(&self, ids: &[StackId], named: &mut NamedStacks) -> u64 {
        let stacks = ids.iter().filter_map(|id| self.stacks.get(id.0 as usize)).cloned();
        let before = named.stacks.len();
        named.stacks.extend(stacks);
        named.stacks[before..].iter().map(stack_bytes).sum()
    }

    /// Adds these locations to those that a query needs. Returns what they take; their texts are shared.
    pub(super) fn copy_locations(&self, ids: &[LocationId], named: &mut NamedStacks) -> u64 {
        let locations = ids.iter().filter_map(|id| self.locations.get(id.0 as usize)).cloned();
        let before = named.locations.len();
        named.locations.extend(locations);
        named.locations[before..].iter().map(location_bytes).sum()
    }

    /// Memory that it takes, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile_batch;

    #[test]
    fn what_two_requests_have_in_common_is_there_once() {
        let mut tables = StackTables::default();
        let first = tables.take(&profile_batch("cart", 0, &[("main;parse", 1), ("main;render", 1)]));
        let second = tables.take(&profile_batch("shop", 9, &[("main;render", 1), ("main;parse;trim", 1)]));
        assert_eq!(first, [StackId(0), StackId(1)]);
        assert_eq!(second, [StackId(1), StackId(2)]);
        let functions: Vec<&str> = tables.locations.iter().map(|location| location.frames[0].function.as_str()).collect();
        assert_eq!(functions, ["parse", "main", "render", "trim"]);
    }
}
