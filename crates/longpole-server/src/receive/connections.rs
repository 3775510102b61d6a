//! All connections: which ones get a place, which are refused, and which make room.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use longpole_model::LossKind;
use tokio::net::TcpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::allowed_senders::{Sender, SenderVerdict};

use super::connection::{Connection, Shared, Speech, Undecided};
use super::job::{Content, Job, UNPROVEN};
use super::request_context::RequestContext;
use super::user_quotas::{UserQuota, UserQuotas};
use super::{appdash, refusal, routes};
use crate::answer::AnswerBody;
use crate::limits::{
    APPDASH_CONNECTIONS_MAX, CLOSED_MAX, CLOSED_WAITING_MAX, CONNECTIONS_MAX, HEAD_TIME_MAX, OTHER_USER_PAUSE, REFUSAL_TIME_MAX,
    STALL_IN_NEED_MAX, UNUSED_MAX,
};
use crate::peer_process::{self, SocketOwner};

/// Where connections are served.
pub(super) struct Connections {
    pub(super) context: Arc<RequestContext>,
    pub(super) http: auto::Builder<TokioExecutor>,
    pub(super) shared: Arc<Shared>,
    pub(super) open: OpenConnections,
    pub(super) next: AtomicU64,
    pub(super) user_quotas: UserQuotas,
    /// Since when no place has become free by itself.
    pub(super) scarce_since: Mutex<Option<Instant>>,
    /// Places for connections that their clients have closed.
    pub(super) gone: Arc<Semaphore>,
}

/// The connections that are open.
#[derive(Debug, Default)]
pub(super) struct OpenConnections(Mutex<HashMap<u64, Arc<Connection>>>);

impl OpenConnections {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was accepted. The reactor does not know it yet.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) ours: SocketAddr,
    pub(super) speech: Speech,
    /// Answers the requests that carry no spans.
    pub(super) queries: Option<Router>,
    pub(super) since: Instant,
}

impl Accepted {
    /// Registers it with the reactor.
    fn into_stream(self) -> io::Result<tokio::net::TcpStream> {
        self.stream.set_nonblocking(true)?;
        tokio::net::TcpStream::from_std(self.stream)
    }

    /// Ends it without a word to its client, and leaves nothing of it in the kernel.
    fn reset(self) {
        // Without the option the kernel closes it politely.
        let _ = TcpSocket::from_std_stream(self.stream).set_zero_linger();
    }
}

impl Connections {
    /// No connection yet.
    pub(super) fn new(context: Arc<RequestContext>) -> Self {
        let (user_quotas, gone) = (UserQuotas::new(), Arc::new(Semaphore::new(CLOSED_MAX)));
        let (shared, open) = (Arc::default(), OpenConnections::default());
        let (next, scarce_since) = (AtomicU64::new(0), Mutex::default());
        Connections { context, http: routes::http(), shared, open, next, user_quotas, scarce_since, gone }
    }

    /// Connections that are inside a request.
    pub(super) fn inside(&self) -> usize {
        self.open.lock().values().filter(|connection| !connection.is_idle()).count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.lock().len() + self.shared.looking.load(Ordering::Relaxed) >= CONNECTIONS_MAX
    }

