//! What the builder sets up, as a program sees it.

use std::process::Command;

use longpole_sdk::{LevelFilter, Logs, Protocol, SpanProcessor};
use tracing::{debug_span, error, info, info_span};
use tracing_subscriber::prelude::*;

use crate::collector::{Collector, attribute_map, tree};

#[test]
fn the_level_decides_which_spans_are_made() {
    let collector = Collector::start(&[]);
    let endpoint = collector.endpoint.clone();
    let (dispatch, guard) = longpole_sdk::builder()
        .service_name("shop")
        .resource("service.version", "3")
        .default_endpoint(endpoint)
        .level(LevelFilter::INFO)
        .variables(|_| None)
        .build();
    tracing::dispatcher::with_default(&dispatch, || {
        let _outer = info_span!("outer").entered();
        let _between = debug_span!("between").entered();
        info_span!("inner");
    });
    assert_eq!(guard.shutdown().exported, 2);
    assert_eq!(tree(&collector.spans()), "outer\n  inner\n");
    let (_, request) = collector.requests().pop().unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let attributes = attribute_map(&resource.attributes);
    assert_eq!((attributes["service.name"].as_str(), attributes["service.version"].as_str()), ("\"shop\"", "\"3\""));
    assert_eq!(attributes["process.pid"], std::process::id().to_string());
    assert!(attributes["process.executable.path"].contains(attributes["process.executable.name"].trim_matches('"')));
}

/// Runs [`logging_program`] in a process of its own and returns its stderr.
fn stderr_of(logs: &str, rust_log: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "builder::logging_program", "--nocapture"])
        .envs([("LONGPOLE_TEST_LOGS", logs), ("RUST_LOG", rust_log)])
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .output()
        .unwrap();
    assert!(child.status.success());
    String::from_utf8(child.stderr).unwrap()
}

#[test]
fn logging_program() {
    let Ok(logs) = std::env::var("LONGPOLE_TEST_LOGS") else { return };
    longpole_sdk::builder().logs(logs.parse().unwrap()).level(LevelFilter::INFO).run(|| {
        info!("outside");
        let span = info_span!("work", item = 7).entered();
        eprintln!("{}", longpole_sdk::current_traceparent().unwrap());
        info!(count = 3, ratio = 0.5, path = "a\"b", "inside\nof it");
        drop(span);
        error!("bad");
    });
}

/// Trace and span id of the `traceparent` that the program prints.
fn ids(stderr: &str) -> (String, String) {
    let line = stderr.lines().find(|line| line.starts_with("00-")).unwrap();
    let parts: Vec<&str> = line.split('-').collect();
    (parts[1].into(), parts[2].into())
}

#[test]
fn text_logs_end_with_the_ids_of_their_span() {
    let stderr = stderr_of("text", "info");
    let (trace_id, span_id) = ids(&stderr);
    assert!(stderr.contains(&format!(" trace_id={trace_id} span_id={span_id}\n")), "{stderr}");
    let outside = stderr.lines().find(|line| line.contains("outside")).unwrap();
    assert!(!outside.contains("trace_id"), "{stderr}");
    // What `RUST_LOG` leaves out has no line, and its span is made all the same.
    let stderr = stderr_of("text", "error");
    assert!(stderr.contains("bad") && !stderr.contains("inside"), "{stderr}");
}

#[test]
fn json_logs_are_one_object_per_line() {
    let stderr = stderr_of("json", "info");
    let (trace_id, span_id) = ids(&stderr);
    let line = stderr.lines().find(|line| line.contains("inside")).unwrap();
    let end = format!(
        r#""level":"INFO","target":"it::builder","message":"inside\nof it","fields":{{"count":3,"ratio":0.5,"path":"a\"b"}},"span":"work","trace_id":"{trace_id}","span_id":"{span_id}"}}"#
    );
    assert!(line.starts_with(r#"{"timestamp":"2"#) && line.ends_with(&end), "{line}\n{end}");
    assert!(!stderr_of("off", "info").contains("inside"));
}

/// A program whose subscriber is its own, with our layer in it.
#[test]
fn own_subscriber_program() {
    let Ok(endpoint) = std::env::var("LONGPOLE_TEST_ENDPOINT") else { return };
    let layer = longpole_sdk::layer_from(move |name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.clone()));
    tracing_subscriber::registry().with(layer).init();
    longpole_sdk::run(|| drop(info_span!("s")));
}

#[test]
fn a_layer_in_a_subscriber_of_the_program_ends_with_run() {
    let collector = Collector::start(&[]);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "builder::own_subscriber_program"])
        .env("LONGPOLE_TEST_ENDPOINT", &collector.endpoint)
        .output()
        .unwrap();
    assert!(child.status.success());
    assert_eq!(collector.spans().len(), 1);
}

#[test]
fn names_of_flags_are_those_of_embucket() {
    let names = SpanProcessor::ALL.map(SpanProcessor::name);
    assert!(names.contains(&"batch-span-processor") && names.contains(&"batch-span-processor-experimental-async-runtime"));
    assert_eq!("grpc".parse(), Ok(Protocol::Grpc));
    assert_eq!("json".parse(), Ok(Logs::Json));
}
