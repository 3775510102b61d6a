//! The doors for spans: ports that speak OTLP over gRPC and HTTP, Zipkin, Jaeger's Thrift and gRPC, and the Pulumi engine's event stream,
//! distinguished by content type and path; and ports for what is not HTTP, AppDash and Jaeger's packets. A run has one of HTTP and one of
//! AppDash, on loopback.
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

use axum::Router;
use longpole_model::{Loss, LossKind, Span};
use longpole_recording::loss_counters::LossBook;
use longpole_wire::{Limits, otlp};
use tokio::net::UdpSocket;
use tokio::sync::{Semaphore, oneshot, watch};

use self::accept::{Listeners, Port};
use self::allowed_senders::SenderCheck;
use self::connection::Speech;
use self::job::Intake;
use self::request_context::RequestContext;
use crate::forward::{ForwardTarget, Forwarder};
use crate::limits::{ANSWER_LOOK_PAUSE, ANSWER_STALL_MAX, EVENT_STREAMS_MAX, GOODBYE_MAX};
use crate::otlp_request::Parcel;
use crate::peer_process::{CommandProcess, PeerFinder};

mod accept;
mod allowed_senders;
mod answer_in_memory;
mod appdash;
mod body;
mod connection;
mod connections;
mod heads;
mod ingest;
mod jaeger_http;
mod jaeger_udp;
mod job;
mod memory;
mod multipart;
mod open_ports;
mod otlp_grpc;
mod otlp_http;
mod plain_text;
mod pulumi;
mod pyroscope;
mod received_sink;
mod redaction;
mod refusal;
mod request_context;
mod request_head;
mod routes;
mod scrape;
mod scraped_profile;
#[cfg(test)]
mod tests;
mod token_refusal;
mod tokens;
mod user_quotas;
mod watched_io;
mod web_pages;
mod zipkin;

pub(crate) use self::accept::IDLE_AT_THE_END;
pub use self::allowed_senders::AllowedSenders;
pub use self::memory::MemoryAccount;
pub use self::open_ports::{ListenError, OpenPorts};
pub use self::received_sink::{Durable, ReceivedSink, ReceivedSinkError};
pub(crate) use self::routes::QueryPlace;
pub use self::scrape::{NotAScrapeTarget, ScrapeTarget, Scrapes};
pub use self::tokens::{AccessTokens, TokensError};
pub use self::web_pages::{AllowedOrigins, NotAnOrigin};
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
    /// Its clients, and its ports.
    pub clients: Clients,
    /// Processes whose profiles it fetches.
    pub scrapes: Scrapes,
    /// Counts what is missing.
    pub losses: Arc<LossBook>,
    /// Counts what is in memory.
    pub memory: Arc<MemoryAccount>,
}

/// A port for HTTP and gRPC.
#[derive(Debug, Clone)]
pub struct HttpPort {
    /// Where it is.
    pub address: SocketAddr,
    /// Answers the requests that carry no spans; without it they are errors.
    pub queries: Option<Router>,
}

/// The clients of a receiver, and its ports.
#[derive(Debug, Default)]
pub enum Clients {
    /// Processes of a run, to two ports of 127.0.0.1 that the kernel chooses: one for HTTP, one for AppDash. The receiver finds the process
    /// of each connection.
    #[default]
    Run,
    /// Anybody, to these addresses.
    Anybody {
        /// Where HTTP and gRPC come.
        http: Vec<HttpPort>,
        /// Where the packets of Jaeger's clients come.
        udp: Vec<SocketAddr>,
        /// Where AppDash comes.
        appdash: Vec<SocketAddr>,
        /// Whether requests may name any host, because other machines send them.
        any_host: bool,
        /// Web pages that may send spans.
        origins: AllowedOrigins,
        /// One of them is needed to send or read; `None` where nobody needs one.
        tokens: Option<AccessTokens>,
    },
}

