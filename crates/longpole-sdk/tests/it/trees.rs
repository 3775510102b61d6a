//! Programs and the spans that a collector receives of them.

use std::fmt;
use std::time::Duration;

use longpole_sdk::SpanExt;
use tracing::{Instrument, Span, error, info, info_span, instrument, warn};
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, attribute_map, tree};

/// Runs a program under a subscriber of its own and compares what arrived.
fn check(program: impl FnOnce(), expected: &str) {
    check_with(&[], program, expected);
}

fn check_with(vars: &[(&'static str, &str)], program: impl FnOnce(), expected: &str) {
    let collector = Collector::start(&[]);
    let layer = collector.layer(vars);
    let handle = layer.handle();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), program);
    let counts = handle.shutdown(Duration::from_secs(60));
    assert_eq!((counts.lost(), counts.outstanding), (0, 0));
    assert_eq!(counts.exported, collector.spans().len() as u64);
    let lines = expected.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).filter(|line| !line.trim().is_empty());
    let expected: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(tree(&collector.spans()), expected);
}

#[test]
fn spans_nest_as_they_were_entered() {
    check(
        || {
            let outer = info_span!("outer").entered();
            info_span!("first").in_scope(|| info_span!("inner").in_scope(|| ()));
            let second = info_span!(parent: &outer, "second");
            drop(outer);
            info_span!(parent: &second, "late child");
            info_span!("another root");
        },
        "
        outer
          first
            inner
          second
            late child
        another root
        ",
    );
}

#[test]
fn fields_keep_their_types() {
    struct Point(i32, i32);
    impl fmt::Debug for Point {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "({}, {})", self.0, self.1)
        }
    }
    check(
        || {
            let text = String::from("ä\"b");
            info_span!("typed", yes = true, int = -3, big = u64::MAX, huge = i128::MAX, small = 7u128, float = 1.5, text, empty = "");
            info_span!("formatted", debug = ?Point(1, 2), display = %42, bytes = &b"\x01\xff"[..], none = tracing::field::Empty);
        },
        r#"
        typed yes=true int=-3 big="18446744073709551615" huge="170141183460469231731687303715884105727" small=7 float=1.5 text="ä\"b" empty=""
        formatted debug="(1, 2)" display="42" bytes=[01, ff]
        "#,
    );
}

#[test]
fn a_later_value_takes_the_place_of_an_earlier_one() {
    check(
        || {
            let span = info_span!("s", a = 1, b = tracing::field::Empty, c = "x");
            span.record("b", 2).record("a", "one").record("c", "y").record("c", "z").record("nothing", 1);
        },
        r#"
        s b=2 a="one" c="z"
        "#,
    );
}

#[test]
fn the_otel_fields_say_what_they_say() {
    check(
        || {
            let span = info_span!(
                "static",
                otel.name = "GET /cart",
                otel.kind = "Server",
                otel.status_code = tracing::field::Empty,
                otel.status_description = tracing::field::Empty
            );
            span.record("otel.status_code", "ERROR").record("otel.status_description", "no cart");
            info_span!("ok", otel.kind = ?tracing::Level::INFO, otel.status_code = "ok", otel.other = 1);
            info_span!("renamed", otel.name = "a").record("otel.name", "b").record("otel.kind", "client");
        },
        r#"
        GET /cart server error "no cart"
        ok otel.other=1 ok ""
        b
        "#,
    );
}

#[test]
fn events_stand_in_their_span_and_errors_mark_it() {
    #[derive(Debug)]
    struct Failure(&'static str, Option<Box<Failure>>);
    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }
    impl std::error::Error for Failure {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }
    #[instrument(err, skip_all)]
    fn fails() -> Result<(), Failure> {
        Err(Failure("broken", None))
    }
    check(
        || {
            info!("outside of any span");
            let _span = info_span!("work").entered();
            info!(count = 3, "read {} lines", 2 + 1);
            warn!(target: "elsewhere", retry = true);
            let _ = fails();
            let failure = Failure("no answer", Some(Box::new(Failure("cable", Some(Box::new(Failure("cut", None)))))));
            info_span!("chain").in_scope(|| error!(cause = &failure as &dyn std::error::Error, "gave up"));
        },
        r#"
        work
          * read 3 lines count=3 level="INFO" target="it::trees"
          * event crates/longpole-sdk/tests/it/trees.rs:LINE retry=true level="WARN" target="elsewhere"
          fails error "broken"
            * exception error="broken" level="ERROR" target="it::trees" exception.message="broken"
          chain error "gave up"
            * gave up cause="no answer" cause.chain=["cable", "cut"] level="ERROR" target="it::trees"
        "#
        .replace("LINE", &line_of("warn!(target: \"elsewhere\"").to_string())
        .as_str(),
    );
}

/// The line of this file that holds a text, from 1.
fn line_of(text: &str) -> usize {
    include_str!("trees.rs").lines().position(|line| line.contains(text)).unwrap() + 1
}

