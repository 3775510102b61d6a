//! The profiles of a segment, in tables.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use longpole_model::profile::{ProfileSeries, ProfileValue};
use longpole_model::{Location, Mapping, Stack, StackId, Timestamp};

use super::head::ProfileHead;
use super::head_values::HeadSnapshot;
use super::named_stacks::NamedStacks;
use super::query::{ProfileFilter, SeriesList, overlaps};
use crate::error::StoreError;
use crate::format::RECORDING_VERSION;
use crate::memory::kept_texts::KeptTexts;
use crate::numbers::u32_of;
use crate::query_limits::QueryLimits;
use crate::segment::reader::{OpenTable, Tables};
use crate::segment::writer::Writer;
use crate::tables::batch::BadRows;
use crate::tables::profile_series::{self, SeriesRow};
use crate::tables::{frames, locations, mappings, profile_values, stacks};

/// Writes the profiles of a generation, by series and time. Returns the first and the last time of a value.
pub(in crate::live) fn write(writer: &mut Writer<'_>, head: &ProfileHead) -> Result<[Timestamp; 2], StoreError> {
    let HeadSnapshot { series, values } = head.snapshot();
    let mut values: Vec<ProfileValue> = values.iter().copied().collect();
    values.sort_by_key(|value| (value.series, value.time, value.stack));
    let rows: Vec<SeriesRow> = values
        .chunk_by(|a, b| a.series == b.series)
        .scan(0, |first, values| {
            let range = *first..*first + u32_of(values.len());
            *first = range.end;
            let times = [values[0].time, values[values.len() - 1].time];
            Some(SeriesRow { series: Arc::clone(&series[values[0].series as usize]), values: range, times })
        })
        .collect();
    // Series without a value have no row, so the numbers are those of the rows.
    for (number, row) in rows.iter().enumerate() {
        values[row.values.start as usize..row.values.end as usize].iter_mut().for_each(|value| value.series = u32_of(number));
    }
    let tables = &head.tables;
    writer.write(&profile_series::TABLE, size_of::<SeriesRow>(), &rows, profile_series::build)?;
    writer.write(&profile_values::TABLE, 0, &values, profile_values::build)?;
    writer.write(&mappings::TABLE, size_of::<Mapping>(), &tables.mappings, mappings::build)?;
    writer.write(&locations::TABLE, size_of::<Location>(), &tables.locations, locations::build)?;
    writer.write(&frames::TABLE, FRAME_BYTES, &frames::rows(&tables.locations), frames::build)?;
    writer.write(&stacks::TABLE, size_of::<Stack>(), &tables.stacks, stacks::build)?;
    Ok(head.times().unwrap_or_default())
}

/// Whether a segment has profiles.
pub(in crate::live) fn is_there(directory: &Path) -> bool {
    directory.join(profile_series::TABLE.file_name()).exists()
}

/// Memory of a frame without its texts.
const FRAME_BYTES: usize = size_of::<longpole_model::Frame>();

/// The tables of a segment's profiles, and which series there are.
#[derive(Debug)]
pub(in crate::live) struct OpenProfiles {
    rows: Vec<SeriesRow>,
    series: SeriesList,
    values: OpenTable,
    stacks: OpenTable,
    locations: OpenTable,
    frames: OpenTable,
    bytes: u64,
}

impl OpenProfiles {
    pub(in crate::live) fn open(directory: &Path, query: &QueryLimits) -> Result<Self, StoreError> {
        let tables = Tables::of_directory(directory, RECORDING_VERSION)?;
        let open = |table| OpenTable::new(&tables, table);
        let of_series = open(&profile_series::TABLE)?;
        let (mut texts, mut rows) = (KeptTexts::of_reader(), Vec::new());
        let before = query.memory.bytes();
        let row_bytes = size_of::<SeriesRow>() + size_of::<ProfileSeries>();
        of_series.read_all(row_bytes, query, |batch| profile_series::read(&batch, &mut texts, &mut rows))?;
        let of_rows = query.memory.bytes().saturating_sub(before);
        let (values, stacks, locations) = (open(&profile_values::TABLE)?, open(&stacks::TABLE)?, open(&locations::TABLE)?);
        let frames = open(&frames::TABLE)?;
        let bytes = of_rows + [&values, &stacks, &locations, &frames].iter().map(|table| table.memory_bytes()).sum::<u64>();
        let series = rows.iter().map(|row| Arc::clone(&row.series)).collect();
        Ok(OpenProfiles { rows, series, values, stacks, locations, frames, bytes })
    }

