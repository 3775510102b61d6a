//! A segment of a server: the spans of a generation, in tables, with an index of their traces.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longpole_model::{Span, SpanEvent, SpanLink, StatusCode, TimeRange, Timestamp, TraceId};

use super::kept_parts::PartsAccount;
use super::log_events::{self, is_log_event};
use super::manifest::{SERVICES_MAX, SegmentEntry};
use super::operations::Operations;
use super::profiles::{self, OpenProfiles, ProfileHead};
use super::range_of_hour;
use super::trace_index::TraceIndex;
use crate::compact_spans::CompactSpans;
use crate::error::StoreError;
use crate::files;
use crate::format::RECORDING_VERSION;
use crate::memory::kept_texts::KeptTexts;
use crate::query_limits::QueryLimits;
use crate::segment::reader::{OpenTable, Tables};
use crate::segment::writer::Writer;
use crate::tables::batch::Batch;
use crate::tables::spans::{SpanRows, Spans};
use crate::tables::traces::{self, TraceRow};
use crate::tables::{span_events, span_links, spans};
use crate::trace_summary::{CountedTrace, TraceSummary};

/// File of the index.
const INDEX: &str = "trace.idx";

/// Rows of a page. A trace of ten spans is read with one page of each column.
const PAGE_ROWS: usize = if cfg!(test) { 4 } else { 4096 };

/// Rows of a row group. With a trace the dictionaries of its row group are read, which grow with its rows.
const GROUP_ROWS: usize = if cfg!(test) { 11 } else { 32_768 };

/// A segment that can be read.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) entry: SegmentEntry,
    directory: PathBuf,
    parts: Mutex<Parts>,
    last_use: AtomicU64,
    account: Arc<PartsAccount>,
}

/// What was read of a segment, and is kept for the next query.
#[derive(Debug, Default)]
struct Parts {
    index: Option<Arc<TraceIndex>>,
    open: Option<Arc<OpenTables>>,
    operations: Option<Arc<Operations>>,
    profiles: Option<Arc<OpenProfiles>>,
    /// What they take together.
    bytes: u64,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.forget_parts();
    }
}

/// The tables of a segment, opened at the first question.
#[derive(Debug)]
pub(super) struct OpenTables {
    pub(super) traces: OpenTable,
    pub(super) spans: OpenTable,
    pub(super) events: OpenTable,
    links: OpenTable,
}

impl OpenTables {
    fn memory_bytes(&self) -> u64 {
        [&self.traces, &self.spans, &self.events, &self.links].iter().map(|table| table.memory_bytes()).sum()
    }
}

/// Frees what is kept of segments that no query has used for the longest time, until there is room.
pub(super) fn trim(account: &PartsAccount, segments: &[Arc<Segment>]) {
    let mut by_use: Vec<(u64, &Arc<Segment>)> = segments.iter().map(|segment| (segment.last_use(), segment)).collect();
    by_use.sort_unstable_by_key(|(used, _)| *used);
    for (_, segment) in by_use {
        if account.has_room() {
            return;
        }
        segment.forget_parts();
    }
}

/// What a segment holds, beside its rows.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) profile_values: u64,
    pub(super) spans: u64,
    pub(super) traces: u64,
    pub(super) bytes: u64,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// First and last time of a profile's value; `None` without profiles.
    pub(super) profile_times: Option<[Timestamp; 2]>,
}

/// Writes a segment into a folder that is not there yet, and waits until the disk has it.
pub(super) fn write(directory: &Path, spans: &CompactSpans, profile_head: &ProfileHead) -> Result<Written, StoreError> {
    files::create_dir(directory).map_err(StoreError::io("create", directory))?;
    let rows = SpanRows::of(Spans::Compact(spans));
    let (events, links) = (span_events::parts(&rows), span_links::parts(&rows));
    let traces = trace_rows(&rows);
    let (mut texts, mut counted) = (KeptTexts::of_writer(), spans::Counted::default());
    let mut writer = Writer::new(directory).with_pages_of(PAGE_ROWS, GROUP_ROWS);
    writer.write_ranges(&spans::TABLE, size_of::<Span>(), rows.len(), |range, needs| {
        let rows = rows.range(range);
        counted.count(needs, &mut texts, &rows);
        spans::build(&rows)
    })?;
    writer.write_ranges(&span_events::TABLE, size_of::<SpanEvent>(), events.len(), |range, _| span_events::build(&rows, &events[range]))?;
    writer.write_ranges(&span_links::TABLE, size_of::<SpanLink>(), links.len(), |range, _| span_links::build(&rows, &links[range]))?;
    writer.write(&traces::TABLE, size_of::<TraceRow>(), &traces, traces::build)?;
    writer.allow(texts.more_in_another_order());
    let of_profiles = if profile_head.len() > 0 { Some(profiles::write(&mut writer, profile_head)?) } else { None };
    writer.finish()?;
    let index = TraceIndex::of(traces.iter().map(|trace| trace.summary.trace_id));
    let path = directory.join(INDEX);
    files::write_new(&path, index.bytes()).map_err(StoreError::io("write", path))?;
    let bytes = files::sync_dir_with_files(directory).map_err(StoreError::io("sync", directory))?;
    Ok(Written {
        profile_values: profile_head.len() as u64,
        spans: rows.len() as u64,
        traces: traces.len() as u64,
        bytes,
        start: traces.iter().map(|trace| trace.summary.start).min().unwrap_or(Timestamp(0)),
        end: traces.iter().map(|trace| trace.summary.end).max().unwrap_or(Timestamp(0)),
        profile_times: of_profiles,
    })
}

