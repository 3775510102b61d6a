//! A lane to one OTLP endpoint: a bounded queue, a few requests in flight, retries as OTLP has them.
//!
//! | the endpoint says | we |
//! |---|---|
//! | 2xx; `OK` | are done |
//! | 429 502 503 504; `CANCELLED` `DEADLINE_EXCEEDED` `ABORTED` `OUT_OF_RANGE` `UNAVAILABLE` `DATA_LOSS`; `RESOURCE_EXHAUSTED` with `RetryInfo`; nothing in time; no connection | try again, after a pause that doubles, or after what `Retry-After` says |
//! | anything else | count it as lost, as the exporter would |

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use longpole_model::LossKind;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{timeout, timeout_at};

use super::{ForwardProtocol, ForwardTarget, Parcel, tls};
use crate::limits::{
    FORWARD_ANSWER_BYTES_MAX, FORWARD_BACKOFF_MAX, FORWARD_BACKOFF_MIN, FORWARD_IN_FLIGHT_MAX, FORWARD_QUEUE_BYTES_MAX, FORWARD_TRY_MAX,
};
use crate::loss_book::LossBook;
use crate::receive::{Encoding, GRPC, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, grpc_frame, grpc_path_of};

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("longpole/", env!("CARGO_PKG_VERSION")));

/// The way to one endpoint.
#[derive(Debug)]
pub(super) struct Lane {
    // `None` once closed. What waits is charged to `room`.
    queue: Mutex<Option<mpsc::UnboundedSender<(Parcel, OwnedSemaphorePermit)>>>,
    room: Arc<Semaphore>,
    /// Requests that are queued or in flight.
    pending: Arc<AtomicU64>,
    trouble: Arc<Mutex<Option<String>>>,
    closing: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
    task: AbortHandle,
    name: String,
    book: Arc<LossBook>,
}

impl Lane {
    pub(super) fn start(target: ForwardTarget, book: Arc<LossBook>) -> Self {
        let (queue, parcels) = mpsc::unbounded_channel();
        let (closing, is_closing) = watch::channel(false);
        let (tell_ended, ended) = watch::channel(false);
        let pending = Arc::new(AtomicU64::new(0));
        let trouble = Arc::default();
        let name = printable(&target.url);
        let endpoint = Endpoint {
            parts: Parts::new(&target),
            target,
            client: OnceCell::new(),
            name: name.clone(),
            book: Arc::clone(&book),
            pending: Arc::clone(&pending),
            trouble: Arc::clone(&trouble),
            closing: is_closing,
        };
        let task = tokio::spawn(async move {
            run(parcels, Arc::new(endpoint)).await;
            // Nobody waits where the receiver was dropped.
            let _ = tell_ended.send(true);
        })
        .abort_handle();
        Lane {
            queue: Mutex::new(Some(queue)),
            room: Arc::new(Semaphore::new(FORWARD_QUEUE_BYTES_MAX)),
            pending,
            trouble,
            closing,
            ended,
            task,
            name,
            book,
        }
    }

    pub(super) fn send(&self, parcel: Parcel) {
        // A body larger than the whole queue has nowhere to wait.
        let room = u32::try_from(parcel.body.len()).ok().and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let Some(room) = room else {
            let detail =
                format!("{} takes less than the command sends: the queue of {} MiB is full", self.name, FORWARD_QUEUE_BYTES_MAX >> 20);
            self.book.add(LossKind::ForwardFailed, 1, detail);
            return;
        };
        self.pending.fetch_add(1, Ordering::Relaxed);
        // What comes after the lane was closed stays pending, and is counted with what the deadline cuts off.
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = queue.send((parcel, room));
        }
    }

    /// Takes no more, and wakes what waits to be tried again for its last attempts.
    pub(super) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.send_replace(true);
    }

    /// Waits until everything is delivered or given up, until the deadline; then counts what is left.
    pub(super) async fn ended(&self, deadline: Instant) {
        let mut ended = self.ended.clone();
        // Ended, or out of time, or the task is gone: in each case `pending` is what was not handed on.
        let _ = timeout_at(deadline.into(), ended.wait_for(|ended| *ended)).await;
        self.task.abort();
        let left = self.pending.swap(0, Ordering::Relaxed);
        let why = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take().map(|why| format!(": {why}"));
        let detail = format!("{} did not take them before longpole ended{}", self.name, why.unwrap_or_default());
        self.book.add(LossKind::ForwardFailed, left, detail);
    }
}

