//! Story: `longpole serve` stands where a Jaeger or Zipkin server stood.
//! Guarantees: stock SDKs send to it by gRPC, HTTP with protobuf and HTTP with JSON, and Zipkin's clients by theirs; what it acknowledged is found
//! at once, by Jaeger's queries, by Zipkin's and on the page, and is there after the server was killed and after its spans moved into segments;
//! a store has one server, and a port that is taken is named; a query stops when its client leaves, and a full disk makes the server not ready.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use longpole_testing::random::Random;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace;
use prost::Message;
use serde_json::{Value, json};

use crate::support::http::{self, Answer};
use crate::support::served::Served;
use crate::support::{Sandbox, c, longpole, recent_nanos, role};

/// Kills of a server under load; `LONGPOLE_STORY_KILLS` asks for more.
const KILLS: u64 = 6;

/// Spans of this trace as a client sends them: a root and its children.
fn request(trace: u64, children: u64) -> String {
    let span = |span: u64| {
        json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{span:016x}"),
            "parentSpanId": if span == 1 { String::new() } else { format!("{:016x}", 1) },
            "name": if span == 1 { "POST /cart" } else { "reserve" },
            "kind": if span == 1 { 2 } else { 1 },
            "startTimeUnixNano": (recent_nanos() + trace * 1_000_000 + span * 1_000).to_string(),
            "endTimeUnixNano": (recent_nanos() + 500_000_000 + trace * 1_000_000 - span * 1_000).to_string(),
            "attributes": [{ "key": "cart.id", "value": { "intValue": trace.to_string() } }],
        })
    };
    let spans: Vec<Value> = (1..=children + 1).map(span).collect();
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "cart" } }] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] }).to_string()
}

fn send(port: u16, body: &str) -> Option<Answer> {
    http::post(port, "/v1/traces", "application/json", body)
}

