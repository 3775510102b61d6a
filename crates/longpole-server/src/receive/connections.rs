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
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::yield_now;
use tokio::time::{timeout, timeout_at};

use super::intake::UNPROVEN;
use super::senders::{Known, Sender};
use super::strangers::{Strangers, User};
use super::watched_io::WatchedIo;
use super::{Door, Signal, appdash, callers, otlp_grpc, otlp_http, pulumi_events, zipkin};
use crate::limits::{
    APPDASH_CONNECTIONS_MAX, BODY_BYTES_MAX, CLAIMS_MAX, CONNECTIONS_MAX, DRAIN_STALL_MAX, DRAIN_UNKNOWN_MAX, GONE_BODY_BYTES_MAX,
    GONE_MAX, GONE_WAITING_MAX, GOODBYE_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, INFLATED_BYTES_MAX, PEER_LINKS_MAX, STALL_IN_NEED_MAX,
    STRANGER_PAUSE, STRANGER_TIME_MAX, STREAMS_PER_CONNECTION_MAX, UNUSED_MAX,
};
use crate::peer::{self, Peer, PeerFinder, SocketOwner};

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

/// What a number of a process means that a resource says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The process at the other end.
    Own,
    /// Another process of our namespace: the sender hands on for it, or cannot be seen.
    Said,
    /// This process, which has that number in a namespace of its own.
    Means(u32),
    /// A process of another namespace; which, nobody knows.
    Unknown,
}

/// One connection, as its tasks and the drain see it.
#[derive(Debug)]
pub(crate) struct Connection {
    speech: Speech,
    peer: SocketAddr,
    ours: SocketAddr,
    since: tokio::time::Instant,
    sender: Sender,
    /// The process at the other end, as it was found last; the outer `None` before it was looked for.
    peer_process: Mutex<Option<Option<Peer>>>,
    /// Processes that it says its spans are of, and what to make of that.
    claims: Mutex<HashMap<u32, Claim>>,
    /// Requests whose head was read, so far.
    requests: AtomicU64,
    /// Requests whose head was read and whose answer is not made.
    in_flight: AtomicUsize,
    /// Those of them whose body was read.
    keeping: AtomicUsize,
    /// Event streams that are open: they are not in flight, and not over.
    event_streams: AtomicUsize,
    /// The task that waits for `keeping` to become 0.
    end_waker: Mutex<Option<Waker>>,
    /// The last read found nothing: all that arrived is in the hands of the HTTP machine.
    read_to_end: AtomicBool,
    /// The moment, on the clock of [`Shared::events`], at which its last request was answered; 0 before the first.
    answered_at: AtomicU64,
    /// When something began that is not whole yet: a head, a frame, a packet, an event.
    inside_since: Mutex<Option<tokio::time::Instant>>,
    /// When its client stopped reading answers: nothing more of it is read either.
    blocked_since: Mutex<Option<tokio::time::Instant>>,
    /// When requests in flight made progress last.
    progress_at: Mutex<tokio::time::Instant>,
    /// It was inside one of these for too long.
    too_slow: AtomicBool,
    /// Asks the connection to end.
    pub(super) hang_up: Notify,
    /// Ends it at once, in the middle of what it is doing.
    pub(super) cut: Notify,
    shared: Arc<Shared>,
}

