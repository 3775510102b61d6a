mod sample;

use longpole_model::attribute::AttributeValue;
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{SpanBatch, SpanRef, SpanSink};
use longpole_model::span::{Span, SpanKind, StatusCode};
use longpole_model::{SpanId, TraceId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::error::DecodeError;
use crate::limits::Limits;
use crate::protobuf::{put_bytes, put_integer, put_message};
use crate::thrift::writer::ThriftWriter;
use crate::thrift::{ThriftProtocol, ThriftType};
use sample::{SampleBatch, SampleReference, SampleSpan, SampleTag};

/// What the client of Python sends, jaeger-client 4.8.0: over HTTP, and to both ports of the agent.
const PYTHON_HTTP: &[u8] = include_bytes!("../../../../../fuzz/corpus/jaeger_thrift/python.seed");
const PYTHON_COMPACT: &[u8] = include_bytes!("../../../../../fuzz/corpus/jaeger_agent/python_compact.seed");
const PYTHON_BINARY: &[u8] = include_bytes!("../../../../../fuzz/corpus/jaeger_agent/python_binary.seed");
/// What OpenTelemetry's exporter to Jaeger's collector sends, opentelemetry-exporter-jaeger-proto-grpc 1.21.0 for Python.
const PYTHON_GRPC: &[u8] = include_bytes!("../../../../../fuzz/corpus/jaeger_post_spans/python.seed");

/// A way in. The batch of a packet says more than its spans, which other tests read.
type Door = fn(&[u8], &Limits, &mut dyn SpanSink) -> Result<(), DecodeError>;

const AGENT: Door = |bytes, limits, sink| decode_agent_packet(bytes, limits, sink).map(drop);

/// A sink that nothing may be given to.
struct Untouched;

impl SpanSink for Untouched {
    fn resource(&mut self, resource: Resource) {
        panic!("{resource:?}");
    }
    fn scope(&mut self, scope: Scope) {
        panic!("{scope:?}");
    }
    fn span(&mut self, span: SpanRef<'_>) {
        panic!("{span:?}");
    }
    fn loss(&mut self, loss: Loss) {
        panic!("{loss:?}");
    }
}

fn read(door: Door, bytes: &[u8]) -> SpanBatch {
    let mut batch = SpanBatch::default();
    door(bytes, &Limits::default(), &mut batch).unwrap();
    batch
}

fn refused(door: Door, bytes: &[u8]) -> String {
    door(bytes, &Limits::default(), &mut Untouched).unwrap_err().to_string()
}

fn lost(batch: &SpanBatch, kind: LossKind) -> u64 {
    batch.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum()
}

/// Every encoding of a batch, with its way in.
fn encodings(batch: &SampleBatch) -> Vec<(&'static str, Door, Vec<u8>)> {
    vec![
        ("JSON", decode, batch.json()),
        ("HTTP", decode_thrift, batch.thrift(ThriftProtocol::Binary)),
        ("compact packet", AGENT, batch.packet(ThriftProtocol::Compact)),
        ("binary packet", AGENT, batch.packet(ThriftProtocol::Binary)),
        ("gRPC", decode_post_spans, batch.protobuf(false)),
        ("gRPC, processes of spans", decode_post_spans, batch.protobuf(true)),
    ]
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::Str(text.into())
}

/// A batch with each field, and each type of value.
fn sample() -> SampleBatch {
    let tag = |key: &str, value| (key.to_owned(), value);
    let trace_id = (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    let root = SampleSpan {
        trace_id,
        span_id: 0xb7ad_6b71_6920_3331,
        name: "GET /cart".to_owned(),
        flags: 1,
        start_micros: 1_774_510_200_000_000,
        duration_micros: Some(250_000),
        tags: vec![
            tag("span.kind", text("server")),
            tag("hit", AttributeValue::Bool(true)),
            tag("rows", AttributeValue::Int(-7)),
            tag("ratio", AttributeValue::Double(0.5)),
            tag("key", AttributeValue::Bytes(vec![0, 255].into())),
            tag("otel.status_code", text("ERROR")),
            tag("otel.status_description", text("no price")),
        ],
        logs: vec![(1_774_510_200_000_200, vec![tag("event", text("retry")), tag("attempt", AttributeValue::Int(2))])],
        ..SampleSpan::default()
    };
    let child = SampleSpan {
        span_id: 2,
        parent: root.span_id,
        name: "mail".to_owned(),
        references: vec![
            SampleReference { ref_type: 1, trace_id: (0, 9), span_id: 8 },
            SampleReference { ref_type: 0, trace_id, span_id: 5 },
            SampleReference { ref_type: 7, trace_id, span_id: 6 },
        ],
        tags: Vec::new(),
        logs: Vec::new(),
        ..root.clone()
    };
    SampleBatch {
        service: "shop".to_owned(),
        process_tags: vec![tag("client-uuid", text("6c9d6a3e")), tag("pid", AttributeValue::Int(4711))],
        spans: vec![root, child],
        seq_no: Some(3),
        stats: Some([1, 2, -3]),
    }
}

#[test]
fn spans_of_the_client_of_python() {
    for (door, bytes) in [(decode_thrift as Door, PYTHON_HTTP), (AGENT, PYTHON_COMPACT), (AGENT, PYTHON_BINARY)] {
        let batch = read(door, bytes);
        assert!(batch.losses.is_empty(), "{:?}", batch.losses);
        let [child, root, other] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
        assert_eq!((&root.name[..], root.kind, root.parent_span_id), ("GET /cart", SpanKind::Server, None));
        assert_eq!((root.service_name(), root.resource.attributes.get_str("hostname")), ("shop", Some("web-1")));
        assert_eq!((&root.scope.name[..], root.flags, root.status.code), ("jaeger", 1, StatusCode::Error));
        assert_eq!((root.start.unix_nanos(), root.duration_nanos()), (1_774_510_200_000_000_000, 250_000_000));
        assert_eq!(root.trace_id.to_string(), "6513270e269e0d37f2a74de452e6b438");
        assert_eq!(root.attributes.get("http.status_code"), Some(&AttributeValue::Int(500)));

        assert_eq!((child.kind, child.parent_span_id, child.trace_id), (SpanKind::Client, Some(root.span_id), root.trace_id));
        assert_eq!(child.attributes.get("ratio"), Some(&AttributeValue::Double(0.5)));
        assert_eq!(child.attributes.get("rows"), Some(&AttributeValue::Int(-7)));
        assert_eq!((&child.events[0].name[..], child.events[0].attributes.get("attempt")), ("retry", Some(&AttributeValue::Int(2))));
        assert_eq!(child.events[0].time.unix_nanos(), root.start.unix_nanos() + 2_000_000);

        assert_eq!((other.parent_span_id, other.links.len()), (Some(root.span_id), 1));
        assert_eq!((other.links[0].span_id, other.links[0].attributes.0.len()), (root.span_id, 0));
    }
    let packet = decode_agent_packet(PYTHON_COMPACT, &Limits::default(), &mut SpanBatch::default());
    assert_eq!(packet, Ok(AgentBatch::default()), "this client does not number its batches");
}

#[test]
fn spans_of_the_exporter_of_opentelemetry() {
    let batch = read(decode_post_spans, PYTHON_GRPC);
    assert!(batch.losses.is_empty(), "{:?}", batch.losses);
    let [load, price, root] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((&root.name[..], root.kind, root.service_name()), ("GET /cart", SpanKind::Server, "shop"));
    assert_eq!((&root.scope.name[..], &root.scope.version[..]), ("cart", "1.2.3"));
    assert_eq!(root.resource.attributes.get_str("host.name"), Some("web-1"));
    assert_eq!(root.attributes.get("retries"), Some(&AttributeValue::Int(2)));
    assert_eq!(root.attributes.get("hit"), Some(&AttributeValue::Bool(true)));
    assert_eq!(root.attributes.get("ratio"), Some(&AttributeValue::Double(0.25)));
    // The exporter rounds through a double; what it sent is kept to the nanosecond.
    assert_eq!((load.start.unix_nanos(), load.duration_nanos()), (1_774_510_200_000_999_927, 2_000_093));
    assert_eq!((load.kind, load.parent_span_id, load.trace_id), (SpanKind::Internal, Some(root.span_id), root.trace_id));
    assert_eq!((load.events[0].time.unix_nanos(), load.events[0].attributes.get_str("key")), (1_774_510_200_001_499_891, Some("cart:7")));
    assert_eq!((price.status.code, &price.status.message[..]), (StatusCode::Error, "no price"));
    assert_eq!((price.parent_span_id, price.links[0].span_id), (Some(root.span_id), load.span_id));
}

#[test]
fn a_batch_is_the_same_spans_in_each_encoding() {
    let sample = sample();
    let expected = read(decode, &sample.json());
    assert!(expected.losses.is_empty());
    let [root, child] = &expected.spans[..] else { panic!("{:?}", expected.spans) };
    assert_eq!((root.attributes.0.len(), root.kind, &root.status.message[..]), (4, SpanKind::Server, "no price"));
    assert_eq!((child.parent_span_id, child.links.len()), (Some(root.span_id), 3));
    assert_eq!(child.links[2].attributes.get_str("opentracing.ref_type"), Some("7"));
    for (name, door, bytes) in encodings(&sample) {
        assert_eq!(read(door, &bytes).spans, expected.spans, "{name}");
    }
    let packet = decode_agent_packet(&sample.packet(ThriftProtocol::Compact), &Limits::default(), &mut SpanBatch::default());
    let stats = ClientStats { full_queue_dropped_spans: 1, too_large_dropped_spans: 2, failed_to_emit_spans: -3 };
    assert_eq!(packet, Ok(AgentBatch { seq_no: Some(3), client_uuid: Some("6c9d6a3e".to_owned()), stats: Some(stats) }));
}

/// The bytes of the example at the top of `thrift.rs`, and of the one of `protobuf.rs`.
#[test]
fn batches_byte_by_byte() {
    let compact =
        b"\x82\x81\x01\x09emitBatch\x1c\x1c\x18\x04shop\x00\x19\x1c\x16\x02\x16\x00\x16\x04\x28\x03get\x36\x0a\x16\x0e\x00\x16\x02\x00\x00";
    let binary = [
        &b"\x80\x01\0\x04\0\0\0\x09emitBatch\0\0\0\x01\x0c\0\x01"[..],
        b"\x0c\0\x01\x0b\0\x01\0\0\0\x04shop\0\x0f\0\x02\x0c\0\0\0\x01",
        b"\x0a\0\x01\0\0\0\0\0\0\0\x01\x0a\0\x02\0\0\0\0\0\0\0\0\x0a\0\x03\0\0\0\0\0\0\0\x02",
        b"\x0b\0\x05\0\0\0\x03get\x0a\0\x08\0\0\0\0\0\0\0\x05\x0a\0\x09\0\0\0\0\0\0\0\x07\0",
        b"\x0a\0\x03\0\0\0\0\0\0\0\x01\0\0",
    ]
    .concat();
    let protobuf = [
        &b"\x0a\x35\x0a\x2b\x0a\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x08\0\0\0\0\0\0\0\x02"[..],
        b"\x1a\x03get\x32\x03\x10\x88\x27\x3a\x03\x10\xd8\x36\x12\x06\x0a\x04shop",
    ]
    .concat();
    for (door, bytes) in [(AGENT, &compact[..]), (AGENT, &binary), (decode_post_spans, &protobuf)] {
        let batch = read(door, bytes);
        assert!(batch.losses.is_empty(), "{:?}", batch.losses);
        let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
        assert_eq!((Some(span.trace_id), Some(span.span_id)), (TraceId::new(1u128.to_be_bytes()), SpanId::new(2u64.to_be_bytes())));
        assert_eq!((&span.name[..], span.service_name()), ("get", "shop"));
        assert_eq!((span.start.unix_nanos(), span.end.unix_nanos()), (5_000, 12_000));
    }
    let seq_no = |bytes| decode_agent_packet(bytes, &Limits::default(), &mut SpanBatch::default()).unwrap().seq_no;
    assert_eq!((seq_no(compact), seq_no(&binary)), (Some(1), Some(1)));
}

#[test]
fn a_request_that_is_cut_off_is_refused_whole() {
    for (name, door, bytes) in encodings(&sample()) {
        // No bytes at all are a request of protobuf without a batch.
        for cut in usize::from(name.starts_with("gRPC"))..bytes.len() {
            refused(door, &bytes[..cut]);
        }
    }
    assert_eq!(decode_post_spans(b"", &Limits::default(), &mut Untouched), Ok(()));
    let thrift = sample().thrift(ThriftProtocol::Binary);
    assert_eq!(refused(decode_thrift, &thrift[..7]), "bytes end inside a value, in the thrift batch at byte 6");
    let after = format!("bytes after the end of the batch, in the thrift batch at byte {}", thrift.len());
    assert_eq!(refused(decode_thrift, &[&thrift[..], &[0]].concat()), after);
}

#[test]
fn a_packet_that_is_no_call_of_emit_batch_is_refused_by_name() {
    let batch = SampleBatch::default();
    for protocol in [ThriftProtocol::Binary, ThriftProtocol::Compact] {
        let message = |kind, name| batch.message(protocol, kind, name);
        assert_eq!(AGENT(&message(1, "emitBatch"), &Limits::default(), &mut Untouched), Ok(()), "a call with an answer");
        let has = |bytes: &[u8], words: &str| {
            let error = refused(AGENT, bytes);
            assert!(error.starts_with(words), "{error}");
        };
        has(
            &message(4, "emitZipkinBatch"),
            "emitZipkinBatch is not supported (send Zipkin spans to /api/v1/spans), in the thrift packet at byte",
        );
        has(&message(4, "submitBatches"), "a method other than emitBatch");
        has(&message(2, "emitBatch"), "a message that is not a call");
        has(&[&message(4, "emitBatch")[..], &[0]].concat(), "bytes after the end of the message");
        let mut none = ThriftWriter::new(protocol);
        none.message(4, "emitBatch", 1);
        none.structure(|_| {});
        has(&none.out, "emitBatch without a batch");
        let twice = {
            let once = batch.packet(protocol);
            // The second is field 1 again, which compact writes in the long form.
            let again: &[u8] = if protocol == ThriftProtocol::Compact { &[0x0c, 2] } else { &[12, 0, 1] };
            [&once[..once.len() - 1], again, &[0, 0]].concat()
        };
        has(&twice, "a second batch");
    }
    let old = [&b"\0\0\0\x09emitBatch\x01\0\0\0\x01\x0c\0\x01"[..], &sample().thrift(ThriftProtocol::Binary), b"\0"].concat();
    assert_eq!(read(AGENT, &old).spans.len(), 2, "without a version, as older programs write it");
    for other in [&b"GET / HTTP/1.1"[..], b""] {
        assert_eq!(refused(AGENT, other), "neither the compact nor the binary protocol, in the thrift packet at byte 0");
    }
}

#[test]
fn unknown_fields_are_skipped_by_their_type() {
    let unknown = |out: &mut ThriftWriter| {
        out.truth_field(90, true);
        out.field(ThriftType::Map, 91);
        out.map(ThriftType::String, ThriftType::Set, 1);
        out.string(b"key");
        out.list(ThriftType::Double, 1);
        out.double(1.5);
        // A number that Jaeger has, and another type.
        out.field(ThriftType::Struct, 5);
        out.structure(|out| out.truth_field(1, false));
    };
    for protocol in [ThriftProtocol::Binary, ThriftProtocol::Compact] {
        let mut out = ThriftWriter::new(protocol);
        out.message(4, "emitBatch", 1);
        out.structure(|out| {
            unknown(out);
            out.field(ThriftType::Struct, 1);
            out.structure(|out| {
                unknown(out);
                // The spans in front of their process.
                out.field(ThriftType::List, 2);
                out.list(ThriftType::Struct, 1);
                out.structure(|out| {
                    unknown(out);
                    for (number, value) in [(1, 1), (3, 2), (9, 7)] {
                        out.field(ThriftType::I64, number);
                        out.i64(value);
                    }
                    out.field(ThriftType::List, 10);
                    out.list(ThriftType::Struct, 1);
                    out.structure(|out| {
                        unknown(out);
                        out.field(ThriftType::String, 1);
                        out.string(b"k");
                    });
                });
                out.field(ThriftType::Struct, 1);
                out.structure(|out| {
                    unknown(out);
                    out.field(ThriftType::String, 1);
                    out.string(b"shop");
                });
            });
        });
        let batch = read(AGENT, &out.out);
        let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
        assert_eq!((span.service_name(), span.duration_nanos(), span.attributes.get_str("k")), ("shop", 7_000, Some("")));
    }
    let mut protobuf = Vec::new();
    put_message(&mut protobuf, 1, |out| {
        put_message(out, 1, |out| {
            put_bytes(out, 1, &[1; 16]);
            put_bytes(out, 2, &[2; 8]);
            put_bytes(out, 11, b"p1");
            put_bytes(out, 99, b"unknown");
            put_bytes(out, 12, b"clock skew");
        });
        put_integer(out, 98, 7);
    });
    let batch = read(decode_post_spans, &protobuf);
    let warnings = AttributeValue::Array(vec![text("clock skew")].into());
    assert_eq!(batch.spans[0].attributes.get("jaeger.warnings"), Some(&warnings));
    assert_eq!(refused(decode_post_spans, &[0x08, 1]), "unexpected wire type of field 1, in the request message at byte 0");
}

#[test]
fn messages_of_protobuf_that_stand_twice_merge() {
    let mut protobuf = Vec::new();
    put_message(&mut protobuf, 1, |out| {
        put_message(out, 2, |out| put_bytes(out, 1, b"shop"));
        put_message(out, 1, |out| {
            put_bytes(out, 1, &[1]);
            put_bytes(out, 2, &[2]);
            put_message(out, 7, |out| put_integer(out, 1, 3));
            put_message(out, 7, |out| put_integer(out, 2, 4));
        });
    });
    put_message(&mut protobuf, 1, |out| {
        put_message(out, 2, |out| put_message(out, 2, |out| put_bytes(out, 1, b"zone")));
    });
    let batch = read(decode_post_spans, &protobuf);
    let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((span.service_name(), span.resource.attributes.get_str("zone")), ("shop", Some("")));
    assert_eq!((span.duration_nanos(), span.trace_id.to_string()), (3_000_000_004, format!("{:032x}", 1)));
}

#[test]
fn what_is_odd_is_counted_or_marked_in_each_encoding() {
    let good = SampleSpan { trace_id: (0, 1), span_id: 2, duration_micros: Some(5), ..SampleSpan::default() };
    let batch = SampleBatch {
        spans: vec![
            good.clone(),
            SampleSpan { trace_id: (0, 0), ..good.clone() },
            SampleSpan { span_id: 0, ..good.clone() },
            SampleSpan { references: vec![SampleReference::default()], duration_micros: None, ..good.clone() },
            SampleSpan { start_micros: -7, ..good.clone() },
            SampleSpan { start_micros: i64::MAX, ..good },
        ],
        ..SampleBatch::default()
    };
    for (name, door, bytes) in encodings(&batch) {
        let read = read(door, &bytes);
        let [_, open, early, late] = &read.spans[..] else { panic!("{name}: {:?}", read.spans) };
        assert_eq!(open.attributes.get("longpole.unfinished"), Some(&AttributeValue::Bool(true)), "{name}");
        assert_eq!((early.start.unix_nanos(), early.attributes.get_str("longpole.time_clamped")), (0, Some("-2 us")), "{name}");
        assert_eq!(late.start.unix_nanos(), i64::MAX, "{name}");
        assert_eq!((lost(&read, LossKind::SpansInvalid), lost(&read, LossKind::ReferencesInvalid)), (2, 1), "{name}");
        assert_eq!((lost(&read, LossKind::FormatCannotHold), lost(&read, LossKind::SpansUnfinished)), (4, 1), "{name}");
    }
    // Ids of more bytes than theirs, and a text that is not UTF-8 in each place.
    let mut protobuf = Vec::new();
    put_message(&mut protobuf, 1, |out| {
        for (trace_bytes, span_bytes) in [(17, 8), (16, 9), (16, 8)] {
            put_message(out, 1, |out| {
                put_bytes(out, 1, &vec![1; trace_bytes]);
                put_bytes(out, 2, &vec![1; span_bytes]);
                put_bytes(out, 3, b"caf\xe9");
            });
        }
        put_message(out, 2, |out| put_bytes(out, 1, b"\xff"));
    });
    let read = read(decode_post_spans, &protobuf);
    assert_eq!((read.spans.len(), &read.spans[0].name[..], read.spans[0].service_name()), (1, "caf\u{fffd}", "\u{fffd}"));
    assert_eq!((lost(&read, LossKind::SpansInvalid), lost(&read, LossKind::TextReplaced)), (2, 4));
}

#[test]
fn limits_hold_in_each_encoding() {
    let tag = ("k".to_owned(), AttributeValue::Bool(true));
    let span = SampleSpan { trace_id: (0, 1), span_id: 2, duration_micros: Some(5), ..SampleSpan::default() };
    // Four values: two tags, a log, and its field.
    let full = SampleSpan { tags: vec![tag.clone(); 2], logs: vec![(0, vec![tag.clone()])], ..span };
    let batch = SampleBatch { spans: vec![full.clone(), full], process_tags: vec![tag.clone(); 4], ..SampleBatch::default() };
    let over = SampleBatch { process_tags: vec![tag; 5], ..SampleBatch::default() };
    let limits = |values_max| Limits { values_max, ..Limits::default() };
    for (name, door, bytes) in encodings(&batch) {
        // Values of a process inside a span are values of the span.
        let values_max = if name == "gRPC, processes of spans" { 8 } else { 4 };
        let mut read = SpanBatch::default();
        door(&bytes, &limits(values_max), &mut read).unwrap();
        assert_eq!(read.spans.len(), 2, "{name}");
        assert!(door(&bytes, &limits(values_max - 1), &mut Untouched).is_err(), "{name}");
    }
    for (name, door, bytes) in encodings(&over).into_iter().filter(|(name, ..)| *name != "gRPC, processes of spans") {
        assert!(door(&bytes, &limits(4), &mut Untouched).is_err(), "{name}");
    }
    // The process of a batch in many parts counts as one.
    let part = SampleBatch { process_tags: over.process_tags[..3].to_vec(), ..SampleBatch::default() }.protobuf(false);
    assert!(decode_post_spans(&part.repeat(2), &limits(5), &mut Untouched).is_err());
}

/// Collectors and SDKs say with two more bits whether the parent is of another process: 257 is 1 for Jaeger, which samples by the lowest.
#[test]
fn flags_are_those_of_the_trace() {
    let sample = SampleBatch { spans: vec![SampleSpan { flags: 0x301, ..sample().spans[0].clone() }], ..sample() };
    let spans = read(decode, &sample.json()).spans;
    let (json, of_json) = encode(&spans);
    let (answer, of_answer) = encode_spans(&spans);
    let mut request = Vec::new();
    put_message(&mut request, 1, |out| out.extend_from_slice(&answer));
    for (door, bytes, lost) in [(decode as Door, json, of_json), (decode_post_spans, request, of_answer)] {
        assert_eq!(read(door, &bytes).spans[0].flags, 1);
        assert_eq!(lost, [Loss::new(LossKind::FormatCannotHold, 1, "flags of spans other than those of the trace")]);
    }
}

/// A list says that it has two billion spans, tags or bytes, and has none; a span takes one byte.
#[test]
fn hostile_sizes_take_no_memory() {
    let prefix = b"\x0f\0\x02\x0c";
    assert_eq!(
        refused(decode_thrift, &[&prefix[..], &[0x7f, 0xff, 0xff, 0xff]].concat()),
        "more structs than one for each 16 bytes, in the thrift batch at byte 8"
    );
    assert_eq!(refused(decode_thrift, &[&prefix[..], &[0xff; 4]].concat()), "length below zero, in the thrift batch at byte 8");
    let name = b"\x82\x81\x01\x09emitBatch\x1c\x29\x1c\x58\xff\xff\xff\xff\x07";
    assert_eq!(refused(AGENT, name), "bytes end inside a value, in the thrift packet at byte 22");
    let texts = b"\x0f\0\x02\x0b\0\0\0\x01\0\0\0\0\0";
    assert_eq!(refused(decode_thrift, texts), "a list of something other than structs, in the thrift batch at byte 8");

    let count = 60_000u32;
    let empty = [&prefix[..], &count.to_be_bytes(), &vec![0; count as usize], &[0]].concat();
    let batch = read(decode_thrift, &empty);
    assert_eq!((batch.spans.len(), lost(&batch, LossKind::SpansInvalid)), (0, u64::from(count)));
    // And one byte less is refused after as many spans.
    refused(decode_thrift, &empty[..empty.len() - 1]);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z._]{0,12}", "\\PC{0,6}"]
}

fn any_tag() -> impl Strategy<Value = SampleTag> {
    let value = prop_oneof![
        any_text().prop_map(|words| text(&words)),
        any::<bool>().prop_map(AttributeValue::Bool),
        any::<i64>().prop_map(AttributeValue::Int),
        any::<f64>().prop_map(AttributeValue::Double),
        vec(any::<u8>(), 0..9).prop_map(|bytes| AttributeValue::Bytes(bytes.into())),
    ];
    let key = prop_oneof![6 => any_text(), 1 => Just("error".to_owned()), 1 => Just("event".to_owned()), 1 => Just("span.kind".to_owned())];
    (key, value)
}

/// Few ids, so that references meet.
fn any_id() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4u64, 1 => any::<u64>()]
}

