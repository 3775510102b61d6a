//! The profiles of a segment, in tables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use longpole_model::profile::{ProfileSeries, ProfileValue};
use longpole_model::{Location, Mapping, Stack, Timestamp};

use super::head::ProfileHead;
use super::query::{ProfileFilter, ProfilePart, ProfileStacks, SUM_BYTES, add};
use crate::error::StoreError;
use crate::format::RECORDING_VERSION;
use crate::memory::kept_texts::KeptTexts;
use crate::numbers::u32_of;
use crate::query_limits::QueryLimits;
use crate::segment::reader::{OpenTable, Tables};
use crate::segment::writer::Writer;
use crate::tables::profile_series::{self, SeriesRow};
use crate::tables::{frames, locations, mappings, profile_values, stacks};

/// Writes the profiles of a generation, by series and time. Returns the first and the last time of a value.
pub(in crate::live) fn write(writer: &mut Writer<'_>, head: &ProfileHead) -> Result<[Timestamp; 2], StoreError> {
    let mut values = head.values.clone();
    values.sort_by_key(|value| (value.series, value.time, value.stack));
    let rows: Vec<SeriesRow> = values
        .chunk_by(|a, b| a.series == b.series)
        .scan(0, |first, values| {
            let range = *first..*first + u32_of(values.len());
            *first = range.end;
            let times = [values[0].time, values[values.len() - 1].time];
            Some(SeriesRow { series: head.series[values[0].series as usize].clone(), values: range, times })
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
    let first = rows.iter().map(|row| row.times[0]).min().unwrap_or(Timestamp(0));
    let last = rows.iter().map(|row| row.times[1]).max().unwrap_or(Timestamp(0));
    Ok([first, last])
}

/// Whether a segment has profiles.
pub(in crate::live) fn is_there(directory: &Path) -> bool {
    directory.join(profile_series::TABLE.file_name()).exists()
}

/// Memory of a frame without its texts.
const FRAME_BYTES: usize = size_of::<longpole_model::Frame>();

/// The tables of values, and which series they are of.
#[derive(Debug)]
pub(in crate::live) struct OpenProfiles {
    series: Vec<SeriesRow>,
    values: OpenTable,
    bytes: u64,
}

/// The stacks of a segment, which stay in memory for the next query.
#[derive(Debug)]
pub(in crate::live) struct SegmentStacks {
    stacks: Arc<ProfileStacks>,
    bytes: u64,
}

impl OpenProfiles {
    pub(in crate::live) fn open(directory: &Path, query: &QueryLimits) -> Result<Self, StoreError> {
        let tables = Tables::of_directory(directory, RECORDING_VERSION)?;
        let (values, of_series) = (OpenTable::new(&tables, &profile_values::TABLE)?, OpenTable::new(&tables, &profile_series::TABLE)?);
        let (mut texts, mut series) = (KeptTexts::of_reader(), Vec::new());
        let before = query.memory.bytes();
        of_series.read_all(size_of::<SeriesRow>(), query, |batch| profile_series::read(&batch, &mut texts, &mut series))?;
        let bytes = values.memory_bytes() + query.memory.bytes().saturating_sub(before);
        Ok(OpenProfiles { series, values, bytes })
    }

    /// Memory that it takes, about.
    pub(in crate::live) fn memory_bytes(&self) -> u64 {
        self.bytes + (self.series.len() * size_of::<SeriesRow>()) as u64
    }

    /// How many values there are.
    pub(in crate::live) fn len(&self) -> usize {
        self.values.len()
    }

    /// The first and the last time of a value.
    pub(in crate::live) fn times(&self) -> Option<[Timestamp; 2]> {
        Some([self.series.iter().map(|row| row.times[0]).min()?, self.series.iter().map(|row| row.times[1]).max()?])
    }

    /// The series with a value between two times, the second of them too late.
    pub(in crate::live) fn series_between(&self, from: Timestamp, until: Timestamp) -> impl Iterator<Item = &ProfileSeries> {
        self.series.iter().filter(move |row| row.times[0] < until && row.times[1] >= from).map(|row| &row.series)
    }

    /// Hands over the values that a query wants.
    pub(in crate::live) fn each_value(
        &self,
        filter: &ProfileFilter<'_>,
        query: &QueryLimits,
        mut take: impl FnMut(&ProfileSeries, &ProfileValue),
    ) -> Result<(), StoreError> {
        let wanted = self.series.iter().filter(|row| filter.may_have(row.times) && (filter.series)(&row.series));
        let ranges: Vec<Range<u32>> = wanted.map(|row| row.values.clone()).collect();
        self.values.read(0, &ranges, query, |batch| {
            profile_values::read(&batch, |value| {
                if let Some(row) = self.series.get(value.series as usize).filter(|_| filter.wants(&value)) {
                    take(&row.series, &value);
                }
            })
        })
    }

    /// What it has for a query; `None` for nothing. `stacks` opens what the numbers of stacks mean.
    pub(in crate::live) fn part<K: Ord>(
        &self,
        filter: &ProfileFilter<'_>,
        key: impl Fn(&ProfileValue) -> Option<K>,
        query: &QueryLimits,
        stacks: impl FnOnce() -> Result<Arc<SegmentStacks>, StoreError>,
    ) -> Result<Option<ProfilePart<K>>, StoreError> {
        let mut sums = BTreeMap::new();
        self.each_value(filter, query, |_, value| add(&mut sums, key(value), value))?;
        if sums.is_empty() {
            return Ok(None);
        }
        query.take(sums.len() as u64 * SUM_BYTES)?;
        let series = self.series.iter().map(|row| row.series.clone()).collect();
        Ok(Some(ProfilePart { series, sums, stacks: Arc::clone(&stacks()?.stacks) }))
    }
}

impl SegmentStacks {
    pub(in crate::live) fn open(directory: &Path, query: &QueryLimits) -> Result<Self, StoreError> {
        let tables = Tables::of_directory(directory, RECORDING_VERSION)?;
        let (mut stacks, mut locations) = (Vec::new(), Vec::new());
        let before = query.memory.bytes();
        let open = |table| OpenTable::new(&tables, table);
        open(&stacks::TABLE)?.read_all(size_of::<Stack>(), query, |batch| stacks::read(&batch, &mut stacks))?;
        open(&locations::TABLE)?.read_all(size_of::<Location>(), query, |batch| locations::read(&batch, &mut locations))?;
        open(&frames::TABLE)?.read_all(FRAME_BYTES, query, |batch| frames::read(&batch, &mut locations))?;
        let bytes = query.memory.bytes().saturating_sub(before);
        Ok(SegmentStacks { stacks: Arc::new(ProfileStacks { stacks, locations }), bytes })
    }

    /// Memory that it takes, about.
    pub(in crate::live) fn memory_bytes(&self) -> u64 {
        self.bytes
    }
}
