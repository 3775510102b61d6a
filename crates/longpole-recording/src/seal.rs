//! A log becomes a recording: replayed, decoded, named, linked, written.
//!
//! ```text
//! log ─ observations ─────────────► Assembler ─► Recording ─ symbols ─ links ─► segments + summary row
//!     └ OTLP bodies ─ wire ─ spans ─┘
//! ```
//!
//! The recorder does this when its command has ended; whoever opens the recording of a recorder that was killed does the very
//! same. It can be interrupted between its steps: the log stays, and the next one begins again.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use longpole_analysis::link::current_spans::CrossCheck;
use longpole_analysis::link::never_arrived;
use longpole_analysis::{Report, derive, words};
use longpole_model::{Loss, LossKind, MappingId, Span, SpanBatch};
use longpole_store::live::QueryLimits;
use longpole_store::{
    Assembler, Frame, RecordingName, RecordingState, RecordingWriter, Replay, Store, StoreError, StoredRecording, SummaryRow,
};
use longpole_symbols::{OpenFirst, hang_timeout};
use longpole_wire::{DecodeError, Limits, otlp};
use tracing::info_span;

use crate::loss_counters;
use crate::memory::{available_bytes, gibibytes, growth_limit, held_bytes, long_text_bytes, needed_by_log, needed_bytes, view_bytes};
use crate::view;

/// Why a recording could not be sealed or read.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The store could not read or write.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log could not be read.
    #[error(transparent)]
    Wal(#[from] longpole_store::WalError),
    /// The user asked to stop; what was recorded stays in the log.
    #[error("interrupted; the recorded data stays, and `longpole show {name}` continues from there")]
    Interrupted {
        /// The recording.
        name: RecordingName,
    },
    /// The log does not begin with its run, or begins twice.
    #[error("the log of {name} does not begin with its run")]
    Headless {
        /// The recording.
        name: RecordingName,
    },
    /// It does not fit into memory.
    #[error(
        "{name} has {spans} spans and {samples} samples; a report needs about {} of memory, and {} are free: open it on a machine with \
         more memory{}", gibibytes(*needed), gibibytes(*free),
        if *is_sealed { ", or query it with `longpole sql`, which does not load it whole" } else { "" }
    )]
    TooLarge {
        /// The recording.
        name: RecordingName,
        /// Its spans.
        spans: u64,
        /// Its samples.
        samples: u64,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Whether it has segments.
        is_sealed: bool,
    },
    /// It takes more memory than a server allows for all queries.
    #[error(
        "{name} has {spans} spans and {samples} samples; a report takes about {} of memory, and the queries of this server may take {} \
         together: export it with `longpole export` on the server, and open it on your machine",
        gibibytes(*needed), gibibytes(*limit)
    )]
    TooLargeForServer {
        /// The recording.
        name: RecordingName,
        /// Its spans.
        spans: u64,
        /// Its samples.
        samples: u64,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that all queries may take.
        limit: u64,
    },
    /// Its recorder lives.
    #[error("{name} is still being recorded")]
    Living {
        /// The recording.
        name: RecordingName,
    },
}

/// A recording that its own recorder has sealed, or tried to.
#[derive(Debug)]
pub struct OwnSeal {
    /// What the log holds.
    pub report: Report,
    /// Why the segments could not be written, as on a full disk. The log stays, unless somebody took it away.
    pub unwritten: Option<StoreError>,
    /// What of the recording was taken away or damaged while it was made, as a lower-case fragment. It is among the losses, too.
    pub damaged: Option<String>,
}

/// Seals the recording that this process has made, and reports on it. `binaries` are the mapped files the recorder still has
/// open: names are looked up in them, so that a binary that was deleted or replaced meanwhile is the one that ran.
pub fn seal_own(
    writer: &RecordingWriter,
    binaries: HashMap<MappingId, File>,
    interrupted: &dyn Fn() -> bool,
) -> Result<OwnSeal, SealError> {
    writer.wal().close();
    let taken = writer.taken();
    let assembled =
        writer.replay().map_err(SealError::from).and_then(|replay| assemble(replay, writer.name(), binaries, &taken, interrupted));
    let report = assembled.inspect_err(|error| writer.note_ended(error))?;
    let written = info_span!("write").in_scope(|| writer.write_segments(report.recording(), &summary_row(&report)));
    let unwritten = written.inspect_err(|error| writer.note_ended(error)).err();
    // Nothing has damaged a log that its recorder wrote to the end, but whoever took something out of it.
    let is_damage = |loss: &&Loss| matches!(loss.kind, LossKind::WalDamaged | LossKind::WalTorn) || taken.contains(loss);
    let damaged = report.recording().losses.iter().find(is_damage).map(|loss| loss.detail.clone());
    Ok(OwnSeal { report, unwritten, damaged })
}

