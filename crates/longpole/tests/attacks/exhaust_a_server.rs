//! The paragraph on `longpole serve`: few bytes sent make an answer that takes the memory of all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

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

#[test]
fn server_a_posted_query_without_an_end_keeps_no_memory() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let mut client = TcpStream::connect(("127.0.0.1", served.port("pyroscope"))).unwrap();
    let head = "POST /querier.v1.QuerierService/Series HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    client.write_all(&[b' '; 100_000]).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).expect("an answer, although the query has not ended");
    assert_eq!(std::str::from_utf8(&answer), Ok("HTTP/1.1 413"));
    served.stop();
}

#[test]
fn server_a_search_with_a_thousand_conditions_is_refused() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox.path("store"));
    let tags = |count: usize| (0..count).map(|number| format!("&tag=k{number}:1")).collect::<String>();
    let status = |count: usize| http::get(served.port("page"), &format!("/api/traces?service=cart{}", tags(count))).status;
    assert_eq!([status(128), status(1_000)], [200, 400]);
    served.stop();
}
