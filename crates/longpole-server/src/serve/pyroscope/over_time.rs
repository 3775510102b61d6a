//! Values over time.

use std::collections::BTreeMap;

use longpole_model::profile::ProfileSeries;
use longpole_store::live::LiveStore;

use crate::serve::profiles::matching::{names_of, value_of};
use crate::serve::profiles::wanted::Wanted;
use crate::serve::query_error::QueryError;

/// Groups of an answer, at most.
const GROUPS_MAX: usize = 10_000;

/// Memory of a value at a moment.
const MOMENT_BYTES: u64 = 48;

/// Labels with their values.
pub(super) type LabelSet = Vec<(String, String)>;

/// The labels of a series that an answer has; those without a value are left out.
pub(super) fn labels(series: &ProfileSeries, names: &[String]) -> LabelSet {
    let of = |name: &str| (name.to_owned(), value_of(series, name));
    let all: Vec<(String, String)> = match names {
        [] => names_of(series).map(of).collect(),
        names => names.iter().map(|name| of(name)).collect(),
    };
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// What the series that a query wants had at each moment, in milliseconds, by the values of some labels: what several series have at one moment is
/// added up.
pub(super) fn moments(store: &LiveStore, wanted: &Wanted, groups: &[String]) -> Result<BTreeMap<LabelSet, BTreeMap<i64, i64>>, QueryError> {
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut moments: BTreeMap<LabelSet, BTreeMap<i64, i64>> = BTreeMap::new();
    let mut too_many = false;
    store.each_profile_value(&wanted.filter(&finds), |series, value| {
        let group = if groups.is_empty() { LabelSet::new() } else { labels(series, groups) };
        if moments.len() >= GROUPS_MAX && !moments.contains_key(&group) {
            too_many = true;
            return;
        }
        let moment = moments.entry(group).or_default().entry(value.time.unix_nanos().div_euclid(1_000_000)).or_default();
        *moment = moment.saturating_add(value.value);
    })?;
    if too_many {
        return Err(QueryError::Bad(format!("more than {GROUPS_MAX} series: group by fewer labels")));
    }
    store.limits().take(moments.values().map(|values| values.len() as u64 * MOMENT_BYTES).sum())?;
    Ok(moments)
}

/// Points of a series: values by the end of the step that they are in.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Sums, and for averages how many values there were.
    sums: BTreeMap<i64, (f64, u64)>,
}

impl Steps {
    /// Adds a value at a time, both times in milliseconds. The first step ends at `start`.
    pub(super) fn add(&mut self, at_millis: i64, value: i64, start: i64, step: i64) {
        let steps = at_millis.saturating_sub(start).max(0) as u64;
        let step = step.max(1);
        let ends = start.saturating_add(i64::try_from(steps.div_ceil(step.cast_unsigned())).unwrap_or(i64::MAX).saturating_mul(step));
        let sum = self.sums.entry(ends).or_default();
        (sum.0, sum.1) = (sum.0 + value as f64, sum.1 + 1);
    }

    /// The points, by time. A sum is the sum; an average is that of the values in the step.
    pub(super) fn points(self, is_average: bool) -> impl Iterator<Item = (i64, f64)> {
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