fn any_span() -> impl Strategy<Value = SampleSpan> {
    let reference = (0..3, (0..2u64, any_id()), any_id());
    let reference = reference.prop_map(|(ref_type, trace_id, span_id)| SampleReference { ref_type, trace_id, span_id });
    let ids = ((0..2u64, any_id()), any_id(), any_id(), any_text(), vec(reference, 0..3));
    let log = (any::<i64>(), vec(any_tag(), 0..3));
    let rest = (any::<u32>(), any::<i64>(), option::weighted(0.9, any::<i64>()), vec(any_tag(), 0..4), vec(log, 0..3));
    (ids, rest).prop_map(|(ids, rest)| SampleSpan {
        trace_id: ids.0,
        span_id: ids.1,
        parent: ids.2,
        name: ids.3,
        references: ids.4,
        flags: rest.0,
        start_micros: rest.1,
        duration_micros: rest.2,
        tags: rest.3,
        logs: rest.4,
    })
}

fn any_batch() -> impl Strategy<Value = SampleBatch> {
    let parts = (any_text(), vec(any_tag(), 0..3), vec(any_span(), 0..4), option::of(any::<i64>()), option::of(any::<[i64; 3]>()));
    parts.prop_map(|(service, process_tags, spans, seq_no, stats)| SampleBatch { service, process_tags, spans, seq_no, stats })
}

