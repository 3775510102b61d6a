//! Copies for the user's own targets: working ones (another receiver, tonic's server, files), and targets that are dead, deaf, stalled,
//! refuse, or answer nonsense.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use longpole_model::{Loss, LossKind, ResourceEvent, SpanEvent, SpanId, TraceId};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use super::*;
use crate::otlp_request::{Encoding, Signal};
use crate::receive::{ReceivedSink, ReceivedSinkError, Receiver, ReceiverHandle, ReceiverOptions};

mod files;
mod grpc;

const SOON: Duration = Duration::from_secs(60);

/// Keeps the bodies of traces.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Vec<u8>>>>);

impl ReceivedSink for Memory {
    fn traces(&mut self, bytes: &[u8], _: Encoding, _: Option<u32>) -> Result<(), ReceivedSinkError> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(())
    }

    fn resource_event(&mut self, _: ResourceEvent) -> Result<(), ReceivedSinkError> {
        Ok(())
    }

    fn listens(&mut self, _: u32, _: SocketAddr) -> Result<(), ReceivedSinkError> {
        Ok(())
    }

    fn log_event(&mut self, _: TraceId, _: SpanId, _: SpanEvent) -> Result<(), ReceivedSinkError> {
        Ok(())
    }
}

fn target(url: &str, protocol: ForwardProtocol) -> ForwardTarget {
    ForwardTarget {
        signal: Signal::Traces,
        url: url.to_owned(),
        protocol,
        headers: vec![("x-api-key".to_owned(), "hunter2".to_owned())],
        timeout: Duration::from_secs(10),
        tls: ForwardTls::default(),
    }
}

fn receiver_that_forwards(target: ForwardTarget) -> ReceiverHandle {
    receiver_that_forwards_to(vec![target])
}

fn receiver_that_forwards_to(forward: Vec<ForwardTarget>) -> ReceiverHandle {
    Receiver::start(ReceiverOptions { forward, ..ReceiverOptions::default() }, Box::new(Memory::default())).unwrap()
}

fn spans(name: &str) -> ExportTraceServiceRequest {
    let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], name: name.to_owned(), ..Span::default() };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

/// Sends one request over HTTP and gives the status of the answer.
fn post(port: u16, headers: &str, body: &[u8]) -> u16 {
    post_to(port, "/v1/traces", headers, body)
}

fn post_to(port: u16, path: &str, headers: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

/// An address nobody listens at. A port that was bound and given back would be another test's collector soon.
const NOBODY: &str = "127.0.0.1:1";

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

/// A collector that answers each request with the next of these answers, and the last one from then on. Gives what it got:
/// head and body.
fn http_collector(answers: &'static [&'static str]) -> (String, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let mut answers = answers.iter().cycle();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer = answers.next().unwrap();
            // An answer with a body brings its length.
            let end = if answer.contains("Content-Length") { "" } else { "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" };
            write!(stream, "HTTP/1.1 {answer}{end}").unwrap();
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (url, received)
}

fn failed(losses: &[Loss]) -> Vec<(u64, String)> {
    assert!(losses.iter().all(|loss| loss.kind == LossKind::ForwardFailed), "{losses:?}");
    losses.iter().map(|loss| (loss.count, loss.detail.clone())).collect()
}

/// A directory of this test alone, removed at its end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longpole-forward-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_endpoint_that_never_comes_to_its_answer_keeps_no_export_waiting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let answers = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
                while stream.write_all(&answers).is_ok() {}
            });
        }
    });
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    let body = spans("a").encode_to_vec();
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(post(receiver.port(), PROTOBUF, &body), 200);
    }
    // Each took more than a second on the thread of the endpoint.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let losses = failed(&receiver.finish(Duration::from_millis(100)));
    assert_eq!(losses.iter().map(|(spans, _)| spans).sum::<u64>(), 20, "{losses:?}");
}

