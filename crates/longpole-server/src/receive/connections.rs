//! All connections: who gets a place, who is turned away, and who makes room.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use longpole_model::LossKind;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::answer::AnswerBody;
use super::connection::{Connection, Shared, Speech, Undecided};
use super::job::UNPROVEN;
use super::other_users::{OtherUsers, User};
use super::request_context::RequestContext;
use super::senders::{Known, Sender};
use super::{appdash, refusal, routes};
use crate::limits::{
    APPDASH_CONNECTIONS_MAX, CLOSED_MAX, CLOSED_WAITING_MAX, CONNECTIONS_MAX, HEAD_TIME_MAX, OTHER_USER_PAUSE, REFUSAL_TIME_MAX,
    STALL_IN_NEED_MAX, UNUSED_MAX,
};
use crate::peer::{self, SocketOwner};

/// Where connections are served.
pub(super) struct Connections {
    pub(super) context: Arc<RequestContext>,
    pub(super) http: auto::Builder<TokioExecutor>,
    pub(super) shared: Arc<Shared>,
    pub(super) open: Open,
    pub(super) next: AtomicU64,
    pub(super) other_users: OtherUsers,
    /// Places of clients that are gone.
    pub(super) gone: Arc<Semaphore>,
}

/// The connections that are open.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<HashMap<u64, Arc<Connection>>>);

impl Open {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) ours: SocketAddr,
    pub(super) speech: Speech,
    pub(super) since: Instant,
}

impl Connections {
    /// No connection yet.
    pub(super) fn new(context: Arc<RequestContext>) -> Self {
        let (other_users, gone) = (OtherUsers::new(), Arc::new(Semaphore::new(CLOSED_MAX)));
        let (shared, open) = (Arc::default(), Open::default());
        Connections { context, http: routes::http(), shared, open, next: AtomicU64::new(0), other_users, gone }
    }

    /// Connections that are inside a request.
    pub(super) fn inside(&self) -> usize {
        self.open.lock().values().filter(|connection| !connection.is_idle()).count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.lock().len() + self.shared.looking.load(Ordering::Relaxed) >= CONNECTIONS_MAX
    }

