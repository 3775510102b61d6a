//! Accepting, serving and, at the end, draining connections.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use longpole_model::LossKind;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use super::watched_io::WatchedIo;
use super::{Door, appdash, otlp_grpc, otlp_http, pulumi_events, zipkin};
use crate::limits::{
    APPDASH_CONNECTIONS_MAX, CONNECTIONS_MAX, DRAIN_STALL_MAX, GOODBYE_MAX, HEAD_BYTES_MAX, STREAMS_PER_CONNECTION_MAX, UNUSED_MAX,
};
use crate::peer::{self, PeerFinder};

/// The body of every answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// Turns of the reactor in which nothing may happen before the drain believes that nothing will.
const QUIET_TURNS: usize = 3;

/// Pause after the operating system refused a connection (no descriptors left) and none of ours could be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Pause before connections are looked through again for one that can be closed.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Pause before the kernel is asked again whether it delivered everything.
const ON_ITS_WAY_PAUSE: Duration = Duration::from_millis(1);

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Http,
    AppDash,
}

/// One connection, as its tasks and the drain see it.
#[derive(Debug)]
pub(crate) struct Connection {
    speech: Speech,
    peer: SocketAddr,
    ours: SocketAddr,
    since: Instant,
    peer_pid: OnceLock<Option<u32>>,
    /// Requests whose head was read and whose answer is not made.
    in_flight: AtomicUsize,
    /// Those of them whose body was read.
    keeping: AtomicUsize,
    /// The task that waits for `keeping` to become 0.
    end_waker: Mutex<Option<Waker>>,
    /// The last read found nothing: all that arrived is in the hands of the HTTP machine.
    read_to_end: AtomicBool,
    /// The moment, on the clock of [`Shared::events`], at which its last request was answered; 0 before the first.
    answered_at: AtomicU64,
    /// Asks the connection to end.
    pub(super) hang_up: Notify,
    shared: Arc<Shared>,
}

impl Connection {
    /// The process at the other end. Looked up once, at the first call, which may read through `/proc`.
    pub(super) fn peer_pid(&self, finder: &mut PeerFinder) -> Option<u32> {
        *self.peer_pid.get_or_init(|| finder.pid_of(self.peer, self.ours, self.since))
    }

    pub(super) fn note_read(&self, nothing_there: bool) {
        self.read_to_end.store(nothing_there, Ordering::Relaxed);
        if !nothing_there {
            self.shared.happened();
        }
    }

    /// Whether a request whose body was read is not answered yet; then the waker is called when one is.
    pub(super) fn keeps(&self, waker: &Waker) -> bool {
        let keeps = self.keeping.load(Ordering::Relaxed) > 0;
        if keeps {
            *self.end_waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        }
        keeps
    }

    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.read_to_end.load(Ordering::Relaxed)
    }
}

/// Counts a request as in flight for as long as it lives.
struct InFlight<'a>(&'a Connection);

impl<'a> InFlight<'a> {
    fn of(connection: &'a Connection) -> Self {
        connection.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(connection)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.answered_at.store(self.0.shared.happened(), Ordering::Relaxed);
    }
}

/// Counts a request as being kept for as long as it lives.
pub(super) struct Keeping<'a>(&'a Connection);

impl<'a> Keeping<'a> {
    pub(super) fn of(connection: &'a Connection) -> Self {
        connection.keeping.fetch_add(1, Ordering::Relaxed);
        Keeping(connection)
    }
}

impl Drop for Keeping<'_> {
    fn drop(&mut self) {
        self.0.keeping.fetch_sub(1, Ordering::Relaxed);
        if let Some(waker) = self.0.end_waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }
}

/// What connections tell the listener.
#[derive(Debug, Default)]
struct Shared {
    /// Counts everything that happens: connections made and ended, bytes read, requests answered.
    events: AtomicU64,
    /// Wakes the drain.
    changed: Notify,
    /// Wakes an acceptor that waits for a connection to become idle or to end.
    room: Notify,
}

