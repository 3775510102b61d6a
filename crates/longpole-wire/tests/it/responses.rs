//! Answers, read by the generated messages.

use std::time::Duration;

use longpole_wire::otlp::{
    Encoding, PartialSuccess, Rejected, Signal, decode_response, decode_retry_delay, encode_response, encode_status,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

const PARTIAL: PartialSuccess<'_> = PartialSuccess { rejected: 3, message: "3 spans without ids" };

#[test]
fn an_empty_answer_accepts_everything() {
    let bytes = encode_response(Signal::Traces, None, Encoding::Protobuf);
    assert_eq!(ExportTraceServiceResponse::decode(&bytes[..]).unwrap().partial_success, None);
    assert_eq!(encode_response(Signal::Traces, None, Encoding::Json), b"{}");
}

#[test]
fn a_partial_success_is_read_by_every_client() {
    let bytes = encode_response(Signal::Traces, Some(PARTIAL), Encoding::Protobuf);
    let partial = ExportTraceServiceResponse::decode(&bytes[..]).unwrap().partial_success.unwrap();
    assert_eq!((partial.rejected_spans, &partial.error_message[..]), (3, PARTIAL.message));
    let bytes = encode_response(Signal::Metrics, Some(PARTIAL), Encoding::Protobuf);
    assert_eq!(ExportMetricsServiceResponse::decode(&bytes[..]).unwrap().partial_success.unwrap().rejected_data_points, 3);
    let bytes = encode_response(Signal::Logs, Some(PARTIAL), Encoding::Protobuf);
    assert_eq!(ExportLogsServiceResponse::decode(&bytes[..]).unwrap().partial_success.unwrap().rejected_log_records, 3);

    let text = String::from_utf8(encode_response(Signal::Traces, Some(PARTIAL), Encoding::Json)).unwrap();
    assert_eq!(text, r#"{"partialSuccess":{"errorMessage":"3 spans without ids","rejectedSpans":"3"}}"#);
    let text = String::from_utf8(encode_response(Signal::Metrics, Some(PARTIAL), Encoding::Json)).unwrap();
    assert!(text.contains(r#""rejectedDataPoints":"3""#), "{text}");
    let text = String::from_utf8(encode_response(Signal::Logs, Some(PARTIAL), Encoding::Json)).unwrap();
    assert!(text.contains(r#""rejectedLogRecords":"3""#), "{text}");
}

/// `google.rpc.Status`, as far as it is sent.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

#[test]
fn an_error_is_a_status() {
    let status = RpcStatus::decode(&encode_status(3, "no \"trace\" here", Encoding::Protobuf)[..]).unwrap();
    assert_eq!(status, RpcStatus { code: 3, message: "no \"trace\" here".into() });
    assert_eq!(RpcStatus::decode(&encode_status(-2, "", Encoding::Protobuf)[..]).unwrap().code, -2);
    assert_eq!(encode_status(3, "no \"trace\" here", Encoding::Json), br#"{"code":3,"message":"no \"trace\" here"}"#);
}

#[test]
fn what_an_endpoint_rejected_is_read_from_every_answer() {
    let rejected = Some(Rejected { count: 3, message: PARTIAL.message.to_owned() });
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        for encoding in [Encoding::Protobuf, Encoding::Json] {
            assert_eq!(decode_response(&encode_response(signal, Some(PARTIAL), encoding), encoding), rejected, "{signal:?} {encoding:?}");
            assert_eq!(decode_response(&encode_response(signal, None, encoding), encoding), None);
        }
    }
    let json = |text: &str| decode_response(text.as_bytes(), Encoding::Json);
    assert_eq!(json(r#"{"partial_success":{"rejected_spans":3,"error_message":"3 spans without ids"}}"#), rejected);
    assert_eq!(json(r#"{"partialSuccess":{}}"#), Some(Rejected { count: 0, message: String::new() }), "a warning without words");
    for nonsense in ["", "<html>", "[]", r#"{"partialSuccess":null}"#] {
        assert_eq!(json(nonsense), None, "{nonsense}");
    }
    for nonsense in [&b"\xff"[..], b"\x0a\x05abc", b"hello"] {
        assert_eq!(decode_response(nonsense, Encoding::Protobuf), None, "{nonsense:?}");
    }
    // A count below zero: ten bytes of varint.
    let below = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(decode_response(below, Encoding::Protobuf), Some(Rejected { count: 0, message: String::new() }));
}

#[test]
fn the_pause_that_an_endpoint_asks_for_is_read() {
    // Status { code: 8, details: [Any { type.googleapis.com/google.rpc.RetryInfo, RetryInfo { 5.25 s } }] }
    let any = |message: &[u8]| {
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let mut any = vec![0x0a, name.len() as u8];
        any.extend(name);
        any.extend(message);
        let mut status = vec![0x08, 8, 0x1a, any.len() as u8];
        status.extend(any);
        base64(&status)
    };
    // 250,000,000 ns = 0x0EE6B280.
    assert_eq!(decode_retry_delay(&any(&[0x12, 9, 0x0a, 7, 0x08, 5, 0x10, 0x80, 0xe5, 0x9a, 0x77])), Some(Duration::from_millis(5_250)));
    assert_eq!(decode_retry_delay(&any(&[])), Some(Duration::ZERO));
    assert_eq!(decode_retry_delay(""), None);
    assert_eq!(decode_retry_delay("CAg"), None, "no details");
    assert_eq!(decode_retry_delay("not base64 at all"), None);
    assert_eq!(decode_retry_delay(&base64(&[0x1a, 9])), None, "cut");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for i in 0..=group.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]));
        }
    }
    text
}
