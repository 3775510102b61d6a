//! The server of `longpole serve`: the doors for spans, the store behind them, and what answers about it.
//!
//! ```text
//! 4317  OTLP gRPC            ┐
//! 4318  OTLP HTTP            ├─ receive ─► live_sink ─► LiveStore ◄─ jaeger, zipkin, pages of traces
//! 9411  Zipkin, and queries  │
//! 16686 page, Jaeger's API   ┘
//! 14269 health and metrics
//! ```
//!
//! All ports take all protocols, as one port of a run does; the numbers are those that clients expect. A request is answered when the disk has
//! what was kept of it.

mod jaeger;
mod live_sink;
mod metrics;
mod pages;
mod query_error;
mod zipkin;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use longpole_model::Loss;
use longpole_recording::loss_counters::LossBook;
use longpole_store::live::{LiveOptions, LiveStore};
use longpole_store::{Store, StoreError};
use longpole_wire::Limits;

use self::live_sink::LiveSink;
use self::metrics::Metrics;
use crate::api::causes;
use crate::receive::{Clients, HttpPort, Receiver, ReceiverHandle, ReceiverOptions};
use crate::server;
use crate::wall_clock::now;

/// Pause between looks at what is to do: end a generation, make a segment, remove an old one.
const MAINTENANCE_PAUSE: Duration = Duration::from_secs(1);

/// How long requests under way may take when the server ends.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// The ports of a server. 0 takes a free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// OTLP over gRPC.
    pub otlp_grpc: u16,
    /// OTLP over HTTP.
    pub otlp_http: u16,
    /// Zipkin.
    pub zipkin: u16,
    /// The page and Jaeger's API.
    pub page: u16,
    /// Health and metrics.
    pub admin: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Ports { otlp_grpc: 4317, otlp_http: 4318, zipkin: 9411, page: 16686, admin: 14269 }
    }
}

