//! Values over time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, btree_map};
use std::sync::Arc;

use longpole_model::profile::ProfileSeries;
use longpole_store::live::LiveStore;

use super::matching::{names_of, value_of};
use super::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Groups of an answer, at most.
const GROUPS_MAX: usize = 10_000;

/// Labels that a query may name.
const NAMES_MAX: usize = 64;

/// Memory of a value at a moment, with its place in the answer.
const MOMENT_BYTES: u64 = 96;

/// Memory of a label without its texts.
const LABEL_BYTES: usize = 2 * size_of::<String>();

/// Labels with their values.
pub(in crate::serve) type LabelSet = Vec<(String, String)>;

/// Values by the moment, in milliseconds.
pub(in crate::serve) type Moments = BTreeMap<i64, i64>;

/// The labels of a series that an answer has; those without a value are left out.
pub(in crate::serve) fn labels(series: &ProfileSeries, names: &[String]) -> LabelSet {
    let of = |name: &str| (name.to_owned(), value_of(series, name).into_owned());
    let all: Vec<(String, String)> = match names {
        [] => names_of(series).map(of).collect(),
        names => names.iter().map(|name| of(name)).collect(),
    };
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Memory of labels.
pub(in crate::serve) fn label_bytes(labels: &LabelSet) -> u64 {
    labels.iter().map(|(name, value)| LABEL_BYTES + name.len() + value.len()).sum::<usize>() as u64
}

/// The labels that a query names, each once.
pub(in crate::serve) fn label_names(names: &[String]) -> Result<Vec<String>, QueryError> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if distinct.contains(name) {
            continue;
        }
        if distinct.len() == NAMES_MAX {
            return Err(QueryError::Bad(format!("the query names more than {NAMES_MAX} labels")));
        }
        distinct.push(name.clone());
    }
    Ok(distinct)
}

/// What the series that a query wants had at each moment, by the values of some labels, in their order: what several series have at one moment is
/// added up.
pub(in crate::serve) fn moments(store: &LiveStore, wanted: &Wanted, groups: &[String]) -> Result<Vec<(LabelSet, Moments)>, QueryError> {
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut place_of: HashMap<LabelSet, usize> = HashMap::new();
    let mut moments: Vec<Moments> = Vec::new();
    let mut too_many = false;
    let (mut of_groups, mut of_moments) = (store.limits().growing(), store.limits().growing());
    let group_of = |series: &Arc<ProfileSeries>| {
        let group = if groups.is_empty() { LabelSet::new() } else { labels(series, groups) };
        let next = place_of.len();
        match place_of.entry(group) {
            Entry::Occupied(known) => Ok(Some(*known.get())),
            Entry::Vacant(_) if next == GROUPS_MAX => {
                too_many = true;
                Ok(None)
            }
            Entry::Vacant(place) => {
                of_groups.take(label_bytes(place.key()))?;
                Ok(Some(*place.insert(next)))
            }
        }
    };
    store.each_profile_value(&wanted.filter(&finds), group_of, |group, value| {
        let Some(group) = group else { return Ok(()) };
        moments.resize(moments.len().max(group + 1), Moments::new());
        match moments[group].entry(value.time.unix_nanos().div_euclid(1_000_000)) {
            btree_map::Entry::Occupied(mut sum) => *sum.get_mut() = sum.get().saturating_add(value.value),
            btree_map::Entry::Vacant(place) => {
                of_moments.take(MOMENT_BYTES)?;
                place.insert(value.value);
            }
        }
        Ok(())
    })?;
    if too_many {
        return Err(QueryError::Bad(format!("more than {GROUPS_MAX} series: group by fewer labels")));
    }
    let mut groups: Vec<(LabelSet, usize)> = place_of.into_iter().collect();
    groups.sort_unstable();
    Ok(groups.into_iter().map(|(labels, place)| (labels, moments.get_mut(place).map(std::mem::take).unwrap_or_default())).collect())
}

/// Points of a series: values by the end of the step that they are in.
#[derive(Debug, Default)]
pub(in crate::serve) struct Steps {
    /// Sums, and for averages how many values there were.
    sums: BTreeMap<i64, (f64, u64)>,
}

impl Steps {
    /// The steps of some values.
    pub(in crate::serve) fn of(values: &Moments, start: i64, step: i64) -> Steps {
        let mut steps = Steps::default();
        values.iter().for_each(|(at, value)| steps.add(*at, *value, start, step));
        steps
    }

    /// Adds a value at a time, both times in milliseconds. The first step ends at `start`.
    fn add(&mut self, at_millis: i64, value: i64, start: i64, step: i64) {
        let steps = at_millis.saturating_sub(start).max(0) as u64;
        let step = step.max(1);
        let ends = start.saturating_add(i64::try_from(steps.div_ceil(step.cast_unsigned())).unwrap_or(i64::MAX).saturating_mul(step));
        let sum = self.sums.entry(ends).or_default();
        (sum.0, sum.1) = (sum.0 + value as f64, sum.1 + 1);
    }

    /// The points, by time. A sum is the sum; an average is that of the values in the step.
    pub(in crate::serve) fn points(self, is_average: bool) -> impl Iterator<Item = (i64, f64)> {
        self.sums.into_iter().map(move |(at, (sum, count))| (at, if is_average && count > 0 { sum / count as f64 } else { sum }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_for_the_step_that_they_are_in() {
        let mut steps = Steps::default();
        [(1_000, 5), (1_001, 7), (11_000, 1), (11_001, 2)].into_iter().for_each(|(at, value)| steps.add(at, value, 1_000, 10_000));
        assert_eq!(steps.points(false).collect::<Vec<_>>(), [(1_000, 5.0), (11_000, 8.0), (21_000, 2.0)]);
    }
}