#[test]
fn an_http_endpoint_gets_the_same_bytes_with_the_users_headers() {
    let (url, received) = http_collector(&["200 OK"]);
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    let body = spans("a").encode_to_vec();
    assert_eq!(post(receiver.port(), PROTOBUF, &body), 200);
    let (head, got) = received.recv_timeout(SOON).unwrap();
    assert_eq!(got, body);
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    assert!(head.contains("x-api-key: hunter2"), "{head}");
    // Compressed as it came, JSON as it came.
    let json = serde_json::to_vec(&spans("b")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&json).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(post(receiver.port(), "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", &gzip), 200);
    let (head, got) = received.recv_timeout(SOON).unwrap();
    assert_eq!(got, gzip);
    assert!(head.contains("content-type: application/json") && head.contains("content-encoding: gzip"), "{head}");
    // What was refused here goes nowhere.
    assert_eq!(post(receiver.port(), PROTOBUF, b"\xff"), 400);
    let losses = receiver.finish(SOON);
    assert_eq!(losses.iter().map(|loss| loss.kind).collect::<Vec<_>>(), [LossKind::RequestsRefused]);
    assert!(received.try_recv().is_err());
}

#[test]
fn an_endpoint_that_asks_for_patience_gets_it() {
    let (url, received) = http_collector(&["503 Service Unavailable\r\nRetry-After: 0", "429 Too Many Requests", "200 OK"]);
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    let body = spans("a").encode_to_vec();
    assert_eq!(post(receiver.port(), PROTOBUF, &body), 200);
    assert_eq!(receiver.finish(SOON), []);
    assert_eq!(received.iter().take(3).filter(|(_, got)| *got == body).count(), 3);
}

#[test]
fn an_endpoint_that_refuses_is_not_asked_again() {
    let (url, received) = http_collector(&["401 Unauthorized"]);
    let with_secret = url.replace("http://", "http://user:secret@") + "?key=secret";
    let receiver = receiver_that_forwards(target(&with_secret, ForwardProtocol::Http));
    assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
    assert_eq!(post(receiver.port(), PROTOBUF, &spans("b").encode_to_vec()), 200);
    assert_eq!(failed(&receiver.finish(SOON)), [(2, format!("{url}: http status 401"))]);
    assert_eq!(received.iter().take(2).count(), 2);
}

#[test]
fn a_dead_endpoint_costs_the_command_nothing_and_is_counted() {
    for protocol in [ForwardProtocol::Http, ForwardProtocol::Grpc] {
        let receiver = receiver_that_forwards(target(&format!("http://{NOBODY}"), protocol));
        for _ in 0..10 {
            assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
        }
        // Some it has given up by then, and of the others it says why they wait.
        let losses = failed(&receiver.finish(Duration::from_secs(1)));
        assert_eq!(losses.iter().map(|(count, _)| count).sum::<u64>(), 10, "{losses:?}");
        for (_, reason) in losses {
            assert!(reason.starts_with(&format!("http://{NOBODY}")) && reason.contains("Connection refused"), "{reason}");
        }
    }
}

#[test]
fn a_stalled_endpoint_holds_up_neither_the_command_nor_the_end() {
    // Connections are made by the kernel, and nobody reads from them.
    let stalled = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", stalled.local_addr().unwrap());
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    for _ in 0..10 {
        assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
    }
    assert_eq!(failed(&receiver.finish(Duration::from_millis(50))), [(10, format!("{url} did not take them before longpole ended"))]);
}

#[test]
fn what_does_not_fit_into_the_queue_is_counted() {
    let stalled = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", stalled.local_addr().unwrap());
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    let body = spans(&"x".repeat(crate::limits::FORWARD_QUEUE_BYTES_MAX / 2)).encode_to_vec();
    for _ in 0..3 {
        assert_eq!(post(receiver.port(), PROTOBUF, &body), 200);
    }
    let mut losses = failed(&receiver.finish(Duration::from_millis(50)));
    losses.sort();
    assert_eq!(losses[0], (1, format!("{url} did not take them before longpole ended")));
    assert_eq!(losses[1], (2, format!("{url}: accepts data more slowly than the command sends it: the queue of 32 MiB is full")));
}

