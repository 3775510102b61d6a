//! A recording as a file for another tool.
//!
//! Every format but the recording's own holds spans and no more, and most hold less of a span than OTLP does. What a format has no
//! place for is counted and returned, never left out in silence.

use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_analysis::Report;
use longpole_analysis::wall_profile::{Ticks, wall_profile};
use longpole_model::{Loss, LossKind, Span};
use longpole_wire::{appdash, chrome_trace, jaeger, otlp, pprof, zipkin};

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
    /// Chrome's trace events.
    Chrome,
    /// Wall time as a profile of pprof, gzipped.
    Pprof {
        /// Time between two ticks.
        granularity_nanos: u64,
    },
    /// Wall time as folded stacks.
    Folded {
        /// Time between two ticks.
        granularity_nanos: u64,
    },
}

/// Writes a recording, and says what it could not write.
pub fn write(report: &Report, format: Format, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let recording = report.recording();
    let spans = &recording.spans[..];
    let mut losses = match format {
        Format::OtlpJson => bytes(out, (otlp::json::encode(spans), Vec::new())),
        Format::OtlpProtobuf => bytes(out, (otlp::trace::encode(spans), Vec::new())),
        Format::Zipkin => bytes(out, zipkin::encode_v2_json(spans)),
        Format::Jaeger => bytes(out, jaeger::encode(spans)),
        Format::Chrome => bytes(out, (chrome_trace::encode(spans), Vec::new())),
        Format::AppDash => appdash::encode_file(spans, out),
        Format::Pprof { granularity_nanos } => pprof_of(report, granularity_nanos, out).map(|()| wall_losses(report, granularity_nanos)),
        Format::Folded { granularity_nanos } => {
            out.write_all(folded(report, granularity_nanos).as_bytes()).map(|()| wall_losses(report, granularity_nanos))
        }
    }?;
    let samples = recording.samples.len() as u64;
    let processes = recording.processes.len() as u64;
    for (count, what) in [(samples, "samples of code: only .lpole holds them"), (processes, "processes: only .lpole holds them")] {
        if count > 0 {
            losses.push(Loss::new(LossKind::FormatCannotHold, count, what));
        }
    }
    out.flush()?;
    Ok(losses)
}

fn bytes(out: &mut dyn Write, (bytes, losses): (Vec<u8>, Vec<Loss>)) -> io::Result<Vec<Loss>> {
    out.write_all(&bytes)?;
    Ok(losses)
}

/// A profile holds how long what was open, and nothing else of a span.
fn wall_losses(report: &Report, granularity_nanos: u64) -> Vec<Loss> {
    let short = |span: &&Span| span.duration_nanos().unsigned_abs() < granularity_nanos;
    let short = report.recording().spans.iter().filter(short).count() as u64;
    let all = report.recording().spans.len() as u64;
    let mut losses = Vec::new();
    if all > 0 {
        losses.push(Loss::new(
            LossKind::FormatCannotHold,
            all,
            "times, ids, attributes and events of spans: a profile holds names and sums",
        ));
    }
    if short > 0 {
        losses.push(Loss::new(
            LossKind::FormatCannotHold,
            short,
            "spans shorter than the granularity may fall between two ticks: -g sets it",
        ));
    }
    losses
}

/// The name of a frame: what was done and, where it is known, to what.
fn frame(report: &Report, node: usize) -> String {
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
fn stack(report: &Report, node: usize) -> Vec<usize> {
    let mut nodes = vec![node];
    let mut at = node;
    while let Some(parent) = report.forest().nodes[at].parent() {
        nodes.push(parent);
        at = parent;
    }
    nodes.reverse();
    nodes
}

/// `run;up;create 12`: one line a stack, the root first.
fn folded(report: &Report, granularity_nanos: u64) -> String {
    let mut out = String::new();
    for Ticks { node, count } in wall_profile(report.forest(), granularity_nanos) {
        for (index, node) in stack(report, node).into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            // A frame is ended by a semicolon, and a stack by a line.
            let name = frame(report, node).replace(';', ":").replace(['\n', '\r'], " ");
            let _ = write!(out, "{separator}{name}");
        }
        let _ = writeln!(out, " {count}");
    }
    out
}

fn pprof_of(report: &Report, granularity_nanos: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = pprof::Profile::default();
    profile.sample_types = vec![("samples", "count"), ("time", "nanoseconds")];
    profile.period = ("time", "nanoseconds", granularity_nanos.cast_signed());
    profile.start = report.origin();
    profile.duration_nanos = report.wall_nanos();
    for Ticks { node, count } in wall_profile(report.forest(), granularity_nanos) {
        let mut stack: Vec<u64> = stack(report, node).into_iter().map(|node| profile.function(frame(report, node))).collect();
        stack.reverse();
        let time = i128::from(count) * i128::from(granularity_nanos);
        profile.sample(stack, vec![count.cast_signed(), i64::try_from(time).unwrap_or(i64::MAX)]);
    }
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile.encode())?;
    gzip.finish().map(drop)
}