impl Connection {
    /// The process at the other end, which may be found by reading through `/proc`. One that has ended is not believed to be there: whoever
    /// holds the socket now is looked for.
    pub(super) fn peer_pid(&self, finder: &mut PeerFinder) -> Option<u32> {
        let mut known = self.peer_process.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|peer| peer.is_some_and(|peer| !peer.lives())) {
            let by_table = || finder.owner(self.peer, self.ours, self.since.into_std()).ok()?;
            // Once the client has closed its end, its address may be that of somebody else's next connection.
            let owner = if self.sender.is_gone { None } else { self.sender.owner.or_else(by_table) };
            *known = Some(owner.and_then(|owner| finder.holder(owner)));
        }
        (*known)?.map(|peer| peer.pid)
    }

    /// What to make of `process.pid` in a resource. It is a number in the sender's namespace of process ids, which need not be ours: in a
    /// container of the command, the first process calls itself 1.
    pub(super) fn claim(&self, number: u32, finder: &mut PeerFinder) -> Claim {
        let Some(SocketOwner { inode, .. }) = self.sender.owner else { return Claim::Said };
        let known = self.claims.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied();
        if let Some(claim) = known {
            return claim;
        }
        let mut links_left = PEER_LINKS_MAX;
        let claim = if peer::holds(number, &peer::socket_name(inode), &mut links_left) {
            Claim::Own
        } else {
            match self.peer_pid(finder) {
                Some(peer) if peer::counts_otherwise(peer) => {
                    if peer::is_called(peer, number) {
                        Claim::Means(peer)
                    } else {
                        Claim::Unknown
                    }
                }
                Some(_) | None => Claim::Said,
            }
        };
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.len() < CLAIMS_MAX {
            claims.insert(number, claim);
        }
        claim
    }

    /// The process at the other end, where it is known what it says of whose spans it sends: a span is its own process's word or another's.
    /// Of a number that nobody can place here it is not said, because it would be taken for that.
    pub(super) fn sender_of(&self, claims: &[(u32, Claim)], finder: &mut PeerFinder) -> Option<u32> {
        self.sender.owner?;
        match claims {
            [] => None,
            [(pid, Claim::Own)] => Some(*pid),
            claims if claims.iter().any(|(_, claim)| *claim == Claim::Unknown) => None,
            _ => self.peer_pid(finder),
        }
    }

    /// Bytes of a body that it may send.
    pub(super) fn body_bytes_max(&self) -> usize {
        if self.sender.is_gone { GONE_BODY_BYTES_MAX } else { BODY_BYTES_MAX }
    }

    /// Bytes of its bodies after decompression.
    pub(super) fn inflated_bytes_max(&self) -> usize {
        if self.sender.is_gone { GONE_BODY_BYTES_MAX } else { INFLATED_BYTES_MAX }
    }

    /// Whether only what its spans say themselves can speak for it.
    pub(super) fn sender_is_gone(&self) -> bool {
        self.sender.is_gone
    }

    pub(super) fn note_read(&self, nothing_there: bool) {
        self.read_to_end.store(nothing_there, Ordering::Relaxed);
        if !nothing_there {
            self.shared.happened();
        }
    }

    /// Notes whether it is inside something that is not whole, and since when.
    pub(super) fn note_inside(&self, since: Option<tokio::time::Instant>) {
        *self.inside_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Notes whether an answer could not be written because those before it are not read.
    pub(super) fn note_blocked(&self, is_blocked: bool) {
        let mut since = self.blocked_since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = is_blocked.then(|| since.unwrap_or_else(tokio::time::Instant::now));
    }

    /// Notes that a request in flight goes on.
    pub(super) fn note_progress(&self) {
        *self.progress_at.lock().unwrap_or_else(PoisonError::into_inner) = tokio::time::Instant::now();
    }

    /// Notes that it ends because it was inside of something for too long.
    pub(super) fn note_too_slow(&self) {
        self.too_slow.store(true, Ordering::Relaxed);
    }

    /// Requests that began so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether a request is under way.
    pub(super) fn has_requests(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// Whether a request whose body was read is not answered yet; then the waker is called when one is.
    pub(super) fn keeps(&self, waker: &Waker) -> bool {
        let keeps = self.keeping.load(Ordering::Relaxed) > 0;
        if keeps {
            *self.end_waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        }
        keeps
    }

    /// Whether it waits for its peer.
    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.read_to_end.load(Ordering::Relaxed)
    }

    /// Whether nothing is lost with it.
    fn is_over(&self) -> bool {
        self.is_idle() && self.event_streams.load(Ordering::Relaxed) == 0
    }

    fn inside_since(&self) -> Option<tokio::time::Instant> {
        *self.inside_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when it has not gone on with what it is in the middle of; `None` where it is in the middle of nothing, or a whole request of it
    /// is being kept.
    fn stalled_since(&self) -> Option<tokio::time::Instant> {
        if self.keeping.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let blocked = *self.blocked_since.lock().unwrap_or_else(PoisonError::into_inner);
        let inside =
            if self.has_requests() { Some(*self.progress_at.lock().unwrap_or_else(PoisonError::into_inner)) } else { self.inside_since() };
        blocked.into_iter().chain(inside).min()
    }
}

/// Counts a request as in flight for as long as it lives.
struct InFlight<'a>(&'a Connection);

