//! Accepting connections and, at the end, draining them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use longpole_model::LossKind;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout_at;

use super::connection::Speech;
use super::connections::{Accepted, Connections};
use super::refusal;
use super::request_context::RequestContext;
use crate::limits::{DRAIN_STALL_MAX, DRAIN_UNKNOWN_MAX, GOODBYE_MAX};
use crate::peer_process;

/// Turns of the reactor in which nothing may happen before the drain believes that nothing will.
/// The clients of a server connect again, and lose nothing.
pub(crate) const IDLE_AT_THE_END: &str = "connections of processes that outlived the command: the recording lacks what they send later";

const QUIET_TURNS: usize = 3;

/// Connections that are accepted before the tasks of those that are open go on. The kernel keeps [`BACKLOG`](crate::limits::BACKLOG) connections
/// that wait, and drops those beyond.
const ACCEPTED_AT_ONCE_MAX: u32 = 256;

/// Pause after the operating system refused a connection (no descriptors left) and none of ours could be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Pause before the next search for a connection that can make room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Pause before the next query whether the kernel has delivered everything.
const ON_ITS_WAY_PAUSE: Duration = Duration::from_millis(1);

/// A port. A runtime's own listener would register each connection with the reactor, also those that the receiver resets at once.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) listener: AsyncFd<TcpListener>,
    pub(super) speech: Speech,
    /// Answers the requests that carry no spans.
    pub(super) queries: Option<Router>,
}

/// The ports.
#[derive(Debug)]
pub(super) struct Listeners(pub(super) Vec<Port>);

impl Listeners {
    /// Where the ports of this speech are.
    pub(super) fn addresses_of(&self, speech: Speech) -> Vec<SocketAddr> {
        let ports = self.0.iter().filter(|port| port.speech == speech);
        ports.filter_map(|port| port.listener.get_ref().local_addr().ok()).collect()
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|port| port.listener.get_ref().local_addr().ok()).collect()
    }

    /// The next connection at one of the ports. They are tried in turns that begin with another one each time.
    async fn accept(&self, turn: usize) -> (std::io::Result<(TcpStream, SocketAddr)>, &Port) {
        let count = self.0.len();
        poll_fn(|context| {
            for port in self.0.iter().cycle().skip(turn % count.max(1)).take(count) {
                while let Poll::Ready(ready) = port.listener.poll_read_ready(context) {
                    let accepted = ready.and_then(|mut guard| match guard.try_io(|listener| listener.get_ref().accept()) {
                        Ok(accepted) => accepted.map(Some),
                        Err(_would_block) => Ok(None),
                    });
                    if let Some(accepted) = accepted.transpose() {
                        return Poll::Ready((accepted, port));
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

struct Acceptor {
    listeners: Listeners,
    connections: Arc<Connections>,
}

/// Serves the ports until `finished` gives the deadline, then drains them. Gives the deadline back.
pub(super) async fn serve(listeners: Listeners, context: Arc<RequestContext>, finished: oneshot::Receiver<Instant>) -> Instant {
    let acceptor = Acceptor { listeners, connections: Arc::new(Connections::new(context)) };
    let deadline = {
        let mut accepting = pin!(acceptor.accept_all());
        // A receiver that was dropped instead of finished closes at once.
        let deadline = tokio::select! {
            deadline = finished => deadline.unwrap_or_else(|_| Instant::now()),
            never = &mut accepting => match never {},
        };
        // Only once.
        let _ = acceptor.connections.shared.known_only_from.set(Instant::now() + DRAIN_UNKNOWN_MAX);
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
        let mut turn = 0_u32;
        loop {
            if !self.connections.is_full() {
                self.connections.note_room();
            }
            while self.connections.is_full() {
                self.connections.make_room();
                // Something may also become old enough to be closed.
                let _ = timeout_at(tokio::time::Instant::now() + ROOM_PAUSE, self.connections.shared.room.notified()).await;
            }
            let (accepted, port) = self.listeners.accept(turn as usize).await;
            turn = (turn + 1) % ACCEPTED_AT_ONCE_MAX;
            if turn == 0 {
                yield_now().await;
            }
            match accepted {
                Ok((stream, peer)) => {
                    let Ok(ours) = stream.local_addr() else { continue };
                    let Port { speech, queries, .. } = port;
                    let (speech, queries) = (*speech, queries.clone());
                    self.connections.receive(Accepted { stream, peer, ours, speech, queries, since: Instant::now() });
                }
                // The connection is gone already, or there is no descriptor left for it. It waits in the backlog.
                Err(_) => {
                    self.connections.make_room();
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
            let before = self.connections.shared.events.load(Ordering::Relaxed);
            for _ in 0..QUIET_TURNS {
                yield_now().await;
            }
            let busy = self.busy();
            if busy == 0 && self.connections.shared.events.load(Ordering::Relaxed) == before {
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
            let waited = if busy == 0 { Ok(()) } else { timeout_at(stalls_at, self.connections.shared.changed.notified()).await };
            // The pauses and yields make this a loop that the deadline must end.
            if waited.is_err() || tokio::time::Instant::now() >= deadline {
                let detail = "requests that were still being sent when the drain deadline had passed";
                self.connections.context.book.add(LossKind::DrainTimedOut, self.connections.inside() as u64, detail);
                let undecided = self.connections.shared.undecided() as u64;
                self.connections.context.book.add(LossKind::RequestsRefused, undecided, refusal::UNCHECKED);
                return;
            }
        }
    }

    fn keeping(&self) -> bool {
        self.connections.open.lock().values().any(|connection| connection.keeping.load(Ordering::Relaxed) > 0)
    }

    async fn is_on_its_way(&self) -> bool {
        let ours = self.listeners.addresses();
        let served = || self.connections.open.lock().values().map(|connection| connection.peer).collect::<Vec<_>>();
        let clients = self.connections.shared.takes_known_only().then(served);
        tokio::task::spawn_blocking(move || peer_process::is_on_its_way(&ours, clients.as_deref())).await.unwrap_or(false)
    }

    fn busy(&self) -> usize {
        self.connections.shared.undecided() + self.connections.inside()
    }

    /// Connections that the kernel dropped before the receiver could accept them.
    fn dropped(&self) -> u64 {
        let Some(count) = self.connections.context.count_dropped else { return 0 };
        self.listeners.0.iter().filter_map(|port| count(port.listener.get_ref().as_fd()).ok()).map(u64::from).sum()
    }

    /// Closes the ports and every connection, politely but briefly.
    async fn say_goodbye(self) {
        self.connections.context.book.add(LossKind::RequestsRefused, self.dropped(), refusal::DROPPED);
        drop(self.listeners);
        let survivors: Vec<_> = self.connections.open.lock().values().cloned().collect();
        let idle = survivors.iter().filter(|connection| connection.is_idle()).count() as u64;
        self.connections.context.book.add(LossKind::DrainTimedOut, idle, IDLE_AT_THE_END);
        for connection in &survivors {
            connection.hang_up.notify_one();
        }
        let deadline = tokio::time::Instant::now() + GOODBYE_MAX;
        while !self.connections.open.lock().is_empty() {
            if timeout_at(deadline, self.connections.shared.changed.notified()).await.is_err() {
                return;
            }
        }
    }
}
