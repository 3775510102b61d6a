//! OTLP over HTTP: `POST /v1/traces`, `/v1/metrics`, `/v1/logs`, `/v1development/profiles` with protobuf or JSON.
//!
//! | answer | when | retried by clients |
//! |---|---|---|
//! | 200 | kept; `partial_success` where spans were rejected, or log records of spans could not be kept | no |
//! | 400 | undecodable, with the reason | no |
//! | 403 | of somebody who may not send: another user, a web page ([`refusal`](super::refusal), [`allowed_senders`](super::allowed_senders)) | no |
//! | 404 405 415 | unknown path, not POST, unknown content type or encoding | no |
//! | 408 | the body came to a halt, or nearly | no |
//! | 413 | too large, as sent or after decompression | no |
//! | 429 | memory is short; `Retry-After` | yes |
//! | 503 | could not be kept; `Retry-After` | yes |
//!
//! The body of an error is a `google.rpc.Status` in the request's own encoding.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use longpole_wire::otlp::{PartialSuccess, encode_response, encode_status};

use super::body::{self, BodyError};
use super::connection::Connection;
use super::job::{Content, Verdict};
use super::request_context::RequestContext;
use super::zipkin;
use crate::answer::AnswerBody;
use crate::otlp_request::grpc::code;
use crate::otlp_request::{CameBy, Compression, Encoding, Signal, shortened};

/// Seconds after which a client may come again.
const RETRY_AFTER_SECS: HeaderValue = HeaderValue::from_static("1");

/// What is wrong with a request, before or after its body was read.
struct Refusal {
    status: StatusCode,
    code: i32,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        Refusal { status, code, message: shortened(message.into()), header: None }
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    fn unavailable(message: String) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::UNAVAILABLE, message).with(RETRY_AFTER, RETRY_AFTER_SECS)
    }
}

/// Whether the path is one of OTLP's.
pub(super) fn is_for(request: &Request<Incoming>) -> bool {
    signal_of(request.uri().path()).is_some()
}

fn signal_of(path: &str) -> Option<Signal> {
    match path {
        "/v1/traces" => Some(Signal::Traces),
        "/v1/metrics" => Some(Signal::Metrics),
        "/v1/logs" => Some(Signal::Logs),
        "/v1development/profiles" => Some(Signal::Profiles),
        _ => None,
    }
}

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<AnswerBody> {
    let encoding = encoding_of(request.headers());
    match take(context, connection, request, encoding).await {
        Ok(body) => respond(StatusCode::OK, encoding.unwrap_or(Encoding::Json), body, None),
        // Where the request has no encoding that we know, people can read JSON.
        Err(refusal) => {
            let encoding = encoding.unwrap_or(Encoding::Json);
            respond(refusal.status, encoding, encode_status(refusal.code, &refusal.message, encoding), refusal.header)
        }
    }
}

/// The answer to a request that is not looked into.
pub(super) fn refuse<B>(request: &Request<B>, status: StatusCode, code: i32, message: &str) -> Response<AnswerBody> {
    let encoding = encoding_of(request.headers()).unwrap_or(Encoding::Json);
    respond(status, encoding, encode_status(code, message, encoding), None)
}

async fn take(
    context: &RequestContext,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
    encoding: Option<Encoding>,
) -> Result<Vec<u8>, Refusal> {
    let (signal, encoding, compression) =
        inspect(&request, encoding).inspect_err(|refusal| context.refused_of(connection, &refusal.message))?;
    let charged = body::read(request.into_body(), &context.memory, connection).await.map_err(|error| {
        context.refused_of(connection, &error.message());
        match error {
            BodyError::TooLarge(_) => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, code::RESOURCE_EXHAUSTED, error.message()),
            BodyError::Busy { retry_after_secs, .. } => {
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, code::RESOURCE_EXHAUSTED, error.message())
                    .with(RETRY_AFTER, HeaderValue::from(retry_after_secs))
            }
            BodyError::Cut => Refusal::unavailable(error.message()),
            BodyError::TooSlow => Refusal::new(StatusCode::REQUEST_TIMEOUT, code::DEADLINE_EXCEEDED, error.message()),
            BodyError::Broken(_) => Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_ARGUMENT, error.message()),
        }
    })?;
    let content = Content::Otlp { signal, encoding, came_by: CameBy::Http };
    match context.take(content, compression, charged.bytes.clone(), connection).await {
        Verdict::Kept { rejected: 0, .. } => Ok(encode_response(signal, None, encoding)),
        Verdict::Kept { rejected, message } => Ok(encode_response(signal, Some(PartialSuccess { rejected, message: &message }), encoding)),
        Verdict::Undecodable(reason) => Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_ARGUMENT, reason)),
        Verdict::TooLarge(reason) => Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, code::RESOURCE_EXHAUSTED, reason)),
        Verdict::NotKept(reason) => Err(Refusal::unavailable(reason)),
        Verdict::NeverKept(reason) => Err(Refusal::new(StatusCode::INSUFFICIENT_STORAGE, code::RESOURCE_EXHAUSTED, reason)),
        Verdict::Unproven(reason) => Err(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, reason)),
    }
}

/// What the head says, or why it is refused.
fn inspect(request: &Request<Incoming>, encoding: Option<Encoding>) -> Result<(Signal, Encoding, Compression), Refusal> {
    let path = request.uri().path();
    let Some(signal) = signal_of(path) else {
        let message = format!(
            "unknown path {path}: expected /v1/traces, /v1/metrics or /v1/logs of OpenTelemetry, or POST to {} or {} of Zipkin",
            zipkin::PATHS[0],
            zipkin::PATHS[1]
        );
        return Err(Refusal::new(StatusCode::NOT_FOUND, code::NOT_FOUND, message));
    };
    if request.method() != Method::POST {
        let message = format!("method {} of {path}: expected POST", request.method());
        return Err(
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, code::UNIMPLEMENTED, message).with(ALLOW, HeaderValue::from_static("POST"))
        );
    }
    let header = |name: HeaderName| request.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let Some(encoding) = encoding else {
        let found = header(CONTENT_TYPE).unwrap_or("none".into());
        let message = format!("content type {found}: expected application/x-protobuf or application/json");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::INVALID_ARGUMENT, message));
    };
    let found = header(CONTENT_ENCODING).unwrap_or_default();
    let Some(compression) = Compression::from_header(&found) else {
        let message = format!("content encoding {found}: expected gzip, deflate, zstd or identity");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::INVALID_ARGUMENT, message)
            .with(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, zstd, identity")));
    };
    Ok((signal, encoding, compression))
}

fn encoding_of(headers: &HeaderMap) -> Option<Encoding> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    match value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-protobuf" | "application/protobuf" => Some(Encoding::Protobuf),
        "application/json" => Some(Encoding::Json),
        _ => None,
    }
}

fn respond(status: StatusCode, encoding: Encoding, body: Vec<u8>, header: Option<(HeaderName, HeaderValue)>) -> Response<AnswerBody> {
    let content_type = match encoding {
        Encoding::Protobuf => "application/x-protobuf",
        Encoding::Json => "application/json",
    };
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().extend(header);
    response
}
