//! OpenTelemetry's own stack behind the same calls: the same trees, the same record, the same counts.

use std::time::Duration;

use longpole_sdk::otel::opentelemetry::trace::{SpanContext, TraceContextExt, Tracer, TracerProvider};
use longpole_sdk::otel::opentelemetry::{Context, KeyValue};
use longpole_sdk::otel::opentelemetry_sdk::trace::SdkTracerProvider;
use longpole_sdk::{Guard, LevelFilter, Protocol, SpanExt, SpanProcessor, TraceparentError, current_traceparent};
use tracing::{Dispatch, Instrument, info_span};
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, Reply, tree};
use crate::grpc_collector::GrpcCollector;

const STOCK: [SpanProcessor; 3] = [SpanProcessor::Batch, SpanProcessor::BatchAsyncRuntime, SpanProcessor::Simple];
const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn build(processor: SpanProcessor, endpoint: &str, vars: &[(&'static str, &'static str)]) -> (Dispatch, Guard) {
    let vars = vars.to_vec();
    longpole_sdk::builder()
        .service_name("standard")
        .default_endpoint(endpoint)
        .span_processor(processor)
        .shutdown_within(Duration::from_secs(600))
        .variables(move |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        .build()
}

fn traceparent(context: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8())
}

#[test]
fn spans_of_tracing_and_of_the_api_are_one_tree_and_one_record() {
    for processor in STOCK {
        let collector = Collector::start(&[]);
        let (dispatch, guard) = build(processor, &collector.endpoint, &[("TRACEPARENT", REMOTE)]);
        let provider = SdkTracerProvider::builder().build();
        let tracer = provider.tracer("api");
        tracing::dispatcher::with_default(&dispatch, || {
            assert_eq!(current_traceparent(), None);
            let outer = info_span!("outer").entered();
            // The record says what the span says.
            assert_eq!(current_traceparent(), outer.traceparent());
            assert!(current_traceparent().unwrap().starts_with("00-4bf92f35"));
            tracer.in_span("api", |context| {
                assert_eq!(current_traceparent(), Some(traceparent(context.span().span_context())));
                // Baggage and the like are attached without a change of span.
                let with_value = Context::current_with_value(7).attach();
                assert_eq!(current_traceparent(), Some(traceparent(context.span().span_context())));
                drop(with_value);
                info_span!("inner").in_scope(|| assert_ne!(current_traceparent(), Some(traceparent(context.span().span_context()))));
                assert_eq!(current_traceparent(), Some(traceparent(context.span().span_context())));
            });
            assert_eq!(current_traceparent(), outer.traceparent());
            drop(outer);
            assert_eq!(current_traceparent(), None);
        });
        let counts = guard.shutdown();
        assert_eq!((counts.emitted, counts.exported), (2, 2), "{processor}: {counts:?}");
        let spans = collector.spans();
        let inner = spans.iter().find(|span| span.name == "inner").unwrap();
        assert!(spans.iter().all(|span| span.trace_id == inner.trace_id), "{processor}");
        assert!(inner.parent_span_id != spans.iter().find(|span| span.name == "outer").unwrap().span_id, "its parent is the API's span");
    }
}

#[test]
fn headers_travel_as_with_our_own_layer() {
    let collector = Collector::start(&[]);
    let (dispatch, guard) = build(SpanProcessor::Batch, &collector.endpoint, &[]);
    tracing::dispatcher::with_default(&dispatch, || {
        let server = info_span!("handle");
        let request = |name: &str| match name {
            "traceparent" => Some(REMOTE.to_owned()),
            "tracestate" => Some("vendor=1".to_owned()),
            "baggage" => Some("user=ann".to_owned()),
            _ => None,
        };
        server.set_parent_from(request).unwrap();
        let entered = server.enter();
        assert_eq!(server.set_parent_traceparent(REMOTE), Err(TraceparentError::TooLate));
        let mut headers = Vec::new();
        longpole_sdk::inject(|name, value| headers.push(format!("{name}: {value}")));
        assert_eq!(headers[0], format!("traceparent: {}", server.traceparent().unwrap()));
        assert_eq!(headers[1..], ["tracestate: vendor=1", "baggage: user=ann"]);
        drop(entered);
    });
    guard.shutdown();
    let spans = collector.spans();
    assert_eq!((spans[0].trace_state.as_str(), spans[0].parent_span_id[0..3].to_vec()), ("vendor=1", vec![0x00, 0xf0, 0x67]));
}

#[test]
fn what_a_stock_processor_drops_is_counted() {
    for processor in STOCK {
        let collector = Collector::start(&[Reply::Status(400)]);
        let vars = [("OTEL_BSP_MAX_QUEUE_SIZE", "32"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")];
        let (dispatch, guard) = build(processor, &collector.endpoint, &vars);
        let emit = || tracing::dispatcher::with_default(&dispatch, || (0..1_000).for_each(|_| drop(info_span!("s"))));
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(emit))));
        let counts = guard.shutdown();
        assert_eq!((counts.emitted, counts.outstanding), (2_000, 0), "{processor}: {counts:?}");
        assert_eq!(counts.emitted, counts.exported + counts.lost(), "{processor}: {counts:?}");
        assert!(counts.failed >= 1, "{processor}: {counts:?}");
        assert_eq!(counts.exported, collector.spans().len() as u64, "{processor}");
    }
}

