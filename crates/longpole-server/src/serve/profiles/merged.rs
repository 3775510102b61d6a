//! Profiles added up.

use std::collections::{BTreeMap, BTreeSet};

use longpole_analysis::profile::ProfileTree;
use longpole_model::Timestamp;
use longpole_model::profile::ProfileSeries;
use longpole_store::live::{LiveStore, ProfilePart};

use super::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Names of functions that a stack must begin with, the root first: what a call site selects.
pub(in crate::serve) type CallSite = [String];

/// The calls of all profiles that a query wants. What happened in an interval is added up; of states, such as memory in use, each series counts with
/// its average over the times that it has.
pub(in crate::serve) fn tree(store: &LiveStore, wanted: &Wanted, call_site: &CallSite) -> Result<ProfileTree, QueryError> {
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let filter = wanted.filter(&finds);
    let is_state = wanted.profile_type.as_ref().is_some_and(longpole_model::profile::ProfileType::is_state);
    let mut times: BTreeMap<ProfileSeries, BTreeSet<Timestamp>> = BTreeMap::new();
    if is_state {
        store.each_profile_value(&filter, |series, value| {
            if !times.get(series).is_some_and(|times| times.contains(&value.time)) {
                times.entry(series.clone()).or_default().insert(value.time);
            }
        })?;
    }
    let moments = |series: &ProfileSeries| times.get(series).map_or(1, |times| i64::try_from(times.len()).unwrap_or(i64::MAX).max(1));
    let mut tree = ProfileTree::default();
    store.each_profile_part(&filter, |part| add(&mut tree, &part, call_site, |series| if is_state { moments(series) } else { 1 }))?;
    store.limits().take(tree.memory_bytes())?;
    Ok(tree)
}

fn add(tree: &mut ProfileTree, part: &ProfilePart, call_site: &CallSite, moments: impl Fn(&ProfileSeries) -> i64) {
    let divisors: Vec<i64> = part.series.iter().map(moments).collect();
    for ((series, stack), sum) in &part.sums {
        let functions = || part.stacks.frames_of(*stack).map(|frame| &frame.function);
        if !call_site.iter().zip(functions()).all(|(wanted, function)| function == wanted) || functions().count() < call_site.len() {
            continue;
        }
        tree.add(functions(), sum / divisors.get(*series as usize).copied().unwrap_or(1));
    }
}
