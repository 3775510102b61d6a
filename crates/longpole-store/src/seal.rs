//! From a recording in memory to its segments and back, and the steps of sealing.
//!
//! ```text
//!      step                           what a crash behind it leaves
//!   1  write all tables into          log; an unfinished `segments.partial`, thrown away by the next attempt
//!      `segments.partial`
//!   2  rename it to `segments`        log; segments that the catalog does not know, replaced by the next attempt
//!   3  the catalog says sealed        segments that are read; a log that is not needed any more
//!   4  remove `wal`                   segments that are read
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use longpole_model::{
    Clock, ClockAnchor, CpuSlice, CurrentSpan, Frame, Location, Loss, LossKind, Mapping, Process, ProcessUsage, Recording, Run, Sample,
    SampleLink, Span, SpanEvent, SpanLink, Stack, Texts, Thread, Wait,
};

use crate::error::StoreError;
use crate::files;
use crate::packed::PackedRecording;
use crate::segment::{self, Tables};
use crate::tables::spans::{SpanRows, Spans};
use crate::tables::{
    ALL, Table, clock_anchors, cpu_slices, current_spans, frames, locations, losses, mappings, process_usage, processes, runs, samples,
    span_events, span_links, spans, stacks, threads, waits,
};

const PARTIAL: &str = "segments.partial";
const SEGMENTS: &str = "segments";
const WAL: &str = "wal";

/// Directory of the segments of a sealed recording.
pub(crate) fn segments(directory: &Path) -> PathBuf {
    directory.join(SEGMENTS)
}

/// Directory of the log.
pub(crate) fn wal_directory(directory: &Path) -> PathBuf {
    directory.join(WAL)
}

/// The log.
pub(crate) fn wal_file(directory: &Path) -> PathBuf {
    wal_directory(directory).join("000001.wal")
}

/// Removes a directory with all that is in it, if it is there; of a link in its place the link.
pub(crate) fn remove_directory(path: &Path) -> Result<(), StoreError> {
    files::remove_all(path).map_err(StoreError::io("remove", path))
}

/// Step 1: writes every table where no reader looks.
pub(crate) fn write_partial(directory: &Path, recording: &Recording) -> Result<(), StoreError> {
    write_partial_of(directory, recording, Spans::Whole(&recording.spans))
}

/// The same, of a recording whose spans are packed.
pub(crate) fn write_partial_packed(directory: &Path, recording: &PackedRecording) -> Result<(), StoreError> {
    write_partial_of(directory, &recording.rest, Spans::Packed(&recording.spans))
}

fn write_partial_of(directory: &Path, recording: &Recording, spans: Spans<'_>) -> Result<(), StoreError> {
    check_consistent(recording, spans.len())?;
    let partial = directory.join(PARTIAL);
    remove_directory(&partial)?;
    files::create_dir(&partial).map_err(StoreError::io("create", &partial))?;
    write_tables(&partial, recording, spans).inspect_err(|_| {
        // What was written of it is of no use, and the disk may be full of it. That it failed is what the caller has to know.
        let _ = remove_directory(&partial);
    })
}

/// Step 2: makes them the segments, all at once.
pub(crate) fn publish(directory: &Path) -> Result<(), StoreError> {
    let segments = segments(directory);
    remove_directory(&segments)?;
    fs::rename(directory.join(PARTIAL), &segments).map_err(StoreError::io("move the new segments to", segments))
}

/// Step 4: removes the log.
pub(crate) fn remove_wal(directory: &Path) -> Result<(), StoreError> {
    remove_directory(&wal_directory(directory))
}

/// Tables refer to each other by row numbers; a recording that does not number its rows densely could not be read back.
fn check_consistent(recording: &Recording, spans: usize) -> Result<(), StoreError> {
    let inconsistent = |reason: &str| Err(StoreError::Inconsistent { reason: reason.into() });
    let dense = |ids: &mut dyn Iterator<Item = u32>| ids.zip(0u32..).all(|(id, row)| id == row);
    if !dense(&mut recording.mappings.iter().map(|mapping| mapping.id.0)) {
        return inconsistent("mappings are not numbered by their rows");
    }
    if !dense(&mut recording.locations.iter().map(|location| location.id.0)) {
        return inconsistent("locations are not numbered by their rows");
    }
    if !dense(&mut recording.stacks.iter().map(|stack| stack.id.0)) {
        return inconsistent("stacks are not numbered by their rows");
    }
    let links = recording.sample_links.len();
    if links != 0 && links != recording.samples.len() {
        return inconsistent("there are not as many sample links as samples");
    }
    if u32::try_from(spans).is_err() {
        return inconsistent("there are more spans than rows can be numbered");
    }
    Ok(())
}

