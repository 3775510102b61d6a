//! One connection: the process at its other end, and what is under way on it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::sync::Notify;

use super::allowed_senders::Sender;
use crate::limits::{BODY_BYTES_MAX, CLAIMS_MAX, CLOSED_BODY_BYTES_MAX, INFLATED_BYTES_MAX, PEER_LINKS_MAX};
use crate::peer_process::{self, Peer, PeerFinder, SocketOwner};

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Http,
    AppDash,
}

/// What the `process.pid` of a resource means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The process at the other end.
    Own,
    /// Another process of our namespace: the sender forwards its spans, or is hidden from us.
    SameNamespace,
    /// This process, which has that number in a namespace of its own.
    OwnNamespace(u32),
    /// An unknown process of another namespace.
    Unknown,
}

/// A client of a server, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stranger {
    /// A process of this machine.
    Process(u32),
    /// Some process of this user.
    User(u32),
    /// Whoever sends from this address.
    Address(IpAddr),
}

/// One connection, as its tasks and the drain see it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) speech: Speech,
    pub(super) peer: SocketAddr,
    ours: SocketAddr,
    /// Answers the requests that carry no spans.
    pub(super) queries: Option<Router>,
    pub(super) since: tokio::time::Instant,
    sender: Sender,
    /// The process at the other end, as it was found last; the outer `None` before it was looked for.
    peer_process: Mutex<Option<Option<Peer>>>,
    /// Processes that it says its spans are of, and what to make of that.
    claims: Mutex<HashMap<u32, Claim>>,
    /// Requests whose head was read, so far.
    pub(super) requests: AtomicU64,
    /// Requests whose head was read and whose answer is not made.
    in_flight: AtomicUsize,
    /// Those of them whose body was read.
    pub(super) keeping: AtomicUsize,
    /// Event streams that are open: they are not in flight, and not over.
    event_streams: AtomicUsize,
    /// The task that waits for `keeping` to become 0.
    end_waker: Mutex<Option<Waker>>,
    /// The last read found nothing: all that arrived is in the hands of the HTTP machine.
    read_to_end: AtomicBool,
    /// The moment, on the clock of [`Shared::events`], at which its last request was answered; 0 before the first.
    pub(super) answered_at: AtomicU64,
    /// When something began that is not whole yet: a head, a frame, a packet, an event.
    inside_since: Mutex<Option<tokio::time::Instant>>,
    /// When its client stopped reading answers: nothing more of it is read either.
    blocked_since: Mutex<Option<tokio::time::Instant>>,
    /// When requests in flight made progress last.
    progress_at: Mutex<tokio::time::Instant>,
    /// Nobody searches for its process to say whose its spans are.
    is_of_server: AtomicBool,
    /// The client of a server.
    stranger: OnceLock<Stranger>,
    /// A search for its process waits for the ingester, or was made.
    is_searched: AtomicBool,
    /// It was inside one of these for too long.
    pub(super) too_slow: AtomicBool,
    /// It sent frames of HTTP/2 that carry nothing.
    pub(super) flooded: AtomicBool,
    /// Asks the connection to end.
    pub(super) hang_up: Notify,
    /// Ends it at once, in the middle of what it is doing.
    pub(super) cut: Arc<Notify>,
    shared: Arc<Shared>,
}

impl Connection {
    /// A connection that was accepted a moment ago.
    pub(super) fn new(speech: Speech, [peer, ours]: [SocketAddr; 2], sender: Sender, shared: Arc<Shared>) -> Self {
        let now = tokio::time::Instant::now();
        Connection {
            speech,
            peer,
            ours,
            queries: None,
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
            is_of_server: AtomicBool::new(false),
            stranger: OnceLock::new(),
            is_searched: AtomicBool::new(false),
            too_slow: AtomicBool::new(false),
            flooded: AtomicBool::new(false),
            hang_up: Notify::new(),
            cut: Arc::default(),
            shared,
        }
    }

    /// One that no client opened: what comes by it was fetched, or came in packets. As far as the queue is fair to senders, it is one sender.
    pub(super) fn of_nobody(addresses: [SocketAddr; 2]) -> Self {
        let connection = Connection::new(Speech::Http, addresses, Sender { owner: None, is_gone: false }, Arc::default());
        connection.has_no_process();
        connection
    }

