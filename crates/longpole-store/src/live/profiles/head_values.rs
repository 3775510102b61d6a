//! The values of a head, and a copy of them at one moment.
//!
//! ```text
//! chunks │ 4,096 values │ 4,096 values │   shared with every copy, as they do not change any more
//! rest   │ fewer                       │   copied
//! ```
//!
//! A query compares regular expressions with labels, which takes as long as its sender wants. It does so on a copy: whoever pushes waits for the
//! copy at most.

use std::sync::Arc;

use longpole_model::Timestamp;
use longpole_model::profile::{ProfileSeries, ProfileValue};

use super::query::{ProfileFilter, SeriesList, overlaps};
use crate::error::StoreError;
use crate::query_limits::QueryLimits;

/// Values of a chunk.
const CHUNK: usize = if cfg!(test) { 3 } else { 4_096 };

/// Values that do not change any more, with their first and their last time.
#[derive(Debug, Clone)]
struct Chunk {
    values: Arc<[ProfileValue]>,
    times: [Timestamp; 2],
}

impl Chunk {
    fn of(values: &[ProfileValue]) -> Chunk {
        let times = values.iter().map(|value| [value.time; 2]);
        let times = times.reduce(|[first, last], [time, _]| [first.min(time), last.max(time)]);
        Chunk { values: values.into(), times: times.unwrap_or_default() }
    }
}

/// Values that are added one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadValues {
    chunks: Vec<Chunk>,
    rest: Vec<ProfileValue>,
}

impl HeadValues {
    pub(super) fn push(&mut self, value: ProfileValue) {
        self.rest.push(value);
        if self.rest.len() == CHUNK {
            self.chunks.push(Chunk::of(&self.rest));
            self.rest.clear();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.rest.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ProfileValue> {
        self.chunks.iter().flat_map(|chunk| &*chunk.values).chain(&self.rest)
    }

    /// The values that may lie between two times, the second of them too late.
    fn between(&self, from: Timestamp, until: Timestamp) -> impl Iterator<Item = &[ProfileValue]> {
        let chunks = self.chunks.iter().filter(move |chunk| overlaps(chunk.times, from, until)).map(|chunk| &*chunk.values);
        chunks.chain(std::iter::once(self.rest.as_slice()))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.chunks.len() * CHUNK + self.rest.capacity()) * size_of::<ProfileValue>()
    }
}

/// The series and the values of a head at one moment.
#[derive(Debug)]
pub(in crate::live) struct HeadSnapshot {
    pub(in crate::live) series: SeriesList,
    pub(super) values: HeadValues,
}

impl HeadSnapshot {
    /// Memory that it takes beside what it shares, about.
    pub(in crate::live) fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.series) + size_of_val(&*self.values.chunks) + size_of_val(&*self.values.rest)) as u64
    }

    /// Hands over the values that a query wants, with the places of their series.
    pub(in crate::live) fn each_value(
        &self,
        filter: &ProfileFilter<'_>,
        query: &QueryLimits,
        mut take: impl FnMut(&[Arc<ProfileSeries>], &ProfileValue) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut is_wanted: Vec<Option<bool>> = vec![None; self.series.len()];
        for values in self.values.between(filter.from, filter.until) {
            query.check()?;
            for value in values.iter().filter(|value| filter.wants(value)) {
                let place = value.series as usize;
                let finds = match is_wanted[place] {
                    Some(known) => known,
                    None => filter.finds(&self.series[place], query)?,
                };
                is_wanted[place] = Some(finds);
                if finds {
                    take(&self.series, value)?;
                }
            }
        }
        Ok(())
    }

    /// The series with a value that a query wants.
    pub(in crate::live) fn series_of(
        &self,
        filter: &ProfileFilter<'_>,
        query: &QueryLimits,
    ) -> Result<Vec<Arc<ProfileSeries>>, StoreError> {
        let mut has_value = vec![false; self.series.len()];
        let values = self.values.between(filter.from, filter.until).flatten();
        values.filter(|value| filter.wants(value)).for_each(|value| has_value[value.series as usize] = true);
        let with_value = self.series.iter().zip(has_value).filter(|(_, has_value)| *has_value).map(|(series, _)| series);
        let wanted = with_value.map(|series| Ok(filter.finds(series, query)?.then(|| Arc::clone(series))));
        wanted.filter_map(Result::transpose).collect()
    }
}