#[test]
fn everything_arrives_over_grpc() {
    for processor in SpanProcessor::ALL {
        let collector = GrpcCollector::start();
        let (dispatch, guard) = longpole_sdk::builder()
            .default_endpoint(&collector.endpoint)
            .protocol(Protocol::Grpc)
            .span_processor(processor)
            // What the exporter does on its way makes spans too, which must not be among these.
            .level(LevelFilter::TRACE)
            .shutdown_within(Duration::from_secs(600))
            .variables(|name| (name == "OTEL_BSP_MAX_EXPORT_BATCH_SIZE").then(|| "7".into()))
            .build();
        tracing::dispatcher::with_default(&dispatch, || (0..100).for_each(|_| drop(info_span!("s"))));
        let counts = guard.shutdown();
        assert_eq!((counts.emitted, counts.exported), (100, 100), "{processor}: {counts:?}");
        assert_eq!(collector.spans().len(), 100, "{processor}");
    }
}

#[test]
fn what_is_not_sampled_is_not_sent() {
    for processor in STOCK {
        let collector = Collector::start(&[]);
        let (dispatch, guard) = build(processor, &collector.endpoint, &[("OTEL_TRACES_SAMPLER", "always_off")]);
        tracing::dispatcher::with_default(&dispatch, || {
            let span = info_span!("s").entered();
            assert!(span.traceparent().unwrap().ends_with("-00"));
            assert_eq!(current_traceparent(), span.traceparent());
        });
        assert_eq!(guard.shutdown().emitted, 0);
        assert!(collector.spans().is_empty());
    }
}

#[test]
fn our_layer_shares_its_context_with_the_api_where_the_builder_says_so() {
    let collector = Collector::start(&[]);
    let layer = collector.layer(&[]).with_opentelemetry_context(true);
    let handle = layer.handle();
    let tracer = SdkTracerProvider::builder().build().tracer("api");
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let current = || traceparent(Context::current().span().span_context());
        let outer = info_span!("outer").entered();
        assert_eq!((Some(current()), current_traceparent()), (outer.traceparent(), outer.traceparent()));
        tracer.in_span("api", |context| {
            let api = traceparent(context.span().span_context());
            assert_eq!((current(), current_traceparent()), (api.clone(), Some(api.clone())));
            let inner = info_span!("inner").entered();
            assert_eq!((Some(current()), current_traceparent()), (inner.traceparent(), inner.traceparent()));
            drop(inner);
            assert_eq!(current_traceparent(), Some(api));
        });
        assert_eq!(current_traceparent(), outer.traceparent());
        // A request whose parent comes late.
        outer.set_parent_traceparent(REMOTE).err();
        drop(outer);
        assert_eq!(current_traceparent(), None);
        tracer.in_span("root of the API", |context| {
            let trace_id = context.span().span_context().trace_id().to_string();
            info_span!("below it").in_scope(|| assert!(current_traceparent().unwrap().contains(&trace_id)));
        });
        let late = info_span!("late").entered();
        late.set_parent_traceparent(REMOTE).unwrap();
        assert_eq!((Some(current()), current_traceparent()), (late.traceparent(), late.traceparent()));
    });
    handle.shutdown(Duration::from_secs(600));
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn tasks_that_move_keep_their_record() {
    let collector = Collector::start(&[]);
    let (dispatch, guard) = build(SpanProcessor::Batch, &collector.endpoint, &[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let task = |dispatch: Dispatch| async move {
        for _ in 0..200 {
            tracing::dispatcher::with_default(&dispatch, || assert_eq!(current_traceparent(), tracing::Span::current().traceparent()));
            tokio::task::yield_now().await;
        }
    };
    runtime.block_on(async {
        let spans = (0..8).map(|number| tracing::dispatcher::with_default(&dispatch, || info_span!("task", number)));
        let tasks: Vec<_> = spans.map(|span| tokio::spawn(task(dispatch.clone()).instrument(span))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(guard.shutdown().exported, 8);
}

#[test]
fn an_attribute_of_the_api_arrives() {
    let collector = Collector::start(&[]);
    let (dispatch, guard) = build(SpanProcessor::Simple, &collector.endpoint, &[]);
    tracing::dispatcher::with_default(&dispatch, || {
        let span = info_span!("s", field = 1).entered();
        Context::current().span().set_attribute(KeyValue::new("api", true));
        drop(span);
    });
    guard.shutdown();
    assert!(tree(&collector.spans()).contains("api=true"), "{}", tree(&collector.spans()));
}
