//! Profiles added up, as pprof.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use longpole_model::profile::ProfileSeries;
use longpole_model::stack::LocationKind;
use longpole_model::{Location, Timestamp};
use longpole_store::StoreError;
use longpole_store::live::{GrowingMemory, LiveStore, ProfilePart};
use longpole_wire::profile_export::pprof_builder::{self, PprofBuilder};

use super::merged::{CallSite, is_below};
use super::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Memory of a sample without its stack, and of a location without its functions, in a profile under construction and in its bytes: about.
const SAMPLE_BYTES: usize = 160;
const LOCATION_BYTES: usize = 320;

/// Memory of a stack's entry, and of a function without its texts.
const ENTRY_BYTES: usize = 32;
const FUNCTION_BYTES: usize = 256;

/// A profile under construction.
struct Merged<'a> {
    profile: PprofBuilder<'a>,
    /// How much each stack had; a stack is the numbers of its locations.
    stacks: HashMap<Vec<u64>, i64>,
    /// Numbers of locations by their functions and lines.
    locations: HashMap<Vec<(u64, u32)>, u64>,
    memory: GrowingMemory<'a>,
}

/// The profiles that a query wants, not compressed. Addresses go, functions stay: binaries of many machines have no common numbers.
pub(in crate::serve) fn profile(store: &LiveStore, wanted: &Wanted, call_site: &CallSite) -> Result<Vec<u8>, QueryError> {
    let of_type = wanted.profile_type.clone().unwrap_or_default();
    let mut profile = PprofBuilder::default();
    profile.sample_types = vec![(&of_type.sample_type, &of_type.sample_unit)];
    profile.period = (&of_type.period_type, &of_type.period_unit, 0);
    profile.start = Timestamp(wanted.from.unix_nanos().max(0));
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut merged = Merged { profile, stacks: HashMap::new(), locations: HashMap::new(), memory: store.limits().growing() };
    store.each_profile_part(&wanted.filter(&finds), |part| merged.add(&part, call_site))?;
    let Merged { mut profile, stacks, .. } = merged;
    let mut samples: Vec<(Vec<u64>, i64)> = stacks.into_iter().collect();
    samples.sort_unstable();
    samples.into_iter().for_each(|(stack, value)| profile.sample(stack, vec![value], Vec::new()));
    Ok(profile.encode())
}

impl Merged<'_> {
    fn add(&mut self, part: &ProfilePart, call_site: &CallSite) -> Result<(), StoreError> {
        let mut numbers: Vec<Option<u64>> = vec![None; part.stacks.locations.len()];
        for ((_, stack), sum) in part.sums.iter().filter(|((_, stack), _)| is_below(part, *stack, call_site)) {
            let Some(stack) = part.stacks.stacks.get(stack.0 as usize) else { continue };
            // Known stacks take no memory, and time all the same.
            self.memory.take(0)?;
            let mut of_stack = Vec::with_capacity(stack.locations.len());
            for id in &stack.locations {
                let place = id.0 as usize;
                // Where unwinding stopped is no function.
                let known = part.stacks.locations.get(place).filter(|location| !matches!(location.kind, LocationKind::Cut { .. }));
                let Some(location) = known else { continue };
                let number = match numbers[place] {
                    Some(number) => number,
                    None => self.location(location)?,
                };
                numbers[place] = Some(number);
                of_stack.push(number);
            }
            match self.stacks.entry(of_stack) {
                Entry::Occupied(mut known) => *known.get_mut() = known.get().saturating_add(*sum),
                Entry::Vacant(place) => {
                    self.memory.take((SAMPLE_BYTES + ENTRY_BYTES * place.key().len()) as u64)?;
                    place.insert(*sum);
                }
            }
        }
        Ok(())
    }

    /// The number of a location.
    fn location(&mut self, location: &Location) -> Result<u64, StoreError> {
        let texts: usize = location.frames.iter().map(|frame| 3 * (frame.function.len() + frame.file.len())).sum();
        let bytes = LOCATION_BYTES + location.frames.len() * FUNCTION_BYTES + texts;
        // Most functions are known, but that is found out by making their names.
        self.memory.take(bytes as u64)?;
        let profile = &mut self.profile;
        let lines: Vec<(u64, u32)> =
            location.frames.iter().map(|frame| (profile.function(&frame.function, &frame.file), frame.line)).collect();
        let known = self.locations.entry(lines);
        let new = |lines: &Vec<(u64, u32)>| profile.location(pprof_builder::Location { lines: lines.clone(), ..Default::default() });
        Ok(*known.or_insert_with_key(new))
    }
}
