//! Stories of continuous profiles: stock clients of Pyroscope push to `longpole serve`, and Grafana's calls and `longpole profile` read.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Sandbox, http, longpole, skip};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Calls a method of the querier as Grafana's Profiles Drilldown does: in JSON.
fn query(served: &Served, method: &str, query: &Value) -> Value {
    let path = format!("/querier.v1.QuerierService/{method}");
    let answer = http::post(served.port("pyroscope"), &path, "application/json", &query.to_string()).unwrap();
    assert_eq!(answer.status, 200, "{method}: {}", answer.body);
    answer.json()
}

/// Everything that a server has of these profiles.
fn flame_graph(served: &Served, profile_type: &str, selector: &str) -> Value {
    query(served, "SelectMergeStacktraces", &json!({ "profileTypeID": profile_type, "labelSelector": selector, "start": 0, "end": 0 }))["flamegraph"]
        .clone()
}

fn total(graph: &Value) -> i64 {
    graph["total"].as_str().map_or(0, |total| total.parse().unwrap())
}

/// What `longpole profile` says of a service.
fn profile(served: &Served, store: &Path, arguments: &[&str]) -> Value {
    let at = format!("localhost:{}", served.port("page"));
    crate::support::json(longpole(store).arg("profile").args(arguments).args(["--at", &at, "--format", "json"]))
}

/// Folded stacks as any script pushes them.
fn push_folded(served: &Served, query: &str, stacks: &str) {
    let answer = http::post(served.port("pyroscope"), &format!("/ingest?{query}"), "text/plain", stacks).unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{query}");
}

#[test]
fn what_was_pushed_is_there_after_a_kill_and_adds_up() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let until = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let from = until - 60;
    let name = |labels: &str| format!("name=cart.cpu%7B{labels}%7D&from={from}&until={until}&sampleRate=100");
    push_folded(&served, &name("env=prod"), "main;handle;parse 60\nmain;handle;render 20\nmain 20\n");
    push_folded(&served, &name("env=test"), "main;handle;parse 1\n");
    let check = |served: &Served| {
        assert_eq!(query(served, "ProfileTypes", &json!({ "start": 0, "end": 0 }))["profileTypes"][0]["ID"], CPU);
        let values = query(served, "LabelValues", &json!({ "name": "env", "start": 0, "end": 0 }));
        assert_eq!(values["names"], json!(["prod", "test"]));
        let graph = flame_graph(served, CPU, "{service_name=\"cart\",env=\"prod\"}");
        // A sample at 100 Hz is 10 ms.
        assert_eq!((total(&graph), graph["names"].clone()), (1_000_000_000, json!(["total", "main", "handle", "parse", "render"])));
        assert_eq!(total(&flame_graph(served, CPU, "{env=~\"t.*\"}")), 10_000_000);
        assert_eq!(total(&flame_graph(served, CPU, "{service_name=\"nobody\"}")), 0);
        let points = query(
            served,
            "SelectSeries",
            &json!({ "profileTypeID": CPU, "labelSelector": "{}", "start": (from - 60) * 1000, "end": until * 1000, "step": 10, "groupBy": ["env"] }),
        );
        let series = points["series"].as_array().unwrap();
        assert_eq!(series.len(), 2, "{points}");
        // A second of CPU time in a step of ten is a tenth of a CPU.
        assert_eq!(series[0]["points"][0]["value"], 0.1, "{points}");
        let view = profile(served, &store, &["cart"]);
        let first: Vec<&Value> = view["functions"].as_array().unwrap().iter().map(|it| &it["function"]).collect();
        assert_eq!((first[0], &view["total"]), (&json!("parse"), &json!(1_010_000_000)), "{view}");
    };
    check(&served);
    served.kill();
    let served = Served::start(&store);
    check(&served);
    // What is no profile says so.
    for (path, body, reason) in [
        ("/ingest?name=cart.cpu&format=pprof", "no profile", "cannot read the profile: "),
        ("/ingest?name=cart.cpu", "no number", "cannot read the profile: "),
        ("/ingest", "main 1", "name"),
    ] {
        let answer = http::post(served.port("pyroscope"), path, "text/plain", body).unwrap();
        assert!(answer.status == 400 && answer.body.contains(reason), "{path}: {} {}", answer.status, answer.body);
    }
}

