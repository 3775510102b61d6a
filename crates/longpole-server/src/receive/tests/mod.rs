//! The door from outside: a receiver on a real port, real clients, raw bytes where a client would not misbehave enough.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener as Listener, TcpStream};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Condvar, Mutex};

use flate2::Compression as Level;
use flate2::write::{GzEncoder, ZlibEncoder};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;

mod attacked;
mod foreign;
mod served;

use bytes::Bytes;
use longpole_model::{ResourceEvent, SpanBatch, SpanEvent, SpanId, TraceId};

use super::job::UNPROVEN;
use super::*;
use crate::limits::{BODY_BYTES_MAX, CONNECTIONS_MAX, DRAIN_STALL_MAX, INFLATED_BYTES_MAX};
use crate::otlp_request::grpc::{frame as grpc_frame, path_of as grpc_path_of};

/// Long enough for every test, short enough for a person who waits for one that hangs.
const SOON: Duration = Duration::from_secs(60);

/// One kept request: bytes, encoding, pid of the peer.
type Kept = (Vec<u8>, Encoding, Option<u32>);

/// Keeps in memory, and does what a test tells it to.
#[derive(Clone, Default)]
struct Memory(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    kept: Vec<Kept>,
    /// How many of them came with their spans.
    decoded: usize,
    resource_events: Vec<ResourceEvent>,
    listens: Vec<(u32, SocketAddr)>,
    log_events: Vec<(TraceId, SpanId, SpanEvent)>,
    /// How many of them there is room for, where there is a limit.
    log_events_max: Option<usize>,
    broken: bool,
    held: bool,
    waiting: usize,
}

impl Memory {
    fn kept(&self) -> Vec<Kept> {
        self.0.0.lock().unwrap().kept.clone()
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn wait_until(&self, condition: impl Fn(&State) -> bool) {
        let (state, timeout) = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), SOON, |state| !condition(state)).unwrap();
        drop(state);
        assert!(!timeout.timed_out());
    }
}

impl ReceivedSink for Memory {
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), ReceivedSinkError> {
        self.set(|state| state.waiting += 1);
        self.wait_until(|state| !state.held);
        if self.0.0.lock().unwrap().broken {
            return Err(ReceivedSinkError::ForNow("no space left on device".to_owned()));
        }
        self.set(|state| state.kept.push((bytes.to_vec(), encoding, peer_pid)));
        Ok(())
    }

    fn wants_spans(&self) -> bool {
        true
    }

    /// Whatever test sends it: the spans are those that its bytes give.
    fn decoded_traces(
        &mut self,
        bytes: &[u8],
        encoding: Encoding,
        spans: Vec<longpole_model::Span>,
        peer_pid: Option<u32>,
    ) -> Result<(), ReceivedSinkError> {
        let mut batch = SpanBatch::default();
        match encoding {
            Encoding::Protobuf => otlp::trace::decode(bytes, &Limits::default(), &mut batch).unwrap(),
            Encoding::Json => otlp::json::decode(bytes, &Limits::default(), &mut batch).unwrap(),
        }
        assert_eq!(batch.spans, spans);
        self.set(|state| state.decoded += 1);
        self.traces(bytes, encoding, peer_pid)
    }

    fn resource_event(&mut self, event: ResourceEvent) -> Result<(), ReceivedSinkError> {
        self.set(|state| state.resource_events.push(event));
        Ok(())
    }

    fn listens(&mut self, pid: u32, address: SocketAddr) -> Result<(), ReceivedSinkError> {
        self.set(|state| state.listens.push((pid, address)));
        Ok(())
    }

    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), ReceivedSinkError> {
        let state = &mut *self.0.0.lock().unwrap();
        if state.broken {
            return Err(ReceivedSinkError::ForNow("no space left on device".to_owned()));
        }
        if state.log_events_max.is_some_and(|max| state.log_events.len() >= max) {
            return Err(ReceivedSinkError::ForGood("the recording has reached its limit".to_owned()));
        }
        state.log_events.push((trace_id, span_id, event));
        Ok(())
    }
}