/// NaN is as equal to itself as its name.
fn debug(spans: &[Span]) -> String {
    format!("{spans:#?}")
}

proptest! {
    #[test]
    fn any_batch_is_the_same_spans_in_each_encoding(sample in any_batch()) {
        let expected = read(decode, &sample.json());
        for (name, door, bytes) in encodings(&sample) {
            let found = read(door, &bytes);
            prop_assert_eq!(debug(&found.spans), debug(&expected.spans), "{}", name);
            prop_assert_eq!(&found.losses, &expected.losses, "{}", name);
        }
    }

    /// An answer of the query service says the same spans, if it says that nothing is lost.
    #[test]
    fn an_answer_of_the_query_service_is_the_same_spans(sample in any_batch()) {
        let spans = read(decode, &sample.json()).spans;
        let (answer, lost) = encode_spans(&spans);
        let mut request = Vec::new();
        put_message(&mut request, 1, |out| out.extend_from_slice(&answer));
        let again = read(decode_post_spans, &request);
        prop_assert_eq!(again.spans.len(), spans.len());
        if lost.is_empty() && again.losses.is_empty() {
            prop_assert_eq!(debug(&again.spans), debug(&spans));
        }
    }

    /// Any bytes, and the bytes of a batch with one of them changed, are read or refused.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200), sample in any_batch(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut all = vec![bytes.clone(), [&b"\x82\x81\x01\x09emitBatch\x1c"[..], &bytes].concat()];
        all.push([&b"\x80\x01\0\x04\0\0\0\x09emitBatch\0\0\0\x01\x0c\0\x01"[..], &bytes].concat());
        for (_, _, mut encoded) in encodings(&sample) {
            let at = at.index(encoded.len());
            encoded[at] = byte;
            all.push(encoded);
        }
        for bytes in all {
            for door in [decode_thrift as Door, AGENT, decode_post_spans] {
                let mut batch = SpanBatch::default();
                if door(&bytes, &Limits::default(), &mut batch).is_err() {
                    prop_assert!(batch.spans.is_empty() && batch.losses.is_empty());
                    let _ = door(&bytes, &Limits::default(), &mut Untouched);
                }
            }
        }
    }
}

#[test]
fn more_empty_structs_than_bytes_can_say_anything_in_are_refused_before_they_are_read() {
    let spans = |count: u32| [b"\x0f\x00\x02\x0c".as_slice(), &count.to_be_bytes(), &vec![0; count as usize], b"\x00"].concat();
    assert!(decode_thrift(&spans(65_536), &Limits::default(), &mut SpanBatch::default()).is_ok());
    let reason = refused(decode_thrift, &spans(1_000_000));
    assert!(reason.contains("more structs than one for each 16 bytes") && reason.contains("byte 8"), "{reason}");
    // In a field that nobody reads, too.
    let unknown = [b"\x0f\x00\x63\x0c".as_slice(), &1_000_000_u32.to_be_bytes(), &[0; 1_000_001]].concat();
    assert!(refused(decode_thrift, &unknown).contains("more structs"));
    let batch = |spans: usize| {
        let mut out = Vec::new();
        put_message(&mut out, 1, |batch| batch.extend([0x0a, 0].repeat(spans)));
        out
    };
    assert!(decode_post_spans(&batch(1_000), &Limits::default(), &mut SpanBatch::default()).is_ok());
    assert!(refused(decode_post_spans, &batch(1_000_000)).contains("messages, one for each 8 bytes"));
}
