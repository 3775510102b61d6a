//! What redaction costs a span that has nothing to take out: `cargo run --release -p longpole-wire --example redact_cost`.

#![allow(clippy::print_stdout, reason = "it measures, and says what")]

use std::hint::black_box;
use std::time::Instant;

use longpole_model::sink::{SpanRef, ValueRef};
use longpole_model::{SpanId, SpanKind, StatusCode, Timestamp, TraceId};
use longpole_wire::redact::Redactor;

fn main() {
    let attributes = [
        ("http.request.method", ValueRef::Str("GET")),
        ("http.route", ValueRef::Str("/api/v1/users/{id}/orders")),
        ("url.full", ValueRef::Str("https://shop.example/api/v1/users/1234/orders?page=2&sort=price&order=asc")),
        ("http.response.status_code", ValueRef::Int(200)),
        ("server.address", ValueRef::Str("shop.example")),
        (
            "user_agent.original",
            ValueRef::Str("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
        ),
        (
            "db.query.text",
            ValueRef::Str("SELECT o.id, o.total, u.name FROM orders o JOIN users u ON u.id = o.user_id WHERE o.id = $1 AND o.state = $2"),
        ),
        ("db.system.name", ValueRef::Str("postgresql")),
        ("network.peer.address", ValueRef::Str("10.0.12.34")),
        ("k8s.pod.name", ValueRef::Str("shop-7d9f8b6c5d-x2x9q")),
        ("thread.name", ValueRef::Str("worker-3")),
        ("messaging.message.id", ValueRef::Str("550e8400-e29b-41d4-a716-446655440000")),
    ];
    let span = SpanRef {
        trace_id: TraceId::MAX,
        span_id: SpanId::MAX,
        parent_span_id: None,
        trace_state: "",
        flags: 0,
        name: "GET /api/v1/users/{id}/orders",
        kind: SpanKind::Server,
        start: Timestamp(1),
        end: Timestamp(2),
        attributes: &attributes,
        dropped_attributes: 0,
        events: &[],
        dropped_events: 0,
        links: &[],
        dropped_links: 0,
        status: StatusCode::Unset,
        status_message: "",
    };
    let mut redactor = Redactor::default();
    assert!(!redactor.concerns_span(&span));
    let mut best = f64::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..20_000 {
            black_box(redactor.concerns_span(black_box(&span)));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / 20_000.0);
    }
    println!("{best:.0} ns a span of {} attributes, {:.1} ns an attribute", attributes.len(), best / attributes.len() as f64);
}
