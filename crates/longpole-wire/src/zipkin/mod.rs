//! Zipkin: v1 in thrift and JSON, v2 in JSON and protobuf, in; JSON of both out.
//!
//! ```text
//! thrift ──► thrift.rs ──┐
//! JSON   ──► json.rs ────┼─► Raw ──► raw.rs: one span, or the two halves of a shared one ──► sink
//! protobuf ► protobuf.rs ┘
//! spans  ──► encode.rs ──► v2 JSON, and what it cannot hold ──► encode_v1.rs ──► v1 JSON
//! ```
//!
//! Both versions of JSON are read by the same reader, span by span, because Pulumi's Node programs post v2 spans to the
//! v1 path.

mod encode;
mod encode_v1;
mod json;
mod protobuf;
mod raw;
mod thrift;

use longpole_model::sink::SpanSink;

use crate::convert::{Deliver, Losses};
use crate::error::DecodeError;
use crate::limits::Limits;

pub use encode::encode_v2_json;
pub use encode_v1::v1_json_of_v2;

/// Name of the scope of spans that came by this channel.
pub const SCOPE: &str = "zipkin";

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A thrift list in the binary protocol, without an envelope.
    V1Thrift,
    /// A JSON list with `binaryAnnotations`.
    V1Json,
    /// A JSON list with `tags`.
    V2Json,
    /// `zipkin.proto3.ListOfSpans`.
    V2Protobuf,
}

impl Format {
    /// What a request carries, by its content type, and by its path and first bytes where that does not say.
    pub fn of_request(path: &str, content_type: Option<&str>, body: &[u8]) -> Format {
        let is_v1 = path.contains("api/v1/spans");
        let media_type = content_type.and_then(|text| text.split(';').next()).map(str::trim).unwrap_or_default();
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        if is("application/x-thrift") || is("application/vnd.apache.thrift.binary") {
            return Format::V1Thrift;
        }
        if is("application/x-protobuf") || is("application/protobuf") {
            return Format::V2Protobuf;
        }
        if is("application/json") {
            return json_version(body, is_v1);
        }
        // A newline before JSON is the same byte as the first key of protobuf; a length follows that, a bracket the other.
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[' | b'{') if !is_protobuf(body) => json_version(body, is_v1),
            _ if body.first() == Some(&TYPE_STRUCT) => Format::V1Thrift,
            _ if body.first() == Some(&KEY_OF_SPANS) => Format::V2Protobuf,
            _ => json_version(body, is_v1),
        }
    }
}

/// First byte of a thrift list of structs.
const TYPE_STRUCT: u8 = 0x0c;
/// First byte of a `ListOfSpans`: field 1, with a length.
const KEY_OF_SPANS: u8 = 0x0a;

/// How much of a body tells its version: some spans of the usual size.
const VERSION_BYTES: usize = 64 << 10;

fn is_protobuf(body: &[u8]) -> bool {
    // A span is longer than its two ids, and its first field has one of the numbers 1 to 13.
    matches!(body, [KEY_OF_SPANS, length, key, ..] if *length > 26 && matches!(key, 0x0a | 0x12 | 0x1a))
}

/// Only a hint: both are read by the same reader.
fn json_version(body: &[u8], is_v1: bool) -> Format {
    let head = &body[..body.len().min(VERSION_BYTES)];
    let has = |name: &[u8]| head.windows(name.len()).any(|window| window == name);
    if has(b"\"binaryAnnotations\"") {
        Format::V1Json
    } else if has(b"\"localEndpoint\"") || has(b"\"remoteEndpoint\"") || has(b"\"kind\"") || has(b"\"tags\"") {
        Format::V2Json
    } else if is_v1 || has(b"\"endpoint\"") {
        Format::V1Json
    } else {
        Format::V2Json
    }
}

/// Gives the spans of a body to the sink.
///
/// On an error the sink was not called: a body is taken whole or not at all. Inside a good body,
///
/// - a span without a valid trace or span id is left out and counted, as is a parent id that is no id;
/// - a span that shares its id with the span of its caller gets an id of its own, derived from it, and the caller's as its
///   parent; the attribute `zipkin.shared` says so;
/// - a span without a duration ends where it starts and is marked (`longpole.unfinished`), a time that OTLP cannot spell is
///   moved and marked (`longpole.time_clamped`);
/// - bodies of Pulumi's payload logs are left out, see [`pulumi_payload`](crate::pulumi_payload).
///
/// # Errors
///
/// The body is not well formed in its format, or exceeds the limits.
pub fn decode(bytes: &[u8], format: Format, limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    let mut losses = Losses::default();
    let raws = match format {
        Format::V1Thrift => thrift::read(bytes, limits, &mut losses)?,
        Format::V1Json | Format::V2Json => json::read(bytes, limits)?,
        Format::V2Protobuf => protobuf::read(bytes, limits, &mut losses)?,
    };
    let mut deliver = Deliver::default();
    for raw in raws {
        for half in raw.halves() {
            if let Some(span) = half.build(limits, &mut losses) {
                deliver.span(&span, sink);
            }
        }
    }
    losses.report(sink);
    Ok(())
}

#[cfg(test)]
mod tests;
