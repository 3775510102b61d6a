//! The doors for spans: one loopback port that speaks OTLP over gRPC and HTTP, Zipkin, and the Pulumi engine's event stream,
//! distinguished by content type and path; and one for AppDash, which is not HTTP.
//!
//! ```text
//!            receiver thread (tokio, one thread, I/O only)                     ingest thread (may block)
//!  accept → HTTP/1.1 or h2c ─┬─ otlp_http, otlp_grpc ─┐            ┌──► inflate → check with wire → peer pid → sink
//!         │                  ├─ zipkin ───────────────┼─ queue ────┤          (what is not OTLP becomes OTLP)    │
//!         │                  └─ pulumi_events ────────┤            │                                           ├──► forward
//!         └ appdash ──────────────────────────────────┘            │                                           │
//!                              answer ◄────────────── verdict ◄────┴───────────────────────────────────────────┘
//! ```
//!
//! The ingester is a thread of its own so that a slow disk, a large body or a search through `/proc` delays answers and never
//! the accepting of connections. It works in the order of arrival.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use longpole_model::{Loss, LossKind, Span};
use longpole_recording::loss_counters::LossBook;
use longpole_wire::{Limits, otlp};
use tokio::io::unix::AsyncFd;
use tokio::net::TcpSocket;
use tokio::sync::{Semaphore, oneshot};

use self::accept::Listeners;
use self::allowed_senders::SenderCheck;
use self::body::Bodies;
use self::job::Intake;
use self::request_context::RequestContext;
use crate::forward::{ForwardTarget, Forwarder};
use crate::limits::{BACKLOG, EVENT_STREAMS_MAX, GOODBYE_MAX};
use crate::otlp_request::Parcel;
use crate::peer_process::{CommandProcess, PeerFinder};

mod accept;
mod allowed_senders;
mod answer;
mod appdash;
mod body;
mod connection;
mod connections;
mod heads;
mod ingest;
mod job;
mod otlp_grpc;
mod otlp_http;
mod pulumi;
mod received_sink;
mod redaction;
mod refusal;
mod request_context;
mod routes;
#[cfg(test)]
mod tests;
mod user_quotas;
mod watched_io;
mod zipkin;

pub use self::allowed_senders::AllowedSenders;
pub use self::received_sink::{ReceivedSink, ReceivedSinkError};
pub use crate::otlp_request::{Encoding, Signal};
pub use crate::peer_process::{AskOwner, SocketOwner};

/// What a receiver needs beside the place to keep.
#[derive(Debug, Default)]
pub struct ReceiverOptions {
    /// Targets of the user that get every request of their signal as well.
    pub forward: Vec<ForwardTarget>,
    /// Limits of the decoders; of one AppDash packet, above all.
    pub limits: Limits,
    /// Keep credentials as they came. Requests that go to targets as they were received never change.
    pub keep_credentials: bool,
    /// The processes that may send spans.
    pub senders: AllowedSenders,
    /// Reads the owner of a connection from the kernel; without it the receiver reads the tables of `/proc`, which takes milliseconds.
    pub ask_owner: Option<AskOwner>,
    /// Reads from the kernel how many connections to a port it dropped; without it the receiver does not count them.
    pub count_dropped: Option<CountDropped>,
}

