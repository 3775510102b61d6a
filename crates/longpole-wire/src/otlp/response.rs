//! What a receiver answers: the export response of each signal, and `google.rpc.Status` for HTTP errors. And what an
//! endpoint answers us: what it rejected, and when it wants the request again.

use std::time::Duration;

use serde_json::json;

use crate::base64;
use crate::error::DecodeError;
use crate::protobuf::{Reader, Value, put_bytes, put_integer, put_message};

/// The encoding of a request, which its answer shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`, and gRPC.
    Protobuf,
    /// `application/json`.
    Json,
}

/// What a request exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Data points.
    Metrics,
    /// Log records.
    Logs,
    /// Profiles.
    Profiles,
}

/// What was not kept of a request that was accepted otherwise. With nothing rejected it is a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialSuccess<'a> {
    /// Spans, data points, log records or profiles. The client must not send them again.
    pub rejected: u64,
    /// Why, for people.
    pub message: &'a str,
}

/// `ExportTraceServiceResponse`, or that of another signal. Without a partial success, which means "all accepted", it
/// is empty.
pub fn encode_response(signal: Signal, partial: Option<PartialSuccess<'_>>, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => {
            let mut out = Vec::new();
            if let Some(partial) = partial {
                put_message(&mut out, 1, |out| {
                    put_integer(out, 1, partial.rejected);
                    put_bytes(out, 2, partial.message.as_bytes());
                });
            }
            out
        }
        Encoding::Json => match partial {
            None => b"{}".to_vec(),
            Some(partial) => {
                let rejected = match signal {
                    Signal::Traces => "rejectedSpans",
                    Signal::Metrics => "rejectedDataPoints",
                    Signal::Logs => "rejectedLogRecords",
                    Signal::Profiles => "rejectedProfiles",
                };
                // 64-bit integers are texts in proto3's JSON.
                let partial = json!({ rejected: partial.rejected.to_string(), "errorMessage": partial.message });
                json!({ "partialSuccess": partial }).to_string().into_bytes()
            }
        },
    }
}

/// `google.rpc.Status`, the body of an answer that is not a success. The code is gRPC's: 3 for `INVALID_ARGUMENT`.
pub fn encode_status(code: i32, message: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => {
            let mut out = Vec::new();
            // A negative int32 is sign-extended to ten bytes.
            put_integer(&mut out, 1, i64::from(code) as u64);
            put_bytes(&mut out, 2, message.as_bytes());
            out
        }
        Encoding::Json => json!({ "code": code, "message": message }).to_string().into_bytes(),
    }
}

/// What an endpoint did not take of a request that it accepted otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Spans, data points or log records. They must not be sent again.
    pub count: u64,
    /// Why, for people.
    pub message: String,
}

/// Reads the answer to a request that was accepted. `None` where all of it was taken, and where the answer is no such
/// message: an endpoint that answers nonsense has said by its status that it succeeded.
pub fn decode_response(bytes: &[u8], encoding: Encoding) -> Option<Rejected> {
    match encoding {
        Encoding::Protobuf => partial_success(Reader::new(bytes)).ok()?,
        Encoding::Json => {
            let answer: serde_json::Value = serde_json::from_slice(bytes).ok()?;
            let either = |object: &serde_json::Value, camel: &str, snake: &str| object.get(camel).or(object.get(snake)).cloned();
            let partial = either(&answer, "partialSuccess", "partial_success").filter(|partial| !partial.is_null())?;
            let count = either(&partial, "rejectedSpans", "rejected_spans")
                .or_else(|| either(&partial, "rejectedDataPoints", "rejected_data_points"))
                .or_else(|| either(&partial, "rejectedLogRecords", "rejected_log_records"))
                .and_then(|count| count.as_u64().or_else(|| count.as_str()?.parse().ok()));
            let message = either(&partial, "errorMessage", "error_message").and_then(|message| message.as_str().map(str::to_owned));
            Some(Rejected { count: count.unwrap_or(0), message: message.unwrap_or_default() })
        }
    }
}

fn partial_success(mut reader: Reader<'_>) -> Result<Option<Rejected>, DecodeError> {
    let mut found = None;
    while let Some(field) = reader.next()? {
        let (1, Value::Bytes(mut inner)) = (field.number, field.value) else { continue };
        let rejected = found.get_or_insert(Rejected { count: 0, message: String::new() });
        while let Some(field) = inner.next()? {
            match (field.number, field.value) {
                // Signed on the wire; fewer than none is none.
                (1, Value::Varint(count)) => rejected.count = u64::try_from(count as i64).unwrap_or(0),
                (2, Value::Bytes(text)) => rejected.message = String::from_utf8_lossy(text.bytes()).into_owned(),
                _ => {}
            }
        }
    }
    Ok(found)
}

/// The pause that a gRPC endpoint asks for: `google.rpc.RetryInfo` in the header `grpc-status-details-bin`, which is a
/// `google.rpc.Status` in base64. `None` where there is none; a `RetryInfo` that does not say how long is a pause of zero.
pub fn decode_retry_delay(details: &str) -> Option<Duration> {
    let bytes = base64::decode(details.trim())?;
    retry_delay(Reader::new(&bytes)).ok()?
}

/// What [`decode_retry_delay`] reads: a status that asks for a pause. gRPC wants it without padding.
pub fn encode_retry_delay(code: i32, message: &str, secs: u64) -> String {
    let mut status = encode_status(code, message, Encoding::Protobuf);
    put_message(&mut status, 3, |any| {
        put_bytes(any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        put_message(any, 2, |info| put_message(info, 1, |delay| put_integer(delay, 1, secs)));
    });
    base64::encode(&status).trim_end_matches('=').to_owned()
}

fn retry_delay(mut status: Reader<'_>) -> Result<Option<Duration>, DecodeError> {
    let mut delay = None;
    while let Some(field) = status.next()? {
        // Field 3 of a Status is a list of Any: 1 the name of a type, 2 the bytes of a message of it.
        let (3, Value::Bytes(mut any)) = (field.number, field.value) else { continue };
        let (mut name, mut message) = (&b""[..], None);
        while let Some(field) = any.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(text)) => name = text.bytes(),
                (2, Value::Bytes(inner)) => message = Some(inner),
                _ => {}
            }
        }
        if !name.ends_with(b"google.rpc.RetryInfo") {
            continue;
        }
        let mut found = Duration::ZERO;
        while let Some(field) = message.as_mut().map_or(Ok(None), Reader::next)? {
            let (1, Value::Bytes(mut duration)) = (field.number, field.value) else { continue };
            while let Some(field) = duration.next()? {
                match (field.number, field.value) {
                    (1, Value::Varint(secs)) => found += Duration::from_secs(u64::try_from(secs as i64).unwrap_or(0).min(RETRY_SECS_MAX)),
                    (2, Value::Varint(nanos)) => found += Duration::from_nanos((nanos as i64).clamp(0, 999_999_999).unsigned_abs()),
                    _ => {}
                }
            }
        }
        delay = Some(found);
    }
    Ok(delay)
}

/// Longer pauses that an endpoint asks for are as good as this one: nobody waits a day for it.
const RETRY_SECS_MAX: u64 = 24 * 60 * 60;