#[test]
fn an_endpoint_that_makes_no_sense_says_why_and_disturbs_nobody() {
    let bad_header =
        ForwardTarget { headers: vec![("not a name".to_owned(), String::new())], ..target("http://localhost:1", ForwardProtocol::Http) };
    let bad_certificate = ForwardTarget {
        tls: ForwardTls { certificate: Some(b"nothing".to_vec()), ..ForwardTls::default() },
        ..target("https://localhost:1", ForwardProtocol::Grpc)
    };
    for (target, expected) in [
        (target("localhost:4317", ForwardProtocol::Grpc), "the user's endpoint: the endpoint is not an http or https url"),
        (bad_header, "http://localhost:1: \"not a name\" is not the name of a header"),
        (bad_certificate, "https://localhost:1: the endpoint's certificate file holds no certificate"),
    ] {
        let receiver = receiver_that_forwards(target);
        assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
        assert_eq!(failed(&receiver.finish(SOON)), [(1, expected.to_owned())]);
    }
}

const CERTIFICATE: &[u8] = include_bytes!("../testdata/localhost.cert.pem");
const KEY: &[u8] = include_bytes!("../testdata/localhost.key.pem");

#[test]
fn an_https_endpoint_is_trusted_by_the_certificate_that_the_user_named_and_not_without_it() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/v1/traces", listener.local_addr().unwrap().port());
    let certificates = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap).collect();
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    let config = Arc::new(config);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).unwrap(), stream.unwrap());
            // A client that does not trust us goes away inside the handshake.
            let mut received = [0; 4096];
            if stream.read(&mut received).is_ok_and(|length| length > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let named = ForwardTls { certificate: Some(CERTIFICATE.to_vec()), ..ForwardTls::default() };
    let receiver = receiver_that_forwards(ForwardTarget { tls: named, ..target(&url, ForwardProtocol::Http) });
    assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
    assert_eq!(receiver.finish(SOON), []);

    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
    let losses = failed(&receiver.finish(Duration::from_millis(500)));
    let [(1, reason)] = &losses[..] else { panic!("{losses:?}") };
    assert!(reason.contains("invalid peer certificate: UnknownIssuer"), "{reason}");
}

/// Spans of these names in one request.
fn request_of(names: &[&str]) -> ExportTraceServiceRequest {
    let mut request = spans("");
    let of_scope = &mut request.resource_spans[0].scope_spans[0].spans;
    let first = of_scope.remove(0);
    of_scope.extend((1..).zip(names).map(|(id, name)| Span { name: (*name).to_owned(), span_id: vec![id; 8], ..first.clone() }));
    request
}

fn names_of(requests: &[ExportTraceServiceRequest]) -> Vec<String> {
    let scopes = requests.iter().flat_map(|request| &request.resource_spans).flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| &scope.spans).map(|span| span.name.clone()).collect()
}

#[test]
fn what_an_endpoint_rejects_of_a_request_is_counted() {
    static ANSWERS: [&str; 2] = [
        "200 OK\r\nContent-Type: application/json\r\nContent-Length: 65\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"too old\"}}",
        // More than there were.
        "200 OK\r\nContent-Length: 8\r\n\r\n\x0a\x06\x08\x09\x12\x02no",
    ];
    let (url, received) = http_collector(&ANSWERS);
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
    for _ in ANSWERS {
        assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b", "c"]).encode_to_vec()), 200);
        received.recv_timeout(SOON).unwrap();
    }
    let mut losses = failed(&receiver.finish(SOON));
    losses.sort();
    assert_eq!(losses, [(2, format!("{url}: rejected them: too old")), (3, format!("{url}: rejected them: no"))]);
}

