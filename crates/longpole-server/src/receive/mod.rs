//! The doors for spans: one loopback port that speaks OTLP over gRPC and HTTP, Zipkin, and the Pulumi engine's event stream,
//! told apart by content type and path; and one for AppDash, which is not HTTP.
//!
//! ```text
//!            receiver thread (tokio, one thread, I/O only)                     keeper thread (may block)
//!  accept → HTTP/1.1 or h2c ─┬─ otlp_http, otlp_grpc ─┐            ┌──► inflate → check with wire → peer pid → Keep
//!         │                  ├─ zipkin ───────────────┼─ queue ────┤          (what is not OTLP becomes OTLP)    │
//!         │                  └─ pulumi_events ────────┤            │                                           ├──► forward
//!         └ appdash ──────────────────────────────────┘            │                                           │
//!                              answer ◄────────────── verdict ◄────┴───────────────────────────────────────────┘
//! ```
//!
//! The keeper is a thread of its own so that a slow disk, a large body or a look through `/proc` delays answers and never
//! the accepting of connections. It works in the order of arrival.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use longpole_model::{Loss, LossKind, ResourceEvent, Span, SpanEvent, SpanId, TraceId};
pub use longpole_wire::otlp::{Encoding, Signal};
use longpole_wire::redact::Redactor;
use longpole_wire::{Limits, otlp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::forward::{ForwardTarget, Forwarder, Parcel};
use crate::limits::{EVENT_STREAMS_MAX, GOODBYE_MAX};
use crate::loss_book::LossBook;
pub use crate::peer::{AskOwner, SocketOwner};
use crate::peer::{CommandProcess, PeerFinder};

mod appdash;
mod body;
mod callers;
mod connections;
mod heads;
mod intake;
mod otlp_grpc;
mod otlp_http;
mod pulumi_events;
mod senders;
mod strangers;
#[cfg(test)]
mod tests;
mod watched_io;
mod zipkin;

use body::Bodies;
use connections::{Connection, Keeping, Listeners};
pub(crate) use intake::inflate;
use intake::{Content, Intake, Job, UNPROVEN, Verdict};
use senders::Judge;
pub use senders::Senders;

pub(crate) use otlp_grpc::{
    GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, PREFIX_BYTES as GRPC_PREFIX_BYTES, frame as grpc_frame, path_of as grpc_path_of,
};

/// Keeps what was received. Called from one thread of the receiver, in the order of arrival; may block.
pub trait Keep: Send + 'static {
    /// Keeps one request of spans, decompressed and known to decode. After `Ok` it is acknowledged, so it must survive the
    /// end of this process. `peer_pid` is the process at the other end of the connection, where it is known: it is the process
    /// of spans whose resource does not say one, and of the others it tells whether that process sent them itself.
    ///
    /// Spans that came in another format (Zipkin, AppDash) are given as a request in protobuf; the name of their scope says
    /// which it was.
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), KeepError>;

    /// Keeps one event of Pulumi's engine, reduced to identity: no input, output or secret is in it. Its time is when it came.
    fn resource_event(&mut self, event: ResourceEvent) -> Result<(), KeepError>;

    /// Keeps that a process takes connections at an address that a span calls.
    fn listens(&mut self, pid: u32, address: SocketAddr) -> Result<(), KeepError>;

    /// Keeps a log record that names a span: an event of it, which may come before the span itself or without it.
    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), KeepError>;
}

/// Why a request could not be kept, as a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// A later attempt may succeed (a full disk, say): the client should try again.
    #[error("{0}")]
    ForNow(String),
    /// No later attempt succeeds (the recording has reached its limit): the client should drop it.
    #[error("{0}")]
    ForGood(String),
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Identity,
    Gzip,
    /// Zlib, as HTTP and gRPC mean by "deflate".
    Deflate,
}

impl Compression {
    /// The value of `Content-Encoding` or `grpc-encoding`; `None` where it is not one of ours.
    fn from_header(value: &str) -> Option<Self> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Compression::Identity),
            "gzip" | "x-gzip" => Some(Compression::Gzip),
            "deflate" => Some(Compression::Deflate),
            _ => None,
        }
    }

    /// Its name in either header, `None` where the header is left out.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Compression::Identity => None,
            Compression::Gzip => Some("gzip"),
            Compression::Deflate => Some("deflate"),
        }
    }
}

