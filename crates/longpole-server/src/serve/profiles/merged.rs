//! Profiles added up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longpole_analysis::profile::ProfileTree;
use longpole_model::profile::{ProfileSeries, ProfileType};
use longpole_model::{StackId, Timestamp};
use longpole_store::StoreError;
use longpole_store::live::{GrowingMemory, LiveStore, ProfilePart};

use super::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Names of functions that a stack must begin with, the root first: what a call site selects.
pub(in crate::serve) type CallSite = [String];

/// Memory of a series, and of a moment that it has a value at: about.
const SERIES_BYTES: u64 = 128;
const MOMENT_BYTES: u64 = 32;

/// At how many moments a series has values.
type Moments = HashMap<Arc<ProfileSeries>, i64>;

/// The calls of all profiles that a query wants. What happened in an interval is added up; of states, such as memory in use, each series counts with
/// its average over the times that it has.
pub(in crate::serve) fn tree(store: &LiveStore, wanted: &Wanted, call_site: &CallSite) -> Result<ProfileTree, QueryError> {
    let is_state = wanted.profile_type.as_ref().is_some_and(ProfileType::is_state);
    let moments = if is_state { moments(store, wanted)? } else { Moments::new() };
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut tree = ProfileTree::default();
    let mut memory = store.limits().growing();
    store.each_profile_part(&wanted.filter(&finds), |part| add(&mut tree, &part, call_site, &moments, &mut memory))?;
    Ok(tree)
}

fn moments(store: &LiveStore, wanted: &Wanted) -> Result<Moments, QueryError> {
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut places: HashMap<Arc<ProfileSeries>, usize> = HashMap::new();
    let mut times: Vec<HashSet<Timestamp>> = Vec::new();
    let (mut of_series, mut of_times) = (store.limits().growing(), store.limits().growing());
    let place_of = |series: &Arc<ProfileSeries>| {
        if let Some(known) = places.get(series) {
            return Ok(*known);
        }
        of_series.take(SERIES_BYTES)?;
        let next = places.len();
        places.insert(Arc::clone(series), next);
        Ok(next)
    };
    store.each_profile_value(&wanted.filter(&finds), place_of, |place, value| {
        times.resize(times.len().max(place + 1), HashSet::new());
        if times[place].insert(value.time) { of_times.take(MOMENT_BYTES) } else { Ok(()) }
    })?;
    let count = |place: usize| times.get(place).map_or(1, |times| i64::try_from(times.len()).unwrap_or(i64::MAX).max(1));
    Ok(places.into_iter().map(|(series, place)| (series, count(place))).collect())
}

fn add(
    tree: &mut ProfileTree,
    part: &ProfilePart,
    call_site: &CallSite,
    moments: &Moments,
    memory: &mut GrowingMemory<'_>,
) -> Result<(), StoreError> {
    let divisor = |series: &Arc<ProfileSeries>| moments.get(series).copied().unwrap_or(1);
    let divisors: Vec<i64> = part.series.iter().map(divisor).collect();
    for ((series, stack), sum) in &part.sums {
        if !is_below(part, *stack, call_site) {
            continue;
        }
        let before = tree.memory_bytes();
        let functions = part.stacks.frames_of(*stack).map(|frame| &frame.function);
        tree.add(functions, sum / divisors.get(*series as usize).copied().unwrap_or(1));
        memory.take(tree.memory_bytes() - before)?;
    }
    Ok(())
}

/// Whether a stack begins with these functions.
pub(super) fn is_below(part: &ProfilePart, stack: StackId, call_site: &CallSite) -> bool {
    let frames = call_site.iter().zip(part.stacks.frames_of(stack));
    frames.filter(|(wanted, frame)| frame.function == **wanted).count() == call_site.len()
}
