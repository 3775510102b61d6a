//! Files of spans: which format one is of, and its spans.
//!
//! ```text
//! first bytes, name ──► identify ──► FileFormat ──► decode ──► sink
//!                          │                          │
//!                          └ FormatError: a guess     └ FileError: what stands before a cut has been given
//!                            and what is known
//! ```
//!
//! | format | held in memory |
//! |---|---|
//! | OTLP as JSON lines, OTLP protobuf | one line, one message of the list |
//! | AppDash | one span |
//! | a JSON document | all of it |

mod document;
mod lines;
mod messages;

use std::fmt;
use std::io::Read;
use std::str::FromStr;
use std::sync::Arc;

use longpole_model::loss::Loss;
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{SpanRef, SpanSink};

use crate::error::FileError;
use crate::limits::{Limits, ZIPKIN_FILE_BYTES_A_SPAN};
use crate::profile_import::ProfileFormat;
use crate::{appdash, jaeger, otlp, zipkin};

/// How many bytes of a file [`identify`] should be given: enough for the first spans of any format.
pub const HEAD_BYTES: usize = 64 << 10;

/// A format of files of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// A request of OTLP as JSON on each line, as Pulumi's `--otel-traces file://` and the Collector's file exporter write.
    OtlpJsonLines,
    /// One OTLP request as JSON.
    OtlpJson,
    /// `TracesData` of OTLP in protobuf, one or several behind each other, with or without lengths before them.
    OtlpProtobuf,
    /// What Pulumi's `--tracing file:` writes.
    AppDash,
    /// A list of Zipkin spans of version 1.
    ZipkinV1Json,
    /// A list of Zipkin spans of version 2.
    ZipkinV2Json,
    /// What Jaeger's UI downloads.
    Jaeger,
}

impl FileFormat {
    /// Every format.
    pub const ALL: [FileFormat; 7] = [
        FileFormat::OtlpJsonLines,
        FileFormat::OtlpJson,
        FileFormat::OtlpProtobuf,
        FileFormat::AppDash,
        FileFormat::ZipkinV1Json,
        FileFormat::ZipkinV2Json,
        FileFormat::Jaeger,
    ];

    /// Its name, as `--format` takes it.
    pub fn as_str(self) -> &'static str {
        match self {
            FileFormat::OtlpJsonLines => "otlp-json-lines",
            FileFormat::OtlpJson => "otlp-json",
            FileFormat::OtlpProtobuf => "otlp-protobuf",
            FileFormat::AppDash => "appdash",
            FileFormat::ZipkinV1Json => "zipkin-v1-json",
            FileFormat::ZipkinV2Json => "zipkin-v2-json",
            FileFormat::Jaeger => "jaeger-json",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FileFormat {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        let found = FileFormat::ALL.into_iter().find(|format| format.as_str() == name);
        found.ok_or_else(|| FormatError { what: format!("`{name}`"), looks_like: None })
    }
}

/// Why a file, or the name of a format, is of none that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// The name that was given.
    pub what: String,
    /// What it seems to be, and what to do with that.
    pub looks_like: Option<&'static str>,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: unknown format", self.what)?;
        if let Some(looks_like) = self.looks_like {
            write!(f, "; it looks like {looks_like}")?;
        }
        f.write_str("; known formats: ")?;
        for (index, format) in FileFormat::ALL.into_iter().enumerate() {
            write!(f, "{}{format}", if index > 0 { ", " } else { "" })?;
        }
        // Not of spans, and read by others.
        f.write_str(", perf-data")?;
        ProfileFormat::ALL.into_iter().try_for_each(|format| write!(f, ", {format}"))
    }
}

impl std::error::Error for FormatError {}

/// The format of a file, by its first bytes (some [`HEAD_BYTES`]) and, where these leave a choice, its name.
///
/// # Errors
///
/// The format is unknown; the error guesses what the file is.
pub fn identify(first_bytes: &[u8], name: &str) -> Result<FileFormat, FormatError> {
    guess(first_bytes, name).ok_or_else(|| FormatError { what: name.to_owned(), looks_like: looks_like(first_bytes) })
}

