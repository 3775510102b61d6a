//! Story: what sends to a tracing backend is older than OpenTelemetry, or sits in a browser, or sends logs.
//! Guarantees: clients of Jaeger send their Thrift over HTTP and over UDP, Zipkin's exporter and AppDash's collector theirs, unchanged, and samplers
//! learn that each trace counts; pages of the listed origins send and others do not; a body may be compressed by zstd; log records of spans
//! become their events, in any order; Jaeger's third API answers about all of it.

use std::ffi::OsString;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Sandbox, appdash, http, recent_nanos, recent_rfc3339, skip};

/// A program beside the SDK of Node, or a noted skip.
fn node_program(name: &str, what: &str) -> Option<PathBuf> {
    match std::env::var_os("LONGPOLE_NODE_SDK") {
        Some(emit) => Some(Path::new(&emit).with_file_name(name)),
        None => {
            skip(what, "no programs with the SDKs of Node; `cargo xtask test` installs them where npm works");
            None
        }
    }
}

fn node(program: &Path, arguments: &[&str]) {
    let ran = Command::new("node").arg(program).args(arguments).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Waits for what nobody acknowledges: UDP and AppDash.
fn traces_of(served: &Served, service: &str) -> Value {
    loop {
        let found = served.jaeger(&format!("/api/traces?service={service}"));
        if found["data"].as_array().is_some_and(|traces| !traces.is_empty()) {
            return found["data"].clone();
        }
        std::thread::yield_now();
    }
}

/// Jaeger's own clients, long out of support and still in programs: `outer`, which failed, with `inner` in it, by Thrift over HTTP and over UDP.
fn check_jaegers_client(language: &str, command: &[OsString]) {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    for (how, door) in [("http", "jaeger-thrift"), ("udp", "jaeger-compact")] {
        let ran = Command::new(&command[0]).args(&command[1..]).args([how, &served.port(door).to_string()]).output().unwrap();
        assert!(ran.status.success(), "{language}: {}", String::from_utf8_lossy(&ran.stderr));
        let traces = traces_of(&served, &format!("jaeger-{language}-{how}"));
        let spans = traces[0]["spans"].as_array().unwrap();
        assert_eq!(spans.len(), 2, "{traces}");
        let named = |name: &str| spans.iter().find(|span| span["operationName"] == name).unwrap();
        assert_eq!(named("inner")["references"][0]["spanID"], named("outer")["spanID"]);
        assert!(named("outer")["tags"].as_array().unwrap().contains(&json!({ "key": "error", "type": "bool", "value": true })));
        assert_eq!(named("inner")["logs"][0]["fields"][0]["value"], "retry");
    }
    served.stop();
}

#[test]
fn jaegers_client_of_node_by_http_and_udp() {
    let Some(program) = node_program("jaeger.mjs", "Jaeger's client of Node") else { return };
    check_jaegers_client("node", &["node".into(), program.into()]);
}

#[test]
fn jaegers_client_of_go_by_http_and_udp() {
    let Some(emit) = std::env::var_os("LONGPOLE_GO_SDK") else {
        return skip("Jaeger's client of Go", "no program with it; `cargo xtask test` builds it where Go is");
    };
    check_jaegers_client("go", &[Path::new(&emit).with_file_name("jaeger").into()]);
}

#[test]
fn jaegers_client_of_java_by_http_and_udp() {
    let Some(jars) = std::env::var_os("LONGPOLE_JAVA_SDK") else {
        return skip("Jaeger's client of Java", "no program with it; `cargo xtask test` fetches it where mvn and javac work");
    };
    let mut path = Path::new(&jars).join("classes").into_os_string();
    path.push(":");
    path.push(Path::new(&jars).join("*"));
    check_jaegers_client("java", &["java".into(), "-cp".into(), path, "Jaeger".into()]);
}

#[test]
fn zipkins_exporter_of_node_with_a_sampler_that_asks() {
    let Some(program) = node_program("zipkin.mjs", "Zipkin's exporter of Node") else { return };
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let (zipkin, sampling) = (served.port("zipkin").to_string(), served.port("sampling").to_string());
    node(&program, &[&zipkin, &sampling]);
    let traces = traces_of(&served, "zipkin-client");
    assert_eq!(traces[0]["spans"].as_array().unwrap().len(), 2, "{traces}");
    let found = http::get(served.port("zipkin"), "/api/v2/traces?serviceName=zipkin-client&spanName=inner").json();
    assert_eq!(found[0].as_array().unwrap().len(), 2, "{found}");
    served.stop();
}

#[test]
fn samplers_get_the_strategies_of_a_file() {
    let sandbox = Sandbox::new();
    let strategies = json!({
        "service_strategies": [{ "service": "search", "type": "ratelimiting", "param": 5 }],
        "default_strategy": { "type": "probabilistic", "param": 0.25 },
    });
    let file = sandbox.path("strategies.json");
    std::fs::write(&file, strategies.to_string()).unwrap();
    let served = Served::start_with(&sandbox.path("store"), &["--sampling-strategies", file.to_str().unwrap()], &[]);
    let port = served.port("sampling");
    let search = json!({ "strategyType": "RATE_LIMITING", "rateLimitingSampling": { "maxTracesPerSecond": 5 } });
    assert_eq!(http::get(port, "/sampling?service=search").json(), search);
    let others = json!({ "strategyType": 0, "probabilisticSampling": { "samplingRate": 0.25 } });
    assert_eq!(http::get(port, "/?service=cart").json(), others, "the oldest clients read numbers");
    assert_eq!(http::get(port, "/sampling").status, 400);
    served.stop();
}

#[test]
fn packets_and_appdash_have_no_answer_and_arrive() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A message of nobody's: counted, and the next one is taken.
    for door in ["jaeger-compact", "jaeger-binary"] {
        socket.send_to(b"not thrift", ("127.0.0.1", served.port(door))).unwrap();
    }
    let refused = "longpole_losses_total{kind=\"requests_refused\"} 2\n";
    while !http::get(served.port("admin"), "/metrics").body.contains(refused) {
        std::thread::yield_now();
    }
    let mut collector = TcpStream::connect(("127.0.0.1", served.port("appdash"))).unwrap();
    collector.write_all(&appdash::one_span("pulumi up")).unwrap();
    drop(collector);
    // Its spans name no service, so the receiver gives one.
    let services = || served.jaeger("/api/services")["data"].clone();
    while services() == json!([]) {
        std::thread::yield_now();
    }
    let traces = traces_of(&served, services()[0].as_str().unwrap());
    assert_eq!(traces[0]["spans"][0]["operationName"], "pulumi up", "{traces}");
    served.stop();
}

