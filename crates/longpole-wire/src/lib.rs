//! Foreign bytes to and from the longpole model.
//!
//! You bring the bytes of a request body or of a header, and a [`SpanSink`](longpole_model::SpanSink) that takes what is
//! in them. Nothing here opens a socket, decompresses or knows HTTP; that is `longpole-server`. Nothing here keeps data;
//! that is `longpole-store`.
//!
//! | door | in | out |
//! |---|---|---|
//! | OTLP traces, protobuf | [`otlp::trace::decode`] | [`otlp::trace::encode`] |
//! | OTLP traces, JSON | [`otlp::json::decode`] | [`otlp::json::encode`] |
//! | OTLP logs that belong to spans | [`otlp::logs::decode`] | |
//! | OTLP metrics, logs: how many | [`otlp::count_metrics`], [`otlp::count_logs`] | |
//! | OTLP answers | | [`otlp::response`] |
//! | Zipkin v1 thrift, v1 JSON, v2 JSON, v2 protobuf | [`zipkin::decode`] | [`zipkin::encode_v2_json`], [`zipkin::v1_json_of_v2`] |
//! | AppDash over TCP | [`appdash::FrameReader`] | [`appdash::encode_frames`] |
//! | AppDash files | [`appdash::decode_file`] | [`appdash::encode_file`] |
//! | Jaeger's queries and sampling over gRPC | [`jaeger_query`] | the same |
//! | Jaeger's JSON | [`jaeger::decode`] | [`jaeger::encode`] |
//! | Jaeger's thrift over HTTP, packets of its agent over UDP | [`jaeger::decode_thrift`], [`jaeger::decode_agent_packet`] | |
//! | Jaeger's protobuf over gRPC | [`jaeger::decode_post_spans`] | |
//! | Chrome traces | | [`chrome_trace::encode`] |
//! | code as pprof, Firefox Profiler's, speedscope's, folded stacks | | [`profile_export::pprof`], [`profile_export::firefox`], [`profile_export::speedscope`], [`profile_export::folded`] |
//! | `perf.data` | [`perf_data::PerfData`] | |
//! | pprof, folded stacks | [`profile_import::decode`] | [`profile_export::pprof_builder::PprofBuilder`], of wall time |
//! | profiles that Pyroscope's SDKs and agents push | [`pyroscope::push`], [`pyroscope::ingest`] | [`pyroscope::push::response`] |
//! | queries of profiles, selectors, flame graphs | [`pyroscope::querier`], [`pyroscope::render`], [`pyroscope::selector`] | the same |
//! | files of any of these | [`file::identify`], [`file::decode`] | |
//! | Pulumi's engine events | [`pulumi_event::parse`] | |
//! | W3C `traceparent` | [`traceparent`] | the same |
//! | dates of HTTP headers | [`http_date`] | |
//!
//! What holds for every decoder: it never panics, it returns in time linear in its input, it allocates no more than a
//! constant times its input, and it calls the sink only after the whole request is known to be well formed, so an error
//! leaves nothing half taken. Files and connections are the exception: what stands before a fault is given. What is well
//! formed and still cannot be kept (a span without an id, a text that is not UTF-8) is a [`Loss`](longpole_model::Loss) and
//! not an error. How foreign spans are read and written stands in `docs/formats/imports.md`.
//!
//! OTLP is fast because its messages are not built: a scanner walks the bytes and lends texts to the sink where they
//! lie. The generated messages of `opentelemetry-proto` are the oracle of the tests, and linked by nothing else.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]
// Tests cast what they chose themselves.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod appdash;
mod attribute_json;
mod base64;
pub mod chrome_trace;
mod convert;
mod emitter;
pub mod error;
pub mod file;
pub mod http_date;
pub mod jaeger;
pub mod jaeger_query;
mod json;
mod json_size;
mod json_writer;
mod leb128;
pub mod limits;
mod number;
pub mod otlp;
pub mod perf_data;
pub mod profile_export;
pub mod profile_import;
mod protobuf;
pub mod pulumi_event;
pub mod pulumi_payload;
pub mod pyroscope;
pub mod redact;
pub mod rfc3339;
mod thrift;
pub mod traceparent;
pub mod zipkin;

pub use error::{DecodeError, FileError, Problem};
pub use json_size::json_bytes;
pub use limits::Limits;
pub use traceparent::TraceParent;
