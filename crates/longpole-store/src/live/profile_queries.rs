//! Profiles into a live store, and out of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue, ProfiledSpan};
use longpole_model::{StackId, Timestamp};

use super::profiles::{GrowingSums, HeadSnapshot, NamedStacks, OpenProfiles, stacks_of};
use super::segment::{Segment, trim};
use super::{Appended, LiveGeneration, LiveStore, ProfileFilter, ProfilePart, read};
use crate::error::StoreError;
use crate::memory::query_memory::Held;
use crate::query_limits::QueryLimits;
use crate::wal::{WalError, encode_profiles};

/// Stacks or locations that are copied of a head at a time, while nobody can push.
const COPIED_AT_A_TIME: usize = 1_024;

impl LiveStore {
    /// Appends a request of profiles to the log and lets them be found. It is not durable yet: [`when_durable`](Self::when_durable).
    ///
    /// # Errors
    ///
    /// As of [`append`](Self::append).
    pub fn append_profiles(&self, received: Timestamp, batch: &ProfileBatch) -> Result<Appended, WalError> {
        let failed = |source| WalError::Io { action: "compress profiles for", path: self.shared.folders.wal.clone(), source };
        let encoded = encode_profiles(batch).map_err(failed)?;
        self.append_by(received, |generation| generation.append_profiles(received, batch, &encoded))
    }