fn start() -> (ReceiverHandle, Memory) {
    let memory = Memory::default();
    (Receiver::start(ReceiverOptions::default(), Box::new(memory.clone())).unwrap(), memory)
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn request_of(names: &[&str], resource: Vec<KeyValue>) -> ExportTraceServiceRequest {
    let spans = names
        .iter()
        .enumerate()
        .map(|(i, name)| Span {
            trace_id: vec![1; 16],
            span_id: vec![i as u8 + 1; 8],
            name: (*name).to_owned(),
            start_time_unix_nano: 1_000,
            end_time_unix_nano: 2_000,
            ..Span::default()
        })
        .collect();
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: resource, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }],
    }
}

fn spans(names: &[&str]) -> ExportTraceServiceRequest {
    request_of(names, Vec::new())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An answer over HTTP/1.1.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")).then(|| line[name.len() + 1..].trim()))
    }

    /// Code and message of the `google.rpc.Status` in the body.
    fn rpc_status(&self) -> (i32, String) {
        #[derive(prost::Message)]
        struct Status {
            #[prost(int32, tag = "1")]
            code: i32,
            #[prost(string, tag = "2")]
            message: String,
        }
        match self.header("content-type") {
            Some("application/x-protobuf") => {
                let status = Status::decode(&self.body[..]).unwrap();
                (status.code, status.message)
            }
            Some("application/json") => {
                let status: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
                (status["code"].as_i64().unwrap() as i32, status["message"].as_str().unwrap().to_owned())
            }
            other => panic!("content type {other:?}"),
        }
    }
}

