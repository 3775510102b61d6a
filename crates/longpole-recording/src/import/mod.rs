//! A file that another tool wrote becomes a recording.
//!
//! ```text
//! file ─ gzip? ─ wire::file ─ spans ─ credentials taken out ─► Assembler ─► packed spans, whose run is the file
//!   ├ perf.data ─ wire::perf_data ─ unwound, named ────────────► Recording, whose run is what perf ran
//!   ├ pprof, folded ─ wire::profile_import ────────────────────► Recording, whose samples have no moment
//!   └ .lpole ─ store::archive ───────────────────────────────────► Recording, as it was
//! ```
//!
//! A file of spans is read once, from its beginning, and never as a whole. What stands before a fault is kept, and the fault is a loss
//! of the recording: a trace that was cut when its writer died is still most of the trace.
//!
//! The import writes the spans first and analyses them afterwards, so that a million spans and their analysis are not in memory at once.
//! It unpacks only an outline of packed spans, unless they are Pulumi's:
//!
//! ```text
//! packed spans ────────┬► segments
//!                      └─ heads and examples ──────────┬► Report ─► the row in the catalog
//! Recording ─ bridge ─┬► segments                      │
//!                     └─ outline, without attributes ──┘
//! ```

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use disk_file::{Unpacked, is_perf_data, open, whole, written};
use flate2::bufread::MultiGzDecoder;
use longpole_analysis::report::summary_spans;
use longpole_analysis::{Report, derive};
use longpole_model::profile::ProfiledSpan;
use longpole_model::{Loss, LossKind, Recording, Span, TraceId};
use longpole_store::live::{ProfilePart, QueryLimits};
use longpole_store::{Assembler, CompactRecording, RecordingName, RecordingWriter, Store, StoreError, TraceIds, archive};
use longpole_wire::file::{FileFormat, FormatError, GZIP_MAGIC, HEAD_BYTES};
use longpole_wire::limits::expanded_bytes_max;
use longpole_wire::profile_import::ProfileFormat;
use longpole_wire::{Limits, file, profile_import};
use spans::Intake;
use tracing::info_span;
use unseen::command_of;
use unseen::with_cause;

use crate::memory::{long_text_bytes, report_bytes, view_bytes};
use crate::seal::summary_row;
use crate::source_file;

mod disk_file;
mod error;
mod perf_data;
mod profile;
mod profiled_trace;
mod spans;
#[cfg(test)]
mod tests;
mod unseen;

pub use error::ImportError;
pub use profile::NoTime;
pub use unseen::unseen;

/// What a file holds.
#[derive(Debug)]
pub struct Contents(Held);

#[derive(Debug)]
enum Held {
    Whole(Box<Recording>),
    Packed(Box<CompactRecording>),
    /// A profile whose samples have no moment, and what its labels say of spans.
    Profile(Box<Recording>, profile::Labels),
}

impl Contents {
    fn whole(recording: Recording) -> Contents {
        Contents(Held::Whole(Box::new(recording)))
    }

    /// The same, as the import of a file of this name.
    fn called(mut self, name: String) -> Contents {
        let run = match &mut self.0 {
            Held::Whole(recording) | Held::Profile(recording, _) => &mut recording.run,
            Held::Packed(packed) => &mut packed.rest.run,
        };
        run.command = command_of([name]);
        self
    }

    /// Its spans.
    fn spans(&self) -> u64 {
        match &self.0 {
            Held::Whole(recording) | Held::Profile(recording, _) => recording.spans.len() as u64,
            Held::Packed(packed) => packed.spans.len() as u64,
        }
    }

    /// The recording, with all its spans in memory.
    pub fn recording(self) -> Recording {
        match self.0 {
            Held::Whole(recording) | Held::Profile(recording, _) => *recording,
            Held::Packed(packed) => packed.unpack(),
        }
    }
}

