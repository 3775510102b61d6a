//! Story: the processes of a command are instrumented with whatever OpenTelemetry SDK their language has.
//! Guarantees: with no variable set by the user, stock SDKs of Rust, Python, Node, Java and Go send their spans to the recording, by
//! gRPC, by HTTP with protobuf and by HTTP with JSON; nested spans keep their parents, and all stand under one root, also those of
//! many processes, and to a server that their endpoint names; a request that cannot be read is answered with its reason and counted; who outlives the command is named.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use opentelemetry::trace::{Span as _, TraceContextExt, Tracer, TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::support::served::Served;
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
    let roots = spans.iter().filter(|(_, parent, _)| parent.is_empty()).count();
    assert_eq!(roots, 1, "{how}: not one root: {spans:?}");
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

/// A language whose SDK `cargo xtask test` sets up where it can.
struct Sdk {
    language: &'static str,
    /// Names what was set up.
    variable: &'static str,
    /// Why there may be none.
    without: &'static str,
    /// What the program calls its protocols.
    protocols: &'static [&'static str],
    /// The program that sends by a protocol.
    command: fn(PathBuf, &str) -> Vec<OsString>,
}

const PYTHON_SDK: Sdk = Sdk {
    language: "Python",
    variable: "LONGPOLE_PYTHON",
    without: "`cargo xtask test` makes one where pip works",
    protocols: &["grpc", "http"],
    command: |python, protocol| vec![python.into(), "-c".into(), PYTHON.into(), protocol.into()],
};

const NODE_SDK: Sdk = Sdk {
    language: "Node",
    variable: "LONGPOLE_NODE_SDK",
    without: "`cargo xtask test` installs it where npm works",
    protocols: &["grpc", "http", "proto"],
    command: |program, protocol| vec!["node".into(), program.into(), protocol.into()],
};

const JAVA_SDK: Sdk = Sdk {
    language: "Java",
    variable: "LONGPOLE_JAVA_SDK",
    without: "`cargo xtask test` fetches it where mvn and javac work",
    protocols: &["grpc", "http/protobuf"],
    command: |jars, protocol| {
        let mut path = jars.join("classes").into_os_string();
        path.push(":");
        path.push(jars.join("*"));
        let protocol = format!("-Dotel.exporter.otlp.protocol={protocol}").into();
        vec!["java".into(), protocol, "-cp".into(), path, "Emit".into()]
    },
};

const GO_SDK: Sdk = Sdk {
    language: "Go",
    variable: "LONGPOLE_GO_SDK",
    without: "`cargo xtask test` builds it where Go is",
    protocols: &["grpc", "http"],
    command: |program, protocol| vec![program.into(), protocol.into()],
};

impl Sdk {
    /// Where it was set up, or a noted skip.
    fn there(&self) -> Option<PathBuf> {
        let there = std::env::var_os(self.variable).map(PathBuf::from);
        if there.is_none() {
            let what = format!("the stock {} SDK by gRPC and HTTP", self.language);
            skip(&what, &format!("no program with the OpenTelemetry SDK of {}; {}", self.language, self.without));
        }
        there
    }

    /// To a recording, and to a server that only the endpoint names.
    fn check(&self) {
        let Some(there) = self.there() else { return };
        self.check_run(&there);
        let sandbox = Sandbox::new();
        for protocol in self.protocols {
            let served = Served::start(&sandbox.path(&format!("served-{}", protocol.replace('/', "-"))));
            let port = served.port(if *protocol == "grpc" { "otlp-grpc" } else { "otlp-http" });
            let [program, arguments @ ..] = &(self.command)(there.clone(), protocol)[..] else { panic!("no program") };
            let endpoint = format!("http://localhost:{port}");
            let sent = Command::new(program).args(arguments).env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).output().unwrap();
            let how = format!("{} by {protocol} to a server", self.language);
            assert!(sent.status.success() && sent.stderr.is_empty(), "{how}: {}", String::from_utf8_lossy(&sent.stderr));
            // What each calls itself without a name is its own affair.
            let services = served.jaeger("/api/services")["data"].clone();
            let service = services[0].as_str().unwrap_or_else(|| panic!("{how}: nothing came")).replace(' ', "%20");
            let found = served.jaeger(&format!("/api/traces?service={service}&operation=inner"));
            assert_eq!(found["data"][0]["spans"].as_array().map(Vec::len), Some(2), "{how}: {found}");
            served.stop();
        }
    }

    fn check_run(&self, there: &Path) {
        let sandbox = Sandbox::new();
        for protocol in self.protocols {
            let store = sandbox.path(&protocol.replace('/', "-"));
            let run = longpole(&store)
                .args(["run", "--summary", "none", "--no-profile", "--"])
                .args((self.command)(there.to_owned(), protocol))
                .output()
                .unwrap();
            let how = format!("{} by {protocol}", self.language);
            assert!(run.status.success(), "{how}: {}", String::from_utf8_lossy(&run.stderr));
            assert_eq!(run.stderr, b"", "{how}: the exporter complains");
            assert_tree(&store, &how);
        }
    }
}