/// Sends a head and a body as they are, and reads the answer.
fn raw(stream: &mut TcpStream, head: &str, body: &[u8]) -> Answer {
    let head = format!("{head}Host: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    read_answer(stream)
}

fn read_answer(stream: &mut TcpStream) -> Answer {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    let head = String::from_utf8(received).unwrap();
    let mut answer = Answer { status: head[9..12].parse().unwrap(), head, body: Vec::new() };
    answer.body = vec![0; answer.header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut answer.body).unwrap();
    answer
}

fn post(port: u16, path: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    raw(&mut stream, &format!("POST {path} HTTP/1.1\r\n{headers}"), body)
}

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";
const JSON: &str = "Content-Type: application/json; charset=utf-8\r\n";

fn count_of(losses: &[Loss], kind: LossKind) -> u64 {
    losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum()
}

#[test]
fn http_takes_protobuf_and_json_in_every_compression_and_keeps_the_plain_bytes() {
    let (receiver, memory) = start();
    let request = spans(&["create bucket"]);
    let (protobuf, json) = (request.encode_to_vec(), serde_json::to_vec(&request).unwrap());
    let mut zlib = ZlibEncoder::new(Vec::new(), Level::fast());
    zlib.write_all(&json).unwrap();
    let (port, zlib) = (receiver.port(), zlib.finish().unwrap());
    // One connection for all: answers do not close it.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let us = Some(std::process::id());
    let mut check = |headers: &str, body: &[u8], answered: &[u8], kept: (&[u8], Encoding)| {
        let answer = raw(&mut stream, &format!("POST /v1/traces HTTP/1.1\r\n{headers}"), body);
        assert_eq!((answer.status, &answer.body[..]), (200, answered), "{headers}");
        let (bytes, encoding, pid) = memory.kept().pop().unwrap();
        assert_eq!((&bytes[..], encoding, pid), (kept.0, kept.1, us.filter(|_| !bytes.is_empty())), "{headers}");
    };
    check(PROTOBUF, &protobuf, b"", (&protobuf, Encoding::Protobuf));
    check(&format!("{PROTOBUF}Content-Encoding: gzip\r\n"), &gzip(&protobuf), b"", (&protobuf, Encoding::Protobuf));
    check(&format!("{PROTOBUF}Content-Encoding: identity\r\n"), &protobuf, b"", (&protobuf, Encoding::Protobuf));
    check(JSON, &json, b"{}", (&json, Encoding::Json));
    check(&format!("{JSON}Content-Encoding: GZIP\r\n"), &gzip(&json), b"{}", (&json, Encoding::Json));
    check(&format!("{JSON}Content-Encoding: deflate\r\n"), &zlib, b"{}", (&json, Encoding::Json));
    check(PROTOBUF, b"", b"", (b"", Encoding::Protobuf));
    assert_eq!(memory.0.0.lock().unwrap().decoded, 7, "each is decoded once");
    drop(stream);
    assert_eq!(receiver.finish(SOON), []);
}

#[test]
fn a_bad_request_is_refused_with_its_reason_in_its_own_encoding() {
    let (receiver, memory) = start();
    let port = receiver.port();
    let good = spans(&["a"]).encode_to_vec();
    let send = |line: &str, headers: &str, body: &[u8]| {
        raw(&mut TcpStream::connect(("127.0.0.1", port)).unwrap(), &format!("{line} HTTP/1.1\r\n{headers}"), body)
    };
    let check = |line: &str, headers: &str, body: &[u8], status: u16, code: i32, message: &str| {
        let answer = send(line, headers, body);
        let (found, text) = answer.rpc_status();
        assert_eq!((answer.status, found), (status, code), "{line} {text}");
        assert!(text.contains(message), "{text:?} does not say {message:?}");
        answer
    };
    check("POST /v1/traces", PROTOBUF, &good[..good.len() - 1], 400, 3, "bytes end inside a field, in the ");
    check("POST /v1/traces", JSON, b"{\"resourceSpans\":[{]}", 400, 3, "at line 1 column 20");
    check("POST /v1/traces", JSON, b"{\"resourceSpans\":7}", 400, 3, "at line 1 column");
    let gzipped = format!("{PROTOBUF}Content-Encoding: gzip\r\n");
    check("POST /v1/traces", &gzipped, &good, 400, 3, "cannot decompress the body: ");
    check("POST /v1/traces", &gzipped, &gzip(&good)[..20], 400, 3, "cannot decompress the body: ");
    check("POST /v1/traces", "", &good, 415, 3, "content type none: expected application/x-protobuf");
    check("POST /v1/traces", "Content-Type: text/plain\r\n", &good, 415, 3, "content type text/plain");
    let answer = check("POST /v1/traces", &format!("{PROTOBUF}Content-Encoding: br\r\n"), &good, 415, 3, "content encoding br");
    assert_eq!(answer.header("accept-encoding"), Some("gzip, deflate, zstd, identity"));
    let answer = check("GET /v1/traces", "", b"", 405, 12, "method GET of /v1/traces: expected POST");
    assert_eq!(answer.header("allow"), Some("POST"));
    check("POST /v1/profiles", JSON, b"[]", 404, 5, "unknown path /v1/profiles");
    check("GET /api/v2/spans", "", b"", 404, 5, "unknown path /api/v2/spans");
    // gRPC needs HTTP/2.
    assert_eq!(send("POST /v1/traces", "Content-Type: application/grpc\r\n", &good).status, 505);
    assert_eq!(memory.kept(), []);
    let losses = receiver.finish(SOON);
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 11, "{losses:?}");
}

#[test]
fn what_is_too_large_is_refused_also_when_it_only_becomes_so() {
    let (receiver, memory) = start();
    let too_long = vec![0; BODY_BYTES_MAX + 1];
    let answer = post(receiver.port(), "/v1/traces", PROTOBUF, &too_long);
    assert_eq!((answer.status, answer.rpc_status().0), (413, 8));
    // Without a declared length it is noticed while it is read.
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    write!(stream, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", too_long.len())
        .unwrap();
    stream.write_all(&too_long).unwrap();
    stream.write_all(b"\r\n0\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream).status, 413);
    // 4 TiB of zeroes in 64 MiB: members of gzip one after the other, each of 64 MiB. It would take an hour to inflate.
    let member = gzip(&vec![0; INFLATED_BYTES_MAX]);
    let bomb = member.repeat((BODY_BYTES_MAX / member.len()).min(16));
    let answer = post(receiver.port(), "/v1/traces", &format!("{PROTOBUF}Content-Encoding: gzip\r\n"), &bomb);
    assert_eq!((answer.status, answer.rpc_status().0), (413, 8));
    assert!(answer.rpc_status().1.contains("64 MiB after decompression"), "{answer:?}");
    assert_eq!(memory.kept().len(), 0);
    assert_eq!(count_of(&receiver.finish(SOON), LossKind::RequestsRefused), 3);
}

#[test]
fn spans_without_ids_are_rejected_and_the_others_are_kept() {
    let (receiver, memory) = start();
    let mut request = spans(&["good", "bad"]);
    request.resource_spans[0].scope_spans[0].spans[1].span_id = Vec::new();
    let answer = post(receiver.port(), "/v1/traces", PROTOBUF, &request.encode_to_vec());
    let partial = ExportTraceServiceResponse::decode(&answer.body[..]).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_spans), (200, 1));
    assert_eq!(partial.error_message, "spans without a valid trace or span id");
    let answer = post(receiver.port(), "/v1/traces", JSON, &serde_json::to_vec(&request).unwrap());
    assert_eq!(
        String::from_utf8(answer.body).unwrap(),
        r#"{"partialSuccess":{"errorMessage":"spans without a valid trace or span id","rejectedSpans":"1"}}"#
    );
    assert_eq!(memory.kept().len(), 2);
    // They were not judged, so they are not kept, and sealing cannot find them again.
    let losses = receiver.finish(SOON);
    assert_eq!((losses.len(), count_of(&losses, LossKind::SpansInvalid)), (1, 2), "{losses:?}");
}