#[test]
fn links_point_to_spans_that_are_open_ended_or_elsewhere() {
    check(
        || {
            let first = info_span!("first");
            let ended = first.traceparent().unwrap();
            drop(first);
            let open = info_span!("open");
            let span = info_span!("linked");
            span.follows_from(&open);
            span.add_link(&ended).unwrap();
            span.add_link("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
            assert!(span.add_link("00-nonsense").is_err());
        },
        "
        first
        open
        linked
          ~ open
          ~ first
          ~ elsewhere
        ",
    );
}

#[test]
fn limits_cut_and_count() {
    let limits = [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "1"),
        ("OTEL_SPAN_LINK_COUNT_LIMIT", "1"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3"),
    ];
    check_with(
        &limits,
        || {
            let other = info_span!("other");
            let span = info_span!("s", a = "aäöü", b = 1, c = 2, d = tracing::field::Empty).entered();
            span.record("d", 1);
            span.record("a", "bcde");
            span.follows_from(&other);
            span.follows_from(&other);
            info!("one");
            info!("two");
        },
        r#"
        other
        s b=1 a="bcd"
          * one level="INFO" target="it::trees"
          ~ other
          - 2 attributes dropped
          - 1 events dropped
          - 1 links dropped
        "#,
    );
}

#[test]
fn a_span_without_end_stays_within_its_bytes() {
    let collector = Collector::start(&[]);
    let layer = collector.layer(&[("OTEL_SPAN_EVENT_COUNT_LIMIT", "1000000")]);
    let handle = layer.handle();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _span = info_span!("long").entered();
        let text = "x".repeat(10_000);
        for _ in 0..1_000 {
            info!(text);
        }
    });
    handle.shutdown(Duration::from_secs(60));
    let spans = collector.spans();
    let events = spans[0].events.len() as u32;
    assert!((100..110).contains(&events), "{events}");
    assert_eq!(events + spans[0].dropped_events_count, 1_000);
}

/// `tracing` itself drops spans and events that come while an event is recorded; while a field is recorded, it does not.
#[test]
fn a_debug_that_makes_spans_of_its_own_disturbs_nothing() {
    struct Chatty(Span);
    impl fmt::Debug for Chatty {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.in_scope(|| info!(inner = ?(1, 2), "asked"));
            f.write_str("answer")
        }
    }
    check(
        || {
            let span = info_span!("s", late = tracing::field::Empty, early = tracing::field::Empty);
            span.record("late", tracing::field::debug(Chatty(span.clone())));
            span.in_scope(|| info!(value = ?Chatty(span.clone()), "said"));
        },
        r#"
        s late="answer"
          * asked inner="(1, 2)" level="INFO" target="it::trees"
          * said value="answer" level="INFO" target="it::trees"
        "#,
    );
}

#[test]
fn tasks_that_interleave_on_one_thread_keep_their_own_trees() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    check(
        || {
            runtime.block_on(async {
                let request = |name: &'static str| {
                    async move {
                        tokio::task::yield_now().await;
                        async { tokio::task::yield_now().await }.instrument(info_span!("query", of = name)).await;
                    }
                    .instrument(info_span!("request", otel.name = name))
                };
                tokio::join!(request("a"), request("b"));
            });
        },
        r#"
        a
          query of="a"
        b
          query of="b"
        "#,
    );
}

#[test]
fn a_request_has_the_resource_the_scope_the_place_and_the_thread() {
    let collector = Collector::start(&[]);
    let layer = collector.layer(&[("OTEL_SERVICE_NAME", "shop"), ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")]);
    let handle = layer.handle();
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        std::thread::Builder::new()
            .name("worker".into())
            .spawn({
                let dispatch = tracing::dispatcher::get_default(Clone::clone);
                move || tracing::dispatcher::with_default(&dispatch, || drop(info_span!(target: "shop", "here")))
            })
            .unwrap()
            .join()
            .unwrap();
    });
    handle.shutdown(Duration::from_secs(60));
    let (head, request) = collector.requests().remove(0);
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\n"), "{head}");
    assert!(head.contains("\ncontent-type: application/x-protobuf\n") && head.contains("\nx-key: a b\n"), "{head}");

    let resource = &request.resource_spans[0];
    let attributes = attribute_map(&resource.resource.as_ref().unwrap().attributes);
    assert_eq!(attributes["service.name"], "\"shop\"");
    assert_eq!(attributes["process.pid"], std::process::id().to_string());
    assert!(attributes["process.executable.name"].starts_with("\"it-"));
    assert_eq!(attributes["telemetry.sdk.language"], "\"rust\"");
    let scope = resource.scope_spans[0].scope.as_ref().unwrap();
    assert_eq!((scope.name.as_str(), scope.attributes.len()), ("longpole-sdk", 0));

    let span = &resource.scope_spans[0].spans[0];
    let attributes = attribute_map(&span.attributes);
    assert_eq!(attributes["code.file.path"], "\"crates/longpole-sdk/tests/it/trees.rs\"");
    assert_eq!(attributes["code.line.number"], line_of("info_span!(target: \"shop\"").to_string());
    assert_eq!(attributes["target"], "\"shop\"");
    assert_eq!(attributes["thread.name"], "\"worker\"");
    if cfg!(target_os = "linux") {
        assert_ne!(attributes["thread.id"], std::process::id().to_string());
    }
    let after = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    // The offset between the clocks is known to some microseconds.
    let near = before - 1_000_000..after + 1_000_000;
    assert!(near.contains(&span.start_time_unix_nano) && near.contains(&span.end_time_unix_nano));
    assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    assert_eq!(span.flags, 0x101);
}
