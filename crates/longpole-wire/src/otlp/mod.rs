//! The OpenTelemetry protocol: trace requests in and out, logs of spans in, answers out, other signals counted.

mod common;
mod count;
pub mod json;
mod json_encode;
pub mod logs;
pub mod response;
mod schema;
pub mod trace;

pub use crate::emitter::fits as is_whole_in_otlp;
pub use count::{count_logs, count_metrics};
pub use response::{
    Encoding, PartialSuccess, Rejected, Signal, decode_response, decode_retry_delay, encode_response, encode_retry_delay, encode_status,
};
pub use trace::{encode as encode_trace, encode_span_event};
