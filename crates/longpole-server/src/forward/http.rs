//! OTLP and Zipkin endpoints: a few requests in flight, retries as OTLP has them.
//!
//! | the endpoint says | we |
//! |---|---|
//! | 2xx; `OK` | are done, and count what its `partial_success` rejects |
//! | 429 502 503 504; `CANCELLED` `DEADLINE_EXCEEDED` `ABORTED` `OUT_OF_RANGE` `UNAVAILABLE` `DATA_LOSS`; `RESOURCE_EXHAUSTED` with `RetryInfo`; nothing in time; no connection | try again, after a pause that doubles, or after what `Retry-After` or `RetryInfo` says; where that is beyond what we have time for, we give up at once |
//! | anything else; 2xx with a web page, which is somebody else; what is no HTTP | count it as lost |

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderName, HeaderValue, RETRY_AFTER, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use longpole_wire::http_date;
use longpole_wire::otlp::{Rejected, decode_response, decode_retry_delay};
use percent_encoding::percent_decode_str;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::{timeout, timeout_at};

use super::account::Account;
use super::client::{self, HttpClient};
use super::convert;
use super::queue::{Requests, Waiting};
use super::target::{ForwardProtocol, ForwardTarget};
use crate::limits::{
    FORWARD_ANSWER_BYTES_MAX, FORWARD_BACKOFF_MAX, FORWARD_BACKOFF_MIN, FORWARD_IN_FLIGHT_MAX, FORWARD_TRY_MAX, RETRY_AFTER_MAX,
};
use crate::otlp_request::grpc::{self, GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS};
use crate::otlp_request::{CameBy, Compression, Encoding, Parcel, Signal};

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The port of OTLP over gRPC (IANA). Collectors speak nothing else there.
const GRPC_PORT: u16 = 4317;

/// Serves the queue until it is closed and empty.
pub(super) async fn run(mut queue: Requests, target: ForwardTarget, account: Arc<Account>) {
    let parts = Parts::new(&target);
    let endpoint = Arc::new(Endpoint { target, parts, clients: [const { OnceCell::const_new() }; 2], account });
    let mut in_flight = JoinSet::new();
    while let Some(waiting) = queue.recv().await {
        while in_flight.len() >= FORWARD_IN_FLIGHT_MAX {
            in_flight.join_next().await;
        }
        let endpoint = Arc::clone(&endpoint);
        in_flight.spawn(async move { endpoint.deliver(waiting).await });
    }
    while in_flight.join_next().await.is_some() {}
}

/// One endpoint and all that is needed to speak to it.
#[derive(Debug)]
struct Endpoint {
    target: ForwardTarget,
    /// What each request has in common, or why no request can be made.
    parts: Result<Parts, String>,
    /// For HTTP/1.1, and for HTTP/2.
    clients: [OnceCell<HttpClient>; 2],
    account: Arc<Account>,
}

/// Addresses and headers, parsed.
#[derive(Debug)]
struct Parts {
    /// Where HTTP goes; with gRPC, what has no form in it.
    http: Uri,
    grpc: Uri,
    headers: HeaderMap,
}

impl Parts {
    fn new(target: &ForwardTarget) -> Result<Self, String> {
        let http: Uri = target.url.parse().map_err(|error| format!("the endpoint is not a url: {error}"))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (http.scheme_str(), http.authority()) else {
            return Err("the endpoint is not an http or https url".to_owned());
        };
        let at = |path: &'static str| {
            let uri = Uri::builder().scheme(scheme).authority(authority.clone()).path_and_query(path).build();
            uri.map_err(|error| format!("the endpoint is not a url: {error}"))
        };
        let grpc = at(grpc::path_of(target.signal))?;
        let http = if target.protocol == ForwardProtocol::Grpc { at(http_path_of(target.signal))? } else { http };
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| format!("{name:?} is not the name of a header"))?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| format!("the value of header {name} cannot be sent"))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Parts { http, grpc, headers })
    }
}

/// A request as the endpoint wants it. It is made once, and sent as often as it takes.
struct Prepared {
    grpc: bool,
    /// The endpoint speaks gRPC and this has no form in it: as HTTP it is tried once.
    is_guess: bool,
    content_type: HeaderValue,
    compression: Compression,
    body: Bytes,
}