fn write_tables(directory: &Path, recording: &Recording, spans: Spans<'_>) -> Result<(), StoreError> {
    let clock = &recording.clock;
    let span_rows = SpanRows::of(spans);
    let sample_rows = samples::rows(&recording.samples, &recording.sample_links, &recording.threads, clock);

    let mut segments = segment::Writer::new(directory);
    segments.write(&runs::TABLE, std::slice::from_ref(&recording.run), runs::build)?;
    segments.write_ranges(&spans::TABLE, span_rows.len(), |range| spans::build(&span_rows.range(range)))?;
    segments.write(&span_events::TABLE, &span_events::parts(&span_rows), |parts| span_events::build(&span_rows, parts))?;
    segments.write(&span_links::TABLE, &span_links::parts(&span_rows), |parts| span_links::build(&span_rows, parts))?;
    segments.write(&samples::TABLE, &sample_rows, samples::build)?;
    segments.write(&stacks::TABLE, &recording.stacks, stacks::build)?;
    segments.write(&locations::TABLE, &recording.locations, locations::build)?;
    segments.write(&frames::TABLE, &frames::rows(&recording.locations), frames::build)?;
    segments.write(&mappings::TABLE, &recording.mappings, mappings::build)?;
    segments.write(&processes::TABLE, &recording.processes, |rows| processes::build(rows, clock))?;
    segments.write(&process_usage::TABLE, &recording.process_usage, |rows| process_usage::build(rows, clock))?;
    segments.write(&threads::TABLE, &recording.threads, |rows| threads::build(rows, clock))?;
    segments.write(&cpu_slices::TABLE, &recording.cpu_slices, |rows| cpu_slices::build(rows, clock))?;
    segments.write(&current_spans::TABLE, &recording.current_spans, |rows| current_spans::build(rows, clock))?;
    segments.write(&waits::TABLE, &waits::rows(&recording.waits, &recording.wait_links), |rows| waits::build(rows, clock))?;
    segments.write(&losses::TABLE, &recording.losses, losses::build)?;
    segments.write(&clock_anchors::TABLE, clock.anchors(), clock_anchors::build)?;
    segments.finish()
}

/// Reads every table of a recording's directory back, which has this version. Spans come in the order of their rows.
pub(crate) fn read(directory: &Path, version: u32) -> Result<Recording, StoreError> {
    read_tables(&Tables::of_directory(&segments(directory), version)?)
}

/// The tables of a recording's directory with their files, each of them checked.
pub(crate) fn verified_tables(directory: &Path, version: u32) -> Result<Vec<(&'static Table, PathBuf)>, StoreError> {
    let segments = segments(directory);
    let tables = Tables::of_directory(&segments, version)?;
    let mut there = Vec::new();
    for table in ALL {
        if tables.verify(table)? {
            there.push((table, tables.path(table)));
        }
    }
    Ok(there)
}

