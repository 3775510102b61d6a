//! What a query wants of profiles, and what one head or segment has of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use longpole_model::profile::{ProfileSeries, ProfileValue};
use longpole_model::{Frame, Location, SpanId, Stack, StackId, Timestamp, TraceId};

use super::head::ProfileHead;
use crate::error::StoreError;
use crate::query_limits::QueryLimits;

/// Memory of a sum, with its place in the map of all: about.
pub(super) const SUM_BYTES: u64 = 64;

/// Which values a query wants.
#[derive(Clone, Copy)]
pub struct ProfileFilter<'a> {
    /// Whether it wants those of a series.
    pub series: &'a (dyn Fn(&ProfileSeries) -> bool + Sync),
    /// The first time.
    pub from: Timestamp,
    /// The first time that is too late.
    pub until: Timestamp,
    /// Only those that name one of these spans.
    pub spans: Option<&'a HashSet<SpanId>>,
    /// Only those that name one of these traces.
    pub traces: Option<&'a HashSet<TraceId>>,
}

impl std::fmt::Debug for ProfileFilter<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProfileFilter").field("from", &self.from).field("until", &self.until).finish_non_exhaustive()
    }
}

impl ProfileFilter<'_> {
    /// Whether a series whose values have these first and last times may have some.
    pub(super) fn may_have(&self, times: [Timestamp; 2]) -> bool {
        times[0] < self.until && times[1] >= self.from
    }

    pub(super) fn wants(&self, value: &ProfileValue) -> bool {
        let is_linked = |spans: &HashSet<SpanId>| value.span.and_then(|span| span.span_id).is_some_and(|id| spans.contains(&id));
        let is_traced = |traces: &HashSet<TraceId>| value.span.and_then(|span| span.trace_id).is_some_and(|id| traces.contains(&id));
        self.from <= value.time && value.time < self.until && self.spans.is_none_or(is_linked) && self.traces.is_none_or(is_traced)
    }
}

/// What one head or segment has: how much each stack of each series had, or of each span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfilePart<K = u32> {
    /// Series, by place.
    pub series: Vec<ProfileSeries>,
    /// Sums, by place of the series, or else by span, and by stack; they saturate.
    pub sums: ProfileSums<K>,
    /// What the numbers of stacks mean.
    pub stacks: Arc<ProfileStacks>,
}

/// Values added up by series or span, and by stack.
pub type ProfileSums<K> = BTreeMap<(K, StackId), i64>;

/// Stacks with their locations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileStacks {
    /// Stacks, by number.
    pub stacks: Vec<Stack>,
    /// Locations, by number, with their frames.
    pub locations: Vec<Location>,
}

impl ProfileStacks {
    /// The frames of a stack, the root first; none for a number that is not here.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        let locations = self.stacks.get(stack.0 as usize).map_or(&[][..], |stack| &stack.locations);
        let known = locations.iter().rev().filter_map(|location| self.locations.get(location.0 as usize));
        known.flat_map(|location| location.frames.iter().rev())
    }
}

/// Adds a value to those of the same key and stack.
pub(super) fn add<K: Ord>(sums: &mut ProfileSums<K>, key: Option<K>, value: &ProfileValue) {
    let Some(key) = key else { return };
    let sum = sums.entry((key, value.stack)).or_default();
    *sum = sum.saturating_add(value.value);
}

impl ProfileHead {
    /// Hands over the values that a query wants.
    pub(crate) fn each_value(&self, filter: &ProfileFilter<'_>, mut take: impl FnMut(&ProfileSeries, &ProfileValue)) {
        let wanted: Vec<bool> = self.series.iter().map(filter.series).collect();
        for value in self.values.iter().filter(|value| wanted[value.series as usize] && filter.wants(value)) {
            take(&self.series[value.series as usize], value);
        }
    }

    /// What it has for a query; `None` for nothing.
    pub(crate) fn part<K: Ord>(
        &self,
        filter: &ProfileFilter<'_>,
        key: impl Fn(&ProfileValue) -> Option<K>,
        query: &QueryLimits,
    ) -> Result<Option<ProfilePart<K>>, StoreError> {
        let mut sums = BTreeMap::new();
        self.each_value(filter, |_, value| add(&mut sums, key(value), value));
        if sums.is_empty() {
            return Ok(None);
        }
        query.take(sums.len() as u64 * SUM_BYTES)?;
        // A copy, so that nobody who sends waits for a query.
        query.take(self.tables.memory_bytes())?;
        let stacks = ProfileStacks { stacks: self.tables.stacks.clone(), locations: self.tables.locations.clone() };
        Ok(Some(ProfilePart { series: self.series.clone(), sums, stacks: Arc::new(stacks) }))
    }
}
