//! Foreign bytes to and from the longpole model.
//!
//! You bring the bytes of a request body or of a header, and a [`SpanSink`](longpole_model::SpanSink) that takes what is
//! in them. Nothing here opens a socket, decompresses or knows HTTP; that is `longpole-server`. Nothing here keeps data;
//! that is `longpole-store`.
//!
//! | door | protobuf | JSON |
//! |---|---|---|
//! | traces in | [`otlp::trace::decode`] | [`otlp::json::decode`] |
//! | traces out | [`otlp::trace::encode`] | |
//! | metrics, logs: how many | [`otlp::count_metrics`], [`otlp::count_logs`] | the same |
//! | answers out | [`otlp::response`] | the same |
//! | W3C `traceparent` | [`traceparent`] | |
//!
//! What holds for every decoder: it never panics, it returns in time linear in its input, it allocates no more than a
//! constant times its input, and it calls the sink only after the whole request is known to be well formed, so an error
//! leaves nothing half taken. What is well formed and still cannot be kept (a span without an id, a text that is not
//! UTF-8) is a [`Loss`](longpole_model::Loss) and not an error.
//!
//! It is fast because it does not build the messages: a scanner walks the bytes and lends texts to the sink where they
//! lie. The generated messages of `opentelemetry-proto` are the oracle of the tests, and linked by nothing else.

#![forbid(unsafe_code)]

pub mod appdash;
mod base64;
pub mod chrome_trace;
pub mod error;
pub mod file;
pub mod foreign;
pub mod jaeger;
mod json;
pub mod limits;
pub mod otlp;
mod plain;
mod protobuf;
pub mod pulumi_event;
pub mod pulumi_payload;
pub mod redact;
mod rfc3339;
pub mod traceparent;
pub mod zipkin;

pub use error::{DecodeError, FileError, Problem};
pub use limits::Limits;
pub use traceparent::TraceParent;
