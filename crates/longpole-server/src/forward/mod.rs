//! Doors out: the user's own endpoints and files get what the command sends, several of them at once.
//!
//! ```text
//! keeper: a request is in the log ─ (twins) ─ send ─┬─ lane: bounded queue ─► http      OTLP (gRPC, HTTP) and Zipkin; retried
//!                                                   ├─ lane: bounded queue ─► appdash   one TCP connection; retried
//!                                                   └─ lane: bounded queue ─► file      OTLP JSON lines, or an AppDash file at the end
//! ```
//!
//! Nothing here is ever waited for by the command: a request that finds its lane's queue full is counted and forgotten,
//! what has to be converted is converted on threads that may block, and the lanes have a thread of their own. What a target
//! did not get is counted in spans (data points, log records), with the reason.

mod appdash;
mod convert;
mod file;
mod http;
mod lane;
mod once;
pub mod target;
#[cfg(test)]
mod tests;
mod tls;
pub(crate) mod twins;

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::limits::FORWARD_TIMEOUT;
use crate::loss_book::LossBook;
use crate::receive::{Compression, Encoding, Signal};
use lane::Lane;

pub use once::{NotSent, send_once};

/// How a target is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardProtocol {
    /// OTLP, `grpc`.
    Grpc,
    /// OTLP, `http/protobuf` and `http/json`: a request goes on in the encoding in which it came, and such an endpoint
    /// reads both.
    Http,
    /// OTLP in the protocol in which the request came, as the program would have sent it; gRPC at port 4317, which is
    /// gRPC's own. What came in no protocol of OTLP goes as HTTP elsewhere.
    AsReceived,
    /// Zipkin over HTTP: v1 JSON where the path says `api/v1/spans`, else v2 JSON.
    Zipkin,
    /// AppDash over TCP.
    AppDash,
    /// A file of OTLP JSON, one request a line.
    OtlpFile,
    /// An AppDash file, as `pulumi --tracing file:` writes it: at the end.
    AppDashFile,
}

/// A target, for one signal.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardTarget {
    /// What it gets.
    pub signal: Signal,
    /// For HTTP the whole URL, `https://collector:4318/v1/traces`; for gRPC scheme and authority, a path is ignored; for
    /// AppDash `tcp://host:port`; for files the path.
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

impl ForwardTarget {
    /// A target for spans, without headers and certificates.
    pub fn traces(protocol: ForwardProtocol, url: impl Into<String>) -> Self {
        ForwardTarget {
            signal: Signal::Traces,
            url: url.into(),
            protocol,
            headers: Vec::new(),
            timeout: FORWARD_TIMEOUT,
            tls: ForwardTls::default(),
        }
    }
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

/// One lane for each target, so that a dead one does not hold up the others.
#[derive(Debug)]
pub(crate) struct Forwarder {
    lanes: Vec<Lane>,
    /// Ends the thread of the lanes when it is dropped.
    _thread: Option<oneshot::Sender<()>>,
}

impl Forwarder {
    /// Starts the lanes. Files are created, nothing is connected before the first request. A target that is named twice is one target.
    ///
    /// # Errors
    ///
    /// Where there is a target and no thread for it.
    pub(crate) fn start(targets: Vec<ForwardTarget>, book: &Arc<LossBook>) -> io::Result<Self> {
        if targets.is_empty() {
            return Ok(Forwarder { lanes: Vec::new(), _thread: None });
        }
        // A thread of their own: an endpoint can keep it busy, and the command's exports must not wait for that.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let lanes = Forwarder::on(&runtime, targets, book).lanes;
        let (thread, dropped) = oneshot::channel::<()>();
        thread::Builder::new().name("longpole-forward".to_owned()).spawn(move || {
            // Nothing is ever sent.
            let _ = runtime.block_on(dropped);
            // What did not end by the deadline is dropped, not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Forwarder { lanes, _thread: Some(thread) })
    }

    /// The same on a runtime that waits for nothing else.
    fn on(runtime: &tokio::runtime::Runtime, targets: Vec<ForwardTarget>, book: &Arc<LossBook>) -> Self {
        let mut different: Vec<ForwardTarget> = Vec::new();
        for target in targets {
            if !different.contains(&target) {
                different.push(target);
            }
        }
        let _inside = runtime.enter();
        let lanes = different.into_iter().map(|target| Lane::start(target, Arc::clone(book))).collect();
        Forwarder { lanes, _thread: None }
    }

    /// Whether somebody wants requests of this signal.
    pub(crate) fn wants(&self, signal: Signal) -> bool {
        self.lanes.iter().any(|lane| lane.signal() == signal)
    }

    /// Queues a request for everybody who wants it. Never waits: what does not fit is counted.
    pub(crate) fn send(&self, parcel: &Parcel) {
        for lane in self.lanes.iter().filter(|lane| lane.signal() == parcel.signal) {
            lane.send(parcel.clone());
        }
    }

    /// Gives what is queued until the deadline, and counts the rest.
    pub(crate) async fn finish(&self, deadline: Instant) {
        // All lanes drain at the same time from the first line on; waiting for one after the other adds nothing.
        self.lanes.iter().for_each(|lane| lane.close(deadline));
        for lane in &self.lanes {
            lane.ended(deadline).await;
        }
    }
}
