//! All tables of a recording: written one after the other, and read back.

use std::path::{Path, PathBuf};

use longpole_model::{
    Clock, ClockAnchor, CpuSlice, CurrentSpan, Location, LocationId, Loss, LossKind, Mapping, Process, ProcessUsage, Recording, Run,
    Sample, SampleLink, Span, SpanEvent, SpanLink, Stack, Thread, Wait,
};

use super::reader::{self, Tables};
use super::writer::Writer;
use crate::error::StoreError;
use crate::memory::kept_programs::KeptPrograms;
use crate::memory::kept_texts::KeptTexts;
use crate::memory::needs::{Figures, Needs};
use crate::query_limits::QueryLimits;
use crate::tables::spans::{SpanRows, Spans};
use crate::tables::{
    ALL, Table, clock_anchors, cpu_slices, current_spans, frames, locations, losses, mappings, process_usage, processes, runs, samples,
    span_events, span_links, spans, stacks, threads, waits,
};

/// Tables refer to each other by row numbers; a recording that does not number its rows densely could not be read back.
pub(crate) fn check_consistent(recording: &Recording, spans: usize) -> Result<(), StoreError> {
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

/// Bytes that a row of each table takes in the model, without its texts and lists.
mod row {
    use super::*;

    pub(super) const RUN: usize = size_of::<Run>();
    pub(super) const SPAN: usize = size_of::<Span>();
    pub(super) const SPAN_EVENT: usize = size_of::<SpanEvent>();
    pub(super) const SPAN_LINK: usize = size_of::<SpanLink>();
    pub(super) const SAMPLE: usize = size_of::<(Sample, SampleLink)>();
    pub(super) const STACK: usize = size_of::<Stack>();
    pub(super) const LOCATION: usize = size_of::<Location>();
    /// With the heads of two texts. What was once counted of a recording must go on to do: no more than the 80 bytes of before.
    pub(super) const FRAME: usize = 80;
    pub(super) const MAPPING: usize = size_of::<Mapping>();
    pub(super) const PROCESS: usize = size_of::<Process>();
    pub(super) const PROCESS_USAGE: usize = size_of::<ProcessUsage>();
    pub(super) const THREAD: usize = size_of::<Thread>();
    pub(super) const CPU_SLICE: usize = size_of::<CpuSlice>();
    pub(super) const CURRENT_SPAN: usize = size_of::<CurrentSpan>();
    pub(super) const WAIT: usize = size_of::<(Wait, SampleLink)>();
    pub(super) const LOSS: usize = size_of::<Loss>();
    pub(super) const CLOCK_ANCHOR: usize = size_of::<ClockAnchor>();
}

/// Writes every table into this directory, and says what they take in memory.
pub(crate) fn write(directory: &Path, recording: &Recording, spans: Spans<'_>) -> Result<Needs, StoreError> {
    let clock = &recording.clock;
    let span_rows = SpanRows::of(spans);
    let sample_rows = samples::rows(&recording.samples, &recording.sample_links, &recording.threads, clock);

    // They are counted where their spans are at hand.
    let (event_rows, link_rows) = (span_events::parts(&span_rows), span_links::parts(&span_rows));
    let (mut texts, mut counted) = (KeptTexts::of_writer(), spans::Counted::default());
    let mut programs = KeptPrograms::default();

    let mut segments = Writer::new(directory);
    segments.write(&runs::TABLE, row::RUN, std::slice::from_ref(&recording.run), runs::build)?;
    segments.write_ranges(&spans::TABLE, row::SPAN, span_rows.len(), |range, needs| {
        let rows = span_rows.range(range);
        counted.count(needs, &mut texts, &rows);
        spans::build(&rows)
    })?;
    segments.write_ranges(&span_events::TABLE, row::SPAN_EVENT, event_rows.len(), |range, _| {
        span_events::build(&span_rows, &event_rows[range])
    })?;
    segments
        .write_ranges(&span_links::TABLE, row::SPAN_LINK, link_rows.len(), |range, _| span_links::build(&span_rows, &link_rows[range]))?;
    // None of their texts is kept.
    segments.write_ranges(&samples::TABLE, row::SAMPLE, sample_rows.len(), |range, _| samples::build(&sample_rows[range]))?;
    segments.write(&stacks::TABLE, row::STACK, &recording.stacks, stacks::build)?;
    segments.keep(frames_bytes(recording));
    segments.write(&locations::TABLE, row::LOCATION, &recording.locations, locations::build)?;
    segments.write(&frames::TABLE, row::FRAME, &frames::rows(&recording.locations), frames::build)?;
    segments.write(&mappings::TABLE, row::MAPPING, &recording.mappings, mappings::build)?;
    segments.write_ranges(&processes::TABLE, row::PROCESS, recording.processes.len(), |range, needs| {
        let rows = &recording.processes[range];
        let columns = processes::build(rows, clock);
        processes::count(needs, &mut texts, &mut programs, rows, &columns);
        columns
    })?;
    segments.write(&process_usage::TABLE, row::PROCESS_USAGE, &recording.process_usage, |rows| process_usage::build(rows, clock))?;
    segments.write(&threads::TABLE, row::THREAD, &recording.threads, |rows| threads::build(rows, clock))?;
    segments.write(&cpu_slices::TABLE, row::CPU_SLICE, &recording.cpu_slices, |rows| cpu_slices::build(rows, clock))?;
    segments.write(&current_spans::TABLE, row::CURRENT_SPAN, &recording.current_spans, |rows| current_spans::build(rows, clock))?;
    segments.write(&waits::TABLE, row::WAIT, &waits::rows(&recording.waits, &recording.wait_links), |rows| waits::build(rows, clock))?;
    segments.write(&losses::TABLE, row::LOSS, &recording.losses, losses::build)?;
    segments.write(&clock_anchors::TABLE, row::CLOCK_ANCHOR, clock.anchors(), clock_anchors::build)?;
    segments.allow(texts.more_in_another_order());
    segments.finish()
}

/// Reads every table of a directory of segments back, of a recording of this version. Spans come in the order of their rows.
pub(crate) fn read(segments: &Path, version: u32, query: &QueryLimits) -> Result<Recording, StoreError> {
    read_tables(&Tables::of_directory(segments, version)?.for_query(query))
}

/// The same, with so much memory.
pub(crate) fn read_within(segments: &Path, version: u32, limit: u64) -> Result<Recording, StoreError> {
    read_tables(&Tables::of_directory(segments, version)?.limited(limit))
}

/// What the writer of a recording counted that it takes to be read.
pub(crate) fn figures(segments: &Path, version: u32) -> Result<Option<Figures>, StoreError> {
    Ok(Tables::of_directory(segments, version)?.figures())
}

/// The tables of a directory of segments with their files, each of them checked.
pub(crate) fn verified_tables(segments: &Path, version: u32) -> Result<Vec<(&'static Table, PathBuf)>, StoreError> {
    let tables = Tables::of_directory(segments, version)?;
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
    reader::read(tables, &runs::TABLE, row::RUN, |batch| runs::read(&batch, &mut run))?;
    let [run] = <[_; 1]>::try_from(run).map_err(|rows: Vec<_>| StoreError::Corrupt {
        path: tables.path(&runs::TABLE),
        reason: format!("it holds {} runs instead of one", rows.len()),
    })?;
    let mut anchors = Vec::new();
    reader::read(tables, &clock_anchors::TABLE, row::CLOCK_ANCHOR, |batch| clock_anchors::read(&batch, &mut anchors))?;
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
    let mut texts = KeptTexts::of_reader();
    let mut emitters = spans::Emitters::default();
    reader::read(tables, &spans::TABLE, row::SPAN, |batch| spans::read(&batch, &mut texts, &mut emitters, &mut recording.spans))?;
    reader::read(tables, &span_events::TABLE, row::SPAN_EVENT, |batch| span_events::read(&batch, &mut texts, &mut recording.spans, 0))?;
    reader::read(tables, &span_links::TABLE, row::SPAN_LINK, |batch| span_links::read(&batch, &mut texts, &mut recording.spans, 0))?;
    reader::read(tables, &samples::TABLE, row::SAMPLE, |batch| samples::read(&batch, &mut recording.samples, &mut recording.sample_links))?;
    reader::read(tables, &stacks::TABLE, row::STACK, |batch| stacks::read(&batch, &mut recording.stacks))?;
    reader::read(tables, &locations::TABLE, row::LOCATION, |batch| locations::read(&batch, &mut recording.locations))?;
    reader::read(tables, &frames::TABLE, row::FRAME, |batch| frames::read(&batch, &mut recording.locations))?;
    reader::read(tables, &mappings::TABLE, row::MAPPING, |batch| mappings::read(&batch, &mut recording.mappings))?;
    let mut programs = KeptPrograms::default();
    reader::read(tables, &processes::TABLE, row::PROCESS, |batch| {
        processes::read(&batch, &mut texts, &mut programs, &mut recording.processes)
    })?;
    reader::read(tables, &process_usage::TABLE, row::PROCESS_USAGE, |batch| process_usage::read(&batch, &mut recording.process_usage))?;
    reader::read(tables, &threads::TABLE, row::THREAD, |batch| threads::read(&batch, &mut recording.threads))?;
    reader::read(tables, &cpu_slices::TABLE, row::CPU_SLICE, |batch| cpu_slices::read(&batch, &mut recording.cpu_slices))?;
    reader::read(tables, &current_spans::TABLE, row::CURRENT_SPAN, |batch| current_spans::read(&batch, &mut recording.current_spans))?;
    reader::read(tables, &waits::TABLE, row::WAIT, |batch| waits::read(&batch, &mut recording.waits, &mut recording.wait_links))?;
    reader::read(tables, &losses::TABLE, row::LOSS, |batch| losses::read(&batch, &mut recording.losses))?;
    check_references(tables, &recording)?;
    // Stacks of more frames than fit a recording of its size are refused.
    tables.take(&stacks::TABLE, frames_bytes(&recording))?;
    if !tables.have_checksums() {
        Loss::new(LossKind::FormatCannotHold, 1, WITHOUT_CHECKSUMS).merge_into(&mut recording.losses);
    }
    if tables.lost_figures() {
        Loss::new(LossKind::FormatCannotHold, 1, WITHOUT_FIGURES).merge_into(&mut recording.losses);
    }
    Ok(recording)
}

/// What a frame of a stack may come to in the trees of calls, which have it once for all stacks that begin alike.
const STACK_FRAME_BYTES: u64 = 16;

/// What the frames of all stacks come to: an entry of a few bits names all that was inlined there. Where nothing was found the address
/// stands for a function, so each is one at least.
fn frames_bytes(recording: &Recording) -> u64 {
    let entries = recording.stacks.iter().flat_map(|stack| &stack.locations);
    let frames_of =
        |location: &LocationId| recording.locations.get(location.0 as usize).map_or(0, |location| location.frames.len().max(1) as u64);
    let frames = entries.fold(0, |sum: u64, location| sum.saturating_add(frames_of(location)));
    frames.saturating_mul(STACK_FRAME_BYTES)
}

/// The loss of a recording of a version that had none.
const WITHOUT_CHECKSUMS: &str = "no checksums (recorded by an older longpole), so damage that left the tables readable goes unnoticed";

/// The loss of a recording whose figures of memory are missing or damaged.
const WITHOUT_FIGURES: &str = "its need for memory is unknown: `segments/memory` is missing or damaged; its tables are intact";

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_model::{Attribute, AttributeValue, Attributes, Monotonic, Resource, Scope, Text, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::format::RECORDING_VERSION;
    use crate::testing::{self, Directory};

    /// What the writer counts that stays, and what the reader then takes.
    fn counted_and_taken(recording: &Recording) -> (u64, u64) {
        let directory = Directory::new();
        let needs = write(directory.path(), recording, Spans::Whole(&recording.spans)).unwrap();
        let tables = Tables::of_directory(directory.path(), RECORDING_VERSION).unwrap().limited(u64::MAX);
        assert_eq!(read_tables(&tables).unwrap().spans.len(), recording.spans.len());
        (needs.kept(), tables.taken())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_writer_counts_what_a_reader_takes(recording in testing::recording()) {
            let (counted, taken) = counted_and_taken(&recording);
            prop_assert!(taken <= counted && counted <= taken + 1_000, "{counted} counted, {taken} taken");
        }
    }

    #[test]
    fn long_texts_wherever_they_stand_are_counted_as_they_are_taken() {
        let text = |name: &str, number: u8, length: usize| Text::from(format!("{name} {number} {}", "x".repeat(length)));
        let attributes = |name: &str, number: u8, extra: Option<AttributeValue>| {
            let value = |length| AttributeValue::Str(text(name, number, length));
            let list = AttributeValue::Array(
                vec![value(1_500), AttributeValue::KeyValues(vec![].into()), AttributeValue::Bytes(vec![7; 300].into())].into(),
            );
            let mut attributes = Attributes::default();
            attributes.push(text("key", number, 200), value(3_000));
            attributes.push("short", value(10));
            attributes
                .0
                .extend(extra.map(|value| Attribute { key: "extra".into(), value: AttributeValue::Array(vec![value, list].into()) }));
            attributes
        };
        let mut recording = crate::Assembler::new(testing::begun()).finish();
        for number in 1..=200_u8 {
            // Some come again, elsewhere in memory; some differ from themselves.
            let kind = number % 7;
            let extra = [None, Some(AttributeValue::Int(1)), Some(AttributeValue::Double(f64::NAN))][usize::from(kind % 3)].clone();
            let mut span = testing::span(1, number, 0, i64::from(number));
            (span.name, span.trace_state) = (text("name", kind, 200), text("state", kind, 2_000));
            span.status.message = text("message", number, 2_000);
            span.attributes = attributes("span", kind, extra.clone());
            span.resource = Arc::new(Resource { attributes: attributes("resource", number / 20, extra.clone()) });
            span.scope = Arc::new(Scope { name: "scope".into(), version: "x".repeat(500), attributes: attributes("scope", kind, None) });
            span.events = [SpanEvent { time: Timestamp(1), name: text("event", kind, 500), attributes: attributes("event", kind, extra) }]
                .into_iter()
                .collect();
            let linked = span.span_id;
            span.links =
                [SpanLink { trace_id: span.trace_id, span_id: linked, attributes: attributes("link", kind, None) }].into_iter().collect();
            recording.spans.push(span);
            recording.processes.push(Process {
                pid: number.into(),
                parent_pid: None,
                name: "sh".into(),
                executable: "/bin/sh".repeat(100 + usize::from(number)).into(),
                arguments: vec![number.to_string(); 50].into(),
                start: Monotonic(1),
                end: None,
                execed: true,
                exit: None,
                listens: vec!["127.0.0.1:80".parse().unwrap()],
                resource: Resource { attributes: attributes("process", kind, None) },
            });
        }
        let (counted, taken) = counted_and_taken(&recording);
        assert!(taken > 1_000_000 && taken <= counted, "{counted} counted, {taken} taken");
        assert!(counted < 2 * taken, "{counted} counted, {taken} taken");
    }

    /// Each process had its own copy, and counted with it: 400 MB for these.
    #[test]
    fn forks_take_the_arguments_of_their_program_once() {
        const FORKS: u32 = 20_000;
        let mut recording = crate::Assembler::new(testing::begun()).finish();
        let process = |pid: u32, of: u32| Process {
            pid,
            parent_pid: None,
            name: "sh".into(),
            executable: "/bin/sh".into(),
            arguments: vec![format!("{of:0420}"); 40].into(),
            start: Monotonic(pid.into()),
            end: None,
            execed: false,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        };
        let programs = [process(0, 0), process(0, 1)];
        recording.processes =
            (0..FORKS).map(|pid| Process { pid, start: Monotonic(pid.into()), ..programs[pid as usize % 2].clone() }).collect();
        let (counted, taken) = counted_and_taken(&recording);
        let rows = u64::from(FORKS) * (row::PROCESS + "sh".len()) as u64;
        assert_eq!(taken - rows - row::RUN as u64, counted - rows - row::RUN as u64);
        assert!((35_000..45_000).contains(&(counted - rows)), "{counted} counted, {taken} taken");

        let directory = Directory::new();
        write(directory.path(), &recording, Spans::Whole(&[])).unwrap();
        let processes = read(directory.path(), RECORDING_VERSION, &QueryLimits::default()).unwrap().processes;
        assert_eq!(processes, recording.processes);
        assert!(processes.iter().skip(2).zip(&processes).all(|(later, before)| Arc::ptr_eq(&later.arguments, &before.arguments)));
    }

    #[test]
    fn a_location_without_frames_counts_as_a_frame_of_each_stack_that_has_it() {
        let mut recording = crate::Assembler::new(testing::begun()).finish();
        let kind = longpole_model::stack::LocationKind::Unmapped { address: longpole_model::AbsAddr(0x1000) };
        recording.locations = vec![Location { id: LocationId(0), kind, frames: Vec::new() }];
        recording.stacks = (0..10).map(|id| Stack { id: longpole_model::StackId(id), locations: vec![LocationId(0); 100] }).collect();
        assert_eq!(frames_bytes(&recording), 1_000 * STACK_FRAME_BYTES);
        let (counted, taken) = counted_and_taken(&recording);
        assert!((16_000..=counted).contains(&taken), "{counted} counted, {taken} taken");
    }
}
