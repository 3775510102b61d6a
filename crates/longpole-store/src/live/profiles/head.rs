//! The profiles of a server that stand in no segment yet, in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue, SERVICE_LABEL};
use longpole_model::{LocationId, StackId, Text, Timestamp};

use super::head_values::{HeadSnapshot, HeadValues};
use super::named_stacks::NamedStacks;
use super::stack_tables::StackTables;
use crate::numbers::{u32_of, usize_of};

/// Series of a generation. A program that puts a request's id into a label has a series for each request: those behind this number count for one
/// series of their service.
const SERIES_MAX: usize = if cfg!(test) { 4 } else { 1 << 16 };

/// Series that take those that are too many. With more services and types than that, the generation has to end.
const OVERFLOW_SERIES_MAX: usize = if cfg!(test) { 2 } else { 1_024 };

/// The label of the series that all of a service behind [`SERIES_MAX`] count for.
pub const OVERFLOW_LABEL: &str = "longpole_overflow";

/// The profiles of one generation.
#[derive(Debug, Default)]
pub(crate) struct ProfileHead {
    pub(super) tables: StackTables,
    series: Vec<Arc<ProfileSeries>>,
    series_of: HashMap<Arc<ProfileSeries>, u32>,
    values: HeadValues,
    times: Option<[Timestamp; 2]>,
    series_bytes: usize,
    /// Values whose series was one too many.
    overflown: u64,
    /// Whether every series has its own place, however many there are.
    is_unbounded: bool,
}

/// Where a value of a series is counted.
#[derive(Debug, Clone, Copy)]
enum SeriesPlace {
    Own(u32),
    Overflow(u32),
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

    /// One for logs that an earlier server left: together they may have more series than one generation takes.
    pub(crate) fn unbounded() -> Self {
        ProfileHead { is_unbounded: true, ..ProfileHead::default() }
    }

    /// Whether each series of a request has a place, its own or that of its service.
    pub(crate) fn has_room(&self, batch: &ProfileBatch) -> bool {
        let mut len = self.series.len();
        if self.is_unbounded || len + batch.series.len() <= SERIES_MAX {
            return true;
        }
        let mut new: HashSet<ProfileSeries> = HashSet::new();
        for series in batch.series.iter().filter(|series| !self.series_of.contains_key(*series)) {
            let place = if len < SERIES_MAX { series.clone() } else { overflow_of(series) };
            if !self.series_of.contains_key(&place) && new.insert(place) {
                len += 1;
            }
        }
        len <= SERIES_MAX + OVERFLOW_SERIES_MAX
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.tables.memory_bytes() + (self.series_bytes + self.values.memory_bytes()) as u64
    }

    /// What it has at this moment.
    pub(crate) fn snapshot(&self) -> HeadSnapshot {
        HeadSnapshot { series: self.series.iter().cloned().collect(), values: self.values.clone() }
    }

    /// Adds these stacks to those that a query needs. Returns the memory that they take.
    pub(crate) fn copy_stacks(&self, ids: &[StackId], named: &mut NamedStacks) -> u64 {
        self.tables.copy_stacks(ids, named)
    }

    /// Adds these locations to those that a query needs. Returns the memory that they take.
    pub(crate) fn copy_locations(&self, ids: &[LocationId], named: &mut NamedStacks) -> u64 {
        self.tables.copy_locations(ids, named)
    }

    /// The first and the last time of a value.
    pub(crate) fn times(&self) -> Option<[Timestamp; 2]> {
        self.times
    }

    /// Takes the profiles of a request.
    pub(crate) fn push(&mut self, batch: &ProfileBatch) {
        let stacks = self.tables.take(batch);
        let mut places: Vec<Option<SeriesPlace>> = vec![None; batch.series.len()];
        for value in &batch.values {
            // One without a series or a stack was refused when the request was decoded.
            let (Some(of_batch), Some(stack)) = (batch.series.get(value.series as usize), stacks.get(value.stack.0 as usize)) else {
                continue;
            };
            let series = match *places[value.series as usize].get_or_insert_with(|| self.place_of(of_batch)) {
                SeriesPlace::Own(place) => place,
                SeriesPlace::Overflow(place) => {
                    self.overflown += 1;
                    place
                }
            };
            self.values.push(ProfileValue { series, stack: *stack, ..*value });
            let [first, last] = self.times.unwrap_or([value.time; 2]);
            self.times = Some([first.min(value.time), last.max(value.time)]);
        }
    }

    fn place_of(&mut self, series: &ProfileSeries) -> SeriesPlace {
        if let Some(known) = self.series_of.get(series) {
            return SeriesPlace::Own(*known);
        }
        if self.is_unbounded || self.series.len() < SERIES_MAX {
            return SeriesPlace::Own(self.add_series(series.clone()));
        }
        let overflow = overflow_of(series);
        let known = self.series_of.get(&overflow).copied();
        SeriesPlace::Overflow(known.unwrap_or_else(|| self.add_series(overflow)))
    }

    fn add_series(&mut self, series: ProfileSeries) -> u32 {
        let place = u32_of(self.series.len());
        self.series_bytes += usize_of(series.memory_bytes()) + size_of::<(Arc<ProfileSeries>, u32)>();
        let series = Arc::new(series);
        self.series.push(Arc::clone(&series));
        self.series_of.insert(series, place);
        place
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

    #[test]
    fn a_generation_has_room_for_a_number_of_services() {
        let batch = |service: usize| profile_batch(&format!("service-{service}"), 0, &[("main", 1)]);
        let (mut head, mut unbounded) = (ProfileHead::default(), ProfileHead::unbounded());
        for service in 0..20 {
            assert_eq!(head.has_room(&batch(service)), service < SERIES_MAX + OVERFLOW_SERIES_MAX);
            if head.has_room(&batch(service)) {
                head.push(&batch(service));
            }
            assert!(unbounded.has_room(&batch(service)));
            unbounded.push(&batch(service));
        }
        assert!(head.has_room(&batch(0)), "its series is known");
        assert_eq!((head.series.len(), head.values.len(), head.overflown()), (SERIES_MAX + OVERFLOW_SERIES_MAX, 6, 2));
        assert_eq!((unbounded.series.len(), unbounded.overflown()), (20, 0));
    }

    #[test]
    fn a_snapshot_has_every_value_until_then() {
        let mut head = ProfileHead::default();
        (0..7).for_each(|second| head.push(&profile_batch("cart", second, &[("main", second)])));
        let snapshot = head.snapshot();
        head.push(&profile_batch("cart", 9, &[("main", 9)]));
        let values: Vec<i64> = snapshot.values.iter().map(|value| value.value).collect();
        assert_eq!(values, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!((head.len(), head.times()), (8, Some([Timestamp(0), Timestamp(9)])));
    }
}
