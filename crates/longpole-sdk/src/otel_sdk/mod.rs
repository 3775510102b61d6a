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
//! connection and the async processor live on a thread of their own, and another thread, which nobody joins, shuts them down: the
//! program waits for it until a deadline.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanLimits, SpanProcessor};
use tracing_core::Subscriber;
use tracing_subscriber::registry::LookupSpan;

mod bridge;
mod exporter;
mod flow;
mod processor;

use self::bridge::RootedTracer;
pub(crate) use self::bridge::{add_link, carried_by, context_of, set_global_propagators, set_parent};
use self::exporter::NO_LIMIT;
use self::flow::Flow;
use self::processor::{Counting, SharedProcessor, start_processor};
use crate::config::{Config, ExportConfig, ResourceValue};
use crate::diagnostic::tell;
use crate::locks::{self, lock};
use crate::span_context::SpanContext;
use crate::span_counts::SpanCounts;
use crate::{at_exit, forks, otel_context, own_threads, process_context, sys};

/// The tracing half: what spans are made with.
pub(crate) struct OtelSdk {
    provider: SdkTracerProvider,
    remote_parent: Option<SpanContext>,
    /// `None`: there is no endpoint.
    processor: Option<Arc<Counting>>,
}

impl OtelSdk {
    /// Builds what the configuration asks for, and tells what it could not use. Nothing here waits for a collector.
    pub(crate) fn start(config: Config) -> Self {
        for complaint in &config.complaints {
            tell(complaint);
        }
        otel_context::publish_opentelemetry_context();
        process_context::publish(config.resource.process_context());
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
                    builder = builder.with_span_processor(SharedProcessor(Arc::clone(&counting)));
                    processor = Some(counting);
                }
                Err(why) => tell(&format!("no exporter for {}: {why}; sending no spans", export.url)),
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
        if forks::is_forked_child() {
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
        let thread = own_threads::builder();
        if let Err(error) = sys::with_signals_blocked(|| thread.spawn(flush)) {
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
        if forks::is_forked_child() {
            return SpanCounts::default();
        }
        let within = within.min(NO_LIMIT);
        let deadline = Instant::now() + within;
        // At the end of a process the lock's owner may be this thread.
        let Some(mut state) = locks::lock_within(&flow.state, within.max(locks::LOCK_MAX)) else {
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
            let thread = own_threads::builder();
            if let Err(error) = sys::with_signals_blocked(|| thread.spawn(end)) {
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

impl at_exit::Ends for OtelSdk {
    fn end(&self) {
        let Some(flow) = self.flow() else { return };
        let Some(mut state) = locks::lock_briefly(&flow.state) else { return };
        let counts = flow.counts_with(&state);
        if counts.outstanding == 0 && counts.late + counts.refused > 0 {
            // They ended after the last word on it.
            state.outage.tell_losses(&flow.url, &counts);
        }
        drop(state);
        if counts.outstanding > 0 {
            let within = locks::lock_briefly(&flow.exit_within).map_or(crate::SHUTDOWN_DEADLINE, |within| *within);
            self.shutdown(if flow.is_slow.load(Relaxed) { Duration::ZERO } else { within });
        }
    }
}

fn resource(export: &ExportConfig) -> Resource {
    let attributes = export.resource.0.iter().map(|(key, value)| match value {
        ResourceValue::Text(text) => KeyValue::new(key.clone(), text.clone()),
        ResourceValue::Int(number) => KeyValue::new(key.clone(), *number),
    });
    Resource::builder_empty().with_attributes(attributes).build()
}