/// Traces of one run as one recording, with a profile whose labels name their spans where there is one.
pub fn together(files: Vec<(PathBuf, Contents)>) -> Result<Contents, ImportError> {
    let not = |path: PathBuf, why| ImportError::NotTogether { path, why };
    let command = command_of(files.iter().map(|(path, _)| path.to_string_lossy().into_owned()));
    let last = files.last().map(|(path, _)| path.clone()).unwrap_or_default();
    let (mut traces, mut profile): (Vec<CompactRecording>, _) = (Vec::new(), None);
    for (path, contents) in files {
        match contents.0 {
            Held::Packed(packed) => traces.push(*packed),
            Held::Profile(recording, labels) if profile.is_none() => profile = Some((recording, labels)),
            Held::Profile(..) => return Err(not(path, "--together takes at most one profile, and this is a second one")),
            Held::Whole(_) => return Err(not(path, "--together takes traces and one pprof or folded-stack profile")),
        }
    }
    let starts = traces.iter().map(|trace| trace.rest.run.start);
    let Some(start) = starts.min() else { return Err(not(last, "there is no trace among the files")) };
    let mut run = match &profile {
        Some((recording, _)) => recording.run.clone(),
        None => traces[0].rest.run.clone(),
    };
    (run.command, run.start, run.end) = (command, start, traces.iter().filter_map(|trace| trace.rest.run.end).max());
    // One file of all these spans would have each of them once.
    let mut assembler = Assembler::new(run.clone());
    for trace in traces {
        trace.rest.losses.into_iter().for_each(|loss| assembler.loss(loss));
        trace.spans.iter().for_each(|span| assembler.span(span));
    }
    if let Some(caller) = assembler.caller() {
        (run.trace_id, run.root_span_id) = caller;
    }
    let merged = assembler.finish();
    let Some((mut recording, labels)) = profile else {
        let mut recording = Recording { run, ..merged };
        recording.spans.sort_by_key(|span| span.start);
        return Ok(Contents::whole(recording));
    };
    recording.run = run;
    merged.losses.into_iter().for_each(|loss| loss.merge_into(&mut recording.losses));
    recording.spans.extend(merged.spans);
    recording.spans.sort_by_key(|span| span.start);
    labels.tie(&mut recording);
    Ok(Contents::whole(*recording))
}

/// The contents of a file.
pub fn read(path: &Path) -> Result<Contents, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let file = open(path).map_err(io)?;
    let file_bytes = file.metadata().map_err(io)?.len();
    let mut file = BufReader::with_capacity(HEAD_BYTES, file);
    let first = file.fill_buf().map_err(io)?;
    if archive::is_archive(first) {
        return Ok(Contents::whole(archive::read(path, file)?));
    }
    let unreadable = |source| ImportError::Unreadable { path: path.to_owned(), source };
    if is_perf_data(first) {
        let limits = Limits::default();
        return perf_data::recording(path, file.into_inner(), &limits, written(path)).map(Contents::whole).map_err(unreadable);
    }
    if first.starts_with(&GZIP_MAGIC) {
        let inside = Unpacked { input: MultiGzDecoder::new(file), left: expanded_bytes_max(file_bytes), packed_bytes: file_bytes };
        let mut inside = BufReader::with_capacity(HEAD_BYTES, inside);
        if is_perf_data(inside.fill_buf().map_err(io)?) {
            let bytes = whole(inside).map_err(unreadable)?;
            // What is compressed in it takes from the same budget: gzip around zstd would multiply to a hundred thousandth.
            let left = usize::try_from(expanded_bytes_max(file_bytes)).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            let limits = Limits::default();
            let limits = Limits { document_bytes_max: limits.document_bytes_max.min(left), ..limits };
            let input = Cursor::new(bytes);
            return perf_data::recording(path, input, &limits, written(path)).map(Contents::whole).map_err(unreadable);
        }
        return decode(path, inside, &QueryLimits::default());
    }
    decode(path, file, &QueryLimits::default())
}

/// The recording in a file, as `longpole export --to lpole` writes it, and nothing else. It takes memory of this query, with the report that is made
/// of it to keep it.
pub fn read_archive(path: &Path, limits: &QueryLimits) -> Result<Contents, ImportError> {
    let file = open(path).map_err(|source| ImportError::Io { path: path.to_owned(), source })?;
    let recording = archive::read_for(path, BufReader::new(file), limits)?;
    limits.take(report_bytes(recording.spans.len() as u64))?;
    Ok(Contents::whole(recording))
}

