//! Bodies that stock SDKs sent; fixtures/otlp says where they are from.

use longpole_model::attribute::AttributeValue;
use longpole_model::sink::SpanBatch;
use longpole_model::span::{Span, SpanKind, StatusCode};
use longpole_wire::{Limits, otlp};

fn check(batch: &SpanBatch) {
    assert!(batch.losses.is_empty(), "{:?}", batch.losses);
    let named = |name: &str| batch.spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"));
    let (root, load, price) = (named("GET /cart"), named("load"), named("price"));
    assert_eq!(batch.spans.len(), 3);

    let text = |text: &str| AttributeValue::Str(text.into());
    assert_eq!((root.kind, root.parent_span_id, root.pid), (SpanKind::Server, None, Some(4711)));
    assert_eq!((root.service_name(), &root.scope.name[..], &root.scope.version[..]), ("shop", "cart", "1.2.3"));
    assert_eq!(root.attributes.get("http.route"), Some(&text("/cart")));
    assert_eq!(root.attributes.get("retries"), Some(&AttributeValue::Int(2)));
    assert_eq!(root.attributes.get("hit"), Some(&AttributeValue::Bool(true)));
    assert_eq!(root.attributes.get("ratio"), Some(&AttributeValue::Double(0.25)));
    assert_eq!(root.attributes.get("tags"), Some(&AttributeValue::Array(vec![text("a"), text("b")].into())));

    let is_child = |span: &Span| span.trace_id == root.trace_id && span.parent_span_id == Some(root.span_id);
    assert!(is_child(load) && is_child(price));
    assert!(root.start <= load.start && load.end <= price.end && price.end <= root.end && load.duration_nanos() > 0);
    assert_eq!((&load.events[0].name[..], load.events[0].attributes.get_str("key")), ("cache miss", Some("cart:7")));
    assert_eq!((price.status.code, &price.status.message[..]), (StatusCode::Error, "no price"));
    assert_eq!((price.links[0].span_id, price.links[0].attributes.get_str("why")), (load.span_id, Some("needs the cart")));
}

#[test]
fn python_in_protobuf() {
    let mut batch = SpanBatch::default();
    otlp::trace::decode(include_bytes!("../../../../fixtures/otlp/python.pb"), &Limits::default(), &mut batch).unwrap();
    check(&batch);
}

#[test]
fn node_in_json() {
    let mut batch = SpanBatch::default();
    otlp::json::decode(include_bytes!("../../../../fixtures/otlp/node.json"), &Limits::default(), &mut batch).unwrap();
    check(&batch);
}