#[test]
fn a_success_that_is_somebody_elses_delivers_nothing() {
    // A login page; a gRPC server that gets HTTP, as tonic answers.
    for (answer, reason) in [
        ("200 OK\r\nContent-Type: text/html; charset=utf-8", "answered with a web page (http status 200), so it is not a collector"),
        ("200 OK\r\nContent-Type: application/grpc\r\ngrpc-status: 12", "speaks gRPC, but longpole sent them over HTTP"),
    ] {
        let answers: &'static [&'static str] = Box::leak(Box::new([answer]));
        let (url, received) = http_collector(answers);
        let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
        assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b", "c"]).encode_to_vec()), 200);
        received.recv_timeout(SOON).unwrap();
        assert_eq!(failed(&receiver.finish(SOON)), [(3, format!("{url}: {reason}"))]);
    }
}

#[test]
fn retry_after_is_in_seconds_or_a_date_of_the_endpoints_clock() {
    let now = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let check = |headers: &[(&'static str, &str)], seconds: Option<u64>| {
        let mut map = ::http::HeaderMap::new();
        headers.iter().for_each(|(name, value)| drop(map.insert(*name, value.parse().unwrap())));
        assert_eq!(http::retry_after(&map, now), seconds.map(Duration::from_secs), "{headers:?}");
    };
    check(&[], None);
    check(&[("retry-after", " 7 ")], Some(7));
    check(&[("retry-after", "0")], None);
    check(&[("retry-after", "18446744073709551615")], Some(24 * 60 * 60));
    check(&[("retry-after", "soon")], None);
    check(&[("retry-after", "-1")], None);
    check(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")], Some(3));
    check(&[("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")], None);
    check(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), ("date", "Sun, 06 Nov 1994 08:49:30 GMT")], Some(10));
    check(&[("retry-after", "Sunday, 06-Nov-94 08:49:40 GMT"), ("date", "no date")], Some(3));
}

#[test]
fn forwarding_gives_up_at_once_if_the_endpoint_wants_a_retry_after_the_end() {
    // The date is that of the endpoint's clock, which is years off ours: ten minutes later.
    for (answer, reason) in [
        ("503 Service Unavailable\r\nRetry-After: 30", "{url} did not take them before longpole ended: http status 503"),
        (
            "503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:59:37 GMT",
            "{url}: http status 503; gave up, because the next attempt would come more than 60 s after the first",
        ),
    ] {
        let answers: &'static [&'static str] = Box::leak(Box::new([answer]));
        let (url, received) = http_collector(answers);
        let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Http));
        assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b", "c"]).encode_to_vec()), 200);
        received.recv_timeout(SOON).unwrap();
        let begun = Instant::now();
        assert_eq!(failed(&receiver.finish(Duration::from_secs(20))), [(3, reason.replace("{url}", &url))]);
        assert!(begun.elapsed() < Duration::from_secs(10), "it was waited for to the end");
    }
}

#[test]
fn without_a_protocol_a_request_goes_on_as_it_came() {
    let (url, received) = http_collector(&["200 OK"]);
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::AsReceived));
    assert_eq!(post(receiver.port(), PROTOBUF, &spans("over http").encode_to_vec()), 200);
    let (head, _) = received.recv_timeout(SOON).unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert_eq!(receiver.finish(SOON), []);
}

