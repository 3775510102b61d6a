//! OTLP over gRPC: the unary `Export` of three services, by hand. A gRPC message is
//!
//! ```text
//! 00 00 00 01 2c  …300 bytes…      not compressed (0), length 300 in big endian, message
//! ```
//!
//! and the outcome stands in the trailers (`grpc-status: 0`), or, where there is no message, in the headers alone.
//!
//! | status | when | retried by clients |
//! |---|---|---|
//! | `OK` | kept; `partial_success` where spans were rejected | no |
//! | `INVALID_ARGUMENT` | undecodable, with the reason | no |
//! | `RESOURCE_EXHAUSTED` | too large, as sent or after decompression | no, as there is no `RetryInfo` |
//! | `UNIMPLEMENTED` | unknown service, method or compression | no |
//! | `INTERNAL` | not one whole gRPC message | no |
//! | `PERMISSION_DENIED` | of somebody who may not send: another user, a web page ([`refusal`](super::refusal), [`allowed_senders`](super::allowed_senders)) | no |
//! | `DEADLINE_EXCEEDED` | the message came to a halt, or nearly | yes |
//! | `UNAVAILABLE` | could not be kept | yes |

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use longpole_wire::otlp::{PartialSuccess, encode_response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::answer::AnswerBody;
use super::body::{self, BodyError};
use super::connection::Connection;
use super::job::{Content, Verdict};
use super::request_context::RequestContext;
use crate::otlp_request::grpc::{GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, PREFIX_BYTES, code, frame, path_of};
use crate::otlp_request::{CameBy, Compression, Encoding, Signal};

const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Whether this is a gRPC request, by its content type.
pub(super) fn is_grpc(request: &Request<Incoming>) -> bool {
    request.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// What is wrong with a request.
pub(super) struct Refusal {
    code: i32,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into() }
    }
}

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<AnswerBody> {
    match not_a_call(&request) {
        Some(answer) => answer,
        None => respond(take(context, connection, request).await),
    }
}

/// The answer to what is no gRPC call: without HTTP/2 there are no trailers to put an outcome in, and by gRPC's specification
/// every call is a POST.
pub(super) fn not_a_call(request: &Request<Incoming>) -> Option<Response<AnswerBody>> {
    if request.version() != Version::HTTP_2 {
        return Some(bare(StatusCode::HTTP_VERSION_NOT_SUPPORTED, HeaderMap::new()));
    }
    let allow_post = || HeaderMap::from_iter([(ALLOW, HeaderValue::from_static("POST"))]);
    (request.method() != Method::POST).then(|| bare(StatusCode::METHOD_NOT_ALLOWED, allow_post()))
}

/// The outcome of a call: its one message, or its status.
pub(super) fn respond(outcome: Result<Vec<u8>, Refusal>) -> Response<AnswerBody> {
    match outcome {
        Ok(message) => {
            let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from(0))]);
            let body = Full::new(frame(&message, false)).with_trailers(async move { Some(Ok::<_, Infallible>(trailers)) });
            let mut response = Response::new(body.boxed_unsync());
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            response
        }
        Err(refusal) => {
            let message = HeaderValue::from_str(&utf8_percent_encode(&refusal.message, GRPC_MESSAGE_ESCAPES).to_string())
                .unwrap_or(HeaderValue::from_static(""));
            bare(
                StatusCode::OK,
                HeaderMap::from_iter([
                    (CONTENT_TYPE, GRPC),
                    (GRPC_STATUS, HeaderValue::from(refusal.code)),
                    (GRPC_MESSAGE, message),
                    (GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity,gzip,deflate")),
                ]),
            )
        }
    }
}

fn bare(status: StatusCode, headers: HeaderMap) -> Response<AnswerBody> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