/// The same as an option.
pub fn guess(first_bytes: &[u8], name: &str) -> Option<FileFormat> {
    let name = name.to_ascii_lowercase();
    let text = first_bytes.strip_prefix(document::BYTE_ORDER_MARK).unwrap_or(first_bytes);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        // A newline may also be the first key of protobuf; what follows it there is no bracket but a length.
        Some(b'{' | b'[') if !is_protobuf(first_bytes) => json_format(text, &name),
        _ if is_appdash(first_bytes) => Some(FileFormat::AppDash),
        _ if is_protobuf(first_bytes) || is_framed(first_bytes) => Some(FileFormat::OtlpProtobuf),
        _ => None,
    }
}

/// The first message of gob defines a struct: its length, type id -64 or the like, field 2 of `wireType`.
fn is_appdash(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64)];
    let has = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    has(b"memoryStoreData") || matches!(head, [_, 0x7f, 3, 1, 1, ..])
}

/// `TracesData` begins with a `ResourceSpans`, and that with a resource or a scope's spans.
fn is_protobuf(bytes: &[u8]) -> bool {
    let [0x0a, rest @ ..] = bytes else { return false };
    let length = rest.iter().take(10).position(|byte| *byte < 0x80);
    length.and_then(|length| rest.get(length + 1)).is_some_and(|key| matches!(key, 0x0a | 0x12))
}

/// The same behind a length of four bytes, as the Collector's file exporter writes protobuf.
fn is_framed(bytes: &[u8]) -> bool {
    matches!(bytes, [0, _, _, _, rest @ ..] if is_protobuf(rest))
}

fn json_format(text: &[u8], name: &str) -> Option<FileFormat> {
    let has = |name: &[u8]| text.windows(name.len()).any(|window| window == name);
    let is_list = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let is_otlp = [&b"\"resourceSpans\""[..], b"\"resource_spans\"", b"\"resourceLogs\"", b"\"resourceMetrics\""].into_iter().any(has);
    if is_otlp && !is_list {
        return Some(if is_lines(text, name) { FileFormat::OtlpJsonLines } else { FileFormat::OtlpJson });
    }
    if has(b"\"spanID\"") || has(b"\"traceID\"") || has(b"\"processes\"") {
        return Some(FileFormat::Jaeger);
    }
    if has(b"\"binaryAnnotations\"") {
        return Some(FileFormat::ZipkinV1Json);
    }
    if has(b"\"traceId\"") && has(b"\"id\"") {
        let is_v1 = has(b"\"endpoint\"") && !has(b"\"localEndpoint\"") && !has(b"\"tags\"");
        return Some(if is_v1 { FileFormat::ZipkinV1Json } else { FileFormat::ZipkinV2Json });
    }
    let is_empty_list = text.trim_ascii() == b"[]";
    is_empty_list.then_some(FileFormat::ZipkinV2Json)
}

/// Lines hold a document each; one that goes on after its first line break is a document by itself. A document without
/// any line break is one line.
fn is_lines(text: &[u8], name: &str) -> bool {
    let Some(end) = text.trim_ascii_start().iter().position(|byte| *byte == b'\n') else { return true };
    let first = &text.trim_ascii_start()[..end];
    name.ends_with(".jsonl") || serde_json::from_slice::<serde::de::IgnoredAny>(first).is_ok()
}