/// What a receiver needs beside the place to keep.
#[derive(Debug, Default)]
pub struct ReceiverOptions {
    /// Targets of the user that get every request of their signal as well.
    pub forward: Vec<ForwardTarget>,
    /// Limits of the decoders; of one AppDash packet, above all.
    pub limits: Limits,
    /// Keep credentials as they came. What goes to targets as it was received is never changed.
    pub keep_credentials: bool,
    /// From whom spans are taken.
    pub senders: Senders,
    /// Asks the kernel whose a connection is; without it the tables of `/proc` are read, which takes milliseconds.
    pub ask_owner: Option<AskOwner>,
}

/// The receiver of a run.
#[derive(Debug)]
pub struct Receiver;

impl Receiver {
    /// Opens two ports on 127.0.0.1 and serves them from a thread of its own. When this returns, connections are accepted.
    ///
    /// Everything that may fail is done before its thread starts. It takes about 0.2 ms.
    pub fn start(options: ReceiverOptions, keep: Box<dyn Keep>) -> std::io::Result<ReceiverHandle> {
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let ((listener, address), (appdash_listener, appdash_address)) = (listen()?, listen()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

        let book = Arc::new(LossBook::default());
        let forwarder = Arc::new(Forwarder::start(options.forward, &book)?);
        let command = CommandProcess::default();
        let judge = Judge::new(options.senders, options.ask_owner, command.clone());
        let finder = PeerFinder::new(command.clone());
        let run = judge.run_id().map(str::to_owned).zip(judge.secret());
        let (jobs, queue) = mpsc::channel();
        let (kept_all, keeper_ended) = oneshot::channel();
        thread::Builder::new().name("longpole-keep".to_owned()).spawn({
            let (book, forwarder) = (Arc::clone(&book), Arc::clone(&forwarder));
            move || {
                intake::keep_all(queue, keep, finder, (options.limits, options.keep_credentials, run), &book, &forwarder);
                // Nobody listens if the receiver did not want to wait.
                let _ = kept_all.send(());
            }
        })?;

        let (finish, finished) = oneshot::channel();
        let door = Door {
            intake: Intake::new(jobs),
            bodies: Bodies::new(),
            judge,
            event_streams: Semaphore::new(EVENT_STREAMS_MAX),
            limits: options.limits,
            keep_credentials: options.keep_credentials,
            book: Arc::clone(&book),
        };
        let thread = thread::Builder::new().name("longpole-receive".to_owned()).spawn({
            let forwarder = Arc::clone(&forwarder);
            move || {
                runtime.block_on(serve([listener, appdash_listener], door, &forwarder, finished, keeper_ended));
                // Tasks that did not end by the deadline are dropped, not waited for.
                runtime.shutdown_background();
            }
        })?;
        Ok(ReceiverHandle { address, appdash_address, finish, thread, forwarder, book, command })
    }
}

/// A receiver that is running. Dropping it closes the door at once.
#[derive(Debug)]
pub struct ReceiverHandle {
    address: SocketAddr,
    appdash_address: SocketAddr,
    finish: oneshot::Sender<Instant>,
    thread: thread::JoinHandle<()>,
    forwarder: Arc<Forwarder>,
    book: Arc<LossBook>,
    command: CommandProcess,
}

impl ReceiverHandle {
    /// Names the process that is the command of the run, before it runs: spans of other users are taken from it and from its descendants.
    /// `/proc` must count processes as we do.
    pub fn note_command(&self, pid: u32) {
        self.command.note(pid);
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What Pulumi's `--tracing` is to be set to.
    pub fn appdash_endpoint(&self) -> String {
        format!("tcp://{}", self.appdash_address)
    }

    /// What Pulumi's `--event-log` is to be set to: the port of everything else.
    pub fn events_endpoint(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Whether somebody gets copies of spans.
    pub fn forwards_spans(&self) -> bool {
        self.forwarder.wants(Signal::Traces)
    }

    /// Hands a span of our own to whoever gets copies: the run's root, under which theirs stand. It is not kept.
    pub fn forward_span(&self, span: &Span) {
        self.forwarder.send(&Parcel::converted(otlp::encode_trace(std::slice::from_ref(span)).into(), 1));
    }

    /// Ends the reception after the command ended, and says what is missing.
    ///
    /// What processes that are gone have sent is read to its end and kept: it lies in the buffers of the kernel. A process
    /// that outlives the command holds this up only while it is inside a request and goes on sending. Then copies that wait
    /// for the user's own endpoint get the rest of the `deadline`, which holds for everything together.
    pub fn finish(self, deadline: Duration) -> Vec<Loss> {
        // An error means that the thread is gone, and then the join says why.
        let _ = self.finish.send(Instant::now() + deadline);
        if self.thread.join().is_err() {
            self.book.add(LossKind::RequestsRefused, 1, "the receiver stopped by a bug of longpole");
        }
        self.book.take()
    }
}

/// What every request needs.
#[derive(Debug)]
pub(crate) struct Door {
    intake: Intake,
    bodies: Bodies,
    judge: Judge,
    /// Places for event streams.
    event_streams: Semaphore,
    limits: Limits,
    keep_credentials: bool,
    book: Arc<LossBook>,
}

async fn serve(
    listeners: [TcpListener; 2],
    door: Door,
    forwarder: &Forwarder,
    finished: oneshot::Receiver<Instant>,
    keeper_ended: oneshot::Receiver<()>,
) {
    let book = Arc::clone(&door.book);
    let door = Arc::new(door);
    let [http, appdash] = listeners.map(tokio::net::TcpListener::from_std);
    let deadline = match (http, appdash) {
        (Ok(http), Ok(appdash)) => connections::serve(Listeners { http, appdash }, Arc::clone(&door), finished).await,
        (Err(error), _) | (_, Err(error)) => {
            book.add(LossKind::RequestsRefused, 1, format!("cannot serve the port: {error}"));
            return;
        }
    };
    door.intake.close();
    // The keeper ends when its queue is empty, which takes it a moment even then. A disk that hangs must not hang us.
    let patience = deadline.saturating_duration_since(Instant::now()).max(GOODBYE_MAX);
    // Not on a thread of its own: where there is none for it, the runtime panics.
    if tokio::time::timeout(patience, keeper_ended).await.is_err() {
        book.add(LossKind::DrainTimedOut, 1, "the recording could not be written in time; requests that were not answered are missing");
    }
    forwarder.finish(deadline).await;
}

impl Door {
    /// Takes credentials out of spans, unless they are to be kept.
    fn redactor(&self) -> Option<Redactor> {
        (!self.keep_credentials).then(Redactor::default)
    }

    /// Has a request kept, and counts what is refused. Every protocol that answers comes through here.
    async fn take(&self, content: Content, compression: Compression, body: Bytes, connection: &Arc<Connection>) -> Verdict {
        let _keeping = Keeping::of(connection);
        let verdict = self.intake.take(Job { content, compression, body, connection: Arc::clone(connection), _memory: None }).await;
        match &verdict {
            Verdict::Kept { .. } => {}
            Verdict::Undecodable(reason) | Verdict::TooLarge(reason) | Verdict::Unproven(reason) => self.refused_of(connection, reason),
            Verdict::NotKept(reason) => self.refused(&format!("{reason}; the client was told to try again")),
            Verdict::NeverKept(reason) => self.refused(reason),
        }
        verdict
    }

    /// Room for so many bytes in the memory that all bodies share, where there is some.
    fn memory_of(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.bodies.room_now(bytes)
    }

    /// Counts a request of this connection as refused. Of who is gone nothing is known, so nothing that it sent stands in the recording, not
    /// even in the words of an error: whatever is wrong with it, it is one of those.
    fn refused_of(&self, connection: &Connection, reason: &str) {
        self.refused(if connection.sender_is_gone() { UNPROVEN } else { reason });
    }

    fn refused(&self, reason: &str) {
        self.book.add(LossKind::RequestsRefused, 1, reason);
    }
}
