//! OpenTelemetry's own stack — `tracing-opentelemetry`, `opentelemetry_sdk`, `opentelemetry-otlp` — built so that neither its
//! start nor its end depends on a runtime of the program.
//!
//! ```text
//!  tracing ─ bridge ─ tracer ─ span processor ─ exporter ─┐
//!  the program's threads       (stock)          (stock)   │ tasks of a runtime that one plain thread drives
//!                                                         ▼
//!                                                     collector
//! ```
//!
//! What hangs elsewhere hangs because a thread waits for a task that only this thread could run. Here the exporter, its
//! connection and the processor that is a task live on a thread of their own, and the end is asked for on another one, which
//! nobody joins: whoever waits for it waits until a deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use opentelemetry::trace::{SpanBuilder, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::runtime::{Runtime, RuntimeChannel, Tokio};
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor as AsyncBatchSpanProcessor;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter, SpanLimits, SpanProcessor,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing_core::Subscriber;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{Config, ExportConfig, ResourceValue};
use crate::context::{SpanContext, TraceparentError};
use crate::diagnostic::tell;
use crate::exporter::retry::Outage;
use crate::exporter::{SpanCounts, lock, mark_own_thread};
use crate::options::{Protocol, SpanProcessor as Choice};
use crate::propagation::Carried;
use crate::transport::{self, grpc};
use crate::{at_exit, otel_context, thread_context};

/// How long `simple` waits for the collector's answer to a span. A collector that is slower than this is not waited for again
/// before it has answered: a program that makes spans in a row would otherwise stand still.
const SIMPLE_WAIT: Duration = Duration::from_millis(100);

/// What stands for no limit where one must be named.
const NO_LIMIT: Duration = Duration::from_secs(86_400);

/// The tracing half: what spans are made with.
pub(crate) struct Standard {
    provider: SdkTracerProvider,
    remote_parent: Option<SpanContext>,
    /// `None`: nobody asked for spans.
    processor: Option<Arc<Counting>>,
}

/// Spans between the processor and the collector, and what became of them.
#[derive(Debug)]
pub(crate) struct Flow {
    url: String,
    emitted: AtomicU64,
    exported: AtomicU64,
    failed: AtomicU64,
    queue_full: AtomicU64,
    late: AtomicU64,
    /// The end was asked for.
    closing: AtomicBool,
    /// Somebody waited in vain since the collector last answered: nobody waits for it again.
    is_slow: AtomicBool,
    /// How long the end of the process waits.
    exit_within: Mutex<Duration>,
    max_waiting: usize,
    /// Why the last HTTP request got no answer; the stock exporter says "network error" for all of it.
    unanswered: Arc<Mutex<Option<String>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Spans that are on their way.
    under_way: usize,
    /// The last answer was awaited in vain.
    slow: bool,
    /// The processor has ended.
    processor_ended: bool,
    /// All has ended, and what is missing was lost in a full queue.
    settled: bool,
    abandoned: bool,
    outage: Outage,
    /// Ends the thread of the runtime when it is dropped.
    station: Option<oneshot::Sender<()>>,
}

impl Flow {
    pub(crate) fn counts(&self) -> SpanCounts {
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        self.counts_with(&lock(&self.state))
    }

    fn counts_with(&self, state: &State) -> SpanCounts {
        let mut counts = SpanCounts {
            exported: self.exported.load(Relaxed),
            failed: self.failed.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            late: self.late.load(Relaxed),
            refused: crate::shelter::refused(),
            ..SpanCounts::default()
        };
        counts.emitted = self.emitted.load(Relaxed) + counts.refused;
        let rest = counts.emitted.saturating_sub(counts.exported + counts.lost());
        // A stock processor does not say which spans it dropped; when it has ended, those that came nowhere are they.
        if state.settled {
            counts.queue_full += rest
        } else {
            counts.outstanding = rest
        }
        counts
    }

    fn depart(&self, spans: usize) {
        lock(&self.state).under_way += spans;
    }

