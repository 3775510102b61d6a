//! What the server's doors take goes into its store.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use longpole_model::{ResourceEvent, Span, SpanBatch, SpanEvent, SpanId, TraceId};
use longpole_store::live::{Appended, LiveStore, Request, log_event, set_apart};
use longpole_store::{BodyEncoding, RequestHead, WalError};
use longpole_wire::{Limits, otlp};
use tokio::sync::oneshot;

use super::metrics::Metrics;
use super::server_state::ServerState;
use crate::api::causes;
use crate::receive::{Durable, Encoding, MemoryAccount, ReceivedSink, ReceivedSinkError};
use crate::wall_clock::now;

/// Writes requests to the store.
pub(super) struct LiveSink {
    pub(super) store: LiveStore,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    pub(super) memory: Arc<MemoryAccount>,
    pub(super) state: Arc<ServerState>,
    /// The request that each ingester thread serves.
    pub(super) requests: HashMap<ThreadId, Taken>,
}

/// What was taken of a request.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Where it was appended.
    appended: Option<Appended>,
    /// Its log records of spans, which are appended together.
    records: Vec<Span>,
}

/// The spans of a request that the log holds. What could not be kept of them was counted when it came.
pub(super) fn decode(encoding: BodyEncoding, body: &[u8], limits: &Limits) -> SpanBatch {
    let mut batch = SpanBatch::default();
    let _ = match encoding {
        BodyEncoding::Protobuf => otlp::trace::decode(body, limits, &mut batch),
        BodyEncoding::Json => otlp::json::decode(body, limits, &mut batch),
    };
    batch
}

fn body_encoding(encoding: Encoding) -> BodyEncoding {
    match encoding {
        Encoding::Protobuf => BodyEncoding::Protobuf,
        Encoding::Json => BodyEncoding::Json,
    }
}

impl LiveSink {
    /// The request that this thread serves.
    fn request(&mut self) -> &mut Taken {
        self.requests.entry(thread::current().id()).or_default()
    }

    fn append(&mut self, encoding: BodyEncoding, body: &[u8], spans: &[Span], peer_pid: Option<u32>) -> Result<(), ReceivedSinkError> {
        let head = RequestHead { encoding, received: now(), peer_pid };
        self.note(self.store.append(&Request { head, body, spans }))
    }

    /// Notes what became of a part of the request that this thread serves.
    fn note(&mut self, appended: Result<Appended, WalError>) -> Result<(), ReceivedSinkError> {
        let appended = appended.map_err(|error| {
            let reason = format!("failed to {}", causes(&error));
            self.metrics.count_failed_append();
            // A frame has an upper size, and no later attempt is smaller.
            if matches!(error, WalError::TooLarge { .. }) {
                return ReceivedSinkError::ForGood(reason);
            }
            self.state.note_failed_append(&reason);
            ReceivedSinkError::ForNow(reason)
        })?;
        self.memory.note_store(self.store.memory_bytes());
        // A request in another format comes in several parts.
        let request = self.request();
        request.appended = Some(request.appended.map_or(appended, |before| before.and(appended)));
        Ok(())
    }
}

impl ReceivedSink for LiveSink {
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), ReceivedSinkError> {
        let spans = decode(body_encoding(encoding), bytes, &self.limits).spans;
        self.decoded_traces(bytes, encoding, spans, peer_pid)
    }

    fn wants_spans(&self) -> bool {
        true
    }

    fn decoded_traces(
        &mut self,
        bytes: &[u8],
        encoding: Encoding,
        mut spans: Vec<Span>,
        peer_pid: Option<u32>,
    ) -> Result<(), ReceivedSinkError> {
        // A client cannot send what the store takes for its own.
        let renamed = spans.iter_mut().map(set_apart).filter(|is_renamed| *is_renamed).count();
        if renamed > 0 {
            self.append(BodyEncoding::Protobuf, &otlp::encode_trace(&spans), &spans, peer_pid)?;
        } else {
            self.append(body_encoding(encoding), bytes, &spans, peer_pid)?;
        }
        self.metrics.count_spans(spans.len() as u64, bytes.len() as u64);
        Ok(())
    }

    fn wants_listeners(&self) -> bool {
        false
    }

    fn resource_event(&mut self, _: ResourceEvent) -> Result<(), ReceivedSinkError> {
        Err(ReceivedSinkError::ForGood("a server keeps no events of Pulumi's engine: send them to `longpole run`".to_owned()))
    }

    fn listens(&mut self, _: u32, _: SocketAddr) -> Result<(), ReceivedSinkError> {
        Ok(())
    }

    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), ReceivedSinkError> {
        self.request().records.push(log_event(trace_id, span_id, event));
        Ok(())
    }

    fn profile_store(&self) -> Option<LiveStore> {
        Some(self.store.clone())
    }

    fn kept_profiles(&mut self, values: u64, appended: Result<Appended, WalError>) -> Result<(), ReceivedSinkError> {
        // Nothing is wrong with the disk.
        if let Err(error @ WalError::SeriesFull { .. }) = &appended {
            return Err(ReceivedSinkError::ForNow(error.to_string()));
        }
        self.note(appended)?;
        self.metrics.count_profile_values(values);
        Ok(())
    }

    fn durable(&mut self) -> Option<Durable> {
        let records = std::mem::take(&mut self.requests.get_mut(&thread::current().id())?.records);
        let (send, receive) = oneshot::channel();
        if !records.is_empty() {
            let body = otlp::encode_trace(&records);
            if let Err(error) = self.append(BodyEncoding::Protobuf, &body, &records, None) {
                let _ = send.send(Err(error));
                return Some(receive);
            }
            self.metrics.count_log_records(records.len() as u64, body.len() as u64);
        }
        let appended = self.requests.remove(&thread::current().id())?.appended?;
        let state = Arc::clone(&self.state);
        self.store.when_durable(
            appended,
            Box::new(move |synced| {
                if let Err(reason) = &synced {
                    state.note_failed_append(reason);
                }
                // A client that has hung up waits for nothing.
                let _ = send.send(synced.map_err(ReceivedSinkError::ForNow));
            }),
        );
        Some(receive)
    }
}
