//! What a profiler reads from the stacks of a program.
#![cfg(target_os = "linux")]

use longpole_sdk::{SpanExt, current_traceparent};
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

use crate::stack_record::read;

fn with_layer(program: impl FnOnce()) {
    let layer = longpole_sdk::layer_from(|_| None);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), program);
}

#[test]
fn the_stack_of_a_thread_ends_in_its_record() {
    std::thread::spawn(|| {
        assert_eq!(read(), None, "a record before there was a span");
        let entered = longpole_sdk::enter_span_context([0x4b; 16], [0xb7; 8], 1).unwrap();
        let record = read().unwrap();
        assert_eq!((record.version, record.valid, record.flags, record.rest), (1, 1, 1, [0; 6]));
        assert_eq!((record.trace_id, record.span_id), ([0x4b; 16], [0xb7; 8]));
        assert_eq!(record.sequence % 2, 0);
        // Eight kilobytes are what a recorder copies at least. The test itself has some frames in between.
        assert!(record.distance < 8 << 10, "{} bytes away", record.distance);
        drop(entered);
        let after = read().unwrap();
        assert_eq!((after.valid, after.trace_id, after.span_id), (0, [0; 16], [0; 8]));
        assert_eq!((after.distance, after.sequence), (record.distance, record.sequence + 2));
    })
    .join()
    .unwrap();
}

#[test]
fn the_record_follows_spans_in_and_out() {
    with_layer(|| {
        let outer = info_span!("outer");
        let inner = info_span!("inner");
        assert_eq!(read().and_then(|record| record.traceparent()), None);
        outer.in_scope(|| {
            assert_eq!(read().unwrap().traceparent(), outer.traceparent());
            inner.in_scope(|| assert_eq!(read().unwrap().traceparent(), inner.traceparent()));
            assert_eq!(read().unwrap().traceparent(), outer.traceparent());
        });
        assert_eq!(read().unwrap().traceparent(), None);
    });
}

#[test]
fn a_span_that_is_not_sampled_is_published_as_such() {
    let layer = longpole_sdk::layer_from(|name| (name == "OTEL_TRACES_SAMPLER").then(|| "always_off".into()));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _span = info_span!("s").entered();
        let record = read().unwrap();
        assert_eq!((record.valid, record.flags), (1, 0));
    });
}

/// Tasks that yield at every step, on more workers than one: at each poll the thread's record is the task's own span, whatever
/// thread that is, and says "no span" between polls.
#[test]
fn tasks_that_migrate_take_their_span_along() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let layer = longpole_sdk::layer_from(|_| None);
    let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(layer));
    // The workers find the subscriber by the span that each task brings.
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let span = tracing::dispatcher::with_default(&dispatch, || info_span!("task", task));
            let traceparent = span.traceparent();
            runtime.spawn(
                async move {
                    let mut threads = std::collections::HashSet::new();
                    for _ in 0..50 {
                        assert_eq!(read().unwrap().traceparent(), traceparent);
                        assert_eq!(current_traceparent(), traceparent);
                        threads.insert(std::thread::current().id());
                        tokio::task::yield_now().await;
                    }
                    threads
                }
                .instrument(span),
            )
        })
        .collect();
    let bystander = runtime.spawn(async {
        for _ in 0..50 {
            assert_eq!(read().and_then(|record| record.traceparent()), None);
            tokio::task::yield_now().await;
        }
    });
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        bystander.await.unwrap();
    });
}