#[test]
fn a_stock_sdk_sends_and_jaeger_and_zipkin_and_the_page_answer() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    for (protocol, port) in
        [("grpc", served.port("otlp-grpc")), ("http/protobuf", served.port("otlp-http")), ("http/json", served.port("otlp-http"))]
    {
        let [me, args @ ..] = &role("receive_from_any_sdk::emit")[..] else { panic!("no role") };
        let sent = Command::new(me)
            .args(args)
            .env("LONGPOLE_STORY_PROTOCOL", protocol)
            .env("OTEL_SERVICE_NAME", format!("emits-{}", protocol.replace('/', "-")))
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://localhost:{port}"))
            .output()
            .unwrap();
        assert!(sent.status.success(), "{protocol}: {}", String::from_utf8_lossy(&sent.stderr));
    }
    let zipkin = json!([{ "traceId": "00000000000000ab", "id": "1", "name": "get", "kind": "SERVER", "timestamp": recent_nanos() / 1_000,
        "duration": 1500, "localEndpoint": { "serviceName": "Frontend" }, "tags": { "http.path": "/x" } }]);
    let answer = http::post(served.port("zipkin"), "/api/v2/spans", "application/json", &zipkin.to_string()).unwrap();
    assert_eq!(answer.status, 202, "{}", answer.body);

    let services = served.jaeger("/api/services");
    assert_eq!(services["data"], json!(["Frontend", "emits-grpc", "emits-http-json", "emits-http-protobuf"]));
    for service in ["emits-grpc", "emits-http-json", "emits-http-protobuf"] {
        assert_eq!(served.jaeger(&format!("/api/services/{service}/operations"))["data"], json!(["inner", "outer"]));
        let traces = served.jaeger(&format!("/api/traces?service={service}&operation=inner&limit=20&lookback=1h"));
        let trace = &traces["data"][0];
        assert_eq!(trace["spans"].as_array().unwrap().len(), 2, "{service}: {traces}");
        // By id: Jaeger's answer, and the page's, which says what to fix first.
        let id = trace["traceID"].as_str().unwrap();
        assert_eq!(served.jaeger(&format!("/api/traces/{id}"))["data"][0]["traceID"], id);
        let poles = served.jaeger(&format!("/api/recordings/{id}/poles"));
        assert_eq!(poles["poles"][0]["name"], "outer", "{poles}");
        // Jaeger's address of a trace leads to its page.
        assert_eq!(http::get(served.port("page"), &format!("/trace/{id}")).status, 303);
        assert!(http::get(served.port("page"), &format!("/r/{id}")).body.contains("id=\"root\""), "{id} has no page");
    }
    // Nothing there: Grafana reads `data[0]` of any answer of 200.
    assert_eq!(http::get(served.port("page"), "/api/traces/00000000000000000000000000000bad").status, 404);
    for (path, reason) in [
        ("/api/traces?limit=5", "parameter 'service' is required"),
        ("/api/traces?service=cart&minDuration=soon", "minDuration: soon is not a duration"),
        ("/api/traces?service=cart&limit=many", "limit: many is not a whole number"),
        ("/api/traces?service=cart&tags=%7B%22a%22%3A1%7D", "tags: the value of a is not a string"),
        ("/api/traces/xyz", "cannot parse the trace id"),
    ] {
        let answer = http::get(served.port("page"), path);
        assert!(answer.status == 400 && answer.body.contains(reason), "{path}: {} {}", answer.status, answer.body);
    }

    let found =
        http::get(served.port("zipkin"), "/api/v2/traces?serviceName=frontend&annotationQuery=http.path%3D%2Fx&minDuration=1000").json();
    assert_eq!(found[0][0]["id"], "0000000000000001", "{found}");
    assert_eq!(http::get(served.port("zipkin"), "/api/v2/spans?serviceName=frontend").json(), json!(["get"]));
    assert_eq!(http::get(served.port("zipkin"), "/api/v2/trace/ab").json()[0]["duration"], 1500);
    assert_eq!(http::get(served.port("admin"), "/readyz").status, 200);
    let metrics = http::get(served.port("admin"), "/metrics").body;
    assert!(metrics.contains("\nlongpole_spans_received_total 7\n"), "{metrics}");

    // What a door refuses is counted.
    assert_eq!(send(served.port("otlp-http"), "no JSON").unwrap().status, 400);
    let metrics = http::get(served.port("admin"), "/metrics").body;
    assert!(metrics.contains("\nlongpole_losses_total{kind=\"requests_refused\"} 1\n"), "{metrics}");

    // Another page of the browser cannot read it: its name is not loopback's.
    let foreign = http::send(served.port("page"), "GET", "/api/services", &[("Host", "evil.example")], "").unwrap();
    assert_eq!(foreign.status, 403);
    served.stop();
    let again = Served::start(&store);
    assert_eq!(again.jaeger("/api/services"), services);
}

/// The same spans as Zipkin's clients send them.
fn zipkin(trace: u64, children: u64) -> String {
    let span = |span: u64| {
        let mut json = json!({
            "traceId": format!("{trace:032x}"), "id": format!("{span:016x}"), "name": "reserve", "timestamp": recent_nanos() / 1_000,
            "duration": 1500, "localEndpoint": { "serviceName": "cart" },
        });
        if span > 1 {
            json["parentId"] = json!(format!("{:016x}", 1));
        }
        json
    };
    json!((1..=children + 1).map(span).collect::<Vec<_>>()).to_string()
}