    /// Memory that it takes, about.
    pub(in crate::live) fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// Its series, by place.
    pub(in crate::live) fn series(&self) -> &SeriesList {
        &self.series
    }

    /// How many values there are.
    pub(in crate::live) fn len(&self) -> usize {
        self.values.len()
    }

    /// The first and the last time of a value.
    pub(in crate::live) fn times(&self) -> Option<[Timestamp; 2]> {
        Some([self.rows.iter().map(|row| row.times[0]).min()?, self.rows.iter().map(|row| row.times[1]).max()?])
    }

    fn wanted<'a>(&'a self, filter: &ProfileFilter<'_>, query: &QueryLimits) -> Result<Vec<&'a SeriesRow>, StoreError> {
        let in_time = self.rows.iter().filter(|row| overlaps(row.times, filter.from, filter.until));
        let wanted = in_time.map(|row| Ok(filter.finds(&row.series, query)?.then_some(row)));
        wanted.filter_map(Result::transpose).collect()
    }

    /// The series that may have a value that a query wants.
    pub(in crate::live) fn series_of(
        &self,
        filter: &ProfileFilter<'_>,
        query: &QueryLimits,
    ) -> Result<Vec<&Arc<ProfileSeries>>, StoreError> {
        Ok(self.wanted(filter, query)?.into_iter().map(|row| &row.series).collect())
    }

    /// Hands over the values that a query wants, with the places of their series.
    pub(in crate::live) fn each_value(
        &self,
        filter: &ProfileFilter<'_>,
        query: &QueryLimits,
        mut take: impl FnMut(&[Arc<ProfileSeries>], &ProfileValue) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let ranges: Vec<Range<u32>> = self.wanted(filter, query)?.into_iter().map(|row| row.values.clone()).collect();
        let mut failed = None;
        let read = self.values.read(0, &ranges, query, |batch| {
            profile_values::read(&batch, |value| {
                if (value.series as usize) < self.series.len() && filter.wants(&value) {
                    take(&self.series, &value).map_err(|error| {
                        let reason = BadRows(error.to_string());
                        failed = Some(error);
                        reason
                    })?;
                }
                Ok(())
            })
        });
        failed.map_or(read, Err)
    }

    /// The stacks of these numbers.
    pub(in crate::live) fn named(&self, ids: &BTreeSet<StackId>, query: &QueryLimits) -> Result<NamedStacks, StoreError> {
        let mut named = NamedStacks::default();
        let stacks = ranges_of(ids.iter().map(|id| id.0));
        self.stacks.read(size_of::<Stack>(), &stacks, query, |batch| stacks::read(&batch, &mut named.stacks))?;
        let wanted: Vec<u32> = named.wanted_locations().iter().map(|id| id.0).collect();
        let locations = ranges_of(wanted.iter().copied());
        self.locations.read(size_of::<Location>(), &locations, query, |batch| locations::read(&batch, &mut named.locations))?;
        let place_of = |location: u32| wanted.binary_search(&location).ok();
        let (mut rows, mut row) = (Vec::new(), 0);
        self.frames.read_columns(&[frames::LOCATION], 0, query, |batch| {
            frames::read_location_ids(&batch, |location| {
                rows.extend(place_of(location).map(|_| row));
                row += 1;
            })
        })?;
        let frames = ranges_of(rows.into_iter());
        self.frames.read(FRAME_BYTES, &frames, query, |batch| frames::read_at(&batch, &mut named.locations, place_of))?;
        Ok(named)
    }
}

/// Numbers in their order as ranges.
fn ranges_of(numbers: impl Iterator<Item = u32>) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end = number.saturating_add(1),
            _ => ranges.push(number..number.saturating_add(1)),
        }
    }
    ranges
}