#[test]
fn an_appdash_collector_gets_frames_and_its_end_says_that_it_has_them() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", collector.local_addr().unwrap());
    let reads = thread::spawn(move || {
        let (mut stream, _) = collector.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let receiver = receiver_that_forwards(ForwardTarget::traces(ForwardProtocol::AppDash, &url));
    assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["a", "b"]).encode_to_vec()), 200);
    assert_eq!(post(receiver.port(), PROTOBUF, &request_of(&["c"]).encode_to_vec()), 200);
    assert_eq!(receiver.finish(SOON), []);
    let mut batch = longpole_model::SpanBatch::default();
    let mut reader = longpole_wire::appdash::FrameReader::new(&longpole_wire::Limits::default());
    reader.push(&reads.join().unwrap(), &mut batch).unwrap();
    reader.finish(&mut batch);
    assert_eq!(batch.spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn an_appdash_collector_that_is_gone_deaf_or_abrupt_is_counted_in_spans() {
    let three = request_of(&["a", "b", "c"]).encode_to_vec();
    let send_and_finish = |url: &str, deadline: Duration| {
        let receiver = receiver_that_forwards(ForwardTarget::traces(ForwardProtocol::AppDash, url));
        assert_eq!(post(receiver.port(), PROTOBUF, &three), 200);
        failed(&receiver.finish(deadline))
    };
    let gone = format!("tcp://{NOBODY}");
    let losses = send_and_finish(&gone, SOON);
    let [(3, reason)] = &losses[..] else { panic!("{losses:?}") };
    assert!(reason.starts_with(&format!("{gone}: Connection refused")), "{reason}");

    // The kernel takes what nobody reads.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", deaf.local_addr().unwrap());
    assert_eq!(send_and_finish(&url, Duration::from_millis(50)), [(3, format!("{url} did not take them before longpole ended"))]);

    // Closed with bytes unread, which is a reset.
    let abrupt = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", abrupt.local_addr().unwrap());
    thread::spawn(move || {
        for stream in abrupt.incoming() {
            stream.unwrap().read_exact(&mut [0]).unwrap();
        }
    });
    let losses = send_and_finish(&url, SOON);
    assert_eq!(losses.iter().map(|(count, _)| count).sum::<u64>(), 3, "{losses:?}");
}

#[test]
fn zipkin_endpoints_get_the_version_that_their_path_says() {
    for (path, expected) in [("/api/v1/spans", "binaryAnnotations"), ("/api/v2/spans", "tags")] {
        let (url, received) = http_collector(&["503 Service Unavailable\r\nRetry-After: 0", "202 Accepted"]);
        let url = url.replace("/v1/traces", path);
        let receiver = receiver_that_forwards(ForwardTarget::traces(ForwardProtocol::Zipkin, &url));
        let mut request = request_of(&["a"]);
        let span = &mut request.resource_spans[0].scope_spans[0].spans[0];
        span.attributes = vec![opentelemetry_proto::tonic::common::v1::KeyValue {
            key: "k".to_owned(),
            value: Some(opentelemetry_proto::tonic::common::v1::AnyValue {
                value: Some(opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue("v".to_owned())),
            }),
            ..Default::default()
        }];
        assert_eq!(post(receiver.port(), PROTOBUF, &request.encode_to_vec()), 200);
        let (head, first) = received.recv_timeout(SOON).unwrap();
        assert!(head.starts_with(&format!("post {path} http/1.1")) && head.contains("content-type: application/json"), "{head}");
        assert_eq!(received.recv_timeout(SOON).unwrap().1, first, "again");
        let text = String::from_utf8(first).unwrap();
        assert!(text.contains(expected) && text.contains("\"name\":\"a\"") && text.contains("\"k\""), "{text}");
        let losses = receiver.finish(SOON);
        assert!(losses.iter().all(|loss| loss.kind != LossKind::ForwardFailed), "{losses:?}");
    }
}

/// Takes a connection, reads a little, and says this.
fn talker(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(words);
        }
    });
    url
}