async fn run(mut parcels: mpsc::UnboundedReceiver<(Parcel, OwnedSemaphorePermit)>, endpoint: Arc<Endpoint>) {
    let mut in_flight = JoinSet::new();
    while let Some((parcel, room)) = parcels.recv().await {
        while in_flight.len() >= FORWARD_IN_FLIGHT_MAX {
            in_flight.join_next().await;
        }
        let endpoint = Arc::clone(&endpoint);
        in_flight.spawn(async move {
            endpoint.deliver(parcel).await;
            drop(room);
        });
    }
    while in_flight.join_next().await.is_some() {}
}

/// One endpoint and all that is needed to speak to it.
#[derive(Debug)]
struct Endpoint {
    target: ForwardTarget,
    /// What each request has in common, or why no request can be made.
    parts: Result<Parts, String>,
    client: OnceCell<HttpClient>,
    name: String,
    book: Arc<LossBook>,
    pending: Arc<AtomicU64>,
    /// Why the last attempt that is to be repeated failed.
    trouble: Arc<Mutex<Option<String>>>,
    closing: watch::Receiver<bool>,
}

/// Address and headers, parsed.
#[derive(Debug)]
struct Parts {
    uri: Uri,
    headers: HeaderMap,
}

impl Parts {
    fn new(target: &ForwardTarget) -> Result<Self, String> {
        let uri: Uri = target.url.parse().map_err(|error| format!("the endpoint is not a url: {error}"))?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("the endpoint is not an http or https url".to_owned());
        };
        let uri = match target.protocol {
            ForwardProtocol::Http => uri,
            ForwardProtocol::Grpc => Uri::builder()
                .scheme(uri.scheme_str().unwrap_or("http"))
                .authority(authority.clone())
                .path_and_query(grpc_path_of(target.signal))
                .build()
                .map_err(|error| format!("the endpoint is not a url: {error}"))?,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| format!("{name:?} is not the name of a header"))?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| format!("the value of header {name} cannot be sent"))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Parts { uri, headers })
    }
}

/// What became of one attempt.
#[derive(Debug)]
enum Attempt {
    Delivered,
    /// Worth another try, perhaps only after a while.
    Again {
        after: Option<Duration>,
        reason: String,
        /// The reason says nothing of the endpoint.
        vague: bool,
    },
    Refused(String),
}

impl Attempt {
    fn again(reason: impl Into<String>) -> Self {
        Attempt::Again { after: None, reason: reason.into(), vague: false }
    }
}

impl Endpoint {
    /// Delivers one request or counts it.
    async fn deliver(&self, parcel: Parcel) {
        let outcome = self.try_until_done(&parcel).await;
        self.pending.fetch_sub(1, Ordering::Relaxed);
        if let Err(reason) = outcome {
            self.book.add(LossKind::ForwardFailed, 1, format!("{}: {reason}", self.name));
        }
    }