#[test]
fn what_is_kept_without_its_credentials_loses_nothing_else_unsaid() {
    let (receiver, memory) = start();
    let mut request = request_of(&["good", "without id"], vec![attribute("db.password", Value::StringValue("hunter2".into()))]);
    let resource = &mut request.resource_spans[0];
    resource.resource.as_mut().unwrap().dropped_attributes_count = 3;
    resource.scope_spans[0].spans[1].span_id = Vec::new();
    let answer = post(receiver.port(), "/v1/traces", PROTOBUF, &request.encode_to_vec());
    assert_eq!(answer.status, 200);
    let rejected = ExportTraceServiceResponse::decode(&answer.body[..]).unwrap().partial_success.unwrap().rejected_spans;
    assert_eq!(rejected, 1);
    let losses = receiver.finish(SOON);
    let counts = [LossKind::ValuesRedacted, LossKind::SpansInvalid, LossKind::DroppedByEmitter].map(|kind| count_of(&losses, kind));
    assert_eq!(counts, [1, 1, 3], "{losses:?}");
    let [(bytes, Encoding::Protobuf, _)] = &memory.kept()[..] else { panic!("one request") };
    assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
}

#[test]
fn the_process_is_looked_up_only_where_the_request_does_not_say_it() {
    let (receiver, memory) = start();
    let said = request_of(&["a"], vec![attribute("process.pid", Value::IntValue(4711))]);
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &said.encode_to_vec()).status, 200);
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &spans(&["a"]).encode_to_vec()).status, 200);
    let pids: Vec<_> = memory.kept().into_iter().map(|(_, _, pid)| pid).collect();
    assert_eq!(pids, [None, Some(std::process::id())]);
    receiver.finish(SOON);
}

#[test]
fn who_listens_where_a_span_calls_is_kept_once() {
    let (receiver, memory) = start();
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut request = spans(&["call", "call again", "serve"]);
    for (i, span) in request.resource_spans[0].scope_spans[0].spans.iter_mut().enumerate() {
        span.kind = if i < 2 { 3 } else { 2 };
        let port = Value::IntValue(if i < 2 { address.port() } else { receiver.port() }.into());
        span.attributes = vec![attribute("server.address", Value::StringValue("localhost".into())), attribute("server.port", port)];
    }
    for _ in 0..2 {
        assert_eq!(post(receiver.port(), "/v1/traces", "Content-Type: application/x-protobuf\r\n", &request.encode_to_vec()).status, 200);
    }
    // Not the address that a server says of itself.
    assert_eq!(memory.0.0.lock().unwrap().listens, [(std::process::id(), address)]);
}

#[test]
fn what_cannot_be_kept_is_not_acknowledged() {
    let (receiver, memory) = start();
    memory.set(|state| state.broken = true);
    let body = spans(&["a"]).encode_to_vec();
    let answer = post(receiver.port(), "/v1/traces", PROTOBUF, &body);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.rpc_status(), (14, "cannot keep the request: no space left on device".to_owned()));
    memory.set(|state| state.broken = false);
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 200);
    assert_eq!(memory.kept().len(), 1);
    let losses = receiver.finish(SOON);
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 1);
    assert!(losses[0].detail.ends_with("the client may try again"), "{losses:?}");
}

