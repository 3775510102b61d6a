//! The older queries of Pyroscope: `/render` and `/render-diff`.

use std::collections::BTreeSet;

use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::render::{self, RenderFormat, RenderRange, RenderTimeline};

use super::answers::{distinct, dot, flame_graph, flame_graph_diff, nodes_max, take_answer, take_texts};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::serve::profiles::matching::{Selector, value_of};
use crate::serve::profiles::merged;
use crate::serve::profiles::over_time::{self, Moments, Steps};
use crate::serve::profiles::wanted::Wanted;
use crate::serve::query_error::QueryError;
use crate::serve::query_turns::QueriedStore;
use crate::wall_clock::now;

/// Points of a time line, about, and the least distance of two in seconds.
const POINTS: i64 = 300;
const STEP_SECS_MIN: i64 = 10;

/// A text, and what it is.
struct Text(&'static str, String);

const JSON: &str = "application/json";

async fn answer(text: impl FnOnce() -> Result<Text, QueryError> + Send + 'static) -> Response {
    match off_the_reactor::<_, QueryError>(text).await {
        Ok(Text(media_type, text)) => ([(CONTENT_TYPE, media_type)], text).into_response(),
        Err(error) => (error.status(), error.to_string()).into_response(),
    }
}

fn wanted(range: &RenderRange) -> Result<Wanted, QueryError> {
    let selector = Selector::of_matchers(range.matchers.clone())?;
    Ok(Wanted::new(range.profile_type.clone(), selector, [range.from, range.until]))
}

/// One flame graph, and its values over time.
pub(super) async fn one(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    answer(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let (range, options) = render::render(parameters.pairs(), now()).map_err(|error| QueryError::Bad(error.to_string()))?;
        let wanted = wanted(&range)?;
        let tree = merged::tree(&store, &wanted, &[])?;
        let nodes = nodes_max(options.max_nodes.map(i64::from));
        if options.format == RenderFormat::Dot {
            return Ok(Text("text/plain; charset=utf-8", dot(&tree, &range.profile_type, nodes, store.limits())?));
        }
        let timeline = |values: Steps, step: i64| {
            let first = range.from.unix_nanos().div_euclid(1_000_000_000);
            timeline(values, first, step, range.profile_type.is_state() || options.is_average)
        };
        let step = step_secs(&range);
        let start_millis = range.from.unix_nanos().div_euclid(1_000_000);
        let label = options.group_by.get(..1).unwrap_or_default();
        let (mut all, mut groups) = (Moments::new(), Vec::new());
        for (labels, values) in over_time::moments(&store, &wanted, label)? {
            for (at, value) in &values {
                let sum: &mut i64 = all.entry(*at).or_default();
                *sum = sum.saturating_add(*value);
            }
            if !label.is_empty() {
                let name = labels.into_iter().next().map_or_else(String::new, |(_, value)| value);
                let line = timeline(Steps::of(&values, start_millis, step.saturating_mul(1_000)), step);
                take_answer(store.limits(), name.len() as u64, line.values.len(), Codec::Json)?;
                groups.push((name, line));
            }
        }
        let all = Steps::of(&all, start_millis, step.saturating_mul(1_000));
        let graph = flame_graph(&tree, nodes, store.limits())?;
        Ok(Text(JSON, render::flamebearer(&graph, &range.profile_type, Some(&timeline(all, step)), &groups)))
    })
    .await
}

/// Seconds between two points of a time line.
fn step_secs(range: &RenderRange) -> i64 {
    let seconds = range.until.nanos_since(range.from).max(0) / 1_000_000_000;
    (seconds / POINTS).max(STEP_SECS_MIN)
}

/// Values at the same distance. The first step ends where the range begins, so it is empty.
fn timeline(values: Steps, start_secs: i64, step_secs: i64, is_average: bool) -> RenderTimeline {
    let mut line = RenderTimeline { start_secs, values: Vec::new(), step_secs };
    for (at_millis, value) in values.points(is_average) {
        let place = (at_millis / 1_000).saturating_sub(start_secs) / step_secs.max(1);
        let place = usize::try_from(place).unwrap_or_default().min(usize::try_from(2 * POINTS).unwrap_or_default());
        line.values.resize(line.values.len().max(place + 1), 0);
        line.values[place] = value as i64;
    }
    line
}

/// Two flame graphs in one.
pub(super) async fn two(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    answer(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let ([left, right], options) =
            render::render_diff(parameters.pairs(), now()).map_err(|error| QueryError::Bad(error.to_string()))?;
        let tree = |range: &RenderRange| merged::tree(&store, &wanted(range)?, &[]);
        let graph = flame_graph_diff(&tree(&left)?, &tree(&right)?, nodes_max(options.max_nodes.map(i64::from)), store.limits())?;
        Ok(Text(JSON, render::flamebearer_diff(&graph, &right.profile_type)))
    })
    .await
}

/// The values of a label.
pub(super) async fn label_values(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Response {
    answer(move || {
        let parameters = Parameters::of(query.as_deref())?;
        let label = parameters.text("label").ok_or("parameter 'label' is required")?;
        let values = all_values(&store, label)?;
        // The document, and its text.
        take_texts(store.limits(), values.iter().map(String::as_str), Codec::Json)?;
        Ok(Text(JSON, serde_json::json!(values).to_string()))
    })
    .await
}

fn all_values(store: &LiveStore, label: &str) -> Result<BTreeSet<String>, QueryError> {
    let series = Wanted::all().series(store)?;
    distinct(series.iter().map(|series| value_of(series, label)).filter(|value| !value.is_empty()), store.limits())
}
