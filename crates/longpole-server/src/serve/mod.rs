//! The server of `longpole serve`: the doors for spans, the store behind them, and what answers about it.
//!
//! ```text
//! spans of OpenTelemetry, Zipkin, Jaeger, AppDash ─► receive ─► live_sink ─► LiveStore ◄─ jaeger, zipkin, pages of traces ◄─ queries
//! ```
//!
//! All ports of HTTP take all protocols over it, as one port of a run does; the numbers are those that clients expect ([`Door`]). A request is answered when the disk has
//! what was kept of it.

mod found_traces;
mod grpc_queries;
mod jaeger;
mod jaeger_v3;
mod live_sink;
mod metrics;
mod pages;
mod ports;
mod profiles;
mod pushed;
mod pyroscope;
mod query_error;
mod query_turns;
mod question;
mod sampling;
mod server_state;
mod shared_poles;
mod starting;
mod zipkin;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use longpole_model::{Loss, LossKind, Timestamp};
use longpole_recording::loss_counters::LossBook;
use longpole_recording::memory;
use longpole_recording::view::ServerView;
use longpole_store::live::{LiveOptions, LiveStore};
use longpole_store::{Store, StoreError};
use longpole_wire::Limits;

use self::live_sink::LiveSink;
use self::metrics::Metrics;
use self::ports::Transport;
pub use self::ports::{Door, Ports};
use self::pushed::Pushed;
use self::query_turns::QueryTurns;
pub use self::sampling::{Strategies, StrategiesError};
use self::server_state::ServerState;
use self::starting::Starting;
use crate::api::causes;
use crate::off_the_reactor::{Unfinished, off_the_reactor};
use crate::receive::{
    AccessTokens, AllowedOrigins, Clients, HttpPort, IDLE_AT_THE_END, MemoryAccount, OpenPorts, Receiver, ReceiverHandle, ReceiverOptions,
    Scrapes,
};
use crate::server;
use crate::wall_clock::now;

/// The longest pause between looks at what is to do: end a generation, make a segment, remove an old one; and the shortest.
const MAINTENANCE_PAUSE_MAX: Duration = Duration::from_secs(1);
const MAINTENANCE_PAUSE_MIN: Duration = Duration::from_millis(10);

/// How long after its start a server removes nothing for its age: the clock of a machine that starts may be days ahead, until the network
/// sets it. Less where spans are to be kept for less.
const CLOCK_GRACE: Duration = Duration::from_secs(3600);

/// How long requests under way may take when the server ends.
const DRAIN_MAX: Duration = Duration::from_secs(5);

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
    /// Web pages that may send spans.
    pub origins: AllowedOrigins,
    /// Tokens of its clients; without any, nobody needs one.
    pub tokens: Option<AccessTokens>,
    /// How services are to sample their traces.
    pub strategies: Strategies,
    /// Processes whose profiles it fetches.
    pub scrapes: Scrapes,
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
    /// The doors of the receiver's addresses, in their order.
    doors: Vec<Door>,
}

