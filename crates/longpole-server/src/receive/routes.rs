//! HTTP on one connection: each request goes to the handler of its protocol.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use longpole_wire::pyroscope::querier;
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::connection::{Connection, InFlight};
use super::job::UNPROVEN;
use super::memory::MemoryAccount;
use super::pulumi::event_stream as pulumi_events;
use super::request_context::RequestContext;
use super::tokens::{Admission, Purpose};
use super::watched_io::{WatchedIo, client_left};
use super::{
    answer_in_memory, jaeger_http, otlp_grpc, otlp_http, plain_text, pyroscope, refusal, request_head, token_refusal, tokens, web_pages,
    zipkin,
};
use crate::answer::AnswerBody;
use crate::limits::{ANSWER_STALL_MAX, ANSWER_WAIT_MAX, GOODBYE_MAX, HEAD_BYTES_MAX, STREAM_HEAD_BYTES_MAX, STREAMS_PER_CONNECTION_MAX};
use crate::off_the_reactor::Query;
use crate::otlp_request::{Signal, grpc, grpc_call};

/// HTTP/1.1 and HTTP/2, as the receiver serves them.
pub(super) fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // A client that has closed its sending half may still wait for the answer.
    http.http1().max_buf_size(HEAD_BYTES_MAX).half_close(true);
    http.http2().max_concurrent_streams(STREAMS_PER_CONNECTION_MAX).max_header_list_size(STREAM_HEAD_BYTES_MAX);
    http
}

/// Serves one connection until its client ends it, or the receiver hangs up.
pub(super) async fn serve(
    http: &auto::Builder<TokioExecutor>,
    stream: TcpStream,
    context: &Arc<RequestContext>,
    connection: &Arc<Connection>,
) {
    let stream = Arc::new(stream);
    // Requests must not keep it open.
    let client = Arc::downgrade(&stream);
    let io = TokioIo::new(WatchedIo::new(stream, Arc::clone(connection)));
    let service = service_fn(|request| answer_of_page(Arc::clone(context), Arc::clone(connection), client.clone(), request));
    let mut served = pin!(http.serve_connection(io, service));
    // How a connection ends says nothing that its requests did not say.
    loop {
        tokio::select! {
            _ = served.as_mut() => return,
            () = connection.cut.notified() => return,
            () = connection.hang_up.notified() => break,
            () = tokio::time::sleep(ANSWER_WAIT_MAX) => {}
        }
        // An answer takes memory until it is read.
        if connection.has_not_read_for(ANSWER_STALL_MAX) {
            return;
        }
    }
    served.as_mut().graceful_shutdown();
    loop {
        tokio::select! {
            _ = served.as_mut() => return,
            () = connection.cut.notified() => return,
            () = tokio::time::sleep(GOODBYE_MAX) => {}
        }
        // It had time to close, and no request of it is under way.
        if connection.is_over() {
            return;
        }
    }
}

/// Answers one request, so that the page that sent it may read the answer if it may send.
async fn answer_of_page(
    context: Arc<RequestContext>,
    connection: Arc<Connection>,
    client: Weak<TcpStream>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    connection.requests.fetch_add(1, Ordering::Relaxed);
    connection.note_inside(None);
    let _head = match request_head::take(&request, &context) {
        Ok(memory) => memory,
        Err(refused) => return Ok(*refused),
    };
    let Some(origin) = context.origins.of(request.headers()) else {
        return answer(context, connection, client, request, false).await;
    };
    // Queries stand at some of these paths too, and no page may read them.
    let is_sent = [Method::POST, Method::OPTIONS].contains(request.method());
    let takes_spans = is_sent && (zipkin::PATHS.contains(&request.uri().path()) || otlp_http::is_for(&request));
    let mut response = match web_pages::preflight(&request).filter(|_| takes_spans) {
        Some(response) => response,
        None => answer(context, connection, client, request, true).await?,
    };
    if takes_spans {
        web_pages::allow(&mut response, origin);
    }
    Ok(response)
}