    /// The port that it came to.
    pub(super) fn port(&self) -> u16 {
        self.ours.port()
    }

    /// It is of a server: its process counts as searched for and not found.
    pub(super) fn has_no_process(&self) {
        self.is_of_server.store(true, Ordering::Relaxed);
        *self.peer_process.lock().unwrap_or_else(PoisonError::into_inner) = Some(None);
    }

    /// The process at the other end, if it was found already. Waits for no search.
    pub(super) fn known_pid(&self) -> Option<u32> {
        (*self.peer_process.try_lock().ok()?)?.map(|peer| peer.pid)
    }

    /// Whose requests it carries, if it is a connection of a server. That matters only while requests wait, so the search through `/proc`
    /// is made at the first question, and no span gets the process.
    pub(super) fn stranger(&self, finder: &mut PeerFinder) -> Option<Stranger> {
        self.is_of_server.load(Ordering::Relaxed).then(|| {
            *self.stranger.get_or_init(|| {
                let address = Stranger::Address(self.peer.ip());
                // A packet names no port of its client.
                if !self.peer.ip().is_loopback() || self.peer.port() == 0 {
                    return address;
                }
                let Ok(Some(owner)) = finder.owner(self.peer, self.ours, self.since.into_std()) else { return address };
                let process = finder.holder(owner).map(|peer| Stranger::Process(peer.pid));
                // No span lacks a process because of this search.
                finder.has_given_up();
                process.unwrap_or(Stranger::User(owner.uid))
            })
        })
    }

    /// Whether the caller should have the ingester search for its process. Only the first caller should.
    pub(super) fn is_to_be_searched(&self) -> bool {
        self.known_pid().is_none() && !self.is_searched.swap(true, Ordering::Relaxed)
    }