    async fn try_until_done(&self, parcel: &Parcel) -> Result<(), String> {
        let parts = self.parts.as_ref().map_err(Clone::clone)?;
        let client = self.client().await?;
        let give_up = Instant::now() + FORWARD_TRY_MAX;
        let mut closing = self.closing.clone();
        let mut pause = FORWARD_BACKOFF_MIN;
        loop {
            let request = self.request(parts, parcel)?;
            let attempt = match timeout(self.target.timeout, self.attempt(client, request)).await {
                Ok(attempt) => attempt,
                Err(_) => Attempt::again(format!("no answer within {} ms", self.target.timeout.as_millis())),
            };
            let (after, reason, vague) = match attempt {
                Attempt::Delivered => return Ok(()),
                Attempt::Refused(reason) => return Err(reason),
                Attempt::Again { after, reason, vague } => (after, reason, vague),
            };
            let until = Instant::now() + after.unwrap_or_else(|| jittered(pause));
            if until > give_up {
                return Err(format!("{reason}, and no sign that it will be better within {} s", FORWARD_TRY_MAX.as_secs()));
            }
            self.note(&reason, vague);
            pause = (pause * 2).min(FORWARD_BACKOFF_MAX);
            // When longpole is about to end there is no time for long pauses: whoever waits tries at once, then goes on.
            if *closing.borrow_and_update() {
                tokio::time::sleep_until(until.into()).await;
            } else if timeout_at(until.into(), closing.changed()).await.is_ok_and(|changed| changed.is_err()) {
                return Err(reason);
            }
        }
    }

    /// Remembers why the last attempt failed; a reason that says nothing does not hide one that does.
    fn note(&self, reason: &str, vague: bool) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if !vague || trouble.is_none() {
            *trouble = Some(reason.to_owned());
        }
    }

    async fn client(&self) -> Result<&HttpClient, String> {
        let (grpc, https) = (self.target.protocol == ForwardProtocol::Grpc, self.target.url.starts_with("https:"));
        self.client
            .get_or_try_init(|| async {
                let settings = self.target.tls.clone();
                let config = if https {
                    // Certificates are files: not on the thread that answers the command.
                    tokio::task::spawn_blocking(move || tls::client_config(&settings)).await.map_err(|error| error.to_string())??
                } else {
                    no_tls()?
                };
                let mut tcp = HttpConnector::new();
                tcp.enforce_http(false);
                tcp.set_nodelay(true);
                let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
                let connector =
                    if grpc { connector.enable_http2().wrap_connector(tcp) } else { connector.enable_http1().wrap_connector(tcp) };
                Ok(Client::builder(TokioExecutor::new()).http2_only(grpc).build(connector))
            })
            .await
    }

    fn request(&self, parts: &Parts, parcel: &Parcel) -> Result<Request<Full<Bytes>>, String> {
        // A JSON request has no form in gRPC; such an endpoint often speaks HTTP on the same port, so it is tried as HTTP.
        let grpc = self.target.protocol == ForwardProtocol::Grpc && parcel.encoding == Encoding::Protobuf;
        let body = if grpc { grpc_frame(&parcel.body, parcel.compression.name().is_some()) } else { parcel.body.clone() };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = parts.uri.clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, AGENT);
        headers.extend(parts.headers.clone());
        let compression = parcel.compression.name().map(HeaderValue::from_static);
        if grpc {
            headers.insert(CONTENT_TYPE, GRPC);
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.extend(compression.map(|name| (GRPC_ENCODING, name)));
        } else {
            headers.insert(
                CONTENT_TYPE,
                match parcel.encoding {
                    Encoding::Protobuf => HeaderValue::from_static("application/x-protobuf"),
                    Encoding::Json => HeaderValue::from_static("application/json"),
                },
            );
            headers.extend(compression.map(|name| (CONTENT_ENCODING, name)));
        }
        Ok(request)
    }

    async fn attempt(&self, client: &HttpClient, request: Request<Full<Bytes>>) -> Attempt {
        let grpc = request.headers().get(CONTENT_TYPE) == Some(&GRPC);
        let response = match client.request(request).await {
            Ok(response) => response,
            Err(error) => return Attempt::Again { after: None, reason: causes(&error), vague: !knows_why(&error) },
        };
        let (head, body) = response.into_parts();
        // The answer is read to its end, so that the connection can be used again, and for the trailers of gRPC.
        let trailers = match Limited::new(body, FORWARD_ANSWER_BYTES_MAX).collect().await {
            Ok(body) => body.trailers().cloned().unwrap_or_default(),
            Err(error) if grpc => return Attempt::again(format!("answer broke off: {error}")),
            Err(_) => HeaderMap::new(),
        };
        match head.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                Attempt::Again { after: retry_after(&head.headers), reason: format!("http status {}", head.status.as_u16()), vague: false }
            }
            status if !status.is_success() => Attempt::Refused(format!("http status {}", status.as_u16())),
            _ if !grpc => Attempt::Delivered,
            // Trailers, or the headers alone where there is no message.
            _ => grpc_outcome(if head.headers.contains_key(GRPC_STATUS) { &head.headers } else { &trailers }),
        }
    }
}

