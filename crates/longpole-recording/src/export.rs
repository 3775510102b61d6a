//! A recording as a file for another tool.
//!
//! Only the recording's own format holds everything; the others hold spans, or code, or parts of both. [`write()`] counts and returns
//! what the format has no place for.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_analysis::code::wall_profile::{Ticks, wall_profile};
use longpole_analysis::note::Note;
use longpole_analysis::report::FlameTime;
use longpole_analysis::{Report, words};
use longpole_model::{IdVec, Loss, LossKind, NodeId, Recording, Span};
use longpole_wire::profile_export::pprof_builder::{self, PprofBuilder};
use longpole_wire::profile_export::{self, ProfileExport};
use longpole_wire::{appdash, chrome_trace, jaeger, otlp, zipkin};

use crate::shared_text::SharedText;
use crate::view;

/// What another tool reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One OTLP request as JSON.
    OtlpJson,
    /// One OTLP request as protobuf.
    OtlpProtobuf,
    /// Zipkin v2 JSON.
    Zipkin,
    /// What Jaeger's page loads.
    Jaeger,
    /// The file of AppDash.
    AppDash,
    /// Chrome's trace events: spans and code.
    Chrome,
    /// The Firefox Profiler's processed profile: spans and code.
    Firefox,
    /// Code as a file of speedscope.
    Speedscope,
    /// Code as a profile of pprof, gzipped.
    Pprof,
    /// Code as folded stacks.
    Folded,
    /// Wall time of spans as a profile of pprof, gzipped.
    PprofOfSpans {
        /// Time between two ticks.
        granularity_nanos: u64,
    },
    /// Wall time of spans as folded stacks.
    FoldedOfSpans {
        /// Time between two ticks.
        granularity_nanos: u64,
    },
}

/// Which code goes into the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Only the code of these spans and of their descendants, or of a part of them.
    spans: Option<view::Roots>,
    time: FlameTime,
    /// Folded stacks: also the waits of threads that work for no span.
    all_threads: bool,
}

impl Selection {
    /// The code of the whole run. Folded stacks do not mark waits, so they omit the waits of threads that work for no span, as a flame
    /// graph does, unless `all_threads` is set.
    pub fn of_run(time: FlameTime, all_threads: bool) -> Self {
        Selection { spans: None, time, all_threads }
    }

    /// The code of these spans and their descendants; `None` if there are none.
    pub fn of_spans(report: &Report, chosen: view::Chosen<'_>, time: FlameTime) -> Option<Self> {
        view::roots_of(report, chosen).map(|roots| Selection { spans: Some(roots), time, all_threads: false })
    }
}

/// Whether a recording holds code: samples, or sampled waits.
pub fn has_code(report: &Report, selection: &Selection) -> bool {
    !profile_of(report, report.recording(), selection, Idle::Kept).is_empty()
}

/// Writes a recording, and says what it could not write.
pub fn write(report: &Report, format: Format, selection: &Selection, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let whole = report.recording();
    // Each of these makes the file in memory, with a text for each span that has it.
    let repeats =
        matches!(format, Format::OtlpJson | Format::OtlpProtobuf | Format::Zipkin | Format::Jaeger | Format::AppDash | Format::Chrome);
    let of_each = matches!(format, Format::Zipkin | Format::AppDash);
    let count = if repeats { SharedText::default().spans_within(&whole.spans, of_each) } else { whole.spans.len() };
    let spans = &whole.spans[..count];
    let shorter = (repeats && count < whole.spans.len()).then(|| Recording { spans: spans.to_vec(), ..whole.clone() });
    let recording = shorter.as_ref().unwrap_or(whole);
    let export = |idle| profile_of(report, recording, selection, idle);
    let mut losses = match format {
        Format::OtlpJson => bytes(out, (otlp::json::encode(spans), Vec::new())),
        Format::OtlpProtobuf => bytes(out, (otlp::trace::encode(spans), Vec::new())),
        Format::Zipkin => bytes(out, zipkin::encode_v2_json(spans)),
        Format::Jaeger => bytes(out, jaeger::encode(spans)),
        Format::AppDash => appdash::encode_file(spans, out),
        Format::Chrome => bytes(out, chrome_trace::encode(&export(Idle::Kept))),
        Format::Firefox => profile_export::firefox::encode(&export(Idle::Kept), out),
        Format::Speedscope => profile_export::speedscope::encode(&export(Idle::Kept), out),
        Format::Pprof => {
            let (bytes, losses) = profile_export::pprof::encode(&export(Idle::Kept));
            gzip(out, |out| out.write_all(&bytes)).map(|()| losses)
        }
        Format::Folded => profile_export::folded::encode(&export(Idle::LeftOut), out),
        Format::PprofOfSpans { granularity_nanos } => {
            pprof_of_spans(report, granularity_nanos, out).map(|left_out| wall_losses(report, granularity_nanos, left_out))
        }
        Format::FoldedOfSpans { granularity_nanos } => {
            folded_of_spans(report, granularity_nanos, out).map(|left_out| wall_losses(report, granularity_nanos, left_out))
        }
    }?;
    lose(&mut losses, (whole.spans.len() - count) as u64, "spans after the first 512 MiB of long texts that several spans share");
    if !format.holds_code() {
        let samples = recording.samples.len() as u64;
        lose(&mut losses, samples, "samples of code: chrome, firefox, pprof, speedscope, folded and lpole hold them");
        lose(&mut losses, recording.waits.len() as u64, "waits: chrome, firefox, pprof, speedscope, folded and lpole hold them");
    }
    lose(&mut losses, recording.processes.len() as u64, "processes, with their arguments and parents; only .lpole keeps them");
    out.flush()?;
    Ok(losses)
}