    /// A batch was answered, or is lost.
    fn arrive(&self, spans: usize, result: Result<(), String>) {
        let mut state = lock(&self.state);
        state.under_way -= spans;
        match result {
            Ok(()) => {
                self.exported.fetch_add(spans as u64, Relaxed);
                self.is_slow.store(false, Relaxed);
                state.slow = false;
                if state.outage.end() && !self.closing.load(Relaxed) {
                    let counts = self.counts_with(&state);
                    state.outage.tell_losses(&self.url, &counts);
                }
            }
            Err(why) => {
                self.failed.fetch_add(spans as u64, Relaxed);
                if self.closing.load(Relaxed) {
                    state.outage.note(why);
                } else {
                    state.outage.begin(&self.url, why, "those of this request are lost");
                }
            }
        }
        self.changed.notify_all();
    }

    /// Waits until something arrives, or for `within`.
    fn wait_for_arrival(&self, within: Duration) {
        let state = lock(&self.state);
        let _ = self.changed.wait_timeout(state, within).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Standard {
    /// Builds what the configuration asks for, and tells what it could not use. Nothing here waits for a collector.
    pub(crate) fn start(config: Config) -> Self {
        for complaint in &config.complaints {
            tell(complaint);
        }
        otel_context::publish_opentelemetry_context();
        thread_context::publish_process(config.resource.process_context());
        let root = match config.sampler.ratio() {
            1.0 => Sampler::AlwaysOn,
            0.0 => Sampler::AlwaysOff,
            ratio => Sampler::TraceIdRatioBased(ratio),
        };
        let sampler = if config.sampler.parent_based { Sampler::ParentBased(Box::new(root)) } else { root };
        let mut limits = SpanLimits::default();
        limits.max_attributes_per_span = config.limits.attributes;
        limits.max_events_per_span = config.limits.events;
        limits.max_links_per_span = config.limits.links;
        let mut builder = SdkTracerProvider::builder().with_sampler(sampler).with_span_limits(limits);
        let mut processor = None;
        if let Some(export) = &config.export {
            let resource = resource(export);
            match start_processor(export, config.processor, &resource) {
                Ok(counting) => {
                    let counting = Arc::new(counting);
                    builder = builder.with_span_processor(Shared(Arc::clone(&counting)));
                    processor = Some(counting);
                }
                Err(why) => tell(&format!("no exporter for {}: {why}; no spans are sent", export.url)),
            }
            builder = builder.with_resource(resource);
        }
        Self { provider: builder.build(), remote_parent: config.remote_parent, processor }
    }

    /// The layer that makes OpenTelemetry's spans of `tracing`'s.
    pub(crate) fn layer<S>(&self) -> impl tracing_subscriber::Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.provider.tracer(env!("CARGO_PKG_NAME"));
        tracing_opentelemetry::layer().with_level(true).with_tracer(RootedTracer { tracer, remote_parent: self.remote_parent })
    }

    /// Makes the provider and W3C's propagators those of the OpenTelemetry API.
    pub(crate) fn make_global(&self) {
        opentelemetry::global::set_tracer_provider(self.provider.clone());
        set_global_propagators();
    }

    fn flow(&self) -> Option<&Arc<Flow>> {
        self.processor.as_ref().map(|processor| &processor.flow)
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        self.flow().map(|flow| flow.counts()).unwrap_or_default()
    }

    /// Ends it with the process, waiting for no longer than this.
    pub(crate) fn end_with_process(self: &Arc<Self>, within: Duration) {
        if let Some(flow) = self.flow() {
            *lock(&flow.exit_within) = within;
            let ends: Weak<Self> = Arc::downgrade(self);
            at_exit::register(ends);
        }
    }

    /// Sends what has ended by now, waiting for no longer than `within`, nor for a collector that was waited for in vain; sending goes on.
    pub(crate) fn flush(&self, within: Duration) -> SpanCounts {
        let Some(flow) = self.flow() else { return SpanCounts::default() };
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        let before = flow.counts();
        if before.outstanding == 0 || flow.closing.load(Relaxed) || flow.is_slow.load(Relaxed) {
            return before;
        }
        let (goal, failed) = (before.exported + before.lost() + before.outstanding, before.failed);
        let (provider, its_flow, flushed) = (self.provider.clone(), Arc::clone(flow), Arc::new(AtomicBool::new(false)));
        let its_flushed = Arc::clone(&flushed);
        let flush = move || {
            // What became of the spans is counted on the way.
            let _ = provider.force_flush();
            let _state = lock(&its_flow.state);
            its_flushed.store(true, Relaxed);
            its_flow.changed.notify_all();
        };
        // Not joined: a stock processor may wait without end for a collector that does not answer.
        let thread = crate::exporter::thread();
        if let Err(error) = thread_context::with_signals_blocked(|| thread.spawn(flush)) {
            tell(&format!("no thread to flush the span processor with: {error}"));
            return flow.counts();
        }
        let deadline = Instant::now() + within.min(NO_LIMIT);
        let mut state = lock(&flow.state);
        loop {
            let counts = flow.counts_with(&state);
            // What a processor dropped never arrives: when it has flushed, only what is on its way is waited for.
            let is_over = flushed.load(Relaxed) && state.under_way == 0;
            if is_over || counts.exported + counts.lost() >= goal || counts.failed > failed || state.abandoned {
                return counts;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                flow.is_slow.store(true, Relaxed);
                return counts;
            }
            state = flow.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends what there is and ends the processor, waiting for no longer than `within`; a second call only reports.
    pub(crate) fn shutdown(&self, within: Duration) -> SpanCounts {
        let Some(flow) = self.flow() else { return SpanCounts::default() };
        if thread_context::is_forked_child() {
            return SpanCounts::default();
        }
        let within = within.min(NO_LIMIT);
        let deadline = Instant::now() + within;
        // At the end of a process the lock's owner may be this thread.
        let Some(mut state) = at_exit::lock_within(&flow.state, within.max(at_exit::LOCK_MAX)) else {
            return SpanCounts::default();
        };
        if !flow.closing.swap(true, Relaxed) {
            let (processor, its_flow) = (self.processor.clone(), Arc::clone(flow));
            let end = move || {
                // Not the provider: it would make no spans from then on, and nobody could count those that come too late.
                // What became of the spans is counted on the way; the processor has nothing to add.
                let _ = processor.map(|processor| processor.shutdown_with_timeout(within));
                lock(&its_flow.state).processor_ended = true;
                its_flow.changed.notify_all();
            };
            // Not joined: a stock processor may wait without end for a collector that does not answer.
            let thread = crate::exporter::thread();
            if let Err(error) = thread_context::with_signals_blocked(|| thread.spawn(end)) {
                tell(&format!("no thread to end the span processor with: {error}"));
                state.abandoned = true;
            }
        }
        while !state.abandoned && (!state.processor_ended || state.under_way > 0) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.abandoned = true;
                let counts = flow.counts_with(&state);
                let unsent = counts.lost() + counts.outstanding;
                if unsent > 0 {
                    tell(&format!("{unsent} of {} spans were not sent: {} did not answer within {within:?}", counts.emitted, flow.url));
                }
                return counts;
            }
            state = flow.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.abandoned {
            state.settled = true;
            state.station = None;
            let counts = flow.counts_with(&state);
            state.outage.tell_losses(&flow.url, &counts);
        }
        flow.counts_with(&state)
    }
}

impl at_exit::Ends for Standard {
    fn end(&self) {
        let Some(flow) = self.flow() else { return };
        let Some(mut state) = at_exit::lock_briefly(&flow.state) else { return };
        let counts = flow.counts_with(&state);
        if counts.outstanding == 0 && counts.late + counts.refused > 0 {
            // They ended after the last word on it.
            state.outage.tell_losses(&flow.url, &counts);
        }
        drop(state);
        if counts.outstanding > 0 {
            let within = at_exit::lock_briefly(&flow.exit_within).map_or(crate::SHUTDOWN_DEADLINE, |within| *within);
            self.shutdown(if flow.is_slow.load(Relaxed) { Duration::ZERO } else { within });
        }
    }
}

/// W3C's `traceparent`, `tracestate` and `baggage`, for clients and servers that ask the OpenTelemetry API.
pub(crate) fn set_global_propagators() {
    use opentelemetry::propagation::TextMapCompositePropagator;
    use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
    opentelemetry::global::set_text_map_propagator(TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ]));
}

