//! Trace context between processes.

use std::time::Duration;

use longpole_sdk::{SpanExt, TraceparentError, current_traceparent};
use tracing::{Span, info_span};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, tree};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const REMOTE_UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn with_layer(vars: &[(&'static str, &str)], program: impl FnOnce()) -> Collector {
    let collector = Collector::start(&[]);
    let layer = collector.layer(vars);
    let handle = layer.handle();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), program);
    handle.shutdown(Duration::from_secs(60));
    collector
}

#[test]
fn the_current_span_is_the_innermost_that_is_entered_on_this_thread() {
    with_layer(&[], || {
        assert_eq!(current_traceparent(), None);
        let outer = info_span!("outer");
        let inner = info_span!(parent: &outer, "inner");
        outer.in_scope(|| {
            assert_eq!(current_traceparent(), outer.traceparent());
            inner.in_scope(|| assert_eq!(current_traceparent(), inner.traceparent()));
            assert_eq!(current_traceparent(), outer.traceparent());
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(current_traceparent(), None));
            });
        });
        assert_eq!(current_traceparent(), None);
    });
}

#[test]
fn spans_left_in_another_order_leave_the_innermost_current() {
    with_layer(&[], || {
        let (a, b) = (info_span!("a"), info_span!("b"));
        let entered_a = a.enter();
        let entered_b = b.enter();
        drop(entered_a);
        assert_eq!(current_traceparent(), b.traceparent());
        drop(entered_b);
        assert_eq!(current_traceparent(), None);
    });
}

#[test]
fn a_remote_parent_can_be_set_until_there_are_children() {
    let collector = with_layer(&[], || {
        let server = info_span!("handle", otel.kind = "server").entered();
        server.set_parent_traceparent(REMOTE).unwrap();
        // The span was entered before: what is current follows.
        assert!(current_traceparent().unwrap().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        info_span!("child");
        assert_eq!(server.set_parent_traceparent(REMOTE), Err(TraceparentError::TooLate));
        assert_eq!(server.set_parent_traceparent("00-x"), Err(TraceparentError::Malformed));
    });
    let spans = collector.spans();
    assert_eq!(tree(&spans), "handle server\n  child\n");
    let server = spans.iter().find(|span| span.name == "handle").unwrap();
    assert_eq!(server.parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
    assert_eq!(server.flags, 0x301);
}

/// Headers as a request has them.
fn headers(pairs: &[(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    let pairs = pairs.to_vec();
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn injected(inject: impl FnOnce(&mut dyn FnMut(&'static str, &str))) -> Vec<String> {
    let mut written = Vec::new();
    inject(&mut |name, value| written.push(format!("{name}: {value}")));
    written
}

#[test]
fn what_a_request_brings_goes_on_with_the_requests_it_makes() {
    let collector = with_layer(&[], || {
        let server = info_span!("handle").entered();
        let request = headers(&[("traceparent", REMOTE), ("tracestate", "vendor=1"), ("baggage", "user=ann")]);
        server.set_parent_from(request).unwrap();
        let client = info_span!("call").entered();
        let traceparent = client.traceparent().unwrap();
        let expected = [format!("traceparent: {traceparent}"), "tracestate: vendor=1".into(), "baggage: user=ann".into()];
        assert_eq!(injected(|set| client.inject(set)), expected);
        assert_eq!(injected(|set| longpole_sdk::inject(set)), expected);
        drop(client);
        // A request without a context changes nothing.
        server.set_parent_from(headers(&[("tracestate", "vendor=2")])).unwrap();
    });
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace_state == "vendor=1"), "{spans:?}");
    assert_eq!(tree(&spans), "handle\n  call\n");
    assert_eq!(injected(|set| longpole_sdk::inject(set)), [""; 0]);
}

#[test]
fn the_environment_is_the_parent_of_roots() {
    let collector = with_layer(&[("TRACEPARENT", REMOTE)], || {
        info_span!("root").in_scope(|| info_span!("child"));
        info_span!(parent: None, "explicit root");
    });
    let parents: Vec<(String, bool)> =
        collector.spans().iter().map(|span| (span.name.clone(), span.parent_span_id.starts_with(&[0x00, 0xf0, 0x67, 0xaa]))).collect();
    assert_eq!(parents, [("child".into(), false), ("root".into(), true), ("explicit root".into(), true)]);
    assert!(collector.spans().iter().all(|span| span.trace_id.starts_with(&[0x4b, 0xf9])));
}

#[test]
fn what_the_parent_does_not_record_is_not_recorded_here() {
    let collector = with_layer(&[("TRACEPARENT", REMOTE_UNSAMPLED)], || {
        let root = info_span!("root");
        assert!(root.traceparent().unwrap().ends_with("-00"));
        root.in_scope(|| info_span!("child"));
        // A request of somebody who does record.
        let request = info_span!("request", field = 1);
        request.set_parent_traceparent(REMOTE).unwrap();
        request.in_scope(|| info_span!("query"));
    });
    assert_eq!(tree(&collector.spans()), "request field=1\n  query\n");
}

#[test]
fn samplers_decide_for_whole_traces() {
    let collector = with_layer(&[("OTEL_TRACES_SAMPLER", "always_off")], || {
        info_span!("root").in_scope(|| info_span!("child"));
    });
    assert!(collector.spans().is_empty());
    let vars = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0.5")];
    let collector = with_layer(&vars, || {
        for _ in 0..1_000 {
            info_span!("root").in_scope(|| info_span!("child"));
        }
    });
    let spans = collector.spans();
    let (roots, children): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span.name == "root");
    assert_eq!(roots.len(), children.len());
    // Twenty standard deviations to each side.
    assert!((184..=816).contains(&roots.len()), "{}", roots.len());
}

#[test]
fn a_span_that_is_switched_off_is_passed_by() {
    let collector = Collector::start(&[]);
    let layer = collector.layer(&[]);
    let handle = layer.handle();
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(LevelFilter::INFO));
    tracing::subscriber::with_default(subscriber, || {
        let outer = info_span!("outer").entered();
        let off = tracing::debug_span!("off").entered();
        assert_eq!((off.traceparent(), current_traceparent()), (None, outer.traceparent()));
        assert_eq!((off.set_parent_traceparent(REMOTE), off.add_link(REMOTE)), (Ok(()), Ok(())));
        info_span!("inner");
        assert_eq!(Span::none().traceparent(), None);
    });
    handle.shutdown(Duration::from_secs(60));
    assert_eq!(tree(&collector.spans()), "outer\n  inner\n");
}

#[test]
fn without_an_endpoint_spans_have_ids_and_nothing_is_counted() {
    let layer = longpole_sdk::layer_from(|_| None);
    let handle = layer.handle();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let span = info_span!("s", field = 1).entered();
        tracing::error!("event");
        assert_eq!(current_traceparent(), span.traceparent());
        assert!(current_traceparent().is_some());
    });
    assert_eq!(handle.shutdown(Duration::from_secs(60)), longpole_sdk::SpanCounts::default());
}

#[test]
fn a_disabled_sdk_does_nothing() {
    let collector = with_layer(&[("OTEL_SDK_DISABLED", "true")], || {
        let span = info_span!("s").entered();
        assert_eq!((span.traceparent(), current_traceparent()), (None, None));
    });
    assert!(collector.spans().is_empty());
}