/// A span of a browser, as OpenTelemetry's exporter for the web writes it.
fn span(trace: u8, service: &str) -> String {
    let span = json!({
        "traceId": format!("{trace:032x}"), "spanId": format!("{trace:016x}"), "name": "click", "kind": 3,
        "startTimeUnixNano": recent_nanos().to_string(), "endTimeUnixNano": (recent_nanos() + 200_000_000).to_string(),
    });
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": [span] }] }] }).to_string()
}

#[test]
fn pages_of_listed_origins_send_and_others_do_not() {
    let sandbox = Sandbox::new();
    let served = Served::start_with(&sandbox.path("store"), &["--allow-origin", "https://*.shop.example"], &[]);
    let port = served.port("otlp-http");
    let send = |method: &str, origin: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Origin", origin), ("Content-Type", "application/json"), ("Sec-Fetch-Site", "cross-site")];
        headers.extend(more);
        http::send(port, method, "/v1/traces", &headers, if method == "POST" { span(1, "web") } else { String::new() }).unwrap()
    };
    let asks = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type,x-tenant")];
    let may = send("OPTIONS", "https://www.shop.example", &asks);
    assert_eq!((may.status, may.header("access-control-allow-origin")), (204, Some("https://www.shop.example")), "{}", may.head);
    assert_eq!(may.header("access-control-allow-headers"), Some("content-type,x-tenant"));
    let sent = send("POST", "https://www.shop.example", &[]);
    assert_eq!((sent.status, sent.header("access-control-allow-origin")), (200, Some("https://www.shop.example")), "{}", sent.body);
    for (method, more) in [("OPTIONS", &asks[..]), ("POST", &[])] {
        let other = send(method, "https://shop.example.evil.example", more);
        assert_eq!((other.status, other.header("access-control-allow-origin")), (403, None), "{method}: {}", other.head);
    }
    // Spans may be sent, and nothing may be read.
    let read = http::send(served.port("page"), "GET", "/api/services", &[("Origin", "https://www.shop.example")], "").unwrap();
    assert_eq!(read.header("access-control-allow-origin"), None);
    assert_eq!(served.jaeger("/api/services")["data"], json!(["web"]));
    served.stop();
}