/// The same as protobuf.
fn protobuf(trace: u64, children: u64) -> Vec<u8> {
    let id = |span: u64| span.to_be_bytes().to_vec();
    let span = |span: u64| trace::v1::Span {
        trace_id: u128::from(trace).to_be_bytes().to_vec(),
        span_id: id(span),
        parent_span_id: if span == 1 { Vec::new() } else { id(1) },
        name: "reserve".to_owned(),
        start_time_unix_nano: recent_nanos(),
        end_time_unix_nano: recent_nanos() + 1_000_000,
        ..Default::default()
    };
    let spans = (1..=children + 1).map(span).collect();
    let of_scope = trace::v1::ScopeSpans { spans, ..Default::default() };
    let of_resource = trace::v1::ResourceSpans { scope_spans: vec![of_scope], ..Default::default() };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

/// The same in Thrift's binary protocol, as Jaeger's clients send them.
fn thrift(trace: u64, children: u64) -> Vec<u8> {
    fn field(out: &mut Vec<u8>, kind: u8, number: u16, value: &[u8]) {
        out.push(kind);
        out.extend(number.to_be_bytes());
        out.extend(value);
    }
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let (struct_, list, i64_, i32_, text_) = (12, 15, 10, 8, 11);
    let mut spans = vec![struct_];
    spans.extend((children as u32 + 1).to_be_bytes());
    for span in 1..=children + 1 {
        for (number, value) in [(1, trace), (2, 0), (3, span), (4, u64::from(span > 1))] {
            field(&mut spans, i64_, number, &value.to_be_bytes());
        }
        field(&mut spans, text_, 5, &text("reserve"));
        field(&mut spans, i32_, 7, &1_u32.to_be_bytes());
        field(&mut spans, i64_, 8, &(recent_nanos() / 1_000).to_be_bytes());
        field(&mut spans, i64_, 9, &1_500_u64.to_be_bytes());
        spans.push(0);
    }
    let mut process = Vec::new();
    field(&mut process, text_, 1, &text("cart"));
    process.push(0);
    let mut batch = Vec::new();
    field(&mut batch, struct_, 1, &process);
    field(&mut batch, list, 2, &spans);
    batch.push(0);
    batch
}

/// Sends the spans of a trace by one of four doors; whether it was acknowledged.
fn send_by(door: usize, served: &BTreeMap<&str, u16>, trace: u64) -> bool {
    let (port, path, kind, body) = match door {
        0 => ("otlp-http", "/v1/traces", "application/json", request(trace, 4).into_bytes()),
        1 => ("otlp-grpc", "/v1/traces", "application/x-protobuf", protobuf(trace, 4)),
        2 => ("zipkin", "/api/v2/spans", "application/json", zipkin(trace, 4).into_bytes()),
        _ => ("jaeger-thrift", "/api/traces", "application/x-thrift", thrift(trace, 4)),
    };
    let answer = http::send(served[port], "POST", path, &[("Content-Type", kind)], body);
    answer.is_some_and(|answer| matches!(answer.status, 200 | 202))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let kills = std::env::var("LONGPOLE_STORY_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let (next, acknowledged) = (Arc::new(AtomicU64::new(1)), Arc::new(Mutex::new(BTreeSet::new())));
    let mut random = Random(std::process::id().into());
    let mut first_of_kill: Vec<u64> = Vec::new();
    for kill in 1..=kills {
        // Segments are made all the time.
        let served = Served::start_with(&store, &["--segment-every", "10ms"], &[]);
        let doors = ["otlp-http", "otlp-grpc", "zipkin", "jaeger-thrift"];
        let ports: BTreeMap<&str, u16> = doors.iter().map(|door| (*door, served.port(door))).collect();
        let over = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..doors.len())
            .map(|door| {
                let (next, acknowledged, over, ports) = (Arc::clone(&next), Arc::clone(&acknowledged), Arc::clone(&over), ports.clone());
                thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let trace = next.fetch_add(1, Ordering::Relaxed);
                        if send_by(door, &ports, trace) {
                            acknowledged.lock().unwrap().insert(trace);
                        }
                    }
                })
            })
            .collect();
        // At a moment that only the number of acknowledged requests decides.
        let enough = acknowledged.lock().unwrap().len() + 20 + random.below(300);
        while acknowledged.lock().unwrap().len() < enough {
            thread::yield_now();
        }
        served.kill();
        over.store(true, Ordering::Relaxed);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let served = Served::start(&store);
        // The last two kills each time, all of them at the end.
        let since = if kill == kills { 0 } else { first_of_kill.len().checked_sub(2).map_or(0, |before| first_of_kill[before]) };
        for trace in acknowledged.lock().unwrap().range(since..) {
            let found = served.jaeger(&format!("/api/traces/{trace:032x}"));
            let spans = found["data"][0]["spans"].as_array().map_or(0, Vec::len);
            assert_eq!(spans, 5, "kill {kill}: trace {trace} has {spans} spans");
        }
        first_of_kill.push(next.load(Ordering::Relaxed));
        served.stop();
    }
    println!("{} acknowledged requests survived {kills} kills", acknowledged.lock().unwrap().len());
}