fn resource(export: &ExportConfig) -> Resource {
    let attributes = export.resource.0.iter().map(|(key, value)| match value {
        ResourceValue::Text(text) => KeyValue::new(key.clone(), text.clone()),
        ResourceValue::Int(number) => KeyValue::new(key.clone(), *number),
    });
    Resource::builder_empty().with_attributes(attributes).build()
}

/// The chosen processor with its exporter behind it.
fn start_processor(export: &ExportConfig, choice: Choice, resource: &Resource) -> Result<Counting, String> {
    // The child of a fork has none of these threads; it must know before it takes a lock.
    thread_context::watch_forks();
    let (station, stop) = start_station().map_err(|error| format!("no thread for it: {error}"))?;
    let flow = Arc::new(Flow {
        url: export.url.clone(),
        emitted: AtomicU64::new(0),
        exported: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        queue_full: AtomicU64::new(0),
        late: AtomicU64::new(0),
        closing: AtomicBool::new(false),
        is_slow: AtomicBool::new(false),
        exit_within: Mutex::new(crate::SHUTDOWN_DEADLINE),
        max_waiting: export.max_queue_spans,
        unanswered: Arc::default(),
        state: Mutex::new(State { station: Some(stop), ..State::default() }),
        changed: Condvar::new(),
    });
    let mut exporter = build_exporter(export, &station, &flow.unanswered)?;
    exporter.set_resource(resource);
    let way = Way { flow: Arc::clone(&flow), station: station.clone(), exporter: Arc::new(exporter), limit: export.export_timeout };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(export.max_queue_spans)
        .with_max_export_batch_size(export.max_batch_spans)
        .with_scheduled_delay(export.schedule_delay)
        .with_max_concurrent_exports(export.max_concurrent_exports)
        .with_max_export_timeout(export.export_timeout.unwrap_or(NO_LIMIT))
        .build();
    let inner: Box<dyn SpanProcessor> = match choice {
        Choice::BatchAsyncRuntime => Box::new(AsyncBatchSpanProcessor::builder(way, Station(station)).with_batch_config(batches).build()),
        Choice::Simple => Box::new(Simple { way }),
        // Its thread takes no signals of the program's; `longpole` does not come here.
        Choice::Batch | Choice::Longpole => {
            thread_context::with_signals_blocked(|| Box::new(BatchSpanProcessor::new(way, batches)) as Box<dyn SpanProcessor>)
        }
    };
    Ok(Counting { inner, flow, has_ended: AtomicBool::new(false) })
}

