//! The methods of the querier.

use std::collections::BTreeSet;
use std::sync::Arc;

use longpole_analysis::profile::ProfileTree;
use longpole_model::Timestamp;
use longpole_model::profile::{ProfileSeries, ProfileType};
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::querier::{
    self, AnswerFormat, ProfileQuery, ProfileStats, QuerierMethod, QueryAnalysis, QueryScope, SeriesAnswer, SeriesPoint, StacktracesAnswer,
};

use super::answers::{distinct, dot, flame_graph, flame_graph_diff, nodes_max, pprof_answer_bytes, take_answer, take_texts};
use crate::serve::profiles::matching::{names_of, value_of};
use crate::serve::profiles::over_time::{self, LabelSet, Steps, label_bytes, labels};
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
        return Ok(querier::diff(&flame_graph_diff(&left.0, &right.0, left.1, store.limits())?, codec));
    }
    let query = querier::decode(method, query, codec)?;
    match method {
        QuerierMethod::ProfileTypes => {
            let types = profile_types(store, &query)?;
            types
                .iter()
                .try_for_each(|it| take_texts(store.limits(), it.parts().into_iter().chain(it.parts()).map(|part| part.as_str()), codec))?;
            Ok(querier::profile_types(&types, codec))
        }
        QuerierMethod::LabelNames => {
            let series = series(store, &query)?;
            let names = distinct(series.iter().flat_map(|series| names_of(series)), store.limits())?;
            take_texts(store.limits(), names.iter().map(String::as_str), codec)?;
            Ok(querier::names(names.iter().map(String::as_str), codec))
        }
        QuerierMethod::LabelValues => {
            if query.name.is_empty() {
                return Err("name is required".into());
            }
            let series = series(store, &query)?;
            let mut values = distinct(series.iter().map(|series| value_of(series, &query.name)), store.limits())?;
            values.remove("");
            take_texts(store.limits(), values.iter().map(String::as_str), codec)?;
            Ok(querier::names(values.iter().map(String::as_str), codec))
        }
        QuerierMethod::Series => {
            let sets = label_sets(store, &query)?;
            sets.iter().try_for_each(|set| take_answer(store.limits(), label_bytes(set), set.len(), codec))?;
            Ok(querier::label_sets(&sets, codec))
        }
        QuerierMethod::SelectMergeStacktraces | QuerierMethod::SelectMergeSpanProfile => {
            Ok(querier::stacktraces(&stacktraces(store, &query, codec)?, codec)?)
        }
        QuerierMethod::SelectMergeProfile => Ok(querier::pprof(merged_pprof(store, &query, codec)?, codec)?),
        QuerierMethod::SelectSeries => {
            let series = points(store, &query)?;
            series.iter().try_for_each(|it| take_answer(store.limits(), label_bytes(&it.labels), it.points.len(), codec))?;
            Ok(querier::series(&series, codec))
        }
        QuerierMethod::SelectHeatmap => Err("longpole has no heat maps yet".into()),
        QuerierMethod::GetProfileStats => Ok(querier::profile_stats(stats(store)?, codec)),
        QuerierMethod::AnalyzeQuery => Ok(querier::analysis(&analysis(store, &query)?, codec)),
        QuerierMethod::Diff => Err("answered above".into()),
    }
}

/// Refuses what only a server with workers answers.
fn wanted(query: &ProfileQuery) -> Result<Wanted, QueryError> {
    if query.is_async {
        return Err("longpole answers at once: query without `async`".into());
    }
    Wanted::of(query, true)
}

/// The calls that a query wants, and how many bars of them.
fn tree(store: &LiveStore, query: &ProfileQuery) -> Result<(ProfileTree, usize), QueryError> {
    Ok((merged::tree(store, &wanted(query)?, &query.call_site)?, nodes_max(query.max_nodes)))
}

fn merged_pprof(store: &LiveStore, query: &ProfileQuery, codec: Codec) -> Result<Vec<u8>, QueryError> {
    let profile = pprof::profile(store, &wanted(query)?, &query.call_site)?;
    store.limits().take(pprof_answer_bytes(&profile, codec))?;
    Ok(profile)
}

fn stacktraces(store: &LiveStore, query: &ProfileQuery, codec: Codec) -> Result<StacktracesAnswer, QueryError> {
    let wanted = wanted(query)?;
    let tree = || merged::tree(store, &wanted, &query.call_site);
    let nodes = nodes_max(query.max_nodes);
    match query.format {
        AnswerFormat::Tree => Err("format: longpole answers FLAMEGRAPH, DOT and PPROF, and no TREE".into()),
        AnswerFormat::Pprof => Ok(StacktracesAnswer::Pprof(merged_pprof(store, query, codec)?)),
        AnswerFormat::Dot => {
            let of_type = wanted.profile_type.clone().unwrap_or_default();
            Ok(StacktracesAnswer::Dot(dot(&tree()?, &of_type, nodes, store.limits())?))
        }
        _ => Ok(StacktracesAnswer::FlameGraph(flame_graph(&tree()?, nodes, store.limits())?)),
    }
}

fn series(store: &LiveStore, query: &ProfileQuery) -> Result<BTreeSet<Arc<ProfileSeries>>, QueryError> {
    Wanted::of(query, false)?.series(store)
}

fn profile_types(store: &LiveStore, query: &ProfileQuery) -> Result<Vec<ProfileType>, QueryError> {
    let types: BTreeSet<ProfileType> = series(store, query)?.iter().map(|series| series.profile_type.clone()).collect();
    Ok(types.into_iter().collect())
}

/// The labels of series, each set once; all labels, or those that the query names.
fn label_sets(store: &LiveStore, query: &ProfileQuery) -> Result<Vec<LabelSet>, QueryError> {
    let names = over_time::label_names(&query.label_names)?;
    let mut memory = store.limits().growing();
    let mut sets: BTreeSet<LabelSet> = BTreeSet::new();
    for series in series(store, query)? {
        let set = labels(&series, &names);
        if !set.is_empty() && !sets.contains(&set) {
            memory.take(label_bytes(&set))?;
            sets.insert(set);
        }
    }
    Ok(Vec::from_iter(sets))
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
    let is_rate = profile_type.is_time() && matches!(&*profile_type.name, "process_cpu" | "wall" | "off_cpu");
    let is_average = query.is_average || profile_type.is_state();
    let moments = over_time::moments(store, &wanted, &over_time::label_names(&query.group_by)?)?;
    let seconds = step as f64 / 1_000.0;
    let unit = if is_rate { 1e9 * seconds } else { 1.0 };
    let mut answers: Vec<(f64, SeriesAnswer)> = Vec::new();
    for (labels, values) in moments {
        let points: Vec<SeriesPoint> = Steps::of(&values, query.start_millis, step)
            .points(is_average)
            .map(|(at_millis, value)| SeriesPoint { value: value / unit, at_millis, exemplars: Vec::new() })
            .collect();
        store.limits().take((points.len() * size_of::<SeriesPoint>()) as u64)?;
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
