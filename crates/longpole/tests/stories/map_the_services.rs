//! Story: somebody asks a server which service calls which, how often, how slowly, and what fails.
//! Guarantees: the map counts requests, not the work inside of services; it has the traces of a time, the newest 2,000 if
//! there are more, and says so; a wrong time is refused; the page of the server has a place for it.

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::http::{self, Answer};
use crate::support::served::Served;

/// When the traces begin, in microseconds.
const START: u64 = 1_795_867_200_000_000;

/// A span of a service, from one millisecond of its trace to another.
fn span(trace: u64, id: u64, parent: u64, millis: [u64; 2], has_failed: bool) -> Value {
    let nanos = |millis: u64| ((START + trace * 1_000 + millis * 1_000) * 1_000).to_string();
    json!({
        "traceId": format!("{:032x}", trace + 1), "spanId": format!("{:016x}", trace * 10 + id),
        "parentSpanId": if parent == 0 { String::new() } else { format!("{:016x}", trace * 10 + parent) },
        "name": "work", "kind": 2,
        "startTimeUnixNano": nanos(millis[0]), "endTimeUnixNano": nanos(millis[1]),
        "status": { "code": if has_failed { 2 } else { 0 } },
    })
}

/// Requests of a map, with their times in milliseconds.
fn requests(count: u64, errors: u64, [median, p95, p99]: [u64; 3]) -> Value {
    let nanos = |millis: u64| millis * 1_000_000;
    json!({ "count": count, "errors": errors, "median_nanos": nanos(median), "p95_nanos": nanos(p95), "p99_nanos": nanos(p99) })
}

fn send(served: &Served, by_service: &[(&str, Vec<Value>)]) {
    let resource = |service: &str| json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
    let spans = by_service.iter().map(|(service, spans)| json!({ "resource": resource(service), "scopeSpans": [{ "spans": spans }] }));
    let body = json!({ "resourceSpans": spans.collect::<Vec<_>>() }).to_string();
    assert_eq!(http::post(served.port("otlp-http"), "/v1/traces", "application/json", &body).unwrap().status, 200);
}

/// The map of the traces that start in this range of milliseconds.
fn map(served: &Served, [from, to]: [u64; 2]) -> Answer {
    let (start, end) = (START + from * 1_000, START + to * 1_000);
    http::get(served.port("page"), &format!("/longpole/v1/services/map?start={start}&end={end}"))
}

#[test]
fn calls_and_errors_of_a_time_are_counted() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    // A shop calls a card service, whose bank takes longer each time; every second one fails.
    for trace in 0..20 {
        let bank = [20, 30 + trace];
        send(
            &served,
            &[
                ("shop", vec![span(trace, 1, 0, [0, 100], false), span(trace, 2, 1, [1, 90], false)]),
                ("card", vec![span(trace, 3, 2, [10, 80], false)]),
                ("bank", vec![span(trace, 4, 3, bank, trace % 2 == 1), span(trace, 5, 4, [21, 22], false)]),
            ],
        );
    }
    let all = map(&served, [0, 1_000]).json();
    assert_eq!((&all["traces"], &all["truncated"]), (&json!(20), &json!(false)));
    let bank = requests(20, 10, [19, 28, 29]);
    assert_eq!(
        all["services"],
        json!([
            { "name": "bank", "requests": bank },
            { "name": "card", "requests": requests(20, 0, [70; 3]) },
            { "name": "shop", "requests": requests(20, 0, [100; 3]) },
        ])
    );
    assert_eq!(
        all["calls"],
        json!([
            { "caller": "card", "callee": "bank", "requests": bank },
            { "caller": "shop", "callee": "card", "requests": requests(20, 0, [70; 3]) },
        ])
    );
    // Each trace begins a millisecond after the one before, and its last span 21 ms later.
    assert_eq!(map(&served, [38, 50]).json()["traces"], 3);
    assert_eq!(map(&served, [200, 300]).json(), json!({ "traces": 0, "truncated": false, "services": [], "calls": [] }));

    let wrong = http::get(served.port("page"), "/longpole/v1/services/map?start=yesterday");
    assert!(wrong.status == 400 && wrong.body.contains("start: yesterday is not a whole number"), "{} {}", wrong.status, wrong.body);
    // Without a time it is the last hour, where nothing was.
    assert_eq!(http::get(served.port("page"), "/longpole/v1/services/map").json()["traces"], 0);
    assert!(http::get(served.port("page"), "/services").body.contains("id=\"root\""), "the map has no page");
    served.stop();
}

#[test]
fn of_too_many_traces_the_newest_are_counted() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    // The oldest 100 are of a service that has been gone since.
    let of = |from: u64, to: u64| (from..to).map(|trace| span(trace, 1, 0, [0, 1], false)).collect();
    send(&served, &[("gone", of(0, 100)), ("shop", of(100, 2_100))]);
    let newest = map(&served, [0, 10_000]).json();
    assert_eq!((&newest["traces"], &newest["truncated"]), (&json!(2_000), &json!(true)));
    assert_eq!((&newest["services"][0]["name"], newest["services"].as_array().unwrap().len()), (&json!("shop"), 1));
    let oldest = map(&served, [0, 99]).json();
    assert_eq!((&oldest["services"][0]["name"], &oldest["truncated"]), (&json!("gone"), &json!(false)), "{oldest}");
    served.stop();
}