/// What somebody sent to a server: a recording, or another tool's file. It takes memory of this query, with the report that is made of it to keep
/// it. Files of perf are refused: they name code by the files of the machine that wrote them.
pub fn read_sent(path: &Path, limits: &QueryLimits) -> Result<Contents, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let file = open(path).map_err(io)?;
    let file_bytes = file.metadata().map_err(io)?.len();
    let mut file = BufReader::with_capacity(HEAD_BYTES, file);
    let first = file.fill_buf().map_err(io)?;
    if archive::is_archive(first) {
        return read_archive(path, limits);
    }
    let of_another_machine = || ImportError::OfAnotherMachine { path: path.to_owned() };
    if is_perf_data(first) {
        return Err(of_another_machine());
    }
    let is_packed = first.starts_with(&GZIP_MAGIC);
    let text_bytes = if is_packed { expanded_bytes_max(file_bytes) } else { file_bytes };
    // What is expanded and decoded is known only afterwards.
    limits.reserve(text_bytes.saturating_mul(SENT_MEMORY_FACTOR))?;
    let contents = if is_packed {
        let inside = Unpacked { input: MultiGzDecoder::new(file), left: expanded_bytes_max(file_bytes), packed_bytes: file_bytes };
        let mut inside = BufReader::with_capacity(HEAD_BYTES, inside);
        if is_perf_data(inside.fill_buf().map_err(io)?) {
            return Err(of_another_machine());
        }
        decode(path, inside, limits)?
    } else {
        decode(path, file, limits)?
    };
    limits.take(report_bytes(contents.spans()))?;
    limits.check()?;
    // Where the server put it is nobody's business.
    Ok(contents.called(file_name(path)))
}

/// Memory that a file takes while it is read, for each of its bytes: its spans, packed, and their texts.
const SENT_MEMORY_FACTOR: u64 = 2;