#[test]
fn bad_targets_beside_each_other_and_a_good_one_cost_the_command_nothing_and_are_counted_to_the_span() {
    let dead = format!("http://{NOBODY}");
    let stalled = TcpListener::bind("127.0.0.1:0").unwrap();
    let stalled_url = format!("http://{}", stalled.local_addr().unwrap());
    let (refusing, _refused) = http_collector(&["403 Forbidden"]);
    let garbage = talker(b"\x16\x03\x01 what?\r\n\r\n");
    let scratch = Scratch::new("many");
    let (lines, tree) = (scratch.file("t.json"), scratch.file("up.trace"));
    let targets = vec![
        target(&dead, ForwardProtocol::Http),
        target(&dead, ForwardProtocol::Grpc),
        target(&stalled_url, ForwardProtocol::Http),
        target(&refusing, ForwardProtocol::Http),
        target(&garbage, ForwardProtocol::Http),
        target(&garbage, ForwardProtocol::Grpc),
        ForwardTarget::traces(ForwardProtocol::AppDash, dead.replace("http", "tcp")),
        ForwardTarget::traces(ForwardProtocol::Zipkin, format!("{dead}/api/v2/spans")),
        ForwardTarget::traces(ForwardProtocol::OtlpFile, &lines),
        ForwardTarget::traces(ForwardProtocol::AppDashFile, &tree),
    ];
    let bad = 8;
    let alone = receiver_that_forwards_to(Vec::new());
    let beside = receiver_that_forwards_to(targets);
    let requests = 50;
    let body = request_of(&["a", "b", "c"]).encode_to_vec();
    let send = |receiver: &ReceiverHandle| {
        let begun = Instant::now();
        for _ in 0..requests {
            assert_eq!(post(receiver.port(), PROTOBUF, &body), 200);
        }
        begun.elapsed()
    };
    let (without, with) = (send(&alone), send(&beside));
    // A request that waited for a target would take as long as its first pause.
    assert!(with < without + crate::limits::FORWARD_BACKOFF_MIN * 4, "{without:?} alone, {with:?} beside bad targets");
    alone.finish(SOON);
    let losses: Vec<_> = beside.finish(Duration::from_secs(2)).into_iter().filter(|loss| loss.kind == LossKind::ForwardFailed).collect();
    assert_eq!(losses.iter().map(|loss| loss.count).sum::<u64>(), bad * requests * 3, "{losses:#?}");
    let text = std::fs::read_to_string(&lines).unwrap();
    assert_eq!(text.lines().count() as u64, requests);
}

#[test]
fn spans_of_another_format_and_our_own_are_handed_on_too() {
    let (url, received) = http_collector(&["200 OK"]);
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::AsReceived));
    assert!(receiver.forwards_spans());
    let zipkin = br#"[{"traceId":"1","id":"2","name":"from zipkin","timestamp":1,"duration":1}]"#;
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    write!(stream, "POST /api/v2/spans HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", zipkin.len())
        .unwrap();
    stream.write_all(zipkin).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let mut batch = longpole_model::SpanBatch::default();
    longpole_wire::otlp::trace::decode(&spans("our own").encode_to_vec(), &longpole_wire::Limits::default(), &mut batch).unwrap();
    receiver.forward_span(&batch.spans[0]);
    let got: Vec<_> = (0..2)
        .map(|_| {
            let (head, body) = received.recv_timeout(SOON).unwrap();
            assert!(head.contains("content-type: application/x-protobuf"), "{head}");
            ExportTraceServiceRequest::decode(&body[..]).unwrap()
        })
        .collect();
    let mut names = names_of(&got);
    names.sort();
    assert_eq!(names, ["from zipkin", "our own"]);
    assert_eq!(receiver.finish(SOON), []);
}

#[test]
fn one_run_inside_another_hands_its_spans_on_to_it() {
    for protocol in [ForwardProtocol::Http, ForwardProtocol::Grpc] {
        let memory = Memory::default();
        let outer = Receiver::start(ReceiverOptions::default(), Box::new(memory.clone())).unwrap();
        let url = match protocol {
            ForwardProtocol::Http => format!("{}/v1/traces", outer.endpoint()),
            _ => outer.endpoint(),
        };
        let inner = receiver_that_forwards(target(&url, protocol));
        let body = spans("inner").encode_to_vec();
        assert_eq!(post(inner.port(), PROTOBUF, &body), 200);
        assert_eq!(inner.finish(SOON), []);
        assert_eq!(outer.finish(SOON), []);
        assert_eq!(*memory.0.lock().unwrap(), [body]);
    }
}