/// Reads how many attempts to connect to a listening socket the kernel has dropped.
pub type CountDropped = fn(BorrowedFd<'_>) -> std::io::Result<u32>;

/// The receiver of a run.
#[derive(Debug)]
pub struct Receiver;

impl Receiver {
    /// Opens two ports on 127.0.0.1 and serves them from a thread of its own. When this returns, connections are accepted.
    ///
    /// Everything that may fail is done before its thread starts. It takes about 0.2 ms.
    pub fn start(options: ReceiverOptions, sink: Box<dyn ReceivedSink>) -> std::io::Result<ReceiverHandle> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listen = || {
            let _of_runtime = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            let listener = socket.listen(BACKLOG)?.into_std()?;
            let address = listener.local_addr()?;
            #[expect(deprecated, reason = "the new constructor is unsafe; a listener of std keeps its descriptor, as that one requires")]
            let listener = AsyncFd::new(listener)?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let ((listener, address), (appdash_listener, appdash_address)) = (listen()?, listen()?);

        let book = Arc::new(LossBook::default());
        let forwarder = Arc::new(Forwarder::start(options.forward, &book)?);
        let command = CommandProcess::default();
        let sender_check = SenderCheck::new(options.senders, options.ask_owner, command.clone());
        let finder = PeerFinder::new(command.clone());
        let run = sender_check.run_id().map(str::to_owned).zip(sender_check.secret());
        let (jobs, queue) = mpsc::channel();
        let (kept_all, ingest_ended) = oneshot::channel();
        thread::Builder::new().name("longpole-keep".to_owned()).spawn({
            let (book, forwarder) = (Arc::clone(&book), Arc::clone(&forwarder));
            move || {
                ingest::ingest_all(queue, sink, finder, (options.limits, options.keep_credentials, run), &book, &forwarder);
                // Nobody listens if the receiver did not want to wait.
                let _ = kept_all.send(());
            }
        })?;

        let (finish, finished) = oneshot::channel();
        let context = RequestContext {
            intake: Intake::new(jobs),
            bodies: Bodies::new(),
            sender_check,
            event_streams: Semaphore::new(EVENT_STREAMS_MAX),
            limits: options.limits,
            keep_credentials: options.keep_credentials,
            book: Arc::clone(&book),
            count_dropped: options.count_dropped,
        };
        let thread = thread::Builder::new().name("longpole-receive".to_owned()).spawn({
            let forwarder = Arc::clone(&forwarder);
            move || {
                let listeners = Listeners { http: listener, appdash: appdash_listener };
                runtime.block_on(serve(listeners, context, &forwarder, finished, ingest_ended));
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
    /// Names the process that is the command of the run, before it runs: the receiver accepts spans of other users from it and its
    /// descendants. `/proc` must number processes as this process does.
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

    /// Whether a target gets copies of spans.
    pub fn forwards_spans(&self) -> bool {
        self.forwarder.wants(Signal::Traces)
    }

    /// Forwards a span of our own to the targets: the run's root, the parent of the others. The log does not get it.
    pub fn forward_span(&self, span: &Span) {
        self.forwarder.send(&Parcel::converted(otlp::encode_trace(std::slice::from_ref(span)).into(), 1));
    }

    /// Ends the reception after the command has ended, and returns what is missing.
    ///
    /// The receiver reads and keeps everything that ended processes have sent: it lies in the buffers of the kernel. A process
    /// that outlives the command delays this only while it is inside a request and goes on sending. Then copies that wait
    /// for the user's own endpoint get the rest of the `deadline`, which covers all of it.
    pub fn finish(self, deadline: Duration) -> Vec<Loss> {
        // An error means that the thread is gone, and then the join says why.
        let _ = self.finish.send(Instant::now() + deadline);
        if self.thread.join().is_err() {
            self.book.add(LossKind::RequestsRefused, 1, "the receiver stopped because of a bug in longpole");
        }
        self.book.take()
    }
}

async fn serve(
    listeners: Listeners,
    context: RequestContext,
    forwarder: &Forwarder,
    finished: oneshot::Receiver<Instant>,
    ingest_ended: oneshot::Receiver<()>,
) {
    let book = Arc::clone(&context.book);
    let context = Arc::new(context);
    let deadline = accept::serve(listeners, Arc::clone(&context), finished).await;
    context.intake.close();
    // The ingester ends when its queue is empty, which takes it a moment even then. A disk that hangs must not hang us.
    let patience = deadline.saturating_duration_since(Instant::now()).max(GOODBYE_MAX);
    // Not on a thread of its own: where there is none for it, the runtime panics.
    if tokio::time::timeout(patience, ingest_ended).await.is_err() {
        book.add(LossKind::DrainTimedOut, 1, "the recording could not be written in time; requests that were not answered are missing");
    }
    forwarder.finish(deadline).await;
}
