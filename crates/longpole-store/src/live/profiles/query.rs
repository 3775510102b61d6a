//! What a query wants of profiles, and what one head or segment has of it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use longpole_model::profile::{ProfileSeries, ProfileValue};
use longpole_model::{Frame, Location, SpanId, Stack, StackId, Timestamp, TraceId};

use crate::error::StoreError;
use crate::query_limits::{GrowingMemory, QueryLimits};

/// Memory of a sum, with its place in the map of all: about.
const SUM_BYTES: u64 = 64;

/// Memory of a location without its frames, of a frame, and of a stack without its locations, with what finds each: about.
pub(super) const LOCATION_BYTES: usize = 2 * size_of::<Location>() + 16;
pub(super) const FRAME_BYTES: usize = 2 * size_of::<Frame>();
pub(super) const STACK_BYTES: usize = 2 * size_of::<Stack>() + 16;

/// Memory of a stack of a query.
pub(super) fn stack_bytes(stack: &Stack) -> u64 {
    (STACK_BYTES + size_of_val(&*stack.locations)) as u64
}

/// Memory of a location of a query; its texts are shared.
pub(super) fn location_bytes(location: &Location) -> u64 {
    (LOCATION_BYTES + location.frames.len() * FRAME_BYTES) as u64
}

/// The series of a head or segment, by place.
pub type SeriesList = Arc<[Arc<ProfileSeries>]>;

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

/// Whether values with these first and last times may lie between two times, the second of them too late.
pub(in crate::live) fn overlaps([first, last]: [Timestamp; 2], from: Timestamp, until: Timestamp) -> bool {
    first < until && last >= from
}

impl ProfileFilter<'_> {
    /// Whether it wants the values of a series. The query may be stopped: a selector may have 64 regular expressions.
    pub(super) fn finds(&self, series: &ProfileSeries, query: &QueryLimits) -> Result<bool, StoreError> {
        query.check()?;
        Ok((self.series)(series))
    }

    pub(super) fn wants(&self, value: &ProfileValue) -> bool {
        let is_linked = |spans: &HashSet<SpanId>| value.span.and_then(|span| span.span_id).is_some_and(|id| spans.contains(&id));
        let is_traced = |traces: &HashSet<TraceId>| value.span.and_then(|span| span.trace_id).is_some_and(|id| traces.contains(&id));
        self.from <= value.time && value.time < self.until && self.spans.is_none_or(is_linked) && self.traces.is_none_or(is_traced)
    }
}

/// What one head or segment has: how much each stack of each series had, or of each span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePart<K = u32> {
    /// Its series, by place.
    pub series: SeriesList,
    /// Sums, by place of the series, or else by span, and by stack; they saturate.
    pub sums: ProfileSums<K>,
    /// What the numbers of stacks mean: those stacks that the sums name, and no others.
    pub stacks: ProfileStacks,
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

impl<K> ProfilePart<K> {
    /// Memory that it takes, about; texts and series are shared.
    pub fn memory_bytes(&self) -> u64 {
        let stacks: u64 = self.stacks.stacks.iter().map(stack_bytes).sum();
        let locations: u64 = self.stacks.locations.iter().map(location_bytes).sum();
        self.sums.len() as u64 * SUM_BYTES + stacks + locations
    }
}

impl ProfileStacks {
    /// The frames of a stack, the root first; none for a number that is not here.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        let locations = self.stacks.get(stack.0 as usize).map_or(&[][..], |stack| &stack.locations);
        let known = locations.iter().rev().filter_map(|location| self.locations.get(location.0 as usize));
        known.flat_map(|location| location.frames.iter().rev())
    }
}

/// Sums that take memory as they become more.
#[derive(Debug)]
pub(in crate::live) struct GrowingSums<'a, K> {
    sums: ProfileSums<K>,
    memory: GrowingMemory<'a>,
}

impl<'a, K: Ord> GrowingSums<'a, K> {
    pub(in crate::live) fn new(query: &'a QueryLimits) -> Self {
        GrowingSums { sums: BTreeMap::new(), memory: query.growing() }
    }

    /// Adds a value to those of the same key and stack; one without a key is left out.
    pub(in crate::live) fn add(&mut self, key: Option<K>, value: &ProfileValue) -> Result<(), StoreError> {
        let Some(key) = key else { return Ok(()) };
        match self.sums.entry((key, value.stack)) {
            Entry::Occupied(mut sum) => *sum.get_mut() = sum.get().saturating_add(value.value),
            Entry::Vacant(place) => {
                self.memory.take(SUM_BYTES)?;
                place.insert(value.value);
            }
        }
        Ok(())
    }

    pub(in crate::live) fn finish(self) -> ProfileSums<K> {
        self.sums
    }
}
