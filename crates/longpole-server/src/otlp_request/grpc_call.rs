//! Calls by gRPC, by hand. A message is
//!
//! ```text
//! 00 00 00 01 2c  …300 bytes…      not compressed (0), length 300 in big endian, message
//! ```
//!
//! and the outcome stands in the trailers (`grpc-status: 0`), or, where there is no message, in the headers alone.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Frame};
use longpole_wire::otlp::encode_retry_delay;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::grpc::{GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, GRPC_STATUS_DETAILS, PREFIX_BYTES, code, prefix};
use super::{Compression, shortened};
use crate::answer::AnswerBody;

const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Whether this is a gRPC request, by its content type.
pub(crate) fn is_grpc<B>(request: &Request<B>) -> bool {
    request.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// What is wrong with a request.
pub(crate) struct Refusal {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// Seconds after which the client may try again, if it may.
    retry_after_secs: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Refusal { code, message: shortened(message.into()), retry_after_secs: None }
    }

    /// The same to a client that may try again after this number of seconds. Clients try again after `RESOURCE_EXHAUSTED` only if it says so.
    pub(crate) fn retry_after(self, secs: u64) -> Self {
        Refusal { retry_after_secs: Some(secs), ..self }
    }
}

/// The answer to what is no gRPC call: without HTTP/2 there are no trailers to put an outcome in, and by gRPC's specification
/// every call is a POST.
pub(crate) fn not_a_call<B>(request: &Request<B>) -> Option<Response<AnswerBody>> {
    if request.version() != Version::HTTP_2 {
        return Some(bare(StatusCode::HTTP_VERSION_NOT_SUPPORTED, HeaderMap::new()));
    }
    let allow_post = || HeaderMap::from_iter([(ALLOW, HeaderValue::from_static("POST"))]);
    (request.method() != Method::POST).then(|| bare(StatusCode::METHOD_NOT_ALLOWED, allow_post()))
}

/// Messages as they were made, which may be gigabytes, and the outcome behind them.
#[derive(Debug)]
struct MessagesBody {
    parts: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for MessagesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.parts.pop_front().map(Frame::data).or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty() && self.trailers.is_none()
    }
}

/// The outcome of a unary call: its one message, or its status.
pub(crate) fn respond(outcome: Result<Vec<u8>, Refusal>) -> Response<AnswerBody> {
    respond_with_all(outcome.map(|message| vec![message]))
}

/// The outcome of a call: its messages, or its status.
pub(crate) fn respond_with_all(outcome: Result<Vec<Vec<u8>>, Refusal>) -> Response<AnswerBody> {
    match outcome {
        Ok(messages) => {
            let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from(0))]);
            let parts = |message: Vec<u8>| [Bytes::from_owner(prefix(message.len(), false)), Bytes::from(message)];
            let body = MessagesBody {
                parts: messages.into_iter().flat_map(parts).filter(|part| !part.is_empty()).collect(),
                trailers: Some(trailers),
            };
            let mut response = Response::new(body.boxed_unsync());
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            response
        }
        Err(refusal) => {
            let message = HeaderValue::from_str(&utf8_percent_encode(&refusal.message, GRPC_MESSAGE_ESCAPES).to_string())
                .unwrap_or(HeaderValue::from_static(""));
            let details = refusal.retry_after_secs.map(|secs| encode_retry_delay(refusal.code, &refusal.message, secs));
            let details = details.and_then(|details| HeaderValue::try_from(details).ok());
            let headers = [
                (CONTENT_TYPE, GRPC),
                (GRPC_STATUS, HeaderValue::from(refusal.code)),
                (GRPC_MESSAGE, message),
                (GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity,gzip,deflate,zstd")),
            ];
            bare(StatusCode::OK, headers.into_iter().chain(details.map(|details| (GRPC_STATUS_DETAILS, details))).collect())
        }
    }
}

fn bare(status: StatusCode, headers: HeaderMap) -> Response<AnswerBody> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Messages are protobuf.
pub(crate) fn check_message_type(headers: &HeaderMap) -> Result<(), Refusal> {
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
pub(crate) fn compression_of(headers: &HeaderMap) -> Result<Compression, Refusal> {
    let found = headers.get(GRPC_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    Compression::from_header(&found)
        .ok_or_else(|| Refusal::new(code::UNIMPLEMENTED, format!("grpc encoding {found}: expected gzip, deflate, zstd or identity")))
}

/// The one message of a unary call, and whether it is compressed.
pub(crate) fn unframe(body: &Bytes) -> Result<(bool, Bytes), Refusal> {
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
