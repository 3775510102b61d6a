//! Story: somebody at a terminal asks the tracing server of the team, and does not open its page.
//! Guarantees: services and traces of a server are listed, newest or longest first; the answer of a trace is that of the same spans in a file, by
//! its id or by the address that a browser shows; every command of a recording takes that address, and import keeps the trace; a recording goes to a server with its code,
//! and a trace there leads to the recordings that have its code, as a recording leads to its traces; a server of Jaeger that has only the first version of the API is read as well; an error names what is no server, no trace or no address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::thread;

use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Sandbox, http, longpole, recent_nanos};

/// A checkout that calls a slow payment and then a fast cart; each trace takes a little longer.
fn checkout(trace: u64) -> Value {
    let start = 1_795_867_200_000_000_000 + trace * 1_000_000_000;
    let span = |id: u64, parent: u64, name: &str, from: u64, to: u64| {
        json!({
            "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"),
            "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") },
            "name": name, "kind": 1,
            "startTimeUnixNano": (start + from * 1_000_000).to_string(), "endTimeUnixNano": (start + to * 1_000_000).to_string(),
            "status": { "code": if trace == 2 && parent == 0 { 2 } else { 0 } },
        })
    };
    let spans = [span(1, 0, "POST /checkout", 0, 500 + 10 * trace), span(2, 1, "charge card", 10, 410), span(3, 1, "empty cart", 420, 440)];
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "shop" } }] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_server_answers_in_the_terminal() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("served"));
    for trace in 1..=3 {
        let sent = http::post(served.port("otlp-http"), "/v1/traces", "application/json", &checkout(trace).to_string()).unwrap();
        assert_eq!(sent.status, 200);
    }
    let at = format!("http://localhost:{}", served.port("page"));
    let store = sandbox.path("own");
    let ask = |arguments: &[&str]| {
        let output = longpole(&store).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let services = ask(&["services", "--at", &at]);
    assert!(services.contains("shop") && services.contains("POST /checkout, charge card, empty cart"), "{services}");

    // The times of the spans are long ago.
    let search = |more: &[&str]| {
        let arguments = [&["search", "--at", &at, "--since", "9999d", "--format", "json"], more].concat();
        let view: Value = serde_json::from_str(&ask(&arguments)).unwrap();
        let ids =
            view["traces"].as_array().unwrap().iter().map(|trace| trace["trace_id"].as_str().unwrap().trim_start_matches('0').to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(search(&[]), ["3", "2", "1"]);
    assert_eq!(search(&["--errors", "--service", "shop"]), ["2"]);
    assert_eq!(search(&["--min", "525ms"]), ["3"]);
    assert_eq!(search(&["--operation", "charge card", "--limit", "1"]), ["3"]);
    let listed = ask(&["search", "--at", &at, "--since", "9999d"]);
    let address = format!("{at}/trace/{:032x}", 3);
    assert!(listed.contains(&format!("show {address}")), "{listed}");

    // The answer is that of a file of the same spans.
    let file = sandbox.path("checkout.json");
    std::fs::write(&file, checkout(3).to_string()).unwrap();
    let poles = |what: &str| {
        let view: Value = serde_json::from_str(&ask(&["show", what, "--format", "json"])).unwrap();
        let pole = |pole: &Value| (pole["name"].clone(), pole["on_path_nanos"].clone(), pole["saves_if_zero_nanos"].clone());
        view["poles"].as_array().unwrap().iter().map(pole).collect::<Vec<_>>()
    };
    let of_file = poles(file.to_str().unwrap());
    assert_eq!(poles(&address), of_file);
    let answer = ask(&["trace", &format!("{:032x}", 3), "--at", &at]);
    let first = answer.lines().find(|line| line.starts_with("p1")).unwrap();
    assert!(first.contains("charge card") && first.contains("400.0ms"), "{answer}");
    let failed = ask(&["trace", &format!("{:032x}", 2), "--at", &at]);
    assert!(failed.contains("errors    1 span failed: POST /checkout · shop (s") && !answer.contains("errors"), "{failed}");
    assert!(!answer.contains("exit unknown") && !answer.contains("--no-profile"), "{answer}");
    assert!(ask(&["tree", &address]).contains("empty cart"));
    assert!(ask(&["diff", &format!("{at}/trace/1"), &address]).contains("POST /checkout"));
    assert_eq!(ask(&["open", &address, "--no-browser"]).trim(), address);
    ask(&["import", &address]);
    assert_eq!(poles("last"), of_file);

    for (arguments, code, reason) in [
        (vec!["trace", "bad", "--at", &at], 3, "has no trace bad"),
        (vec!["show", &at], 2, "is not the address of a trace"),
        (vec!["services", "--at", "http://127.0.0.1:1"], 1, "Connection refused"),
        (vec!["search", "--at", "ftp://x"], 1, "not an address of http or https"),
    ] {
        let output = longpole(&store).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(reason), "{arguments:?}: {}", text(&output));
    }
    served.stop();
}

/// The story's promise: a second search, of traces in which the pole is really gone, finds what the first one said.
#[test]
fn many_traces_together_say_what_to_fix_first() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("served"));
    let at = format!("http://localhost:{}", served.port("page"));
    let start = recent_nanos();
    // One request in fifty waits for the bank; those of the second shop never do.
    let send = |shop: &str, trace: u64, bank: u64| {
        let span = |id: u64, parent: u64, name: &str, from: u64, to: u64| {
            let millis = |at: u64| (start + trace * 10_000_000 + at * 1_000_000).to_string();
            json!({
                "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"),
                "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") },
                "name": name, "kind": 1, "startTimeUnixNano": millis(from), "endTimeUnixNano": millis(to),
            })
        };
        let (charged, end) = (10 + bank, 40 + bank);
        let spans = [
            span(1, 0, &format!("POST /checkout/{trace}"), 0, end),
            span(2, 1, "validate", 0, 10),
            span(3, 1, "charge card", 10, charged),
            span(4, 1, "render", charged, end),
        ];
        let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": shop } }] });
        let body = json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] });
        assert_eq!(http::post(served.port("otlp-http"), "/v1/traces", "application/json", &body.to_string()).unwrap().status, 200);
    };
    for trace in 1..=100 {
        send("shop", trace, if trace % 50 == 0 { 360 } else { 60 });
        send("without", 1_000 + trace, 0);
    }
    let store = sandbox.path("own");
    let ask = |arguments: &[&str]| {
        let output = longpole(&store).args(["search", "--poles", "--at", &at]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let view = |service: &str| {
        let view: Value = serde_json::from_str(&ask(&["--service", service, "--format", "json"])).unwrap();
        assert_eq!((view["traces"].as_u64(), view["truncated"].as_bool(), view["left_out"].as_u64()), (Some(100), Some(false), Some(0)));
        view["operations"][0].clone()
    };
    let (with, without) = (view("shop"), view("without"));
    assert_eq!(with["name"], "POST /checkout/#");
    let pole = &with["poles"][0];
    assert_eq!((pole["name"].as_str(), pole["traces"].as_u64()), (Some("charge card"), Some(100)));
    assert_eq!(with["takes"]["p99_nanos"].as_i64(), Some(400_000_000));
    assert_eq!(pole["without"], without["takes"], "what it would gain is what the others take");
    assert!(pole["share_of_slowest"].as_f64() > pole["share_of_others"].as_f64(), "{pole}");
    let on_path: i64 = with["poles"].as_array().unwrap().iter().map(|pole| pole["on_path_nanos"].as_i64().unwrap()).sum();
    assert_eq!(Some(on_path), with["total_nanos"].as_i64());

    let answer = ask(&[]);
    assert!(answer.starts_with("POST /checkout/# · shop: 100 traces, median 100.0ms, p99 400.0ms, 10.60s in all\n"), "{answer}");
    assert!(answer.contains("The slowest 5% are slow because of charge card: 82% of their time, 60% in the others.\n"), "{answer}");
    assert!(answer.contains("Fix charge card first: without it, median 40.0ms, p99 40.0ms\n"), "{answer}");
    assert!(answer.contains("OTHER OPERATIONS") && answer.contains("POST /checkout/# · without"), "{answer}");
    for (arguments, why) in [
        (vec!["--service", "nobody"], "the server knows no service nobody"),
        (vec!["--service", "shop", "--operation", "GET /"], "the service shop has no operation GET /"),
    ] {
        let output = longpole(&store).args(["search", "--poles", "--at", &at]).args(arguments).output().unwrap();
        assert!(output.status.code() == Some(3) && text(&output).contains(why), "{}", text(&output));
    }

    // A Jaeger has no such view, but sends its traces.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let jaeger = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let page = served.port("page");
    thread::spawn(move || listener.incoming().for_each(|client| as_jaeger(&mut client.unwrap(), page)));
    let output = longpole(&store).args(["search", "--poles", "--service", "shop", "--limit", "100", "--at", &jaeger]).output().unwrap();
    let of_jaeger = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(of_jaeger.contains("Fix charge card first: without it, median 40.0ms, p99 40.0ms\n"), "{}", text(&output));
    served.stop();
}

/// Answers as a Jaeger with the traces of a server: it has the third version of the API, and a page for every other path.
fn as_jaeger(client: &mut TcpStream, server: u16) {
    let mut head = [0; 4_096];
    let length = client.read(&mut head).unwrap_or(0);
    let path = String::from_utf8_lossy(&head[..length]).split(' ').nth(1).unwrap_or_default().to_owned();
    let body = if path.starts_with("/api/") { http::get(server, &path).body } else { "<!doctype html>".to_owned() };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = client.write_all((head + &body).as_bytes());
}

/// Answers each request by its path as an old Jaeger does, and anything else with its page.
fn old_jaeger(listener: &TcpListener, trace: &str) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut head = [0; 4096];
        let length = stream.read(&mut head).unwrap();
        let path = String::from_utf8_lossy(&head[..length]).split(' ').nth(1).unwrap_or_default().to_owned();
        let (kind, body) = match path.as_str() {
            "/api/services" => ("application/json", json!({ "data": ["shop"], "errors": null }).to_string()),
            "/api/services/shop/operations" => ("application/json", json!({ "data": ["charge card"], "errors": null }).to_string()),
            "/api/traces/3" => ("application/json", trace.to_owned()),
            "/stop" => return,
            _ => ("text/html", "<!doctype html><title>Jaeger UI</title>".to_owned()),
        };
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

#[test]
fn an_old_jaeger_is_read_too() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("served"));
    http::post(served.port("otlp-http"), "/v1/traces", "application/json", &checkout(3).to_string()).unwrap();
    let trace = http::get(served.port("page"), "/api/traces/3").body;
    served.stop();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let jaeger = thread::spawn(move || old_jaeger(&listener, &trace));
    let ask =
        |arguments: &[&str]| longpole(&sandbox.path("own")).args(arguments).args(["--at", &format!("localhost:{port}")]).output().unwrap();
    let services = ask(&["services"]);
    assert!(text(&services).contains("charge card"), "{}", text(&services));
    let answer = ask(&["trace", "3"]);
    assert!(text(&answer).contains("charge card                400.0ms"), "{}", text(&answer));
    let search = ask(&["search"]);
    assert!(!search.status.success() && text(&search).contains("has no /api/v3/trace-summaries (status 200)"), "{}", text(&search));
    // It hangs up without an answer.
    let _ = http::send(port, "GET", "/stop", &[], "");
    jaeger.join().unwrap();
}

