//! A file that another tool wrote becomes a recording.
//!
//! ```text
//! file ─ gzip? ─ wire::file ─ spans ─ credentials taken out ─► Assembler ─► packed spans, whose run is the file
//!   ├ perf.data ─ wire::perf_data ─ unwound, named ────────────► Recording, whose run is what perf ran
//!   ├ pprof, folded ─ wire::profile ───────────────────────────► Recording, whose samples have no moment
//!   └ .lpole ─ store::pack ───────────────────────────────────► Recording, as it was
//! ```
//!
//! A file of spans is read once, from its beginning, and never as a whole. What stands before a fault is kept, and the fault is a loss
//! of the recording: a trace that was cut when its writer died is still most of the trace.
//!
//! What is kept is written first and judged then, so that a million spans and all that is known about them are not in memory at
//! once. Of spans that come packed no more than an outline is ever unpacked, unless they are Pulumi's:
//!
//! ```text
//! packed spans ────────┬► segments
//!                      └─ heads and examples ──────────┬► Report ─► the row in the catalog
//! Recording ─ bridge ─┬► segments                      │
//!                     └─ outline, without attributes ──┘
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use flate2::bufread::MultiGzDecoder;
use longpole_analysis::{Report, bridge, outline, sample_links};
use longpole_model::sink::SpanRef;
use longpole_model::{
    CaptureMode, Loss, LossKind, Recording, Resource, Run, Scope, Span, SpanHead, SpanId, SpanSink, Texts, TimeRange, Timestamp, TraceId,
};
use longpole_store::outside::{self, Links};
use longpole_store::{Assembler, PackedRecording, PackedSpans, RecordingName, RecordingWriter, Store, StoreError, pack};
use longpole_wire::file::{self, FormatError, HEAD_BYTES};
use longpole_wire::limits::expanded_bytes_max;
use longpole_wire::profile::ProfileFormat;
use longpole_wire::redact::Redactor;
use longpole_wire::{FileError, Limits, perf_data, profile, pulumi_payload};
use tracing::info_span;

use crate::loss_book::LossBook;
use crate::seal::summary_row;
use crate::source_file;

mod perf_data_file;
mod profile_file;

pub use profile_file::NoTime;

/// Resources, and scopes, that are kept to be shared: exporters repeat them with each request. A file of more emitters than
/// this in turns is read as well, only larger in memory.
const SHARED_MAX: usize = 64;

/// What a sample stands for of which the file does not say it: shares are right then, and times are not.
const ASSUMED_WEIGHT_NANOS: u64 = 1_000_000;