/// What a server needs.
#[derive(Debug)]
pub struct ServeOptions {
    /// Where it keeps spans.
    pub store: Store,
    /// Addresses of this machine at which it listens.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Ports,
    /// How it keeps them.
    pub live: LiveOptions,
    /// Keep credentials as they came.
    pub keep_credentials: bool,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// One of its ports.
    #[error("{0}")]
    Listen(#[source] io::Error),
}

/// A server that is running.
#[derive(Debug)]
pub struct Server {
    receiver: ReceiverHandle,
    store: LiveStore,
    maintenance: Maintenance,
    /// What of earlier logs could not be read.
    problems: Vec<String>,
    state: Arc<ServerState>,
    addresses: usize,
}

/// What the health endpoints say.
#[derive(Debug, Default)]
struct ServerState {
    is_ready: AtomicBool,
    /// Why the last maintenance failed.
    trouble: Mutex<Option<String>>,
}

impl ServerState {
    fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl Server {
    /// Opens the store, reads the logs that an earlier server left, and opens the ports. When this returns, connections are accepted.
    ///
    /// # Errors
    ///
    /// [`ServeError::Store`] if the store cannot be used, [`ServeError::Listen`] if a port cannot be opened.
    pub fn start(options: ServeOptions) -> Result<Server, ServeError> {
        let limits = Limits::default();
        let mut decode = |head: &longpole_store::RequestHead, body: &[u8]| live_sink::decode(head.encoding, body, &limits).spans;
        let (store, problems) = LiveStore::open(&options.store, options.live, now(), &mut decode)?;
        let (metrics, losses) = (Arc::new(Metrics::default()), Arc::new(LossBook::default()));
        let state = Arc::new(ServerState::default());
        let admin = admin_routes(&store, &metrics, &losses, &state);
        let page = pages::routes(&store).merge(jaeger::routes(store.clone()));
        let zipkin = zipkin::routes(store.clone()).fallback(zipkin::not_found);
        let Ports { otlp_grpc, otlp_http, zipkin: zipkin_port, page: page_port, admin: admin_port } = options.ports;
        let doors = [(page_port, Some(page)), (otlp_grpc, None), (otlp_http, None), (zipkin_port, Some(zipkin)), (admin_port, Some(admin))];
        let http = doors.iter().flat_map(|(port, queries)| {
            options.addresses.iter().map(|address| HttpPort { address: SocketAddr::new(*address, *port), queries: queries.clone() })
        });
        let any_host = options.addresses.iter().any(|address| !address.is_loopback());
        let receiver_options = ReceiverOptions {
            limits,
            keep_credentials: options.keep_credentials,
            losses: Arc::clone(&losses),
            clients: Clients::Anybody { http: http.collect(), appdash: Vec::new(), any_host },
            ..ReceiverOptions::default()
        };
        let sink = LiveSink { store: store.clone(), limits, metrics, losses, appended: HashMap::new() };
        let receiver = Receiver::start(receiver_options, Box::new(sink)).map_err(ServeError::Listen)?;
        let maintenance = Maintenance::start(store.clone(), Arc::clone(&state)).map_err(ServeError::Listen)?;
        state.is_ready.store(true, Ordering::Relaxed);
        Ok(Server { receiver, store, maintenance, problems, state, addresses: options.addresses.len() })
    }

    /// What of earlier logs could not be read, as lines for people.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Where it listens, by what comes there: the first of its addresses.
    pub fn addresses(&self) -> Addresses {
        let at = |door: usize| self.receiver.http_addresses().get(door * self.addresses).copied();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Addresses {
            page: at(0).unwrap_or(any),
            otlp_grpc: at(1).unwrap_or(any),
            otlp_http: at(2).unwrap_or(any),
            zipkin: at(3).unwrap_or(any),
            admin: at(4).unwrap_or(any),
        }
    }

    /// Its store.
    pub fn store(&self) -> &LiveStore {
        &self.store
    }

    /// Ends: takes no more connections, answers the requests under way, and leaves the log to the next start. What is missing is returned.
    pub fn end(self) -> Vec<Loss> {
        self.state.is_ready.store(false, Ordering::Relaxed);
        let losses = self.receiver.finish(DRAIN_MAX);
        self.maintenance.end();
        losses
    }
}

/// Waits for a signal to end (SIGINT, SIGTERM, SIGHUP; Ctrl-C on systems other than Unix). From now on these signals do not end the process by
/// themselves.
///
/// # Errors
///
/// If the system refuses to watch for them.
pub fn wait_for_signal() -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(server::end_signal())
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The page and Jaeger's API.
    pub page: SocketAddr,
    /// OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP over HTTP.
    pub otlp_http: SocketAddr,
    /// Zipkin.
    pub zipkin: SocketAddr,
    /// Health and metrics.
    pub admin: SocketAddr,
}

fn admin_routes(store: &LiveStore, metrics: &Arc<Metrics>, losses: &Arc<LossBook>, state: &Arc<ServerState>) -> Router {
    let readiness = |state: Arc<ServerState>| {
        move || {
            let (is_ready, trouble) = (state.is_ready.load(Ordering::Relaxed), state.trouble());
            async move {
                match trouble {
                    _ if !is_ready => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
                    Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
                    None => (StatusCode::OK, "ready\n".to_owned()),
                }
            }
        }
    };
    let (store, metrics, losses) = (store.clone(), Arc::clone(metrics), Arc::clone(losses));
    let measured = move || {
        let text = metrics.text(store.figures(), &losses.list());
        async move { ([(http::header::CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    Router::new()
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(readiness(Arc::clone(state))))
        // What Jaeger's own health check is.
        .route("/", get(readiness(Arc::clone(state))))
        .route("/metrics", get(measured))
}

/// The thread that makes segments and removes old ones.
#[derive(Debug)]
struct Maintenance {
    thread: JoinHandle<()>,
    over: Arc<(Mutex<bool>, Condvar)>,
}

impl Maintenance {
    fn start(store: LiveStore, state: Arc<ServerState>) -> io::Result<Maintenance> {
        let over: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let is_over = Arc::clone(&over);
        let thread = thread::Builder::new().name("longpole-segments".to_owned()).spawn(move || {
            let (flag, changed) = &*is_over;
            let mut guard = flag.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                let until = Instant::now() + MAINTENANCE_PAUSE;
                while !*guard && Instant::now() < until {
                    let left = until.saturating_duration_since(Instant::now());
                    guard = changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                if *guard {
                    return;
                }
                drop(guard);
                state.set_trouble(store.maintain(now(), false).err().map(|error| format!("failed to {}", causes(&error))));
                guard = flag.lock().unwrap_or_else(PoisonError::into_inner);
            }
        })?;
        Ok(Maintenance { thread, over })
    }

    fn end(self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_one();
        // A panic of it has printed itself.
        let _ = self.thread.join();
    }
}
