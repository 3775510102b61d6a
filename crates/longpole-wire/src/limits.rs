//! Every maximum a decoder obeys, with its reason. The size of a request is limited before, by the server.

/// Attribute values inside each other: a value that is not a list has depth 1, a list of texts has depth 2.
///
/// Instrumentation nests once or twice. The limit keeps the stack of the recursive walk small (about 10 KiB at 32) and is
/// below serde_json's own limit of 128 brackets, so that both encodings refuse the same trees. The OpenTelemetry
/// Collector has no such limit of its own; its protobuf library stops at 10,000.
pub const NESTING_MAX: u32 = 32;

/// Messages (attributes, events, links, elements of lists) inside one span, resource or scope.
///
/// SDKs keep 128 attributes, events and links of a span unless told otherwise. This is 1,000 times that, and bounds the
/// scratch memory of one span to 50 MB, because two bytes of input can ask for an attribute of 48 bytes.
pub const VALUES_MAX: u32 = 1 << 20;

/// Groups inside each other in unknown fields. OTLP has no groups; the walk over them must still end.
pub const GROUP_NESTING_MAX: u32 = 32;

/// Structs, lists and maps inside each other in fields of a Thrift span that nobody knows. Zipkin's own nest three deep.
pub const THRIFT_NESTING_MAX: usize = 32;

/// One AppDash packet, and one value in an AppDash file: 64 MiB.
///
/// The reference server drops a connection at 1 MiB, which payload logs of real deployments exceed; gRPC lets a payload be
/// 400 MB. What is larger is skipped and counted: nothing of a payload is kept but a few names at its start.
pub const PACKET_BYTES_MAX: usize = 64 << 20;

/// Annotations of AppDash spans of one connection that are still waiting for their times: 64 MiB, for the reason above.
/// Clients send all packets of a span in a row, so that one span waits at a time.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// A JSON document, or a line of a file of JSON lines, which is held in memory as a whole: 1 GiB.
///
/// The largest single documents people have are Jaeger's downloads of one trace, some 100 MB. Lines are what one export
/// request held, a few MB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 30;

/// The maxima of a decoder that a caller may set lower, in tests above all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// See [`NESTING_MAX`].
    pub nesting_max: u32,
    /// See [`VALUES_MAX`].
    pub values_max: u32,
    /// See [`PACKET_BYTES_MAX`].
    pub packet_bytes_max: usize,
    /// See [`DOCUMENT_BYTES_MAX`].
    pub document_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            nesting_max: NESTING_MAX,
            values_max: VALUES_MAX,
            packet_bytes_max: PACKET_BYTES_MAX,
            document_bytes_max: DOCUMENT_BYTES_MAX,
        }
    }
}
