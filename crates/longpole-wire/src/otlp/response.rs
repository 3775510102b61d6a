//! What a receiver answers: the export response of each signal, and `google.rpc.Status` for HTTP errors.

use serde_json::json;

use crate::protobuf::{put_bytes, put_integer, put_message};

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
}

/// What was not kept of a request that was accepted otherwise. With nothing rejected it is a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialSuccess<'a> {
    /// Spans, data points or log records. The client must not send them again.
    pub rejected: u64,
    /// Why, for people.
    pub message: &'a str,
}

/// `ExportTraceServiceResponse`, or that of another signal. Without a partial success, which is how "all accepted" is to
/// be said, it is empty.
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