#[test]
fn what_changed_since_before_is_named() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let name = |from: u64| format!("name=cart.cpu&from={from}&until={}&sampleRate=100", from + 10);
    push_folded(&served, &name(now - 86_400 - 600), "main;parse 50\nmain;render 50\n");
    push_folded(&served, &name(now - 600), "main;parse 150\nmain;render 50\n");
    let view = profile(&served, &store, &["cart", "--diff", "1d"]);
    let first = &view["functions"][0];
    assert_eq!((&first["function"], &first["own"]), (&json!("parse"), &json!([500_000_000, 1_500_000_000])), "{view}");
    assert_eq!(first["own_share"], json!([0.5, 0.75]));
    let side = |start: u64| json!({ "profileTypeID": CPU, "labelSelector": "{service_name=\"cart\"}", "start": start * 1000, "end": (start + 60) * 1000 });
    let diff = query(&served, "Diff", &json!({ "left": side(now - 86_400 - 600), "right": side(now - 600) }));
    assert_eq!(
        (&diff["flamegraph"]["leftTicks"], &diff["flamegraph"]["rightTicks"]),
        (&json!("1000000000"), &json!("2000000000")),
        "{diff}"
    );
}

#[test]
fn the_stock_go_sdk_pushes_cpu_and_memory_and_names_a_span() {
    let Some(emit) = std::env::var_os("LONGPOLE_GO_SDK") else {
        return skip("profiles of the stock Go SDK", "LONGPOLE_GO_SDK is not set; cargo xtask test sets it");
    };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let program = Path::new(&emit).with_file_name("pyroscope");
    let pushed = Command::new(program).args([&format!("http://127.0.0.1:{}", served.port("pyroscope")), "3"]).output().unwrap();
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    let view = profile(&served, &store, &["cart"]);
    let first = &view["functions"][0];
    let (own, all) = (first["own"].as_i64().unwrap(), view["total"].as_i64().unwrap());
    assert!(first["function"].as_str().unwrap().contains("parseRules"), "{view}");
    assert!((0.6..0.9).contains(&(own as f64 / all as f64)), "three quarters by construction: {own} of {all}");
    let types = query(&served, "ProfileTypes", &json!({ "start": 0, "end": 0 }));
    let names: Vec<&str> = types["profileTypes"].as_array().unwrap().iter().map(|it| it["ID"].as_str().unwrap()).collect();
    for wanted in [CPU, "memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes"] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    assert_eq!(query(&served, "LabelValues", &json!({ "name": "region", "start": 0, "end": 0 }))["names"], json!(["eu"]));
    // The span's part is parseRules alone.
    let of_span = query(
        &served,
        "SelectMergeSpanProfile",
        &json!({ "profileTypeID": CPU, "labelSelector": "{service_name=\"cart\"}", "spanSelector": ["00f067aa0ba902b7"], "start": 0, "end": 0 }),
    );
    let graph = &of_span["flamegraph"];
    let names = graph["names"].to_string();
    assert!(names.contains("parseRules") && !names.contains("renderPage"), "{names}");
    // The trace shows the code behind the span.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let span = json!({ "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "name": "POST /cart", "kind": 2,
        "startTimeUnixNano": (now - 3_000_000_000).to_string(), "endTimeUnixNano": now.to_string() });
    let service = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "cart" } }] });
    let trace = json!({ "resourceSpans": [{ "resource": service, "scopeSpans": [{ "spans": [span] }] }] });
    let sent = http::post(served.port("otlp-http"), "/v1/traces", "application/json", &trace.to_string()).unwrap();
    assert_eq!(sent.status, 200, "{}", sent.body);
    let flame = served.jaeger("/api/recordings/4bf92f3577b34da6a3ce929d0e0e4736/flame?span=s1").to_string();
    assert!(flame.contains("parseRules") && !flame.contains("renderPage"), "{flame}");
    // A label with an id of its own for each span is none of a series.
    let labels = query(&served, "LabelNames", &json!({ "start": 0, "end": 0 }));
    assert!(!labels["names"].to_string().contains("span_id"), "{labels}");
}