/// Reads every table back.
pub(crate) fn read_tables(tables: &Tables<'_>) -> Result<Recording, StoreError> {
    let mut run = Vec::new();
    segment::read(tables, &runs::TABLE, size_of::<Run>(), |batch| runs::read(&batch, &mut run))?;
    let [run] = <[_; 1]>::try_from(run).map_err(|rows: Vec<_>| StoreError::Corrupt {
        path: tables.path(&runs::TABLE),
        reason: format!("it holds {} runs instead of one", rows.len()),
    })?;
    let mut anchors = Vec::new();
    segment::read(tables, &clock_anchors::TABLE, size_of::<ClockAnchor>(), |batch| clock_anchors::read(&batch, &mut anchors))?;
    let mut recording = Recording {
        run,
        clock: Clock::new(anchors),
        spans: Vec::new(),
        processes: Vec::new(),
        threads: Vec::new(),
        cpu_slices: Vec::new(),
        current_spans: Vec::new(),
        process_usage: Vec::new(),
        samples: Vec::new(),
        sample_links: Vec::new(),
        waits: Vec::new(),
        wait_links: Vec::new(),
        stacks: Vec::new(),
        locations: Vec::new(),
        mappings: Vec::new(),
        losses: Vec::new(),
    };
    let mut texts = Texts::default();
    segment::read(tables, &spans::TABLE, size_of::<Span>(), |batch| spans::read(&batch, &mut texts, &mut recording.spans))?;
    segment::read(tables, &span_events::TABLE, size_of::<SpanEvent>(), |batch| {
        span_events::read(&batch, &mut texts, &mut recording.spans)
    })?;
    segment::read(tables, &span_links::TABLE, size_of::<SpanLink>(), |batch| span_links::read(&batch, &mut texts, &mut recording.spans))?;
    segment::read(tables, &samples::TABLE, size_of::<(Sample, SampleLink)>(), |batch| {
        samples::read(&batch, &mut recording.samples, &mut recording.sample_links)
    })?;
    segment::read(tables, &stacks::TABLE, size_of::<Stack>(), |batch| stacks::read(&batch, &mut recording.stacks))?;
    segment::read(tables, &locations::TABLE, size_of::<Location>(), |batch| locations::read(&batch, &mut recording.locations))?;
    segment::read(tables, &frames::TABLE, size_of::<Frame>(), |batch| frames::read(&batch, &mut recording.locations))?;
    segment::read(tables, &mappings::TABLE, size_of::<Mapping>(), |batch| mappings::read(&batch, &mut recording.mappings))?;
    segment::read(tables, &processes::TABLE, size_of::<Process>(), |batch| processes::read(&batch, &mut recording.processes))?;
    segment::read(tables, &process_usage::TABLE, size_of::<ProcessUsage>(), |batch| {
        process_usage::read(&batch, &mut recording.process_usage)
    })?;
    segment::read(tables, &threads::TABLE, size_of::<Thread>(), |batch| threads::read(&batch, &mut recording.threads))?;
    segment::read(tables, &cpu_slices::TABLE, size_of::<CpuSlice>(), |batch| cpu_slices::read(&batch, &mut recording.cpu_slices))?;
    segment::read(tables, &current_spans::TABLE, size_of::<CurrentSpan>(), |batch| {
        current_spans::read(&batch, &mut recording.current_spans)
    })?;
    segment::read(tables, &waits::TABLE, size_of::<(Wait, SampleLink)>(), |batch| {
        waits::read(&batch, &mut recording.waits, &mut recording.wait_links)
    })?;
    segment::read(tables, &losses::TABLE, size_of::<Loss>(), |batch| losses::read(&batch, &mut recording.losses))?;
    check_references(tables, &recording)?;
    check_frames(tables, &recording)?;
    if !tables.have_checksums() {
        Loss::new(LossKind::FormatCannotHold, 1, WITHOUT_CHECKSUMS).merge_into(&mut recording.losses);
    }
    Ok(recording)
}

/// What a frame of a stack may come to in the trees of calls, which have it once for all stacks that begin alike.
const STACK_FRAME_BYTES: u64 = 16;

/// Refuses stacks of more frames than fit a recording of its size: an entry of a few bits names all that was inlined there.
fn check_frames(tables: &Tables<'_>, recording: &Recording) -> Result<(), StoreError> {
    let entries = recording.stacks.iter().flat_map(|stack| &stack.locations);
    let frames = entries.fold(0, |sum: u64, location| sum + recording.locations[location.0 as usize].frames.len() as u64);
    tables.take(&stacks::TABLE, frames.saturating_mul(STACK_FRAME_BYTES))
}

/// What is said of a recording of a version that had none.
const WITHOUT_CHECKSUMS: &str = "recorded without checksums, by an older longpole: damage that left its tables readable goes unnoticed";

/// Later rooms index by these numbers; a damaged file must not make them panic.
fn check_references(tables: &Tables<'_>, recording: &Recording) -> Result<(), StoreError> {
    let corrupt = |table, reason: &str| Err(StoreError::Corrupt { path: tables.path(table), reason: reason.into() });
    check_consistent(recording, recording.spans.len()).or_else(|error| corrupt(&runs::TABLE, &error.to_string()))?;
    if recording.samples.iter().any(|sample| sample.stack.0 as usize >= recording.stacks.len()) {
        return corrupt(&samples::TABLE, "a sample refers to a stack that is not there");
    }
    if recording.waits.iter().filter_map(|wait| wait.stack).any(|stack| stack.0 as usize >= recording.stacks.len()) {
        return corrupt(&waits::TABLE, "a wait refers to a stack that is not there");
    }
    let mut entries = recording.stacks.iter().flat_map(|stack| &stack.locations);
    if entries.any(|location| location.0 as usize >= recording.locations.len()) {
        return corrupt(&stacks::TABLE, "a stack refers to a location that is not there");
    }
    let mapping_of = |kind: &longpole_model::stack::LocationKind| match kind {
        longpole_model::stack::LocationKind::Code { mapping, .. } => Some(mapping.0),
        _ => None,
    };
    if recording.locations.iter().filter_map(|it| mapping_of(&it.kind)).any(|id| id as usize >= recording.mappings.len()) {
        return corrupt(&locations::TABLE, "a location refers to a mapping that is not there");
    }
    Ok(())
}