/// The spans of an open file, if it has the form in which programs write their own: OTLP as JSON, or AppDash, neither of them compressed.
///
/// # Errors
///
/// [`ImportError::Unknown`] if it is of another format, and what [`read`] returns.
pub fn read_exported(path: &Path, input: impl Read) -> Result<Contents, ImportError> {
    let mut input = BufReader::with_capacity(HEAD_BYTES, input);
    let first = input.fill_buf().map_err(|source| ImportError::Io { path: path.to_owned(), source })?;
    let name = file_name(path);
    let format = file::identify(first, &name).map_err(|source| ImportError::Unknown { path: path.to_owned(), source })?;
    if !matches!(format, FileFormat::OtlpJsonLines | FileFormat::OtlpJson | FileFormat::AppDash) {
        let source = FormatError { what: name, looks_like: Some("a trace that another program exported") };
        return Err(ImportError::Unknown { path: path.to_owned(), source });
    }
    decode_spans(path, input, format)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn decode(path: &Path, mut input: BufReader<impl Read>, limits: &QueryLimits) -> Result<Contents, ImportError> {
    let first = input.fill_buf().map_err(|source| ImportError::Io { path: path.to_owned(), source })?;
    let name = file_name(path);
    // Spans and profiles of OTLP look alike at first.
    let is_profile = |format: &ProfileFormat| *format == ProfileFormat::Otlp || file::guess(first, &name).is_none();
    if let Some(format) = profile_import::guess(first).filter(is_profile) {
        let _step = info_span!("decode", format = format.as_str()).entered();
        let unreadable = |source| ImportError::Unreadable { path: path.to_owned(), source };
        let bytes = profile_import::read(input, &Limits::default()).map_err(unreadable)?;
        let profile = profile_import::decode(&bytes, format, profile_memory(&bytes, limits)?).map_err(unreadable)?;
        drop(bytes);
        return profile::recording(path, profile, written(path))
            .map(|(recording, labels)| Contents(Held::Profile(Box::new(recording), labels)))
            .map_err(|source| ImportError::NoTime { path: path.to_owned(), source });
    }
    let format = file::identify(first, &name).map_err(|source| ImportError::Unknown { path: path.to_owned(), source })?;
    decode_spans(path, input, format)
}

/// Memory that a profile may take where others want some, too: most take less than a short one may, and than some times their bytes.
fn profile_memory(bytes: &[u8], limits: &QueryLimits) -> Result<u64, StoreError> {
    if !limits.memory.is_bounded() {
        return Ok(u64::MAX);
    }
    let most = (PROFILE_MEMORY_FACTOR.saturating_mul(bytes.len() as u64)).max(PROFILE_MEMORY_MIN);
    limits.take(most)?;
    Ok(most)
}

const PROFILE_MEMORY_FACTOR: u64 = 20;
const PROFILE_MEMORY_MIN: u64 = 128 << 20;

fn decode_spans(path: &Path, input: impl Read, format: FileFormat) -> Result<Contents, ImportError> {
    let _step = info_span!("decode", format = format.as_str()).entered();
    let mut intake = Intake::new(path);
    if let Err(error) = file::decode(input, format, &Limits::default(), &mut intake) {
        if intake.spans == 0 {
            return Err(ImportError::Unreadable { path: path.to_owned(), source: error });
        }
        intake.assembler.loss(Loss::new(LossKind::FileCut, 1, with_cause(&error)));
    }
    Ok(Contents(Held::Packed(Box::new(intake.finish()))))
}

/// A trace of a server as a recording, whose run is its root.
pub fn of_trace(spans: Vec<Span>) -> Recording {
    contents_of_trace(spans).recording()
}

/// The same, to be kept.
pub fn contents_of_trace(spans: Vec<Span>) -> Contents {
    let root = spans.iter().min_by_key(|span| (span.parent_span_id.is_some(), span.start));
    let command = root.map(|root| vec![root.service_name().to_owned(), root.name.to_string()]).unwrap_or_default();
    let mut intake = Intake::of_command(command);
    spans.into_iter().for_each(|span| intake.assembler.span(span));
    Contents(Held::Packed(Box::new(intake.finish())))
}

/// A trace of a server, to be kept as a recording: that takes memory of the query beside the spans.
///
/// # Errors
///
/// As of [`report_of_trace`].
pub fn trace_to_keep(trace_id: TraceId, spans: Vec<Span>, limits: &QueryLimits) -> Result<Contents, StoreError> {
    let count = spans.len() as u64;
    limits.take(report_bytes(count)).map_err(|error| error.of_trace(trace_id, count))?;
    drop(limits.hold(long_text_bytes(&spans)).map_err(|error| error.of_trace(trace_id, count))?);
    Ok(contents_of_trace(spans))
}

/// The report of a trace of a server for a query, which takes memory of it beside the spans. `profiles` have the CPU time of its spans.
///
/// # Errors
///
/// [`StoreError::TraceTooLarge`], [`StoreError::MemoryShort`] or [`StoreError::Stopped`], as the query ends.
pub fn report_of_trace(
    trace_id: TraceId,
    spans: Vec<Span>,
    profiles: &[ProfilePart<ProfiledSpan>],
    limits: &QueryLimits,
) -> Result<Report, StoreError> {
    let count = spans.len() as u64;
    limits.take(report_bytes(count)).map_err(|error| error.of_trace(trace_id, count))?;
    // A report that leaves no room for a view of it is of no use.
    let _making =
        limits.hold(view_bytes(count).saturating_add(long_text_bytes(&spans))).map_err(|error| error.of_trace(trace_id, count))?;
    let mut recording = of_trace(spans);
    profiled_trace::add(&mut recording, profiles, limits)?;
    limits.check()?;
    let _step = info_span!("report", spans = recording.spans.len()).entered();
    derive(&mut recording, &[]);
    Report::of_derived_until(recording, &|| limits.stop.is_stopped()).ok_or(StoreError::Stopped)
}

/// The report of a file's recording.
pub fn report(recording: Recording) -> Report {
    let _step = info_span!("report", spans = recording.spans.len()).entered();
    Report::new(recording)
}

/// Keeps what a file holds, with its answer. The report holds what that needs: everything else is in the store.
pub fn keep(store: &Store, contents: Contents) -> Result<(RecordingName, Report), StoreError> {
    let run = match &contents.0 {
        Held::Whole(recording) | Held::Profile(recording, _) => &recording.run,
        Held::Packed(packed) => &packed.rest.run,
    };
    let writer = store.create(run)?;
    let marked = source_file::mark_foreign(writer.directory());
    let marked = marked.map_err(|source| StoreError::Io { action: "mark", path: writer.directory().to_owned(), source });
    match marked.and_then(|()| keep_as(&writer, contents)) {
        Ok(report) => Ok((writer.name(), report)),
        Err(error) => {
            // A recording without anything in it would be taken for a dead recorder's; what failed is what the caller has to know.
            let _ = writer.discard();
            Err(error)
        }
    }
}

fn keep_as(writer: &RecordingWriter, contents: Contents) -> Result<Report, StoreError> {
    let (report, traces) = match contents.0 {
        Held::Packed(packed) if summary_spans::is_enough(packed.spans.examples().iter()) => {
            info_span!("write").in_scope(|| writer.write_compact(&packed))?;
            let traces = TraceIds::of_compact(&packed);
            let CompactRecording { rest, spans } = *packed;
            let _step = info_span!("report", spans = spans.len()).entered();
            (Report::of_outline(rest, spans.into_outline()), traces)
        }
        _ => {
            let mut recording = contents.recording();
            derive(&mut recording, &[]);
            info_span!("write").in_scope(|| writer.write(&recording))?;
            let traces = TraceIds::of(&recording);
            // A million spans and all that is known about them at once would take twice the memory.
            summary_spans::reduce(&mut recording);
            let _step = info_span!("report", spans = recording.spans.len()).entered();
            (Report::of_derived(recording), traces)
        }
    };
    writer.seal(&summary_row(&report), &traces)?;
    Ok(report)
}