/// Lets each twentieth sync of a log fail, as a disk does that cannot write a page, and each seventh write, as one that is full.
const FAILING_DISK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static int is_log(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return length > 4 && strcmp(path + length - 4, ".wal") == 0;
}
int fdatasync(int fd) {
    static int count;
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    if (is_log(fd) && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) % 20 == 0) { errno = EIO; return -1; }
    return real(fd);
}
ssize_t writev(int fd, const struct iovec *parts, int number) {
    static int count;
    ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    if (is_log(fd) && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) % 7 == 0) { errno = ENOSPC; return -1; }
    return real(fd, parts, number);
}
"#;

#[test]
fn a_disk_that_fails_sometimes_loses_nothing_acknowledged() {
    const STORY: &str = "a_disk_that_fails_sometimes_loses_nothing_acknowledged";
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let arguments = ["-shared", "-fPIC", "-ldl"];
    let Some(shim) = c::compile_with(&sandbox, STORY, "failing.so", FAILING_DISK, &arguments) else { return };
    let served = Served::start_with(&store, &[], &[("LD_PRELOAD", &shim)]);
    let statuses: Vec<u16> = (1..=100).map(|trace| send(served.port("otlp-http"), &request(trace, 4)).unwrap().status).collect();
    // The client hears of each failure and may send again, and the server goes on by itself.
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    let failed = statuses.iter().filter(|status| **status == 503).count();
    assert!((14..30).contains(&failed), "{failed} of 100 failed");
    assert!(statuses.ends_with(&[200]) || statuses[90..].contains(&200), "{statuses:?}");
    served.kill();
    let served = Served::start(&store);
    for (trace, status) in (1..).zip(statuses) {
        let found = http::get(served.port("page"), &format!("/api/traces/{trace:032x}"));
        let spans = if found.status == 200 { found.json()["data"][0]["spans"].as_array().unwrap().len() } else { 0 };
        assert!(spans == 5 || status == 503 && spans == 0, "trace {trace}, answered with {status}, has {spans} spans");
    }
}

/// A library that lets nothing be written to a log, nor beside it, while a file is there.
const FULL_DISK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static int is_full(int fd) {
    char link[64], path[4096];
    const char *full = getenv("STORY_DISK_IS_FULL");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "/wal/") && full && access(full, F_OK) == 0;
}
ssize_t write(int fd, const void *bytes, size_t count) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    return real(fd, bytes, count);
}
ssize_t writev(int fd, const struct iovec *parts, int number) {
    ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    return real(fd, parts, number);
}
"#;

/// Waits until the server says this.
#[track_caller]
fn wait_for(served: &Served, path: &str, expected: impl Fn(&Answer) -> bool) {
    let begun = Instant::now();
    loop {
        let answer = http::get(served.port("admin"), path);
        if expected(&answer) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{path}: {} {}", answer.status, answer.body);
        thread::yield_now();
    }
}

