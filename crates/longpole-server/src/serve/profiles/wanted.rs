//! What of the store a query wants.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use longpole_model::profile::{ProfileSeries, ProfileType};
use longpole_model::{SpanId, Timestamp, TraceId};
use longpole_store::live::{LiveStore, ProfileFilter};
use longpole_wire::pyroscope::querier::ProfileQuery;

use super::matching::Selector;
use crate::serve::query_error::QueryError;

/// What a query wants, checked.
#[derive(Debug)]
pub(in crate::serve) struct Wanted {
    pub(in crate::serve) profile_type: Option<ProfileType>,
    selectors: Vec<Selector>,
    pub(in crate::serve) from: Timestamp,
    pub(in crate::serve) until: Timestamp,
    spans: Option<HashSet<SpanId>>,
    traces: Option<HashSet<TraceId>>,
}

/// Nanoseconds of a millisecond.
const MILLI: i64 = 1_000_000;

impl Wanted {
    /// What a query wants. `needs_type` if it makes no sense without a type of profiles.
    pub(in crate::serve) fn of(query: &ProfileQuery, needs_type: bool) -> Result<Wanted, QueryError> {
        let profile_type = match query.profile_type.as_str() {
            "" if needs_type => return Err("profileTypeID is required".into()),
            "" => None,
            text => Some(text.parse::<ProfileType>().map_err(|error| QueryError::Bad(format!("profileTypeID: {error}")))?),
        };
        let others = (query.matchers.is_empty() || !query.selector.is_empty()).then_some(&query.selector);
        let selectors = Selector::of_texts(query.matchers.iter().chain(others).map(String::as_str))?;
        let (from, until) = range(query.start_millis, query.end_millis);
        Ok(Wanted {
            profile_type,
            selectors,
            from,
            until,
            spans: ids(&query.span_ids, "span", |text| text.parse().ok())?,
            traces: ids(&query.trace_ids, "trace", |text| text.parse().ok())?,
        })
    }

    /// The profiles of a type that a selector finds, between two times, the second of them too late.
    pub(in crate::serve) fn new(profile_type: ProfileType, selector: Selector, [from, until]: [Timestamp; 2]) -> Wanted {
        Wanted { profile_type: Some(profile_type), selectors: vec![selector], from, until, spans: None, traces: None }
    }

    /// All profiles that there are.
    pub(in crate::serve) fn all() -> Wanted {
        let (from, until) = ALWAYS;
        Wanted { profile_type: None, selectors: vec![Selector::default()], from, until, spans: None, traces: None }
    }

    /// Those of any type and series between two times, the second of them too late.
    pub(in crate::serve) fn between([from, until]: [Timestamp; 2]) -> Wanted {
        Wanted { from, until, ..Wanted::all() }
    }

    /// The same, of what a selector finds.
    pub(in crate::serve) fn selected(self, selector: Selector) -> Wanted {
        Wanted { selectors: vec![selector], ..self }
    }

    /// The same, of some spans alone.
    pub(in crate::serve) fn of_spans(self, spans: HashSet<SpanId>) -> Wanted {
        Wanted { spans: Some(spans), ..self }
    }

    /// Whether it wants a series.
    pub(in crate::serve) fn finds(&self, series: &ProfileSeries) -> bool {
        self.profile_type.as_ref().is_none_or(|wanted| *wanted == series.profile_type)
            && self.selectors.iter().any(|selector| selector.finds(series))
    }

    /// The series that it wants, each once.
    pub(in crate::serve) fn series(&self, store: &LiveStore) -> Result<BTreeSet<Arc<ProfileSeries>>, QueryError> {
        let finds = |series: &ProfileSeries| self.finds(series);
        Ok(store.profile_series(&self.filter(&finds))?)
    }

    /// The same for the store.
    pub(in crate::serve) fn filter<'a>(&'a self, finds: &'a (dyn Fn(&ProfileSeries) -> bool + Sync)) -> ProfileFilter<'a> {
        ProfileFilter { series: finds, from: self.from, until: self.until, spans: self.spans.as_ref(), traces: self.traces.as_ref() }
    }
}

const ALWAYS: (Timestamp, Timestamp) = (Timestamp(i64::MIN), Timestamp(i64::MAX));

/// The first time and the first one that is too late; 0 to 0 is always.
fn range(start_millis: i64, end_millis: i64) -> (Timestamp, Timestamp) {
    if start_millis == 0 && end_millis == 0 {
        return ALWAYS;
    }
    // The last millisecond is in it.
    let until = end_millis.saturating_add(1).saturating_mul(MILLI);
    (Timestamp(start_millis.saturating_mul(MILLI)), Timestamp(until))
}

/// Ids in hex; `None` if none are given.
fn ids<T: std::hash::Hash + Eq>(texts: &[String], of: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<HashSet<T>>, QueryError> {
    if texts.is_empty() {
        return Ok(None);
    }
    let parsed = texts.iter().map(|text| parse(text).ok_or_else(|| QueryError::Bad(format!("{text} is no {of} id"))));
    parsed.collect::<Result<_, _>>().map(Some)
}
