//! How a program sets the SDK up where one call with defaults is not enough.

use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_core::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::layer::{Layered, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

use crate::config::{Config, ProcessFacts, Program};
use crate::layer::{Handle, Layer};
use crate::options::{Logs, Protocol, SpanProcessor};
use crate::registry_guard::{self, Above, RegistryGuard};
use crate::span_counts::SpanCounts;
use crate::{SHUTDOWN_DEADLINE, logs};

/// What [`builder`](crate::builder()) builds: choose, then [`run`](Builder::run) the program or [`init`](Builder::init).
///
/// ```
/// use longpole_sdk::{Logs, SpanProcessor, LevelFilter};
///
/// longpole_sdk::builder()
///     .service_name("shop")
///     .level(LevelFilter::DEBUG)
///     .logs(Logs::Json)
///     .span_processor(SpanProcessor::Longpole)
///     .run(|| { /* the program */ });
/// ```
///
/// Where the environment says something else, it wins for what the program calls itself and for where spans go; the program wins
/// for how they are sent, because such a choice comes from its own command line.
#[must_use = "nothing is set up before `run` or `init`"]
pub struct Builder {
    program: Program,
    level: Option<LevelFilter>,
    logs: Logs,
    within: Duration,
    shares_context: bool,
    get: Variables,
}

/// The value of a variable by its name.
type Variables = Box<dyn Fn(&str) -> Option<String>>;

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("program", &self.program)
            .field("level", &self.level)
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            program: Program::default(),
            level: None,
            logs: Logs::Off,
            within: SHUTDOWN_DEADLINE,
            shares_context: false,
            get: Box::new(crate::environment),
        }
    }

    /// `service.name`, where neither `OTEL_SERVICE_NAME` nor `OTEL_RESOURCE_ATTRIBUTES` says another one.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.program.service = Some(name.into());
        self
    }

    /// An attribute of the resource, such as `service.version`, where `OTEL_RESOURCE_ATTRIBUTES` does not say another value.
    pub fn resource(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.program.resource.push((key.into(), value.into()));
        self
    }

    /// Where spans go (`http://host:port`) where the environment does not say. Without either, nothing is sent.
    pub fn default_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.program.endpoint = Some(endpoint.into());
        self
    }

    /// How spans go over the wire; `OTEL_EXPORTER_OTLP_PROTOCOL` says so where the program does not.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.program.protocol = Some(protocol);
        self
    }

    /// The span processor; `LONGPOLE_SPAN_PROCESSOR` chooses where the program does not.
    pub fn span_processor(mut self, processor: SpanProcessor) -> Self {
        self.program.processor = Some(processor);
        self
    }

    /// Which spans are made, by their level. `RUST_LOG` then is about [`logs`](Builder::logs) only; without a level it is about
    /// both, `info` where it is not set.
    pub fn level(mut self, level: LevelFilter) -> Self {
        self.level = Some(level);
        self
    }

    /// Whether events are written to stderr, and how.
    pub fn logs(mut self, logs: Logs) -> Self {
        self.logs = logs;
        self
    }

    /// How long the collector is waited for at the end, [`SHUTDOWN_DEADLINE`] by default.
    pub fn shutdown_within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// See [`Layer::with_opentelemetry_context`]. OpenTelemetry's span processors do this in any case.
    #[cfg(feature = "opentelemetry")]
    pub fn opentelemetry_context(mut self, shared: bool) -> Self {
        self.shares_context = shared;
        self
    }

    /// Reads variables from elsewhere than the environment, all but `RUST_LOG`.
    pub fn variables(mut self, get: impl Fn(&str) -> Option<String> + 'static) -> Self {
        self.get = Box::new(get);
        self
    }

    /// Sets up, runs the program, sends what is left, and returns what the program returned; see [`run`](crate::run()).
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        let _end = ShutDown(self.init());
        crate::thread_context::with_main_record(body)
    }

    /// Sets up for the whole program. A subscriber that is installed already stays, and nothing is set up; the guard is that of the
    /// [`Layer`] in it then.
    ///
    /// Keep the guard in a variable of `main`: `let _guard = …`. Dropped, it sends what has ended, and spans go on. What ends later, and all
    /// of it where the guard was dropped at once or forgotten, is sent when the process ends by `exit` or by returning from `main`.
    ///
    /// The main thread's record is out of a profiler's reach then, for it takes a frame of `main`: [`run`](Builder::run). Its
    /// journal is not.
    #[must_use = "what has ended is sent when the guard is dropped: keep it to the end of `main`"]
    pub fn init(self) -> Guard {
        if tracing::dispatcher::has_been_set() {
            return Guard { end: End::Theirs, within: self.within };
        }
        let (dispatch, guard) = self.build();
        // Without a subscriber spans cost less than with one that does nothing.
        if dispatch.is::<NoSubscriber>() {
            return guard;
        }
        // Somebody may have been faster by now: theirs stays, and ours ends with the guard.
        if tracing::dispatcher::set_global_default(dispatch).is_ok() {
            #[cfg(feature = "opentelemetry")]
            match &guard.end {
                End::Standard(standard) => standard.make_global(),
                End::Own { shares_context: true, .. } => crate::otel_sdk::set_global_propagators(),
                _ => {}
            }
        }
        guard
    }

    /// Sets up without installing, for a program that does so itself or uses it for a part of its threads.
    #[must_use = "what is left is sent when the guard is dropped"]
    pub fn build(self) -> (Dispatch, Guard) {
        let config = Config::read(&*self.get, &ProcessFacts::of_this(), &self.program);
        let within = self.within;
        if config.disabled {
            let dispatch = match self.logs {
                Logs::Off => Dispatch::none(),
                logs => guarded(registry().with(rust_log()).with(log_layer(logs))),
            };
            return (dispatch, Guard { end: End::Nothing, within });
        }
        #[cfg(feature = "opentelemetry")]
        if config.processor != SpanProcessor::Longpole {
            let standard = std::sync::Arc::new(crate::otel_sdk::OtelSdk::start(config));
            let marker = Marker(std::sync::Arc::clone(&standard));
            let dispatch = match self.level {
                None => {
                    let base = registry().with(rust_log()).with(marker);
                    guarded(base.with(standard.layer()).with(log_layer(self.logs)))
                }
                Some(level) => {
                    let base = registry().with(marker);
                    let spans = standard.layer().with_filter(level);
                    guarded(base.with(spans).with(log_layer(self.logs).with_filter(rust_log())))
                }
            };
            standard.end_with_process(within);
            return (dispatch, Guard { end: End::Standard(standard), within });
        }
        let spans = Layer::new(config);
        #[cfg(feature = "opentelemetry")]
        let spans = spans.with_opentelemetry_context(self.shares_context);
        let handle = spans.handle();
        handle.set_exit_within(within);
        let end = End::Own { handle, shares_context: self.shares_context };
        let dispatch = match self.level {
            None => match self.logs {
                Logs::Off => guarded(registry().with(rust_log()).with(spans)),
                logs => guarded(registry().with(rust_log()).with(spans).with(log_layer(logs))),
            },
            Some(level) => match self.logs {
                Logs::Off => guarded(registry().with(level).with(spans)),
                logs => {
                    let spans = spans.with_filter(level);
                    guarded(registry().with(spans).with(log_layer(logs).with_filter(rust_log())))
                }
            },
        };
        (dispatch, Guard { end, within })
    }
}