#[test]
fn a_server_whose_disk_is_full_is_not_ready_until_there_is_room() {
    const STORY: &str = "a_server_whose_disk_is_full_is_not_ready_until_there_is_room";
    let sandbox = Sandbox::new();
    let (store, full) = (sandbox.path("store"), sandbox.path("full"));
    let Some(shim) = c::compile_with(&sandbox, STORY, "full.so", FULL_DISK, &["-shared", "-fPIC", "-ldl"]) else { return };
    let served = Served::start_with(&store, &[], &[("LD_PRELOAD", &shim), ("STORY_DISK_IS_FULL", &full)]);
    let port = served.port("otlp-http");
    assert_eq!((send(port, &request(1, 1)).unwrap().status, http::get(served.port("admin"), "/readyz").status), (200, 200));
    std::fs::write(&full, "").unwrap();
    assert_eq!(send(port, &request(2, 1)).unwrap().status, 503);
    wait_for(&served, "/readyz", |answer| answer.status == 503 && answer.body.contains("No space left on device"));
    // It is ready again when there is room, without anybody sending.
    std::fs::remove_file(&full).unwrap();
    wait_for(&served, "/readyz", |answer| answer.status == 200);
    assert_eq!(send(port, &request(2, 1)).unwrap().status, 200);
}

#[test]
fn a_query_whose_client_left_stops() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    for some in 0..10_u64 {
        let span = |trace: u64| {
            json!({ "traceId": format!("{trace:032x}"), "spanId": "0000000000000001", "name": "get",
                "startTimeUnixNano": recent_nanos().to_string(), "endTimeUnixNano": (recent_nanos() + 1_000).to_string() })
        };
        let spans: Vec<Value> = (1..=20_000).map(|trace| span(some * 20_000 + trace)).collect();
        let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "cart" } }] });
        let body = json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] }).to_string();
        assert_eq!(send(served.port("otlp-http"), &body).unwrap().status, 200);
    }
    // A search that reads all traces and finds none: whoever waits for it gets an answer, and who leaves costs nothing.
    let path = "/api/traces?service=cart&tag=no:such&start=1&end=4000000000000000";
    let page = served.port("page");
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let head = [b"\x82\x86\x04".as_slice(), &[u8::try_from(path.len()).unwrap()], path.as_bytes(), b"\x41\x09localhost"].concat();
    let http_2 = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, b""), &frame(1, 5, 1, &head)].concat();
    let http_1 = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    for (count, bytes) in (1..).zip([http_1, http_2]) {
        let mut client = TcpStream::connect(("127.0.0.1", page)).unwrap();
        client.write_all(&bytes).unwrap();
        drop(client);
        wait_for(&served, "/metrics", |answer| answer.body.contains(&format!("\nlongpole_queries_cancelled_total {count}\n")));
    }
    assert_eq!(http::get(page, path).json()["data"], json!([]));
    let metrics = http::get(served.port("admin"), "/metrics").body;
    for line in
        ["queries_cancelled_total 2", "queries_timed_out_total 0", "memory_bytes{of=\"bodies\"} 0", "memory_bytes{of=\"answers\"} 0"]
    {
        assert!(metrics.contains(&format!("\nlongpole_{line}\n")), "{line}: {metrics}");
    }
    let store = metrics.lines().find_map(|line| line.strip_prefix("longpole_memory_bytes{of=\"store\"} ")).unwrap();
    assert!(store.parse::<u64>().unwrap() > 200_000 * 40, "{store}");
}

#[test]
fn a_store_has_one_server_and_a_taken_port_is_named() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let second = longpole(&store).args(["serve", "--port", "all=0"]).output().unwrap();
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && error.contains("another longpole serves it"), "{error}");
    let port = served.port("page").to_string();
    let third = longpole(&sandbox.path("other")).args(["serve", "--port", "all=0", "--port", &format!("page={port}")]).output().unwrap();
    let error = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(!third.status.success() && error.contains(&format!("127.0.0.1:{port}")), "{error}");
    let open = longpole(&sandbox.path("open")).args(["serve", "--listen", "0.0.0.0"]).output().unwrap();
    let error = String::from_utf8_lossy(&open.stderr).into_owned();
    assert!(!open.status.success() && error.contains("--insecure"), "{error}");
}