impl Server {
    /// Opens the ports and the store, and reads the logs that an earlier server left. Clients may connect from the first moment on: health and
    /// the page say that it reads the logs, and the others wait. When this returns, all are answered.
    ///
    /// # Errors
    ///
    /// [`ServeError::Store`] if the store cannot be used, [`ServeError::Listen`] if a port cannot be opened.
    pub fn start(options: ServeOptions) -> Result<Server, ServeError> {
        let at = |transport| options.ports.addresses(transport, &options.addresses);
        let http: Vec<(Door, SocketAddr)> = at(Transport::Http);
        let (udp, appdash) = (at(Transport::Udp), at(Transport::AppDash));
        let doors: Vec<Door> = http.iter().chain(&udp).chain(&appdash).map(|(door, _)| *door).collect();
        let addresses = |list: Vec<(Door, SocketAddr)>| list.into_iter().map(|(_, address)| address).collect();
        let needs_token = options.tokens.is_some();
        let mut clients = Clients::Anybody {
            http: http.into_iter().map(|(_, address)| HttpPort { address, queries: None }).collect(),
            udp: addresses(udp),
            appdash: addresses(appdash),
            any_host: options.addresses.iter().any(|address| !address.is_loopback()),
            origins: options.origins,
            tokens: options.tokens,
        };
        // First, because a port that another program has is an error at once.
        let open_ports = OpenPorts::of(&clients).map_err(ServeError::Listen)?;
        let early = doors.iter().enumerate().filter(|(_, door)| matches!(door, Door::Admin | Door::Page));
        let early = early.map(|(place, _)| open_ports.another_listener(place)).collect::<io::Result<_>>();
        let starting = early.and_then(Starting::serve).map_err(ServeError::Listen)?;
        let limits = Limits::default();
        let mut decode = |head: &longpole_store::RequestHead, body: &[u8]| live_sink::decode(head.encoding, body, &limits).spans;
        let pause = Duration::from_nanos(options.live.generation_nanos).clamp(MAINTENANCE_PAUSE_MIN, MAINTENANCE_PAUSE_MAX);
        let clock_grace = options.live.keep_nanos.map_or(CLOCK_GRACE, |keep| CLOCK_GRACE.min(Duration::from_nanos(keep)));
        let keep_bytes = options.live.keep_bytes;
        let (store, problems) = LiveStore::open(&options.store, options.live, now(), &mut decode)?;
        let (metrics, losses) = (Arc::new(Metrics::default()), Arc::new(LossBook::default()));
        problems.iter().for_each(|problem| losses.add(LossKind::WalDamaged, 1, problem));
        let memory = Arc::new(MemoryAccount::limited(memory::most_resident_bytes().unwrap_or(u64::MAX)));
        memory.note_store(store.memory_bytes());
        let pushed = Pushed::open(options.store.root(), memory.queries(), keep_bytes)?;
        let state = Arc::new(ServerState::default());
        let admin = admin_routes(&store, &metrics, &losses, &memory, &state);
        let turns = QueryTurns::new(Arc::clone(&metrics), &memory);
        // Each HTTP port takes what any of them takes, so the page names its own for a door that is closed.
        let place_of = |wanted| doors.iter().position(|door| *door == wanted);
        let port_of = |wanted| place_of(wanted).or_else(|| place_of(Door::Page)).and_then(|place| open_ports.port_of(place)).map(u32::from);
        let view = ServerView {
            traces: true,
            otlp_http_port: port_of(Door::OtlpHttp),
            otlp_grpc_port: port_of(Door::OtlpGrpc),
            zipkin_port: port_of(Door::Zipkin),
            pyroscope_port: port_of(Door::Pyroscope),
            needs_token,
        };
        let queries = |door| match door {
            Door::Page => {
                let pages = pages::routes(&store, &pushed, view, memory.queries())
                    .merge(profiles::routes(store.clone()))
                    .merge(jaeger::routes(store.clone()))
                    .merge(jaeger_v3::routes(store.clone()));
                // A recording that comes is no query.
                Some(turns.of(pages).merge(pushed.routes()))
            }
            Door::JaegerQuery | Door::SamplingGrpc | Door::JaegerGrpc => {
                Some(turns.of(grpc_queries::routes(store.clone(), options.strategies.clone())))
            }
            Door::Pyroscope => Some(turns.of(pyroscope::routes(store.clone()))),
            Door::Sampling => Some(sampling::routes(options.strategies.clone())),
            Door::Zipkin => Some(turns.of(zipkin::routes(store.clone()).fallback(zipkin::not_found))),
            Door::Admin => Some(admin.clone()),
            _ => None,
        };
        if let Clients::Anybody { http, .. } = &mut clients {
            http.iter_mut().zip(&doors).for_each(|(port, door)| port.queries = queries(*door));
        }
        let receiver_options = ReceiverOptions {
            limits,
            keep_credentials: options.keep_credentials,
            losses: Arc::clone(&losses),
            memory: Arc::clone(&memory),
            clients,
            scrapes: options.scrapes,
            ..ReceiverOptions::default()
        };
        let sink = LiveSink {
            store: store.clone(),
            limits,
            metrics,
            memory: Arc::clone(&memory),
            state: Arc::clone(&state),
            requests: HashMap::new(),
        };
        starting.end();
        let receiver = Receiver::start_at(open_ports, receiver_options, Box::new(sink)).map_err(ServeError::Listen)?;
        let maintenance = Maintenance::start(store.clone(), pushed, pause, clock_grace, Arc::clone(&memory), Arc::clone(&state))
            .map_err(ServeError::Listen)?;
        state.set_ready(true);
        Ok(Server { receiver, store, maintenance, problems, state, doors })
    }

    /// What of earlier logs could not be read, as lines for people.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Where it listens, by what comes there: the first of its addresses, `None` where the door is closed.
    pub fn address(&self, door: Door) -> Option<SocketAddr> {
        let place = self.doors.iter().position(|open| *open == door)?;
        self.receiver.addresses().nth(place)
    }

