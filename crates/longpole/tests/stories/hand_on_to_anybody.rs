//! Story: what a command sends is handed on to collectors of other people, and one of them is not well.
//! Guarantees: a target that is dead, slow, unwilling or out of its mind changes nothing for the command; what it did not get is counted
//! to the span, with the reason, and what the others got is whole; TLS is spoken with whom the user trusts and with nobody else; what has
//! no form that a target could read is counted too.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use crate::support::collector::Collector;
use crate::support::{Sandbox, json, longpole, role, target};

/// What the program sends: `spans`, or `others`.
const SEND: &str = "LONGPOLE_STORY_SEND";

const REQUESTS: u64 = 20;
const SPANS_A_REQUEST: u64 = 3;

/// What each target gets: what the program sends, and the run's own span.
const SPANS: u64 = REQUESTS * SPANS_A_REQUEST + 1;

/// Data points and log records that the program sends as JSON.
const POINTS: u64 = 2;
const RECORDS: u64 = 3;

/// The program: all it sends is taken at once, and then it says so.
#[test]
fn send() {
    let Ok(what) = std::env::var(SEND) else { return };
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    let post = |path: &str, kind: &str, body: &[u8]| {
        assert_eq!(ureq::post(format!("{endpoint}{path}")).header("content-type", kind).send(body).unwrap().status(), 200);
    };
    if what == "others" {
        post(
            "/v1/metrics",
            "application/json",
            br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{},{}]}}]}]}]}"#,
        );
        post("/v1/logs", "application/json", br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{},{}]}]}]}"#);
    } else {
        for request in 1..=REQUESTS {
            let span = |number: u64| Span {
                trace_id: vec![7; 16],
                span_id: (request * SPANS_A_REQUEST + number).to_be_bytes().to_vec(),
                name: "step".to_owned(),
                start_time_unix_nano: 1_700_000_000_000_000_000,
                end_time_unix_nano: 1_700_000_000_000_000_900,
                ..Span::default()
            };
            let scope = ScopeSpans { spans: (0..SPANS_A_REQUEST).map(span).collect(), ..ScopeSpans::default() };
            let spans = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
            post("/v1/traces", "application/x-protobuf", &ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec());
        }
    }
    println!("all taken");
}

/// A run of the program that hands on to these targets.
struct Run {
    store: PathBuf,
    child: std::process::Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Run {
    fn start(sandbox: &Sandbox, flags: &[String], variables: &[(&str, &str)]) -> Run {
        let store = sandbox.path("store");
        let mut child = longpole(&store)
            .args(["run", "--no-profile", "--summary", "none"])
            .args(flags)
            .arg("--")
            .args(role("hand_on_to_anybody::send"))
            .env(SEND, "spans")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        Run { store, child, lines: Box::new(lines) }
    }

    /// The program has sent all it has, and each of its requests was answered.
    fn all_taken(&mut self) {
        assert!(self.lines.any(|line| line.ends_with("all taken")), "the program came to no good end");
    }

    /// What the recording says when the run is over.
    fn summary(mut self) -> Value {
        self.all_taken();
        self.lines.for_each(drop);
        assert!(self.child.wait().unwrap().success());
        json(longpole(&self.store).args(["show", "--format", "json"]))
    }
}

/// What was not handed on to a target: how much, and why.
fn undelivered(summary: &Value, target: &str) -> (u64, Vec<String>) {
    let notes = summary["quality"].as_array().unwrap().iter().filter(|note| note["code"] == "forward_failed");
    let of_target = notes.filter(|note| note["detail"].as_str().unwrap().contains(target));
    of_target.fold((0, Vec::new()), |(count, mut reasons), note| {
        reasons.push(note["detail"].as_str().unwrap().to_owned());
        (count + note["count"].as_u64().unwrap_or(1), reasons)
    })
}

/// All that a target did not get is counted, each time with this reason.
#[track_caller]
fn assert_undelivered(summary: &Value, target: &str, count: u64, reason: &str) {
    let (counted, reasons) = undelivered(summary, target);
    assert_eq!(counted, count, "{target}: {reasons:?}\n{}", summary["quality"]);
    assert!(reasons.iter().all(|said| said.contains(reason)), "{target}: {reasons:?}");
}

/// A file of OTLP lines has everything, whatever became of the others.
#[track_caller]
fn assert_whole(file: &Path) {
    let store = file.with_extension("store");
    let imported = json(longpole(&store).args(["import", "--format", "json"]).arg(file));
    assert_eq!(imported[0]["spans"], SPANS, "{imported}");
}

fn flags(flag: &str, targets: &[String]) -> Vec<String> {
    targets.iter().flat_map(|target| [flag.to_owned(), target.clone()]).collect()
}

#[test]
fn a_target_that_never_answers_delays_nothing() {
    let sandbox = Sandbox::new();
    let silent = [target::silent(), target::silent(), target::silent(), target::silent()];
    let [http, grpc, appdash, zipkin] = silent.each_ref().map(|(address, _)| address.clone());
    let file = sandbox.path("lines.json");
    let targets = flags("--otel-traces", &[format!("http://{http}"), format!("grpc://{grpc}"), format!("file:{}", file.display())]);
    let old = flags("--tracing", &[format!("tcp://{appdash}"), format!("http://{zipkin}/api/v2/spans")]);
    let mut run = Run::start(&sandbox, &[targets, old].concat(), &[]);
    // Each of them has something and lets go of nothing, and the program is done with all of it.
    silent.iter().for_each(|(_, comes)| comes.recv().unwrap());
    run.all_taken();
    run.lines = Box::new(std::iter::once("all taken".to_owned()).chain(run.lines));
    let summary = run.summary();
    for target in [http, grpc, appdash, zipkin] {
        assert_undelivered(&summary, &target, SPANS, "did not take them before longpole ended");
    }
    assert_whole(&file);
}

#[test]
fn failing_targets_change_nothing_and_every_lost_span_is_counted() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("lines.json");
    let dead = target::dead();
    let bad_request = target::answering("400 Bad Request");
    let later = target::answering("503 Service Unavailable\r\nRetry-After: 3600");
    let dated =
        target::answering("503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 09:49:37 GMT");
    let page = target::answering("200 OK\r\nContent-Type: text/html");
    let unavailable = target::grpc(14);
    let denied = target::grpc(7);
    let garbage = target::serving(|mut stream| {
        // Whoever is gone before has heard enough.
        let _ = std::io::Read::read(&mut stream, &mut [0; 64]);
        let _ = std::io::Write::write_all(&mut stream, b"\x16\x03\x01 what?\r\n\r\n");
    });
    let nowhere = sandbox.path("no/such/folder/t.json");
    let otel = [
        format!("http://{dead}"),
        format!("http://{bad_request}"),
        format!("http://{later}"),
        format!("http://{dated}/in"),
        format!("http://{page}"),
        format!("http://{garbage}"),
        format!("grpc://{unavailable}"),
        format!("grpc://{denied}"),
        format!("file:{}", nowhere.display()),
        format!("file:{}", file.display()),
    ];
    let summary = Run::start(&sandbox, &flags("--otel-traces", &otel), &[]).summary();
    for (target, reason) in [
        (&dead, "Connection refused"),
        (&bad_request, "http status 400"),
        (&later, "http status 503; gave up"),
        (&dated, "http status 503; gave up"),
        (&page, "answered with a web page"),
        (&garbage, "invalid HTTP"),
        (&unavailable, "grpc status 14"),
        (&denied, "grpc status 7"),
        (&nowhere.display().to_string(), "failed to create it: No such file or directory"),
    ] {
        assert_undelivered(&summary, target, SPANS, reason);
    }
    assert_whole(&file);
}

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../longpole-server/src/forward/testdata");