/// A door that is closed loses nobody: the page names another port, which takes the same.
#[test]
fn a_closed_port_is_not_named() {
    let sandbox = Sandbox::new();
    let served = Served::start_with(&sandbox.path("store"), &["--port", "otlp-http=off", "--port", "zipkin=off"], &[]);
    let named = served.jaeger("/api/server");
    assert_eq!((&named["otlp_http_port"], &named["zipkin_port"]), (&json!(served.port("page")), &json!(served.port("page"))), "{named}");
    assert_eq!(send(served.port("page"), &request(1, 1)).unwrap().status, 200);
    assert_eq!(http::post(served.port("page"), "/api/v2/spans", "application/json", &zipkin(2, 1)).unwrap().status, 202);
    assert_eq!(served.jaeger("/api/traces?service=cart")["data"].as_array().unwrap().len(), 2);
    served.stop();
}

/// What Grafana's data sources and Kiali send, in their order and with the parameters that they leave empty.
#[test]
fn grafana_and_kiali_ask_as_they_ask_jaeger_and_zipkin() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let span = |id: u32, parent: u32, service: &str, name: &str| {
        let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
        let span = json!({
            "traceId": format!("{:032x}", 0xabc), "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": 2,
            "startTimeUnixNano": format!("{now}000000000"), "endTimeUnixNano": format!("{now}500000000"),
            "attributes": [{ "key": "http.status_code", "value": { "stringValue": "500" } }],
        });
        let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
        json!({ "resource": resource, "scopeSpans": [{ "spans": [span] }] })
    };
    let body = json!({ "resourceSpans": [span(1, 0, "web.shop", "GET /cart"), span(2, 1, "cart.shop", "reserve")] });
    assert_eq!(send(served.port("otlp-http"), &body.to_string()).unwrap().status, 200);
    let tags = "%7B%22http.status_code%22%3A%22500%22%7D";
    let range = format!("start={}&end={}", (now - 600) * 1_000_000, (now + 600) * 1_000_000);
    // Grafana's health check and lists, then a search without a time.
    assert_eq!(served.jaeger("/api/services")["data"], json!(["cart.shop", "web.shop"]));
    assert_eq!(served.jaeger("/api/services/cart.shop/operations")["data"], json!(["reserve"]));
    for search in [
        format!("service=cart.shop&operation=&tags={tags}&minDuration=&maxDuration=&limit=20"),
        format!("limit=20&lookback=custom&maxDuration&minDuration=100ms&service=web.shop&{range}&tags={tags}"),
        "service=web.shop&operation=all&limit=20".to_owned(),
        // Kiali's.
        format!("{range}&limit=100&service=cart.shop&tags=%7B%7D"),
    ] {
        let found = served.jaeger(&format!("/api/traces?{search}"));
        assert_eq!(found["data"][0]["spans"].as_array().map(Vec::len), Some(2), "{search}: {found}");
    }
    let trace = served.jaeger("/api/traces/abc");
    let processes: Vec<&str> =
        trace["data"][0]["processes"].as_object().unwrap().values().filter_map(|it| it["serviceName"].as_str()).collect();
    assert_eq!(processes, ["web.shop", "cart.shop"]);
    let calls = served.jaeger(&format!("/api/dependencies?endTs={}000&lookback=3600000", now + 1));
    assert_eq!(calls["data"], json!([{ "parent": "web.shop", "child": "cart.shop", "callCount": 1 }]));
    // Grafana's Zipkin source.
    let zipkin = |path: &str| http::get(served.port("zipkin"), path).json();
    assert_eq!(zipkin("/api/v2/services"), json!(["cart.shop", "web.shop"]));
    assert_eq!(zipkin("/api/v2/spans?serviceName=cart.shop"), json!(["reserve"]));
    let found = zipkin("/api/v2/traces?serviceName=cart.shop&spanName=&lookback=3600000&limit=10");
    assert_eq!(found[0].as_array().map(Vec::len), Some(2), "{found}");
    assert_eq!(zipkin("/api/v2/trace/abc").as_array().map(Vec::len), Some(2));
    served.stop();
}