/// What became of one attempt.
#[derive(Debug)]
enum Attempt {
    /// With what was rejected of it.
    Delivered(Option<Rejected>),
    /// Worth another try, perhaps only after a while.
    Again {
        after: Option<Duration>,
        reason: String,
        why: Why,
    },
    Refused(String),
}

/// Why a request was not delivered.
enum Undelivered {
    /// It will never be.
    Because(String),
    /// There is no time for another attempt. It stays pending, and is counted with what the end cuts off.
    OutOfTime,
}

impl From<String> for Undelivered {
    fn from(reason: String) -> Self {
        Undelivered::Because(reason)
    }
}

/// What a failed attempt says of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It answered, or takes its time.
    Busy,
    /// Nobody is there.
    Unreachable,
    /// Nothing: another request knows.
    Vague,
}

impl Attempt {
    fn again(reason: impl Into<String>) -> Self {
        Attempt::Again { after: None, reason: reason.into(), why: Why::Busy }
    }
}

impl Endpoint {
    /// Delivers one request or counts it. Its room in the queue is its own until then.
    async fn deliver(&self, waiting: Waiting) {
        let parcel = &waiting.parcel;
        match self.try_until_done(parcel).await {
            Ok(None) => self.account.delivered(parcel.items),
            Ok(Some(Rejected { count, message })) => {
                let rejected = count.min(parcel.items);
                self.account.delivered(parcel.items - rejected);
                let reason = if message.is_empty() { "rejected them".to_owned() } else { format!("rejected them: {message}") };
                self.account.undelivered(rejected, &reason);
            }
            Err(Undelivered::Because(reason)) => self.account.undelivered(parcel.items, &reason),
            Err(Undelivered::OutOfTime) => {}
        }
    }

    async fn try_until_done(&self, parcel: &Parcel) -> Result<Option<Rejected>, Undelivered> {
        let parts = self.parts.as_ref().map_err(Clone::clone)?;
        let prepared = self.prepare(parts, parcel).await?;
        let client = self.client(prepared.grpc).await?;
        let give_up = Instant::now() + FORWARD_TRY_MAX;
        let mut closing = self.account.closing.clone();
        let mut pause = FORWARD_BACKOFF_MIN;
        loop {
            let attempt = match timeout(self.target.timeout, self.attempt(client, parts, &prepared)).await {
                Ok(attempt) => attempt,
                Err(_) => Attempt::again(format!("no answer within {} ms", self.target.timeout.as_millis())),
            };
            let (after, reason, why) = match attempt {
                Attempt::Delivered(rejected) => return Ok(rejected),
                Attempt::Refused(reason) => return Err(reason.into()),
                Attempt::Again { reason, why: Why::Busy, .. } if prepared.is_guess => {
                    return Err(format!("speaks gRPC, which cannot carry JSON; over HTTP: {reason}").into());
                }
                Attempt::Again { after, reason, why } => (after, reason, why),
            };
            let mut end = *closing.borrow_and_update();
            let until = Instant::now() + after.unwrap_or_else(|| jittered(pause));
            // Whoever waits for the end of longpole does not wait for an endpoint that is not there.
            if end.is_some_and(|end| why != Why::Busy && until > end.last_tries_end) {
                return Err(if why == Why::Vague { self.account.trouble().unwrap_or(reason) } else { reason }.into());
            }
            if until > give_up {
                let limit = FORWARD_TRY_MAX.as_secs();
                return Err(format!("{reason}; gave up, because the next attempt would come more than {limit} s after the first").into());
            }
            self.account.note(&reason, why == Why::Vague);
            pause = (pause * 2).min(FORWARD_BACKOFF_MAX);
            if end.is_none() {
                match timeout_at(until.into(), closing.changed()).await {
                    Err(_) => continue,
                    Ok(Err(_)) => return Err(reason.into()),
                    // There is no time for long pauses of our own any more: whoever waits tries at once.
                    Ok(Ok(())) if after.is_none() => continue,
                    Ok(Ok(())) => end = *closing.borrow_and_update(),
                }
            }
            if end.is_some_and(|end| until > end.deadline) {
                return Err(Undelivered::OutOfTime);
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }

    async fn client(&self, grpc: bool) -> Result<&HttpClient, String> {
        let https = self.target.url.starts_with("https:");
        self.clients[usize::from(grpc)].get_or_try_init(|| client::new(https, grpc, self.target.tls.clone())).await
    }

    async fn prepare(&self, parts: &Parts, parcel: &Parcel) -> Result<Prepared, String> {
        if self.target.protocol == ForwardProtocol::Zipkin {
            let (parcel, v1) = (parcel.clone(), parts.http.path().contains("api/v1/spans"));
            let (body, losses) = convert::beside(move || convert::zipkin(&parcel, v1)).await?;
            self.account.thinned(losses);
            return Ok(Prepared {
                grpc: false,
                is_guess: false,
                content_type: JSON,
                compression: Compression::Identity,
                body: body.into(),
            });
        }
        let as_it_is = |grpc: bool| {
            let (compressed, body) = (parcel.compression != Compression::Identity, parcel.body.clone());
            Prepared {
                grpc,
                is_guess: self.target.protocol == ForwardProtocol::Grpc && !grpc,
                content_type: match (grpc, parcel.encoding) {
                    (true, _) => GRPC,
                    (false, Encoding::Protobuf) => PROTOBUF,
                    (false, Encoding::Json) => JSON,
                },
                compression: parcel.compression,
                body: if grpc { grpc::frame(&body, compressed) } else { body },
            }
        };
        let grpc = match self.target.protocol {
            ForwardProtocol::Grpc => true,
            ForwardProtocol::AsReceived => parts.http.port_u16() == Some(GRPC_PORT) || parcel.came_by == CameBy::Grpc,
            _ => false,
        };
        match parcel.encoding {
            Encoding::Json if grpc && parcel.signal == Signal::Traces => {
                let parcel = parcel.clone();
                let body = convert::beside(move || convert::protobuf(&parcel)).await?;
                Ok(Prepared {
                    grpc,
                    is_guess: false,
                    content_type: GRPC,
                    compression: Compression::Identity,
                    body: grpc::frame(&body, false),
                })
            }
            // JSON of another signal has no form in gRPC that we could give it. As HTTP it goes to where the program itself would
            // have sent it, for some endpoints speak both on one port; those that do not say so, and it is counted.
            Encoding::Json => Ok(as_it_is(false)),
            Encoding::Protobuf => Ok(as_it_is(grpc)),
        }
    }

    fn request(parts: &Parts, prepared: &Prepared) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(prepared.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = if prepared.grpc { parts.grpc.clone() } else { parts.http.clone() };
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, client::AGENT);
        headers.extend(parts.headers.clone());
        headers.insert(CONTENT_TYPE, prepared.content_type.clone());
        let compression = prepared.compression.name().map(HeaderValue::from_static);
        if prepared.grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.extend(compression.map(|name| (GRPC_ENCODING, name)));
        } else {
            headers.extend(compression.map(|name| (CONTENT_ENCODING, name)));
        }
        request
    }