/// The registry, and what goes right above it.
fn registry() -> Layered<Above, Registry> {
    tracing_subscriber::registry().with(Above)
}

/// The subscriber, where it can neither panic nor deadlock.
fn guarded(subscriber: impl Subscriber + Send + Sync) -> Dispatch {
    registry_guard::watch_exit();
    Dispatch::new(RegistryGuard::new(subscriber))
}

/// `RUST_LOG`, `info` where it is not set.
fn rust_log() -> EnvFilter {
    EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy()
}

/// Lines on stderr.
fn log_layer<S>(logs: Logs) -> Option<Box<dyn tracing_subscriber::Layer<S> + Send + Sync>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let ansi = std::io::stderr().is_terminal();
    match logs {
        Logs::Off => None,
        Logs::Text => Some(lines.with_ansi(ansi).event_format(logs::TextLine(Format::default().with_ansi(ansi))).boxed()),
        Logs::Json => Some(lines.with_ansi(false).event_format(logs::JsonLine).boxed()),
    }
}

/// By which [`shutdown`](crate::shutdown) finds the standard stack in a subscriber.
#[cfg(feature = "opentelemetry")]
pub(crate) struct Marker(pub(crate) std::sync::Arc<crate::otel_sdk::OtelSdk>);

#[cfg(feature = "opentelemetry")]
impl<S: Subscriber> tracing_subscriber::Layer<S> for Marker {}

/// Sends what has ended when it is dropped, waiting no longer than the deadline of the builder. Spans that end later are still sent.
#[must_use = "what has ended is sent when the guard is dropped: keep it to the end of `main`"]
pub struct Guard {
    end: End,
    within: Duration,
}

enum End {
    Nothing,
    /// Whatever a subscriber of the program's own has of ours.
    Theirs,
    Own {
        handle: Handle,
        #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code, reason = "there is no context to share"))]
        shares_context: bool,
    },
    #[cfg(feature = "opentelemetry")]
    Standard(std::sync::Arc<crate::otel_sdk::OtelSdk>),
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("within", &self.within).field("counts", &self.counts()).finish()
    }
}

impl Guard {
    /// What became of the spans so far.
    pub fn counts(&self) -> SpanCounts {
        match &self.end {
            End::Nothing | End::Theirs => SpanCounts::default(),
            End::Own { handle, .. } => handle.counts(),
            #[cfg(feature = "opentelemetry")]
            End::Standard(standard) => standard.counts(),
        }
    }

    /// Sends what has ended and says what became of the spans; sending goes on. May be called from anywhere, also from inside of a runtime.
    pub fn flush(&self) -> SpanCounts {
        match &self.end {
            End::Nothing => SpanCounts::default(),
            End::Theirs => crate::flush(self.within),
            End::Own { handle, .. } => handle.flush(self.within),
            #[cfg(feature = "opentelemetry")]
            End::Standard(standard) => standard.flush(self.within),
        }
    }

    /// Sends what is left, ends sending, and says what became of the spans; those that end later are lost, and counted. May be called from
    /// anywhere, also from inside of a runtime.
    pub fn shutdown(&self) -> SpanCounts {
        match &self.end {
            End::Nothing => SpanCounts::default(),
            End::Theirs => crate::shutdown(self.within),
            End::Own { handle, .. } => handle.shutdown(self.within),
            #[cfg(feature = "opentelemetry")]
            End::Standard(standard) => standard.shutdown(self.within),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Ends what [`Builder::run`] has set up, also where the program panics.
struct ShutDown(Guard);

impl Drop for ShutDown {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
