//! The door for spans: one loopback port that speaks OTLP over gRPC and over HTTP.
//!
//! ```text
//!            receiver thread (tokio, one thread, I/O only)            keeper thread (may block)
//!  accept → HTTP/1.1 or h2c ─┬─ otlp_http ─┐                  ┌──► inflate → check with wire → peer pid → Keep::traces
//!                            └─ otlp_grpc ─┴─ body ── queue ──┘                                             │
//!                 answer ◄──────────────────────────── verdict ◄────────────────────────────────────────────┘
//!                   └──► forward (a copy for the user's own endpoint, after the answer is decided)
//! ```
//!
//! The keeper is a thread of its own so that a slow disk, a large body or a look through `/proc` delays answers and never
//! the accepting of connections. It works in the order of arrival.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver as ChannelReceiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use longpole_model::{Loss, LossKind};
pub use longpole_wire::otlp::{Encoding, Signal};
use tokio::sync::{Semaphore, oneshot};

use crate::forward::{ForwardTarget, Forwarder, Parcel};
use crate::limits::{BODIES_IN_MEMORY_BYTES_MAX, GOODBYE_MAX};
use crate::loss_book::LossBook;

mod body;
mod connections;
mod intake;
mod otlp_grpc;
mod otlp_http;
#[cfg(test)]
mod tests;
mod watched_io;

use connections::{Connection, Keeping};
use intake::{Intake, Job, Verdict};
pub(crate) use otlp_grpc::{GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, frame as grpc_frame, path_of as grpc_path_of};

/// Keeps what was received. Called from one thread of the receiver, in the order of arrival; may block.
pub trait Keep: Send + 'static {
    /// Keeps one request of spans, decompressed and known to decode. After `Ok` it is acknowledged, so it must survive the
    /// end of this process. `peer_pid` is the process at the other end of the connection, where it had to be looked up
    /// because the request does not say it.
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), KeepError>;
}

/// Why a request could not be kept (disk full, say), as a lower-case fragment. The client is told to try again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeepError(pub String);

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
    /// Endpoints of the user that get every request as well; at most one for each signal, the last one counts.
    pub forward: Vec<ForwardTarget>,
}

/// The receiver of a run.
#[derive(Debug)]
pub struct Receiver;

impl Receiver {
    /// Opens a port on 127.0.0.1 and serves it from a thread of its own. When this returns, connections are accepted.
    ///
    /// Everything that may fail is done before the thread starts. It takes about 0.2 ms.
    pub fn start(options: ReceiverOptions, keep: Box<dyn Keep>) -> std::io::Result<ReceiverHandle> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

        let book = Arc::new(LossBook::default());
        let (jobs, queue) = mpsc::channel();
        let (kept_all, keeper_ended) = mpsc::channel();
        thread::Builder::new().name("longpole-keep".to_owned()).spawn({
            let book = Arc::clone(&book);
            move || {
                intake::keep_all(queue, keep, &book);
                // Nobody listens if the receiver did not want to wait.
                let _ = kept_all.send(());
            }
        })?;

        let (finish, finished) = oneshot::channel();
        let door = Door {
            intake: Intake::new(jobs),
            bodies: Arc::new(Semaphore::new(BODIES_IN_MEMORY_BYTES_MAX / body::PERMIT_BYTES)),
            book: Arc::clone(&book),
        };
        let thread = thread::Builder::new().name("longpole-receive".to_owned()).spawn(move || {
            runtime.block_on(serve(listener, door, options, finished, keeper_ended));
            // Tasks that did not end by the deadline are dropped, not waited for.
            runtime.shutdown_background();
        })?;
        Ok(ReceiverHandle { address, finish, thread, book })
    }
}

/// A receiver that is running. Dropping it closes the door at once.
#[derive(Debug)]
pub struct ReceiverHandle {
    address: SocketAddr,
    finish: oneshot::Sender<Instant>,
    thread: thread::JoinHandle<()>,
    book: Arc<LossBook>,
}

impl ReceiverHandle {
    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
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
    /// Permits of [`body::PERMIT_BYTES`] each.
    bodies: Arc<Semaphore>,
    book: Arc<LossBook>,
}

async fn serve(
    listener: TcpListener,
    door: Door,
    options: ReceiverOptions,
    finished: oneshot::Receiver<Instant>,
    keeper_ended: ChannelReceiver<()>,
) {
    let book = Arc::clone(&door.book);
    let forwarder = Arc::new(Forwarder::start(options.forward, Arc::clone(&book)));
    let door = Arc::new(door);
    let deadline = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => connections::serve(listener, Arc::clone(&door), Arc::clone(&forwarder), finished).await,
        Err(error) => {
            book.add(LossKind::RequestsRefused, 1, format!("cannot serve the port: {error}"));
            return;
        }
    };
    door.intake.close();
    // The keeper ends when its queue is empty, which takes it a moment even then. A disk that hangs must not hang us.
    let patience = deadline.saturating_duration_since(Instant::now()).max(GOODBYE_MAX);
    let kept = tokio::task::spawn_blocking(move || keeper_ended.recv_timeout(patience));
    if let Ok(Err(RecvTimeoutError::Timeout)) = kept.await {
        book.add(LossKind::DrainTimedOut, 1, "the recording could not be written in time; requests that were not answered are missing");
    }
    forwarder.finish(deadline).await;
}

/// A request whose body is in memory.
#[derive(Debug)]
pub(crate) struct Arrived {
    signal: Signal,
    encoding: Encoding,
    compression: Compression,
    body: Bytes,
}

impl Door {
    /// Has a request kept, hands a copy on, and counts what is refused. Both protocols come through here.
    async fn take(&self, arrived: Arrived, connection: &Arc<Connection>, forwarder: &Forwarder) -> Verdict {
        let Arrived { signal, encoding, compression, body } = arrived;
        let copy = body.clone();
        let _keeping = Keeping::of(connection);
        let verdict = self.intake.take(Job { signal, encoding, compression, body, connection: Arc::clone(connection) }).await;
        match &verdict {
            Verdict::Kept { .. } => forwarder.send(Parcel { signal, encoding, compression, body: copy }),
            Verdict::Undecodable(reason) | Verdict::TooLarge(reason) => self.refused(reason),
            Verdict::NotKept(reason) => self.refused(&format!("{reason}; the client was told to try again")),
        }
        verdict
    }

    fn refused(&self, reason: &str) {
        self.book.add(LossKind::RequestsRefused, 1, reason);
    }
}