impl<'a> InFlight<'a> {
    fn of(connection: &'a Connection) -> Self {
        if connection.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            connection.note_progress();
        }
        InFlight(connection)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.answered_at.store(self.0.shared.happened(), Ordering::Relaxed);
    }
}

/// Counts an event stream as open for as long as it lives.
pub(super) struct OpenStream<'a>(&'a Connection);

impl<'a> OpenStream<'a> {
    pub(super) fn of(connection: &'a Connection) -> Self {
        connection.event_streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(connection)
    }
}

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        self.0.event_streams.fetch_sub(1, Ordering::Relaxed);
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
        self.0.note_progress();
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
    /// Connections of which it is being found out whether they may send.
    looking: AtomicUsize,
    /// Connections of other users that wait for that. They take none of the places of others.
    queued: AtomicUsize,
    /// Connections of clients that are gone and for which there is no place yet. They take none of those of others.
    waiting: AtomicUsize,
    /// Set when the command has ended: when only connections of our own user, which live, are still taken.
    known_only_from: OnceLock<Instant>,
}

/// Counts a connection as undecided for as long as it lives: one of these numbers.
struct Undecided {
    shared: Arc<Shared>,
    number: fn(&Shared) -> &AtomicUsize,
}

impl Undecided {
    fn of(shared: &Arc<Shared>, number: fn(&Shared) -> &AtomicUsize) -> Self {
        number(shared).fetch_add(1, Ordering::Relaxed);
        Undecided { shared: Arc::clone(shared), number }
    }

    /// It is being looked into.
    fn looking(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.looking)
    }

    /// It is of another user, and waits to be looked into.
    fn queued(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.queued)
    }

    /// Its client is gone, and it waits for a place.
    fn waiting(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.waiting)
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        (self.number)(&self.shared).fetch_sub(1, Ordering::Relaxed);
        self.shared.happened();
    }
}

