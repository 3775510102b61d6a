//! Story: a command, its traces and its deployment carry credentials, and the recording is mailed to somebody.
//! Guarantees: a value with the name or the shape of a credential, and every body of Pulumi's payloads, stands in no byte that longpole writes:
//! not in the log while the command runs, not in the sealed recording, the catalog, a table, an export or on the screen, whichever door
//! it came through; with `--redact off` credentials are kept, and the payloads not even then.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use serde_json::{Value, json};

use crate::support::appdash::frame;
use crate::support::{Sandbox, json as answer, longpole, role};

/// Tells the program that it is one.
const PLANT: &str = "LONGPOLE_STORY_PLANT";

/// What each door is called, and stands in the name of its span, so that it can be seen that the span is there.
const DOORS: [&str; 5] = ["otlp-json", "otlp-protobuf", "zipkin-v2", "zipkin-v1", "appdash"];

/// A credential of this place: the same each time, and nothing that stands anywhere by chance.
fn secret(place: &str) -> String {
    // FNV-1a.
    let hash = place.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("Zq{hash:016x}")
}

/// The text of an engine's payload, with a secret in a property that nobody would take for one by its name.
fn payload(place: &str) -> String {
    let secret = secret(place);
    format!(r#"urn:"urn:pulumi:dev::shop::a:b:C::n" properties:{{fields:{{key:"label" value:{{string_value:"{secret}"}}}}}}"#)
}

fn url(door: &str) -> String {
    let s = |what: &str| secret(&format!("{door} url {what}"));
    format!("https://ann:{}@shop.example/login?access_token={}&page=2&sig={}", s("user"), s("token"), s("signature"))
}

/// Attributes that hold a credential, as texts; how a door says lists is its own matter.
fn attributes(door: &str) -> Vec<(&'static str, String)> {
    let s = |what: &str| secret(&format!("{door} {what}"));
    vec![
        ("http.url", url(door)),
        ("url.query", format!("page=2&password={}", s("query"))),
        ("http.request.header.x-api-key", s("header")),
        ("http.request.headers", format!(r#"{{"cookie":["{}"],"accept":["*/*"]}}"#, s("cookie"))),
        ("process.command_line", format!("deploy --level 3 --password {}", s("command line"))),
        ("os.Args", format!("[pulumi config set dbPassword {}]", s("config"))),
    ]
}

/// Every place of a door, as far as [`attributes`] and [`payload`] go.
fn places(door: &str) -> BTreeSet<String> {
    let of_attributes = ["url user", "url token", "url signature", "query", "header", "cookie", "command line", "config"];
    of_attributes.iter().map(|what| format!("{door} {what}")).collect()
}

/// Places of payloads: never kept.
fn payload_places() -> BTreeSet<String> {
    let bridged = ["otlp-json", "otlp-protobuf"].iter().flat_map(|door| ["attribute", "event"].map(|at| format!("{door} payload {at}")));
    bridged.chain(["zipkin-v2", "zipkin-v1", "appdash"].iter().map(|door| format!("{door} payload"))).collect()
}

/// Places of credentials: kept where the user wants them.
fn credential_places() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = DOORS.iter().flat_map(|door| places(door)).collect();
    for door in ["otlp-json", "otlp-protobuf"] {
        all.extend(["authorization", "status", "event", "link", "scope", "resource", "name"].map(|what| format!("{door} {what}")));
    }
    all.extend(["argument", "argument of a child", "log record"].map(str::to_owned));
    all
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Any::StringValue(value.into())) }), ..KeyValue::default() }
}

fn list(key: &str, values: &[String]) -> KeyValue {
    let values = values.iter().map(|value| AnyValue { value: Some(Any::StringValue(value.clone())) }).collect();
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Any::ArrayValue(ArrayValue { values })) }), ..KeyValue::default() }
}

const AT: u64 = 1_767_225_600_000_000_000;

