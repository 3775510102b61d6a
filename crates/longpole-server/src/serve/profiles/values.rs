//! Values of a profile over time: a line on the page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::RawQuery;
use longpole_model::Timestamp;
use longpole_model::profile::ProfileSeries;
use longpole_recording::view::ProfileValuesView;
use longpole_store::live::LiveStore;

use super::over_time::{self, Moments, Steps};
use super::versions::Versions;
use super::wanted::Wanted;
use crate::api::{Answer, ApiError, json};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::serve::query_error::QueryError;
use crate::serve::query_turns::QueriedStore;

/// Values of an answer without `steps`, and at most.
const STEPS: usize = 120;
const STEPS_MAX: usize = 2_000;

/// Nanoseconds of a millisecond.
const MILLI: i64 = 1_000_000;

pub(super) async fn values(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let view = off_the_reactor::<_, ApiError>(move || {
        let parameters = Parameters::of(query.as_deref()).map_err(QueryError::from)?;
        let text = super::required(&parameters)?;
        let range = super::range(&parameters, "start", "end")?.unwrap_or_else(super::last_hour);
        let (profile_type, wanted) = super::wanted(&parameters, text, range)?;
        let wanted_steps = parameters.number("steps").map_err(QueryError::from)?;
        let steps = wanted_steps.map_or(STEPS, |steps| usize::try_from(steps).unwrap_or(STEPS_MAX)).clamp(1, STEPS_MAX);
        let step = Step::of(range, steps);
        let values = values_of(&store, &wanted, range, step, profile_type.is_state())?;
        let versions = versions(&store, &wanted)?.began(range);
        Ok(ProfileValuesView::new(text, &profile_type, range, step.0.saturating_mul(MILLI), &values, &versions))
    });
    json(&view.await?)
}

/// The length of a step, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Step(i64);

impl Step {
    fn of([from, until]: [Timestamp; 2], steps: usize) -> Step {
        let nanos = i128::from(until.unix_nanos()) - i128::from(from.unix_nanos());
        let millis = nanos / i128::from(MILLI) / steps as i128;
        Step(i64::try_from(millis + 1).unwrap_or(i64::MAX).max(1))
    }
}

/// Values by the number of their step. What happened in an interval is so much a second, of time a number of CPUs; a state is that of all
/// processes.
fn values_of(
    store: &LiveStore,
    wanted: &Wanted,
    [from, _]: [Timestamp; 2],
    Step(step): Step,
    is_state: bool,
) -> Result<Vec<(u32, f64)>, QueryError> {
    let start = from.unix_nanos().div_euclid(MILLI);
    // A step ends where the next one begins, so the first one has its end one step later.
    let number = |ends: i64| u32::try_from(ends.saturating_sub(start) / step - 1).ok();
    let points = |moments: &Moments| {
        let points = Steps::of(moments, start.saturating_add(step), step).points(is_state);
        points.filter_map(|(ends, value)| Some((number(ends)?, value))).collect::<Vec<(u32, f64)>>()
    };
    if is_state {
        let names: BTreeSet<String> =
            wanted.series(store)?.iter().flat_map(|series| series.labels.iter().map(|(name, _)| name.as_str().to_owned())).collect();
        let by_series = over_time::moments(store, wanted, &Vec::from_iter(names))?;
        let by_series: Vec<Vec<(u32, f64)>> = by_series.iter().map(|(_, moments)| points(moments)).collect();
        return Ok(totals(&by_series));
    }
    let moments = over_time::moments(store, wanted, &[])?.pop().map(|(_, moments)| moments).unwrap_or_default();
    Ok(points(&moments).into_iter().map(|(number, value)| (number, value * 1_000.0 / step as f64)).collect())
}

/// The state of all series by step: the average of those that have a value there, times the number of those that are there. Profiles that come
/// less often than a step is long are in some steps only; a series is there from its first value to its last.
fn totals(by_series: &[Vec<(u32, f64)>]) -> Vec<(u32, f64)> {
    let mut steps: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for (number, value) in by_series.iter().flatten() {
        let sum = steps.entry(*number).or_default();
        (sum.0, sum.1) = (sum.0 + value, sum.1 + 1);
    }
    let ends = || by_series.iter().filter_map(|points| Some(points.first()?.0..=points.last()?.0));
    // How many begin or have ended before each step.
    let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
    for range in ends() {
        *changes.entry(*range.start()).or_default() += 1;
        *changes.entry(range.end().saturating_add(1)).or_default() -= 1;
    }
    let (mut changes, mut there) = (changes.into_iter().peekable(), 0);
    let total = |(number, (sum, count)): (u32, (f64, u32))| {
        while let Some((_, change)) = changes.next_if(|(at, _)| *at <= number) {
            there += change;
        }
        (number, sum / f64::from(count.max(1)) * there as f64)
    };
    steps.into_iter().map(total).collect()
}

fn versions(store: &LiveStore, wanted: &Wanted) -> Result<Versions, QueryError> {
    let mut versions = Versions::default();
    let mut all: Vec<Arc<ProfileSeries>> = Vec::new();
    let mut memory = store.limits().growing();
    let finds = |series: &ProfileSeries| wanted.finds(series);
    let mut firsts: Vec<Option<Timestamp>> = Vec::new();
    store.each_profile_value(
        &wanted.filter(&finds),
        |series| {
            memory.take(series.memory_bytes())?;
            all.push(Arc::clone(series));
            Ok(all.len() - 1)
        },
        |place, value| {
            firsts.resize(firsts.len().max(place + 1), None);
            firsts[place] = Some(firsts[place].map_or(value.time, |first| first.min(value.time)));
            Ok(())
        },
    )?;
    for (series, first) in all.iter().zip(firsts) {
        first.into_iter().for_each(|first| versions.note(series, first));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_that_of_all_processes_that_are_there() {
        // Two processes whose profiles come in turns; then one of them ends.
        let first = vec![(0, 100.0), (2, 100.0), (4, 100.0)];
        let second = vec![(1, 60.0), (3, 60.0), (5, 60.0), (7, 60.0)];
        let expected = [(0, 100.0), (1, 120.0), (2, 200.0), (3, 120.0), (4, 200.0), (5, 60.0), (7, 60.0)];
        assert_eq!(totals(&[first, second]), expected);
        assert!(totals(&[Vec::new()]).is_empty());
    }
}
