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

/// The maxima of a decoder that a caller may set lower, in tests above all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// See [`NESTING_MAX`].
    pub nesting_max: u32,
    /// See [`VALUES_MAX`].
    pub values_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { nesting_max: NESTING_MAX, values_max: VALUES_MAX }
    }
}
