//! Answers, read by the generated messages.

use longpole_wire::otlp::{Encoding, PartialSuccess, Signal, encode_response, encode_status};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

const PARTIAL: PartialSuccess<'_> = PartialSuccess { rejected: 3, message: "3 spans without ids" };

#[test]
fn all_accepted_is_said_by_saying_nothing() {
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