#[test]
fn a_recording_goes_to_a_server_with_its_code() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("served"));
    let at = format!("http://localhost:{}", served.port("page"));
    let store = sandbox.path("own");
    let run = longpole(&store).args(["run", "--to", &at, "--", "sh", "-c", "sleep 0.1"]).output().unwrap();
    assert!(run.status.success() && text(&run).contains(&format!("sent to {at}/r/r1")), "{}", text(&run));
    let pushed = longpole(&store).args(["push", "--to", &at]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&pushed.stdout).trim(), format!("{at}/r/r2"), "{}", text(&pushed));
    let own: Value = serde_json::from_slice(&longpole(&store).args(["poles", "--format", "json"]).output().unwrap().stdout).unwrap();
    let there = served.jaeger("/api/recordings/r1/poles");
    assert_eq!(there["poles"], own["poles"], "the same answer");
    // The address that was printed is one to ask.
    let address = format!("{at}/r/r1");
    let shown = text(&longpole(&store).args(["show", &address]).output().unwrap());
    let next: Vec<&str> = shown.lines().filter(|line| line.starts_with("next")).collect();
    assert!(next.len() == 1 && next[0].contains(&format!("open {address}")) && !next[0].contains("span"), "{shown}");
    let there = longpole(&store).args(["poles", &address, "--format", "json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&there.stdout).unwrap()["poles"], own["poles"]);
    let tree = text(&longpole(&store).args(["tree", &address]).output().unwrap());
    assert!(tree.contains("is a recording on a server"), "{tree}");
    assert_eq!(served.jaeger("/api/recordings")["recordings"].as_array().unwrap().len(), 2);
    // What is no recording is refused, and leaves nothing. The server reads no source file that one names.
    let refused = http::send(served.port("page"), "PUT", "/longpole/v1/recordings", &[], "no recording").unwrap();
    assert!(refused.status == 400 && !refused.body.contains("incoming"), "{}", refused.body);
    let left: Vec<_> = std::fs::read_dir(sandbox.path("served/tenants/default/pushed")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("incoming")), "{left:?}");
    let attached = longpole(&store).args(["attach", "--to", &at, "-d", "0.1", &std::process::id().to_string()]).output().unwrap();
    assert!(attached.status.success() && text(&attached).contains(&format!("sent to {at}/r/r3")), "{}", text(&attached));
    let gone = longpole(&store).args(["push", "--to", "http://127.0.0.1:1"]).output().unwrap();
    assert!(!gone.status.success() && text(&gone).contains("Connection refused"), "{}", text(&gone));
    // The server has them after a restart, beside those that its user makes in the same store.
    served.stop();
    let served = Served::start(&sandbox.path("served"));
    assert_eq!(served.jaeger("/api/recordings")["recordings"].as_array().unwrap().len(), 3);
    served.stop();
}

