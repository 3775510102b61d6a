//! The connections of the page: a limited number, none of other users; the one that is idle longest makes room for a new one.
//!
//! ```text
//! accept ─► whose? ─┬─ our user, root ──► a place ──► HTTP ──► auth ──► API
//!                   ├─ another user ────► 403, a few at a time, 1 s each; the rest is closed
//!                   └─ an error ────────► closed
//! ```
//!
//! Connections that do nothing never keep a browser out: when places run out, the page closes the connection without a request under way
//! that read and wrote nothing for longest. Browsers keep connections open in case they need them again, and silently make new ones.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::auth;
use crate::limits::{
    HEAD_BYTES_MAX, PAGE_CHECKS_MAX, PAGE_CONNECTIONS_MAX, PAGE_HEAD_MAX, REFUSAL_TIME_MAX, REFUSALS_ANSWERED_MAX,
    STREAMS_PER_CONNECTION_MAX,
};
use crate::open_files;
use crate::page_clients::{Admission, ClientCheck, PageClient};

/// Pause after something ran out (descriptors, above all), in which a connection that must end gives its own back.
const PAUSE: Duration = Duration::from_millis(10);

/// How often longpole asks the kernel again whose a connection is, after something ran out.
const ASKED_AGAIN_MAX: usize = 10;

/// Pause before the next search for a connection that can make room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// One connection.
#[derive(Debug)]
struct PageConnection {
    /// The number of the event at which it read or wrote last.
    active_at: AtomicU64,
    /// Requests whose answer is being made.
    in_flight: AtomicUsize,
    /// Ends it at once.
    cut: Notify,
    open: Arc<OpenConnections>,
}

impl PageConnection {
    fn note_active(&self) {
        self.active_at.store(self.open.events.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Counts a request as in flight for as long as it lives.
struct InFlight(Arc<PageConnection>);

impl InFlight {
    fn of(connection: &Arc<PageConnection>) -> Self {
        connection.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(connection))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.note_active();
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.open.room.notify_one();
    }
}

/// The connections that are open.
#[derive(Debug, Default)]
struct OpenConnections {
    open: Mutex<HashMap<u64, Arc<PageConnection>>>,
    next: AtomicU64,
    /// Counts what connections do, which is their time.
    events: AtomicU64,
    /// Wakes the task that waits for a place, or for the end of all connections.
    room: Notify,
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<PageConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>) -> (u64, Arc<PageConnection>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let connection =
            PageConnection { active_at: AtomicU64::new(0), in_flight: AtomicUsize::new(0), cut: Notify::new(), open: Arc::clone(self) };
        connection.note_active();
        let connection = Arc::new(connection);
        self.lock().insert(number, Arc::clone(&connection));
        (number, connection)
    }

    fn give_back(&self, number: u64) {
        self.lock().remove(&number);
        self.room.notify_one();
    }

    /// Ends the connection that is idle longest. A client that does not read its answer counts as idle.
    fn make_room(&self) {
        let mut open = self.lock();
        let idle = |(number, connection): (&u64, &Arc<PageConnection>)| {
            (connection.in_flight.load(Ordering::Relaxed) == 0).then(|| (connection.active_at.load(Ordering::Relaxed), *number))
        };
        if let Some(connection) = open.iter().filter_map(idle).min().and_then(|(_, number)| open.remove(&number)) {
            connection.cut.notify_one();
        }
    }
}

/// The most connections at the same time under these limits of the process (`/proc/self/limits`). Answers need files too, so connections
/// take at most a quarter of the open files.
fn connections_max(limits: &str) -> usize {
    open_files::max(limits).map_or(PAGE_CONNECTIONS_MAX, |files| (files / 4).clamp(1, PAGE_CONNECTIONS_MAX))
}

/// Serves connections to the page.
struct PageServer {
    http: auto::Builder<TokioExecutor>,
    router: TowerToHyperService<Router>,
    client_check: ClientCheck,
    open: Arc<OpenConnections>,
    connections_max: usize,
    refused: Arc<Semaphore>,
    checks: Arc<Semaphore>,
    closing: watch::Receiver<bool>,
}

/// A connection that was accepted.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    ours: SocketAddr,
    since: Instant,
}

