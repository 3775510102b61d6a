//! Copies for the user's own endpoint: real collectors (another receiver, tonic's server), and ones that are dead, deaf,
//! stalled or unwilling.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use longpole_model::{Loss, LossKind};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tonic::codec::CompressionEncoding;

use super::*;
use crate::receive::{Keep, KeepError, Receiver, ReceiverHandle, ReceiverOptions};

const SOON: Duration = Duration::from_secs(60);

struct Discard;

impl Keep for Discard {
    fn traces(&mut self, _: &[u8], _: Encoding, _: Option<u32>) -> Result<(), KeepError> {
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
    Receiver::start(ReceiverOptions { forward: vec![target] }, Box::new(Discard)).unwrap()
}

fn spans(name: &str) -> ExportTraceServiceRequest {
    let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], name: name.to_owned(), ..Span::default() };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

/// Sends one request over HTTP and gives the status of the answer.
fn post(port: u16, headers: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!("POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

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
            write!(stream, "HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
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
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for protocol in [ForwardProtocol::Http, ForwardProtocol::Grpc] {
        let receiver = receiver_that_forwards(target(&format!("http://{unused}"), protocol));
        for _ in 0..10 {
            assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
        }
        let losses = failed(&receiver.finish(Duration::from_millis(50)));
        let [(10, reason)] = &losses[..] else { panic!("{losses:?}") };
        assert!(reason.starts_with(&format!("http://{unused} did not take them before longpole ended: ")), "{reason}");
        assert!(reason.contains("Connection refused"), "{reason}");
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
    assert_eq!(losses[1], (2, format!("{url} takes less than the command sends: the queue of 32 MiB is full")));
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

const CERTIFICATE: &[u8] = include_bytes!("testdata/localhost.cert.pem");
const KEY: &[u8] = include_bytes!("testdata/localhost.key.pem");

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

/// A gRPC collector made by tonic that gives these answers, one after the other, and remembers what it got.
#[derive(Clone, Default)]
struct GrpcCollector {
    answers: Arc<Mutex<Vec<tonic::Status>>>,
    got: Arc<Mutex<Vec<(ExportTraceServiceRequest, String)>>>,
}

#[tonic::async_trait]
impl TraceService for GrpcCollector {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let key = request.metadata().get("x-api-key").map(|key| key.to_str().unwrap().to_owned()).unwrap_or_default();
        self.got.lock().unwrap().push((request.into_inner(), key));
        match self.answers.lock().unwrap().pop() {
            Some(status) => Err(status),
            None => Ok(tonic::Response::new(ExportTraceServiceResponse::default())),
        }
    }
}

async fn serve_grpc(collector: GrpcCollector) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = TraceServiceServer::new(collector).accept_compressed(CompressionEncoding::Gzip);
    let router = tonic::service::Routes::new(service).prepare().into_axum_router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grpc_endpoint_gets_what_came_over_grpc_and_over_http() {
    let collector = GrpcCollector::default();
    let busy = tonic::Status::unavailable("busy");
    *collector.answers.lock().unwrap() = vec![busy];
    let url = serve_grpc(collector.clone()).await;
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Grpc));
    let mut client = TraceServiceClient::connect(receiver.endpoint()).await.unwrap().send_compressed(CompressionEncoding::Gzip);
    client.export(spans("over grpc, compressed")).await.unwrap();
    let port = receiver.port();
    let losses = tokio::task::spawn_blocking(move || {
        assert_eq!(post(port, PROTOBUF, &spans("over http").encode_to_vec()), 200);
        receiver.finish(SOON)
    });
    drop(client);
    let losses = losses.await.unwrap();
    assert!(losses.iter().all(|loss| loss.kind != LossKind::ForwardFailed), "{losses:?}");
    let mut got: Vec<_> = collector
        .got
        .lock()
        .unwrap()
        .iter()
        .map(|(request, key)| (request.resource_spans[0].scope_spans[0].spans[0].name.clone(), key.clone()))
        .collect();
    got.sort();
    got.dedup();
    let key = "hunter2".to_owned();
    assert_eq!(got, [("over grpc, compressed".to_owned(), key.clone()), ("over http".to_owned(), key)]);
    assert_eq!(collector.got.lock().unwrap().len(), 3, "one was asked to come again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grpc_endpoint_that_is_full_is_asked_again_only_if_it_says_when() {
    let retry_info = {
        // google.rpc.Status { code: 8, details: [Any { "type.googleapis.com/google.rpc.RetryInfo", RetryInfo {} }] }
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let mut details = vec![0x08, 8, 0x1a, name.len() as u8 + 2, 0x0a, name.len() as u8];
        details.extend(name);
        tonic::Status::with_details(tonic::Code::ResourceExhausted, "later", details.into())
    };
    for (answer, attempts, losses) in [
        (retry_info, 2, vec![]),
        (tonic::Status::resource_exhausted("never"), 1, vec!["grpc status 8 never"]),
        (tonic::Status::unauthenticated("who are you?"), 1, vec!["grpc status 16 who are you?"]),
    ] {
        let collector = GrpcCollector::default();
        *collector.answers.lock().unwrap() = vec![answer];
        let url = serve_grpc(collector.clone()).await;
        let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Grpc));
        let found = tokio::task::spawn_blocking(move || {
            assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
            failed(&receiver.finish(SOON))
        });
        let expected: Vec<_> = losses.into_iter().map(|reason| (1, format!("{url}: {reason}"))).collect();
        assert_eq!(found.await.unwrap(), expected);
        assert_eq!(collector.got.lock().unwrap().len(), attempts);
    }
}

#[test]
fn one_run_inside_another_hands_its_spans_on_to_it() {
    for protocol in [ForwardProtocol::Http, ForwardProtocol::Grpc] {
        #[derive(Clone, Default)]
        struct Memory(Arc<Mutex<Vec<Vec<u8>>>>);
        impl Keep for Memory {
            fn traces(&mut self, bytes: &[u8], _: Encoding, _: Option<u32>) -> Result<(), KeepError> {
                self.0.lock().unwrap().push(bytes.to_vec());
                Ok(())
            }
        }
        let memory = Memory::default();
        let outer = Receiver::start(ReceiverOptions::default(), Box::new(memory.clone())).unwrap();
        let url = match protocol {
            ForwardProtocol::Http => format!("{}/v1/traces", outer.endpoint()),
            ForwardProtocol::Grpc => outer.endpoint(),
        };
        let inner = receiver_that_forwards(target(&url, protocol));
        let body = spans("inner").encode_to_vec();
        assert_eq!(post(inner.port(), PROTOBUF, &body), 200);
        assert_eq!(inner.finish(SOON), []);
        assert_eq!(outer.finish(SOON), []);
        assert_eq!(*memory.0.lock().unwrap(), [body]);
    }
}