/// Starts a plain thread that drives a runtime until the sender is dropped.
fn start_station() -> std::io::Result<(Handle, oneshot::Sender<()>)> {
    let (stop, stopped) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_name(crate::exporter::THREAD_NAME).build()?;
    let handle = runtime.handle().clone();
    let run = move || {
        mark_own_thread();
        // What the exporter does is not the program's, and would never end.
        let _suppressed = Context::enter_telemetry_suppressed_scope();
        let _ = runtime.block_on(stopped);
    };
    let thread = crate::exporter::thread();
    thread_context::with_signals_blocked(|| thread.spawn(run))?;
    Ok((handle, stop))
}

fn build_exporter(export: &ExportConfig, station: &Handle, unanswered: &Arc<Mutex<Option<String>>>) -> Result<OtlpExporter, String> {
    let timeout = export.request_timeout.unwrap_or(NO_LIMIT);
    // The connection's tasks belong to this runtime, wherever it is asked for.
    let _entered = station.enter();
    let built = match export.protocol {
        Protocol::Grpc => OtlpExporter::builder()
            .with_tonic()
            .with_channel(grpc::channel(export, Some(timeout))?)
            .with_timeout(timeout)
            .with_metadata(grpc::metadata(&export.headers))
            .build(),
        _ => OtlpExporter::builder()
            .with_http()
            .with_http_client(PlainHttp {
                agent: transport::http_agent(export)?,
                timeout: export.request_timeout,
                unanswered: Arc::clone(unanswered),
            })
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(&export.url)
            .with_timeout(timeout)
            .with_headers(export.headers.iter().cloned().collect())
            .build(),
    };
    built.map_err(|error| error.to_string())
}

