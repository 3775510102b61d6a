//! A collector that speaks gRPC, by the generated service; and one that takes connections and never says a word.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

#[derive(Clone, Default)]
struct Service(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// The collector; its thread ends with the test process.
pub(crate) struct GrpcCollector {
    pub(crate) endpoint: String,
    service: Service,
}

impl GrpcCollector {
    pub(crate) fn start() -> Self {
        let service = Service::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let entered = runtime.enter();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        drop(entered);
        let endpoint = format!("http://{}", incoming.local_addr().unwrap());
        let serve = Server::builder().add_service(TraceServiceServer::new(service.clone())).serve_with_incoming(incoming);
        std::thread::spawn(move || runtime.block_on(serve));
        Self { endpoint, service }
    }

    /// All spans that were received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.service.0.lock().unwrap().clone();
        let resource_spans = requests.into_iter().flat_map(|request| request.resource_spans);
        resource_spans.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

/// An address whose connections are taken and never answered, whatever is spoken.
pub(crate) fn silent_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        kept.extend(listener.incoming().flatten());
    });
    endpoint
}