/// The report of a recording. One whose recorder was killed is sealed first.
pub fn load(store: &Store, name: RecordingName, interrupted: &dyn Fn() -> bool) -> Result<Report, SealError> {
    load_stored(&store.recording(name)?, &QueryLimits::default(), interrupted)
}

/// The same for a query. The report takes memory of it, from before the first row is read.
pub fn load_within(store: &Store, name: RecordingName, limits: &QueryLimits) -> Result<Report, SealError> {
    let stored = store.recording(name)?;
    if let RecordingState::Sealed { .. } = stored.state {
        let SummaryRow { spans, samples, .. } = stored.summary;
        // A report that leaves no room for a view of it is of no use.
        let report = held_bytes(spans, samples, stored.memory_bytes()?.unwrap_or_default());
        let needed = report.saturating_add(view_bytes(spans));
        limits.take(needed).map_err(|error| match error {
            StoreError::TooMuchMemory { limit, .. } => SealError::TooLargeForServer { name, spans, samples, needed, limit },
            error => error.into(),
        })?;
        limits.memory.release_to(report);
    }
    load_stored(&stored, limits, &|| limits.stop.is_stopped())
}

fn load_stored(stored: &StoredRecording, limits: &QueryLimits, interrupted: &dyn Fn() -> bool) -> Result<Report, SealError> {
    let name = stored.name;
    match stored.state {
        RecordingState::Sealed { .. } => match read_sealed(stored, limits) {
            // A power cut can take segments back that the catalog knows. The log stays until the disk has them.
            Err(SealError::Store(error))
                if stored.has_log() && error.kind() != longpole_store::ErrorKind::Incompatible && !matches!(error, StoreError::Stopped) =>
            {
                seal_again(stored, interrupted)
            }
            read => read,
        },
        RecordingState::Recording => Err(SealError::Living { name }),
        RecordingState::Killed | RecordingState::Ended => seal_again(stored, interrupted),
    }
}

fn read_sealed(stored: &StoredRecording, limits: &QueryLimits) -> Result<Report, SealError> {
    check_sealed_fits(stored)?;
    // Its memory is taken as a whole.
    let reading = QueryLimits { stop: limits.stop.clone(), ..QueryLimits::default() };
    let recording = info_span!("read").in_scope(|| stored.read_for(&reading))?;
    // Its texts are shared, and what is computed of them copies some.
    let _making = limits.hold(long_text_bytes(&recording.spans))?;
    let report = info_span!("report").in_scope(|| Report::of_derived_until(recording, &|| limits.stop.is_stopped()));
    report.ok_or(SealError::Store(StoreError::Stopped))
}

/// Seals a recording from its log.
fn seal_again(stored: &StoredRecording, interrupted: &dyn Fn() -> bool) -> Result<Report, SealError> {
    let report = assemble(stored.replay()?, stored.name, HashMap::new(), &[], interrupted)?;
    match info_span!("write").in_scope(|| stored.write_segments(report.recording(), &summary_row(&report))) {
        // Without space for segments the log stays, and is read again the next time.
        Err(error) if error.kind() != longpole_store::ErrorKind::Environment => Err(error.into()),
        Ok(()) | Err(_) => Ok(report),
    }
}

/// What takes no more than this is read without asking.
const NEVER_TOO_LARGE_BYTES: u64 = 256 << 20;

/// Bytes of requests after which sealing checks again that there is memory for the recording.
const CHECKED_EACH_BYTES: u64 = 64 << 20;

