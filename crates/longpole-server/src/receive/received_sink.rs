//! The sink for what was received, which the caller brings.

use std::net::SocketAddr;

use longpole_model::{ResourceEvent, Span, SpanEvent, SpanId, TraceId};
use longpole_store::WalError;
use longpole_store::live::{Appended, LiveStore};
use tokio::sync::oneshot;

use crate::otlp_request::Encoding;

/// Keeps what was received. Called from the ingester threads of the receiver, one at a time, in the order of each sender; may block.
pub trait ReceivedSink: Send + 'static {
    /// Keeps one request of spans, decompressed and known to decode. After `Ok` it is acknowledged, so it must survive the
    /// end of this process. `peer_pid` is the process at the other end of the connection, where it is known: it is the process
    /// of spans whose resource does not say one, and of the others it tells whether that process sent them itself.
    ///
    /// Spans that came in another format (Zipkin, AppDash) are given as a request in protobuf; the name of their scope says
    /// which it was.
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), ReceivedSinkError>;

    /// Whether it wants the spans of a request beside its bytes. Then the receiver, which decodes each request to check it, keeps them.
    fn wants_spans(&self) -> bool {
        false
    }

    /// [`traces`](Self::traces), with the spans that decoding these bytes gives, in their order. Called only if it wants spans; the receiver calls
    /// `traces` for what it wrote anew while it was decoded.
    fn decoded_traces(
        &mut self,
        bytes: &[u8],
        encoding: Encoding,
        _spans: Vec<Span>,
        peer_pid: Option<u32>,
    ) -> Result<(), ReceivedSinkError> {
        self.traces(bytes, encoding, peer_pid)
    }

    /// Whether it keeps who listens at addresses that spans call. If not, the receiver does not search for them.
    fn wants_listeners(&self) -> bool {
        true
    }

    /// Keeps one event of Pulumi's engine, reduced to identity: no input, output or secret is in it. Its time is when it came.
    fn resource_event(&mut self, event: ResourceEvent) -> Result<(), ReceivedSinkError>;

    /// Keeps that a process takes connections at an address that a span calls.
    fn listens(&mut self, pid: u32, address: SocketAddr) -> Result<(), ReceivedSinkError>;

    /// Keeps a log record that names a span: an event of it, which may come before the span itself or without it.
    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), ReceivedSinkError>;

    /// Where profiles are kept; `None` if they are counted instead, and Pyroscope's clients have no door. A request of profiles may be large, so any
    /// thread keeps some at any time, and no other request waits for it.
    fn profile_store(&self) -> Option<LiveStore> {
        None
    }

    /// Takes note of profiles that this thread has kept in that store, or failed to keep: of how many values.
    fn kept_profiles(&mut self, _values: u64, appended: Result<Appended, WalError>) -> Result<(), ReceivedSinkError> {
        appended.map(drop).map_err(|error| ReceivedSinkError::ForGood(error.to_string()))
    }

    /// When the request that this thread has just had kept is as durable as the sink promises; `None` if it is already. It is answered then.
    fn durable(&mut self) -> Option<Durable> {
        None
    }
}

/// Comes when something is durable, or with the reason why it cannot become so.
pub type Durable = oneshot::Receiver<Result<(), ReceivedSinkError>>;

/// Why a request could not be kept, as a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceivedSinkError {
    /// A later attempt may succeed (a full disk, say): the client should try again.
    #[error("{0}")]
    ForNow(String),
    /// No later attempt succeeds (the recording has reached its limit): the client should drop it.
    #[error("{0}")]
    ForGood(String),
}
