//! The stock exporter, whose connection and tasks live on a plain thread of their own.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::runtime::{Runtime, RuntimeChannel, Tokio};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::flow::Flow;
use crate::config::ExportConfig;
use crate::locks::lock;
use crate::options::Protocol;
use crate::transport::{grpc, http};
use crate::{own_threads, sys};

/// What stands for no limit where one must be named.
pub(super) const NO_LIMIT: Duration = Duration::from_secs(86_400);

/// Starts a plain thread that drives a runtime until the sender is dropped.
pub(super) fn start_station() -> std::io::Result<(Handle, oneshot::Sender<()>)> {
    let (stop, stopped) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_name(own_threads::NAME).build()?;
    let handle = runtime.handle().clone();
    let run = move || {
        own_threads::mark();
        // What the exporter does is not the program's, and would never end.
        let _suppressed = Context::enter_telemetry_suppressed_scope();
        let _ = runtime.block_on(stopped);
    };
    let thread = own_threads::builder();
    sys::with_signals_blocked(|| thread.spawn(run))?;
    Ok((handle, stop))
}

/// The stock exporter, over gRPC or over HTTP without a runtime.
pub(super) fn build_exporter(
    export: &ExportConfig,
    station: &Handle,
    unanswered: &Arc<Mutex<Option<String>>>,
) -> Result<OtlpExporter, String> {
    let timeout = export.request_timeout.unwrap_or(NO_LIMIT);
    // The connection's tasks belong to this runtime, whichever thread uses it.
    let _entered = station.enter();
    let built = match export.protocol {
        Protocol::Grpc => OtlpExporter::builder()
            .with_tonic()
            .with_channel(grpc::channel(export, Some(timeout))?)
            .with_timeout(timeout)
            .with_metadata(grpc::metadata(&export.headers))
            .build(),
        _ => OtlpExporter::builder()
            .with_http()
            .with_http_client(PlainHttp {
                agent: http::agent(export.tls.as_ref())?,
                timeout: export.request_timeout,
                unanswered: Arc::clone(unanswered),
            })
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(&export.url)
            .with_timeout(timeout)
            .with_headers(export.headers.iter().cloned().collect())
            .build(),
    };
    built.map_err(|error| error.to_string())
}

/// HTTP without a runtime under it, so that no feature of another crate decides which client is used.
#[derive(Debug)]
struct PlainHttp {
    agent: ureq::Agent,
    timeout: Option<Duration>,
    unanswered: Arc<Mutex<Option<String>>>,
}

impl PlainHttp {
    fn send(agent: &ureq::Agent, timeout: Option<Duration>, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut post = http::post(agent, parts.uri, timeout);
        for (name, value) in &parts.headers {
            post = post.header(name, value);
        }
        let mut answer = post.send(&body[..])?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.extend(answer.headers().clone());
        }
        Ok(response.body(Bytes::from(answer.body_mut().read_to_vec()?))?)
    }
}

impl HttpClient for PlainHttp {
    fn send_bytes<'client, 'call>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        let (agent, timeout, unanswered) = (self.agent.clone(), self.timeout, Arc::clone(&self.unanswered));
        Box::pin(async move {
            let answer = tokio::task::spawn_blocking(move || Self::send(&agent, timeout, request)).await?;
            *lock(&unanswered) = answer.as_ref().err().map(ToString::to_string);
            answer
        })
    }
}

/// The way of a batch to the collector: a task of our runtime, whoever asks for it.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) flow: Arc<Flow>,
    pub(super) station: Handle,
    pub(super) exporter: Arc<OtlpExporter>,
    /// `OTEL_BSP_EXPORT_TIMEOUT`.
    pub(super) limit: Option<Duration>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("url", &self.flow.url).finish_non_exhaustive()
    }
}

impl Way {
    pub(super) fn send(&self, batch: Vec<SpanData>, answered: impl FnOnce() + Send + 'static) {
        let Self { flow, exporter, limit, .. } = self.clone();
        let spans = batch.len();
        flow.depart(spans);
        self.station.spawn(async move {
            let sent = exporter.export(batch);
            let result = match limit {
                None => sent.await,
                Some(limit) => tokio::time::timeout(limit, sent).await.unwrap_or(Err(OTelSdkError::Timeout(limit))),
            };
            let why = |error: OTelSdkError| lock(&flow.unanswered).take().unwrap_or_else(|| error.to_string());
            let result = result.map_err(why);
            flow.arrive(spans, result);
            answered();
        });
    }
}

/// As an exporter it always succeeds: what fails is counted and told here, once per outage instead of once per batch.
impl SpanExporter for Way {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let (answer, answered) = oneshot::channel::<()>();
        self.send(batch, move || {
            let _ = answer.send(());
        });
        let _ = answered.await;
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }
}

/// OpenTelemetry's processor that is a task, on our runtime instead of the program's.
#[derive(Debug, Clone)]
pub(super) struct Station(pub(super) Handle);

impl Runtime for Station {
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        self.0.spawn(future);
    }

    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(duration)
    }
}

impl RuntimeChannel for Station {
    type Receiver<T: fmt::Debug + Send> = <Tokio as RuntimeChannel>::Receiver<T>;
    type Sender<T: fmt::Debug + Send> = <Tokio as RuntimeChannel>::Sender<T>;

    fn batch_message_channel<T: fmt::Debug + Send>(&self, capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        Tokio.batch_message_channel(capacity)
    }
}
