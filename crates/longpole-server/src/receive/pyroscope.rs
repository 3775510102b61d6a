//! Profiles as Pyroscope's clients push them: `push.v1.PusherService/Push` by the Connect protocol, and the older `/ingest`.
//!
//! | answer | when | retried by clients |
//! |---|---|---|
//! | 200, an empty message or nothing | kept | no |
//! | 400 `invalid_argument` | undecodable, with the reason | no |
//! | 413 `invalid_argument` | too large, as sent or after decompression | no |
//! | 415 `invalid_argument` | unknown content type or encoding | no |
//! | 429 `resource_exhausted` | memory is short; `Retry-After` | yes |
//! | 503 `unavailable` | could not be kept; `Retry-After` | yes |
//!
//! Errors of `Push` are a JSON object with `code` and `message`; those of `/ingest` are text.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use longpole_wire::pyroscope::ingest::IngestParameters;
use longpole_wire::pyroscope::{Codec, push};

use super::connection::Connection;
use super::job::{Content, ProfileRequest};
use super::multipart;
use super::plain_text::{self, Refused, TextRequest, content_type};
use super::request_context::RequestContext;
use crate::answer::AnswerBody;
use crate::connect_protocol::{self, codec_of};
use crate::query_parameters::Parameters;

/// Where clients of the Connect protocol post to; gRPC calls the same.
pub(super) const PUSH: &str = "/push.v1.PusherService/Push";

/// Where older clients post to.
const INGEST: [&str; 2] = ["/ingest", "/pyroscope/ingest"];

/// Whether a request is one of these.
pub(super) fn is_for<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    request.method() == Method::POST && (path == PUSH || INGEST.contains(&path))
}

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<AnswerBody> {
    let is_push = request.uri().path() == PUSH;
    let codec = codec_of(content_type(&request).as_deref());
    let taken = take(context, connection, request, codec).await;
    let (status, body, media_type, retry_after_secs) = match &taken {
        Ok(()) if is_push => {
            let codec = codec.unwrap_or(Codec::Protobuf);
            (StatusCode::OK, push::response(codec).to_owned(), connect_protocol::media_type(codec), None)
        }
        Ok(()) => (StatusCode::OK, String::new(), plain_text::MEDIA_TYPE, None),
        Err(refused) if is_push => {
            let body = connect_protocol::error_body(refused.status, &refused.text);
            (refused.status, body, connect_protocol::media_type(Codec::Json), refused.retry_after_secs)
        }
        Err(refused) => (refused.status, refused.text.clone(), plain_text::MEDIA_TYPE, refused.retry_after_secs),
    };
    plain_text::response(status, body, Some(media_type), retry_after_secs)
}

/// What a request carries, by its head.
fn content_of(request: &Request<Incoming>, codec: Option<Codec>) -> Result<ProfileRequest, Refused> {
    let content_type = content_type(request);
    if request.uri().path() == PUSH {
        let unknown = || {
            let found = content_type.as_deref().unwrap_or("none");
            let message = format!("content type {found}: expected application/proto or application/json");
            Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        };
        return codec.map(ProfileRequest::Push).ok_or_else(unknown);
    }
    let bad = |error: String| Refused::new(StatusCode::BAD_REQUEST, error);
    let parameters = Parameters::of(request.uri().query()).map_err(bad)?;
    let parameters = IngestParameters::parse(parameters.pairs(), content_type.as_deref()).map_err(|error| bad(error.to_string()))?;
    let boundary = multipart::boundary_of(content_type.as_deref());
    Ok(ProfileRequest::Ingest { parameters: Box::new(parameters), boundary })
}

async fn take(
    context: &RequestContext,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
    codec: Option<Codec>,
) -> Result<(), Refused> {
    let content = content_of(&request, codec).inspect_err(|refused| context.refused(&refused.text))?;
    plain_text::take(context, connection, TextRequest { request, content: Content::Profiles(content), content_types: &[] }).await
}
