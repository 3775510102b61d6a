//! What the server's doors take goes into its store.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use longpole_model::{LossKind, ResourceEvent, SpanBatch, SpanEvent, SpanId, TraceId};
use longpole_recording::loss_counters::LossBook;
use longpole_store::live::{Appended, LiveStore, Request};
use longpole_store::{BodyEncoding, RequestHead, WalError};
use longpole_wire::{Limits, otlp};
use tokio::sync::oneshot;

use super::metrics::Metrics;
use crate::api::causes;
use crate::receive::{Durable, Encoding, ReceivedSink, ReceivedSinkError};
use crate::wall_clock::now;

/// Writes requests to the store.
pub(super) struct LiveSink {
    pub(super) store: LiveStore,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    pub(super) losses: Arc<LossBook>,
    /// Where the request that each ingester thread serves was appended.
    pub(super) appended: HashMap<ThreadId, Appended>,
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

impl ReceivedSink for LiveSink {
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), ReceivedSinkError> {
        let encoding = match encoding {
            Encoding::Protobuf => BodyEncoding::Protobuf,
            Encoding::Json => BodyEncoding::Json,
        };
        let spans = decode(encoding, bytes, &self.limits).spans;
        let head = RequestHead { encoding, received: now(), peer_pid };
        let appended = self.store.append(&Request { head, body: bytes, spans: &spans });
        let appended = appended.map_err(|error| {
            let reason = format!("failed to {}", causes(&error));
            self.metrics.count_failed_append();
            // A frame has an upper size, and no later attempt is smaller.
            if matches!(error, WalError::TooLarge { .. }) { ReceivedSinkError::ForGood(reason) } else { ReceivedSinkError::ForNow(reason) }
        })?;
        // A request in another format comes in several parts.
        self.appended.entry(thread::current().id()).and_modify(|before| *before = before.and(appended)).or_insert(appended);
        self.metrics.count_spans(spans.len() as u64, bytes.len() as u64);
        Ok(())
    }

    fn resource_event(&mut self, _: ResourceEvent) -> Result<(), ReceivedSinkError> {
        Err(ReceivedSinkError::ForGood("a server keeps no events of Pulumi's engine: send them to `longpole run`".to_owned()))
    }

    fn listens(&mut self, _: u32, _: SocketAddr) -> Result<(), ReceivedSinkError> {
        Ok(())
    }

    fn log_event(&mut self, _: TraceId, _: SpanId, _: SpanEvent) -> Result<(), ReceivedSinkError> {
        self.losses.add(LossKind::OtherSignals, 1, "log records of spans, which `longpole serve` does not keep yet");
        Ok(())
    }

    fn durable(&mut self) -> Option<Durable> {
        let appended = self.appended.remove(&thread::current().id())?;
        let (send, receive) = oneshot::channel();
        self.store.when_durable(
            appended,
            Box::new(move |synced| {
                // A client that has hung up waits for nothing.
                let _ = send.send(synced.map_err(ReceivedSinkError::ForNow));
            }),
        );
        Some(receive)
    }
}
