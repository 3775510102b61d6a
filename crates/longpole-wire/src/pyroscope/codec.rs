//! The two encodings of messages that the Connect protocol names.

/// How a message is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// `application/proto`, `application/connect+proto`, and gRPC.
    Protobuf,
    /// `application/json`, `application/connect+json`: 64-bit integers are texts, bytes base64.
    Json,
}
