//! Stacks of names, in formats that name a function once for many stacks, as trees, speedscope and Java's flight recorder: a short file may hold
//! long stacks.

use std::collections::HashMap;

use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{Frame, LocationId, Text};

use super::labels::{LabelSets, RawLabel};
use super::parts::{self, Budget, LOCATION_BYTES, SAMPLE_BYTES};
use super::{Numbers, Profile, ProfileSample, push_location};
use crate::limits::{
    NAME_BYTES_MAX, PROFILE_NAME_BYTES_MAX, PROFILE_PATHS_BYTES_MAX, PROFILE_SAMPLES_MAX, PROFILE_VALUES_MAX, STACK_FRAMES_MAX,
    expanded_bytes_max,
};

/// A profile under construction. Errors say what there is too much of; the format adds the place.
pub(super) struct NamedStacks {
    pub(super) profile: Profile,
    numbers: Numbers,
    known: HashMap<Box<[u8]>, LocationId>,
    stack: Vec<LocationId>,
    runtime: Runtime,
    label_sets: LabelSets,
    budget: Budget,
    path_bytes: u64,
    path_bytes_max: u64,
    name_bytes: u64,
}

pub(super) const NO_MEMORY: &str = "all before it takes more memory than there is for it";

impl NamedStacks {
    /// A profile that is read from this number of bytes.
    pub(super) fn new(profile: Profile, bytes: usize, memory_bytes_max: u64) -> Self {
        let path_bytes_max = expanded_bytes_max(bytes as u64).min(PROFILE_PATHS_BYTES_MAX);
        let (numbers, budget) = (Numbers::default(), Budget::new(memory_bytes_max));
        let (known, stack, runtime) = (HashMap::new(), Vec::new(), Runtime::Other);
        let label_sets = LabelSets::default();
        NamedStacks { profile, numbers, known, stack, runtime, label_sets, budget, path_bytes: 0, path_bytes_max, name_bytes: 0 }
    }

    /// The same, of functions of this runtime.
    pub(super) fn of_runtime(self, runtime: Runtime) -> Self {
        NamedStacks { runtime, ..self }
    }

    /// Counts a name that was put together, by its bytes.
    pub(super) fn count_name(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.name_bytes = self.name_bytes.saturating_add(bytes as u64);
        let has_room = self.name_bytes <= u64::from(PROFILE_NAME_BYTES_MAX);
        if has_room { Ok(()) } else { Err("more than 256 MiB of names in all frames") }
    }

    /// The location of a name without a file.
    pub(super) fn location(&mut self, name: &[u8]) -> Result<LocationId, &'static str> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let location = self.new_location(name, b"", 0)?;
        self.known.insert(name.into(), location);
        Ok(location)
    }

    /// A location of its own.
    pub(super) fn new_location(&mut self, name: &[u8], file: &[u8], line: u32) -> Result<LocationId, &'static str> {
        self.count_name(name.len().saturating_add(file.len()))?;
        if !self.budget.has(LOCATION_BYTES + 2 * name.len() + file.len()) {
            return Err(NO_MEMORY);
        }
        let (function, file) = (parts::cut(name, NAME_BYTES_MAX), parts::cut(file, NAME_BYTES_MAX));
        let file = if file.is_empty() { Text::new() } else { file.into() };
        let frame = Frame { function: function.into(), file, line, reason: None };
        Ok(push_location(&mut self.profile, LocationKind::Named { runtime: self.runtime, address: None }, vec![frame]))
    }

    /// Adds a sample whose path takes this number of bytes to walk: the stack is given from the leaf on.
    pub(super) fn sample(
        &mut self,
        leaf_first: impl IntoIterator<Item = LocationId>,
        path_bytes: usize,
        values: Vec<i64>,
    ) -> Result<(), &'static str> {
        self.path_bytes = self.path_bytes.saturating_add(path_bytes as u64);
        if self.path_bytes > self.path_bytes_max {
            return Err("longer stacks, when each is written out, than a file of this size may have");
        }
        let stack = self.stack(leaf_first)?;
        self.push(stack, values)?;
        Ok(())
    }

    /// The number of a stack, from the leaf on.
    pub(super) fn stack(&mut self, leaf_first: impl IntoIterator<Item = LocationId>) -> Result<u32, &'static str> {
        self.stack.clear();
        // One more than are kept of a stack, so that it shows.
        self.stack.extend(leaf_first.into_iter().take(STACK_FRAMES_MAX + 1));
        if !self.budget.has(size_of_val(&self.stack[..])) {
            return Err(NO_MEMORY);
        }
        Ok(self.numbers.stack(&mut self.profile, &self.stack))
    }

    /// The number of a set of labels: the empty one if there is no room.
    pub(super) fn label_set(&mut self, labels: Vec<RawLabel<'_>>) -> u32 {
        self.label_sets.number(&mut self.profile, &mut self.budget, labels).unwrap_or(0)
    }

    /// Adds a sample of a stack; returns its place.
    pub(super) fn push(&mut self, stack: u32, values: Vec<i64>) -> Result<usize, &'static str> {
        if self.profile.samples.len() >= PROFILE_SAMPLES_MAX as usize {
            return Err("more than 2,097,152 stacks");
        }
        if !self.budget.has(SAMPLE_BYTES + size_of_val(&values[..])) {
            return Err(NO_MEMORY);
        }
        self.profile.samples.push(ProfileSample { stack, values, ..ProfileSample::default() });
        Ok(self.profile.samples.len() - 1)
    }

    /// The profile: each sample has a value of each type.
    pub(super) fn finish(mut self) -> Result<Profile, &'static str> {
        let (samples, types) = (self.profile.samples.len(), self.profile.types.len());
        if samples.saturating_mul(types) > PROFILE_VALUES_MAX as usize {
            return Err("more than 16,777,216 values of samples");
        }
        if !self.budget.has(samples * types * size_of::<i64>()) {
            return Err(NO_MEMORY);
        }
        for sample in &mut self.profile.samples {
            sample.values.resize(types, 0);
        }
        self.profile.stacks = self.numbers.into_stacks();
        Ok(self.profile)
    }
}