    async fn attempt(&self, client: &HttpClient, parts: &Parts, prepared: &Prepared) -> Attempt {
        let grpc = prepared.grpc;
        let response = match client.request(Self::request(parts, prepared)).await {
            Ok(response) => response,
            Err(error) if is_no_http(&error) => return Attempt::Refused(causes(&error)),
            Err(error) => return Attempt::Again { after: None, reason: causes(&error), why: why(&error) },
        };
        let (head, body) = response.into_parts();
        // The answer is read to its end, so that the connection can be used again, and for the trailers of gRPC.
        let (trailers, body) = match Limited::new(body, FORWARD_ANSWER_BYTES_MAX).collect().await {
            Ok(body) => (body.trailers().cloned().unwrap_or_default(), body.to_bytes()),
            Err(error) if grpc => return Attempt::again(format!("answer broke off: {error}")),
            Err(_) => (HeaderMap::new(), Bytes::new()),
        };
        match head.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                let reason = format!("http status {}", head.status.as_u16());
                Attempt::Again { after: retry_after(&head.headers, SystemTime::now()), reason, why: Why::Busy }
            }
            status if !status.is_success() => Attempt::Refused(format!("http status {}", status.as_u16())),
            status if has_type(&head.headers, b"text/html") => {
                Attempt::Refused(format!("answered with a web page (http status {}), so it is not a collector", status.as_u16()))
            }
            // Servers of gRPC refuse what is none with a status that HTTP takes for a success.
            _ if !grpc && (has_type(&head.headers, b"application/grpc") || head.headers.contains_key(GRPC_STATUS)) => {
                Attempt::Refused("speaks gRPC, but longpole sent them over HTTP".to_owned())
            }
            _ if self.target.protocol == ForwardProtocol::Zipkin => Attempt::Delivered(None),
            _ if !grpc => {
                let json = has_type(&head.headers, b"application/json");
                Attempt::Delivered(decode_response(&body, if json { Encoding::Json } else { Encoding::Protobuf }))
            }
            // Trailers, or the headers alone where there is no message.
            _ => grpc_outcome(if head.headers.contains_key(GRPC_STATUS) { &head.headers } else { &trailers }, &body),
        }
    }
}

