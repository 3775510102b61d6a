//! Profiles into a live store, and out of it.

use std::collections::BTreeSet;

use longpole_model::Timestamp;
use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue, ProfiledSpan};

use super::{Appended, LiveStore, ProfileFilter, ProfilePart, read};
use crate::error::StoreError;
use crate::wal::{WalError, encode_profiles};

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

    /// The series of profiles with a value between two times, the second of them too late; each once, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn profile_series(&self, from: Timestamp, until: Timestamp) -> Result<BTreeSet<ProfileSeries>, StoreError> {
        let (generations, segments) = self.shared.all();
        let mut series = BTreeSet::new();
        for segment in segments.iter().filter(|segment| segment.entry.has_profiles_between(from, until)) {
            if let Some(opened) = self.shared.of_segment(segment, segment.profiles(&self.query))? {
                series.extend(opened.series_between(from, until).cloned());
            }
        }
        for generation in generations {
            series.extend(read(&generation.profiles).series_between(from, until).cloned());
        }
        self.query.take(series.iter().map(ProfileSeries::memory_bytes).sum())?;
        Ok(series)
    }

    /// The first and the last time of a value of a profile; `None` without any.
    pub fn profile_times(&self) -> Option<[Timestamp; 2]> {
        let (generations, segments) = self.shared.all();
        let of_heads = generations.iter().filter_map(|generation| read(&generation.profiles).times());
        let all = segments.iter().filter_map(|segment| segment.entry.profile_times).chain(of_heads);
        all.reduce(|[first, last], [other_first, other_last]| [first.min(other_first), last.max(other_last)])
    }

    /// Hands over the values of profiles that a query wants, each once, in no order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn each_profile_value(
        &self,
        filter: &ProfileFilter<'_>,
        mut take: impl FnMut(&ProfileSeries, &ProfileValue),
    ) -> Result<(), StoreError> {
        let (generations, segments) = self.shared.all();
        for segment in segments.iter().filter(|segment| segment.entry.has_profiles_between(filter.from, filter.until)) {
            let Some(opened) = self.shared.of_segment(segment, segment.profiles(&self.query))? else { continue };
            self.shared.of_segment(segment, self.query.briefly(|| opened.each_value(filter, &self.query, &mut take)))?;
        }
        for generation in generations {
            self.query.check()?;
            read(&generation.profiles).each_value(filter, &mut take);
        }
        Ok(())
    }

    /// Hands over what each generation and segment has of the profiles that a query wants, by series.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn each_profile_part(&self, filter: &ProfileFilter<'_>, take: impl FnMut(ProfilePart)) -> Result<(), StoreError> {
        self.each_part_by(filter, |value| Some(value.series), take)
    }

    /// The same by the span that values name.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn each_span_part(&self, filter: &ProfileFilter<'_>, take: impl FnMut(ProfilePart<ProfiledSpan>)) -> Result<(), StoreError> {
        self.each_part_by(filter, |value| value.span, take)
    }

    fn each_part_by<K: Ord>(
        &self,
        filter: &ProfileFilter<'_>,
        key: impl Fn(&ProfileValue) -> Option<K>,
        mut take: impl FnMut(ProfilePart<K>),
    ) -> Result<(), StoreError> {
        let (generations, segments) = self.shared.all();
        for segment in segments.iter().filter(|segment| segment.entry.has_profiles_between(filter.from, filter.until)) {
            let Some(opened) = self.shared.of_segment(segment, segment.profiles(&self.query))? else { continue };
            let part = self.query.briefly(|| opened.part(filter, &key, &self.query, || segment.stacks(&self.query)));
            self.shared.of_segment(segment, part)?.into_iter().for_each(&mut take);
        }
        for generation in generations {
            self.query.check()?;
            let part = self.query.briefly(|| read(&generation.profiles).part(filter, &key, &self.query))?;
            part.into_iter().for_each(&mut take);
        }
        Ok(())
    }
}