/// Why a file is no recording. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is none of the formats that are read.
    #[error("read {}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it seems to be, and what is known.
        source: FormatError,
    },
    /// Nothing of it could be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not, and where.
        source: FileError,
    },
    /// It is a profile of something else than time.
    #[error("show {}", path.display())]
    NoTime {
        /// The file.
        path: PathBuf,
        /// What it is of.
        source: NoTime,
    },
    /// It does not go together with the other files.
    #[error("join {}: {why}", path.display())]
    NotTogether {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// It is a recording that cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a file holds.
#[derive(Debug)]
pub struct Contents(Held);

#[derive(Debug)]
enum Held {
    Whole(Box<Recording>),
    Packed(Box<PackedRecording>),
    /// A profile whose samples have no moment, and what its labels say of spans.
    Profile(Box<Recording>, profile_file::Labels),
}

impl Contents {
    fn whole(recording: Recording) -> Contents {
        Contents(Held::Whole(Box::new(recording)))
    }

    /// The recording, with all its spans in memory.
    pub fn recording(self) -> Recording {
        match self.0 {
            Held::Whole(recording) | Held::Profile(recording, _) => *recording,
            Held::Packed(packed) => packed.unpack(),
        }
    }
}

/// Traces and one profile whose labels name their spans, as one recording.
pub fn together(files: Vec<(PathBuf, Contents)>) -> Result<Contents, ImportError> {
    let not = |path: PathBuf, why| ImportError::NotTogether { path, why };
    let mut command = vec!["import".to_owned()];
    command.extend(files.iter().map(|(path, _)| path.to_string_lossy().into_owned()));
    let last = files.last().map(|(path, _)| path.clone()).unwrap_or_default();
    let (mut traces, mut profile): (Vec<PackedRecording>, _) = (Vec::new(), None);
    for (path, contents) in files {
        match contents.0 {
            Held::Packed(packed) => traces.push(*packed),
            Held::Profile(recording, labels) if profile.is_none() => profile = Some((recording, labels)),
            Held::Profile(..) => return Err(not(path, "one profile is tied to spans, and this is another one")),
            Held::Whole(_) => return Err(not(path, "only traces and a profile of pprof or folded stacks go together")),
        }
    }
    let Some((mut recording, labels)) = profile else { return Err(not(last, "there is no profile among the files")) };
    let starts = traces.iter().map(|trace| trace.rest.run.start);
    let Some(start) = starts.min() else { return Err(not(last, "there is no trace among the files")) };
    let run = &mut recording.run;
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
    if pack::is_pack(first) {
        return Ok(Contents::whole(pack::read(path, file)?));
    }
    let unreadable = |source| ImportError::Unreadable { path: path.to_owned(), source };
    if is_perf_data(first) {
        let limits = Limits::default();
        return perf_data_file::recording(path, file.into_inner(), &limits, written(path)).map(Contents::whole).map_err(unreadable);
    }
    if first.starts_with(&[0x1f, 0x8b]) {
        let inside = Unpacked { input: MultiGzDecoder::new(file), left: expanded_bytes_max(file_bytes), packed_bytes: file_bytes };
        let mut inside = BufReader::with_capacity(HEAD_BYTES, inside);
        if is_perf_data(inside.fill_buf().map_err(io)?) {
            let bytes = whole(inside).map_err(unreadable)?;
            // What is compressed in it takes from the same budget: gzip around zstd would multiply to a hundred thousandth.
            let left = usize::try_from(expanded_bytes_max(file_bytes)).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            let limits = Limits::default();
            let limits = Limits { document_bytes_max: limits.document_bytes_max.min(left), ..limits };
            let input = Cursor::new(bytes);
            return perf_data_file::recording(path, input, &limits, written(path)).map(Contents::whole).map_err(unreadable);
        }
        return decode(path, inside);
    }
    decode(path, file)
}

/// Opens a file that can be read to its end. What never ends, or never begins, is refused by name: `/dev/zero` and a pipe that nobody
/// writes to would hang. Pipes of the shell (`<(xz -dc up.trace.xz)`, `/dev/stdin`) have a writer.
fn open(path: &Path) -> io::Result<File> {
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")));
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return refused("a directory");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let is_of_the_shell = || ["/dev/stdin", "/dev/fd", "/proc/self/fd"].iter().any(|start| path.starts_with(start));
        if kind.is_char_device() || kind.is_block_device() {
            return refused("a device");
        }
        if kind.is_socket() {
            return refused("a socket");
        }
        if kind.is_fifo() && !is_of_the_shell() {
            return refused("a named pipe");
        }
    }
    // Somebody else may exchange it meanwhile, where its folder is not the user's.
    if kind.is_file() { outside::open(path, Links::Followed) } else { File::open(path) }
}

/// What a compressed file holds, as far as it is no more than [`expanded_bytes_max`].
struct Unpacked<R> {
    input: R,
    left: u64,
    packed_bytes: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(io::Error::other(format!(
                "its {} bytes of gzip unpack to more than {}, the most for a file of that size; if you trust it, unpack it with gunzip first",
                self.packed_bytes,
                expanded_bytes_max(self.packed_bytes),
            ))),
        }
    }
}

fn is_perf_data(first: &[u8]) -> bool {
    [&perf_data::MAGIC[..], perf_data::MAGIC_SWAPPED, b"PERFFILE"].iter().any(|magic| first.starts_with(magic))
}

/// Everything, for who has to go back and forth in it.
fn whole(input: impl Read) -> Result<Vec<u8>, FileError> {
    let limit_bytes = Limits::default().document_bytes_max;
    let mut bytes = Vec::new();
    input.take(limit_bytes as u64 + 1).read_to_end(&mut bytes).map_err(FileError::Read)?;
    if bytes.len() > limit_bytes { Err(FileError::TooLarge { limit_bytes, offset: 0 }) } else { Ok(bytes) }
}