    /// Its store.
    pub fn store(&self) -> &LiveStore {
        &self.store
    }

    /// Ends: takes no more connections, answers the requests under way, and leaves the log to the next start. What is missing is returned.
    pub fn end(self) -> Vec<Loss> {
        self.state.set_ready(false);
        let losses = self.receiver.finish(DRAIN_MAX);
        self.maintenance.end();
        losses.into_iter().filter(|loss| loss.detail != IDLE_AT_THE_END).collect()
    }
}

/// The signals to end a server: SIGINT, SIGTERM, SIGHUP; Ctrl-C on systems other than Unix.
#[derive(Debug)]
pub struct Signals {
    runtime: tokio::runtime::Runtime,
    watched: server::EndSignals,
}

impl Signals {
    /// From now on these signals do not end the process by themselves.
    ///
    /// # Errors
    ///
    /// If the system refuses to watch for them.
    pub fn watch() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let watched = runtime.block_on(server::EndSignals::watch())?;
        Ok(Signals { runtime, watched })
    }

    /// Waits for the next one.
    ///
    /// # Errors
    ///
    /// If the system refuses to watch for them.
    pub fn wait(&mut self) -> io::Result<()> {
        self.runtime.block_on(self.watched.wait())
    }
}

fn admin_routes(
    store: &LiveStore,
    metrics: &Arc<Metrics>,
    losses: &Arc<LossBook>,
    memory: &Arc<MemoryAccount>,
    state: &Arc<ServerState>,
) -> Router {
    let readiness = |state: Arc<ServerState>| {
        let store = store.clone();
        move || {
            let trouble = state.trouble();
            let damaged: String = store.damaged().iter().map(|line| format!("{line}\n")).collect();
            async move {
                match trouble {
                    Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
                    None => (StatusCode::OK, format!("ready\n{damaged}")),
                }
            }
        }
    };
    let (store, metrics, losses, memory) = (store.clone(), Arc::clone(metrics), Arc::clone(losses), Arc::clone(memory));
    let text = Arc::new(move || metrics.text(store.figures(), store.damaged().len() as u64, &memory, &losses.list()));
    let measured = move || {
        let text = Arc::clone(&text);
        // Figures of the store wait for what is pushed at this moment.
        async move {
            let text = off_the_reactor(move || Ok::<_, Unfinished>(text())).await;
            text.map(|text| ([(http::header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
                .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
        }
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
    /// Nothing comes; it is closed when the thread ends.
    ended: mpsc::Receiver<()>,
    over: Arc<(Mutex<bool>, Condvar)>,
}

impl Maintenance {
    /// `grace` is how long after the start no segment is too old.
    fn start(
        store: LiveStore,
        pushed: Pushed,
        pause: Duration,
        grace: Duration,
        memory: Arc<MemoryAccount>,
        state: Arc<ServerState>,
    ) -> io::Result<Maintenance> {
        let over: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let is_over = Arc::clone(&over);
        let (is_there, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("longpole-segments".to_owned()).spawn(move || {
            let _is_there = is_there;
            let (flag, changed) = &*is_over;
            // A step of the wall clock makes no segment older.
            let (begun, since) = (now(), Instant::now());
            let age_at = || {
                let passed = since.elapsed();
                if passed < grace {
                    return Timestamp(0);
                }
                Timestamp(begun.unix_nanos().saturating_add(i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)))
            };
            let mut guard = flag.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                let until = Instant::now() + pause;
                while !*guard && Instant::now() < until {
                    let left = until.saturating_duration_since(Instant::now());
                    guard = changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                if *guard {
                    return;
                }
                drop(guard);
                let maintained = pushed.keep_within(|kept| store.maintain_at(now(), age_at(), memory.is_short(), kept));
                memory.note_store(store.memory_bytes());
                state.set_maintenance_trouble(maintained.err().map(|error| format!("failed to {}", causes(&error))));
                if state.has_failed_append() && store.probe_disk().is_ok() {
                    state.note_writable();
                }
                guard = flag.lock().unwrap_or_else(PoisonError::into_inner);
            }
        })?;
        Ok(Maintenance { thread, ended, over })
    }

    fn end(self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_one();
        // A segment of tens of millions of events takes minutes to write. It is given up: its log stays, and the next server reads that.
        if let Err(RecvTimeoutError::Disconnected) = self.ended.recv_timeout(DRAIN_MAX) {
            // A panic of it has printed itself.
            let _ = self.thread.join();
        }
    }
}
