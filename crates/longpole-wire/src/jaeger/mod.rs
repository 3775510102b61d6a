//! Jaeger: its JSON and protobuf, in and out; the thrift of its clients, in.
//!
//! ```text
//! JSON of UI and query API ──► json.rs ─────────────────────┐
//! HTTP, thrift in binary ────┐                              │
//! UDP, thrift in compact ────┼► thrift.rs ──┐               ├─► RawSpan ──► raw.rs ──► sink
//! UDP, thrift in binary ─────┘              ├► walk.rs ─────┘
//! gRPC, protobuf ────────────► protobuf.rs ─┘
//!
//! spans ──► outgoing.rs ─┬─► json_encode.rs ──► JSON, and what it cannot hold
//!                        └─► protobuf_encode.rs
//! ```
//!
//! All of them map to the same spans. The first `CHILD_OF` in the same trace is the parent; every other reference is a link. A link that is
//! `CHILD_OF` says so by the attribute `opentracing.ref_type`.

mod json;
mod json_encode;
mod outgoing;
mod protobuf;
mod protobuf_encode;
mod raw;
mod thrift;
mod walk;

pub use json::{decode, trace_id};
pub use json_encode::{TraceError, encode, encode_answer};
pub use protobuf::decode_post_spans;
pub use protobuf_encode::encode_spans;
pub use thrift::{AgentBatch, ClientStats, decode_agent_packet, decode_thrift};

/// Name of the scope of spans that came by this channel.
pub const SCOPE: &str = "jaeger";

/// References of these names.
const CHILD_OF: &str = "CHILD_OF";
const FOLLOWS_FROM: &str = "FOLLOWS_FROM";

/// Attribute of a link that is of another kind than `FOLLOWS_FROM`.
const REF_TYPE: &str = "opentracing.ref_type";
/// Attribute of a span that Jaeger warns about.
const WARNINGS: &str = "jaeger.warnings";

#[cfg(test)]
mod tests;