/// What a file of gzip begins with: RFC 1952, 2.3.1.
pub const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let has = |text: &[u8]| bytes[..bytes.len().min(4096)].windows(text.len()).any(|window| window == text);
    Some(match () {
        () if bytes.is_empty() => "an empty file",
        () if starts(&GZIP_MAGIC) => "gzip (decompress it first), or a pprof profile",
        () if starts(&[0x28, 0xb5, 0x2f, 0xfd]) => "zstd (decompress it first)",
        () if starts(b"PK\x03\x04") => "a zip archive",
        () if starts(b"PAR1") => "Parquet",
        () if starts(b"\x7fELF") => "a program",
        () if starts(b"SQLite format 3") => "an SQLite database",
        () if has(b"\"resourceProfiles\"") => "OTLP profiles in JSON; longpole reads only those in protobuf",
        () if has(b"\"traceEvents\"") => "a Chrome trace, which longpole only writes",
        () if has(b"speedscope.app") => "a speedscope profile",
        () if has(b"<html") || has(b"<!DOCTYPE") || has(b"<!doctype") => "a web page",
        () if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) => "JSON without spans",
        () if std::str::from_utf8(&bytes[..bytes.len().min(256)]).is_ok() => "plain text",
        () => return None,
    })
}

/// Gives the spans of a file to the sink.
///
/// Where a file is cut off, all whole spans before the cut are given, and the error says where the cut is. In JSON lines a
/// line that cannot be read is counted and left out. Logs and data points in an OTLP file are counted.
///
/// # Errors
///
/// The input cannot be read, breaks off, is not in the format, or exceeds the limits; with the offset in bytes.
pub fn decode(input: impl Read, format: FileFormat, limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), FileError> {
    let mut sink = Counting { sink, spans: 0 };
    match format {
        FileFormat::OtlpJsonLines => lines::decode(input, limits, &mut sink),
        FileFormat::OtlpProtobuf => messages::decode(input, limits, &mut sink),
        FileFormat::AppDash => appdash::decode_file(input, limits, &mut sink),
        FileFormat::OtlpJson => document::decode(input, limits, &mut sink, |_| OTLP_SPANS_DEPTH, otlp::json::decode),
        FileFormat::ZipkinV1Json | FileFormat::ZipkinV2Json => {
            let read = |bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink| {
                let zipkin_spans_max = limits.zipkin_spans_max.max(bytes.len() / ZIPKIN_FILE_BYTES_A_SPAN);
                zipkin::decode(bytes, zipkin::Format::V2Json, &Limits { zipkin_spans_max, ..*limits }, sink)
            };
            document::decode(input, limits, &mut sink, zipkin_spans_depth, read)
        }
        FileFormat::Jaeger => document::decode(input, limits, &mut sink, jaeger_spans_depth, jaeger::decode),
    }
}

/// Brackets around a span in `{"resourceSpans":[{"scopeSpans":[{"spans":[`.
const OTLP_SPANS_DEPTH: usize = 6;

/// Brackets around a span in a list, or in a list of lists.
fn zipkin_spans_depth(text: &[u8]) -> usize {
    text.iter().filter(|byte| !byte.is_ascii_whitespace()).take_while(|byte| **byte == b'[').count()
}

/// Brackets around a span in `{"data":[{"spans":[`, `[{"spans":[` or `{"spans":[`.
fn jaeger_spans_depth(text: &[u8]) -> usize {
    let at = |name: &[u8]| text[..text.len().min(HEAD_BYTES)].windows(name.len()).position(|window| window == name);
    if text.first() == Some(&b'[') {
        return 3;
    }
    match (at(b"\"data\""), at(b"\"spans\"")) {
        (Some(data), Some(spans)) if data < spans => 4,
        _ => 2,
    }
}

/// Counts what it hands on.
struct Counting<'s> {
    sink: &'s mut dyn SpanSink,
    spans: u64,
}

impl SpanSink for Counting<'_> {
    fn resource(&mut self, resource: Resource) {
        self.sink.resource(resource);
    }

    fn shared_resource(&mut self, resource: &Arc<Resource>) {
        self.sink.shared_resource(resource);
    }

    fn scope(&mut self, scope: Scope) {
        self.sink.scope(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        self.spans += 1;
        self.sink.span(span);
    }

    fn loss(&mut self, loss: Loss) {
        self.sink.loss(loss);
    }
}

#[cfg(test)]
mod tests;