/// [`write()`], gzipped.
pub fn write_gzipped(report: &Report, format: Format, selection: &Selection, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    gzip(out, |out| write(report, format, selection, out))
}

impl Format {
    fn holds_code(self) -> bool {
        matches!(self, Format::Chrome | Format::Firefox | Format::Speedscope | Format::Pprof | Format::Folded)
    }
}

/// What becomes of waits that hold up no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// The file has them, marked as idle.
    Kept,
    /// The file omits them, as a flame graph does.
    LeftOut,
}

/// The code of a report. `recording` is that of the report, and may have fewer spans.
fn profile_of<'r>(report: &Report, recording: &'r Recording, selection: &Selection, idle: Idle) -> ProfileExport<'r> {
    let mut export = ProfileExport::new(recording);
    let spans = selection.spans.as_ref();
    export.is_idle.iter_mut().for_each(|is_idle| *is_idle = true);
    for wait in report.waits_below(None) {
        export.is_idle[wait] = false;
    }
    match selection.time {
        FlameTime::OffCpu => export.samples.clear(),
        FlameTime::OnCpu | FlameTime::Wall => {
            export.samples = spans.map_or_else(|| report.samples_below(None), |spans| spans.samples(report));
        }
    }
    match selection.time {
        FlameTime::OnCpu => export.waits.clear(),
        FlameTime::OffCpu | FlameTime::Wall if spans.is_some() || (idle == Idle::LeftOut && !selection.all_threads) => {
            export.waits = spans.map_or_else(|| report.waits_below(None), |spans| spans.waits(report));
        }
        FlameTime::OffCpu | FlameTime::Wall => {}
    }
    let note = |note: &Note| words::loss(note.code(), note.count(), &words::note(note), 0);
    export.notes = report.quality().iter().map(note).collect();
    export
}

fn gzip<T>(out: &mut dyn Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    let value = fill(&mut gzip)?;
    gzip.finish()?;
    Ok(value)
}

fn lose(losses: &mut Vec<Loss>, count: u64, what: &str) {
    if count > 0 {
        losses.push(Loss::new(LossKind::FormatCannotHold, count, what));
    }
}

fn bytes(out: &mut dyn Write, (bytes, losses): (Vec<u8>, Vec<Loss>)) -> io::Result<Vec<Loss>> {
    out.write_all(&bytes)?;
    Ok(losses)
}

/// A profile holds how long what was open, and nothing else of a span.
fn wall_losses(report: &Report, granularity_nanos: u64, left_out: u64) -> Vec<Loss> {
    let short = |span: &&Span| span.duration_nanos().unsigned_abs() < granularity_nanos;
    let short = report.recording().spans.iter().filter(short).count() as u64;
    let all = report.recording().spans.len() as u64;
    let mut losses = Vec::new();
    lose(&mut losses, all, "timestamps, ids, attributes and events of spans: a profile holds only names and sums");
    lose(&mut losses, short, "some spans shorter than the sampling interval (-g sets it)");
    lose(
        &mut losses,
        left_out,
        "ticks after the first 67 108 864 frames, or 1 GiB of folded names: spans nest too deeply to write every stack",
    );
    losses
}

