//! Zipkin over HTTP: a POST to the path of its second version or of its first.
//!
//! | answer | when | retried by clients |
//! |---|---|---|
//! | 202, empty | kept | no |
//! | 400, text | undecodable, with the reason | no |
//! | 403, JSON | of somebody who may not send: another user, a web page ([`refusal`](super::refusal), [`allowed_senders`](super::allowed_senders)) | no |
//! | 408, text | the body came to a halt, or nearly | no |
//! | 413, text | too large, as sent or after decompression | no |
//! | 415, text | unknown content type or encoding | no |
//! | 503, text | could not be kept; `Retry-After` | by some |
//!
//! Which of the four formats it is says the path, the content type and the first bytes together: Node's client posts v2 JSON to
//! the path of v1, and others leave out the content type.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::answer::AnswerBody;
use super::body::{self, BodyError};
use super::connection::Connection;
use super::job::{Content, Verdict};
use super::request_context::RequestContext;
use crate::otlp_request::Compression;

/// Where Zipkin's clients post to.
pub(super) const PATHS: [&str; 2] = ["/api/v2/spans", "/api/v1/spans"];

/// What a request may say it carries. A web page cannot send any of them to another site without asking first.
const CONTENT_TYPES: [&str; 5] =
    ["application/json", "application/x-protobuf", "application/protobuf", "application/x-thrift", "application/vnd.apache.thrift.binary"];

/// Whether a request is Zipkin's.
pub(super) fn is_for(request: &Request<Incoming>) -> bool {
    request.method() == Method::POST && PATHS.contains(&request.uri().path())
}

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<AnswerBody> {
    let (status, text) = match take(context, connection, request).await {
        Ok(()) => (StatusCode::ACCEPTED, String::new()),
        Err(refused) => refused,
    };
    let unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
    let has_text = !text.is_empty();
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    if has_text {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    if unavailable {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

async fn take(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Result<(), (StatusCode, String)> {
    let header = |name| request.headers().get(name).map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let found = header(CONTENT_ENCODING).unwrap_or_default();
    let Some(compression) = Compression::from_header(&found) else {
        let message = format!("content encoding {found}: expected gzip, deflate or identity");
        context.refused(&message);
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    };
    let content_type = header(CONTENT_TYPE);
    let media_type = content_type.as_deref().map(|text| text.split(';').next().unwrap_or_default().trim());
    if let Some(media_type) = media_type.filter(|found| !CONTENT_TYPES.iter().any(|known| found.eq_ignore_ascii_case(known))) {
        let message = format!("content type {media_type}: expected {}", CONTENT_TYPES.join(", "));
        context.refused(&message);
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let content = Content::Zipkin { path: request.uri().path().to_owned(), content_type };
    let charged = body::read(request.into_body(), &context.bodies, connection).await.map_err(|error| {
        context.refused(&error.message());
        let status = match error {
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Busy | BodyError::Cut => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken(_) => StatusCode::BAD_REQUEST,
        };
        (status, error.message())
    })?;
    match context.take(content, compression, charged.bytes.clone(), connection).await {
        // The format has no word for a part of a request; what was rejected is counted.
        Verdict::Kept { .. } => Ok(()),
        Verdict::Undecodable(reason) => Err((StatusCode::BAD_REQUEST, reason)),
        Verdict::TooLarge(reason) => Err((StatusCode::PAYLOAD_TOO_LARGE, reason)),
        Verdict::NotKept(reason) => Err((StatusCode::SERVICE_UNAVAILABLE, reason)),
        Verdict::NeverKept(reason) => Err((StatusCode::INSUFFICIENT_STORAGE, reason)),
        Verdict::Unproven(reason) => Err((StatusCode::FORBIDDEN, reason)),
    }
}
