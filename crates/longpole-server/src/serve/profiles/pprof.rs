//! Profiles added up, as pprof.

use std::collections::HashMap;

use longpole_model::profile::ProfileSeries;
use longpole_model::stack::LocationKind;
use longpole_model::{Location, Timestamp};
use longpole_store::live::{LiveStore, ProfilePart};
use longpole_wire::profile_export::pprof_builder::{self, PprofBuilder};

use super::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Memory of a sample and of a location in a profile under construction: about.
const SAMPLE_BYTES: u64 = 128;
const LOCATION_BYTES: u64 = 256;

/// The profiles that a query wants, not compressed. Addresses go, functions stay: binaries of many machines have no common numbers.
pub(in crate::serve) fn profile(store: &LiveStore, wanted: &Wanted) -> Result<Vec<u8>, QueryError> {
    let of_type = wanted.profile_type.clone().unwrap_or_default();
    let mut profile = PprofBuilder::default();
    profile.sample_types = vec![(&of_type.sample_type, &of_type.sample_unit)];
    profile.period = (&of_type.period_type, &of_type.period_unit, 0);
    profile.start = Timestamp(wanted.from.unix_nanos().max(0));
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut stacks: HashMap<Vec<u64>, i64> = HashMap::new();
    let mut locations: HashMap<Vec<(u64, u32)>, u64> = HashMap::new();
    store.each_profile_part(&wanted.filter(&finds), |part| add(&mut profile, &mut stacks, &mut locations, &part))?;
    store.limits().take(stacks.len() as u64 * SAMPLE_BYTES + locations.len() as u64 * LOCATION_BYTES)?;
    let mut samples: Vec<(Vec<u64>, i64)> = stacks.into_iter().collect();
    samples.sort_unstable();
    samples.into_iter().for_each(|(stack, value)| profile.sample(stack, vec![value], Vec::new()));
    let bytes = profile.encode();
    store.limits().take(bytes.len() as u64)?;
    Ok(bytes)
}

fn add(
    profile: &mut PprofBuilder<'_>,
    stacks: &mut HashMap<Vec<u64>, i64>,
    locations: &mut HashMap<Vec<(u64, u32)>, u64>,
    part: &ProfilePart,
) {
    let mut numbers: Vec<Option<u64>> = vec![None; part.stacks.locations.len()];
    for ((_, stack), sum) in &part.sums {
        let Some(stack) = part.stacks.stacks.get(stack.0 as usize) else { continue };
        let mut number_of = |place: usize, location: &Location| {
            *numbers[place].get_or_insert_with(|| {
                let lines: Vec<(u64, u32)> =
                    location.frames.iter().map(|frame| (profile.function(&frame.function, &frame.file), frame.line)).collect();
                *locations
                    .entry(lines)
                    .or_insert_with_key(|lines| profile.location(pprof_builder::Location { lines: lines.clone(), ..Default::default() }))
            })
        };
        let known = stack.locations.iter().filter_map(|id| Some((id.0 as usize, part.stacks.locations.get(id.0 as usize)?)));
        // Where unwinding stopped is no function.
        let known = known.filter(|(_, location)| !matches!(location.kind, LocationKind::Cut { .. }));
        let numbers: Vec<u64> = known.map(|(place, location)| number_of(place, location)).collect();
        let value = stacks.entry(numbers).or_default();
        *value = value.saturating_add(*sum);
    }
}