/// The name of a frame: what was done and, where it is known, to what.
fn frame(report: &Report, node: NodeId) -> String {
    let name = report.name(node);
    let span = report.forest().span(report.recording(), node);
    let decorator = span.and_then(|span| DECORATORS.iter().find_map(|key| span.attributes.get_str(key)));
    match decorator {
        Some(decorator) if !decorator.is_empty() => format!("{name}({decorator})"),
        _ => name.to_owned(),
    }
}

/// Attributes that say what a call was about: Pulumi's own, then what was read out of its payloads.
const DECORATORS: [&str; 2] = ["pulumi-decorator", "pulumi.resource.type"];

/// A node with its ancestors, the root first.
fn stack(report: &Report, node: NodeId) -> Vec<NodeId> {
    let mut nodes = vec![node];
    let mut at = node;
    while let Some(parent) = report.forest()[at].parent {
        nodes.push(parent);
        at = parent;
    }
    nodes.reverse();
    nodes
}

/// Frames of all stacks of a profile of spans: 512 MB of pprof in memory. A hundred thousand spans, each below the one before, would
/// have five billion.
const WALL_FRAMES_MAX: usize = 1 << 26;

/// Bytes of the names in all folded stacks of spans: 1 GiB. A name stands in the line of each span below its own.
const WALL_NAME_BYTES_MAX: usize = 1 << 30;

/// The stacks that are written, and how many ticks are not: all behind the last stack that there is room for. What takes a stack says how
/// many bytes it came to.
fn wall_stacks(report: &Report, granularity_nanos: u64, mut take: impl FnMut(Vec<NodeId>, u64) -> io::Result<usize>) -> io::Result<u64> {
    let (mut frames, mut bytes, mut left_out) = (0usize, 0usize, 0u64);
    for Ticks { node, count } in wall_profile(report.forest(), granularity_nanos) {
        if frames > WALL_FRAMES_MAX || bytes > WALL_NAME_BYTES_MAX {
            left_out = left_out.saturating_add(count);
            continue;
        }
        let stack = stack(report, node);
        frames += stack.len();
        bytes = bytes.saturating_add(take(stack, count)?);
    }
    Ok(left_out)
}

/// `run;up;create 12`: one line a stack, the root first.
fn folded_of_spans(report: &Report, granularity_nanos: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut line = String::new();
    // Each once: a node stands in the stacks of all nodes below it.
    let mut names: IdVec<NodeId, Option<String>> = IdVec::filled(None, report.forest().len());
    wall_stacks(report, granularity_nanos, |stack, count| {
        line.clear();
        for (index, node) in stack.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            // A frame is ended by a semicolon, and a stack by a line.
            let name = names[node].get_or_insert_with(|| frame(report, node).replace(';', ":").replace(['\n', '\r'], " "));
            line.push_str(separator);
            line.push_str(name);
        }
        let _ = writeln!(line, " {count}");
        out.write_all(line.as_bytes()).map(|()| line.len())
    })
}

fn pprof_of_spans(report: &Report, granularity_nanos: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut profile = PprofBuilder::default();
    profile.sample_types = vec![("samples", "count"), ("time", "nanoseconds")];
    profile.period = ("time", "nanoseconds", granularity_nanos.cast_signed());
    profile.start = report.origin();
    profile.duration_nanos = report.wall().0;
    let (mut locations, mut of_node) = (HashMap::new(), IdVec::<NodeId, Option<u64>>::filled(None, report.forest().len()));
    let left_out = wall_stacks(report, granularity_nanos, |stack, count| {
        // A node stands in the stacks of all nodes below it, and its name may be long.
        let mut location_of = |node: NodeId| {
            *of_node[node].get_or_insert_with(|| {
                let lines = vec![(profile.function(&frame(report, node), ""), 0)];
                *locations.entry(lines[0].0).or_insert_with(|| profile.location(pprof_builder::Location { lines, ..Default::default() }))
            })
        };
        let stack: Vec<u64> = stack.into_iter().rev().map(&mut location_of).collect();
        let time = i128::from(count) * i128::from(granularity_nanos);
        profile.sample(stack, vec![count.cast_signed(), i64::try_from(time).unwrap_or(i64::MAX)], Vec::new());
        // A name is in the file once.
        Ok(0)
    })?;
    gzip(out, |out| out.write_all(&profile.encode())).map(|()| left_out)
}
