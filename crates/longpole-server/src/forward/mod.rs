//! Doors out: the user's own endpoint gets what its programs were diverted from.

mod once;
mod otlp;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::loss_book::LossBook;
use crate::receive::{Compression, Encoding, Signal};
use otlp::Lane;

pub use once::{NotSent, send_once};

/// How an endpoint is spoken to: the values of `OTEL_EXPORTER_OTLP_PROTOCOL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardProtocol {
    /// `grpc`.
    Grpc,
    /// `http/protobuf` and `http/json`: a request goes on in the encoding in which it came, and such an endpoint reads both.
    Http,
}

/// An endpoint of the user, for one signal.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardTarget {
    /// What it gets.
    pub signal: Signal,
    /// For HTTP the whole URL, `https://collector:4318/v1/traces`; for gRPC scheme and authority, a path is ignored.
    pub url: String,
    /// How it is spoken to.
    pub protocol: ForwardProtocol,
    /// Headers to add, values as they are sent (`OTEL_EXPORTER_OTLP_HEADERS` is percent-encoded; this is not).
    pub headers: Vec<(String, String)>,
    /// How long one attempt may take (`OTEL_EXPORTER_OTLP_TIMEOUT`; 10 s where not set).
    pub timeout: Duration,
    /// For `https`.
    pub tls: ForwardTls,
}

/// What the user said about certificates; all PEM.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ForwardTls {
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE`: who may have signed the endpoint's certificate. Without it, whom the system trusts.
    pub certificate: Option<Vec<u8>>,
    /// `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE`.
    pub client_certificate: Option<Vec<u8>>,
    /// `OTEL_EXPORTER_OTLP_CLIENT_KEY`.
    pub client_key: Option<Vec<u8>>,
}

// Headers hold keys of APIs and the TLS part a private key: neither is ever printed.
impl fmt::Debug for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ForwardTarget")
            .field("signal", &self.signal)
            .field("protocol", &self.protocol)
            .field("header_names", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ForwardTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardTls").finish_non_exhaustive()
    }
}

/// A request to hand on, exactly as it was received.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) signal: Signal,
    pub(crate) encoding: Encoding,
    pub(crate) compression: Compression,
    pub(crate) body: Bytes,
}

/// One lane for each signal that has an endpoint, so that a dead one does not hold up the others.
#[derive(Debug)]
pub(crate) struct Forwarder {
    lanes: Vec<(Signal, Lane)>,
}

impl Forwarder {
    /// Starts the lanes on the runtime that this is called in. Nothing is connected before the first request.
    pub(crate) fn start(targets: Vec<ForwardTarget>, book: Arc<LossBook>) -> Self {
        let mut lanes: Vec<(Signal, Lane)> = Vec::new();
        for target in targets {
            lanes.retain(|(signal, _)| *signal != target.signal);
            lanes.push((target.signal, Lane::start(target, Arc::clone(&book))));
        }
        Forwarder { lanes }
    }

    /// Queues a request. Never waits: what does not fit is counted.
    pub(crate) fn send(&self, parcel: Parcel) {
        if let Some((_, lane)) = self.lanes.iter().find(|(signal, _)| *signal == parcel.signal) {
            lane.send(parcel);
        }
    }

    /// Gives what is queued until the deadline, and counts the rest.
    pub(crate) async fn finish(&self, deadline: Instant) {
        // All lanes drain at the same time from the first line on; waiting for one after the other adds nothing.
        self.lanes.iter().for_each(|(_, lane)| lane.close());
        for (_, lane) in &self.lanes {
            lane.ended(deadline).await;
        }
    }
}
