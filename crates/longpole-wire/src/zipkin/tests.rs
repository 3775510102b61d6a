use std::sync::Arc;

use longpole_model::attribute::{AttributeValue, Attributes};
use longpole_model::loss::LossKind;
use longpole_model::resource::Resource;
use longpole_model::sink::SpanBatch;
use longpole_model::span::{Span, SpanKind, StatusCode};

use super::*;

fn read(bytes: &[u8], format: Format) -> SpanBatch {
    let mut batch = SpanBatch::default();
    decode(bytes, format, &Limits::default(), &mut batch).unwrap();
    batch
}

fn json(text: &str) -> SpanBatch {
    read(text.as_bytes(), Format::V2Json)
}

const CLIENT: &[u8] = include_bytes!("../../../../fixtures/zipkin/client.thrift");
const ROOT: &[u8] = include_bytes!("../../../../fixtures/zipkin/root.thrift");

#[test]
fn a_client_span_of_pulumi_in_thrift() {
    let batch = read(CLIENT, Format::V1Thrift);
    assert!(batch.losses.is_empty(), "{:?}", batch.losses);
    let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!(span.trace_id.to_string(), "00000000000000005b6794d1b1db5ba6");
    assert_eq!(
        (span.span_id.to_string(), span.parent_span_id.unwrap().to_string()),
        ("6c9d6a3ef7b4d6cf".into(), "5b6794d1b1db5ba6".into())
    );
    assert_eq!((&span.name[..], span.kind, span.status.code), ("/pulumirpc.ResourceProvider/Create", SpanKind::Client, StatusCode::Error));
    assert_eq!((span.service_name(), &span.scope.name[..], &span.scope.version[..]), ("pulumi-cli", "zipkin", ""));
    assert_eq!(span.duration_nanos(), 1_270_000);
    assert_eq!(span.start.unix_nanos(), 0x0006_60bb_93fe_2de2 * 1000);
    assert_eq!(span.attributes.get_str("component"), Some("gRPC"));
    assert_eq!(span.attributes.get_str("network.local.address"), Some("192.0.2.2"));
    // cs and cr are start and end; the payload is an event without its body.
    let [event] = &span.events[..] else { panic!("{:?}", span.events) };
    assert_eq!((&event.name[..], event.attributes.get_str("gRPC request")), ("gRPC request", Some("[payload left out, 36 bytes]")));
}

#[test]
fn the_root_span_of_pulumi_in_thrift() {
    let batch = read(ROOT, Format::V1Thrift);
    let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((&span.name[..], span.kind, span.parent_span_id), ("pulumi", SpanKind::Unspecified, None));
    assert_eq!(span.service_name(), "pulumi-cli");
    assert_eq!(span.attributes.get("sampler.param"), Some(&AttributeValue::Bool(true)));
    assert_eq!(span.attributes.get_str("runtime.NumCPU"), Some("8"));
    assert_eq!(span.attributes.get_str("os.Args"), Some("[pulumi up]"));
    assert_eq!(span.attributes.get("lc"), None, "only repeats the service");
}

#[test]
fn thrift_that_is_cut_off_is_refused_whole_and_says_where() {
    for cut in 0..CLIENT.len() {
        let mut batch = SpanBatch::default();
        let error = decode(&CLIENT[..cut], Format::V1Thrift, &Limits::default(), &mut batch).unwrap_err();
        let DecodeError::Thrift { offset, .. } = error else { panic!("{error}") };
        assert!(offset <= cut && batch.spans.is_empty());
    }
    let error = decode(&[0x0c, 0xff, 0, 0, 0], Format::V1Thrift, &Limits::default(), &mut SpanBatch::default()).unwrap_err();
    assert_eq!(error.to_string(), "length below zero, in the thrift list of spans at byte 5");
}

