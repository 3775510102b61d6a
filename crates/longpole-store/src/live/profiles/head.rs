//! The profiles of a server that stand in no segment yet, in memory.

use std::collections::HashMap;

use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue, SERVICE_LABEL};
use longpole_model::{Text, Timestamp};

use super::stack_tables::StackTables;
use crate::numbers::{u32_of, usize_of};

/// Series of a generation. A program that puts a request's id into a label has a series for each request: those behind this number count for one
/// series of their service.
const SERIES_MAX: usize = if cfg!(test) { 4 } else { 1 << 16 };

/// The label of the series that all of a service behind [`SERIES_MAX`] count for.
pub const OVERFLOW_LABEL: &str = "longpole_overflow";

/// The profiles of one generation.
#[derive(Debug, Default)]
pub(crate) struct ProfileHead {
    pub(super) tables: StackTables,
    pub(super) series: Vec<ProfileSeries>,
    series_of: HashMap<ProfileSeries, u32>,
    pub(super) values: Vec<ProfileValue>,
    series_bytes: usize,
    /// Values whose series was one too many.
    overflown: u64,
}

impl ProfileHead {
    /// Values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Values that count for another series than their own, because there were too many.
    pub(crate) fn overflown(&self) -> u64 {
        self.overflown
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let values = self.values.capacity() * size_of::<ProfileValue>();
        self.tables.memory_bytes() + (self.series_bytes + values) as u64
    }

    /// The series with a value between two times, the second of them too late.
    pub(crate) fn series_between(&self, from: Timestamp, until: Timestamp) -> impl Iterator<Item = &ProfileSeries> {
        let mut has_value = vec![false; self.series.len()];
        let inside = self.values.iter().filter(|value| from <= value.time && value.time < until);
        inside.for_each(|value| has_value[value.series as usize] = true);
        self.series.iter().zip(has_value).filter(|(_, has_value)| *has_value).map(|(series, _)| series)
    }

    /// The first and the last time of a value.
    pub(crate) fn times(&self) -> Option<[Timestamp; 2]> {
        Some([self.values.iter().map(|value| value.time).min()?, self.values.iter().map(|value| value.time).max()?])
    }

    /// Takes the profiles of a request.
    pub(crate) fn push(&mut self, batch: &ProfileBatch) {
        let stacks = self.tables.take(batch);
        let mut series: Vec<Option<(u32, bool)>> = vec![None; batch.series.len()];
        for value in &batch.values {
            // One without a series or a stack was refused when the request was decoded.
            let (Some(of_batch), Some(stack)) = (batch.series.get(value.series as usize), stacks.get(value.stack.0 as usize)) else {
                continue;
            };
            let (place, is_overflow) = *series[value.series as usize].get_or_insert_with(|| self.place_of(of_batch));
            self.overflown += u64::from(is_overflow);
            self.values.push(ProfileValue { series: place, stack: *stack, ..*value });
        }
    }

    /// The place of a series, and whether it is another one than its own.
    fn place_of(&mut self, series: &ProfileSeries) -> (u32, bool) {
        if let Some(known) = self.series_of.get(series) {
            return (*known, false);
        }
        let is_overflow = self.series.len() >= SERIES_MAX;
        let series = if is_overflow { overflow_of(series) } else { series.clone() };
        let next = u32_of(self.series.len());
        let place = *self.series_of.entry(series.clone()).or_insert(next);
        if place == next {
            self.series_bytes += 2 * usize_of(series.memory_bytes());
            self.series.push(series);
        }
        (place, is_overflow)
    }
}

/// The series of a service that takes what has no room in its own.
fn overflow_of(series: &ProfileSeries) -> ProfileSeries {
    let mut labels = vec![(Text::from(OVERFLOW_LABEL), Text::from("true"))];
    labels.extend(series.label(SERVICE_LABEL).map(|service| (Text::from(SERVICE_LABEL), service.clone())));
    ProfileSeries { profile_type: series.profile_type.clone(), labels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile_batch;

    #[test]
    fn too_many_series_count_for_one_of_their_service() {
        let mut head = ProfileHead::default();
        for request in 0..20 {
            let mut batch = profile_batch("cart", 0, &[("main", 1)]);
            batch.series[0].labels.insert(0, ("request".into(), request.to_string().into()));
            head.push(&batch);
        }
        assert_eq!((head.series.len(), head.values.len(), head.overflown()), (SERIES_MAX + 1, 20, 16));
        let last = &head.series[SERIES_MAX];
        assert_eq!(
            (last.label(OVERFLOW_LABEL).map(Text::as_str), last.label(SERVICE_LABEL).map(Text::as_str)),
            (Some("true"), Some("cart"))
        );
    }
}