/// Refuses a sealed recording that would take more memory than there is. If the catalog has the size of its rows, that size counts,
/// because a few spans can have long texts.
fn check_sealed_fits(stored: &StoredRecording) -> Result<(), SealError> {
    let SummaryRow { spans, samples, .. } = stored.summary;
    let needed = needed_bytes(spans, samples).max(stored.memory_bytes()?.unwrap_or_default());
    check_fits(stored.name, [spans, samples], needed, available_bytes, true)
}

/// Refuses what would take more memory than there is.
fn check_fits(
    name: RecordingName,
    [spans, samples]: [u64; 2],
    needed: u64,
    free: impl FnOnce() -> Option<u64>,
    is_sealed: bool,
) -> Result<(), SealError> {
    if needed <= NEVER_TOO_LARGE_BYTES {
        return Ok(());
    }
    match free() {
        Some(free) if needed > free => Err(SealError::TooLarge { name, spans, samples, needed, free, is_sealed }),
        _ => Ok(()),
    }
}

/// Why a recording has spans that never arrived.
const NEVER_ARRIVED: &str = "known from context records of threads; the program was killed or aborted, still had the spans open, could not \
                             send them, or forked a child that does not export";

/// Everything in the log, joined, and what else is missing.
fn assemble(
    replay: Replay,
    name: RecordingName,
    binaries: HashMap<MappingId, File>,
    also: &[Loss],
    interrupted: &dyn Fn() -> bool,
) -> Result<Report, SealError> {
    let stop = || if interrupted() { Err(SealError::Interrupted { name }) } else { Ok(()) };
    let step = info_span!("replay").entered();
    let mut frames = replay;
    let mut assembler = match frames.next() {
        Some(Ok(Frame::Run(run))) => Assembler::new(run),
        Some(Err(error)) => return Err(error.into()),
        // The log is created with this frame in one write.
        Some(Ok(_)) | None => return Err(SealError::Headless { name }),
    };
    let mut resource_events = Vec::new();
    let (mut sent_bytes, mut next_check) = (0, CHECKED_EACH_BYTES);
    let check = |assembler: &Assembler| {
        let (spans, samples) = (assembler.span_count(), assembler.sample_count());
        check_fits(name, [spans, samples], needed_by_log(spans, samples, assembler.span_body_bytes()), available_bytes, false)
    };
    for frame in frames {
        stop()?;
        let frame = frame?;
        if let Frame::OtlpProtobuf { body, .. } | Frame::OtlpJson { body, .. } | Frame::TraceFile { body, .. } | Frame::SpanEvents(body) =
            &frame
        {
            sent_bytes += body.len() as u64;
        }
        if sent_bytes >= next_check {
            next_check = sent_bytes.saturating_add(CHECKED_EACH_BYTES);
            check(&assembler)?;
        }
        match frame {
            Frame::Run(_) => return Err(SealError::Headless { name }),
            Frame::OtlpProtobuf { peer_pid, body } => {
                decoded(&mut assembler, peer_pid, |batch| otlp::trace::decode(&body, &Limits::default(), batch))
                    .into_iter()
                    .for_each(|span| assembler.span_by(peer_pid, span));
            }
            Frame::OtlpJson { peer_pid, body } => {
                decoded(&mut assembler, peer_pid, |batch| otlp::json::decode(&body, &Limits::default(), batch))
                    .into_iter()
                    .for_each(|span| assembler.span_by(peer_pid, span));
            }
            Frame::TraceFile { command, body } => {
                // Which process wrote it is unknown, so none of its spans takes the place of one that a process sent.
                decoded(&mut assembler, command, |batch| otlp::trace::decode(&body, &Limits::default(), batch))
                    .into_iter()
                    .for_each(|span| assembler.span(span));
            }
            Frame::SpanEvents(body) => {
                for carrier in decoded(&mut assembler, None, |batch| otlp::trace::decode(&body, &Limits::default(), batch)) {
                    carrier.events.into_iter().for_each(|event| assembler.span_event(carrier.trace_id, carrier.span_id, event));
                }
            }
            Frame::ResourceEvent(event) => resource_events.push(event),
            Frame::Observations(observations) => observations.into_iter().for_each(|o| assembler.observe(o)),
            Frame::Loss(loss) => assembler.loss(loss),
            // They stand in logs of servers only.
            Frame::Generation(_) | Frame::Spans { .. } | Frame::Profiles { .. } => {
                assembler.loss(Loss::new(LossKind::WalDamaged, 1, "a frame of a server's log, which no recording has"));
            }
        }
    }
    also.iter().for_each(|loss| assembler.loss(loss.clone()));
    let eras = assembler.eras();
    if !eras.is_one() {
        resource_events.iter_mut().for_each(|event: &mut longpole_model::ResourceEvent| event.time = eras.place(event.time));
    }
    // Packed they are a quarter of what they become now. What is in the log stays there.
    check(&assembler)?;
    let mut recording = assembler.finish();
    drop(step);
    stop()?;
    let step = info_span!("symbols", mappings = recording.mappings.len()).entered();
    let open = OpenFirst(move |mapping| binaries.get(&mapping).map(File::try_clone).transpose());
    for loss in hang_timeout::fill(Arc::new(open), &mut recording, &growth_limit()) {
        loss.merge_into(&mut recording.losses);
    }
    drop(step);
    stop()?;
    let _step = info_span!("report", spans = recording.spans.len(), samples = recording.samples.len()).entered();
    let never_arrived = never_arrived::count(&recording);
    if never_arrived > 0 {
        Loss::new(LossKind::SpansNeverArrived, never_arrived, NEVER_ARRIVED).merge_into(&mut recording.losses);
    }
    for note in derive(&mut recording, &resource_events) {
        let Some(kind) = LossKind::from_code(note.code()) else { continue };
        let loss = Loss::new(kind, note.count(), words::note(&note));
        // What Pulumi was doing when it ended is the first thing to know, and what it did if no span tells.
        let is_first = match kind {
            LossKind::ResourcesUnfinished => true,
            LossKind::ResourcesUnmatched => recording.spans.is_empty(),
            _ => false,
        };
        if is_first { recording.losses.insert(0, loss) } else { loss.merge_into(&mut recording.losses) }
    }
    let check = CrossCheck::of(&recording);
    if check.disagree > 0 {
        let detail = format!("the record and the journal of their thread name different spans, of {} samples that have both", check.both);
        Loss::new(LossKind::ContextDisagrees, check.disagree, detail).merge_into(&mut recording.losses);
    }
    // Logs of older versions, and what is decoded from this one, quote as well.
    loss_counters::make_storable(&mut recording.losses);
    Ok(Report::of_derived(recording))
}

