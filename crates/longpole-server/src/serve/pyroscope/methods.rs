//! The methods of the querier.

use std::collections::BTreeSet;

use longpole_model::Timestamp;
use longpole_model::profile::{ProfileSeries, ProfileType};
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::querier::{
    self, AnswerFormat, ProfileQuery, ProfileStats, QuerierMethod, QueryAnalysis, QueryScope, SeriesAnswer, SeriesPoint, StacktracesAnswer,
};

use super::answers::{dot, flame_graph, flame_graph_diff, nodes_max};
use super::over_time::{self, Steps, labels};
use crate::serve::profiles::matching::{names_of, value_of};
use crate::serve::profiles::wanted::Wanted;
use crate::serve::profiles::{merged, pprof};
use crate::serve::query_error::QueryError;

/// Distance of the points of a series if the query sets none, and the least: in milliseconds.
const STEP_MILLIS: i64 = 15_000;
const STEP_MILLIS_MIN: i64 = 10;

/// Points of a series, at most.
const POINTS_MAX: i64 = 11_000;

/// Answers one query.
pub(super) fn answer(store: &LiveStore, method: QuerierMethod, query: &[u8], codec: Codec) -> Result<Vec<u8>, QueryError> {
    if method == QuerierMethod::Diff {
        let [left, right] = querier::decode_diff(query, codec)?;
        let [left, right] = [tree(store, &left)?, tree(store, &right)?];
        return Ok(querier::diff(&flame_graph_diff(&left.0, &right.0, left.1), codec));
    }
    let query = querier::decode(method, query, codec)?;
    match method {
        QuerierMethod::ProfileTypes => Ok(querier::profile_types(&profile_types(store, &query)?, codec)),
        QuerierMethod::LabelNames => {
            let names: BTreeSet<String> = series(store, &query)?.iter().flat_map(names_of).map(str::to_owned).collect();
            Ok(querier::names(names.iter().map(String::as_str), codec))
        }
        QuerierMethod::LabelValues => {
            if query.name.is_empty() {
                return Err("name is required".into());
            }
            let mut values: BTreeSet<String> = series(store, &query)?.iter().map(|series| value_of(series, &query.name)).collect();
            values.remove("");
            Ok(querier::names(values.iter().map(String::as_str), codec))
        }
        QuerierMethod::Series => {
            let sets: BTreeSet<Vec<(String, String)>> =
                series(store, &query)?.iter().map(|series| labels(series, &query.label_names)).filter(|set| !set.is_empty()).collect();
            Ok(querier::label_sets(&Vec::from_iter(sets), codec))
        }
        QuerierMethod::SelectMergeStacktraces | QuerierMethod::SelectMergeSpanProfile => {
            let wanted = Wanted::of(&query, true)?;
            let (tree, nodes) = tree(store, &query)?;
            let answer = match (query.format, &wanted.profile_type) {
                (AnswerFormat::Dot, Some(profile_type)) => StacktracesAnswer::Dot(dot(&tree, profile_type, nodes)),
                (AnswerFormat::Tree, _) => return Err("format: longpole answers FLAMEGRAPH, DOT and PPROF, and no TREE".into()),
                (AnswerFormat::Pprof, _) => StacktracesAnswer::Pprof(pprof::profile(store, &wanted)?),
                _ => StacktracesAnswer::FlameGraph(flame_graph(&tree, nodes)),
            };
            Ok(querier::stacktraces(&answer, codec)?)
        }
        QuerierMethod::SelectMergeProfile => Ok(querier::pprof(pprof::profile(store, &Wanted::of(&query, true)?)?, codec)?),
        QuerierMethod::SelectSeries => Ok(querier::series(&points(store, &query)?, codec)),
        QuerierMethod::SelectHeatmap => Err("longpole has no heat maps yet".into()),
        QuerierMethod::GetProfileStats => Ok(querier::profile_stats(stats(store)?, codec)),
        QuerierMethod::AnalyzeQuery => Ok(querier::analysis(&analysis(store, &query)?, codec)),
        QuerierMethod::Diff => Err("answered above".into()),
    }
}

