//! The paragraph on `longpole serve`: few bytes sent make an answer that takes the memory of all.

use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Sandbox, http, recent_nanos};

/// Spans of one service, whose names begin with a number and have 4 KB.
fn spans(service: &str, numbers: std::ops::Range<u32>) -> Value {
    let span = |number: u32| {
        json!({
            "traceId": format!("{:032x}", u64::from(number) + 1), "spanId": "0000000000000001", "name": format!("{number:04000}"), "kind": 2,
            "startTimeUnixNano": recent_nanos().to_string(), "endTimeUnixNano": (recent_nanos() + 1_000_000).to_string(),
        })
    };
    let spans: Vec<Value> = numbers.map(span).collect();
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] })
}

#[test]
fn server_a_flood_of_names_leaves_the_list_of_services_short_and_whole() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let send = |document: &Value| {
        let answer = http::post(served.port("otlp-http"), "/v1/traces", "application/json", &document.to_string()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    for first in (0..4_000).step_by(500) {
        send(&spans("flood", first..first + 500));
    }
    send(&spans("shop", 9_000..9_001));
    let answer = http::get(served.port("page"), "/longpole/v1/services");
    assert!(answer.body.len() < 10 << 20, "an answer of {} bytes", answer.body.len());
    let list = answer.json();
    assert_eq!(list["truncated"], true, "it names what it lacks");
    let names: Vec<&str> = list["services"].as_array().unwrap().iter().map(|service| service["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["flood", "shop"]);
    assert_eq!(served.jaeger("/api/services")["data"], json!(["flood", "shop"]));
    served.stop();
}
