//! Decoders report what stands in no span of a request, so that nobody keeps it unjudged beside the spans.

use longpole_model::sink::SpanBatch;
use longpole_wire::{Limits, otlp};

/// A field of protobuf with bytes; all of these are short.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// A request with one span that has these fields, too, in a scope and a resource that have these.
fn request(of_span: &[u8], of_scope: &[u8], of_resource: &[u8]) -> Vec<u8> {
    let span = [&field(1, &[1; 16]), &field(2, &[2; 8]), of_span].concat();
    let scope_spans = [of_scope, &field(2, &span)].concat();
    field(1, &[of_resource, &field(2, &scope_spans)].concat())
}

fn unknown(request: &[u8]) -> bool {
    let mut batch = SpanBatch::default();
    let unread = otlp::trace::decode_and_say_unread(request, &Limits::default(), &mut batch).unwrap();
    assert_eq!(batch.spans.len(), 1);
    assert!(!format!("{:?}", batch.spans).contains("hunter2"), "{:?}", batch.spans);
    unread.unknown
}

#[test]
fn a_field_of_protobuf_that_another_overwrites_is_reported() {
    let text = |text: &str| field(1, text.as_bytes());
    let pair = |key: &str, value: &[u8]| [field(1, key.as_bytes()), field(2, value)].concat();
    let twice = |number: u8| [field(number, b"hunter2"), field(number, b"a")].concat();
    let attribute = |value: &[u8]| field(9, &pair("a", value));
    for of_span in [
        twice(3),
        twice(5),
        [field(1, b"hunter2 hunter2 "), field(1, &[1; 16])].concat(),
        [field(4, b"hunter2!"), field(4, &[3; 8])].concat(),
        field(15, &twice(2)),
        [field(15, &field(2, b"hunter2")), field(15, &field(2, b"a"))].concat(),
        attribute(&twice(1)),
        // One value of several kinds.
        attribute(&[text("hunter2"), vec![3 << 3, 7]].concat()),
        attribute(&[field(7, b"hunter2"), field(5, &[])].concat()),
        attribute(&[field(6, &field(1, &pair("a", &text("hunter2")))), vec![2 << 3, 1]].concat()),
        field(9, &[pair("hunter2", &text("a")), field(1, b"b")].concat()),
        field(11, &twice(2)),
    ] {
        assert!(unknown(&request(&of_span, &[], &[])), "{}", String::from_utf8_lossy(&of_span));
    }
    assert!(unknown(&request(&[], &field(1, &twice(1)), &[])));
    assert!(unknown(&request(&[], &[field(1, &field(2, b"hunter2")), field(1, &field(2, b"a"))].concat(), &[])));

    // What stands several times because there are several of it is read.
    let several = [attribute(&text("a")), attribute(&text("b")), field(11, &field(2, b"e")), field(11, &field(2, b"f"))].concat();
    let list = field(5, &[field(1, &text("a")), field(1, &text("b"))].concat());
    assert!(!unknown(&request(&[several, attribute(&list)].concat(), &field(1, &field(1, b"s")), &field(1, &[]))));
}

#[test]
fn what_is_left_out_of_json_is_reported() {
    let read = |request: &str| {
        let mut batch = SpanBatch::default();
        let unread = otlp::json::decode_and_say_unread(request.as_bytes(), &Limits::default(), &mut batch).unwrap();
        assert_eq!(batch.spans.len(), 1);
        assert!(!format!("{:?}", batch.spans).contains("hunter2"), "{:?}", batch.spans);
        unread
    };
    let of_span = |members: &str| {
        let span = format!(r#"{{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708"{members}}}"#);
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#)
    };
    for members in [
        r#","name":"hunter2","name":"a""#,
        r#","name":"hunter2","n\u0061me":"a""#,
        r#","traceState":"hunter2","trace_state":"a""#,
        r#","status":{"message":"hunter2"},"status":{}"#,
        r#","attributes":[{"key":"a","value":{"stringValue":"hunter2"},"value":{"intValue":1}}]"#,
        r#","attributes":[{"key":"a","value":{"stringValue":"hunter2"}}],"attributes":null"#,
        r#","kind":"hunter2""#,
        r#","status":{"code":"hunter2"}"#,
    ] {
        assert!(read(&of_span(members)).left_out, "{members}");
    }
    let plain = of_span(r#","name":"a","kind":"SPAN_KIND_CLIENT","attributes":[{"key":"a"},{"key":"b"}]"#);
    assert_eq!(read(&plain), otlp::json::UnreadMembers::default());
    assert!(read(&of_span(r#","other":1"#)).unknown);
    // A resource and a scope without spans stand nowhere.
    let resource = r#"{"resource":{"attributes":[{"key":"password","value":{"stringValue":"hunter2"}}]}}"#;
    assert!(read(&plain.replacen('[', &format!("[{resource},"), 1)).left_out);
    assert!(read(&plain.replacen(r#"[{"spans""#, r#"[{"scope":{"name":"hunter2"}},{"spans""#, 1)).left_out);
}