impl Shared {
    fn happened(&self) -> u64 {
        self.changed.notify_one();
        self.room.notify_one();
        self.events.fetch_add(1, Ordering::Relaxed)
    }
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Open(Mutex<HashMap<u64, Arc<Connection>>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports.
#[derive(Debug)]
pub(super) struct Listeners {
    /// OTLP, Zipkin and Pulumi's events.
    pub(super) http: TcpListener,
    /// AppDash.
    pub(super) appdash: TcpListener,
}

struct Acceptor {
    listeners: Listeners,
    door: Arc<Door>,
    http: auto::Builder<TokioExecutor>,
    shared: Arc<Shared>,
    open: Arc<Open>,
}

/// Serves the ports until `finished` gives the deadline, then drains them. Gives the deadline back.
pub(super) async fn serve(listeners: Listeners, door: Arc<Door>, finished: oneshot::Receiver<Instant>) -> Instant {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // A client that has said all it wants to say may still wait for the answer.
    http.http1().max_buf_size(HEAD_BYTES_MAX).half_close(true);
    http.http2().max_concurrent_streams(STREAMS_PER_CONNECTION_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
    let acceptor = Acceptor { listeners, door, http, shared: Arc::default(), open: Arc::default() };
    let deadline = {
        let mut accepting = pin!(acceptor.accept_all());
        // A receiver that was dropped instead of finished closes at once.
        let deadline = tokio::select! {
            deadline = finished => deadline.unwrap_or_else(|_| Instant::now()),
            never = &mut accepting => match never {},
        };
        tokio::select! {
            () = acceptor.quiet(deadline) => {}
            never = &mut accepting => match never {},
        }
        deadline
    };
    acceptor.say_goodbye().await;
    deadline
}

impl Acceptor {
    async fn accept_all(&self) -> Infallible {
        let mut number = 0;
        loop {
            while self.open.lock().len() >= CONNECTIONS_MAX {
                self.close_longest_idle();
                // Something may also become old enough to be closed.
                let _ = timeout_at(tokio::time::Instant::now() + ROOM_PAUSE, self.shared.room.notified()).await;
            }
            let (accepted, speech) = tokio::select! {
                accepted = self.listeners.http.accept() => (accepted, Speech::Http),
                accepted = self.listeners.appdash.accept() => (accepted, Speech::AppDash),
            };
            match accepted {
                Ok((stream, peer)) => {
                    number += 1;
                    self.serve_one(number, stream, peer, speech);
                }
                // The connection is gone already, or there is no descriptor left for it. It waits in the backlog.
                Err(_) => {
                    self.close_longest_idle();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve_one(&self, number: u64, stream: TcpStream, peer: SocketAddr, speech: Speech) {
        self.shared.happened();
        let Ok(ours) = stream.local_addr() else { return };
        let appdash = || self.open.lock().values().filter(|connection| connection.speech == Speech::AppDash).count();
        if speech == Speech::AppDash && appdash() >= APPDASH_CONNECTIONS_MAX {
            self.door.refused(&format!("more than {APPDASH_CONNECTIONS_MAX} appdash connections at the same time"));
            return;
        }
        // Answers are small and waited for. Where the option cannot be set they are only later.
        let _ = stream.set_nodelay(true);
        let connection = Arc::new(Connection {
            speech,
            peer,
            ours,
            since: Instant::now(),
            peer_pid: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
            keeping: AtomicUsize::new(0),
            end_waker: Mutex::new(None),
            read_to_end: AtomicBool::new(false),
            answered_at: AtomicU64::new(0),
            hang_up: Notify::new(),
            shared: Arc::clone(&self.shared),
        });
        self.open.lock().insert(number, Arc::clone(&connection));
        let (door, open) = (Arc::clone(&self.door), Arc::clone(&self.open));
        let http = self.http.clone();
        tokio::spawn(async move {
            match speech {
                Speech::Http => serve_http(&http, stream, &door, &connection).await,
                Speech::AppDash => appdash::serve(stream, &door, &connection).await,
            }
            open.lock().remove(&number);
            connection.shared.happened();
        });
    }

    /// Makes room. A connection that was not used yet is about to be: it is closed only when it was long enough about to.
    fn close_longest_idle(&self) {
        let open = self.open.lock();
        let answered_at = |connection: &Arc<Connection>| connection.answered_at.load(Ordering::Relaxed);
        let idle = open.values().filter(|connection| connection.speech == Speech::Http && connection.is_idle());
        let spare = idle.filter(|connection| answered_at(connection) > 0 || connection.since.elapsed() > UNUSED_MAX);
        if let Some(connection) = spare.min_by_key(|connection| answered_at(connection)) {
            connection.hang_up.notify_one();
        }
    }

    /// Returns when all that was sent is read and answered, or at the deadline.
    ///
    /// What a process sent before it ended lies in the kernel's buffers, with the end of its stream behind it. One turn of
    /// the reactor learns of every socket that has something, and the tasks that read it run before the next one. So when
    /// nothing happened for a few turns, every connection waits for its peer, and the kernel has delivered what was sent,
    /// nothing is left but what a living process may send later.
    async fn quiet(&self, deadline: Instant) {
        let deadline = tokio::time::Instant::from_std(deadline);
        let mut delivered = false;
        loop {
            let before = self.shared.events.load(Ordering::Relaxed);
            for _ in 0..QUIET_TURNS {
                yield_now().await;
            }
            let busy = self.busy();
            if busy == 0 && self.shared.events.load(Ordering::Relaxed) == before {
                if delivered || before == 0 {
                    return;
                }
                // Without any connection so far this is not worth its milliseconds. What is delivered now wants to be read.
                delivered = !self.is_on_its_way().await;
                if delivered {
                    continue;
                }
                tokio::time::sleep(ON_ITS_WAY_PAUSE).await;
            }
            delivered = false;
            // A request that is here whole is ours to finish; one that is not is waited for as long as it goes on.
            let stalls_at = if self.keeping() { deadline } else { deadline.min(tokio::time::Instant::now() + DRAIN_STALL_MAX) };
            let waited = if busy == 0 { Ok(()) } else { timeout_at(stalls_at, self.shared.changed.notified()).await };
            // The pauses and yields make this a loop that the deadline must end.
            if waited.is_err() || tokio::time::Instant::now() >= deadline {
                let detail = "requests that were still being sent when the drain deadline had passed";
                self.door.book.add(LossKind::DrainTimedOut, self.busy() as u64, detail);
                return;
            }
        }
    }

    fn keeping(&self) -> bool {
        self.open.lock().values().any(|connection| connection.keeping.load(Ordering::Relaxed) > 0)
    }

    async fn is_on_its_way(&self) -> bool {
        let ours: Vec<_> = [&self.listeners.http, &self.listeners.appdash].into_iter().filter_map(|port| port.local_addr().ok()).collect();
        tokio::task::spawn_blocking(move || peer::is_on_its_way(&ours)).await.unwrap_or(false)
    }

    fn busy(&self) -> usize {
        self.open.lock().values().filter(|connection| !connection.is_idle()).count()
    }

    /// Closes the ports and every connection, politely but briefly.
    async fn say_goodbye(self) {
        drop(self.listeners);
        let survivors: Vec<_> = self.open.lock().values().cloned().collect();
        let idle = survivors.iter().filter(|connection| connection.is_idle()).count() as u64;
        let detail = "connections of processes that outlived the command: what they send later is not here";
        self.door.book.add(LossKind::DrainTimedOut, idle, detail);
        for connection in &survivors {
            connection.hang_up.notify_one();
        }
        let deadline = tokio::time::Instant::now() + GOODBYE_MAX;
        while !self.open.lock().is_empty() {
            if timeout_at(deadline, self.shared.changed.notified()).await.is_err() {
                return;
            }
        }
    }
}

async fn serve_http(http: &auto::Builder<TokioExecutor>, stream: TcpStream, door: &Arc<Door>, connection: &Arc<Connection>) {
    let io = TokioIo::new(WatchedIo::new(stream, Arc::clone(connection)));
    let service = service_fn(|request| answer(Arc::clone(door), Arc::clone(connection), request));
    let mut served = pin!(http.serve_connection(io, service));
    // How a connection ends says nothing that its requests did not say.
    tokio::select! {
        _ = served.as_mut() => {}
        () = connection.hang_up.notified() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

/// Sends a request to the door that it is for: by content type, then by path.
async fn answer(door: Arc<Door>, connection: Arc<Connection>, request: Request<Incoming>) -> Result<Response<AnswerBody>, Infallible> {
    let grpc = otlp_grpc::is_grpc(&request);
    if grpc && pulumi_events::is_for(&request) {
        // Open for as long as the engine works, so it is not in flight: it waits for its peer, as an idle connection does.
        return Ok(pulumi_events::answer(&door, &connection, request).await);
    }
    let _in_flight = InFlight::of(&connection);
    Ok(if grpc {
        otlp_grpc::answer(&door, &connection, request).await
    } else if zipkin::is_for(&request) {
        zipkin::answer(&door, &connection, request).await
    } else {
        otlp_http::answer(&door, &connection, request).await
    })
}