#[test]
fn unknown_thrift_fields_are_skipped_by_their_type() {
    // A map of i32 to lists of structs, a set, a double and a struct, under numbers that nobody uses.
    let unknown = b"\x0d\x01\x00\x08\x0f\0\0\0\x01\0\0\0\x07\x0c\0\0\0\x02\0\x02\0\x01\x01\0\x0e\x01\x01\x03\0\0\0\x02ab\x04\x01\x02\0\0\0\0\0\0\0\0\x0c\x01\x03\x0b\0\x01\0\0\0\x01x\0";
    let span = b"\x0a\0\x01\0\0\0\0\0\0\0\x01\x0a\0\x04\0\0\0\0\0\0\0\x02\0";
    let bytes = [&b"\x0c\0\0\0\x01"[..], unknown, span].concat();
    assert_eq!(read(&bytes, Format::V1Thrift).spans[0].span_id.to_string(), "0000000000000002");
}

#[test]
fn a_span_in_v2() {
    let batch = json(
        r#"[{"traceId":"463ac35c9f6413ad48485a3953bb6124","parentId":"6b221d5bc9e6496c","id":"5b4185666d50f68b","kind":"SERVER",
        "name":"get /api","timestamp":1502787600000000,"duration":150000,"localEndpoint":{"serviceName":"backend","ipv4":"192.168.99.1","port":3306},
        "remoteEndpoint":{"ipv6":"2001:db8::c001","port":58648,"serviceName":"web"},
        "annotations":[{"timestamp":1502787600010000,"value":"retry"},{"timestamp":1502787600020000,"value":"{\"event\":\"sent\",\"bytes\":\"7\"}"}],
        "tags":{"http.method":"GET","error":"no such cart","k":"1","k":"2"},"shared":false,"debug":true}]"#,
    );
    assert!(batch.losses.is_empty());
    let span = &batch.spans[0];
    assert_eq!((span.trace_id.to_string(), span.kind), ("463ac35c9f6413ad48485a3953bb6124".into(), SpanKind::Server));
    assert_eq!((span.start.unix_nanos(), span.duration_nanos()), (1_502_787_600_000_000_000, 150_000_000));
    assert_eq!((span.status.code, &span.status.message[..]), (StatusCode::Error, "no such cart"));
    assert_eq!((span.service_name(), span.attributes.get_str("peer.service")), ("backend", Some("web")));
    assert_eq!(span.attributes.get("network.peer.port"), Some(&AttributeValue::Int(58648)));
    assert_eq!(span.attributes.iter().filter(|attribute| attribute.key == "k").count(), 2, "duplicates are kept");
    assert_eq!((&span.events[0].name[..], &span.events[1].name[..]), ("retry", "sent"));
    assert_eq!(span.events[1].attributes.get_str("bytes"), Some("7"));
}

#[test]
fn a_span_in_v1_json() {
    let batch = json(
        r#"[{"traceId":"1a","name":"query","id":"2b","parentId":"1a","annotations":[
        {"timestamp":1000,"value":"sr","endpoint":{"serviceName":"db"}},{"timestamp":3000,"value":"ss","endpoint":{"serviceName":"db"}},
        {"timestamp":2000,"value":"half","endpoint":{"serviceName":"db"}}],
        "binaryAnnotations":[{"key":"ca","value":true,"endpoint":{"serviceName":"web","ipv4":"10.0.0.1"}},
        {"key":"rows","value":"7","endpoint":{"serviceName":"db"}}],"timestamp":1000,"duration":2000}]"#,
    );
    let span = &batch.spans[0];
    assert_eq!((span.kind, span.service_name(), span.duration_nanos()), (SpanKind::Server, "db", 2_000_000));
    assert_eq!((span.attributes.get_str("peer.service"), span.attributes.get_str("rows")), (Some("web"), Some("7")));
    assert_eq!((span.events.len(), &span.events[0].name[..]), (1, "half"));
}

