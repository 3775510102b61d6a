//! gRPC endpoints of the user: collectors made by tonic.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use tonic::codec::CompressionEncoding;

use super::*;

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
    assert_eq!(collector.got.lock().unwrap().len(), 3, "the collector requested one retry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_grpc_endpoint_gets_a_retry_only_if_it_says_when() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_of_another_signal_for_a_grpc_endpoint_goes_by_http_and_is_counted_where_that_is_not_spoken() {
    let url = serve_grpc(GrpcCollector::default()).await;
    let logs = ForwardTarget { signal: Signal::Logs, ..target(&url, ForwardProtocol::Grpc) };
    let receiver = receiver_that_forwards(logs);
    let port = receiver.port();
    let body = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}},{"body":{"stringValue":"b"}}]}]}]}"#;
    let losses = tokio::task::spawn_blocking(move || {
        assert_eq!(post_to(port, "/v1/logs", "Content-Type: application/json\r\n", body), 200);
        receiver.finish(SOON).into_iter().filter(|loss| loss.kind == LossKind::ForwardFailed).collect::<Vec<_>>()
    });
    let losses = losses.await.unwrap();
    assert_eq!(failed(&losses), [(2, format!("{url}: speaks gRPC, but longpole sent them over HTTP"))]);

    // One that speaks both, as longpole does.
    let (both, received) = http_collector(&["200 OK"]);
    let logs = ForwardTarget { signal: Signal::Logs, ..target(both.trim_end_matches("/v1/traces"), ForwardProtocol::Grpc) };
    let receiver = receiver_that_forwards(logs);
    let port = receiver.port();
    let (head, losses) = tokio::task::spawn_blocking(move || {
        assert_eq!(post_to(port, "/v1/logs", "Content-Type: application/json\r\n", body), 200);
        let (head, got) = received.recv_timeout(SOON).unwrap();
        assert_eq!(got, body);
        (head, receiver.finish(SOON))
    })
    .await
    .unwrap();
    assert!(head.starts_with("post /v1/logs http/1.1"), "{head}");
    assert!(losses.iter().all(|loss| loss.kind != LossKind::ForwardFailed), "{losses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_protocol_what_came_over_grpc_goes_on_over_grpc() {
    let collector = GrpcCollector::default();
    let url = serve_grpc(collector.clone()).await + "/v1/traces";
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::AsReceived));
    let mut client = TraceServiceClient::connect(receiver.endpoint()).await.unwrap();
    client.export(spans("over grpc")).await.unwrap();
    drop(client);
    let losses = tokio::task::spawn_blocking(move || receiver.finish(SOON)).await.unwrap();
    assert!(losses.iter().all(|loss| loss.kind != LossKind::ForwardFailed), "{losses:?}");
    let got: Vec<_> = collector.got.lock().unwrap().iter().map(|(request, _)| request.clone()).collect();
    assert_eq!(names_of(&got), ["over grpc"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_goes_to_a_grpc_endpoint_in_protobuf() {
    let collector = GrpcCollector::default();
    let url = serve_grpc(collector.clone()).await;
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Grpc));
    let losses = tokio::task::spawn_blocking(move || {
        assert_eq!(post(receiver.port(), "Content-Type: application/json\r\n", &serde_json::to_vec(&spans("in json")).unwrap()), 200);
        receiver.finish(SOON)
    });
    assert_eq!(losses.await.unwrap(), []);
    let got: Vec<_> = collector.got.lock().unwrap().iter().map(|(request, _)| request.clone()).collect();
    assert_eq!(names_of(&got), ["in json"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grpc_endpoint_that_says_when_gets_a_retry_then() {
    let later = {
        // RetryInfo { retry_delay: 0.3 s } in an Any in a Status.
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let delay = [0x12, 8, 0x0a, 6, 0x10, 0x80, 0xc6, 0x86, 0x8f, 0x01];
        let mut details = vec![0x08, 8, 0x1a, (2 + name.len() + delay.len()) as u8, 0x0a, name.len() as u8];
        details.extend(name);
        details.extend(delay);
        tonic::Status::with_details(tonic::Code::ResourceExhausted, "later", details.into())
    };
    let collector = GrpcCollector::default();
    *collector.answers.lock().unwrap() = vec![later];
    let url = serve_grpc(collector.clone()).await;
    let receiver = receiver_that_forwards(target(&url, ForwardProtocol::Grpc));
    let (losses, took) = tokio::task::spawn_blocking(move || {
        assert_eq!(post(receiver.port(), PROTOBUF, &spans("a").encode_to_vec()), 200);
        let begun = Instant::now();
        (receiver.finish(SOON), begun.elapsed())
    })
    .await
    .unwrap();
    assert_eq!(losses, []);
    assert!(took > Duration::from_millis(250), "{took:?}");
}
