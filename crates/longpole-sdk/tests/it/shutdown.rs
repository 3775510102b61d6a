//! The hang matrix: a shutdown ends by itself, with no collector, a dead one and one that never answers, outside of any runtime
//! and inside of each flavour. Nothing here measures time: where the collector never answers, that the call returned at all says
//! that its own deadline ended it, for every other timeout is longer than anybody waits.

use std::time::Duration;

use longpole_sdk::{Handle, Layer, SpanCounts};
use tracing::{Dispatch, Instrument, info_span};
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, Reply, dead_endpoint};

const SPANS: u64 = 10;

/// Emits spans and shuts down in the same breath: without a runtime, then inside a task of each flavour.
fn check_everywhere(layer: impl Fn() -> Layer, within: Duration, check: impl Fn(SpanCounts)) {
    let install = || {
        let layer = layer();
        let handle = layer.handle();
        (handle, Dispatch::new(tracing_subscriber::registry().with(layer)))
    };
    let emit = move |handle: Handle, dispatch: Dispatch| {
        tracing::dispatcher::with_default(&dispatch, || (0..SPANS).for_each(|_| drop(info_span!("s"))));
        handle.shutdown(within)
    };

    let (handle, dispatch) = install();
    check(emit(handle, dispatch));

    use tokio::runtime::Builder;
    let runtimes = [
        Builder::new_current_thread().enable_all().build(),
        Builder::new_multi_thread().worker_threads(1).enable_all().build(),
        Builder::new_multi_thread().worker_threads(2).enable_all().build(),
    ];
    for runtime in runtimes.map(Result::unwrap) {
        // On the thread that drives the runtime, and on a worker.
        let (handle, dispatch) = install();
        check(runtime.block_on(async { emit(handle, dispatch) }));
        let (handle, dispatch) = install();
        check(
            runtime.block_on(async { tokio::spawn(async move { emit(handle, dispatch) }.instrument(info_span!("task"))).await }).unwrap(),
        );
    }
}

#[test]
fn with_a_collector_everything_arrives() {
    let collector = Collector::start(&[]);
    check_everywhere(
        || collector.layer(&[]),
        Duration::from_secs(600),
        |counts| assert_eq!((counts.emitted, counts.exported), (SPANS, SPANS)),
    );
    assert_eq!(collector.spans().len() as u64, 7 * SPANS);
}

#[test]
fn without_a_collector_there_is_nothing_to_wait_for() {
    check_everywhere(|| longpole_sdk::layer_from(|_| None), Duration::from_secs(600), |counts| assert_eq!(counts, SpanCounts::default()));
}

#[test]
fn a_dead_collector_costs_one_attempt() {
    let endpoint = dead_endpoint();
    check_everywhere(
        || longpole_sdk::layer_from(|name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.clone())),
        Duration::from_secs(600),
        |counts| assert_eq!((counts.emitted, counts.failed), (SPANS, SPANS)),
    );
}

#[test]
fn a_collector_that_never_answers_is_not_waited_for() {
    let collector = Collector::start(&[Reply::Stall; 7]);
    let no_limits = [("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), ("OTEL_BSP_EXPORT_TIMEOUT", "0")];
    check_everywhere(
        || collector.layer(&no_limits),
        Duration::from_millis(100),
        |counts| assert_eq!((counts.emitted, counts.exported, counts.failed + counts.outstanding), (SPANS, 0, SPANS)),
    );
    assert!(collector.spans().is_empty());
}

#[test]
fn a_request_that_was_stuck_before_the_shutdown_is_not_waited_for() {
    let collector = Collector::start(&[Reply::Stall]);
    let vars = [("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), ("OTEL_BSP_EXPORT_TIMEOUT", "0"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")];
    let layer = collector.layer(&vars);
    let handle = layer.handle();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let emit = || tracing::dispatcher::with_default(&dispatch, || (0..4).for_each(|_| drop(info_span!("s"))));
    emit();
    collector.wait_for_requests(1);
    emit();
    let counts = handle.shutdown(Duration::from_millis(1));
    assert_eq!((counts.emitted, counts.outstanding, counts.failed), (8, 4, 4));
    // Nobody is left to take these.
    emit();
    assert_eq!(handle.shutdown(Duration::from_secs(600)).late, 4);
}

#[test]
fn an_absurd_deadline_is_no_overflow() {
    let layer = longpole_sdk::layer_from(|name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(dead_endpoint));
    assert_eq!(layer.handle().shutdown(Duration::MAX).emitted, 0);
}