/// What a list says of the segment in this folder, from the segment itself. When its spans were received only the name of its hour tells.
pub(super) fn entry_of(hour: &str, folder: &Path) -> Result<SegmentEntry, StoreError> {
    let bad_name = || StoreError::Corrupt { path: folder.to_owned(), reason: "its name is none that longpole gives".to_owned() };
    let id = folder.file_name().and_then(|name| name.to_str()).ok_or_else(bad_name)?;
    let received = range_of_hour(hour).ok_or_else(bad_name)?;
    let mut entry = SegmentEntry {
        id: id.to_owned(),
        hour: hour.to_owned(),
        spans: 0,
        traces: 0,
        bytes: files::sync_dir_with_files(folder).map_err(StoreError::io("read", folder))?,
        start: Timestamp(i64::MAX),
        end: Timestamp(i64::MIN),
        received,
        services: Vec::new(),
        schema: RECORDING_VERSION,
        profile_values: 0,
        profile_times: None,
    };
    if profiles::is_there(folder) {
        let opened = OpenProfiles::open(folder, &QueryLimits::default())?;
        (entry.profile_values, entry.profile_times) = (opened.len() as u64, opened.times());
    }
    let segment = Segment::new(folder.to_owned(), entry.clone(), &Arc::default());
    segment.index()?;
    let mut services = BTreeSet::new();
    for row in segment.traces(&QueryLimits::default())? {
        entry.spans += u64::from(row.spans.end - row.spans.start);
        entry.traces += 1;
        (entry.start, entry.end) = (entry.start.min(row.summary.start), entry.end.max(row.summary.end));
        services.extend(row.summary.services.into_iter().map(|(service, _)| service));
    }
    if services.len() <= SERVICES_MAX {
        entry.services = services.iter().map(ToString::to_string).collect();
    }
    if !entry.is_plain() { Err(bad_name()) } else { Ok(entry) }
}

/// The traces of rows, which stand together.
fn trace_rows(rows: &SpanRows<'_>) -> Vec<TraceRow> {
    let mut traces: Vec<TraceRow> = Vec::new();
    let mut counted: Option<CountedTrace> = None;
    let finish = |traces: &mut Vec<TraceRow>, counted: Option<CountedTrace>| {
        if let (Some(trace), Some(counted)) = (traces.last_mut(), counted) {
            trace.summary = counted.finish();
        }
    };
    let (mut events, mut links) = (0, 0);
    for number in 0..rows.len() {
        let row = rows.get(number);
        let span = &row.span;
        if traces.last().is_none_or(|last| last.summary.trace_id != span.trace_id) {
            finish(&mut traces, counted.replace(CountedTrace::new(span.trace_id)));
            let summary = TraceSummary::new(span.trace_id);
            traces.push(TraceRow { summary, spans: row.row..row.row, events: events..events, links: links..links });
        }
        events += u32::try_from(span.events.len()).unwrap_or(u32::MAX);
        links += u32::try_from(span.links.len()).unwrap_or(u32::MAX);
        if let (Some(trace), Some(counted)) = (traces.last_mut(), &mut counted) {
            if !is_log_event(span) {
                let (range, is_error) = (TimeRange { start: span.start, end: span.end }, span.status.code == StatusCode::Error);
                counted.add(range, span.parent_span_id.is_none(), span.resource.service(), &span.name, is_error);
            }
            (trace.spans.end, trace.events.end, trace.links.end) = (row.row + 1, events, links);
        }
    }
    finish(&mut traces, counted);
    for trace in traces.iter_mut().filter(|trace| trace.summary.spans == 0) {
        // Only log records: the trace has a time all the same.
        let first = rows.get(trace.spans.start as usize);
        (trace.summary.start, trace.summary.end) = (first.span.start, first.span.end);
    }
    traces
}