    /// Serves a connection whose client may send, and starts a check for others.
    pub(super) fn receive(self: &Arc<Self>, accepted: Accepted) {
        let known = self.context.sender_check.at_once(accepted.peer, accepted.ours);
        let is_known = matches!(known, SenderVerdict::Sender(sender) if !sender.is_gone);
        if !is_known && self.shared.takes_known_only() {
            // Not counted as an event, because the drain waits while events happen.
            self.context.refused(refusal::TOO_LATE);
            return;
        }
        self.shared.happened();
        match known {
            SenderVerdict::Sender(sender) if sender.is_gone => self.serve_gone(accepted, sender),
            SenderVerdict::Sender(sender) => self.serve(accepted, sender, None),
            SenderVerdict::Foreign(owner) => self.check(accepted, owner),
            SenderVerdict::Slow { never } => {
                let (connections, looking) = (Arc::clone(self), Undecided::looking(&self.shared));
                tokio::spawn(async move {
                    let context = Arc::clone(&connections.context);
                    let (peer, ours, since) = (accepted.peer, accepted.ours, accepted.since);
                    let known = tokio::task::spawn_blocking(move || context.sender_check.by_table(peer, ours, since)).await;
                    match known {
                        Ok(Ok(SenderVerdict::Sender(sender))) if sender.is_gone => connections.serve_gone(accepted, sender),
                        Ok(Ok(SenderVerdict::Sender(sender))) => connections.serve(accepted, sender, None),
                        Ok(Ok(SenderVerdict::Foreign(owner))) => connections.check(accepted, owner),
                        // Only a system that names no owners at all lets everybody in: any client can use up our descriptors.
                        Ok(Err(error)) if never && peer_process::says_never(&error) => {
                            connections.context.book.add_once(LossKind::Environment, OWNERS_UNKNOWN);
                            connections.serve(accepted, Sender { owner: None, is_gone: false }, None);
                        }
                        Ok(Ok(SenderVerdict::Slow { .. }) | Err(_)) | Err(_) => {
                            drop(looking);
                            connections.context.refused(refusal::OWNER_UNKNOWN);
                            connections.refuse(accepted, None, refusal::owner_unknown).await;
                            return;
                        }
                    }
                    drop(looking);
                });
            }
        }
    }

    /// Checks whether a connection of another user belongs to the run, a few of each user at a time. Other users must not take the places
    /// of the run, nor its places for checks.
    fn check(self: &Arc<Self>, accepted: Accepted, owner: SocketOwner) {
        let connections = Arc::clone(self);
        let queued_user = match self.user_quotas.queue(owner.uid) {
            Ok(queued_user) => queued_user,
            Err(user) => {
                self.context.refused(refusal::UNCHECKED);
                self.refuse_at_once(accepted, user);
                return;
            }
        };
        let queued = Undecided::queued(&self.shared);
        tokio::spawn(async move {
            let place = queued_user.place().await;
            let looking = Undecided::looking(&connections.shared);
            drop(queued);
            let context = Arc::clone(&connections.context);
            let of_the_run = tokio::task::spawn_blocking(move || context.sender_check.is_of_the_run(owner)).await.unwrap_or(false);
            let is_one = !connections.context.sender_check.stands_for_many(owner.uid);
            if of_the_run {
                if is_one {
                    connections.user_quotas.note_of_the_run(&queued_user.0);
                }
                connections.serve(accepted, Sender { owner: Some(owner), is_gone: false }, None);
                drop((looking, place));
                return;
            }
            drop(looking);
            connections.context.refused(&if is_one {
                connections.user_quotas.refusal(owner.uid)
            } else {
                refusal::UNMAPPED_USERS.to_owned()
            });
            let pause = async {
                // The queue of a user of the run must not wait for its other processes, nor the end of the run for any process.
                if !queued_user.0.is_of_the_run() && !connections.shared.draining() {
                    tokio::time::sleep(OTHER_USER_PAUSE).await;
                }
                drop(place);
            };
            tokio::join!(pause, connections.refuse(accepted, Some(&queued_user.0), refusal::other_user));
        });
    }

