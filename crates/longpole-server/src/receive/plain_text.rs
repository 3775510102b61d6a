//! Doors whose answers are plain text: those of Zipkin and of Jaeger's Thrift.
//!
//! | answer | when | retried by clients |
//! |---|---|---|
//! | 202, empty | kept | no |
//! | 400, text | undecodable, with the reason | no |
//! | 403, JSON | of somebody who may not send: another user, a web page ([`refusal`](super::refusal), [`allowed_senders`](super::allowed_senders)) | no |
//! | 408, text | the body came to a halt, or nearly | no |
//! | 413, text | too large, as sent or after decompression | no |
//! | 415, text | unknown content type or encoding | no |
//! | 429, text | memory is short; `Retry-After` | by some |
//! | 503, text | could not be kept; `Retry-After` | by some |

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::body::{self, BodyError};
use super::connection::Connection;
use super::job::{Content, Verdict};
use super::request_context::RequestContext;
use crate::answer::AnswerBody;
use crate::otlp_request::{Compression, shortened};

/// A request at one of these doors.
pub(super) struct TextRequest {
    pub(super) request: Request<Incoming>,
    /// What it carries.
    pub(super) content: Content,
    /// What it may say that it carries; anything if there are none.
    pub(super) content_types: &'static [&'static str],
}

/// The value of `Content-Type`.
pub(super) fn content_type(request: &Request<Incoming>) -> Option<String> {
    request.headers().get(CONTENT_TYPE).map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The content type of a text.
pub(super) const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: TextRequest) -> Response<AnswerBody> {
    let (status, text, retry_after_secs) = match take(context, connection, request).await {
        Ok(()) => (StatusCode::ACCEPTED, String::new(), None),
        Err(Refused { status, text, retry_after_secs }) => (status, text, retry_after_secs),
    };
    let media_type = (!text.is_empty()).then_some(MEDIA_TYPE);
    response(status, text, media_type, retry_after_secs)
}

/// An answer of one piece.
pub(super) fn response(
    status: StatusCode,
    body: String,
    media_type: Option<&'static str>,
    retry_after_secs: Option<u64>,
) -> Response<AnswerBody> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = status;
    if let Some(media_type) = media_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    if let Some(secs) = retry_after_secs {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    response
}

/// A request that is not kept.
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) text: String,
    /// When it may come again.
    pub(super) retry_after_secs: Option<u64>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, text: String) -> Refused {
        let text = shortened(text);
        Refused { status, text, retry_after_secs: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1) }
    }
}

/// Keeps what one request carries.
pub(super) async fn take(context: &RequestContext, connection: &Arc<Connection>, request: TextRequest) -> Result<(), Refused> {
    let TextRequest { request, content, content_types } = request;
    let found = request.headers().get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let found = found.unwrap_or_default();
    let Some(compression) = Compression::from_header(&found) else {
        let message = format!("content encoding {found}: expected gzip, deflate, zstd or identity");
        context.refused(&message);
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    };
    let content_type = content_type(&request);
    let media_type = content_type.as_deref().map(|text| text.split(';').next().unwrap_or_default().trim());
    let takes_any = content_types.is_empty();
    if let Some(media_type) = media_type.filter(|found| !takes_any && !content_types.iter().any(|known| found.eq_ignore_ascii_case(known)))
    {
        let message = format!("content type {media_type}: expected {}", content_types.join(", "));
        context.refused(&message);
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let charged = body::read(request.into_body(), &context.memory, connection).await.map_err(|error| {
        context.refused(&error.message());
        let status = match error {
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            BodyError::Cut => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken(_) => StatusCode::BAD_REQUEST,
        };
        let refused = Refused::new(status, error.message());
        match error {
            BodyError::Busy { retry_after_secs, .. } => Refused { retry_after_secs: Some(retry_after_secs), ..refused },
            _ => refused,
        }
    })?;
    match context.take(content, compression, charged.bytes.clone(), connection).await {
        // The format has no word for a part of a request; what was rejected is counted.
        Verdict::Kept { .. } => Ok(()),
        Verdict::Undecodable(reason) => Err(Refused::new(StatusCode::BAD_REQUEST, reason)),
        Verdict::TooLarge(reason) => Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, reason)),
        Verdict::NotKept(reason) => Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, reason)),
        Verdict::NeverKept(reason) => Err(Refused::new(StatusCode::INSUFFICIENT_STORAGE, reason)),
        Verdict::Unproven(reason) => Err(Refused::new(StatusCode::FORBIDDEN, reason)),
    }
}