impl Shared {
    fn happened(&self) -> u64 {
        self.changed.notify_one();
        self.room.notify_one();
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    fn undecided(&self) -> usize {
        [&self.looking, &self.queued, &self.waiting].map(|number| number.load(Ordering::Relaxed)).iter().sum()
    }

    fn draining(&self) -> bool {
        self.known_only_from.get().is_some()
    }

    /// Whether a connection that is made now comes too late to find out whose it is.
    fn takes_known_only(&self) -> bool {
        self.known_only_from.get().is_some_and(|from| Instant::now() >= *from)
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
    hall: Arc<Hall>,
}

/// Where connections are served.
struct Hall {
    door: Arc<Door>,
    http: auto::Builder<TokioExecutor>,
    shared: Arc<Shared>,
    open: Open,
    next: AtomicU64,
    strangers: Strangers,
    /// Places of clients that are gone.
    gone: Arc<Semaphore>,
}

/// A connection that was accepted.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    ours: SocketAddr,
    speech: Speech,
    since: Instant,
}

/// Serves the ports until `finished` gives the deadline, then drains them. Gives the deadline back.
pub(super) async fn serve(listeners: Listeners, door: Arc<Door>, finished: oneshot::Receiver<Instant>) -> Instant {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // A client that has said all it wants to say may still wait for the answer.
    http.http1().max_buf_size(HEAD_BYTES_MAX).half_close(true);
    http.http2().max_concurrent_streams(STREAMS_PER_CONNECTION_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
    let (strangers, gone) = (Strangers::new(), Arc::new(Semaphore::new(GONE_MAX)));
    let hall = Hall { door, http, shared: Arc::default(), open: Open::default(), next: AtomicU64::new(0), strangers, gone };
    let acceptor = Acceptor { listeners, hall: Arc::new(hall) };
    let deadline = {
        let mut accepting = pin!(acceptor.accept_all());
        // A receiver that was dropped instead of finished closes at once.
        let deadline = tokio::select! {
            deadline = finished => deadline.unwrap_or_else(|_| Instant::now()),
            never = &mut accepting => match never {},
        };
        // Only once.
        let _ = acceptor.hall.shared.known_only_from.set(Instant::now() + DRAIN_UNKNOWN_MAX);
        tokio::select! {
            () = acceptor.quiet(deadline) => {}
            never = &mut accepting => match never {},
        }
        deadline
    };
    acceptor.say_goodbye().await;
    deadline
}

impl Hall {
    /// Connections that are inside a request.
    fn inside(&self) -> usize {
        self.open.lock().values().filter(|connection| !connection.is_idle()).count()
    }

    fn is_full(&self) -> bool {
        self.open.lock().len() + self.shared.looking.load(Ordering::Relaxed) >= CONNECTIONS_MAX
    }

    /// Serves a connection whose client may send, and sees to it that of others it is found out.
    fn receive(self: &Arc<Self>, accepted: Accepted) {
        let known = self.door.judge.at_once(accepted.peer, accepted.ours);
        let is_known = matches!(known, Known::Sender(sender) if !sender.is_gone);
        if !is_known && self.shared.takes_known_only() {
            // As if it had not come: the drain waits for whatever happens.
            self.door.refused(callers::TOO_LATE);
            return;
        }
        self.shared.happened();
        match known {
            Known::Sender(sender) if sender.is_gone => self.serve_gone(accepted, sender),
            Known::Sender(sender) => self.serve(accepted, sender, None),
            Known::Foreign(owner) => self.look_into(accepted, owner),
            Known::Slow { never } => {
                let (hall, looking) = (Arc::clone(self), Undecided::looking(&self.shared));
                tokio::spawn(async move {
                    let door = Arc::clone(&hall.door);
                    let (peer, ours, since) = (accepted.peer, accepted.ours, accepted.since);
                    let known = tokio::task::spawn_blocking(move || door.judge.by_table(peer, ours, since)).await;
                    match known {
                        Ok(Ok(Known::Sender(sender))) if sender.is_gone => hall.serve_gone(accepted, sender),
                        Ok(Ok(Known::Sender(sender))) => hall.serve(accepted, sender, None),
                        Ok(Ok(Known::Foreign(owner))) => hall.look_into(accepted, owner),
                        // Only a system that can tell of nobody lets everybody in: descriptors can be had from us by connecting.
                        Ok(Err(error)) if never && peer::says_never(&error) => {
                            hall.door.book.add_once(LossKind::Environment, NOT_SAID);
                            hall.serve(accepted, Sender { owner: None, is_gone: false }, None);
                        }
                        Ok(Ok(Known::Slow { .. }) | Err(_)) | Err(_) => {
                            drop(looking);
                            hall.door.refused(callers::NOT_TOLD);
                            hall.turn_away(accepted, None, callers::not_told).await;
                            return;
                        }
                    }
                    drop(looking);
                });
            }
        }
    }

    /// Finds out whether a connection of another user is of the run: of so many of each user at a time. Other users must not take the places
    /// of the run, nor those in which it is found out who is of the run.
    fn look_into(self: &Arc<Self>, accepted: Accepted, owner: SocketOwner) {
        let hall = Arc::clone(self);
        let stranger = match self.strangers.queue(owner.uid) {
            Ok(stranger) => stranger,
            Err(user) => {
                self.door.refused(callers::NOT_JUDGED);
                tokio::spawn(async move { hall.turn_away(accepted, user.as_deref(), callers::not_judged).await });
                return;
            }
        };
        let queued = Undecided::queued(&self.shared);
        tokio::spawn(async move {
            let place = stranger.place().await;
            let looking = Undecided::looking(&hall.shared);
            drop(queued);
            let door = Arc::clone(&hall.door);
            let of_the_run = tokio::task::spawn_blocking(move || door.judge.is_of_the_run(owner)).await.unwrap_or(false);
            let is_one = !hall.door.judge.stands_for_many(owner.uid);
            if of_the_run {
                if is_one {
                    hall.strangers.note_of_the_run(&stranger.0);
                }
                hall.serve(accepted, Sender { owner: Some(owner), is_gone: false }, None);
                drop((looking, place));
                return;
            }
            drop(looking);
            hall.door.refused(&if is_one { hall.strangers.refusal(owner.uid) } else { callers::OF_MANY.to_owned() });
            let pause = async {
                // The queue of a user of the run must not wait for its other processes, nor the end of the run for anybody's.
                if !stranger.0.is_of_the_run() && !hall.shared.draining() {
                    tokio::time::sleep(STRANGER_PAUSE).await;
                }
                drop(place);
            };
            tokio::join!(pause, hall.turn_away(accepted, Some(&stranger.0), callers::turned_away));
        });
    }

    /// Answers its requests with this for a moment, if it speaks HTTP and there is a place for it; then closes the connection.
    async fn turn_away(&self, accepted: Accepted, user: Option<&User>, answer: fn(&Request<Incoming>) -> Response<AnswerBody>) {
        if accepted.speech == Speech::Http
            && let Some(_place) = self.strangers.place_to_be_told(user)
        {
            let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request))));
            // Whether it reads the answer is its own affair.
            let _ = timeout(STRANGER_TIME_MAX, self.http.serve_connection(TokioIo::new(accepted.stream), service)).await;
        }
    }

    /// Serves a connection whose client closed it before it was known whose it is, when there is a place: anybody can leave any number of
    /// them, so few are looked at at a time, and so many may wait.
    fn serve_gone(self: &Arc<Self>, accepted: Accepted, sender: Sender) {
        // Of its spans none can say whose they are.
        if accepted.speech == Speech::AppDash {
            self.door.refused(UNPROVEN);
            return;
        }
        if let Ok(place) = Arc::clone(&self.gone).try_acquire_owned() {
            self.serve(accepted, sender, Some(place));
            return;
        }
        if self.shared.waiting.load(Ordering::Relaxed) >= GONE_WAITING_MAX {
            self.door.refused(UNPROVEN);
            return;
        }
        let (hall, waiting) = (Arc::clone(self), Undecided::waiting(&self.shared));
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(place) = Arc::clone(&hall.gone).acquire_owned().await {
                hall.serve(accepted, sender, Some(place));
            }
            drop(waiting);
        });
    }

    /// Serves a connection, which gives its place back at its end.
    fn serve(self: &Arc<Self>, accepted: Accepted, sender: Sender, place: Option<OwnedSemaphorePermit>) {
        let Accepted { stream, peer, ours, speech, .. } = accepted;
        let appdash = || self.open.lock().values().filter(|connection| connection.speech == Speech::AppDash).count();
        if speech == Speech::AppDash && appdash() >= APPDASH_CONNECTIONS_MAX && !self.cut_stalled(Some(Speech::AppDash)) {
            self.door.refused(&format!("more than {APPDASH_CONNECTIONS_MAX} appdash connections at the same time"));
            return;
        }
        // Answers are small and waited for. Where the option cannot be set they are only later.
        let _ = stream.set_nodelay(true);
        let now = tokio::time::Instant::now();
        let connection = Arc::new(Connection {
            speech,
            peer,
            ours,
            since: now,
            sender,
            peer_process: Mutex::default(),
            claims: Mutex::default(),
            requests: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            keeping: AtomicUsize::new(0),
            event_streams: AtomicUsize::new(0),
            end_waker: Mutex::new(None),
            read_to_end: AtomicBool::new(false),
            answered_at: AtomicU64::new(0),
            inside_since: Mutex::default(),
            blocked_since: Mutex::default(),
            progress_at: Mutex::new(now),
            too_slow: AtomicBool::new(false),
            hang_up: Notify::new(),
            cut: Notify::new(),
            shared: Arc::clone(&self.shared),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, Arc::clone(&connection));
        let hall = Arc::clone(self);
        tokio::spawn(async move {
            match speech {
                Speech::Http => serve_http(&hall.http, stream, &hall.door, &connection).await,
                Speech::AppDash => appdash::serve(stream, &hall.door, &connection).await,
            }
            if connection.too_slow.load(Ordering::Relaxed) {
                let what = if speech == Speech::Http { "requests whose head" } else { "appdash packets that" };
                hall.door.refused_of(
                    &connection,
                    &format!("{what} did not come to an end in {} s; the connection was cut", HEAD_TIME_MAX.as_secs()),
                );
            }
            hall.open.lock().remove(&number);
            drop(place);
            hall.shared.happened();
        });
    }

    /// Makes room: by closing who was answered and is idle, the longest idle first, or by cutting who stalls. A connection that was not used
    /// yet is about to be: it is closed only when it was long enough about to.
    fn make_room(&self) {
        let answered_at = |connection: &Arc<Connection>| connection.answered_at.load(Ordering::Relaxed);
        let is_spare = |connection: &&Arc<Connection>| {
            let was_used = answered_at(connection) > 0 || connection.since.elapsed() > UNUSED_MAX;
            connection.speech == Speech::Http && was_used && connection.is_over() && connection.inside_since().is_none()
        };
        let spare = self.open.lock().values().filter(is_spare).min_by_key(|connection| answered_at(connection)).cloned();
        match spare {
            Some(connection) => connection.hang_up.notify_one(),
            None => {
                self.cut_stalled(None);
            }
        }
    }

    /// Cuts the connection that stalls for longest inside something that it does not finish, and says whether there was one. What it began
    /// is lost, and counted.
    fn cut_stalled(&self, speech: Option<Speech>) -> bool {
        let mut open = self.open.lock();
        let stalls = |(number, connection): (&u64, &Arc<Connection>)| {
            let since = connection.stalled_since().filter(|since| since.elapsed() > STALL_IN_NEED_MAX)?;
            speech.is_none_or(|speech| connection.speech == speech).then_some((since, *number))
        };
        let Some((_, number)) = open.iter().filter_map(stalls).min() else { return false };
        let Some(connection) = open.remove(&number) else { return false };
        connection.cut.notify_one();
        let stall = STALL_IN_NEED_MAX.as_secs_f32();
        let reason = format!("requests that stalled for {stall} s while others needed their connections; they were cut");
        self.door.refused_of(&connection, &reason);
        true
    }
}

