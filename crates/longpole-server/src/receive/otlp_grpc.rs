//! OTLP over gRPC, the unary `Export` of four services, `PostSpans` of Jaeger's collector and `Push` of Pyroscope's pusher, by hand.
//!
//! | status | when | retried by clients |
//! |---|---|---|
//! | `OK` | kept; `partial_success` where spans were rejected | no |
//! | `INVALID_ARGUMENT` | undecodable, with the reason | no |
//! | `RESOURCE_EXHAUSTED` | too large, as sent or after decompression | no, as there is no `RetryInfo` |
//! | `RESOURCE_EXHAUSTED` with `RetryInfo` | memory is short | yes |
//! | `UNIMPLEMENTED` | unknown service, method or compression | no |
//! | `INTERNAL` | not one whole gRPC message | no |
//! | `PERMISSION_DENIED` | of somebody who may not send: another user, a web page ([`refusal`](super::refusal), [`allowed_senders`](super::allowed_senders)) | no |
//! | `DEADLINE_EXCEEDED` | the message came to a halt, or nearly | yes |
//! | `UNAVAILABLE` | could not be kept | yes |

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use longpole_wire::otlp::{PartialSuccess, encode_response};
use longpole_wire::pyroscope::Codec;

use super::body::{self, BodyError};
use super::connection::Connection;
use super::job::{Content, JaegerFormat, ProfileRequest, Verdict};
use super::pyroscope;
use super::request_context::RequestContext;
use crate::answer::AnswerBody;
use crate::otlp_request::grpc::{code, path_of};
use crate::otlp_request::grpc_call::{Refusal, check_message_type, compression_of, not_a_call, respond, unframe};
use crate::otlp_request::{CameBy, Compression, Encoding, Signal};

/// Answers one request.
pub(super) async fn answer(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<AnswerBody> {
    match not_a_call(&request) {
        Some(answer) => answer,
        None => respond(take(context, connection, request).await),
    }
}

async fn take(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Result<Vec<u8>, Refusal> {
    let (method, compression) = inspect(&request).inspect_err(|refusal| context.refused_of(connection, &refusal.message))?;
    let charged = body::read(request.into_body(), &context.memory, connection).await.map_err(|error| {
        context.refused_of(connection, &error.message());
        let refusal = |code| Refusal::new(code, error.message());
        match error {
            BodyError::Busy { retry_after_secs, .. } => refusal(code::RESOURCE_EXHAUSTED).retry_after(retry_after_secs),
            BodyError::TooLarge(_) => refusal(code::RESOURCE_EXHAUSTED),
            BodyError::Cut => refusal(code::UNAVAILABLE),
            BodyError::TooSlow => refusal(code::DEADLINE_EXCEEDED),
            BodyError::Broken(_) => refusal(code::INTERNAL),
        }
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
    let content = match method {
        CollectorMethod::Export(signal) => Content::Otlp { signal, encoding: Encoding::Protobuf, came_by: CameBy::Grpc },
        CollectorMethod::PostSpans => Content::Jaeger(JaegerFormat::Protobuf),
        CollectorMethod::Push => Content::Profiles(ProfileRequest::Push(Codec::Protobuf)),
    };
    match (context.take(content, compression, body, connection).await, method) {
        (Verdict::Kept { .. }, CollectorMethod::PostSpans | CollectorMethod::Push) => Ok(Vec::new()),
        (Verdict::Kept { rejected: 0, .. }, CollectorMethod::Export(signal)) => Ok(encode_response(signal, None, Encoding::Protobuf)),
        (Verdict::Kept { rejected, message }, CollectorMethod::Export(signal)) => {
            Ok(encode_response(signal, Some(PartialSuccess { rejected, message: &message }), Encoding::Protobuf))
        }
        (refused, _) => Err(refusal_of(refused)),
    }
}

/// The status of a request that is not kept.
fn refusal_of(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Undecodable(reason) => Refusal::new(code::INVALID_ARGUMENT, reason),
        // Without RetryInfo, it says that no retry helps.
        Verdict::TooLarge(reason) | Verdict::NeverKept(reason) => Refusal::new(code::RESOURCE_EXHAUSTED, reason),
        Verdict::NotKept(reason) => Refusal::new(code::UNAVAILABLE, reason),
        Verdict::Unproven(reason) => Refusal::new(code::PERMISSION_DENIED, reason),
        Verdict::Kept { message, .. } => Refusal::new(code::INTERNAL, message),
    }
}

/// What a collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CollectorMethod {
    /// `Export`, by OpenTelemetry.
    Export(Signal),
    /// `PostSpans`, by Jaeger.
    PostSpans,
    /// `Push`, by Pyroscope.
    Push,
}

/// Path of `PostSpans`.
const POST_SPANS: &str = "/jaeger.api_v2.CollectorService/PostSpans";

fn method_of(path: &str) -> Option<CollectorMethod> {
    if path == POST_SPANS {
        return Some(CollectorMethod::PostSpans);
    }
    if path == pyroscope::PUSH {
        return Some(CollectorMethod::Push);
    }
    let signals = [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles];
    signals.into_iter().find(|signal| path_of(*signal) == path).map(CollectorMethod::Export)
}

/// Whether a call is one that a collector answers.
pub(super) fn is_for(request: &Request<Incoming>) -> bool {
    method_of(request.uri().path()).is_some()
}

fn inspect(request: &Request<Incoming>) -> Result<(CollectorMethod, Compression), Refusal> {
    let path = request.uri().path();
    let Some(method) = method_of(path) else {
        return Err(Refusal::new(code::UNIMPLEMENTED, format!("unknown method {path}: this is an OpenTelemetry receiver")));
    };
    check_message_type(request.headers())?;
    Ok((method, compression_of(request.headers())?))
}
