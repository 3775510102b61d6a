//! Sends the spans of a program that uses [`tracing`] over OTLP, and says at every moment, to a profiler that can look at the
//! program's stacks, which span each thread works for.
//!
//! **You bring** the spans, made with `tracing`, and the address of a collector in `OTEL_EXPORTER_OTLP_ENDPOINT`. Under
//! `longpole run -- PROGRAM` the address is set for you.
//!
//! ```
//! use tracing::{info, info_span, instrument};
//!
//! #[instrument]
//! fn resize(width: u32) {
//!     info!(quality = 80, "resized");
//! }
//!
//! fn main() {
//!     longpole_sdk::run(|| {
//!         let _request = info_span!("GET /picture", otel.kind = "server").entered();
//!         resize(640);
//!     })
//! }
//! ```
//!
//! **It does** three things:
//!
//! - Spans become OTLP spans with typed attributes, events and links, and are sent as protobuf over HTTP by one plain thread.
//! - The current span of each thread is published in a [record](#the-context-record) that costs a few nanoseconds to write, so
//!   that a profiler can split its samples by span, exactly, also when tasks move between the threads of a runtime.
//! - Trace context travels: [`current_traceparent`] to send, [`SpanExt::set_parent_traceparent`] to receive, and a `TRACEPARENT`
//!   in the environment becomes the parent of the spans that have none.
//!
//! **It refuses** to depend on an async runtime of the program, to speak TLS or to a proxy (a collector stands on the machine or
//! beside it), to send metrics or logs (events go with their span; [`Logs`] writes them to stderr as well), and to lose spans in
//! silence: what is lost is counted ([`SpanCounts`]), told once per outage on stderr, and sent along as the attribute
//! `longpole.dropped_spans` of the instrumentation scope.
//!
//! **It never hangs.** [`run`] and [`shutdown`] wait for a collector no longer than the caller allows, [`SHUTDOWN_DEADLINE`] in `run`,
//! from any thread, inside of any runtime.
//!
//! **It sends the last spans.** [`run`] sends what is left; [`init`] gives a guard that does; and when the process ends by
//! `std::process::exit` or by returning from `main`, what was not sent is sent then, within the same deadline, whoever forgot the
//! guard. What ends a program at once (`abort`, a signal that is not handled, `_exit`, `panic = "abort"`) loses the spans that are
//! not sent: `longpole run` knows them by their threads' journals and says how many never arrived.
//!
//! # Choose
//!
//! [`builder()`] chooses the level, logs with trace ids, the resource, the protocol, and who sends: [`SpanProcessor`]. With the feature
//! `opentelemetry` that can be OpenTelemetry's own stack, set up so that it does not hang either, and spans can go over gRPC.
//!
//! # With a subscriber of your own
//!
//! [`run`] installs a subscriber if there is none. To have more layers than this one, install it first:
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! fn main() {
//!     tracing_subscriber::registry().with(longpole_sdk::layer()).with(tracing_subscriber::fmt::layer()).init();
//!     longpole_sdk::run(|| { /* the program */ })
//! }
//! ```
//!
//! # Environment
//!
//! Spans go to `OTEL_EXPORTER_OTLP_ENDPOINT`; where it is not set, nothing is sent and no thread is started. All variables, and
//! which span processor honours which, are in the README of this crate, beside what a span costs.
//!
//! # Fields with a meaning
//!
//! As in `tracing-opentelemetry`: `otel.name`, `otel.kind`, `otel.status_code` (`ok`, `error`) and `otel.status_description` set
//! what they say. An event of level `ERROR` marks its span as failed. `thread.id` is the kernel's number of the thread that
//! made the span.
//!
//! # The context record
//!
//! Its bytes are specified in longpole's `docs/formats/span-context.md`. Each thread has it in its static thread-local storage,
//! which on Linux is part of the thread's stack, except for the main thread: there it lies in a frame of [`run`], and the
//! profiler sees no exact spans of a main thread that is not inside `run`. The record is published with or without a collector.
//! A program that makes its spans with another library publishes them with [`enter_span_context`], one that makes them with the
//! OpenTelemetry API with `publish_opentelemetry_context` (feature `opentelemetry`).
//!
//! # The journal
//!
//! Under `longpole run` each thread also writes down when which span became its current one, into a ring of 320 KiB in memory that
//! outlives it, so that the profiler knows the exact time of every span, however short, and whose a sample or a wait is where it
//! cannot see the record. That costs two readings of the clock for a pair of enter and exit. The thread never waits for whoever
//! reads; the reader counts entries that were overwritten before it read them. Where a journal cannot be made, or grown, the SDK says
//! so once on stderr and goes on without.
//!
//! # Memory
//!
//! With the feature `heap`, `heap` has a global allocator that samples: which functions and which spans hold the memory in use.
//!
//! # Forks
//!
//! A child made by `fork` without `exec` publishes its record, keeps a journal of its own, and passes contexts on; it sends no
//! spans, for the thread that would do so exists in its parent only.
//!
//! # Why it is fast
//!
//! A span is encoded by the threads that make and end it, into buffers they keep, straight to the bytes that are sent. Where
//! it stands in the source is encoded once per place; the thread's name once per thread; ids come from a generator per thread.

#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod at_exit;
mod builder;
mod config;
mod current_span;
mod diagnostic;
mod encode;
mod exporter;
mod forks;
#[cfg(feature = "heap")]
pub mod heap;
mod layer;
mod locks;
mod logs;
mod options;
#[cfg(feature = "opentelemetry")]
mod otel_context;
#[cfg(feature = "opentelemetry")]
mod otel_sdk;
mod outage;
mod own_threads;
mod process_context;
mod propagation;
mod registry_guard;
mod span_context;
mod span_counts;
mod span_stack;
mod sys;
mod thread_context;
mod transport;

use std::marker::PhantomData;
use std::time::Duration;

pub use tracing_subscriber::filter::LevelFilter;

pub use crate::builder::{Builder, Guard};
pub use crate::layer::{Handle, Layer, SpanExt};
pub use crate::options::{Logs, Protocol, SpanProcessor, UnknownName};
#[cfg(feature = "opentelemetry")]
pub use crate::otel_context::publish_opentelemetry_context;
pub use crate::span_context::TraceparentError;
pub use crate::span_counts::SpanCounts;

/// The crates of OpenTelemetry that the feature `opentelemetry` is built on, in the versions that fit together.
#[cfg(feature = "opentelemetry")]
pub mod otel {
    pub use {opentelemetry, opentelemetry_otlp, opentelemetry_sdk, tracing_opentelemetry};
}

/// How long [`run`] waits for the collector at the end: so that a program with nothing to do starts and stops within two seconds
/// whatever the collector does.
pub const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(1_500);

/// Runs a program: installs a subscriber if there is none ([`init`]), puts the main thread's context record where a profiler
/// finds it, runs `body`, sends what is left ([`shutdown`], within [`SHUTDOWN_DEADLINE`]) and returns what `body` returned.
///
/// If `body` panics, the spans are sent as well, and the panic goes on.
///
/// ```
/// fn main() -> std::process::ExitCode {
///     longpole_sdk::run(|| std::process::ExitCode::SUCCESS)
/// }
/// ```
pub fn run<T>(body: impl FnOnce() -> T) -> T {
    builder().run(body)
}

/// As [`run`], for a program that knows its service name: `service.name` is this where the environment does not say.
///
/// ```
/// longpole_sdk::run_service("shop", || { /* the program */ });
/// ```
pub fn run_service<T>(name: &str, body: impl FnOnce() -> T) -> T {
    builder().service_name(name).run(body)
}

/// Sets the SDK up by choice: level, logs, resource, protocol, span processor.
pub fn builder() -> Builder {
    Builder::new()
}

/// Installs, for the whole program, a subscriber of [`layer()`] and a filter by `RUST_LOG` (`info` where it is not set), unless
/// a subscriber is installed already or `OTEL_SDK_DISABLED` says not to. For programs that cannot put their `main` into [`run`].
///
/// Keep the guard to the end of `main`. It sends what has ended when it is dropped; what ends later is sent when the process ends.
///
/// ```
/// let _guard = longpole_sdk::init();
/// // the program
/// ```
#[must_use = "what has ended is sent when the guard is dropped: keep it to the end of `main`"]
pub fn init() -> Guard {
    builder().init()
}

/// A variable of the environment; none for a program with more rights than its caller, who could send its spans, and write its files, anywhere.
fn environment(name: &str) -> Option<String> {
    if sys::has_more_rights_than_its_caller() { None } else { std::env::var(name).ok() }
}

/// The layer, configured by the environment.
pub fn layer() -> Layer {
    layer_from(environment)
}

/// The layer, configured by variables that `get` returns the values of, for programs that keep their settings elsewhere.
///
/// ```
/// let layer = longpole_sdk::layer_from(|name| match name {
///     "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://localhost:4318".into()),
///     "OTEL_SERVICE_NAME" => Some("shop".into()),
///     _ => None,
/// });
/// ```
pub fn layer_from(get: impl Fn(&str) -> Option<String>) -> Layer {
    let program = config::Program { processor: Some(SpanProcessor::Longpole), ..config::Program::default() };
    Layer::new(config::Config::read(&get, &config::ProcessFacts::of_this(), &program))
}

/// Sends the spans that have ended and stops sending, for the [`Layer`] of the current subscriber. Returns when that is done,
/// or when `within` is over, whatever the collector does, and says what became of the spans.
pub fn shutdown(within: Duration) -> SpanCounts {
    #[cfg(feature = "opentelemetry")]
    if let Some(standard) = current_standard() {
        return standard.shutdown(within);
    }
    current_handle().map(|handle| handle.shutdown(within)).unwrap_or_default()
}

/// Sends the spans that have ended by now, for the [`Layer`] of the current subscriber, and goes on: see [`Handle::flush`].
pub fn flush(within: Duration) -> SpanCounts {
    #[cfg(feature = "opentelemetry")]
    if let Some(standard) = current_standard() {
        return standard.flush(within);
    }
    current_handle().map(|handle| handle.flush(within)).unwrap_or_default()
}

// What is found is taken out first: the dispatcher is not to be held while we wait.
fn current_handle() -> Option<Handle> {
    tracing::dispatcher::get_default(|dispatch| dispatch.downcast_ref::<Layer>().map(Layer::handle))
}

#[cfg(feature = "opentelemetry")]
fn current_standard() -> Option<std::sync::Arc<otel_sdk::OtelSdk>> {
    tracing::dispatcher::get_default(|dispatch| dispatch.downcast_ref::<builder::Marker>().map(|marker| marker.0.clone()))
}

/// What the README shows, tried.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The headers that a request of the current span carries: see [`SpanExt::inject`].
pub fn inject(set: impl FnMut(&'static str, &str)) {
    tracing::Span::current().inject(set);
}

/// The span that is current on this thread as a W3C `traceparent`, to send with a request; `None` outside of any span.
pub fn current_traceparent() -> Option<String> {
    current_span::current().map(|context| context.to_traceparent())
}

/// Publishes a span of another tracing library as the current one of this thread, until the guard is dropped. `None` where an
/// id is zero, which is W3C's spelling of "no span". Where the flags say "sampled" (1), a recorder that never receives the span counts it
/// as missing.
///
/// ```
/// let entered = longpole_sdk::enter_span_context([7; 16], [9; 8], 1);
/// assert!(longpole_sdk::current_traceparent().unwrap().contains("0909090909090909"));
/// drop(entered);
/// assert_eq!(longpole_sdk::current_traceparent(), None);
/// ```
#[inline]
#[must_use = "the span is left when the guard is dropped"]
pub fn enter_span_context(trace_id: [u8; 16], span_id: [u8; 8], trace_flags: u8) -> Option<EnteredSpanContext> {
    if trace_id == [0; 16] || span_id == [0; 8] {
        return None;
    }
    let key = span_stack::next_guard_key();
    current_span::enter(key, span_context::SpanContext { trace_id, span_id, flags: trace_flags });
    Some(EnteredSpanContext { key, this_thread: PhantomData })
}

/// Leaves the span that [`enter_span_context`] entered; stays on its thread.
#[derive(Debug)]
pub struct EnteredSpanContext {
    key: span_stack::Key,
    this_thread: PhantomData<*const ()>,
}

impl Drop for EnteredSpanContext {
    #[inline]
    fn drop(&mut self) {
        current_span::exit(self.key);
    }
}