#[test]
fn profiles_of_a_go_service_without_an_sdk_are_fetched() {
    let Some(emit) = std::env::var_os("LONGPOLE_GO_SDK") else {
        return skip("profiles that longpole fetches of Go", "LONGPOLE_GO_SDK is not set; cargo xtask test sets it");
    };
    let begun = Instant::now();
    let mut program = Command::new(Path::new(&emit).with_file_name("scraped"));
    let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let target = format!("cart{{env=prod}}=http://127.0.0.1:{}", port.trim());
    let served = Served::start_with(&store, &["--scrape", &target, "--scrape-every", "2s"], &[]);
    let wanted = [
        CPU,
        "memory:inuse_space:bytes:space:bytes",
        "memory:alloc_space:bytes:space:bytes",
        "goroutines:goroutine:count:goroutine:count",
        "mutex:delay:nanoseconds:contentions:count",
        "block:delay:nanoseconds:contentions:count",
    ];
    let has_all = || {
        let types = query(&served, "ProfileTypes", &json!({ "start": 0, "end": 0 }))["profileTypes"].clone();
        wanted.iter().all(|wanted| types.as_array().is_some_and(|types| types.iter().any(|it| it["ID"] == *wanted)))
    };
    while !has_all() {
        std::thread::yield_now();
    }
    let own = |of_type: &str, function: &str| {
        let view = profile(&served, &store, &["cart", "--type", of_type, "--limit", "1000"]);
        let functions = view["functions"].as_array().unwrap().clone();
        functions.iter().find(|it| it["function"].as_str().unwrap().ends_with(function)).map_or(0.0, |it| it["own"].as_f64().unwrap())
    };
    let [parse, render] = ["main.parseRules", "main.renderPage"].map(|function| own("cpu", function));
    assert!(parse > render && render > 0.0, "{parse} and {render}");
    // Profiles of memory are those of the last garbage collection, which the first ones may come before.
    while ["memory:inuse_space", "memory:alloc_space"].iter().any(|of_type| own(of_type, "main.remember") == 0.0) {
        std::thread::yield_now();
    }
    // It remembers 64 KiB each 50 ms at most, so no scrape counts what one before it counted.
    let allocated = own("memory:alloc_space", "main.remember");
    assert!(0.0 < allocated && allocated <= 1.32e6 * begun.elapsed().as_secs_f64(), "{allocated} bytes");
    // Whoever reads the metrics learns that it is gone.
    drop(program.stdin.take());
    program.wait().unwrap();
    let failed = "longpole_losses_total{kind=\"scrapes_failed\"}";
    while !http::get(served.port("admin"), "/metrics").body.contains(failed) {
        std::thread::yield_now();
    }
    let wrong = longpole(&store).args(["serve", "--port", "all=0", "--scrape", "localhost:6060"]).output().unwrap();
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && error.contains("such as cart=http://localhost:6060"), "{error}");
}

#[test]
fn the_stock_python_sdk_pushes() {
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON") else {
        return skip("profiles of the stock Python SDK", "LONGPOLE_PYTHON is not set; cargo xtask test sets it");
    };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sdk/push_profiles.py");
    let pushed = Command::new(python).arg(script).args([&format!("http://127.0.0.1:{}", served.port("pyroscope")), "3"]).output().unwrap();
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    let view = profile(&served, &store, &["orders"]);
    assert!(view["functions"][0]["function"].as_str().unwrap().contains("parse_rules"), "{view}");
}

#[test]
fn profiles_of_opentelemetry_arrive_by_their_own_door() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let profile = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/otlp-profiles/app.otlp-profiles")).unwrap();
    let headers = [("Content-Type", "application/x-protobuf")];
    let answer = http::send(served.port("otlp-http"), "POST", "/v1development/profiles", &headers, profile).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let types = query(&served, "ProfileTypes", &json!({ "start": 0, "end": 0 }));
    let id = types["profileTypes"][0]["ID"].as_str().unwrap();
    assert!(total(&flame_graph(&served, id, "{}")) > 0, "{types}");
}