/// The services of a team send to its server; a test in CI is recorded with its code as well.
#[test]
fn a_trace_leads_to_the_recording_that_has_its_code() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("served"));
    let at = format!("http://localhost:{}", served.port("page"));
    let collector = format!("http://localhost:{}", served.port("otlp-http"));
    let store = sandbox.path("own");
    let exec = [env!("CARGO_BIN_EXE_longpole"), "exec", "-s", "checks", "-n", "count", "--", "sh", "-c"];
    let counting = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let run = longpole(&store)
        .args(["run", "--to", &at, "--"])
        .args(exec)
        .arg(counting)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        .output()
        .unwrap();
    assert!(run.status.success() && text(&run).contains("/r/r1"), "{}", text(&run));
    let found = served.jaeger("/longpole/v1/traces?service=checks");
    let trace = found["traces"][0]["trace_id"].as_str().unwrap_or_else(|| panic!("{found}"));
    let recordings = served.jaeger(&format!("/longpole/v1/traces/{trace}/recordings"));
    assert_eq!(recordings["recordings"][0]["recording"], "r1");
    assert!(recordings["recordings"][0]["samples"].as_u64() > Some(0), "{recordings}");
    let traces = served.jaeger("/longpole/v1/recordings/r1/traces");
    assert_eq!(traces["traces"], json!([{ "trace_id": trace, "spans": 2 }]), "the run is a span of it, too");
    // A span has other handles in both, and one id.
    let own: Value =
        serde_json::from_slice(&longpole(&store).args(["span", "count", "--format", "json"]).output().unwrap().stdout).unwrap();
    let id = own["span_id"].as_str().unwrap();
    let there = served.jaeger(&format!("/api/recordings/{trace}/spans/{id}"));
    assert_eq!((&there["name"], &there["samples"]["with_descendants"]), (&json!("count"), &json!(0)));
    let recorded = served.jaeger(&format!("/api/recordings/r1/spans/{id}"));
    assert_eq!((&recorded["name"], &recorded["span_id"]), (&json!("count"), &json!(id)));
    assert!(recorded["samples"]["with_descendants"].as_u64() > Some(0), "{recorded}");
    // The page of the trace is that of the spans; where nobody sent them, that of the recording.
    let page_of = |trace: &str| http::send(served.port("page"), "GET", &format!("/trace/{trace}"), &[], "").unwrap();
    assert_eq!(page_of(trace).header("location"), Some(&*format!("/r/{trace}")));
    let alone = longpole(&store).args(["run", "--to", &at, "--"]).args(exec).arg("true").output().unwrap();
    assert!(alone.status.success(), "{}", text(&alone));
    let span: Value =
        serde_json::from_slice(&longpole(&store).args(["span", "count", "--format", "json"]).output().unwrap().stdout).unwrap();
    let alone = span["trace_id"].as_str().unwrap();
    assert_eq!(page_of(alone).header("location"), Some("/r/r2"));
    // In the terminal the id from a log finds both: the recording by the trace, the span by its own.
    let shown = text(&longpole(&store).args(["span", id, trace]).output().unwrap());
    assert!(shown.contains("count") && shown.contains("r1"), "{shown}");
    let none = text(&longpole(&store).args(["show", &"7".repeat(32)]).output().unwrap());
    assert!(none.contains("its tag, or the id of a trace in it"), "{none}");
    served.stop();
}
