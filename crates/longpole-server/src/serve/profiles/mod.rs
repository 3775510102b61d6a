//! Profiles for the page and the command line.
//!
//! | | |
//! |---|---|
//! | `/longpole/v1/profiles/types` | types of profiles, each with its services: from `start` to `end` |
//! | `/longpole/v1/profiles` | profiles added up: `query`, a type with a selector behind it; `start`, `end`; `limit` functions, `nodes` of the tree; `span`, ids of spans |
//! | `/longpole/v1/profiles/diff` | the same of two ranges: `start`, `end` and `beforeStart`, `beforeEnd`; `before`, another query |
//! | `/longpole/v1/profiles/values` | values over time: `query`, `start`, `end`, `steps` |
//! | `/longpole/v1/profiles/growth` | states that grow: from `start` (a week ago) to `end`; `query`, a selector |
//!
//! Times are microseconds since 1970; without `start` the last hour.

mod growth;
pub(super) mod matching;
pub(super) mod merged;
pub(super) mod over_time;
pub(super) mod pprof;
mod values;
mod versions;
pub(super) mod wanted;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use axum::Router;
use axum::extract::RawQuery;
use axum::routing::get;
use longpole_analysis::profile::{ProfileDiff, ProfileTree};
use longpole_model::profile::{ProfileType, SERVICE_LABEL};
use longpole_model::{SpanId, Text, Timestamp};
use longpole_recording::view::{ProfileDiffView, ProfileTypeView, ProfileTypesView, ProfileView};
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::selector;

use self::matching::Selector;
use self::wanted::Wanted;
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use crate::api::{Answer, ApiError, json};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::wall_clock::now;

/// Functions of an answer without `limit`, and at most.
const FUNCTIONS: usize = 100;
const FUNCTIONS_MAX: usize = 100_000;

/// Functions of the tree of an answer without `nodes`, and at most.
const NODES: usize = 2_000;
const NODES_MAX: usize = 100_000;

/// How far an answer goes back without `start`.
const LOOKBACK_NANOS: i64 = 3_600_000_000_000;

pub(super) fn routes(store: LiveStore) -> Router {
    Router::new()
        .route("/longpole/v1/profiles/types", get(types))
        .route("/longpole/v1/profiles", get(profile))
        .route("/longpole/v1/profiles/diff", get(diff))
        .route("/longpole/v1/profiles/values", get(values::values))
        .route("/longpole/v1/profiles/growth", get(growth::growth))
        .with_state(store)
}

/// A range of time by the names of its ends; the end is one that is too late.
fn range(parameters: &Parameters, start: &str, end: &str) -> Result<Option<[Timestamp; 2]>, QueryError> {
    Ok(match (parameters.micros(start)?, parameters.micros(end)?) {
        (None, None) => None,
        (None, Some(until)) => Some(hour_before(until)),
        (Some(from), until) => Some([from, until.unwrap_or_else(now)]),
    })
}

fn hour_before(until: Timestamp) -> [Timestamp; 2] {
    [Timestamp(until.unix_nanos().saturating_sub(LOOKBACK_NANOS)), until]
}

fn last_hour() -> [Timestamp; 2] {
    hour_before(now())
}

async fn types(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let view = off_the_reactor::<_, ApiError>(move || {
        let parameters = Parameters::of(query.as_deref()).map_err(QueryError::from)?;
        let [from, until] = range(&parameters, "start", "end")?.unwrap_or_else(last_hour);
        let mut services: BTreeMap<ProfileType, BTreeSet<String>> = BTreeMap::new();
        for series in Wanted::between([from, until]).series(&store)? {
            let service = series.label(SERVICE_LABEL).map_or("", Text::as_str);
            services.entry(series.profile_type.clone()).or_default().insert(service.to_owned());
        }
        let types = services.iter().map(|(of_type, services)| ProfileTypeView::new(of_type, services.iter().cloned())).collect();
        Ok(ProfileTypesView { types, from_unix_nano: from.unix_nanos().to_string(), to_unix_nano: until.unix_nanos().to_string() })
    });
    json(&view.await?)
}

/// A query, and what it wants.
fn wanted(parameters: &Parameters, text: &str, range: [Timestamp; 2]) -> Result<(ProfileType, Wanted), QueryError> {
    let (profile_type, matchers) = selector::parse_query(text).map_err(|error| QueryError::Bad(error.to_string()))?;
    let wanted = Wanted::new(profile_type.clone(), Selector::of_matchers(matchers)?, range);
    let mut spans: HashSet<SpanId> = HashSet::new();
    for id in parameters.all("span") {
        spans.insert(id.parse().map_err(|error| QueryError::Bad(format!("span: {id}: {error}")))?);
    }
    Ok((profile_type, if spans.is_empty() { wanted } else { wanted.of_spans(spans) }))
}

fn required(parameters: &Parameters) -> Result<&str, QueryError> {
    parameters.text("query").ok_or_else(|| {
        "parameter 'query' is required: a profile type, such as process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"cart\"}".into()
    })
}

async fn profile(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let view = off_the_reactor::<_, ApiError>(move || {
        let parameters = Parameters::of(query.as_deref()).map_err(QueryError::from)?;
        let text = required(&parameters)?;
        let range = range(&parameters, "start", "end")?.unwrap_or_else(last_hour);
        let (profile_type, wanted) = wanted(&parameters, text, range)?;
        let limit = parameters.limit(FUNCTIONS, FUNCTIONS_MAX).map_err(QueryError::from)?;
        let tree = merged::tree(&store, &wanted, &[])?;
        let nodes = nodes(&parameters)?;
        store.limits().take(tree.answer_bytes(nodes)).map_err(QueryError::from)?;
        Ok(ProfileView::new(text, &profile_type, range, &tree, limit, nodes))
    });
    json(&view.await?)
}

async fn diff(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let view = off_the_reactor::<_, ApiError>(move || {
        let parameters = Parameters::of(query.as_deref()).map_err(QueryError::from)?;
        let text = required(&parameters)?;
        let after = range(&parameters, "start", "end")?.unwrap_or_else(last_hour);
        let before = range(&parameters, "beforeStart", "beforeEnd")?.unwrap_or(after);
        let (profile_type, of_after) = wanted(&parameters, text, after)?;
        let (_, of_before) = wanted(&parameters, parameters.text("before").unwrap_or(text), before)?;
        let limit = parameters.limit(FUNCTIONS, FUNCTIONS_MAX).map_err(QueryError::from)?;
        let of = |wanted: &Wanted| -> Result<ProfileTree, QueryError> {
            let tree = merged::tree(&store, wanted, &[])?;
            store.limits().take(tree.answer_bytes(limit))?;
            Ok(tree)
        };
        let diff = ProfileDiff::new(&of(&of_before)?, &of(&of_after)?);
        Ok(ProfileDiffView::new(text, &profile_type, [before, after], &diff, limit))
    });
    json(&view.await?)
}

/// How many functions of the tree are wanted.
fn nodes(parameters: &Parameters) -> Result<usize, QueryError> {
    let wanted = parameters.number("nodes")?;
    Ok(wanted.map_or(NODES, |nodes| usize::try_from(nodes).unwrap_or(NODES_MAX)).min(NODES_MAX))
}