/// Said where nobody can tell other users' connections from our own.
const NOT_SAID: &str = "the kernel does not say whose connections are: any user of this machine could have sent spans";

impl Acceptor {
    async fn accept_all(&self) -> Infallible {
        loop {
            while self.hall.is_full() {
                self.hall.make_room();
                // Something may also become old enough to be closed.
                let _ = timeout_at(tokio::time::Instant::now() + ROOM_PAUSE, self.hall.shared.room.notified()).await;
            }
            let (accepted, speech) = tokio::select! {
                accepted = self.listeners.http.accept() => (accepted, Speech::Http),
                accepted = self.listeners.appdash.accept() => (accepted, Speech::AppDash),
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Ok(ours) = stream.local_addr() else { continue };
                    self.hall.receive(Accepted { stream, peer, ours, speech, since: Instant::now() });
                }
                // The connection is gone already, or there is no descriptor left for it. It waits in the backlog.
                Err(_) => {
                    self.hall.make_room();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
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
            let before = self.hall.shared.events.load(Ordering::Relaxed);
            for _ in 0..QUIET_TURNS {
                yield_now().await;
            }
            let busy = self.busy();
            if busy == 0 && self.hall.shared.events.load(Ordering::Relaxed) == before {
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
            let waited = if busy == 0 { Ok(()) } else { timeout_at(stalls_at, self.hall.shared.changed.notified()).await };
            // The pauses and yields make this a loop that the deadline must end.
            if waited.is_err() || tokio::time::Instant::now() >= deadline {
                let detail = "requests that were still being sent when the drain deadline had passed";
                self.hall.door.book.add(LossKind::DrainTimedOut, self.hall.inside() as u64, detail);
                let undecided = self.hall.shared.undecided() as u64;
                self.hall.door.book.add(LossKind::RequestsRefused, undecided, callers::NOT_JUDGED);
                return;
            }
        }
    }

    fn keeping(&self) -> bool {
        self.hall.open.lock().values().any(|connection| connection.keeping.load(Ordering::Relaxed) > 0)
    }

    async fn is_on_its_way(&self) -> bool {
        let ours: Vec<_> = [&self.listeners.http, &self.listeners.appdash].into_iter().filter_map(|port| port.local_addr().ok()).collect();
        let served = || self.hall.open.lock().values().map(|connection| connection.peer).collect::<Vec<_>>();
        let clients = self.hall.shared.takes_known_only().then(served);
        tokio::task::spawn_blocking(move || peer::is_on_its_way(&ours, clients.as_deref())).await.unwrap_or(false)
    }

    fn busy(&self) -> usize {
        self.hall.shared.undecided() + self.hall.inside()
    }

    /// Closes the ports and every connection, politely but briefly.
    async fn say_goodbye(self) {
        drop(self.listeners);
        let survivors: Vec<_> = self.hall.open.lock().values().cloned().collect();
        let idle = survivors.iter().filter(|connection| connection.is_idle()).count() as u64;
        let detail = "connections of processes that outlived the command: what they send later is not here";
        self.hall.door.book.add(LossKind::DrainTimedOut, idle, detail);
        for connection in &survivors {
            connection.hang_up.notify_one();
        }
        let deadline = tokio::time::Instant::now() + GOODBYE_MAX;
        while !self.hall.open.lock().is_empty() {
            if timeout_at(deadline, self.hall.shared.changed.notified()).await.is_err() {
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
        _ = served.as_mut() => return,
        () = connection.cut.notified() => return,
        () = connection.hang_up.notified() => {}
    }
    served.as_mut().graceful_shutdown();
    loop {
        tokio::select! {
            _ = served.as_mut() => return,
            () = connection.cut.notified() => return,
            () = tokio::time::sleep(GOODBYE_MAX) => {}
        }
        // It was asked politely, and nothing of it is under way.
        if connection.is_over() {
            return;
        }
    }
}

/// Sends a request to the door that it is for: by content type, then by path.
async fn answer(door: Arc<Door>, connection: Arc<Connection>, request: Request<Incoming>) -> Result<Response<AnswerBody>, Infallible> {
    connection.requests.fetch_add(1, Ordering::Relaxed);
    connection.note_inside(None);
    let grpc = otlp_grpc::is_grpc(&request);
    let objection = callers::objection(&request);
    // Before anything of a body is read: only spans of OpenTelemetry can say by themselves whose they are.
    let can_prove = || objection.is_none() && ["/v1/traces", otlp_grpc::path_of(Signal::Traces)].contains(&request.uri().path());
    if connection.sender_is_gone() && !can_prove() {
        door.refused(UNPROVEN);
        return Ok(callers::refuse(&request, UNPROVEN));
    }
    if let Some(objection) = objection {
        door.refused(objection.kind);
        return Ok(callers::refuse(&request, &objection.reason));
    }
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