#[test]
fn a_slow_disk_does_not_stop_the_door() {
    let (receiver, memory) = start();
    memory.set(|state| state.held = true);
    let port = receiver.port();
    let slow = thread::spawn(move || post(port, "/v1/traces", PROTOBUF, &spans(&["a"]).encode_to_vec()).status);
    memory.wait_until(|state| state.waiting == 1);
    assert_eq!(post(port, "/v1/nowhere", PROTOBUF, b"").status, 404);
    assert_eq!(memory.kept(), []);
    memory.set(|state| state.held = false);
    assert_eq!(slow.join().unwrap(), 200);
    receiver.finish(SOON);
}

fn metrics(points: usize) -> ExportMetricsServiceRequest {
    let data_points = vec![NumberDataPoint::default(); points];
    let metric = Metric { name: "m".to_owned(), data: Some(Data::Gauge(Gauge { data_points })), ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics: vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }] }
}

fn logs(records: usize) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { log_records: vec![LogRecord::default(); records], ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

#[test]
fn metrics_logs_and_profiles_are_accepted_counted_and_never_an_error() {
    let (receiver, memory) = start();
    let port = receiver.port();
    assert_eq!(post(port, "/v1/metrics", PROTOBUF, &metrics(3).encode_to_vec()).status, 200);
    assert_eq!(post(port, "/v1/logs", JSON, &serde_json::to_vec(&logs(2)).unwrap()).body, b"{}");
    assert_eq!(post(port, "/v1/logs", PROTOBUF, b"\xff\xff").status, 200, "not decodable: counts as one");
    assert_eq!(post(port, "/v1development/profiles", PROTOBUF, b"").status, 200);
    assert_eq!(memory.kept(), []);
    let losses = receiver.finish(SOON);
    assert_eq!(
        losses,
        [
            Loss::new(LossKind::OtherSignals, 3, "data points of metrics, which longpole does not keep"),
            Loss::new(LossKind::OtherSignals, 3, "log records without a span, which longpole does not keep"),
            Loss::new(
                LossKind::OtherSignals,
                1,
                "requests of profiles, which longpole does not keep; `longpole import` reads a file of them"
            ),
        ]
    );
}

#[test]
fn a_log_record_that_names_a_span_is_an_event_of_it() {
    let (receiver, memory) = start();
    let mut request = logs(3);
    let record = &mut request.resource_logs[0].scope_logs[0].log_records[1];
    (record.trace_id, record.span_id) = (vec![1; 16], vec![2; 8]);
    record.time_unix_nano = 1_000;
    record.severity_text = "WARN".to_owned();
    record.body = Some(AnyValue { value: Some(Value::StringValue("disk is slow".to_owned())) });
    record.attributes = vec![attribute("disk", Value::StringValue("sda".to_owned()))];
    assert_eq!(post(receiver.port(), "/v1/logs", PROTOBUF, &request.encode_to_vec()).status, 200);
    let json = serde_json::to_vec(&request).unwrap();
    assert_eq!(post(receiver.port(), "/v1/logs", &format!("{JSON}Content-Encoding: gzip\r\n"), &gzip(&json)).status, 200);
    let losses = receiver.finish(SOON);
    assert_eq!(losses, [Loss::new(LossKind::OtherSignals, 4, "log records without a span, which longpole does not keep")]);
    let events = std::mem::take(&mut memory.0.0.lock().unwrap().log_events);
    assert_eq!(events.len(), 2);
    for (trace_id, span_id, event) in events {
        assert_eq!((trace_id.bytes(), span_id.bytes()), ([1; 16], [2; 8]));
        assert_eq!((event.time.unix_nanos(), event.name.as_str()), (1_000, "log"), "{event:?}");
        assert_eq!(event.attributes.get_str("log.body"), Some("disk is slow"));
        assert_eq!(event.attributes.get_str("disk"), Some("sda"));
    }
}

#[test]
fn the_answer_to_log_records_counts_those_that_are_not_kept() {
    let (receiver, memory) = start();
    let mut request = logs(3);
    for record in &mut request.resource_logs[0].scope_logs[0].log_records {
        (record.trace_id, record.span_id) = (vec![1; 16], vec![2; 8]);
    }
    let send = || post(receiver.port(), "/v1/logs", PROTOBUF, &request.encode_to_vec());
    memory.set(|state| state.broken = true);
    assert_eq!(send().status, 503, "it may be sent again");
    memory.set(|state| (state.broken, state.log_events_max) = (false, Some(2)));
    let answer = send();
    let partial = ExportLogsServiceResponse::decode(&answer.body[..]).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_log_records), (200, 1));
    assert_eq!(partial.error_message, "log records that longpole could not store: the recording has reached its limit");
    assert_eq!(send().status, 507);
    let losses = receiver.finish(SOON);
    let lost = "log records that longpole could not store: the recording has reached its limit";
    assert!(losses.contains(&Loss::new(LossKind::OtherSignals, 4, lost)), "{losses:?}");
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 2, "{losses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_clients_export_all_three_signals_plain_and_compressed() {
    let (receiver, memory) = start();
    let channel = Channel::from_shared(receiver.endpoint()).unwrap().connect().await.unwrap();
    let mut traces = TraceServiceClient::new(channel.clone());
    let answer = traces.export(spans(&["plain"])).await.unwrap().into_inner();
    assert_eq!(answer.partial_success, None);
    let mut traces = traces.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip);
    traces.export(spans(&["gzip"])).await.unwrap();
    MetricsServiceClient::new(channel.clone()).export(metrics(1)).await.unwrap();
    LogsServiceClient::new(channel).export(logs(1)).await.unwrap();
    let kept: Vec<_> = memory.kept().into_iter().map(|(bytes, ..)| ExportTraceServiceRequest::decode(&bytes[..]).unwrap()).collect();
    assert_eq!(kept, [spans(&["plain"]), spans(&["gzip"])]);

    let mut bad = spans(&["bad"]);
    bad.resource_spans[0].scope_spans[0].spans[0].trace_id = vec![0; 16];
    assert_eq!(traces.export(bad).await.unwrap().into_inner().partial_success.unwrap().rejected_spans, 1);
    memory.set(|state| state.broken = true);
    let status = traces.export(spans(&["a"])).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, "cannot keep the request: no space left on device"));
    let losses = tokio::task::spawn_blocking(move || receiver.finish(SOON)).await.unwrap();
    assert_eq!(count_of(&losses, LossKind::OtherSignals), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_grpc_request_gets_the_status_that_says_so() {
    let (receiver, _) = start();
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", receiver.port())).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let check = async |path: &str, headers: &[(&'static str, &str)], body: Vec<u8>, code: i32, message: &str| {
        let mut request = http::Request::post(format!("http://localhost{path}")).header("content-type", "application/grpc");
        for (name, value) in headers {
            request.headers_mut().unwrap().insert(*name, value.parse().unwrap());
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = sender.clone().send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let (head, body) = response.into_parts();
        let found = head.headers.get("grpc-message").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        assert_eq!(head.headers.get("grpc-status").unwrap(), &code.to_string(), "{found}");
        assert!(found.contains(message), "{found:?} does not say {message:?}");
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
    };
    let traces = grpc_path_of(Signal::Traces);
    let good = spans(&["a"]).encode_to_vec();
    let framed = |bytes: &[u8], compressed| grpc_frame(bytes, compressed).to_vec();
    check("/grpc.health.v1.Health/Check", &[], framed(b"", false), 12, "unknown method /grpc.health.v1.Health/Check").await;
    check(traces, &[("content-type", "application/grpc+json")], framed(b"{}", false), 12, "content type application/grpc+json").await;
    check(traces, &[("grpc-encoding", "snappy")], framed(&good, true), 12, "grpc encoding snappy: expected gzip").await;
    check(traces, &[], framed(&good[1..], false), 3, " message at byte ").await;
    check(traces, &[("grpc-encoding", "gzip")], framed(&good, true), 3, "cannot decompress the body").await;
    check(traces, &[], framed(&good, true), 13, "has no grpc-encoding").await;
    check(traces, &[], vec![0, 0, 0], 13, "body of 3 bytes is shorter than the prefix").await;
    check(traces, &[], framed(&good, false)[..9].to_vec(), 13, "in a body that holds 4 bytes of it").await;
    check(traces, &[], [framed(b"", false), framed(b"", false)].concat(), 13, "gRPC message of 0 bytes in a body that holds 5").await;
    check(traces, &[], vec![9, 0, 0, 0, 0], 13, "flag 9 of a gRPC message").await;
    check(traces, &[], framed(&vec![0; BODY_BYTES_MAX], false), 8, "body larger than 64 MiB").await;
    let bomb = gzip(&vec![0; INFLATED_BYTES_MAX + 1]);
    check(traces, &[("grpc-encoding", "gzip")], framed(&bomb, true), 8, "64 MiB after decompression").await;
    drop(sender);
    let losses = tokio::task::spawn_blocking(move || receiver.finish(SOON)).await.unwrap();
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 12, "{losses:?}");
}

