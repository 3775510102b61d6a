//! Profiles added up.

use std::collections::{BTreeSet, HashMap, HashSet};
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

/// What to multiply and to divide the sums of series by.
type Weights = HashMap<Arc<ProfileSeries>, Weight>;

/// Parts of the time of a state, and the least length of one: processes whose profiles come within it are there at once.
const PARTS: i128 = 64;
const PART_NANOS_MIN: i128 = 60_000_000_000;

/// The weight of a series of a state: its average counts for the part of the time that it has values in.
///
/// ```text
/// version 1.7   ▪▪▪▪▪▪▪▪                 8 of 20 parts of the time, average 200 MB
/// version 1.8           ▪▪▪▪▪▪▪▪▪▪▪▪    12 of 20 parts,             average 230 MB
///                                       200 MB × 8/20 + 230 MB × 12/20 = 218 MB
/// ```
#[derive(Debug, Clone, Copy)]
struct Weight {
    times: i128,
    of: i128,
}

impl Weight {
    /// What happened in an interval counts as it is.
    const WHOLE: Weight = Weight { times: 1, of: 1 };

    fn weigh(self, sum: i64) -> i64 {
        let weighed = i128::from(sum) * self.times / self.of.max(1);
        i64::try_from(weighed).unwrap_or(if weighed < 0 { i64::MIN } else { i64::MAX })
    }
}

/// When a series has values.
#[derive(Debug, Clone, Default)]
struct Presence {
    moments: HashSet<Timestamp>,
    first_last: Option<[Timestamp; 2]>,
}

/// The calls of all profiles that a query wants. What happened in an interval is added up; states, such as memory in use, are averages over the
/// time in which any series has values.
pub(in crate::serve) fn tree(store: &LiveStore, wanted: &Wanted, call_site: &CallSite) -> Result<ProfileTree, QueryError> {
    let is_state = wanted.profile_type.as_ref().is_some_and(ProfileType::is_state);
    let weights = if is_state { weights(store, wanted)? } else { Weights::new() };
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut tree = ProfileTree::default();
    let mut memory = store.limits().growing();
    store.each_profile_part(&wanted.filter(&finds), |part| add(&mut tree, &part, call_site, &weights, &mut memory))?;
    Ok(tree)
}

fn weights(store: &LiveStore, wanted: &Wanted) -> Result<Weights, QueryError> {
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut places: HashMap<Arc<ProfileSeries>, usize> = HashMap::new();
    let mut presences: Vec<Presence> = Vec::new();
    let (mut of_series, mut of_moments) = (store.limits().growing(), store.limits().growing());
    let place_of = |series: &Arc<ProfileSeries>| {
        if let Some(known) = places.get(series) {
            return Ok(*known);
        }
        of_series.take(SERIES_BYTES + series.memory_bytes())?;
        let next = places.len();
        places.insert(Arc::clone(series), next);
        Ok(next)
    };
    store.each_profile_value(&wanted.filter(&finds), place_of, |place, value| {
        presences.resize(presences.len().max(place + 1), Presence::default());
        let presence = &mut presences[place];
        let [first, last] = presence.first_last.unwrap_or([value.time; 2]);
        presence.first_last = Some([first.min(value.time), last.max(value.time)]);
        if presence.moments.insert(value.time) { of_moments.take(MOMENT_BYTES) } else { Ok(()) }
    })?;
    let weights = weights_of(&presences);
    Ok(places.into_iter().map(|(series, place)| (series, weights.get(place).copied().unwrap_or(Weight::WHOLE))).collect())
}

fn weights_of(presences: &[Presence]) -> Vec<Weight> {
    let all = || presences.iter().filter_map(|presence| presence.first_last);
    let nanos = |at: Timestamp| i128::from(at.unix_nanos());
    let begin = all().map(|[first, _]| nanos(first)).min().unwrap_or(0);
    let end = all().map(|[_, last]| nanos(last)).max().unwrap_or(0);
    let length = ((end - begin) / PARTS + 1).max(PART_NANOS_MIN);
    let parts_of = |[first, last]: [Timestamp; 2]| (nanos(first) - begin) / length..=(nanos(last) - begin) / length;
    let with_any: BTreeSet<i128> = all().flat_map(parts_of).collect();
    let weight = |presence: &Presence| {
        let parts = presence.first_last.map_or(0, |ends| parts_of(ends).count());
        Weight { times: parts as i128, of: presence.moments.len().max(1) as i128 * with_any.len().max(1) as i128 }
    };
    presences.iter().map(weight).collect()
}

fn add(
    tree: &mut ProfileTree,
    part: &ProfilePart,
    call_site: &CallSite,
    weights: &Weights,
    memory: &mut GrowingMemory<'_>,
) -> Result<(), StoreError> {
    let weights: Vec<Weight> = part.series.iter().map(|series| weights.get(series).copied().unwrap_or(Weight::WHOLE)).collect();
    for ((series, stack), sum) in &part.sums {
        if !is_below(part, *stack, call_site) {
            continue;
        }
        let before = tree.memory_bytes();
        let functions = part.stacks.frames_of(*stack).map(|frame| (&frame.function, &frame.file));
        tree.add(functions, weights.get(*series as usize).copied().unwrap_or(Weight::WHOLE).weigh(*sum));
        memory.take(tree.memory_bytes() - before)?;
    }
    Ok(())
}

/// Whether a stack begins with these functions.
pub(super) fn is_below(part: &ProfilePart, stack: StackId, call_site: &CallSite) -> bool {
    let frames = call_site.iter().zip(part.stacks.frames_of(stack));
    frames.filter(|(wanted, frame)| frame.function == **wanted).count() == call_site.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    /// A series with a value each minute from one minute to another one.
    fn presence(minutes: std::ops::RangeInclusive<i64>) -> Presence {
        let moments: HashSet<Timestamp> = minutes.map(|minute| Timestamp(minute * MINUTE)).collect();
        let first_last = moments.iter().min().zip(moments.iter().max()).map(|(first, last)| [*first, *last]);
        Presence { moments, first_last }
    }

    /// What 100 at each moment becomes.
    fn weighed(presences: &[Presence]) -> Vec<i64> {
        let weights = weights_of(presences);
        presences.iter().zip(weights).map(|(presence, weight)| weight.weigh(100 * presence.moments.len() as i64)).collect()
    }

    #[test]
    fn processes_at_once_add_up_and_one_after_the_other_do_not() {
        assert_eq!(weighed(&[presence(0..=1_000), presence(0..=1_000)]), [100, 100]);
        let [before, after] = weighed(&[presence(0..=399), presence(400..=1_000)])[..] else { panic!("two") };
        assert!((35..=45).contains(&before) && (55..=65).contains(&after) && before + after <= 103, "{before} and {after}");
        // One profile each, some seconds apart: there at once.
        let at = |nanos: i64| Presence { moments: HashSet::from([Timestamp(nanos)]), first_last: Some([Timestamp(nanos); 2]) };
        assert_eq!(weighed(&[at(0), at(10_000_000_000)]), [100, 100]);
        assert_eq!(weighed(&[presence(5..=5)]), [100]);
        assert_eq!(weights_of(&[Presence::default()])[0].weigh(7), 0);
        let extreme = weights_of(&[Presence { moments: HashSet::new(), first_last: Some([Timestamp(i64::MIN), Timestamp(i64::MAX)]) }]);
        assert_eq!(extreme[0].weigh(i64::MAX), i64::MAX);
    }
}