    /// Answers its requests with this refusal, if it speaks HTTP and there is a place for it; closes the connection after
    /// [`REFUSAL_TIME_MAX`] at the latest.
    async fn refuse(&self, accepted: Accepted, user: Option<&UserQuota>, answer: fn(&Request<Incoming>) -> Response<AnswerBody>) {
        if accepted.speech == Speech::Http
            && let Some(_place) = self.user_quotas.place_for_answer(user)
        {
            let Ok(stream) = accepted.into_stream() else { return };
            let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request))));
            // The client may or may not read the answer.
            let _ = timeout(REFUSAL_TIME_MAX, self.http.serve_connection(TokioIo::new(stream), service)).await;
        }
    }

    /// Refuses a connection of a user who has too many. Without a place for an answer it resets the connection now: whoever makes connections
    /// without end must cost less than the connections of the run.
    fn refuse_at_once(self: &Arc<Self>, accepted: Accepted, user: Option<Arc<UserQuota>>) {
        if accepted.speech != Speech::Http || !self.user_quotas.may_answer(user.as_deref()) {
            accepted.reset();
            return;
        }
        let connections = Arc::clone(self);
        tokio::spawn(async move { connections.refuse(accepted, user.as_deref(), refusal::unchecked).await });
    }

    /// Serves a connection that its client closed before the receiver read its owner, when there is a place. Any user can leave any number
    /// of them, so the receiver reads [`CLOSED_MAX`] at a time, and [`CLOSED_WAITING_MAX`] may wait.
    fn serve_gone(self: &Arc<Self>, accepted: Accepted, sender: Sender) {
        // AppDash spans have no resource that could name the run.
        if accepted.speech == Speech::AppDash {
            self.context.refused(UNPROVEN);
            return;
        }
        if let Ok(place) = Arc::clone(&self.gone).try_acquire_owned() {
            self.serve(accepted, sender, Some(place));
            return;
        }
        if self.shared.waiting.load(Ordering::Relaxed) >= CLOSED_WAITING_MAX {
            self.context.refused(UNPROVEN);
            return;
        }
        let (connections, waiting) = (Arc::clone(self), Undecided::waiting(&self.shared));
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(place) = Arc::clone(&connections.gone).acquire_owned().await {
                connections.serve(accepted, sender, Some(place));
            }
            drop(waiting);
        });
    }

    /// Serves a connection, which gives its place back at its end.
    fn serve(self: &Arc<Self>, mut accepted: Accepted, sender: Sender, place: Option<OwnedSemaphorePermit>) {
        let (peer, ours, speech) = (accepted.peer, accepted.ours, accepted.speech);
        let appdash = || self.open.lock().values().filter(|connection| connection.speech == Speech::AppDash).count();
        if speech == Speech::AppDash
            && appdash() >= APPDASH_CONNECTIONS_MAX
            && !self.cut_stalled(Some(Speech::AppDash))
            && !self.cut_idle_appdash()
        {
            self.context.refused(&format!("more than {APPDASH_CONNECTIONS_MAX} appdash connections at the same time"));
            return;
        }
        let queries = accepted.queries.take();
        let Ok(stream) = accepted.into_stream() else {
            self.context.refused(refusal::NO_MEMORY);
            return;
        };
        // Answers are small, and clients wait for them. Without the option they are only later.
        let _ = stream.set_nodelay(true);
        let mut connection = Connection::new(speech, [peer, ours], sender, Arc::clone(&self.shared));
        connection.queries = queries;
        if !self.context.finds_processes {
            connection.has_no_process();
        }
        let connection = Arc::new(connection);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, Arc::clone(&connection));
        let connections = Arc::clone(self);
        tokio::spawn(async move {
            match speech {
                Speech::Http => routes::serve(&connections.http, stream, &connections.context, &connection).await,
                Speech::AppDash => appdash::serve(stream, &connections.context, &connection).await,
            }
            if connection.too_slow.load(Ordering::Relaxed) {
                let what = if speech == Speech::Http { "requests whose head" } else { "appdash packets that" };
                connections.context.refused_of(
                    &connection,
                    &format!("{what} did not finish within {} s; longpole closed the connection", HEAD_TIME_MAX.as_secs()),
                );
            }
            if connection.flooded.load(Ordering::Relaxed) {
                connections.context.refused_of(&connection, "connections that sent frames of HTTP/2 without requests; they were cut");
            }
            connections.open.lock().remove(&number);
            drop(place);
            connections.shared.happened();
        });
    }

    /// Makes room: closes the answered connection that is idle longest, or cuts one that sends no requests or stalls. An unused connection is
    /// about to be used, so it closes only after [`UNUSED_MAX`]. If none of these makes room for [`STALL_IN_NEED_MAX`], it cuts the oldest of a
    /// process that has more than half of all places.
    pub(super) fn make_room(&self) {
        let answered_at = |connection: &Arc<Connection>| connection.answered_at.load(Ordering::Relaxed);
        let is_spare = |connection: &&Arc<Connection>| {
            let was_used = answered_at(connection) > 0 || connection.since.elapsed() > UNUSED_MAX;
            connection.speech == Speech::Http && was_used && connection.is_over() && connection.inside_since().is_none()
        };
        let spare = self.open.lock().values().filter(is_spare).min_by_key(|connection| answered_at(connection)).cloned();
        match spare {
            Some(connection) => {
                self.note_room();
                connection.hang_up.notify_one();
            }
            None if self.cut_unused() || self.cut_stalled(None) => self.note_room(),
            None => self.cut_greedy(),
        }
    }

    /// Notes that there is room, or will be.
    pub(super) fn note_room(&self) {
        *self.scarce_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Cuts the oldest connection whose client sends something all the time, but no whole request, and returns whether there was one.
    fn cut_unused(&self) -> bool {
        let is_such = |connection: &Connection| connection.speech == Speech::Http && connection.is_unused_for(UNUSED_MAX);
        let unused = self.numbers_of(|connection| is_such(connection).then_some(connection.since)).min();
        unused
            .is_some_and(|(_, number)| self.cut(number, "connections that sent no request while others needed their places; they were cut"))
    }

    /// Cuts the oldest connection of a process that has more than half of all places, if no place becomes free by itself.
    fn cut_greedy(&self) {
        let since = *self.scarce_since.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        if since.elapsed() < STALL_IN_NEED_MAX {
            return;
        }
        // Few requests need the search for their process, so it was not made yet.
        let unknown: Vec<_> = self.open.lock().values().filter(|connection| connection.is_to_be_searched()).cloned().collect();
        for connection in unknown {
            self.context.intake.hand(Job::new(Content::Hello, &connection));
        }
        if let Some((most, of)) = self.greediest(|_| true)
            && most > CONNECTIONS_MAX / 2
            && let Some((_, number)) = self.numbers_of(|connection| (connection.known_pid() == Some(of)).then_some(connection.since)).min()
        {
            self.cut(number, "requests of a process that had more than half of all connections while others needed some; they were cut");
        }
    }

    /// Cuts the longest idle AppDash connection of the process that has the most, if it has several, and returns whether there was one. A
    /// server knows no processes: there it is the longest idle one of all.
    fn cut_idle_appdash(&self) -> bool {
        let greediest = self.greediest(|connection| connection.speech == Speech::AppDash).filter(|(most, _)| *most > 1);
        if greediest.is_none() && self.context.finds_processes {
            return false;
        }
        let is_of = |pid: Option<u32>| greediest.is_none_or(|(_, of)| pid == Some(of));
        let idle = self.numbers_of(|connection| {
            let is_idle = connection.is_over() && connection.inside_since().is_none();
            let is_such = connection.speech == Speech::AppDash && is_of(connection.known_pid()) && is_idle;
            is_such.then_some(connection.idle_since())
        });
        let idle = idle.min();
        let reason = match greediest {
            Some(_) => "idle appdash connections of a process that had the most; they were closed for others",
            None => "appdash connections that were idle longest; they were closed for others",
        };
        idle.is_some_and(|(_, number)| self.cut(number, reason))
    }

    /// How many of these connections the process has that has the most of them, and that process.
    fn greediest(&self, is_such: impl Fn(&Connection) -> bool) -> Option<(usize, u32)> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for pid in self.open.lock().values().filter(|connection| is_such(connection)).filter_map(|connection| connection.known_pid()) {
            *counts.entry(pid).or_default() += 1;
        }
        counts.into_iter().map(|(pid, count)| (count, pid)).max()
    }

    /// The numbers of connections that have such a time, with it.
    fn numbers_of(&self, time: impl Fn(&Connection) -> Option<tokio::time::Instant>) -> impl Iterator<Item = (tokio::time::Instant, u64)> {
        let open = self.open.lock();
        let found: Vec<_> = open.iter().filter_map(|(number, connection)| Some((time(connection)?, *number))).collect();
        found.into_iter()
    }

    /// Cuts a connection, which counts as lost for this reason; whether it is still open.
    fn cut(&self, number: u64, reason: &str) -> bool {
        let Some(connection) = self.open.lock().remove(&number) else { return false };
        connection.cut.notify_one();
        self.context.refused_of(&connection, reason);
        true
    }

    /// Cuts the connection that has stalled longest inside a request or packet, and returns whether there was one. The receiver counts the
    /// request or packet as lost.
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
        self.context.refused_of(&connection, &reason);
        true
    }
}

/// The loss if the kernel does not distinguish other users' connections from our own.
const OWNERS_UNKNOWN: &str = "the kernel does not name the owners of connections: any user of this machine could have sent spans";
