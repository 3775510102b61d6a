//! The Pulumi engine's event stream: `pulumirpc.Events/StreamEvents`, which `--event-log tcp://…` speaks. One call for each
//! preview, update or destroy; a message for each event, one answer at the end.
//!
//! ```text
//! 00 00 00 01 2c   prefix of a gRPC message of 300 bytes
//!    0a a9 02 7b…   field 1: the event as JSON text
//! ```
//!
//! Between two messages the stream may be idle for hours. A message that has begun must go on as a body must.
//!
//! The engine sends while it works, so this reads as fast as it can, and what cannot be kept is counted. The answer, which
//! the engine waits for at its end, is given when every event of the stream stands in the log.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use longpole_model::LossKind;
use tokio::time::{Instant, sleep_until};

use super::super::body::BodyError;
use super::super::connection::{Connection, Keeping, OpenStream};
use super::super::job::{Content, Job};
use super::super::request_context::RequestContext;
use crate::answer::AnswerBody;
use crate::limits::{BODY_PROGRESS_BYTES, BODY_STALL_MAX, EVENT_BYTES_MAX};
use crate::otlp_request::Compression;
use crate::otlp_request::grpc::PREFIX_BYTES;
use crate::otlp_request::grpc::code;
use crate::otlp_request::grpc_call::{self, Refusal};
use crate::wall_clock::now;

const PATH: &str = "/pulumirpc.Events/StreamEvents";

/// Whether a gRPC request is for this door.
pub(in crate::receive) fn is_for(request: &Request<Incoming>) -> bool {
    request.uri().path() == PATH
}

/// Reads a stream to its end and answers it.
pub(in crate::receive) async fn answer(
    context: &RequestContext,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    match grpc_call::not_a_call(&request) {
        Some(answer) => answer,
        // `google.protobuf.Empty`.
        None => grpc_call::respond(take(context, connection, request).await.map(|()| Vec::new())),
    }
}

async fn take(context: &RequestContext, connection: &Arc<Connection>, request: Request<Incoming>) -> Result<(), Refusal> {
    let refuse = |code, message: &str| {
        context.refused(message);
        Refusal::new(code, message)
    };
    grpc_call::check_message_type(request.headers()).inspect_err(|refusal| context.refused(&refusal.message))?;
    let compression = grpc_call::compression_of(request.headers())?;
    let Ok(_place) = context.event_streams.try_acquire() else {
        return Err(refuse(code::RESOURCE_EXHAUSTED, "too many pulumi event streams at the same time"));
    };
    let _open = OpenStream::of(connection);
    let (mut body, mut messages) = (request.into_body(), Messages::default());
    let mut last = None;
    let (mut stalls_at, mut since) = (None, 0);
    loop {
        let stalled = async {
            match stalls_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = stalled => return Err(refuse(code::DEADLINE_EXCEEDED, &BodyError::TooSlow.message())),
        };
        let Some(frame) = frame else { break };
        let Ok(frame) = frame else {
            return Err(refuse(code::INTERNAL, "the pulumi event stream broke off"));
        };
        let Ok(data) = frame.into_data() else { continue };
        since += data.len();
        messages.push(data);
        let mut ended = false;
        while let Some(message) = messages.next() {
            ended = true;
            let (compressed, message) = match message {
                Message::Whole { compressed, bytes } => (compressed, bytes),
                Message::TooLarge => {
                    let detail = format!("pulumi engine events larger than {} MiB", EVENT_BYTES_MAX >> 20);
                    context.book.add(LossKind::RequestsRefused, 1, detail);
                    continue;
                }
                Message::Broken => return Err(refuse(code::INTERNAL, "not a stream of grpc messages; the rest of it is missing")),
            };
            let Some(memory) = context.memory_of(message.len()) else {
                context.book.add(LossKind::RequestsRefused, 1, "pulumi engine events that arrived faster than longpole could store them");
                continue;
            };
            let compression = if compressed { compression } else { Compression::Identity };
            // The engine tells the time of an event in whole seconds, so the time at which it comes is what pairs it with spans.
            last = context.intake.hand(Job::new(Content::PulumiEvent { received: now() }, connection).with(compression, message, memory));
            if last.is_none() {
                return Err(refuse(code::UNAVAILABLE, "the recorder is ending"));
            }
        }
        if messages.is_empty() {
            stalls_at = None;
        } else if ended || stalls_at.is_none() || since >= BODY_PROGRESS_BYTES {
            (stalls_at, since) = (Some(Instant::now() + BODY_STALL_MAX), 0);
        }
    }
    if !messages.is_empty() {
        return Err(refuse(code::INTERNAL, "the pulumi event stream ended inside an event"));
    }
    // The ingester works in order, so when it is done with the last one it is done with all.
    if let Some(last) = last {
        let _keeping = Keeping::of(connection);
        if last.await.is_err() {
            return Err(refuse(code::UNAVAILABLE, "the recorder is ending"));
        }
    }
    Ok(())
}

/// Cuts a stream of bytes into gRPC messages.
#[derive(Debug, Default)]
struct Messages {
    waiting: BytesMut,
    /// What is still to come of a message that is too large.
    skip: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Message {
    Whole {
        compressed: bool,
        bytes: Bytes,
    },
    TooLarge,
    /// This is no prefix of a gRPC message.
    Broken,
}

impl Messages {
    fn push(&mut self, mut data: Bytes) {
        let skipped = self.skip.min(data.len());
        self.skip -= skipped;
        data.advance(skipped);
        self.waiting.extend_from_slice(&data);
    }

    fn next(&mut self) -> Option<Message> {
        let (prefix, rest) = self.waiting.split_first_chunk::<PREFIX_BYTES>()?;
        let [flag, length @ ..] = *prefix;
        let (length, have) = (u32::from_be_bytes(length) as usize, rest.len());
        if flag > 1 {
            return Some(Message::Broken);
        }
        if length > EVENT_BYTES_MAX {
            self.waiting.advance(PREFIX_BYTES + have.min(length));
            self.skip = length - have.min(length);
            return Some(Message::TooLarge);
        }
        if have < length {
            return None;
        }
        self.waiting.advance(PREFIX_BYTES);
        Some(Message::Whole { compressed: flag == 1, bytes: self.waiting.split_to(length).freeze() })
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.skip == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp_request::grpc::frame as grpc_frame;

    #[test]
    fn messages_are_cut_wherever_the_bytes_were() {
        let large = vec![7; EVENT_BYTES_MAX + 1];
        let stream = [grpc_frame(b"one", false), grpc_frame(b"", true), grpc_frame(&large, false), grpc_frame(b"two", false)].concat();
        let whole = |bytes: &'static [u8], compressed| Message::Whole { compressed, bytes: Bytes::from_static(bytes) };
        let expected = [whole(b"one", false), whole(b"", true), Message::TooLarge, whole(b"two", false)];
        for part in [1 << 20, 4093, stream.len()] {
            let mut messages = Messages::default();
            let mut found = Vec::new();
            for data in stream.chunks(part) {
                messages.push(Bytes::copy_from_slice(data));
                found.extend(std::iter::from_fn(|| messages.next()));
            }
            assert_eq!(found, expected, "in parts of {part}");
            assert!(messages.is_empty());
        }
        let mut messages = Messages::default();
        messages.push(Bytes::from_static(b"\x00\x00\x00\x00\x09abc"));
        assert_eq!((messages.next(), messages.is_empty()), (None, false));
        let mut messages = Messages::default();
        messages.push(Bytes::from_static(b"GET / HTTP/1.1"));
        assert_eq!(messages.next(), Some(Message::Broken));
    }
}