/// The spans of one kept body, its losses counted. It was checked before it was acknowledged, so an error here is a bug of ours:
/// counted, not hidden.
fn decoded(assembler: &mut Assembler, peer_pid: Option<u32>, decode: impl FnOnce(&mut SpanBatch) -> Result<(), DecodeError>) -> Vec<Span> {
    let mut batch = SpanBatch::from_peer(peer_pid);
    if let Err(error) = decode(&mut batch) {
        let detail = format!("acknowledged, but not readable later: {error}");
        assembler.loss(Loss::new(LossKind::RequestsRefused, 1, detail));
        return Vec::new();
    }
    batch.losses.into_iter().for_each(|loss| assembler.loss(loss));
    batch.spans
}

/// What lists say of a recording, its answer with it.
pub(crate) fn summary_row(report: &Report) -> SummaryRow {
    let answer = view::AnswerView::new(report).and_then(|answer| serde_json::to_string(&answer).ok());
    SummaryRow { spans: report.span_count() as u64, ..SummaryRow::of_recording(report.recording(), answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_too_large_a_recording_names_the_memory_and_another_way() {
        let check = |needed, free| check_fits(RecordingName::new(1), [12_000, 0], needed, || free, true);
        assert!(check(NEVER_TOO_LARGE_BYTES, Some(0)).is_ok());
        assert!(check(2 << 30, Some(2 << 30)).is_ok() && check(2 << 30, None).is_ok());
        assert_eq!(
            check(2 << 30, Some(1 << 30)).unwrap_err().to_string(),
            "r1 has 12000 spans and 0 samples; a report needs about 2.0 GiB of memory, and 1.0 GiB are free: open it on a machine with \
             more memory, or query it with `longpole sql`, which does not load it whole"
        );
    }
}