impl Clients {
    /// Where HTTP, UDP and AppDash come.
    fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>, Vec<SocketAddr>) {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        match self {
            Clients::Run => (vec![any], Vec::new(), vec![any]),
            Clients::Anybody { http, udp, appdash, .. } => (http.iter().map(|port| port.address).collect(), udp.clone(), appdash.clone()),
        }
    }

    /// What answers at each port of HTTP, in their order.
    fn queries(&self) -> Vec<Option<Router>> {
        match self {
            Clients::Run => vec![None],
            Clients::Anybody { http, .. } => http.iter().map(|port| port.queries.clone()).collect(),
        }
    }
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
        let ports = OpenPorts::of(&options.clients)?;
        Receiver::start_at(ports, options, sink)
    }

    /// The same at ports that are open already: those of [`ReceiverOptions::clients`].
    pub fn start_at(ports: OpenPorts, options: ReceiverOptions, sink: Box<dyn ReceivedSink>) -> std::io::Result<ReceiverHandle> {
        let OpenPorts { runtime, http, udp, appdash } = ports;
        let http = http.into_iter().zip(options.clients.queries());
        let http = http.map(|(listener, queries)| Port { listener, speech: Speech::Http, queries });
        let appdash = appdash.into_iter().map(|listener| Port { listener, speech: Speech::AppDash, queries: None });
        let listeners = Listeners(http.chain(appdash).collect());
        let udp_addresses = udp.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let addresses = [listeners.addresses_of(Speech::Http), udp_addresses, listeners.addresses_of(Speech::AppDash)];

        let book = options.losses;
        let forwarder = Arc::new(Forwarder::start(options.forward, &book)?);
        let command = CommandProcess::default();
        let sender_check = SenderCheck::new(options.senders, options.ask_owner, command.clone());
        let finder = PeerFinder::new(command.clone());
        let run = sender_check.run_id().map(str::to_owned).zip(sender_check.secret());
        let (jobs, queue) = mpsc::channel();
        let (kept_all, ingest_ended) = oneshot::channel();
        let takes_profiles = sink.profile_store().is_some();
        thread::Builder::new().name("longpole-keep".to_owned()).spawn({
            let (book, memory, forwarder) = (Arc::clone(&book), Arc::clone(&options.memory), Arc::clone(&forwarder));
            move || {
                ingest::ingest_all(queue, sink, finder, (options.limits, options.keep_credentials, run), (&book, &memory), &forwarder);
                // Nobody listens if the receiver did not want to wait.
                let _ = kept_all.send(());
            }
        })?;

        let (finish, finished) = oneshot::channel();
        let finds_processes = matches!(options.clients, Clients::Run);
        let any_host = matches!(options.clients, Clients::Anybody { any_host: true, .. });
        let (origins, tokens) = match options.clients {
            Clients::Anybody { origins, tokens, .. } => (origins, tokens),
            Clients::Run => (AllowedOrigins::default(), None),
        };
        let context = RequestContext {
            intake: Intake::new(jobs),
            memory: options.memory,
            sender_check,
            event_streams: Semaphore::new(EVENT_STREAMS_MAX),
            limits: options.limits,
            keep_credentials: options.keep_credentials,
            book: Arc::clone(&book),
            count_dropped: options.count_dropped,
            finds_processes,
            takes_profiles,
            any_host,
            origins,
            tokens,
        };
        let thread = thread::Builder::new().name("longpole-receive".to_owned()).spawn({
            let forwarder = Arc::clone(&forwarder);
            move || {
                runtime.block_on(serve(listeners, udp, options.scrapes, context, &forwarder, finished, ingest_ended));
                // Tasks that did not end by the deadline are dropped, not waited for.
                runtime.shutdown_background();
            }
        })?;
        Ok(ReceiverHandle { addresses, finish, thread, forwarder, book, command })
    }
}

/// A receiver that is running. Dropping it closes the door at once.
#[derive(Debug)]
pub struct ReceiverHandle {
    /// The ports of HTTP, those of UDP, and those of AppDash.
    addresses: [Vec<SocketAddr>; 3],
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

    /// The port of HTTP; of several the first.
    pub fn port(&self) -> u16 {
        self.address(0).port()
    }

    /// Where it listens: the ports of HTTP, those of UDP, and those of AppDash.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().flatten().copied()
    }

    fn address(&self, speech: usize) -> SocketAddr {
        self.addresses[speech].first().copied().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address(0))
    }

    /// What Pulumi's `--tracing` is to be set to.
    pub fn appdash_endpoint(&self) -> String {
        format!("tcp://{}", self.address(2))
    }

    /// What Pulumi's `--event-log` is to be set to: the port of everything else.
    pub fn events_endpoint(&self) -> String {
        format!("tcp://{}", self.address(0))
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
    udp: Vec<UdpSocket>,
    scrapes: Scrapes,
    context: RequestContext,
    forwarder: &Forwarder,
    finished: oneshot::Receiver<Instant>,
    ingest_ended: oneshot::Receiver<()>,
) {
    let book = Arc::clone(&context.book);
    let context = Arc::new(context);
    let (end_udp, udp_ended) = watch::channel(false);
    let of_udp = udp.into_iter().map(|socket| tokio::spawn(jaeger_udp::serve(socket, Arc::clone(&context), udp_ended.clone())));
    let of_udp: Vec<_> = of_udp.collect();
    scrape::begin(scrapes, &context, &udp_ended);
    let answers = Arc::clone(&context.memory.answers);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(ANSWER_LOOK_PAUSE).await;
            answers.cut_stalled_for(ANSWER_STALL_MAX);
        }
    });
    let deadline = accept::serve(listeners, Arc::clone(&context), finished).await;
    // What the kernel has of packets is queued before the queue is closed.
    let _ = end_udp.send(true);
    for socket in of_udp {
        let _ = socket.await;
    }
    context.intake.close();
    // The ingester ends when its queue is empty, which takes it a moment even then. A disk that hangs must not hang us.
    let patience = deadline.saturating_duration_since(Instant::now()).max(GOODBYE_MAX);
    // Not on a thread of its own: where there is none for it, the runtime panics.
    if tokio::time::timeout(patience, ingest_ended).await.is_err() {
        book.add(LossKind::DrainTimedOut, 1, "the recording could not be written in time; requests that were not answered are missing");
    }
    forwarder.finish(deadline).await;
}