fn grpc_outcome(outcome: &HeaderMap) -> Attempt {
    const OK: i32 = 0;
    const RESOURCE_EXHAUSTED: i32 = 8;
    // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
    const RETRYABLE: [i32; 6] = [1, 4, 10, 11, 14, 15];
    let text = |name: &HeaderName| outcome.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let Some(code) = text(&GRPC_STATUS).and_then(|code| code.parse::<i32>().ok()) else {
        return Attempt::again("answer without a grpc status");
    };
    let message = text(&GRPC_MESSAGE).map(|message| percent_decoded(&message)).unwrap_or_default();
    let reason = format!("grpc status {code} {message}").trim_end().to_owned();
    match code {
        OK => Attempt::Delivered,
        RESOURCE_EXHAUSTED if has_retry_info(outcome) => Attempt::again(reason),
        code if RETRYABLE.contains(&code) => Attempt::again(reason),
        _ => Attempt::Refused(reason),
    }
}

/// `grpc-message` as people write it. What is not an escape stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex.filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the status details name `google.rpc.RetryInfo`, which is what makes `RESOURCE_EXHAUSTED` retryable. The details
/// are base64 of a message in which the name stands as text; the text may begin at any of three places in a group of four.
fn has_retry_info(outcome: &HeaderMap) -> bool {
    // "google.rpc.RetryInfo", without the first and last letters that share a group with what is around.
    const NAMES: [&str; 3] = ["Z29vZ2xlLnJwYy5SZXRyeUluZm", "dvb2dsZS5ycGMuUmV0cnlJbmZv", "nb29nbGUucnBjLlJldHJ5SW5mb"];
    let details = outcome.get("grpc-status-details-bin").map(|value| String::from_utf8_lossy(value.as_bytes()));
    details.is_some_and(|details| NAMES.iter().any(|name| details.contains(name)))
}

/// `Retry-After` in seconds. Its other form, a date, falls back to our own pause: it is rare and asks for trust in clocks.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Between half and the whole of the pause, so that lanes which failed together do not return together.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// A configuration for plain `http`, which never uses it: trusts nobody.
fn no_tls() -> Result<rustls::ClientConfig, String> {
    Ok(rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up tls: {error}"))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}

/// Whether an error says something of the endpoint: requests that wait for a connection which another one is making fail with
/// it, and only that one knows why, which is an error of the operating system or of TLS.
fn knows_why(error: &hyper_util::client::legacy::Error) -> bool {
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    !error.is_connect()
}

/// An error with its causes: "client error (Connect): tcp connect error: Connection refused".
fn causes(error: &dyn Error) -> String {
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

/// The URL without what may be secret in it: user, password, query.
fn printable(url: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else { return "the user's endpoint".to_owned() };
    match (uri.scheme_str(), uri.host()) {
        (Some(scheme), Some(host)) => {
            let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{scheme}://{host}{port}{}", uri.path().trim_end_matches('/'))
        }
        _ => "the user's endpoint".to_owned(),
    }
}