/// A port of TLS with a certificate that nobody trusts who was not told to; it speaks HTTP, or gRPC.
fn secured(grpc: bool) -> String {
    let folder = Path::new(CERTIFICATES);
    let certificates = CertificateDer::pem_file_iter(folder.join("localhost.cert.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("localhost.key.pem")).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols = if grpc { vec![b"h2".to_vec()] } else { Vec::new() };
    let config = Arc::new(config);
    let address = target::serving(move |stream| {
        let stream = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        if grpc { target::serve_grpc(stream, 0) } else { target::serve_http(stream, "200 OK") }
    });
    address.replace("127.0.0.1", "localhost")
}

#[test]
fn tls_connects_to_trusted_targets_only() {
    let [http, grpc] = [secured(false), secured(true)];
    let typed = flags("--otel-traces", &[format!("https://{http}"), format!("grpcs://{grpc}")]);
    let certificate = format!("{CERTIFICATES}/localhost.cert.pem");
    let trusted = [("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate.as_str())];

    let sandbox = Sandbox::new();
    let summary = Run::start(&sandbox, &typed, &trusted).summary();
    assert_eq!((undelivered(&summary, &http), undelivered(&summary, &grpc)), Default::default());

    // The user's own endpoint, by the variables that every SDK reads.
    let sandbox = Sandbox::new();
    let endpoint = format!("https://{grpc}");
    let by_variables = [trusted[0], ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    assert_eq!(undelivered(&Run::start(&sandbox, &[], &by_variables).summary(), &grpc), Default::default());

    let sandbox = Sandbox::new();
    let summary = Run::start(&sandbox, &typed, &[]).summary();
    for target in [&http, &grpc] {
        assert_undelivered(&summary, target, SPANS, "invalid peer certificate: UnknownIssuer");
    }

    let sandbox = Sandbox::new();
    let summary = Run::start(&sandbox, &typed, &[("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such.pem")]).summary();
    assert_eq!(undelivered(&summary, "failed to read /no/such.pem: No such file or directory").0, 1);
    assert_undelivered(&summary, &format!("//{http}"), SPANS, "invalid peer certificate: UnknownIssuer");
}

#[test]
fn json_metrics_and_logs_reach_a_grpc_endpoint_or_are_counted() {
    let others = |endpoint: &str| {
        let sandbox = Sandbox::new();
        let endpoint = format!("http://{endpoint}");
        let by_variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), (SEND, "others")];
        Run::start(&sandbox, &[], &by_variables).summary()
    };
    // One that speaks gRPC only. The run's own span it takes.
    let grpc = target::grpc(0);
    assert_undelivered(&others(&grpc), &grpc, POINTS + RECORDS, "speaks gRPC, which cannot carry JSON");

    // One that speaks both.
    let sandbox = Sandbox::new();
    let collector = Collector::start(&sandbox, "both");
    let address = collector.address.clone();
    assert_eq!(undelivered(&others(&address), &address), Default::default());
    let collected = collector.ends().summary;
    let signals = collected["quality"].as_array().unwrap().iter().filter(|note| note["code"] == "other_signals");
    assert_eq!(signals.map(|note| note["count"].as_u64().unwrap_or(1)).sum::<u64>(), POINTS + RECORDS, "{}", collected["quality"]);
}
