//! Trace requests in JSON.

use longpole_model::attribute::AttributeValue;
use longpole_model::loss::LossKind;
use longpole_model::sink::SpanBatch;
use longpole_model::span::{SpanKind, StatusCode};
use longpole_wire::{DecodeError, Limits, otlp};
use proptest::prelude::*;

use crate::arbitrary::{damaged, request};
use crate::oracle::{self, losses_of, lost, same, spans_of};

fn decode(text: &str) -> Result<SpanBatch, DecodeError> {
    let mut batch = SpanBatch::default();
    otlp::json::decode(text.as_bytes(), &Limits::default(), &mut batch).map(|()| batch)
}

/// A request whose only span has ids and these members.
fn with(members: &str) -> String {
    let ids = r#""traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174""#;
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids}{members}}}]}}]}}]}}"#)
}

#[test]
fn a_request_is_read() {
    let text = r#"{
        "resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [{
                "scope": {"name": "http", "version": "2.1"},
                "spans": [{
                    "traceId": "5B8EFFF798038103D269B633813FC60C",
                    "spanId": "EEE19B7EC3C1B174",
                    "parentSpanId": "eee19b7ec3c1b173",
                    "name": "GET /cart",
                    "kind": 2,
                    "startTimeUnixNano": "1544712660000000000",
                    "endTimeUnixNano": 1544712661000000001,
                    "attributes": [{"key": "http.route", "value": {"stringValue": "/cart"}}],
                    "events": [{"timeUnixNano": "1544712660500000000", "name": "retry"}],
                    "status": {"code": 2, "message": "no such cart"}
                }]
            }]
        }]
    }"#;
    let batch = decode(text).unwrap();
    let span = &batch.spans[0];
    assert_eq!(span.trace_id.to_string(), "5b8efff798038103d269b633813fc60c");
    assert_eq!(span.parent_span_id.unwrap().to_string(), "eee19b7ec3c1b173");
    assert_eq!((&span.name[..], span.kind), ("GET /cart", SpanKind::Server));
    assert_eq!(span.start.unix_nanos(), 1_544_712_660_000_000_000);
    assert_eq!(span.duration_nanos(), 1_000_000_001);
    assert_eq!(span.attributes.get_str("http.route"), Some("/cart"));
    assert_eq!((&span.events[0].name[..], span.events[0].time.nanos_since(span.start)), ("retry", 500_000_000));
    assert_eq!((span.status.code, &span.status.message[..]), (StatusCode::Error, "no such cart"));
    assert_eq!((span.service_name(), &span.scope.name[..], &span.scope.version[..]), ("shop", "http", "2.1"));
    assert!(batch.losses.is_empty());
}