/// The calls that a query wants, and how many bars of them.
fn tree(store: &LiveStore, query: &ProfileQuery) -> Result<(longpole_analysis::profile::ProfileTree, usize), QueryError> {
    if query.is_async {
        return Err("longpole answers at once: query without `async`".into());
    }
    let wanted = Wanted::of(query, true)?;
    Ok((merged::tree(store, &wanted, &query.call_site)?, nodes_max(query.max_nodes)))
}

fn series(store: &LiveStore, query: &ProfileQuery) -> Result<Vec<ProfileSeries>, QueryError> {
    let wanted = Wanted::of(query, false)?;
    let all = store.profile_series(wanted.from, wanted.until)?;
    Ok(all.into_iter().filter(|series| wanted.finds(series)).collect())
}

fn profile_types(store: &LiveStore, query: &ProfileQuery) -> Result<Vec<ProfileType>, QueryError> {
    let types: BTreeSet<ProfileType> = series(store, query)?.into_iter().map(|series| series.profile_type).collect();
    Ok(types.into_iter().collect())
}

/// Values over time. Time on CPUs is a rate: CPUs that were busy.
fn points(store: &LiveStore, query: &ProfileQuery) -> Result<Vec<SeriesAnswer>, QueryError> {
    let wanted = Wanted::of(query, true)?;
    if query.start_millis <= 0 || query.end_millis < query.start_millis {
        return Err("start and end are required".into());
    }
    let step = if query.step_secs > 0.0 { (query.step_secs * 1_000.0) as i64 } else { STEP_MILLIS }.max(STEP_MILLIS_MIN);
    if (query.end_millis - query.start_millis) / step > POINTS_MAX {
        return Err(format!("a series would have more than {POINTS_MAX} points: query a larger step or a shorter range").into());
    }
    let profile_type = wanted.profile_type.clone().unwrap_or_default();
    let is_rate = &*profile_type.sample_unit == "nanoseconds" && matches!(&*profile_type.name, "process_cpu" | "wall" | "off_cpu");
    let is_average = query.is_average || profile_type.is_state();
    let moments = over_time::moments(store, &wanted, &query.group_by)?;
    let seconds = step as f64 / 1_000.0;
    let unit = if is_rate { 1e9 * seconds } else { 1.0 };
    let mut answers: Vec<(f64, SeriesAnswer)> = Vec::new();
    for (labels, values) in moments {
        let mut steps = Steps::default();
        values.into_iter().for_each(|(at, value)| steps.add(at, value, query.start_millis, step));
        let points: Vec<SeriesPoint> = steps
            .points(is_average)
            .map(|(at_millis, value)| SeriesPoint { value: value / unit, at_millis, exemplars: Vec::new() })
            .collect();
        let total = points.iter().map(|point| point.value).sum();
        answers.push((total, SeriesAnswer { labels, points }));
    }
    if let Some(limit) = query.limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0) {
        answers.sort_by(|a, b| b.0.total_cmp(&a.0));
        answers.truncate(limit);
    }
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// The first and the last time of all.
fn stats(store: &LiveStore) -> Result<ProfileStats, QueryError> {
    let times = store.profile_times();
    let millis = |time: Timestamp| time.unix_nanos().div_euclid(1_000_000);
    Ok(times.map_or_else(ProfileStats::default, |[first, last]| ProfileStats {
        has_data: true,
        oldest_millis: millis(first),
        newest_millis: millis(last),
    }))
}

/// What a query would read: all of it is in this server.
fn analysis(store: &LiveStore, query: &ProfileQuery) -> Result<QueryAnalysis, QueryError> {
    let found = series(store, query)?.len();
    let figures = store.figures();
    let counts = [figures.segments, found as u64, 0, figures.head_values + figures.segment_values];
    let scope = QueryScope {
        component: "longpole".to_owned(),
        components: 1,
        counts: counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
        bytes: [0; 3],
    };
    let total_bytes = i64::try_from(figures.segment_bytes + figures.log_bytes).unwrap_or(i64::MAX);
    let total_series = i64::try_from(found).unwrap_or(i64::MAX);
    Ok(QueryAnalysis { scopes: vec![scope], total_bytes, total_series, needs_deduplication: false })
}
