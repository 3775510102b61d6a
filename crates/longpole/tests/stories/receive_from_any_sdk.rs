//! Story: the processes of a command are instrumented with whatever OpenTelemetry SDK their language has.
//! Guarantees: with no variable set by the user, stock SDKs send their spans to the recording, by gRPC, by HTTP with protobuf and
//! by HTTP with JSON; nested spans keep their parents; a request that cannot be read is answered with its reason and counted.

use opentelemetry::trace::{Span as _, TraceContextExt, Tracer, TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::support::{Sandbox, json, longpole, role, skip};

fn spans_of(store: &std::path::Path) -> Vec<(String, String, bool)> {
    let view = json(longpole(store).args(["tree", "--format", "json"]));
    let text = |list: &str, index: &serde_json::Value| view[list][index.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
    let columns = &view["spans"];
    (0..columns["parent"].as_array().unwrap().len())
        .map(|row| {
            let parent = columns["parent"][row].as_i64().unwrap();
            let parent = usize::try_from(parent).map(|p| text("names", &columns["name"][p])).unwrap_or_default();
            (text("names", &columns["name"][row]), parent, columns["flags"][row].as_u64().unwrap() & 2 != 0)
        })
        .collect()
}

fn assert_tree(store: &std::path::Path, how: &str) {
    let spans = spans_of(store);
    assert!(spans.iter().any(|(name, parent, _)| name == "inner" && parent == "outer"), "{how}: `inner` is not under `outer`: {spans:?}");
    assert!(
        spans.iter().any(|(name, _, inferred)| name == "outer" && *inferred),
        "{how}: `outer` does not hang under its process: {spans:?}"
    );
}

#[test]
fn the_stock_rust_sdk_in_every_protocol() {
    let sandbox = Sandbox::new();
    for protocol in ["grpc", "http/protobuf", "http/json"] {
        let store = sandbox.path(&protocol.replace('/', "-"));
        let run = longpole(&store)
            .args(["run", "--summary", "none", "--no-profile", "--"])
            .args(role("receive_from_any_sdk::emit"))
            .env("LONGPOLE_STORY_PROTOCOL", protocol)
            .output()
            .unwrap();
        assert!(run.status.success(), "{protocol}: {}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_tree(&store, protocol);
    }
}

/// The program: two nested spans through the stock SDK, whose endpoint comes from the environment alone.
#[test]
fn emit() {
    let Ok(protocol) = std::env::var("LONGPOLE_STORY_PROTOCOL") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let entered = runtime.enter();
    let exporter = match protocol.as_str() {
        "grpc" => SpanExporter::builder().with_tonic().build(),
        "http/protobuf" => SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build(),
        "http/json" => SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson).build(),
        other => panic!("no protocol {other}"),
    }
    .unwrap();
    drop(entered);
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let tracer = provider.tracer("story");
    tracer.in_span("outer", |context| {
        context.span().set_attribute(opentelemetry::KeyValue::new("protocol", protocol.clone()));
        tracer.start("inner").end();
    });
    provider.shutdown().unwrap();
}

/// The program in Python: the stock SDK and exporter, nothing configured.
const PYTHON: &str = r#"
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
if sys.argv[1] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("story")
with tracer.start_as_current_span("outer"):
    with tracer.start_as_current_span("inner"):
        pass
provider.shutdown()
"#;

#[test]
fn the_stock_python_sdk_by_grpc_and_http() {
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON") else {
        skip("the stock Python SDK by gRPC and HTTP", "no Python with the OpenTelemetry SDK; `cargo xtask test` makes one where pip works");
        return;
    };
    let sandbox = Sandbox::new();
    for protocol in ["grpc", "http"] {
        let store = sandbox.path(protocol);
        let run = longpole(&store)
            .args(["run", "--summary", "none", "--no-profile", "--"])
            .arg(&python)
            .args(["-c", PYTHON, protocol])
            .output()
            .unwrap();
        assert!(run.status.success(), "{protocol}: {}", String::from_utf8_lossy(&run.stderr));
        assert_tree(&store, protocol);
    }
}

#[test]
fn a_request_that_cannot_be_read_is_answered_and_counted() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--no-profile", "--"])
        .args(role("receive_from_any_sdk::send_nonsense"))
        .env("LONGPOLE_STORY_NONSENSE", "1")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let view = json(longpole(&store).args(["show", "--format", "json"]));
    let refused = view["quality"].as_array().unwrap().iter().find(|q| q["code"] == "requests_refused");
    assert_eq!(refused.and_then(|q| q["count"].as_u64()), Some(1), "{view}");
}

/// The program: one request that is no protobuf, and what it is told.
#[test]
fn send_nonsense() {
    if std::env::var_os("LONGPOLE_STORY_NONSENSE").is_none() {
        return;
    }
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer =
        agent.post(format!("{endpoint}/v1/traces")).header("content-type", "application/x-protobuf").send(&b"\x0a\xff"[..]).unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.headers()["content-type"], "application/x-protobuf");
}
