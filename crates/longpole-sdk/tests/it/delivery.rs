//! Every span that ended is exported or counted, whatever the collector does.

use std::time::Duration;

use longpole_sdk::{Handle, Layer, SpanCounts};
use tracing::{Dispatch, info_span};
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, Reply, attribute_map};

const LONG: Duration = Duration::from_secs(600);
/// So long that only full batches and shutdowns make the exporter move.
const NEVER: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "86400000");

fn install(layer: Layer) -> (Handle, Dispatch) {
    let handle = layer.handle();
    (handle, Dispatch::new(tracing_subscriber::registry().with(layer)))
}

fn emit(dispatch: &Dispatch, spans: usize) {
    tracing::dispatcher::with_default(dispatch, || (0..spans).for_each(|number| drop(info_span!("s", number))));
}

fn check_sum(counts: &SpanCounts) {
    assert_eq!(counts.emitted, counts.exported + counts.lost() + counts.outstanding, "{counts:?}");
}

#[test]
fn what_finds_the_queue_full_is_counted_and_told_to_the_collector() {
    let collector = Collector::start(&[Reply::Stall]);
    let vars =
        [NEVER, ("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")];
    let (handle, dispatch) = install(collector.layer(&vars));
    emit(&dispatch, 5);
    // The first batch is on its way and stays there; ten more fit.
    collector.wait_for_requests(1);
    emit(&dispatch, 15);
    let counts = handle.counts();
    assert_eq!((counts.emitted, counts.queue_full, counts.outstanding), (20, 5, 15));
    check_sum(&counts);

    let collector = Collector::start(&[Reply::Status(503)]);
    let (handle, dispatch) = install(collector.layer(&vars));
    emit(&dispatch, 5);
    collector.wait_for_requests(1);
    emit(&dispatch, 15);
    let counts = handle.shutdown(LONG);
    assert_eq!((counts.emitted, counts.exported, counts.queue_full), (20, 15, 5));
    check_sum(&counts);
    let (_, last) = collector.requests().pop().unwrap();
    let scope = last.resource_spans[0].scope_spans[0].scope.clone().unwrap();
    assert_eq!(attribute_map(&scope.attributes)["longpole.dropped_spans"], "5");
}

#[test]
fn threads_that_emit_together_lose_nothing_that_is_not_counted() {
    let collector = Collector::start(&[]);
    let vars = [("OTEL_BSP_MAX_QUEUE_SIZE", "300"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "64"), ("OTEL_BSP_SCHEDULE_DELAY", "1")];
    let (handle, dispatch) = install(collector.layer(&vars));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| emit(&dispatch, 5_000));
        }
    });
    let counts = handle.shutdown(LONG);
    check_sum(&counts);
    assert_eq!((counts.emitted, counts.outstanding), (20_000, 0));
    let spans = collector.spans();
    assert_eq!(counts.exported, spans.len() as u64);
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), spans.len());
    for (_, request) in collector.requests() {
        assert!(request.resource_spans[0].scope_spans[0].spans.len() <= 64);
    }
}

#[test]
fn a_batch_is_sent_again_when_the_collector_asks_for_it() {
    let collector = Collector::start(&[Reply::Status(503), Reply::Status(429), Reply::Accept]);
    let (handle, dispatch) = install(collector.layer(&[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3"), NEVER]));
    emit(&dispatch, 3);
    collector.wait_for_requests(3);
    let counts = handle.shutdown(LONG);
    assert_eq!((counts.emitted, counts.exported), (3, 3));
}

#[test]
fn requests_go_side_by_side_where_the_environment_says_so() {
    let collector = Collector::start(&[Reply::Stall]);
    let vars = [
        NEVER,
        ("OTEL_BSP_MAX_CONCURRENT_EXPORTS", "2"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "0"),
    ];
    let (handle, dispatch) = install(collector.layer(&vars));
    emit(&dispatch, 3);
    collector.wait_for_requests(1);
    // The first request is never answered; these pass it by.
    for requests in 2..=4 {
        emit(&dispatch, 3);
        collector.wait_for_requests(requests);
    }
    let counts = handle.shutdown(Duration::from_millis(100));
    assert_eq!((counts.emitted, counts.exported, counts.outstanding), (12, 9, 3));
    check_sum(&counts);
}

#[test]
fn many_at_a_time_lose_nothing_that_is_not_counted() {
    let collector = Collector::start(&[Reply::Status(503), Reply::Status(400)]);
    let vars = [("OTEL_BSP_MAX_QUEUE_SIZE", "300"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16"), ("OTEL_BSP_MAX_CONCURRENT_EXPORTS", "4")];
    let (handle, dispatch) = install(collector.layer(&vars));
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| emit(&dispatch, 5_000)))));
    // An attempt that fails after the end began is the last one.
    collector.wait_for_requests(2);
    let counts = handle.shutdown(LONG);
    check_sum(&counts);
    assert_eq!((counts.emitted, counts.outstanding), (10_000, 0));
    // One request was refused: a whole batch, or what had come by then.
    assert!((1..=16).contains(&counts.failed), "{counts:?}");
    assert_eq!(counts.exported, collector.spans().len() as u64);
}

#[test]
fn what_is_refused_or_rejected_is_counted() {
    let collector = Collector::start(&[Reply::Status(400), Reply::Reject(1), Reply::Status(307)]);
    let (handle, dispatch) = install(collector.layer(&[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3"), NEVER]));
    for requests in 1..=3 {
        emit(&dispatch, 3);
        collector.wait_for_requests(requests);
    }
    let counts = handle.shutdown(LONG);
    assert_eq!((counts.emitted, counts.exported, counts.failed, counts.rejected), (9, 2, 6, 1));
    check_sum(&counts);
}

#[test]
fn spans_that_end_after_the_shutdown_are_late() {
    let collector = Collector::start(&[]);
    let (handle, dispatch) = install(collector.layer(&[]));
    emit(&dispatch, 2);
    handle.shutdown(LONG);
    emit(&dispatch, 3);
    let counts = handle.shutdown(LONG);
    assert_eq!((counts.emitted, counts.exported, counts.late), (5, 2, 3));
    check_sum(&counts);
}

#[test]
fn large_spans_are_spread_over_requests() {
    let collector = Collector::start(&[]);
    let (handle, dispatch) = install(collector.layer(&[NEVER]));
    let text = "x".repeat(900_000);
    tracing::dispatcher::with_default(&dispatch, || (0..10).for_each(|_| drop(info_span!("large", text))));
    let counts = handle.shutdown(LONG);
    assert_eq!(counts.exported, 10);
    assert_eq!(collector.requests().len(), 3);
}

#[test]
fn a_layer_that_is_dropped_sends_what_it_has() {
    let collector = Collector::start(&[]);
    let (handle, dispatch) = install(collector.layer(&[NEVER]));
    emit(&dispatch, 2);
    drop((handle, dispatch));
    collector.wait_for_requests(1);
    assert_eq!(collector.spans().len(), 2);
}