/// Sends a request to the handler of its protocol: by content type, then by path.
async fn answer(
    context: Arc<RequestContext>,
    connection: Arc<Connection>,
    client: Weak<TcpStream>,
    request: Request<Incoming>,
    is_listed_page: bool,
) -> Result<Response<AnswerBody>, Infallible> {
    let is_grpc = grpc_call::is_grpc(&request);
    let carries_spans = match is_grpc {
        true => otlp_grpc::is_for(&request) || takes_events(&context, &request),
        false => {
            let is_profile = context.takes_profiles && pyroscope::is_for(&request);
            zipkin::is_for(&request) || jaeger_http::is_for(&request) || otlp_http::is_for(&request) || is_profile
        }
    };
    if let Some(tokens) = &context.tokens {
        match tokens.admission(&request, purpose_of(&request, carries_spans), connection.port()) {
            Admission::Granted => {}
            Admission::Exchange { token, path } => return Ok(tokens::exchange(&token, &path, connection.port())),
            Admission::Refused(refused) => {
                if carries_spans {
                    context.refused(refused.loss());
                }
                return Ok(token_refusal::answer(refused, &request));
            }
        }
    }
    if let Some(queries) = connection.queries.as_ref().filter(|_| !carries_spans) {
        let _in_flight = InFlight::of(&connection);
        let of_host = refusal::objection_of_host(&request, context.any_host);
        if let Some(objection) = of_host.or_else(|| refusal::objection_of_page(&request)) {
            return Ok(refusal::refuse(&request, &objection.reason));
        }
        // Queries of Pyroscope are posted.
        let only_reads = [Method::GET, Method::HEAD].contains(request.method()) || request.uri().path().starts_with(querier::SERVICE);
        let is_alone = request.version() < Version::HTTP_2 && only_reads;
        let answered = async { Ok(as_answer(queries.clone().oneshot(request).await?, &context.memory, &connection).await) };
        return tokio::select! {
            // First, so that a query is counted whose client left before it began.
            biased;
            answered = answered => answered,
            // A stream of HTTP/2 ends with its client by itself, and what was sent whole is kept.
            () = client_left(&client), if is_alone => Ok(Response::new(Empty::new().boxed_unsync())),
        };
    }
    let objection = refusal::objection(&request, context.any_host, is_listed_page);
    // Before any byte of a body is read: only spans of OpenTelemetry can prove by themselves that they belong to the run.
    let can_prove = || objection.is_none() && ["/v1/traces", grpc::path_of(Signal::Traces)].contains(&request.uri().path());
    if connection.sender_is_gone() && !can_prove() {
        context.refused(UNPROVEN);
        return Ok(refusal::refuse(&request, UNPROVEN));
    }
    if let Some(objection) = objection {
        context.refused(objection.kind);
        return Ok(refusal::refuse(&request, &objection.reason));
    }
    if is_grpc && takes_events(&context, &request) {
        // Open for as long as the engine works, so it is not in flight: it waits for its peer, as an idle connection does.
        return Ok(pulumi_events::answer(&context, &connection, request).await);
    }
    let _in_flight = InFlight::of(&connection);
    Ok(if is_grpc {
        otlp_grpc::answer(&context, &connection, request).await
    } else if zipkin::is_for(&request) {
        plain_text::answer(&context, &connection, zipkin::text_request(request)).await
    } else if jaeger_http::is_for(&request) {
        plain_text::answer(&context, &connection, jaeger_http::text_request(request)).await
    } else if context.takes_profiles && pyroscope::is_for(&request) {
        pyroscope::answer(&context, &connection, request).await
    } else {
        otlp_http::answer(&context, &connection, request).await
    })
}

/// Whether it is a stream of events of Pulumi's engine. A server keeps none.
fn takes_events(context: &RequestContext, request: &Request<Incoming>) -> bool {
    context.finds_processes && pulumi_events::is_for(request)
}

/// What the token of a request must be good for.
fn purpose_of(request: &Request<Incoming>, carries_spans: bool) -> Purpose {
    let path = request.uri().path();
    if carries_spans || request.method() == Method::PUT {
        Purpose::Send
    } else if path == "/sampling" || path.starts_with("/jaeger.api_v2.SamplingManager/") {
        Purpose::Either
    } else {
        Purpose::Read
    }
}

/// The place of a query among those that are answered at once; an extension of its answer.
#[derive(Debug, Clone)]
pub(crate) struct QueryPlace(#[expect(dead_code, reason = "held for as long as the query has its place")] pub(crate) Arc<Query>);

/// An answer to a query as this door gives it. Its body is made already, and counts until its client has read it.
async fn as_answer(response: Response<axum::body::Body>, account: &MemoryAccount, connection: &Connection) -> Response<AnswerBody> {
    let (mut head, mut body) = response.into_parts();
    let place = head.extensions.remove::<QueryPlace>();
    let (mut parts, mut trailers) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        // The answers to queries are made whole, so their bodies do not fail.
        let Ok(frame) = frame else { return Response::from_parts(head, Empty::new().boxed_unsync()) };
        match frame.into_data() {
            Ok(part) => parts.push(part),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    drop(body);
    let body = answer_in_memory::body(parts, account, connection).await;
    drop(place);
    let Ok(body) = body else {
        let mut busy = Response::new(Full::new(Bytes::from_static(b"too many answers wait for their clients: try again\n")).boxed_unsync());
        *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return busy;
    };
    match trailers {
        None => Response::from_parts(head, body),
        // The outcome of a call by gRPC.
        Some(trailers) => Response::from_parts(head, body.with_trailers(async move { Some(Ok::<_, Infallible>(trailers)) }).boxed_unsync()),
    }
}