    /// The process at the other end, which may take a search through `/proc`. If the process has ended, it searches for the one that
    /// holds the socket now.
    pub(super) fn peer_pid(&self, finder: &mut PeerFinder) -> Option<u32> {
        let mut known = self.peer_process.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|peer| peer.is_some_and(|peer| !peer.lives())) {
            let by_table = || finder.owner(self.peer, self.ours, self.since.into_std()).ok()?;
            // Once the client has closed its end, another process may connect from the same address.
            let owner = if self.sender.is_gone { None } else { self.sender.owner.or_else(by_table) };
            *known = Some(owner.and_then(|owner| finder.holder(owner)));
        }
        (*known)?.map(|peer| peer.pid)
    }

    /// What the `process.pid` of a resource means. It is a number in the sender's pid namespace, which need not be ours: in a container
    /// of the command, the first process has pid 1.
    pub(super) fn claim(&self, number: u32, finder: &mut PeerFinder) -> Claim {
        let Some(SocketOwner { inode, .. }) = self.sender.owner else { return Claim::SameNamespace };
        let known = self.claims.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied();
        if let Some(claim) = known {
            return claim;
        }
        let mut links_left = PEER_LINKS_MAX;
        let claim = if peer_process::holds(number, &peer_process::socket_name(inode), &mut links_left) {
            Claim::Own
        } else {
            match self.peer_pid(finder) {
                Some(peer) if peer_process::counts_otherwise(peer) => {
                    if peer_process::is_called(peer, number) {
                        Claim::OwnNamespace(peer)
                    } else {
                        Claim::Unknown
                    }
                }
                Some(_) | None => Claim::SameNamespace,
            }
        };
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.len() < CLAIMS_MAX {
            claims.insert(number, claim);
        }
        claim
    }

    /// The process at the other end, if its resources' `process.pid` leave no doubt which spans are its own. `None` if one of them is
    /// unknown here, because the sender would pass for that process.
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
        if self.sender.is_gone { CLOSED_BODY_BYTES_MAX } else { BODY_BYTES_MAX }
    }

    /// Bytes of its bodies after decompression.
    pub(super) fn inflated_bytes_max(&self) -> usize {
        if self.sender.is_gone { CLOSED_BODY_BYTES_MAX } else { INFLATED_BYTES_MAX }
    }

    /// Whether its client closed it early, so that only its spans themselves can prove that they belong to the run.
    pub(super) fn sender_is_gone(&self) -> bool {
        self.sender.is_gone
    }

    /// Whether the socket of its client is known, so that a search can find the process that holds it.
    pub(super) fn has_owner(&self) -> bool {
        self.sender.owner.is_some()
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

    /// Notes that it ends because of what it sends beside requests.
    pub(super) fn note_flood(&self) {
        self.flooded.store(true, Ordering::Relaxed);
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
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.read_to_end.load(Ordering::Relaxed)
    }

    /// Whether it sends no requests: none is under way, and the last whole one, or its beginning, was this long ago. Whatever it sends beside
    /// them does not count.
    pub(super) fn is_unused_for(&self, time: Duration) -> bool {
        let is_free = !self.has_requests() && self.event_streams.load(Ordering::Relaxed) == 0;
        is_free && self.progress_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > time
    }

    /// When something was read last, or an answer made.
    pub(super) fn idle_since(&self) -> tokio::time::Instant {
        *self.progress_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is lost with it.
    pub(super) fn is_over(&self) -> bool {
        self.is_idle() && self.event_streams.load(Ordering::Relaxed) == 0
    }

    pub(super) fn inside_since(&self) -> Option<tokio::time::Instant> {
        *self.inside_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its client has read nothing of an answer for this long.
    pub(super) fn has_not_read_for(&self, time: Duration) -> bool {
        let since = *self.blocked_since.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() > time)
    }

    /// Since when it has not gone on with what it is in the middle of; `None` where it is in the middle of nothing, or a whole request of it
    /// is being kept.
    pub(super) fn stalled_since(&self) -> Option<tokio::time::Instant> {
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
pub(super) struct InFlight<'a>(&'a Connection);

impl<'a> InFlight<'a> {
    pub(super) fn of(connection: &'a Connection) -> Self {
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

/// What connections share with the listener.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Counts everything that happens: connections made and ended, bytes read, requests answered.
    pub(super) events: AtomicU64,
    /// Wakes the drain.
    pub(super) changed: Notify,
    /// Wakes an acceptor that waits for a connection to become idle or to end.
    pub(super) room: Notify,
    /// Connections that are being checked: whether they may send.
    pub(super) looking: AtomicUsize,
    /// Connections of other users that wait for a check. They take no place of others.
    pub(super) queued: AtomicUsize,
    /// Connections that their clients have closed and that wait for a place. They take no place of others.
    pub(super) waiting: AtomicUsize,
    /// Set when the command has ended: when only connections of our own user, which live, are still taken.
    pub(super) known_only_from: OnceLock<Instant>,
}

impl Shared {
    pub(super) fn happened(&self) -> u64 {
        self.changed.notify_one();
        self.room.notify_one();
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn undecided(&self) -> usize {
        [&self.looking, &self.queued, &self.waiting].map(|number| number.load(Ordering::Relaxed)).iter().sum()
    }

    pub(super) fn draining(&self) -> bool {
        self.known_only_from.get().is_some()
    }

    /// Whether a connection that is made now comes too late to find out whose it is.
    pub(super) fn takes_known_only(&self) -> bool {
        self.known_only_from.get().is_some_and(|from| Instant::now() >= *from)
    }
}

/// Counts a connection as undecided for as long as it lives: one of these numbers.
pub(super) struct Undecided {
    shared: Arc<Shared>,
    number: fn(&Shared) -> &AtomicUsize,
}

impl Undecided {
    pub(super) fn of(shared: &Arc<Shared>, number: fn(&Shared) -> &AtomicUsize) -> Self {
        number(shared).fetch_add(1, Ordering::Relaxed);
        Undecided { shared: Arc::clone(shared), number }
    }

    /// It is being looked into.
    pub(super) fn looking(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.looking)
    }

    /// It is of another user, and waits to be looked into.
    pub(super) fn queued(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.queued)
    }

    /// Its client is gone, and it waits for a place.
    pub(super) fn waiting(shared: &Arc<Shared>) -> Self {
        Undecided::of(shared, |shared| &shared.waiting)
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        (self.number)(&self.shared).fetch_sub(1, Ordering::Relaxed);
        self.shared.happened();
    }
}