#[test]
fn caller_and_server_that_share_a_span_are_two() {
    let batch = json(
        r#"[{"traceId":"1","id":"5","parentId":"1","name":"call","timestamp":1000,"duration":9000,"annotations":[
        {"timestamp":1000,"value":"cs","endpoint":{"serviceName":"web"}},{"timestamp":10000,"value":"cr","endpoint":{"serviceName":"web"}},
        {"timestamp":2000,"value":"sr","endpoint":{"serviceName":"db"}},{"timestamp":9000,"value":"ss","endpoint":{"serviceName":"db"}}],
        "binaryAnnotations":[{"key":"sql","value":"select","endpoint":{"serviceName":"db"}}]},
        {"traceId":"1","id":"5","parentId":"1","kind":"SERVER","shared":true,"name":"call","timestamp":2000,"duration":7000}]"#,
    );
    let [client, server, other] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((client.kind, client.service_name(), client.duration_nanos()), (SpanKind::Client, "web", 9_000_000));
    assert_eq!((server.kind, server.service_name(), server.duration_nanos()), (SpanKind::Server, "db", 7_000_000));
    assert_eq!((server.parent_span_id, server.attributes.get_str("sql")), (Some(client.span_id), Some("select")));
    assert_eq!((other.span_id, other.parent_span_id), (server.span_id, server.parent_span_id), "whichever way it comes");
}

#[test]
fn a_span_in_v2_protobuf() {
    let span = [
        &b"\x0a\x08\0\0\0\0\0\0\0\x01\x12\x08\0\0\0\0\0\0\0\x02\x1a\x08\0\0\0\0\0\0\0\x03\x20\x01\x2a\x03get"[..],
        b"\x31\x10\x27\0\0\0\0\0\0\x38\xe8\x07\x42\x09\x0a\x03web\x12\x02\x01\x02\x4a\x09\x12\x04\x7f\0\0\x01\x20\xb8\x17",
        b"\x52\x0f\x09\x20\x27\0\0\0\0\0\0\x12\x04note\x5a\x06\x0a\x01k\x12\x01v",
    ]
    .concat();
    let bytes = [&[0x0a, span.len() as u8], &span[..]].concat();
    let batch = read(&bytes, Format::V2Protobuf);
    let span = &batch.spans[0];
    assert_eq!((&span.name[..], span.kind, span.service_name()), ("get", SpanKind::Client, "web"));
    assert_eq!((span.start.unix_nanos(), span.duration_nanos()), (10_000_000, 1_000_000));
    assert_eq!(span.attributes.get_str("network.peer.address"), Some("127.0.0.1"));
    assert_eq!((span.attributes.get_str("k"), &span.events[0].name[..]), (Some("v"), "note"));
    assert_eq!(Format::of_request("/api/v2/spans", None, &bytes), Format::V2Protobuf);
}