/// HTTP without a runtime under it, so that no feature of another crate decides which client is used.
#[derive(Debug)]
struct PlainHttp {
    agent: ureq::Agent,
    timeout: Option<Duration>,
    unanswered: Arc<Mutex<Option<String>>>,
}

impl PlainHttp {
    fn send(agent: &ureq::Agent, timeout: Option<Duration>, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut post = transport::post(agent, parts.uri, timeout);
        for (name, value) in &parts.headers {
            post = post.header(name, value);
        }
        let mut answer = post.send(&body[..])?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.extend(answer.headers().clone());
        }
        Ok(response.body(Bytes::from(answer.body_mut().read_to_vec()?))?)
    }
}

impl HttpClient for PlainHttp {
    fn send_bytes<'client, 'call>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        let (agent, timeout, unanswered) = (self.agent.clone(), self.timeout, Arc::clone(&self.unanswered));
        Box::pin(async move {
            let answer = tokio::task::spawn_blocking(move || Self::send(&agent, timeout, request)).await?;
            *lock(&unanswered) = answer.as_ref().err().map(ToString::to_string);
            answer
        })
    }
}

/// The way of a batch to the collector: a task of our runtime, whoever asks for it.
#[derive(Clone)]
struct Way {
    flow: Arc<Flow>,
    station: Handle,
    exporter: Arc<OtlpExporter>,
    /// `OTEL_BSP_EXPORT_TIMEOUT`.
    limit: Option<Duration>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("url", &self.flow.url).finish_non_exhaustive()
    }
}

impl Way {
    fn send(&self, batch: Vec<SpanData>, answered: impl FnOnce() + Send + 'static) {
        let Self { flow, exporter, limit, .. } = self.clone();
        let spans = batch.len();
        flow.depart(spans);
        self.station.spawn(async move {
            let sent = exporter.export(batch);
            let result = match limit {
                None => sent.await,
                Some(limit) => tokio::time::timeout(limit, sent).await.unwrap_or(Err(OTelSdkError::Timeout(limit))),
            };
            let why = |error: OTelSdkError| lock(&flow.unanswered).take().unwrap_or_else(|| error.to_string());
            let result = result.map_err(why);
            flow.arrive(spans, result);
            answered();
        });
    }
}

/// As an exporter it always succeeds: what fails is counted and told here, once per outage instead of once per batch.
impl SpanExporter for Way {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let (answer, answered) = oneshot::channel::<()>();
        self.send(batch, move || {
            let _ = answer.send(());
        });
        let _ = answered.await;
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }
}

/// OpenTelemetry's processor that is a task, on our runtime instead of the program's.
#[derive(Debug, Clone)]
struct Station(Handle);

impl Runtime for Station {
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        self.0.spawn(future);
    }

    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(duration)
    }
}

impl RuntimeChannel for Station {
    type Receiver<T: fmt::Debug + Send> = <Tokio as RuntimeChannel>::Receiver<T>;
    type Sender<T: fmt::Debug + Send> = <Tokio as RuntimeChannel>::Sender<T>;

    fn batch_message_channel<T: fmt::Debug + Send>(&self, capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        Tokio.batch_message_channel(capacity)
    }
}

/// A span is sent when it ends. Not `SimpleSpanProcessor`, which drives the request on the program's thread: it panics inside of
/// an executor and waits as long as a request may take for each span.
#[derive(Debug)]
struct Simple {
    way: Way,
}

