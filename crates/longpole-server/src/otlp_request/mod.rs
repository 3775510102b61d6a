//! A request of OpenTelemetry on its way through: what the doors in and the doors out both know of it.

use bytes::Bytes;
pub use longpole_wire::otlp::{Encoding, Signal};

mod compression;
pub(crate) mod grpc;
pub(crate) mod grpc_call;

pub(crate) use compression::{Compression, InflateError, compress, inflate, inflate_up_to};

/// Bytes of a message to a client. Many of them may wait to be read, and none needs to repeat a whole request.
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// A message to a client, cut if it quotes more of the request than helps.
pub(crate) fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

/// The door through which a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CameBy {
    Grpc,
    Http,
    /// Not as OTLP: converted spans, and longpole's own.
    Other,
}

/// A request to hand on, exactly as it was received; what was received in another format, as OTLP.
#[derive(Debug, Clone)]
pub(crate) struct Parcel {
    pub(crate) signal: Signal,
    pub(crate) encoding: Encoding,
    pub(crate) compression: Compression,
    pub(crate) came_by: CameBy,
    pub(crate) body: Bytes,
    /// Spans, data points or log records in it.
    pub(crate) items: u64,
}

impl Parcel {
    /// Spans that did not come as OTLP.
    pub(crate) fn converted(body: Bytes, spans: u64) -> Self {
        Parcel {
            signal: Signal::Traces,
            encoding: Encoding::Protobuf,
            compression: Compression::Identity,
            came_by: CameBy::Other,
            body,
            items: spans,
        }
    }
}