/// A span with a credential in each of its parts, and one as Pulumi's bridge makes them.
fn request(door: &str, number: u8) -> ExportTraceServiceRequest {
    let s = |what: &str| secret(&format!("{door} {what}"));
    let span = |id: u8, name: String| Span {
        trace_id: vec![number; 16],
        span_id: vec![id; 8],
        name,
        start_time_unix_nano: AT,
        end_time_unix_nano: AT + 1_000_000,
        ..Span::default()
    };
    let mut own = span(1, format!("marker-{door} GET /?token={}", s("name")));
    own.attributes = attributes(door).into_iter().map(|(key, value)| text(key, value)).collect();
    own.attributes.push(list("http.request.header.authorization", &[format!("Bearer {}", s("authorization"))]));
    own.status = Some(Status { code: 2, message: format!("dial postgres://shop:{}@db:5432/shop", s("status")) });
    let log = vec![text("message", format!("Authorization: Bearer {}", s("event")))];
    own.events = vec![Event { time_unix_nano: AT, name: "log".to_owned(), attributes: log, ..Event::default() }];
    let linked = vec![text("client.secret", s("link"))];
    own.links = vec![Link { trace_id: vec![9; 16], span_id: vec![9; 8], attributes: linked, ..Link::default() }];
    let arguments = ["app".to_owned(), "--token".to_owned(), s("resource")];
    let resource = Resource { attributes: vec![list("process.command_args", &arguments)], ..Resource::default() };
    let scope = InstrumentationScope { name: "story".to_owned(), attributes: vec![text("api_key", s("scope"))], ..Default::default() };

    let mut bridged = span(2, "/pulumirpc.ResourceProvider/Create".to_owned());
    let message = json!({ "gRPC request": payload(&format!("{door} payload attribute")) }).to_string();
    bridged.attributes = vec![text("Msg", message), text("Time", "2026-01-01T00:00:00Z")];
    let body = vec![text("gRPC request", payload(&format!("{door} payload event")))];
    bridged.events = vec![Event { time_unix_nano: AT, name: "log".to_owned(), attributes: body, ..Event::default() }];
    let bridge = Resource { attributes: vec![text("service.name", "pulumi-resource-provider")], ..Resource::default() };
    let spans = |resource, scope, span| ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![ScopeSpans { scope, spans: vec![span], ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![spans(resource, Some(scope), own), spans(bridge, None, bridged)] }
}

fn log_record() -> ExportLogsServiceRequest {
    let record = LogRecord {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        time_unix_nano: AT,
        body: Some(AnyValue { value: Some(Any::StringValue(format!("login with password={}", secret("log record")))) }),
        ..LogRecord::default()
    };
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

fn zipkin_v2() -> Value {
    let tags: serde_json::Map<String, Value> =
        attributes("zipkin-v2").into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let log = json!({ "gRPC request": payload("zipkin-v2 payload") }).to_string();
    json!([{ "traceId": "0000000000000003", "id": "0000000000000003", "name": "marker-zipkin-v2", "timestamp": AT / 1000, "duration": 5,
             "localEndpoint": { "serviceName": "z" }, "tags": tags, "annotations": [{ "timestamp": AT / 1000, "value": log }] }])
}

fn zipkin_v1() -> Value {
    let tag = |(key, value): (&str, String)| json!({ "key": key, "value": value, "endpoint": { "serviceName": "z" } });
    let tags: Vec<Value> = attributes("zipkin-v1").into_iter().map(tag).collect();
    let log = json!({ "gRPC request": payload("zipkin-v1 payload") }).to_string();
    // As Jaeger's client cuts it off.
    let cut: String = log.chars().take(log.len() - 5).collect();
    json!([{ "traceId": "0000000000000004", "id": "0000000000000004", "name": "marker-zipkin-v1", "timestamp": AT / 1000, "duration": 5,
             "binaryAnnotations": tags, "annotations": [{ "timestamp": AT / 1000, "value": cut, "endpoint": { "serviceName": "z" } }] }])
}

/// Frames of one span.
fn appdash() -> Vec<u8> {
    let log = json!({ "gRPC request": payload("appdash payload") }).to_string();
    let mut out = frame(&[("Name", "marker-appdash"), ("_schema:name", "")]);
    out.extend(frame(&[("Msg", &log), ("Time", "2026-01-01T00:00:00Z"), ("_schema:log", "")]));
    for (key, value) in attributes("appdash") {
        out.extend(frame(&[(key, &value)]));
    }
    let times = [("Span.Start", "2026-01-01T00:00:00Z"), ("Span.End", "2026-01-01T00:00:01Z"), ("_schema:Timespan", "")];
    out.extend(frame(&times));
    out
}

/// The program: sends all of it through every door, says when it is kept, and waits to be let go.
#[test]
fn plant() {
    if std::env::var_os(PLANT).is_none() {
        return;
    }
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    let mut stream = TcpStream::connect(std::env::var("PULUMI_OPTION_TRACING").unwrap().trim_start_matches("tcp://")).unwrap();
    stream.write_all(&appdash()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // It hangs up when it has read all, and what it read is kept before what comes now.
    stream.read_to_end(&mut Vec::new()).unwrap();
    let post = |path: &str, kind: &str, body: &[u8]| {
        ureq::post(format!("{endpoint}{path}")).header("content-type", kind).send(body).unwrap();
    };
    post("/v1/traces", "application/json", &serde_json::to_vec(&request("otlp-json", 1)).unwrap());
    post("/v1/traces", "application/x-protobuf", &request("otlp-protobuf", 2).encode_to_vec());
    post("/v1/logs", "application/x-protobuf", &log_record().encode_to_vec());
    post("/api/v2/spans", "application/json", zipkin_v2().to_string().as_bytes());
    post("/api/v1/spans", "application/json", zipkin_v1().to_string().as_bytes());
    println!("planted");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// The bytes of every file below a folder.
pub(crate) fn all_bytes(dir: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            out.extend(all_bytes(&entry.path()));
        } else {
            out.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    out
}

/// Rows of one query.
const PAGE_ROWS: usize = 5_000;

/// Every row of every table of the last recording: files may be compressed.
pub(crate) fn all_rows(store: &Path) -> Vec<u8> {
    let names = "SELECT DISTINCT table_name AS t FROM information_schema.tables WHERE table_schema = 'recordings'";
    let tables = answer(longpole(store).args(["sql", "--format", "json", names]));
    let mut out = Vec::new();
    for table in tables["rows"].as_array().unwrap() {
        // An answer has a limit, and a busy machine makes more rows than that.
        for page in 0.. {
            let query = format!("SELECT * FROM {} LIMIT {PAGE_ROWS} OFFSET {}", table["t"].as_str().unwrap(), page * PAGE_ROWS);
            let rows = longpole(store).args(["sql", "--format", "json", &query]).output().unwrap();
            assert!(rows.status.success(), "{query}: {}", String::from_utf8_lossy(&rows.stderr));
            let answer = serde_json::from_slice::<Value>(&rows.stdout).unwrap();
            assert_eq!(answer["truncated"], false, "{query}");
            out.extend(rows.stdout);
            if answer["rows"].as_array().unwrap().len() < PAGE_ROWS {
                break;
            }
        }
    }
    out
}

/// Every format that a recording goes out in, uncompressed, and what the views print of it.
pub(crate) fn all_exports(sandbox: &Sandbox, store: &Path) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    let of_spans = [("folded", Some("spans")), ("pprof", Some("spans"))];
    let formats = ["otlp-json", "otlp-protobuf", "zipkin", "jaeger", "appdash", "chrome", "firefox", "folded", "pprof"];
    for (format, of) in formats.map(|format| (format, None)).into_iter().chain(of_spans) {
        let mut export = longpole(store);
        export.args(["export", "--to", format, "-g", "1us"]).args(of.map(|of| format!("--of={of}")));
        let bytes = if format == "pprof" {
            let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let done = export.stdout(gzip.stdin.take().unwrap()).stderr(Stdio::null()).status().unwrap();
            assert!(done.success(), "{format}");
            drop(export);
            gzip.wait_with_output().unwrap().stdout
        } else {
            let done = export.output().unwrap();
            assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
            done.stdout
        };
        out.push((format.to_owned(), bytes));
    }
    let packed = sandbox.path("mail.lpole");
    assert!(longpole(store).args(["export", "-o"]).arg(&packed).status().unwrap().success());
    out.push(("lpole".to_owned(), std::fs::read(&packed).unwrap()));
    let other = sandbox.path("unpacked");
    assert!(longpole(&other).arg("import").arg(&packed).stdout(Stdio::null()).status().unwrap().success());
    out.push(("lpole, unpacked".to_owned(), [all_bytes(&other), all_rows(&other)].concat()));
    for view in [&["show"][..], &["tree", "--limit", "0"], &["poles", "--limit", "0"], &["ls"]] {
        for format in ["text", "json"] {
            let seen = longpole(store).args(view).args(["--format", format]).output().unwrap();
            assert!(seen.status.success(), "{view:?}");
            out.push((format!("{view:?} {format}"), seen.stdout));
        }
    }
    out
}

pub(crate) fn contains(bytes: &[u8], what: &str) -> bool {
    bytes.windows(what.len()).any(|part| part == what.as_bytes())
}

/// Which of these places have their secret in the bytes.
fn found(bytes: &[u8], places: &BTreeSet<String>) -> Vec<String> {
    places.iter().filter(|place| contains(bytes, &secret(place))).cloned().collect()
}

#[track_caller]
fn assert_none(what: &str, bytes: &[u8]) {
    let places = credential_places().into_iter().chain(payload_places()).collect();
    assert_eq!(found(bytes, &places), Vec::<String>::new(), "{what}");
}

/// A recording of a command that was given credentials and sends some. Returns what the store held while the command ran, and what
/// longpole said at the end.
fn recorded(store: &Path, flags: &[&str]) -> (Vec<u8>, Vec<u8>) {
    // Both shells stay for as long as the program, so that their command lines are seen.
    let child = r#"shift 2; "$@"; exit $?"#;
    let script = format!(r#"shift 2; sh -c '{child}' child --token "$LONGPOLE_STORY_CHILDS" "$@"; exit $?"#);
    let mut run = longpole(store)
        .arg("run")
        .args(flags)
        .args(["--", "sh", "-c", &script, "deploy", "--password", &secret("argument")])
        .args(role("keep_no_secret::plant"))
        .env(PLANT, "1")
        .env("LONGPOLE_STORY_CHILDS", secret("argument of a child"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("planted")), "the program did not come to its end");
    let running = all_bytes(store);
    drop(run.stdin.take());
    lines.for_each(drop);
    let out = run.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (running, out.stderr)
}

#[test]
fn no_byte_holds_credentials_or_payloads() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let (running, said) = recorded(&store, &[]);
    for door in DOORS {
        assert!(contains(&running, &format!("marker-{door}")), "what came by {door} is not in the log yet");
    }
    assert_none("the log", &running);
    assert_none("what longpole says", &said);
    assert_none("the files", &all_bytes(&store));
    let rows = all_rows(&store);
    assert!(DOORS.iter().all(|door| contains(&rows, &format!("marker-{door}"))));
    assert!(contains(&rows, "[redacted]") && contains(&rows, "[payload left out, "));
    assert_none("the tables", &rows);
    for (what, bytes) in all_exports(&sandbox, &store) {
        assert_none(&what, &bytes);
    }
}

#[test]
fn redact_off_keeps_credentials_but_no_payloads() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let (running, _) = recorded(&store, &["--redact", "off", "--summary", "none"]);
    assert_eq!(found(&running, &payload_places()), Vec::<String>::new());
    let rows = all_rows(&store);
    assert_eq!(found(&rows, &payload_places()), Vec::<String>::new());
    // That they are all found here says that those of the story above were looked for in the right places.
    let kept: BTreeSet<String> = found(&rows, &credential_places()).into_iter().collect();
    assert_eq!(credential_places().difference(&kept).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn imported_files_are_stored_without_credentials() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let tag = |(key, value): (&str, String)| json!({ "key": key, "type": "string", "value": value });
    let tags: Vec<Value> = attributes("otlp-json").into_iter().map(tag).collect();
    let body = json!([{ "key": "gRPC request", "type": "string", "value": payload("zipkin-v1 payload") }]);
    let jaeger = json!({ "data": [{ "traceID": "6", "processes": { "p1": { "serviceName": "j", "tags": tags } }, "spans": [{
        "traceID": "6", "spanID": "6", "operationName": "marker-jaeger", "startTime": AT / 1000, "duration": 5, "processID": "p1",
        "tags": tags, "logs": [{ "timestamp": AT / 1000, "fields": body }] }] }] });
    let lines = String::from_utf8(serde_json::to_vec(&request("otlp-json", 1)).unwrap()).unwrap() + "\n";
    for (name, text) in [
        ("lines.json", lines),
        ("zipkin-v2.json", zipkin_v2().to_string()),
        ("zipkin-v1.json", zipkin_v1().to_string()),
        ("jaeger.json", jaeger.to_string()),
    ] {
        let file = sandbox.path(name);
        std::fs::write(&file, text).unwrap();
        let imported = longpole(&store).arg("import").arg(&file).output().unwrap();
        assert!(imported.status.success(), "{name}: {}", String::from_utf8_lossy(&imported.stderr));
        let rows = all_rows(&store);
        assert!(contains(&rows, "marker-") && contains(&rows, "[redacted]") && contains(&rows, "[payload left out, "), "{name}");
        assert_none(name, &[imported.stdout, imported.stderr, rows].concat());
        // In place, too: a file that is shown is not stored, but somebody sees it.
        let shown = longpole(&store).arg("convert").arg(&file).args(["--to", "otlp-json"]).output().unwrap();
        assert!(shown.status.success(), "{name}");
        assert_none(name, &shown.stdout);
    }
    assert_none("the files", &all_bytes(&store));
}
