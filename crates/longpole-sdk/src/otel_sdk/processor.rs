//! The stock processors, so that they neither hang nor lose count.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor as AsyncBatchSpanProcessor;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};

use super::exporter::{NO_LIMIT, Station, Way, build_exporter, start_station};
use super::flow::Flow;
use crate::config::ExportConfig;
use crate::locks::lock;
use crate::options::SpanProcessor as Choice;
use crate::{forks, sys, thread_context};

/// How long `simple` waits for the collector's answer to a span. A collector that is slower than this is not waited for again
/// before it has answered: a program that makes spans in a row would otherwise stand still.
const SIMPLE_WAIT: Duration = Duration::from_millis(100);

/// The chosen processor with its exporter behind it.
pub(super) fn start_processor(export: &ExportConfig, choice: Choice, resource: &Resource) -> Result<Counting, String> {
    // The child of a fork has none of these threads; it must know before it takes a lock.
    thread_context::watch_forks();
    let (station, stop) = start_station().map_err(|error| format!("no thread for it: {error}"))?;
    let flow = Arc::new(Flow::new(export, stop));
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
            sys::with_signals_blocked(|| Box::new(BatchSpanProcessor::new(way, batches)) as Box<dyn SpanProcessor>)
        }
    };
    Ok(Counting { inner, flow, has_ended: AtomicBool::new(false) })
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
pub(super) struct Counting {
    inner: Box<dyn SpanProcessor>,
    pub(super) flow: Arc<Flow>,
    has_ended: AtomicBool,
}

/// A processor that the provider and its owner have.
#[derive(Debug)]
pub(super) struct SharedProcessor(pub(super) Arc<Counting>);

impl SpanProcessor for SharedProcessor {
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

/// Pause before a processor is shut down again when its queue had no room for the message.
const END_RETRY: Duration = Duration::from_millis(20);

impl SpanProcessor for Counting {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        // The threaded batch processor of 0.33 would send what the sampler said to record only.
        if !span.span_context.is_sampled() || forks::is_forked_child() {
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