impl SpanProcessor for Simple {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        let flow = &self.way.flow;
        let state = lock(&flow.state);
        if state.under_way >= flow.max_waiting {
            drop(state);
            flow.queue_full.fetch_add(1, Relaxed);
            return;
        }
        let is_slow = state.slow;
        drop(state);
        let (answer, answered) = sync_channel::<()>(1);
        self.way.send(vec![span], move || {
            let _ = answer.try_send(());
        });
        if !is_slow && answered.recv_timeout(SIMPLE_WAIT).is_err() {
            lock(&flow.state).slow = true;
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Counts what a processor is given, keeps from it what it should not have, and sees to it that its end is heard.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn SpanProcessor>,
    flow: Arc<Flow>,
    has_ended: AtomicBool,
}

/// A processor that the provider and its owner have.
#[derive(Debug)]
struct Shared(Arc<Counting>);

impl SpanProcessor for Shared {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}

/// How long between two attempts to tell a processor its end while its queue has no place for the message.
const END_RETRY: Duration = Duration::from_millis(20);

impl SpanProcessor for Counting {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        // The threaded batch processor of 0.33 would send what the sampler said to record only.
        if !span.span_context.is_sampled() || thread_context::is_forked_child() {
            return;
        }
        self.flow.emitted.fetch_add(1, Relaxed);
        if self.flow.closing.load(Relaxed) {
            self.flow.late.fetch_add(1, Relaxed);
            return;
        }
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        if self.has_ended.swap(true, Relaxed) {
            return Ok(());
        }
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.inner.shutdown_with_timeout(left) {
                // Its messages go through the same bounded channel as its spans.
                Err(OTelSdkError::InternalFailure(_)) if !left.is_zero() => self.flow.wait_for_arrival(left.min(END_RETRY)),
                ended => return ended,
            }
        }
    }
}

/// A tracer whose spans without a parent are children of the span that `TRACEPARENT` of the environment names.
#[derive(Debug)]
struct RootedTracer {
    tracer: SdkTracer,
    remote_parent: Option<SpanContext>,
}

impl Tracer for RootedTracer {
    type Span = Span;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> Span {
        match self.remote_parent {
            Some(remote) if !parent.has_active_span() => {
                let parent = parent.with_remote_span_context(otel_context::theirs(remote, true, None));
                self.tracer.build_with_context(builder, &parent)
            }
            _ => self.tracer.build_with_context(builder, parent),
        }
    }
}

/// The ids of a span that the bridge made.
pub(crate) fn context_of(span: &tracing::Span) -> Option<SpanContext> {
    // Asking starts the span; without the bridge the answer is an empty context.
    otel_context::ours(span.context().span().span_context())
}

/// The ids of a span that the bridge made, and what travels with them.
pub(crate) fn carried_by(span: &tracing::Span) -> Option<(SpanContext, Option<Arc<Carried>>)> {
    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
    let context = span.context();
    let ids = otel_context::ours(context.span().span_context())?;
    let mut headers = std::collections::HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut headers);
    BaggagePropagator::new().inject_context(&context, &mut headers);
    let carried = Carried::read(&|name| headers.get(name).cloned());
    Some((ids, carried.map(Arc::new)))
}

/// Makes a span of the bridge a child of a span of another process. Does nothing where there is no bridge.
pub(crate) fn set_parent(span: &tracing::Span, get: &dyn Fn(&str) -> Option<String>) -> Result<(), TraceparentError> {
    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
    let headers = ["traceparent", "tracestate", "baggage"].into_iter().filter_map(|name| Some((name.to_owned(), get(name)?)));
    let headers: std::collections::HashMap<String, String> = headers.collect();
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let context = BaggagePropagator::new().extract_with_context(&context, &headers);
    match span.set_parent(context) {
        Err(tracing_opentelemetry::SetParentError::AlreadyStarted) => Err(TraceparentError::TooLate),
        _ => Ok(()),
    }
}

/// Links a span of the bridge to another one. Does nothing where there is no bridge.
pub(crate) fn add_link(span: &tracing::Span, to: SpanContext) {
    OpenTelemetrySpanExt::add_link(span, otel_context::theirs(to, true, None));
}