/// Serves until `closing` says so, and then until all answers are given.
pub(crate) async fn serve(listener: TcpListener, client_check: ClientCheck, router: Router, mut closing: watch::Receiver<bool>) {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(PAGE_HEAD_MAX).max_buf_size(HEAD_BYTES_MAX);
    http.http2().max_concurrent_streams(STREAMS_PER_CONNECTION_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
    let server = Arc::new(PageServer {
        http,
        router: TowerToHyperService::new(router),
        client_check,
        open: Arc::default(),
        connections_max: connections_max(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default()),
        refused: Arc::new(Semaphore::new(REFUSALS_ANSWERED_MAX)),
        checks: Arc::new(Semaphore::new(PAGE_CHECKS_MAX)),
        closing: closing.clone(),
    });
    tokio::select! {
        // A page that was dropped closes as well.
        _ = closing.wait_for(|closing| *closing) => {}
        never = server.accept_all(&listener) => match never {},
    }
    drop(listener);
    while !server.open.lock().is_empty() {
        server.open.room.notified().await;
    }
}

impl PageServer {
    async fn accept_all(self: &Arc<Self>, listener: &TcpListener) -> Infallible {
        loop {
            while self.open.lock().len() >= self.connections_max {
                self.open.make_room();
                if self.open.lock().len() >= self.connections_max {
                    let _ = timeout(ROOM_PAUSE, self.open.room.notified()).await;
                }
            }
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Ok(ours) = stream.local_addr() else { continue };
                    self.receive(Accepted { stream, peer, ours, since: Instant::now() }).await;
                }
                // The connection is gone already, or there is no descriptor left for it. It waits in the backlog.
                Err(_) => {
                    self.open.make_room();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Reads the owner of a connection, and serves or refuses it.
    async fn receive(self: &Arc<Self>, accepted: Accepted) {
        let Accepted { peer, ours, since, .. } = accepted;
        if self.client_check.is_slow() {
            // Several at a time: one reading of the table serves all that came before it.
            let Ok(place) = Arc::clone(&self.checks).acquire_owned().await else { return };
            let server = Arc::clone(self);
            tokio::spawn(async move {
                let asking = Arc::clone(&server);
                let admission = tokio::task::spawn_blocking(move || asking.client_check.admission(peer, ours, since)).await;
                if let Ok(Ok(admission)) = admission {
                    server.admit(accepted, admission);
                }
                drop(place);
            });
            return;
        }
        for _ in 0..ASKED_AGAIN_MAX {
            match self.client_check.admission(peer, ours, since) {
                Ok(admission) => return self.admit(accepted, admission),
                // Our own idle connections may hold the descriptors. Without an answer the page serves nothing: another user may have
                // used them up.
                Err(_) => {
                    self.open.make_room();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn admit(self: &Arc<Self>, accepted: Accepted, admission: Admission) {
        match admission {
            Admission::Served(client) => self.serve(accepted.stream, client),
            // Other users take no places: a few learn why, for a moment.
            Admission::OtherUser => {
                if let Ok(place) = Arc::clone(&self.refused).try_acquire_owned() {
                    self.turn_away(accepted.stream, place);
                }
            }
        }
    }

    fn turn_away(self: &Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        let server = Arc::clone(self);
        tokio::spawn(async move {
            let service = service_fn(|_| std::future::ready(Ok::<_, Infallible>(auth::other_user())));
            // The client may or may not read the answer.
            let _ = timeout(REFUSAL_TIME_MAX, server.http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        });
    }

    fn serve(self: &Arc<Self>, stream: TcpStream, client: PageClient) {
        let server = Arc::clone(self);
        let (number, connection) = self.open.take();
        tokio::spawn(async move {
            let service = service_fn(|mut request: Request<Incoming>| {
                request.extensions_mut().insert(client);
                let in_flight = InFlight::of(&connection);
                let answer = server.router.call(request);
                async move {
                    let answer = answer.await;
                    drop(in_flight);
                    answer
                }
            });
            let io = TokioIo::new(WatchedStream { stream, connection: Arc::clone(&connection), is_blocked: false, wants_read: false });
            let mut served = pin!(server.http.serve_connection(io, service));
            let mut closing = server.closing.clone();
            // How a connection ends says nothing that its requests did not say.
            let closes = tokio::select! {
                _ = served.as_mut() => false,
                () = connection.cut.notified() => false,
                _ = async { closing.wait_for(|closing| *closing).await.is_ok() } => true,
            };
            if closes {
                served.as_mut().graceful_shutdown();
                let _ = served.as_mut().await;
            }
            server.open.give_back(number);
        });
    }
}

/// A stream that notes what happens on it, and reads nothing while its client does not read: hyper takes up the next request of HTTP/1
/// whether or not the last answer was read, and would collect heads of answers without end.
struct WatchedStream {
    stream: TcpStream,
    connection: Arc<PageConnection>,
    /// The kernel takes no more bytes of answers.
    is_blocked: bool,
    /// A read was put off until it does.
    wants_read: bool,
}

impl WatchedStream {
    fn note_write(&mut self, polled: Poll<io::Result<usize>>, context: &Context<'_>) -> Poll<io::Result<usize>> {
        self.is_blocked = polled.is_pending();
        if !self.is_blocked {
            self.connection.note_active();
            if std::mem::take(&mut self.wants_read) {
                context.waker().wake_by_ref();
            }
        }
        polled
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_blocked {
            self.wants_read = true;
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.connection.note_active();
        }
        polled
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(polled, context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_write(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_answers() {
        let check = |soft: &str, expected: usize| {
            let limits = format!(
                "Limit                     Soft Limit           Hard Limit           Units\nMax open files            {soft} 1048576              files\n"
            );
            assert_eq!(connections_max(&limits), expected, "{soft}");
        };
        check("1048576", PAGE_CONNECTIONS_MAX);
        check("unlimited", PAGE_CONNECTIONS_MAX);
        check("32", 8);
        check("0", 1);
        assert_eq!(connections_max(""), PAGE_CONNECTIONS_MAX);
    }
}