#[test]
fn many_clients_at_once_lose_nothing() {
    let (receiver, memory) = start();
    let port = receiver.port();
    let clients: Vec<_> = (0..2 * CONNECTIONS_MAX)
        .map(|client| {
            thread::spawn(move || {
                for request in 0..20 {
                    let body = spans(&[&format!("{client}/{request}")]).encode_to_vec();
                    assert_eq!(post(port, "/v1/traces", PROTOBUF, &body).status, 200);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let losses = receiver.finish(SOON);
    let mut kept: Vec<_> = memory.kept().into_iter().map(|(bytes, ..)| bytes).collect();
    kept.sort();
    kept.dedup();
    assert_eq!(kept.len(), 2 * CONNECTIONS_MAX * 20);
    assert_eq!(losses, []);
}

#[test]
fn idle_connections_beyond_the_limit_make_room_for_new_ones() {
    let (receiver, _) = start();
    let body = spans(&["a"]).encode_to_vec();
    let idle: Vec<_> = (0..3 * CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
            assert_eq!(raw(&mut stream, &format!("POST /v1/traces HTTP/1.1\r\n{PROTOBUF}"), &body).status, 200);
            stream
        })
        .collect();
    assert_eq!(idle.len(), 3 * CONNECTIONS_MAX);
    receiver.finish(SOON);
}

#[test]
fn a_connection_that_was_not_used_yet_is_not_closed_to_make_room() {
    let (receiver, _) = start();
    let body = spans(&["a"]).encode_to_vec();
    let connect = || TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    // Connected, and about to send: one more than there is room for, so the last one waits in the backlog.
    let mut fresh: Vec<_> = (0..=CONNECTIONS_MAX).map(|_| connect()).collect();
    for stream in &mut fresh {
        assert_eq!(raw(stream, &format!("POST /v1/traces HTTP/1.1\r\n{PROTOBUF}"), &body).status, 200);
    }
    receiver.finish(SOON);
}

#[test]
fn the_drain_waits_for_a_request_for_as_long_as_it_goes_on() {
    let (receiver, memory) = start();
    let body = spans(&["slow"]).encode_to_vec();
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    write!(stream, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: {}\r\n\r\n", body.len()).unwrap();
    let finished = thread::spawn(move || receiver.finish(SOON));
    // Altogether longer than the drain waits for one byte.
    let pause = DRAIN_STALL_MAX / 4;
    let (_keeps_open, never) = mpsc::channel::<()>();
    for part in body.chunks(body.len().div_ceil(8)) {
        assert_eq!(never.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
        stream.write_all(part).unwrap();
    }
    assert_eq!(read_answer(&mut stream).status, 200);
    let losses = finished.join().unwrap();
    assert_eq!(memory.kept().len(), 1);
    assert_eq!(count_of(&losses, LossKind::DrainTimedOut), 1, "only that the connection stays open: {losses:?}");
}

#[test]
fn the_drain_does_not_wait_for_a_request_that_stalls() {
    let (receiver, _) = start();
    let mut stalled = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    write!(stalled, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: 100\r\n\r\nabc").unwrap();
    let begun = Instant::now();
    let losses = receiver.finish(SOON);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(count_of(&losses, LossKind::DrainTimedOut), 1, "{losses:?}");
}

#[test]
fn the_drain_reads_what_processes_sent_before_they_were_gone() {
    let (receiver, memory) = start();
    let body = spans(&["last words"]).encode_to_vec();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
        write!(stream, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
        // As the kernel does for a process that ends: nobody reads the answer.
        stream.shutdown(Shutdown::Write).unwrap();
    }
    assert_eq!(receiver.finish(SOON), []);
    assert_eq!(memory.kept().len(), 100);
}

/// A whole gRPC call as bytes of HTTP/2: preface, empty SETTINGS, HEADERS without any compression, DATA with the end.
fn grpc_call(path: &str, message: &[u8]) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, stream]);
        frame.extend(payload);
        frame
    };
    let mut headers = Vec::new();
    for (name, value) in
        [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("content-type", "application/grpc")]
    {
        headers.extend([0, name.len() as u8]);
        headers.extend(name.bytes());
        headers.push(value.len() as u8);
        headers.extend(value.bytes());
    }
    let mut call = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    call.extend(frame(4, 0, 0, b""));
    call.extend(frame(1, 0x4, 1, &headers));
    call.extend(frame(0, 0x1, 1, &grpc_frame(message, false)));
    call
}

#[test]
fn the_drain_reads_grpc_calls_of_processes_that_did_not_wait_for_any_answer() {
    let (receiver, memory) = start();
    let call = grpc_call(grpc_path_of(Signal::Traces), &spans(&["last words"]).encode_to_vec());
    for _ in 0..100 {
        TcpStream::connect(("127.0.0.1", receiver.port())).unwrap().write_all(&call).unwrap();
    }
    assert_eq!(receiver.finish(SOON), []);
    assert_eq!(memory.kept().len(), 100);
}

#[test]
fn a_client_that_dies_inside_a_request_is_counted_and_ends_its_connection() {
    let (receiver, memory) = start();
    let mut http = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    write!(http, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: 100\r\n\r\nabc").unwrap();
    drop(http);
    let call = grpc_call(grpc_path_of(Signal::Traces), &spans(&["cut"]).encode_to_vec());
    TcpStream::connect(("127.0.0.1", receiver.port())).unwrap().write_all(&call[..call.len() - 1]).unwrap();
    let losses = receiver.finish(SOON);
    assert_eq!(memory.kept(), []);
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 2, "{losses:?}");
    assert!(losses.iter().all(|loss| loss.detail.starts_with("body broken off: ")), "{losses:?}");
}

#[test]
fn a_process_that_outlives_the_command_does_not_hold_up_the_end() {
    let (receiver, _) = start();
    let port = receiver.port();
    let mut idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(raw(&mut idle, &format!("POST /v1/traces HTTP/1.1\r\n{PROTOBUF}"), b"").status, 200);
    let mut inside = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(inside, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: 100\r\n\r\nabc").unwrap();
    let losses = receiver.finish(Duration::from_millis(20));
    assert_eq!(
        losses,
        [
            Loss::new(LossKind::DrainTimedOut, 1, "requests that were still being sent when the drain deadline had passed"),
            Loss::new(
                LossKind::DrainTimedOut,
                1,
                "connections of processes that outlived the command: the recording lacks what they send later"
            ),
        ]
    );
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the port is closed");
}

#[test]
fn a_disk_that_hangs_does_not_hang_the_end() {
    let (receiver, memory) = start();
    memory.set(|state| state.held = true);
    let port = receiver.port();
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let body = spans(&["a"]).encode_to_vec();
        write!(stream, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}Content-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
        // No answer comes: the connection just ends.
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    memory.wait_until(|state| state.waiting == 1);
    let losses = receiver.finish(Duration::from_millis(20));
    assert_eq!(count_of(&losses, LossKind::DrainTimedOut), 2, "{losses:?}");
    assert!(!client.join().unwrap().starts_with(b"HTTP/1.1 200"));
    memory.set(|state| state.held = false);
}

#[test]
fn a_receiver_that_is_dropped_closes_its_port() {
    let (receiver, _) = start();
    let port = receiver.port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(receiver);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}
