//! The head of a request, before anything else of it: how large it may be, and whose memory it takes.
//!
//! A stream of HTTP/2 holds its decoded head for as long as its body takes. One byte of a field takes some hundred bytes then, and a client may
//! have thousands of streams.

use http::{Request, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::otlp_http;
use super::request_context::RequestContext;
use crate::answer::AnswerBody;
use crate::limits::{HEAD_FIELDS_MAX, HEAD_UNCHARGED_BYTES_MAX, URI_BYTES_MAX};
use crate::otlp_request::grpc::code;
use crate::otlp_request::grpc_call;

/// The losses of refused requests.
const TOO_LARGE: &str = "requests with too large a head";
const NO_MEMORY: &str = "requests whose head longpole had no memory for";

/// What a field takes beside its characters, about.
const FIELD_BYTES: usize = 128;

/// The memory of a head, taken from that of bodies unless it is small; or the answer to a request whose head is too large.
pub(super) fn take<B>(request: &Request<B>, context: &RequestContext) -> Result<Option<OwnedSemaphorePermit>, Box<Response<AnswerBody>>> {
    let (fields, uri) = (request.headers().len(), request.uri());
    let uri_bytes = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let refused = |status, code, message: &str| {
        context.refused(if status == StatusCode::SERVICE_UNAVAILABLE { NO_MEMORY } else { TOO_LARGE });
        if grpc_call::is_grpc(request) {
            return Err(Box::new(grpc_call::respond(Err(grpc_call::Refusal::new(code, message)))));
        }
        Err(Box::new(otlp_http::refuse(request, status, code, message)))
    };
    if fields > HEAD_FIELDS_MAX {
        let message = format!("the head has {fields} fields: at most {HEAD_FIELDS_MAX} are read");
        return refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, code::RESOURCE_EXHAUSTED, &message);
    }
    if uri_bytes > URI_BYTES_MAX {
        let message = format!("the address has {} KiB: at most {} are read", uri_bytes >> 10, URI_BYTES_MAX >> 10);
        return refused(StatusCode::URI_TOO_LONG, code::RESOURCE_EXHAUSTED, &message);
    }
    let texts: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let bytes = texts + uri_bytes + fields * FIELD_BYTES;
    if bytes <= HEAD_UNCHARGED_BYTES_MAX {
        return Ok(None);
    }
    match context.memory_of(bytes) {
        Some(memory) => Ok(Some(memory)),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, code::UNAVAILABLE, "no memory for the head of this request: try again"),
    }
}
