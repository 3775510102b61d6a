//! A secret in a payload of Pulumi's comes through no door, however the log was cut.

use longpole_model::resource_event;
use longpole_model::sink::SpanBatch;
use longpole_wire::{Limits, appdash, jaeger, zipkin};

const URN: &str = "urn:pulumi:dev::shop::a:b:C::n";

/// The body of a request, a secret before and behind what is kept.
fn body() -> String {
    format!(
        r#"olds:{{fields:{{key:"password" value:{{string_value:"hunter2"}}}}}} id:"hunter2" urn:"{URN}" name:"hunter2" properties:{{fields:{{key:"urn" value:{{string_value:"hunter2"}}}}}}"#
    )
}

fn log() -> String {
    serde_json::json!({ "gRPC request": body() }).to_string()
}

#[track_caller]
fn check(batch: &SpanBatch, is_whole: bool) {
    assert_eq!(batch.spans.len(), 1);
    let text = format!("{:?}", batch.spans);
    assert!(!text.contains("hunter"), "{text}");
    if is_whole {
        assert_eq!(batch.spans[0].attributes.get_str(resource_event::URN), Some(URN));
        assert_eq!(batch.spans[0].events[0].name, "gRPC request");
    }
}

fn zipkin(log: &str) -> SpanBatch {
    let body = serde_json::json!([{ "traceId": "1", "id": "2", "timestamp": 1, "annotations": [{ "timestamp": 2, "value": log }] }]);
    let mut batch = SpanBatch::default();
    zipkin::decode(body.to_string().as_bytes(), zipkin::Format::V2Json, &Limits::default(), &mut batch).unwrap();
    batch
}

#[test]
fn by_zipkin_whole_or_cut_anywhere() {
    check(&zipkin(&log()), true);
    for cut in 1..log().len() {
        check(&zipkin(&log()[..cut]), false);
    }
    // Jaeger's client cuts at 256 bytes.
    check(&zipkin(&log()[..log().len() - 1]), true);
}

#[test]
fn by_jaeger() {
    let fields = serde_json::json!([{ "key": "gRPC request", "type": "string", "value": body() }]);
    let span =
        serde_json::json!({ "traceID": "1", "spanID": "2", "startTime": 1, "duration": 1, "logs": [{ "timestamp": 2, "fields": fields }] });
    let document = serde_json::json!({ "data": [{ "spans": [span], "processes": {} }] });
    let mut batch = SpanBatch::default();
    jaeger::decode(document.to_string().as_bytes(), &Limits::default(), &mut batch).unwrap();
    check(&batch, true);
}

#[test]
fn by_appdash() {
    // Frames of a span whose log is the payload; our own encoder would not write it, so it stands in for another text.
    let mut span = zipkin("placeholder").spans.remove(0);
    span.end = span.start;
    let placeholder = "x".repeat(log().len());
    span.events[0].name = placeholder.as_str().into();
    let replaced = |bytes: Vec<u8>| {
        let at = bytes.windows(placeholder.len()).position(|window| window == placeholder.as_bytes()).unwrap();
        [&bytes[..at], log().as_bytes(), &bytes[at + placeholder.len()..]].concat()
    };
    let mut batch = SpanBatch::default();
    let mut reader = appdash::FrameReader::new(&Limits::default());
    reader.push(&replaced(appdash::encode_frames(std::slice::from_ref(&span))), &mut batch).unwrap();
    reader.finish(&mut batch);
    check(&batch, true);

    let mut file = Vec::new();
    appdash::encode_file(&[span], &mut file).unwrap();
    let mut batch = SpanBatch::default();
    appdash::decode_file(&replaced(file)[..], &Limits::default(), &mut batch).unwrap();
    check(&batch, true);
}