#[test]
fn a_request_is_recognised_by_type_path_and_first_bytes() {
    let of = |path, content_type, body: &str| Format::of_request(path, content_type, body.as_bytes());
    let (v1, v2) = ("/api/v1/spans", "/api/v2/spans");
    assert_eq!(of(v1, Some("application/x-thrift"), "\u{c}"), Format::V1Thrift);
    assert_eq!(of(v2, Some("Application/X-Protobuf"), "\n"), Format::V2Protobuf);
    assert_eq!(of(v1, Some("application/json; charset=utf-8"), "[]"), Format::V1Json);
    assert_eq!(of(v2, Some("application/json"), "[]"), Format::V2Json);
    let node = r#"[{"traceId":"1","id":"2","localEndpoint":{"serviceName":"nodejs-runtime"},"tags":{}}]"#;
    assert_eq!(of(v1, Some("application/json"), node), Format::V2Json, "as Pulumi's Node programs post it");
    assert_eq!(of("/", None, r#" [{"binaryAnnotations":[]}]"#), Format::V1Json);
    assert_eq!(Format::of_request("/", None, CLIENT), Format::V1Thrift);
    assert_eq!(of("/", Some("text/plain"), "\n[{\"tags\":{}}]"), Format::V2Json);
}

#[test]
fn what_is_odd_is_kept_and_marked() {
    let batch = json(
        r#"[{"traceId":"1","id":"1","name":"open","timestamp":7},{"traceId":"1","id":"2","timestamp":-62135596800000000,"duration":1},
        {"traceId":"1","id":"3","timestamp":9999999999999999999,"duration":5},{"traceId":"x","id":"4"},{"traceId":"1","id":"0"},
        {"traceId":"1","id":"5","parentId":"nothex","timestamp":5,"duration":0,"kind":"WORM"}]"#,
    );
    assert_eq!(batch.spans.len(), 4);
    let [open, early, late, odd] = &batch.spans[..] else { panic!() };
    assert_eq!((open.attributes.get("longpole.unfinished"), open.start), (Some(&AttributeValue::Bool(true)), open.end));
    assert_eq!((early.start.unix_nanos(), early.attributes.get_str("longpole.time_clamped")), (0, Some("-62135596799999999 us")));
    assert_eq!(late.start.unix_nanos(), i64::MAX);
    assert_eq!(
        (odd.parent_span_id, odd.attributes.get("longpole.unfinished"), odd.attributes.get_str("span.kind")),
        (None, None, Some("WORM"))
    );
    let lost = |kind| batch.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum::<u64>();
    assert_eq!((lost(LossKind::SpansInvalid), lost(LossKind::ReferencesInvalid)), (2, 1));
    assert_eq!(lost(LossKind::FormatCannotHold), 4, "start and end of the early one, and of the late one");
    assert!(decode(b"[{}", Format::V2Json, &Limits::default(), &mut SpanBatch::default()).is_err());
}

/// 20,000 of them with 64 KiB each would be a gigabyte and a half.
#[test]
fn long_resources_are_not_repeated_without_end() {
    let mut attributes = Attributes::default();
    for (key, bytes) in [("service.name", 4), ("short", 100), ("long", 16_000), ("longer", 48_000)] {
        attributes.push(key, AttributeValue::Str("x".repeat(bytes).into()));
    }
    let resource = Arc::new(Resource { attributes });
    let spans: Vec<Span> = (1..=2_000u64).map(|number| Span { resource: Arc::clone(&resource), ..span(number) }).collect();
    let (json, losses) = encode_v2_json(&spans);
    assert!(json.len() < 80 << 20, "{}", json.len());
    let left_out = losses.iter().find(|loss| loss.detail.contains("64 MiB")).unwrap().count;
    assert!((900..1_000).contains(&left_out), "{left_out}");
    let back = read(&json, Format::V2Json);
    let last = &back.spans[1_999].resource;
    assert_eq!(
        (last.service_name(), last.attributes.get_str("short").map(str::len), last.attributes.get("long")),
        ("xxxx", Some(100), None)
    );
}

fn span(number: u64) -> Span {
    let mut batch = json(&format!(r#"[{{"traceId":"1","id":"{number:x}","timestamp":5,"duration":7}}]"#));
    batch.spans.remove(0)
}

#[test]
fn more_empty_annotations_than_bytes_can_say_anything_in_are_refused() {
    // Spans of a thousand annotations that say nothing: two bytes each, and a hundred in memory.
    let span: Vec<u8> = [82, 0].repeat(1_000);
    let body = |spans: usize| {
        let mut out = Vec::new();
        (0..spans).for_each(|_| crate::protobuf::put_bytes(&mut out, 1, &span));
        out
    };
    let decode = |bytes: &[u8]| decode(bytes, Format::V2Protobuf, &Limits::default(), &mut SpanBatch::default());
    assert!(decode(&body(10)).is_ok());
    let reason = decode(&body(1_000)).unwrap_err().to_string();
    assert!(reason.contains("messages, one for each 8 bytes"), "{reason}");
}