    /// The series of profiles that may have a value that a query wants; each once, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn profile_series(&self, filter: &ProfileFilter<'_>) -> Result<BTreeSet<Arc<ProfileSeries>>, StoreError> {
        let (generations, segments) = self.shared.all();
        let mut found = BTreeSet::new();
        let mut add = |series: &Arc<ProfileSeries>| -> Result<(), StoreError> {
            if !found.contains(series) {
                self.query.take(series.memory_bytes())?;
                found.insert(Arc::clone(series));
            }
            Ok(())
        };
        for opened in self.opened(&segments, filter) {
            let (_, opened) = opened?;
            opened.series_of(filter, &self.query)?.into_iter().try_for_each(&mut add)?;
        }
        for generation in generations {
            let (snapshot, _held) = self.snapshot(&generation)?;
            snapshot.series_of(filter, &self.query)?.iter().try_for_each(&mut add)?;
        }
        Ok(found)
    }

    /// The first and the last time of a value of a profile; `None` without any.
    pub fn profile_times(&self) -> Option<[Timestamp; 2]> {
        let (generations, segments) = self.shared.all();
        let of_heads = generations.iter().filter_map(|generation| read(&generation.profiles).times());
        let all = segments.iter().filter_map(|segment| segment.entry.profile_times).chain(of_heads);
        all.reduce(|[first, last], [other_first, other_last]| [first.min(other_first), last.max(other_last)])
    }

    /// Whether a series has a value of exactly this time.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn has_profile(&self, series: &ProfileSeries, time: Timestamp) -> Result<bool, StoreError> {
        let is_wanted = |other: &ProfileSeries| other == series;
        let until = Timestamp(time.0.saturating_add(1));
        let filter = ProfileFilter { series: &is_wanted, from: time, until, spans: None, traces: None };
        let mut found = false;
        let first = |(), _: &ProfileValue| {
            found = true;
            // No other one matters.
            Err(StoreError::Stopped)
        };
        let read = self.each_profile_value(&filter, |_| Ok(()), first);
        if found { Ok(true) } else { read.map(|()| false) }
    }

    /// Hands over the values of profiles that a query wants, each once, in no order. What `of_series` says of a series goes with its values: each
    /// generation and segment calls it once for a series.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read, and what the callbacks return.
    pub fn each_profile_value<T: Copy>(
        &self,
        filter: &ProfileFilter<'_>,
        mut of_series: impl FnMut(&Arc<ProfileSeries>) -> Result<T, StoreError>,
        mut take: impl FnMut(T, &ProfileValue) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (generations, segments) = self.shared.all();
        let mut take_of = |known: &mut Vec<Option<T>>, series: &[Arc<ProfileSeries>], value: &ProfileValue| {
            let place = value.series as usize;
            known.resize(series.len(), None);
            let of_this = match known[place] {
                Some(known) => known,
                None => of_series(&series[place])?,
            };
            known[place] = Some(of_this);
            take(of_this, value)
        };
        for opened in self.opened(&segments, filter) {
            let (segment, opened) = opened?;
            let mut known = Vec::new();
            let read = opened.each_value(filter, &self.query, |series, value| take_of(&mut known, series, value));
            self.shared.of_segment(segment, read)?;
        }
        for generation in generations {
            let (snapshot, _held) = self.snapshot(&generation)?;
            let mut known = Vec::new();
            snapshot.each_value(filter, &self.query, |series, value| take_of(&mut known, series, value))?;
        }
        Ok(())
    }

    /// Hands over what each generation and segment has of the profiles that a query wants, by series.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read, and what the callback returns.
    pub fn each_profile_part(
        &self,
        filter: &ProfileFilter<'_>,
        take: impl FnMut(ProfilePart) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_part_by(filter, |value| Some(value.series), take)
    }

    /// The same by the span that values name.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read, and what the callback returns.
    pub fn each_span_part(
        &self,
        filter: &ProfileFilter<'_>,
        take: impl FnMut(ProfilePart<ProfiledSpan>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_part_by(filter, |value| value.span, take)
    }

    fn each_part_by<K: Ord>(
        &self,
        filter: &ProfileFilter<'_>,
        key: impl Fn(&ProfileValue) -> Option<K>,
        mut take: impl FnMut(ProfilePart<K>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (generations, segments) = self.shared.all();
        let query = &self.query;
        for opened in self.opened(&segments, filter) {
            let (segment, opened) = opened?;
            let before = query.memory.bytes();
            let mut sums = GrowingSums::new(query);
            let read = opened.each_value(filter, query, |_, value| sums.add(key(value), value));
            let found = read.map(|()| sums.finish()).and_then(|sums| Ok((opened.named(&stacks_of(&sums), query)?, sums)));
            let (named, sums) = self.shared.of_segment(segment, found)?;
            self.hand_over(named.part(Arc::clone(opened.series()), sums), before, &mut take)?;
        }
        for generation in generations {
            let (snapshot, _held) = self.snapshot(&generation)?;
            let before = query.memory.bytes();
            let mut sums = GrowingSums::new(query);
            snapshot.each_value(filter, query, |_, value| sums.add(key(value), value))?;
            let sums = sums.finish();
            let named = generation.named_stacks(&stacks_of(&sums), query)?;
            self.hand_over(named.part(snapshot.series, sums), before, &mut take)?;
        }
        Ok(())
    }

    /// The segments that may have values in the time of a query, with the tables of their profiles.
    fn opened<'a>(
        &'a self,
        segments: &'a [Arc<Segment>],
        filter: &'a ProfileFilter<'_>,
    ) -> impl Iterator<Item = Result<(&'a Arc<Segment>, Arc<OpenProfiles>), StoreError>> {
        let in_time = segments.iter().filter(|segment| segment.entry.has_profiles_between(filter.from, filter.until));
        in_time.filter_map(|segment| {
            let parts = &self.shared.folders.parts;
            if parts.is_full() {
                trim(parts, segments);
            }
            let opened = self.shared.of_segment(segment, segment.profiles(&self.query)).transpose()?;
            Some(opened.map(|opened| (segment, opened)))
        })
    }

    /// What a generation has at this moment, and the memory of the copy.
    fn snapshot(&self, generation: &LiveGeneration) -> Result<(HeadSnapshot, Held), StoreError> {
        self.query.check()?;
        let snapshot = read(&generation.profiles).snapshot();
        let held = self.query.hold(snapshot.memory_bytes())?;
        Ok((snapshot, held))
    }

    /// Hands over a part, for which memory was taken beyond `before`: it is given back then.
    fn hand_over<K>(
        &self,
        part: ProfilePart<K>,
        before: u64,
        take: impl FnOnce(ProfilePart<K>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let memory = &self.query.memory;
        let of_part = memory.bytes().saturating_sub(before);
        if !part.sums.is_empty() {
            take(part)?;
        }
        memory.release_to(memory.bytes().saturating_sub(of_part));
        Ok(())
    }
}

impl LiveGeneration {
    /// The stacks of these numbers. Whoever pushes waits for some of them at a time, not for all.
    fn named_stacks(&self, ids: &BTreeSet<StackId>, query: &QueryLimits) -> Result<NamedStacks, StoreError> {
        let mut named = NamedStacks::default();
        for ids in Vec::from_iter(ids.iter().copied()).chunks(COPIED_AT_A_TIME) {
            let bytes = read(&self.profiles).copy_stacks(ids, &mut named);
            query.take(bytes)?;
        }
        for ids in named.wanted_locations().chunks(COPIED_AT_A_TIME) {
            let bytes = read(&self.profiles).copy_locations(ids, &mut named);
            query.take(bytes)?;
        }
        Ok(named)
    }
}