    /// Serves a connection whose client may send, and sees to it that of others it is found out.
    pub(super) fn receive(self: &Arc<Self>, accepted: Accepted) {
        let known = self.context.judge.at_once(accepted.peer, accepted.ours);
        let is_known = matches!(known, Known::Sender(sender) if !sender.is_gone);
        if !is_known && self.shared.takes_known_only() {
            // As if it had not come: the drain waits for whatever happens.
            self.context.refused(refusal::TOO_LATE);
            return;
        }
        self.shared.happened();
        match known {
            Known::Sender(sender) if sender.is_gone => self.serve_gone(accepted, sender),
            Known::Sender(sender) => self.serve(accepted, sender, None),
            Known::Foreign(owner) => self.look_into(accepted, owner),
            Known::Slow { never } => {
                let (connections, looking) = (Arc::clone(self), Undecided::looking(&self.shared));
                tokio::spawn(async move {
                    let context = Arc::clone(&connections.context);
                    let (peer, ours, since) = (accepted.peer, accepted.ours, accepted.since);
                    let known = tokio::task::spawn_blocking(move || context.judge.by_table(peer, ours, since)).await;
                    match known {
                        Ok(Ok(Known::Sender(sender))) if sender.is_gone => connections.serve_gone(accepted, sender),
                        Ok(Ok(Known::Sender(sender))) => connections.serve(accepted, sender, None),
                        Ok(Ok(Known::Foreign(owner))) => connections.look_into(accepted, owner),
                        // Only a system that can tell of nobody lets everybody in: descriptors can be had from us by connecting.
                        Ok(Err(error)) if never && peer::says_never(&error) => {
                            connections.context.book.add_once(LossKind::Environment, NOT_SAID);
                            connections.serve(accepted, Sender { owner: None, is_gone: false }, None);
                        }
                        Ok(Ok(Known::Slow { .. }) | Err(_)) | Err(_) => {
                            drop(looking);
                            connections.context.refused(refusal::OWNER_UNKNOWN);
                            connections.turn_away(accepted, None, refusal::owner_unknown).await;
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
        let connections = Arc::clone(self);
        let queued_user = match self.other_users.queue(owner.uid) {
            Ok(queued_user) => queued_user,
            Err(user) => {
                self.context.refused(refusal::UNCHECKED);
                tokio::spawn(async move { connections.turn_away(accepted, user.as_deref(), refusal::unchecked).await });
                return;
            }
        };
        let queued = Undecided::queued(&self.shared);
        tokio::spawn(async move {
            let place = queued_user.place().await;
            let looking = Undecided::looking(&connections.shared);
            drop(queued);
            let context = Arc::clone(&connections.context);
            let of_the_run = tokio::task::spawn_blocking(move || context.judge.is_of_the_run(owner)).await.unwrap_or(false);
            let is_one = !connections.context.judge.stands_for_many(owner.uid);
            if of_the_run {
                if is_one {
                    connections.other_users.note_of_the_run(&queued_user.0);
                }
                connections.serve(accepted, Sender { owner: Some(owner), is_gone: false }, None);
                drop((looking, place));
                return;
            }
            drop(looking);
            connections.context.refused(&if is_one {
                connections.other_users.refusal(owner.uid)
            } else {
                refusal::UNMAPPED_USERS.to_owned()
            });
            let pause = async {
                // The queue of a user of the run must not wait for its other processes, nor the end of the run for anybody's.
                if !queued_user.0.is_of_the_run() && !connections.shared.draining() {
                    tokio::time::sleep(OTHER_USER_PAUSE).await;
                }
                drop(place);
            };
            tokio::join!(pause, connections.turn_away(accepted, Some(&queued_user.0), refusal::other_user));
        });
    }

    /// Answers its requests with this for a moment, if it speaks HTTP and there is a place for it; then closes the connection.
    async fn turn_away(&self, accepted: Accepted, user: Option<&User>, answer: fn(&Request<Incoming>) -> Response<AnswerBody>) {
        if accepted.speech == Speech::Http
            && let Some(_place) = self.other_users.place_to_be_told(user)
        {
            let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request))));
            // Whether it reads the answer is its own affair.
            let _ = timeout(REFUSAL_TIME_MAX, self.http.serve_connection(TokioIo::new(accepted.stream), service)).await;
        }
    }

    /// Serves a connection whose client closed it before it was known whose it is, when there is a place: anybody can leave any number of
    /// them, so few are looked at at a time, and so many may wait.
    fn serve_gone(self: &Arc<Self>, accepted: Accepted, sender: Sender) {
        // Of its spans none can say whose they are.
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
    fn serve(self: &Arc<Self>, accepted: Accepted, sender: Sender, place: Option<OwnedSemaphorePermit>) {
        let Accepted { stream, peer, ours, speech, .. } = accepted;
        let appdash = || self.open.lock().values().filter(|connection| connection.speech == Speech::AppDash).count();
        if speech == Speech::AppDash && appdash() >= APPDASH_CONNECTIONS_MAX && !self.cut_stalled(Some(Speech::AppDash)) {
            self.context.refused(&format!("more than {APPDASH_CONNECTIONS_MAX} appdash connections at the same time"));
            return;
        }
        // Answers are small and waited for. Where the option cannot be set they are only later.
        let _ = stream.set_nodelay(true);
        let connection = Arc::new(Connection::new(speech, [peer, ours], sender, Arc::clone(&self.shared)));
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
                    &format!("{what} did not come to an end in {} s; the connection was cut", HEAD_TIME_MAX.as_secs()),
                );
            }
            connections.open.lock().remove(&number);
            drop(place);
            connections.shared.happened();
        });
    }

    /// Makes room: by closing who was answered and is idle, the longest idle first, or by cutting who stalls. A connection that was not used
    /// yet is about to be: it is closed only when it was long enough about to.
    pub(super) fn make_room(&self) {
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
        self.context.refused_of(&connection, &reason);
        true
    }
}

/// Said where nobody can tell other users' connections from our own.
const NOT_SAID: &str = "the kernel does not say whose connections are: any user of this machine could have sent spans";