fn grpc_outcome(outcome: &HeaderMap, body: &[u8]) -> Attempt {
    const OK: i32 = 0;
    const RESOURCE_EXHAUSTED: i32 = 8;
    // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
    const RETRYABLE: [i32; 6] = [1, 4, 10, 11, 14, 15];
    let text = |name: &HeaderName| outcome.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let Some(code) = text(&GRPC_STATUS).and_then(|code| code.parse::<i32>().ok()) else {
        return Attempt::again("answer without a grpc status");
    };
    let message = text(&GRPC_MESSAGE).map(|message| percent_decode_str(&message).decode_utf8_lossy().into_owned()).unwrap_or_default();
    let reason = format!("grpc status {code} {message}").trim_end().to_owned();
    let delay = text(&GRPC_DETAILS).and_then(|details| decode_retry_delay(&details));
    // A delay of zero requests a retry but names no time: then our own delay applies.
    let again = |reason| Attempt::Again { after: delay.filter(|delay| !delay.is_zero()), reason, why: Why::Busy };
    match code {
        // The request accepts no compression, so the message follows its prefix as it is.
        OK => Attempt::Delivered(body.get(grpc::PREFIX_BYTES..).and_then(|message| decode_response(message, Encoding::Protobuf))),
        RESOURCE_EXHAUSTED if delay.is_some() => again(reason),
        code if RETRYABLE.contains(&code) => again(reason),
        _ => Attempt::Refused(reason),
    }
}

const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// `Retry-After`, in seconds or as a date. A date is compared with the endpoint's own `Date`, so that its clock need not be ours.
/// A delay of zero, or one that is over, requests a retry but names no time: then our own delay applies.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let wanted = text(RETRY_AFTER)?;
    let delay = match wanted.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let ours = || i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok();
            let said = text(DATE).and_then(http_date::parse).or_else(ours)?;
            Duration::from_secs(u64::try_from(http_date::parse(wanted)?.saturating_sub(said)).ok()?)
        }
    };
    Some(delay.min(RETRY_AFTER_MAX)).filter(|delay| !delay.is_zero())
}

fn has_type(headers: &HeaderMap, expected: &[u8]) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(expected))
}

/// The path of a signal on an endpoint that the user gave without a path.
fn http_path_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Metrics => "/v1/metrics",
        Signal::Logs => "/v1/logs",
        Signal::Profiles => "/v1development/profiles",
    }
}

/// Between half and the whole of the pause, so that lanes which failed together do not return together.
pub(super) fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// What an error says of the endpoint. Requests that wait for a connection which another one is making fail with it, and only
/// that one knows why, which is an error of the operating system or of TLS.
fn why(error: &hyper_util::client::legacy::Error) -> Why {
    if !error.is_connect() {
        return Why::Busy;
    }
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return Why::Unreachable;
        }
        cause = error.source();
    }
    Why::Vague
}

/// Whether somebody answered who does not speak HTTP, and never will.
fn is_no_http(error: &hyper_util::client::legacy::Error) -> bool {
    error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>()).is_some_and(hyper::Error::is_parse)
}

/// An error with its causes: "client error (Connect): tcp connect error: Connection refused".
pub(super) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A part of a path as long as this is taken for a key, as some vendors have it there.
const PATH_KEY_BYTES: usize = 20;

/// The URL without what may be secret in it: user, password, query, keys in the path.
pub(super) fn printable(url: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else { return "the user's endpoint".to_owned() };
    match (uri.scheme_str(), uri.host()) {
        (Some(scheme), Some(host)) => {
            let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
            let part = |part: &'_ str| if part.len() < PATH_KEY_BYTES { part.to_owned() } else { "…".to_owned() };
            let path: Vec<String> = uri.path().trim_end_matches('/').split('/').map(part).collect();
            format!("{scheme}://{host}{port}{}", path.join("/"))
        }
        _ => "the user's endpoint".to_owned(),
    }
}