#[test]
fn every_spelling_of_proto3_is_read() {
    let attribute = |value: &str| with(&format!(r#","attributes":[{{"key":"k","value":{value}}}]"#));
    for (value, expected) in [
        ("null", AttributeValue::Empty),
        ("{}", AttributeValue::Empty),
        (r#"{"stringValue":null}"#, AttributeValue::Empty),
        (r#"{"stringValue":""}"#, AttributeValue::Str("".into())),
        (r#"{"string_value":"\u00e9\ud83d\ude00"}"#, AttributeValue::Str("\u{e9}\u{1f600}".into())),
        (r#"{"intValue":"-9223372036854775808"}"#, AttributeValue::Int(i64::MIN)),
        (r#"{"intValue":9223372036854775807}"#, AttributeValue::Int(i64::MAX)),
        (r#"{"intValue":1e3}"#, AttributeValue::Int(1000)),
        (r#"{"int_value":"5.0"}"#, AttributeValue::Int(5)),
        (r#"{"doubleValue":1}"#, AttributeValue::Double(1.0)),
        (r#"{"doubleValue":"-Infinity"}"#, AttributeValue::Double(f64::NEG_INFINITY)),
        (r#"{"doubleValue":"1.5e3"}"#, AttributeValue::Double(1500.0)),
        (r#"{"doubleValue":0.1e-306}"#, AttributeValue::Double(0.1e-306)),
        (r#"{"boolValue":true,"unknown":{"deep":[[[]]]}}"#, AttributeValue::Bool(true)),
        (r#"{"bytesValue":"AP-_"}"#, AttributeValue::Bytes(vec![0, 255, 191].into())),
        (
            r#"{"arrayValue":{"values":[{"boolValue":false},{}]}}"#,
            AttributeValue::Array(vec![AttributeValue::Bool(false), AttributeValue::Empty].into()),
        ),
        (r#"{"kvlistValue":{}}"#, AttributeValue::KeyValues(Vec::new().into())),
    ] {
        let batch = decode(&attribute(value)).unwrap_or_else(|error| panic!("{value}: {error}"));
        assert_eq!(batch.spans[0].attributes.get("k"), Some(&expected), "{value}");
    }
    let batch = decode(&with(
        r#","kind":"SPAN_KIND_CLIENT","start_time_unix_nano":7,"endTimeUnixNano":"8","status":{"code":"STATUS_CODE_ERROR","message":null},"links":null"#,
    ))
    .unwrap();
    let span = &batch.spans[0];
    assert_eq!((span.kind, span.start.0, span.end.0, span.status.code), (SpanKind::Client, 7, 8, StatusCode::Error));
    // Numbers and names that OTLP does not define yet.
    let batch = decode(&with(r#","kind":77,"status":{"code":"STATUS_CODE_WHATEVER"}"#)).unwrap();
    assert_eq!((batch.spans[0].kind, batch.spans[0].status.code), (SpanKind::Unspecified, StatusCode::Unset));
}

#[test]
fn names_may_stand_in_any_order() {
    let text = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"eee19b7ec3c1b174","traceId":"5b8efff798038103d269b633813fc60c"}],
        "scope":{"name":"late"}}],"resource":{"attributes":[{"value":{"stringValue":"late"},"key":"service.name"}]}}]}"#;
    let batch = decode(text).unwrap();
    assert_eq!((batch.spans[0].service_name(), &batch.spans[0].scope.name[..]), ("late", "late"));
}

#[test]
fn ids_that_are_no_ids_are_losses() {
    let text = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"no ids"},{"traceId":"zz","spanId":""},
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"0000000000000000","links":[{"traceId":"5b"}]},
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"7"}]}]}]}"#;
    let batch = decode(text).unwrap();
    assert_eq!(batch.spans.len(), 2);
    assert_eq!(lost(&batch, LossKind::SpansInvalid), 2);
    assert_eq!(lost(&batch, LossKind::ReferencesInvalid), 2);
}

#[test]
fn what_is_refused_says_what_and_where() {
    let check = |text: &str, message: &str| assert_eq!(decode(text).unwrap_err().to_string(), message);
    check("", "EOF while parsing a value, at line 1 column 0");
    check("{} {}", "trailing characters, at line 1 column 4");
    check("[]", "invalid type: sequence, expected an object, at line 1 column 2");
    check("{\"resourceSpans\":\n  7}", "invalid type: integer `7`, expected a list, at line 2 column 3");
    check(
        r#"{"resource_spans":[{"scope_spans":[{"spans":[{"name":3}]}]}]}"#,
        "invalid type: integer `3`, expected a string, at line 1 column 54",
    );
    // What it quoted may be a credential.
    check(r#"{"resourceSpans":"password=\"x\", expected y"}"#, "invalid type: string \"…\", expected a list, at line 1 column 45");
    check(&with(r#","startTimeUnixNano":"-1""#), "-1 is out of range for an unsigned 64-bit integer, at line 1 column 141");
    check(
        &with(r#","startTimeUnixNano":1.5"#),
        "invalid type: floating point `1.5`, expected an unsigned 64-bit integer, at line 1 column 140",
    );
    check(
        &with(r#","attributes":[{"value":{"stringValue":"a","intValue":1}}]"#),
        "`intValue` beside another value of the same attribute, at line 1 column 172",
    );
    check(
        &with(r#","attributes":[{"value":{"bytesValue":"a"}}]"#),
        "invalid value: string \"a\", expected bytes in base64, at line 1 column 157",
    );
    assert!(matches!(
        otlp::json::decode(b"{\"resourceSpans\":\"\xff\"}", &Limits::default(), &mut SpanBatch::default()),
        Err(DecodeError::Json { line: 1, .. })
    ));
}

#[test]
fn values_nest_to_the_limit_and_no_deeper() {
    let nested = |depth: usize| {
        let value = format!("{}{{}}{}", r#"{"arrayValue":{"values":["#.repeat(depth - 1), "]}}".repeat(depth - 1));
        with(&format!(r#","attributes":[{{"key":"k","value":{value}}}]"#))
    };
    assert_eq!(decode(&nested(32)).unwrap().spans.len(), 1);
    assert!(decode(&nested(33)).unwrap_err().to_string().starts_with("values nested deeper than 32, at line 1"));
    // Unknown names too are read without recursion beyond serde_json's own limit.
    assert!(decode(&format!("{{\"x\":{}", "[".repeat(100_000))).is_err());

    let limits = Limits { values_max: 2, ..Limits::default() };
    let mut batch = SpanBatch::default();
    let three = with(r#","attributes":[{},{},{}]"#);
    let error = otlp::json::decode(three.as_bytes(), &limits, &mut batch).unwrap_err();
    assert!(error.to_string().starts_with("more than 2 values in one span, resource or scope, at line 1"), "{error}");
}

#[test]
fn a_request_has_no_more_values_than_its_bytes_allow() {
    // Each of these is three bytes and would take 56 or 72 in memory.
    for of_nothing in [r#","attributes":["#, r#","events":["#, r#","attributes":[{"key":"l","value":{"kvlistValue":{"values":["#] {
        let closing = if of_nothing.ends_with(r#""values":["#) { "]}}}]" } else { "]" };
        let of = |count: usize| with(&format!("{of_nothing}{}{closing}", vec!["{}"; count].join(",")));
        assert_eq!(decode(&of(50_000)).unwrap().spans.len(), 1);
        let error = decode(&of(200_000)).unwrap_err().to_string();
        assert!(error.starts_with("more values than one in 8 bytes: nearly all of them say nothing, at line 1"), "{error}");
    }
    // The shortest that say anything.
    let numbers = with(&format!(
        r#","attributes":[{{"key":"l","value":{{"arrayValue":{{"values":[{}]}}}}}}]"#,
        vec![r#"{"intValue":1}"#; 400_000].join(",")
    ));
    assert_eq!(decode(&numbers).unwrap().spans.len(), 1);
    let pairs = with(&format!(r#","attributes":[{}]"#, vec![r#"{"key":"a","value":{"intValue":1}}"#; 400_000].join(",")));
    assert_eq!(decode(&pairs).unwrap().spans.len(), 1);
}

proptest! {
    #[test]
    fn every_request_reads_as_the_generated_messages_have_it(request in request()) {
        let text = serde_json::to_string(&request).unwrap();
        let batch = decode(&text).unwrap();
        same(&spans_of(&request), &batch.spans);
        for (kind, count) in losses_of(&request) {
            prop_assert_eq!(lost(&batch, kind), count, "{}", kind);
        }
    }

    #[test]
    fn damaged_requests_do_not_panic(bytes in request().prop_map(|request| serde_json::to_vec(&request).unwrap()).prop_flat_map(damaged)) {
        oracle::traces_json(&bytes);
        oracle::counts(&bytes);
    }
}