/// A frame of zstd that holds the bytes as they are: RFC 8878.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    let block = (length << 3 | 1).to_le_bytes();
    [&0xfd2f_b528_u32.to_le_bytes()[..], &[0xa0], &length.to_le_bytes(), &block[..3], bytes].concat()
}

#[test]
fn a_body_may_be_compressed_by_zstd() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let send = |body: &[u8]| {
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", "zstd")];
        http::send(served.port("otlp-http"), "POST", "/v1/traces", &headers, body).unwrap()
    };
    let sent = send(&zstd(span(1, "web").as_bytes()));
    assert_eq!(sent.status, 200, "{}", sent.body);
    assert_eq!(send(&zstd(b"{}")[..10]).status, 400);
    assert_eq!(served.jaeger("/api/services")["data"], json!(["web"]));
    served.stop();
}

/// A log record of the span of this trace.
fn log(trace: u8, text: &str) -> String {
    let record = json!({
        "timeUnixNano": (recent_nanos() + 100_000_000).to_string(), "severityText": "WARN", "severityNumber": 13, "body": { "stringValue": text },
        "traceId": format!("{trace:032x}"), "spanId": format!("{trace:016x}"),
    });
    json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [record] }] }] }).to_string()
}

#[test]
fn log_records_become_events_of_their_spans() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let post = |served: &Served, path: &str, body: &str| {
        let answer = http::post(served.port("otlp-http"), path, "application/json", body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    // Before its span, twice, as an exporter sends it that did not see the answer.
    post(&served, "/v1/logs", &log(1, "cache is cold"));
    post(&served, "/v1/logs", &log(1, "cache is cold"));
    assert_eq!(http::get(served.port("page"), &format!("/api/traces/{:032x}", 1)).status, 404, "a record alone is no trace");
    assert_eq!(served.jaeger("/api/services")["data"], json!([]));
    post(&served, "/v1/traces", &span(1, "web"));
    let events = |served: &Served| {
        let trace = served.jaeger(&format!("/api/traces/{:032x}", 1))["data"][0].clone();
        assert_eq!(trace["spans"].as_array().unwrap().len(), 1, "{trace}");
        let logs = trace["spans"][0]["logs"].as_array().unwrap().clone();
        logs.iter()
            .map(|log| log["fields"].as_array().unwrap().iter().find(|field| field["key"] == "log.body").unwrap()["value"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(events(&served), ["cache is cold"]);
    // After a restart, and after the span moved on.
    served.kill();
    let served = Served::start(&store);
    post(&served, "/v1/logs", &log(1, "cache is warm"));
    assert_eq!(events(&served), ["cache is cold", "cache is warm"]);
    let found = served.jaeger("/api/traces?service=web&tags=%7B%22log.body%22%3A%22cache%20is%20cold%22%7D&start=1");
    assert_eq!(found["data"].as_array().unwrap().len(), 1, "a search finds a trace by what its logs say: {found}");
    assert_eq!(served.jaeger("/api/services/web/operations")["data"], json!(["click"]));
    served.stop();
}

#[test]
fn jaegers_third_api_answers() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    for trace in 1..=3 {
        let sent = http::post(served.port("otlp-http"), "/v1/traces", "application/json", &span(trace, "web")).unwrap();
        assert_eq!(sent.status, 200);
    }
    assert_eq!(served.jaeger("/api/v3/services"), json!({ "services": ["web"] }));
    assert_eq!(served.jaeger("/api/v3/operations?service=web"), json!({ "operations": [{ "name": "click", "spanKind": "client" }] }));
    let id = format!("{:032x}", 2);
    let trace = served.jaeger(&format!("/api/v3/traces/{id}"));
    assert_eq!(trace["result"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], id, "{trace}");
    let times = format!("query.startTimeMin={}&query.startTimeMax={}", recent_rfc3339(-3_600), recent_rfc3339(3_600));
    let summaries = served.jaeger(&format!("/api/v3/trace-summaries?query.service_name=web&{times}&query.searchDepth=2"));
    let first = &summaries["summaries"][0];
    assert_eq!(summaries["summaries"].as_array().unwrap().len(), 2);
    assert_eq!((&first["rootOperationName"], &first["spanCount"], &first["orphanSpanCount"]), (&json!("click"), &json!(1), &json!(0)));
    assert_eq!(first["services"], json!([{ "name": "web", "spanCount": 1, "errorSpanCount": 0 }]));
    let found = served.jaeger(&format!("/api/v3/traces?query.serviceName=web&query.durationMin=100ms&{times}"));
    let spans = found.pointer("/result/resourceSpans/0/scopeSpans/0/spans");
    assert_eq!(spans.and_then(Value::as_array).map(Vec::len), Some(3), "{found}");
    for (path, status, reason) in [
        (format!("/api/v3/traces?query.serviceName=web&query.durationMin=1s&{times}"), 404, "No traces found"),
        ("/api/v3/traces?query.serviceName=web".to_owned(), 400, "query.startTimeMin"),
        ("/api/v3/traces?query.startTimeMin=now&query.startTimeMax=now".to_owned(), 400, "is not a time"),
        ("/api/v3/traces/00000000000000000000000000000bad".to_owned(), 404, "trace not found"),
    ] {
        let answer = http::get(served.port("page"), &path);
        assert!(answer.status == status && answer.body.contains(reason), "{path}: {} {}", answer.status, answer.body);
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(error["error"]["httpCode"], status, "{path}");
    }
    served.stop();
}

/// What the exporter of OpenTelemetry's Python SDK sent to a collector of Jaeger.
const POST_SPANS: &[u8] = include_bytes!("../../../../fuzz/corpus/jaeger_post_spans/python.seed");

/// Calls a method with the bytes of a question, and prints the bytes of each answer, or the status, a line each.
const CALL: &str = r#"
import sys, grpc
port, method, question = sys.argv[1:]
channel = grpc.insecure_channel(f"localhost:{port}")
same = lambda data: data
call = channel.unary_stream(method, request_serializer=same, response_deserializer=same)
try:
    for answer in call(bytes.fromhex(question)):
        print(answer.hex())
except grpc.RpcError as error:
    print(error.code().name, error.details())
"#;

#[test]
fn jaegers_grpc_takes_spans_and_answers() {
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON") else {
        return skip("Jaeger's gRPC", "no Python with gRPC; `cargo xtask test` makes one where pip works");
    };
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let call = |door: &str, method: &str, question: &[u8]| {
        let hex: String = question.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = served.port(door).to_string();
        let called = Command::new(&python).args(["-c", CALL, &port, method, &hex]).output().unwrap();
        assert!(called.status.success(), "{method}: {}", String::from_utf8_lossy(&called.stderr));
        String::from_utf8(called.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(call("jaeger-grpc", "/jaeger.api_v2.CollectorService/PostSpans", POST_SPANS), "", "an empty message");
    let services = served.jaeger("/api/services")["data"].clone();
    let service = services[0].as_str().unwrap();
    assert_eq!(services.as_array().unwrap().len(), 1);
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let query = |method: &str, question: &[u8]| call("jaeger-query", &format!("/jaeger.api_v3.QueryService/{method}"), question);
    assert_eq!(query("GetServices", b""), format!("0a{:02x}{}", service.len(), hex(service)));
    let question = [&[0x0a, service.len() as u8][..], service.as_bytes()].concat();
    for operation in served.jaeger(&format!("/api/services/{service}/operations"))["data"].as_array().unwrap() {
        assert!(query("GetOperations", &question).contains(&hex(operation.as_str().unwrap())));
    }
    let id = served.jaeger(&format!("/api/traces?service={service}&start=1"))["data"][0]["traceID"].as_str().unwrap().to_owned();
    let trace = query("GetTrace", &[&[0x0a, 32], id.as_bytes()].concat());
    assert!(trace.contains(&id), "the id as bytes: {trace}");
    assert_eq!(query("GetTrace", &[0x0a, 3, b'b', b'a', b'd']), "NOT_FOUND trace not found");
    assert_eq!(query("FindTraces", b""), "INVALID_ARGUMENT start_time_min and start_time_max are required");
    assert_eq!(query("FindTraces", &[0xff]).split(' ').next(), Some("INVALID_ARGUMENT"));
    // From 1970 until 2100.
    let always = [0x22, 2, 0x08, 1, 0x2a, 6, 0x08, 0x80, 0x9f, 0xb2, 0xa6, 0x0f];
    let found = query("FindTraces", &[&[0x0a, always.len() as u8][..], &always].concat());
    assert!(found.contains(&id), "{found}");
    let summaries = query("FindTraceSummaries", &[&[0x0a, always.len() as u8][..], &always].concat());
    assert!(summaries.contains(&hex(&id)), "the id as text: {summaries}");
    // Version 2 answers spans of Jaeger, which a collector takes: these are the same, and nothing is added.
    let query_v2 = |method: &str, question: &[u8]| call("jaeger-query", &format!("/jaeger.api_v2.QueryService/{method}"), question);
    let id_bytes: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect();
    let chunk = query_v2("GetTrace", &[&[0x0a, 16], &id_bytes[..]].concat());
    let chunk: Vec<u8> = (0..chunk.len() / 2).map(|at| u8::from_str_radix(&chunk[2 * at..2 * at + 2], 16).unwrap()).collect();
    let spans = || served.jaeger(&format!("/api/traces/{id}"))["data"][0]["spans"].clone();
    let before = spans();
    let length = [chunk.len() as u8 | 0x80, (chunk.len() >> 7) as u8];
    assert_eq!(call("jaeger-grpc", "/jaeger.api_v2.CollectorService/PostSpans", &[&[0x0a][..], &length, &chunk].concat()), "");
    assert_eq!(spans(), before);
    assert_eq!(query_v2("FindTraces", &[0x0a, 0]), query_v2("GetTrace", &[&[0x0a, 16], &id_bytes[..]].concat()));
    assert!(query_v2("GetOperations", &question).starts_with("0a"));
    assert_eq!(query_v2("GetServices", b""), query("GetServices", b""));
    assert_eq!(query_v2("GetTrace", &[0x0a, 1, 9]), "NOT_FOUND trace not found");
    // Each trace: a probability of 1.
    assert_eq!(call("sampling-grpc", "/jaeger.api_v2.SamplingManager/GetSamplingStrategy", b""), "120909000000000000f03f");
    assert_eq!(call("jaeger-query", "/grpc.health.v1.Health/Check", b""), "0801");
    assert!(query("NoSuchMethod", b"").starts_with("UNIMPLEMENTED"));
    served.stop();
}
