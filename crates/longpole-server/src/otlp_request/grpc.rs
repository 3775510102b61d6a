//! Names and framing of gRPC, for requests that come and for those that go. A message stands behind a flag and its length.

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderName;
use http::header::HeaderValue;
use longpole_wire::otlp::Signal;

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(crate) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
pub(crate) const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(crate) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Flag and length before a message.
pub(crate) const PREFIX_BYTES: usize = 5;

/// Paths of the four services, also used when a request is handed on.
pub(crate) fn path_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Profiles => "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    }
}

/// A gRPC message: the prefix and the bytes.
pub(crate) fn frame(message: &[u8], compressed: bool) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_slice(&prefix(message.len(), compressed));
    framed.put_slice(message);
    framed.freeze()
}

/// What stands before a message of this length.
pub(super) fn prefix(length: usize, compressed: bool) -> [u8; PREFIX_BYTES] {
    // Messages are bounded far below 4 GiB.
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [u8::from(compressed), a, b, c, d]
}

/// Codes of `google.rpc.Status`, which are gRPC's.
pub(crate) mod code {
    pub(crate) const INVALID_ARGUMENT: i32 = 3;
    pub(crate) const DEADLINE_EXCEEDED: i32 = 4;
    pub(crate) const NOT_FOUND: i32 = 5;
    pub(crate) const PERMISSION_DENIED: i32 = 7;
    pub(crate) const UNAUTHENTICATED: i32 = 16;
    pub(crate) const RESOURCE_EXHAUSTED: i32 = 8;
    pub(crate) const UNIMPLEMENTED: i32 = 12;
    pub(crate) const INTERNAL: i32 = 13;
    pub(crate) const UNAVAILABLE: i32 = 14;
}
