//! The sink of the receiver: it writes to the write-ahead log what the receiver accepts.

use std::net::SocketAddr;

use longpole_model::{Observation, ResourceEvent, SpanEvent, SpanId, TraceId};
use longpole_server::receive::{Encoding, ReceivedSink, ReceivedSinkError};
use longpole_store::{WalError, WalWriter};
use longpole_wire::otlp;

use super::write_failure::WriteFailure;

/// Writes request bodies to the log, and reports failures.
pub(crate) struct WalSink(pub(crate) WalWriter, pub(crate) WriteFailure);

impl WalSink {
    fn kept(&self, outcome: Result<(), WalError>) -> Result<(), ReceivedSinkError> {
        outcome.map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            self.1.report(&format!("{error}{cause}"));
            let of_limit = matches!(error, WalError::Full { .. });
            if of_limit { ReceivedSinkError::ForGood(error.to_string()) } else { ReceivedSinkError::ForNow(error.to_string()) }
        })
    }
}

impl ReceivedSink for WalSink {
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), ReceivedSinkError> {
        self.kept(match encoding {
            Encoding::Protobuf => self.0.append_otlp_protobuf(peer_pid, bytes),
            Encoding::Json => self.0.append_otlp_json(peer_pid, bytes),
        })
    }

    fn resource_event(&mut self, event: ResourceEvent) -> Result<(), ReceivedSinkError> {
        self.kept(self.0.append_resource_event(&event))
    }

    fn listens(&mut self, pid: u32, address: SocketAddr) -> Result<(), ReceivedSinkError> {
        self.kept(self.0.append_observation(&Observation::ProcessListens { pid, address }))
    }

    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), ReceivedSinkError> {
        self.kept(self.0.append_span_events(&otlp::encode_span_event(trace_id, span_id, event)))
    }
}