impl Segment {
    pub(super) fn new(directory: PathBuf, entry: SegmentEntry, account: &Arc<PartsAccount>) -> Segment {
        Segment { entry, directory, parts: Mutex::default(), last_use: AtomicU64::new(0), account: Arc::clone(account) }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it was used last, by the clock of its account.
    fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// Frees what was kept of it. A query that reads it at this moment keeps what it has.
    pub(super) fn forget_parts(&self) {
        let parts = std::mem::take(&mut *self.parts());
        self.account.remove(parts.bytes);
    }

    /// A part that is kept, or else is made and kept.
    fn part<T>(
        &self,
        place: fn(&mut Parts) -> &mut Option<Arc<T>>,
        make: impl FnOnce() -> Result<T, StoreError>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> Result<Arc<T>, StoreError> {
        self.last_use.store(self.account.use_now(), Ordering::Relaxed);
        if let Some(kept) = place(&mut self.parts()) {
            return Ok(Arc::clone(kept));
        }
        let made = Arc::new(make()?);
        let bytes = bytes(&made);
        let mut parts = self.parts();
        // Another query may have been quicker.
        if let Some(kept) = place(&mut parts) {
            return Ok(Arc::clone(kept));
        }
        *place(&mut parts) = Some(Arc::clone(&made));
        parts.bytes += bytes;
        self.account.add(bytes);
        Ok(made)
    }

    pub(super) fn tables(&self) -> Result<Arc<OpenTables>, StoreError> {
        self.part(|parts| &mut parts.open, || self.open_tables(), OpenTables::memory_bytes)
    }

    fn open_tables(&self) -> Result<OpenTables, StoreError> {
        let tables = Tables::of_directory(&self.directory, RECORDING_VERSION)?;
        Ok(OpenTables {
            traces: OpenTable::new(&tables, &traces::TABLE)?,
            spans: OpenTable::new(&tables, &spans::TABLE)?,
            events: OpenTable::new(&tables, &span_events::TABLE)?,
            links: OpenTable::new(&tables, &span_links::TABLE)?,
        })
    }

    /// The tables of its profiles; `None` without any.
    pub(super) fn profiles(&self, query: &QueryLimits) -> Result<Option<Arc<OpenProfiles>>, StoreError> {
        if self.entry.profile_values == 0 {
            return Ok(None);
        }
        let open = || query.briefly(|| OpenProfiles::open(&self.directory, query));
        self.part(|parts| &mut parts.profiles, open, OpenProfiles::memory_bytes).map(Some)
    }

    fn index(&self) -> Result<Arc<TraceIndex>, StoreError> {
        self.part(|parts| &mut parts.index, || self.read_index(), |index| index.bytes().len() as u64)
    }

    fn read_index(&self) -> Result<TraceIndex, StoreError> {
        let path = self.directory.join(INDEX);
        let bytes = files::read(&path).map_err(StoreError::io("read", &path))?;
        match TraceIndex::parse(bytes) {
            Ok(Some(index)) => Ok(index),
            // It has a hash that anybody can compute.
            Ok(None) => Ok(TraceIndex::of(self.trace_ids(None, &QueryLimits::default())?.into_iter())),
            Err(reason) => Err(StoreError::Corrupt { path, reason: reason.to_owned() }),
        }
    }

    /// The ids of traces by their rows, which come in their order; without rows, of all.
    fn trace_ids(&self, rows: Option<&[u32]>, query: &QueryLimits) -> Result<Vec<TraceId>, StoreError> {
        let (tables, mut ids) = (self.tables()?, Vec::new());
        let take = |batch: Batch<'_>| traces::read_ids(&batch, &mut ids);
        match rows {
            None => tables.traces.read_columns(&[traces::ID], size_of::<TraceId>(), query, take)?,
            Some(rows) => {
                let ranges: Vec<_> = rows.iter().map(|row| *row..row.saturating_add(1)).collect();
                tables.traces.read_columns_at(&[traces::ID], size_of::<TraceId>(), &ranges, query, take)?;
            }
        }
        Ok(ids)
    }

    /// What a search needs of a trace, if it is here.
    pub(super) fn summary(&self, trace_id: TraceId, query: &QueryLimits) -> Result<Option<TraceSummary>, StoreError> {
        Ok(self.row(trace_id, query)?.map(|row| row.summary))
    }

    /// Where a trace is.
    pub(super) fn row(&self, trace_id: TraceId, query: &QueryLimits) -> Result<Option<TraceRow>, StoreError> {
        let candidates = self.index()?.rows_of(trace_id);
        if candidates.is_empty() {
            return Ok(None);
        }
        // Texts are read of the trace alone, however many have its fingerprint.
        let found = match candidates[..] {
            [only] => Some(only),
            _ => {
                let ids = self.trace_ids(Some(&candidates), query)?;
                candidates.into_iter().zip(ids).find(|(_, id)| *id == trace_id).map(|(row, _)| row)
            }
        };
        let Some(row) = found else { return Ok(None) };
        Ok(self.traces_at(&[row], query)?.into_iter().find(|row: &TraceRow| row.summary.trace_id == trace_id))
    }

    /// Every trace, in the order of the rows.
    pub(super) fn traces(&self, query: &QueryLimits) -> Result<Vec<TraceRow>, StoreError> {
        let (mut texts, mut rows) = (KeptTexts::of_reader(), Vec::new());
        self.tables()?.traces.read_all(size_of::<TraceRow>(), query, |batch| traces::read(&batch, &mut texts, &mut rows))?;
        Ok(rows)
    }

    /// Traces by their rows, which come in their order.
    pub(super) fn traces_at(&self, rows: &[u32], query: &QueryLimits) -> Result<Vec<TraceRow>, StoreError> {
        let ranges: Vec<_> = rows.iter().map(|row| *row..row.saturating_add(1)).collect();
        let (mut texts, mut found) = (KeptTexts::of_reader(), Vec::new());
        self.tables()?.traces.read(size_of::<TraceRow>(), &ranges, query, |batch| traces::read(&batch, &mut texts, &mut found))?;
        Ok(found)
    }

    /// The spans of a trace.
    pub(super) fn spans(&self, row: &TraceRow, query: &QueryLimits) -> Result<Vec<Span>, StoreError> {
        let tables = self.tables()?;
        let (mut texts, mut found) = (KeptTexts::of_reader(), Vec::new());
        self.read_spans(slice::from_ref(row), &mut texts, &mut found, query)?;
        let first = row.spans.start;
        tables.links.read_without(&span_links::REPEATED, size_of::<SpanLink>(), slice::from_ref(&row.links), query, |batch| {
            span_links::read(&batch, &mut texts, &mut found, first)
        })?;
        Ok(found)
    }

    /// The spans of these traces, which come in the order of their rows, with their events.
    pub(super) fn spans_of_all(&self, rows: &[TraceRow], query: &QueryLimits) -> Result<HashMap<TraceId, Vec<Span>>, StoreError> {
        let mut found = Vec::new();
        self.read_spans(rows, &mut KeptTexts::of_reader(), &mut found, query)?;
        let mut spans_of: HashMap<TraceId, Vec<Span>> = HashMap::new();
        for span in found {
            spans_of.entry(span.trace_id).or_default().push(span);
        }
        Ok(spans_of)
    }

    /// Reads the spans of these traces, one trace behind the other, with their events.
    fn read_spans(&self, rows: &[TraceRow], texts: &mut KeptTexts, found: &mut Vec<Span>, query: &QueryLimits) -> Result<(), StoreError> {
        let tables = self.tables()?;
        let mut emitters = spans::Emitters::default();
        let ranges: Vec<_> = rows.iter().map(|row| row.spans.clone()).collect();
        tables
            .spans
            .read_without(&spans::DERIVED, size_of::<Span>(), &ranges, query, |batch| spans::read(&batch, texts, &mut emitters, found))?;
        // For each trace its first row, and how many spans were found before it.
        let mut places: Vec<(u32, usize)> = Vec::with_capacity(rows.len());
        let mut before = 0;
        for range in &ranges {
            places.push((range.start, before));
            before += range.len();
        }
        let place_of = |row: i64| {
            let row = u32::try_from(row).ok()?;
            let (first, before) = places.get(places.partition_point(|(first, _)| *first <= row).checked_sub(1)?)?;
            Some(before + (row - first) as usize)
        };
        let events: Vec<_> = rows.iter().filter(|row| !row.events.is_empty()).map(|row| row.events.clone()).collect();
        tables.events.read_without(&span_events::REPEATED, size_of::<SpanEvent>(), &events, query, |batch| {
            span_events::read_at(&batch, texts, found, place_of)
        })
    }

    /// Services, operations and kinds of its spans.
    pub(super) fn operations(&self, query: &QueryLimits) -> Result<Arc<Operations>, StoreError> {
        self.part(|parts| &mut parts.operations, || self.read_operations(query), |operations| operations.bytes() as u64)
    }

    fn read_operations(&self, query: &QueryLimits) -> Result<Operations, StoreError> {
        let mut operations = Operations::default();
        self.tables()?.spans.read_columns(&["service_name", "name", "kind"], 0, query, |batch| {
            spans::read_operations(&batch, |service, name, kind| {
                if name != log_events::NAME {
                    operations.add(service, name, kind);
                }
            })
        })?;
        Ok(operations)
    }
}