#[test]
fn the_stock_python_sdk_by_grpc_and_http() {
    PYTHON_SDK.check();
}

#[test]
fn the_stock_node_sdk_by_grpc_and_http() {
    NODE_SDK.check();
}

#[test]
fn the_stock_java_sdk_by_grpc_and_http() {
    JAVA_SDK.check();
}

#[test]
fn the_stock_go_sdk_by_grpc_and_http() {
    GO_SDK.check();
}

#[test]
fn programs_in_all_languages_share_one_root() {
    let mut script = String::new();
    let mut words = Vec::new();
    for sdk in [PYTHON_SDK, NODE_SDK, JAVA_SDK, GO_SDK] {
        let Some(there) = sdk.there() else { continue };
        for protocol in sdk.protocols {
            let command = (sdk.command)(there.clone(), protocol);
            let count = command.len();
            words.extend(command);
            // Each takes its words off the front, in a process of its own.
            let arguments: Vec<String> = (1..=count).map(|n| format!("\"${{{n}}}\"")).collect();
            script.push_str(&format!("{} & shift {count}\n", arguments.join(" ")));
        }
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--", "sh", "-c", &format!("{script}wait"), "sh"])
        .args(&words)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let spans = spans_of(&store);
    let programs = script.lines().count();
    for name in ["outer", "inner"] {
        assert_eq!(spans.iter().filter(|(n, ..)| n == name).count(), programs, "{name}: {spans:?}");
    }
    assert!(spans.iter().filter(|(name, ..)| name == "inner").all(|(_, parent, _)| parent == "outer"), "{spans:?}");
    assert_eq!(spans.iter().filter(|(_, parent, _)| parent.is_empty()).count(), 1, "not one root: {spans:?}");
}

#[test]
fn a_process_that_outlives_the_command_is_named() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // The command ends once it runs; it ends when its input does, which is when this story lets go of it.
    let command = "exec 3<&0; cat <&3 >/dev/null 2>&1 & while [ \"$name\" != cat ]; do read -r name </proc/$!/comm; done";
    let mut run =
        longpole(&store).args(["run", "--summary", "none", "--", "sh", "-c", command]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = run.stdin.take();
    assert!(run.wait().unwrap().success());
    drop(input);
    let view = json(longpole(&store).args(["show", "--format", "json"]));
    let outlived = view["quality"].as_array().unwrap().iter().find(|q| q["code"] == "unfinished");
    let said = outlived.and_then(|q| q["detail"].as_str()).unwrap_or_default();
    assert!(said.contains("cat (pid "), "{view}");
}

#[test]
fn an_invalid_request_is_answered_and_counted() {
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

/// The program: one request that is no protobuf, and its response.
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

#[test]
fn a_trace_file_that_the_command_wrote_joins_the_recording() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let spans_of = |script: &str, words: &[&str]| {
        let mut run = longpole(&store);
        run.args(["run", "--summary", "none", "--", "sh", "-c", script, "sh"]).args(words).current_dir(sandbox.path(""));
        let out = run.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        (json(longpole(&store).args(["show", "--format", "json"]))["spans"].clone(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let exports = |origin: &str| {
        format!(
            r#"start={origin}; sleep 0.05; end=$((start + 40000000))
            printf '{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"work","startTimeUnixNano":"%s","endTimeUnixNano":"%s"}}]}}]}}]}}\n' $start $end > "${{1#--trace-out=}}""#
        )
    };
    let now = exports("$(date +%s%N)");
    for word in ["out.jsonl", "--trace-out=other.json"] {
        let (spans, said) = spans_of(&now, &[word]);
        assert_eq!(spans, 1, "{word}: {said}");
        assert!(said.contains("read 1 span from "), "{word}: {said}");
    }
    // Data of the command, older than the run, and a file that the command only reads.
    assert_eq!(spans_of(&exports("1700000000000000000"), &["old.json"]).0, 0);
    assert_eq!(spans_of("cat \"$1\"", &["out.jsonl"]).0, 0);
}
