//! OTLP over gRPC, for a plain thread: `tonic` on a runtime of its own, which runs while a request is on its way. Nothing of it
//! is a task of the program's runtime, so no thread of the program has to run for a request to end.

use std::str::FromStr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use tokio::runtime::{Builder, Runtime};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use ureq::http::uri::PathAndQuery;

use super::answer::{Answer, USER_AGENT};
use crate::config::ExportConfig;
use crate::encode;

/// The method that takes spans.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

pub(crate) struct Grpc {
    runtime: Runtime,
    client: tonic::client::Grpc<Channel>,
    metadata: MetadataMap,
}

impl Grpc {
    pub(crate) fn new(config: &ExportConfig) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| format!("no runtime for gRPC: {error}"))?;
        let entered = runtime.enter();
        let client = tonic::client::Grpc::new(channel(config, None)?);
        drop(entered);
        Ok(Self { runtime, client, metadata: metadata(&config.headers) })
    }

    pub(crate) fn send(&mut self, body: &[u8], timeout: Option<Duration>) -> Answer {
        let mut request = Request::new(Bytes::copy_from_slice(body));
        *request.metadata_mut() = self.metadata.clone();
        let client = &mut self.client;
        let call = async {
            client.ready().await.map_err(|error| Status::unavailable(causes(&error)))?;
            client.unary(request, PathAndQuery::from_static(EXPORT), AsTheyAre).await
        };
        let answer = self.runtime.block_on(async {
            match timeout {
                None => call.await,
                Some(limit) => {
                    let late = |_| Err(Status::deadline_exceeded(format!("no answer within {limit:?}")));
                    tokio::time::timeout(limit, call).await.unwrap_or_else(late)
                }
            }
        });
        match answer {
            Ok(response) => Answer::Accepted { rejected: encode::rejected_spans(response.get_ref()) },
            Err(status) => {
                let why = match std::error::Error::source(&status) {
                    Some(source) => format!("{:?}: {}", status.code(), causes(source)),
                    None => format!("{:?}: {}", status.code(), status.message()),
                };
                match status.code() {
                    // The codes that OTLP says may be repeated.
                    Code::Cancelled
                    | Code::DeadlineExceeded
                    | Code::ResourceExhausted
                    | Code::Aborted
                    | Code::OutOfRange
                    | Code::Unavailable
                    | Code::DataLoss => Answer::NotNow { why, pause: None },
                    _ => Answer::Refused { why },
                }
            }
        }
    }
}

/// Port of a collector whose address names none, over TLS.
#[cfg(feature = "grpc-tls")]
const TLS_PORT: u16 = 443;

/// The way to the collector, which is gone when it is used. To be called inside of the runtime that it is used on.
pub(crate) fn channel(config: &ExportConfig, timeout: Option<Duration>) -> Result<Channel, String> {
    #[cfg(feature = "grpc-tls")]
    if let Some(files) = &config.tls {
        let dial = super::tls::Dial::new(files, TLS_PORT)?;
        let origin: tonic::transport::Uri = config.url.parse().map_err(|error| format!("{} is not an address: {error}", config.url))?;
        let authority = origin.authority().map(ToString::to_string).unwrap_or_default();
        let port = if origin.port().is_none() { format!(":{TLS_PORT}") } else { String::new() };
        // To tonic it is a plain one: whether tonic was built with TLS of its own is another crate's choice, and it would take over.
        let endpoint = endpoint(format!("http://{authority}{port}"), timeout)?.origin(origin);
        return Ok(endpoint.connect_with_connector_lazy(dial));
    }
    Ok(endpoint(config.url.clone(), timeout)?.connect_lazy())
}

/// A plain endpoint, with a limit for each request where there is to be one.
fn endpoint(url: String, timeout: Option<Duration>) -> Result<Endpoint, String> {
    let endpoint = Endpoint::from_shared(url).and_then(|endpoint| endpoint.user_agent(USER_AGENT));
    let endpoint = endpoint.map_err(|error| format!("no gRPC endpoint: {error}"))?;
    Ok(match timeout {
        Some(timeout) => endpoint.timeout(timeout),
        None => endpoint,
    })
}

/// An error with its causes; those of `tonic` say less than what is below them.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source()).take(8);
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

/// Headers as gRPC has them: names in lower case. The configuration has reported those that are not valid.
pub(crate) fn metadata(headers: &[(String, String)]) -> MetadataMap {
    let mut metadata = MetadataMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = AsciiMetadataKey::from_str(&name.to_ascii_lowercase());
        if let (Ok(name), Ok(value)) = (name, AsciiMetadataValue::try_from(value.as_str())) {
            metadata.insert(name, value);
        }
    }
    metadata
}

/// Messages that are bytes on both sides: they are encoded already.
struct AsTheyAre;

impl Codec for AsTheyAre {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AsTheyAre {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for AsTheyAre {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