async fn take(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Result<Vec<u8>, Refusal> {
    let (signal, compression) = inspect(&request).inspect_err(|refusal| context.refused_of(connection, &refusal.message))?;
    let charged = body::read(request.into_body(), &context.bodies, connection).await.map_err(|error| {
        context.refused_of(connection, &error.message());
        let code = match error {
            BodyError::TooLarge(_) => code::RESOURCE_EXHAUSTED,
            BodyError::Busy | BodyError::Cut => code::UNAVAILABLE,
            BodyError::TooSlow => code::DEADLINE_EXCEEDED,
            BodyError::Broken(_) => code::INTERNAL,
        };
        Refusal::new(code, error.message())
    })?;
    let (compressed, body) = unframe(&charged.bytes).inspect_err(|refusal| context.refused_of(connection, &refusal.message))?;
    let compression = match (compressed, compression) {
        (false, _) => Compression::Identity,
        (true, Compression::Identity) => {
            let message = "gRPC message is compressed, but has no grpc-encoding";
            context.refused_of(connection, message);
            return Err(Refusal::new(code::INTERNAL, message));
        }
        (true, compression) => compression,
    };
    let content = Content::Otlp { signal, encoding: Encoding::Protobuf, came_by: CameBy::Grpc };
    match context.take(content, compression, body, connection).await {
        Verdict::Kept { rejected: 0, .. } => Ok(encode_response(signal, None, Encoding::Protobuf)),
        Verdict::Kept { rejected, message } => {
            Ok(encode_response(signal, Some(PartialSuccess { rejected, message: &message }), Encoding::Protobuf))
        }
        Verdict::Undecodable(reason) => Err(Refusal::new(code::INVALID_ARGUMENT, reason)),
        // Without RetryInfo, it says that no retry helps.
        Verdict::TooLarge(reason) | Verdict::NeverKept(reason) => Err(Refusal::new(code::RESOURCE_EXHAUSTED, reason)),
        Verdict::NotKept(reason) => Err(Refusal::new(code::UNAVAILABLE, reason)),
        Verdict::Unproven(reason) => Err(Refusal::new(code::PERMISSION_DENIED, reason)),
    }
}

fn inspect(request: &Request<Incoming>) -> Result<(Signal, Compression), Refusal> {
    let path = request.uri().path();
    let Some(signal) =
        [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles].into_iter().find(|signal| path_of(*signal) == path)
    else {
        return Err(Refusal::new(code::UNIMPLEMENTED, format!("unknown method {path}: this is an OpenTelemetry receiver")));
    };
    check_message_type(request.headers())?;
    Ok((signal, compression_of(request.headers())?))
}

/// Messages are protobuf.
pub(super) fn check_message_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/grpc" | "application/grpc+proto" => Ok(()),
        _ => {
            let message = format!("content type {content_type}: expected application/grpc or application/grpc+proto");
            Err(Refusal::new(code::UNIMPLEMENTED, message))
        }
    }
}

/// How messages are compressed, where they are.
pub(super) fn compression_of(headers: &HeaderMap) -> Result<Compression, Refusal> {
    let found = headers.get(GRPC_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    Compression::from_header(&found)
        .ok_or_else(|| Refusal::new(code::UNIMPLEMENTED, format!("grpc encoding {found}: expected gzip, deflate or identity")))
}

/// The one message of a unary call, and whether it is compressed.
fn unframe(body: &Bytes) -> Result<(bool, Bytes), Refusal> {
    let broken = |message: String| Refusal::new(code::INTERNAL, message);
    let Some((prefix, rest)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(broken(format!("body of {} bytes is shorter than the prefix of a gRPC message", body.len())));
    };
    let [flag, length @ ..] = *prefix;
    let length = u32::from_be_bytes(length) as usize;
    if flag > 1 {
        return Err(broken(format!("flag {flag} of a gRPC message: expected 0 or 1")));
    }
    if length != rest.len() {
        return Err(broken(format!("gRPC message of {length} bytes in a body that holds {} bytes of it", rest.len())));
    }
    Ok((flag == 1, body.slice(PREFIX_BYTES..)))
}

/// What `grpc-message` escapes: `%`, and all but printable ASCII.
const GRPC_MESSAGE_ESCAPES: &AsciiSet = &CONTROLS.add(b'%');