/// When a file was written last: about when what it tells of ended.
fn written(path: &Path) -> Timestamp {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn decode(path: &Path, mut input: BufReader<impl Read>) -> Result<Contents, ImportError> {
    let first = input.fill_buf().map_err(|source| ImportError::Io { path: path.to_owned(), source })?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // Spans and profiles of OTLP look alike at first.
    let is_profile = |format: &ProfileFormat| *format == ProfileFormat::Otlp || file::guess(first, &name).is_none();
    if let Some(format) = profile::guess(first).filter(is_profile) {
        let _step = info_span!("decode", format = format.as_str()).entered();
        let profile = profile::decode(input, format, &Limits::default());
        let profile = profile.map_err(|source| ImportError::Unreadable { path: path.to_owned(), source })?;
        return profile_file::recording(path, profile, written(path))
            .map(|(recording, labels)| Contents(Held::Profile(Box::new(recording), labels)))
            .map_err(|source| ImportError::NoTime { path: path.to_owned(), source });
    }
    let format = file::identify(first, &name).map_err(|source| ImportError::Unknown { path: path.to_owned(), source })?;
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

/// An error with its cause on one line.
fn with_cause(error: &FileError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Takes the spans of a file.
struct Intake {
    assembler: Assembler,
    redactor: Redactor,
    redacted: u64,
    resources: Shared<Resource>,
    scopes: Shared<Scope>,
    /// Resources that a file says once and its spans name in any order, by where each is, with what is kept for it. To hold on to one
    /// keeps its place.
    known: HashMap<usize, (Arc<Resource>, Arc<Resource>)>,
    texts: Texts,
    /// The emitter of the next spans.
    resource: Arc<Resource>,
    scope: Arc<Scope>,
    losses: LossBook,
    spans: u64,
    /// Whether times of a span were moved into what can be counted.
    any_clamped: bool,
}

impl SpanSink for Intake {
    fn resource(&mut self, mut resource: Resource) {
        self.redacted += self.redactor.resource(&mut resource);
        self.resource = self.resources.share(resource);
        // Spans that share all of their emitter are packed as one example and what differs.
        self.scope = self.scopes.share(Scope::default());
    }

    fn shared_resource(&mut self, resource: &Arc<Resource>) {
        // Nobody else holds it: it comes once.
        if Arc::strong_count(resource) < 2 {
            return self.resource((**resource).clone());
        }
        let place = Arc::as_ptr(resource) as usize;
        match self.known.get(&place) {
            Some((_, known)) => {
                self.resource = Arc::clone(known);
                self.scope = self.scopes.share(Scope::default());
            }
            None => {
                self.resource((**resource).clone());
                self.known.insert(place, (Arc::clone(resource), Arc::clone(&self.resource)));
            }
        }
    }

    fn scope(&mut self, mut scope: Scope) {
        self.redacted += self.redactor.scope(&mut scope);
        self.scope = self.scopes.share(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        span.dropped().into_iter().for_each(|loss| self.loss(loss));
        // A pid is one of the recording machine, and nobody knows where these spans were made.
        let mut owned = span.to_span(&mut self.texts, Arc::clone(&self.resource), Arc::clone(&self.scope), None);
        if pulumi_payload::is_in(&span) {
            pulumi_payload::leave_out(&mut owned);
        }
        if self.redactor.concerns_span(&span) {
            self.redacted += self.redactor.span(&mut owned);
        }
        self.spans += 1;
        self.any_clamped |= is_clamped(&owned);
        self.assembler.span(owned);
    }

    fn loss(&mut self, loss: Loss) {
        self.losses.add(loss.kind, loss.count, loss.detail);
    }
}

impl Intake {
    fn new(path: &Path) -> Self {
        Intake {
            assembler: Assembler::new(unseen_run(vec!["import".to_owned(), path.to_string_lossy().into_owned()])),
            redactor: Redactor::default(),
            redacted: 0,
            resources: Shared::default(),
            scopes: Shared::default(),
            known: HashMap::new(),
            texts: Texts::default(),
            resource: Arc::default(),
            scope: Arc::default(),
            losses: LossBook::default(),
            spans: 0,
            any_clamped: false,
        }
    }

    fn finish(mut self) -> PackedRecording {
        self.losses.take().into_iter().for_each(|loss| self.assembler.loss(loss));
        if self.redacted > 0 {
            self.assembler.loss(Loss::new(
                LossKind::ValuesRedacted,
                self.redacted,
                "named or looking like credentials: docs/formats/redaction.md",
            ));
        }
        let caller = self.assembler.caller();
        let mut packed = self.assembler.finish_packed();
        let run = &mut packed.rest.run;
        if let Some(TimeRange { start, end }) = range(&packed.spans, self.any_clamped) {
            run.start = start;
            run.end = Some(end);
        }
        if let Some((trace_id, span_id)) = caller {
            run.trace_id = trace_id;
            run.root_span_id = span_id;
        }
        packed
    }
}

/// A run that has ended, and nobody saw how: what a file stands for.
fn unseen_run(command: Vec<String>) -> Run {
    Run {
        command,
        working_directory: String::new(),
        host: String::new(),
        cpus: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        trace_id: TraceId::MAX,
        root_span_id: SpanId::MAX,
        root_pid: None,
        start: Timestamp(0),
        end: Some(Timestamp(0)),
        exit: None,
        rate_hz: 0,
        mode: CaptureMode::Off,
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

/// A recording of nothing, for spans that nobody recorded.
pub(crate) fn unseen(command: Vec<String>) -> Recording {
    Assembler::new(unseen_run(command)).finish()
}

/// A trace that begins so late has spans of a clock, and 0 is none of its moments: a year.
const OF_A_CLOCK_NANOS: i64 = 365 * 86_400_000_000_000;

/// First start to last end. Times that were moved into what can be counted say nothing about when the trace was, nor does a start of 0,
/// which is what OTLP calls unknown.
fn range(spans: &PackedSpans, any_clamped: bool) -> Option<TimeRange> {
    let first = spans.heads().iter().map(|head| head.start).filter(|start| *start != Timestamp(0)).min();
    let unknown = first.filter(|first| first.unix_nanos() > OF_A_CLOCK_NANOS);
    let start = |head: &SpanHead| unknown.filter(|_| head.start == Timestamp(0)).unwrap_or(head.start);
    let of = |heads: &mut dyn Iterator<Item = &SpanHead>| {
        heads
            .map(|head| TimeRange { start: start(head), end: head.end.max(start(head)) })
            .reduce(|a, b| TimeRange { start: a.start.min(b.start), end: a.end.max(b.end) })
    };
    // To take a million spans out takes a second, and of hardly any file it is needed.
    let is_told = |index: usize| !any_clamped || !is_clamped(&spans.get(index));
    let mut told = spans.heads().iter().enumerate().filter(|(index, _)| is_told(*index)).map(|(_, head)| head);
    of(&mut told).or_else(|| of(&mut spans.heads().iter()))
}

fn is_clamped(span: &Span) -> bool {
    span.attributes.get("longpole.time_clamped").is_some()
}

/// Values that come again and again, each kept once.
struct Shared<T>(Vec<Arc<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared(Vec::new())
    }
}

impl<T: PartialEq> Shared<T> {
    fn share(&mut self, value: T) -> Arc<T> {
        let Some(at) = self.0.iter().position(|known| **known == value) else {
            if self.0.len() == SHARED_MAX {
                self.0.pop();
            }
            self.0.insert(0, Arc::new(value));
            return Arc::clone(&self.0[0]);
        };
        // Those in use stay in front, and the search is short.
        self.0[..=at].rotate_right(1);
        Arc::clone(&self.0[0])
    }
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
    let report = match contents.0 {
        Held::Packed(packed) if outline::is_enough(packed.spans.examples().iter()) => {
            info_span!("write").in_scope(|| writer.write_packed(&packed))?;
            let PackedRecording { rest, spans } = *packed;
            let _step = info_span!("report", spans = spans.len()).entered();
            Report::of_outline(rest, spans.into_outline())
        }
        _ => {
            let mut recording = contents.recording();
            bridge::join(&mut recording);
            if recording.sample_links.len() != recording.samples.len() {
                recording.sample_links = sample_links::link(&recording);
            }
            info_span!("write").in_scope(|| writer.write(&recording))?;
            // A million spans and all that is known about them at once would take twice the memory.
            outline::reduce(&mut recording);
            report(recording)
        }
    };
    writer.seal(&summary_row(&report))?;
    Ok(report)
}

#[cfg(test)]
mod tests;
