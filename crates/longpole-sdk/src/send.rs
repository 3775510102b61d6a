//! The thread that sends: sweeps the shards, makes requests out of spans, tries again, gives up, and tells.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

use tracing_core::Metadata;
use tracing_core::callsite::Identifier;

use crate::config::ExportConfig;
use crate::context::ContextWords;
use crate::diagnostic::tell;
use crate::encode::{self, Value};
use crate::export::{MAX_KEPT_BYTES, Shared, SpanBuffer, Waiting, lock};
use crate::thread_context;

/// Most bytes of spans in a request: the default limit of many collectors. A larger span goes alone.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// A collector's answer to spans is a few bytes; more is not read.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Pause before a batch is sent again, doubled each time.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Instrumentation scope of all spans.
const SCOPE_NAME: &str = env!("CARGO_PKG_NAME");
const SCOPE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Attribute of the scope once spans were lost: how many so far, for the receiver to keep with the data.
const DROPPED_SPANS: &str = "longpole.dropped_spans";

/// What a collector said to a batch.
enum Answer {
    Accepted {
        rejected: u64,
    },
    /// Worth another try, after a pause that the collector may have named.
    NotNow {
        why: String,
        pause: Option<Duration>,
    },
    Refused {
        why: String,
    },
}

/// The far end of the exporter: lives on its own thread.
pub(crate) struct Sender {
    config: ExportConfig,
    shared: Arc<Shared>,
    agent: ureq::Agent,
    /// Swept, not yet sent; `sent` spans of it, up to byte `sent_bytes`, are gone.
    pending: SpanBuffer,
    sent: usize,
    sent_bytes: usize,
    /// Empty buffer to put in place of a swept one.
    spare: SpanBuffer,
    request: Vec<u8>,
    /// `code.*` and `target` of each place that made a span, encoded.
    places: HashMap<Identifier, Vec<u8>>,
    /// Why the last attempt failed; `None` while all is well.
    outage: Option<String>,
    /// Lost spans that have been told.
    told_lost: u64,
}

impl Sender {
    pub(crate) fn new(config: ExportConfig, shared: Arc<Shared>) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A collector is on this machine or beside it; a proxy for the web is not on the way.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(1)
            .user_agent(format!("OTel-OTLP-Exporter-Longpole/{SCOPE_VERSION}"))
            .build()
            .new_agent();
        Self {
            config,
            shared,
            agent,
            pending: SpanBuffer::default(),
            sent: 0,
            sent_bytes: 0,
            spare: SpanBuffer::default(),
            request: Vec::new(),
            places: HashMap::new(),
            outage: None,
            told_lost: 0,
        }
    }

    pub(crate) fn run(mut self) {
        // To the profiler: this thread works for no span.
        thread_context::publish(ContextWords::NONE);
        loop {
            self.wait_for_work();
            let closing = self.closing();
            self.sweep(closing);
            while self.take_batch() {
                let spans = self.encode_batch();
                self.export(spans);
            }
            if closing {
                break;
            }
        }
        // Whoever gave up has told.
        if !self.shared.abandoned.load(Relaxed) {
            self.tell_losses();
        }
        lock(&self.shared.end).reached = true;
        self.shared.ended.notify_all();
    }

    fn closing(&self) -> bool {
        self.shared.closing.load(Acquire)
    }

    /// Returns when a batch is full, when the delay is over, or when the end is near.
    fn wait_for_work(&self) {
        let due = Instant::now() + self.config.schedule_delay;
        while !self.closing() && self.shared.queued.spans() < self.config.max_batch_spans {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Takes what the program's threads have left; the last time, it closes the door behind.
    fn sweep(&mut self, close: bool) {
        self.pending.clear();
        (self.sent, self.sent_bytes) = (0, 0);
        for shard in &self.shared.shards {
            let mut state = lock(&shard.0);
            state.closed |= close;
            if state.buffer.spans.is_empty() {
                continue;
            }
            std::mem::swap(&mut state.buffer, &mut self.spare);
            drop(state);
            let offset = self.pending.bytes.len();
            self.pending.bytes.extend_from_slice(&self.spare.bytes);
            let moved = self.spare.spans.iter().map(|span| Waiting { end: span.end + offset, metadata: span.metadata });
            self.pending.spans.extend(moved);
            self.spare.clear();
        }
    }

    /// Whether there is another batch to send; after the shutdown was given up, what is left counts as lost.
    fn take_batch(&mut self) -> bool {
        if self.shared.abandoned.load(Relaxed) {
            self.give_up_pending();
        }
        self.sent < self.pending.spans.len()
    }

    /// Makes the next request out of pending spans; returns how many it holds.
    fn encode_batch(&mut self) -> u64 {
        let first = self.sent;
        let mut spans_len = 0;
        let mut start = self.sent_bytes;
        for span in self.pending.spans[first..].iter().take(self.config.max_batch_spans) {
            let place = self.places.entry(span.metadata.callsite()).or_insert_with(|| encode_place(span.metadata));
            let len = encode::message_len(2, span.end - start + place.len());
            if spans_len > 0 && spans_len + len > MAX_REQUEST_BYTES {
                break;
            }
            spans_len += len;
            start = span.end;
            self.sent += 1;
        }
        let spans = self.sent - first;
        self.shared.queued.sub(spans, start - self.sent_bytes);

        // ExportTraceServiceRequest { 1: ResourceSpans { 1: Resource, 2: ScopeSpans { 1: Scope, 2: Span… } } }
        let scope = self.encode_scope();
        let scope_spans_len = encode::message_len(1, scope.len()) + spans_len;
        let resource_spans_len = encode::message_len(1, self.config.resource.len()) + encode::message_len(2, scope_spans_len);
        let out = &mut self.request;
        out.clear();
        out.shrink_to(MAX_KEPT_BYTES);
        encode::message(out, 1, resource_spans_len);
        encode::bytes(out, 1, &self.config.resource);
        encode::message(out, 2, scope_spans_len);
        encode::bytes(out, 1, &scope);
        for span in &self.pending.spans[first..self.sent] {
            let bytes = &self.pending.bytes[self.sent_bytes..span.end];
            self.sent_bytes = span.end;
            let place = self.places.get(&span.metadata.callsite()).map_or(&[][..], Vec::as_slice);
            encode::message(out, 2, bytes.len() + place.len());
            out.extend_from_slice(bytes);
            out.extend_from_slice(place);
        }
        spans as u64
    }

    fn encode_scope(&self) -> Vec<u8> {
        let mut scope = Vec::with_capacity(64);
        encode::bytes(&mut scope, 1, SCOPE_NAME.as_bytes());
        encode::bytes(&mut scope, 2, SCOPE_VERSION.as_bytes());
        let lost = self.shared.counts().lost();
        if lost > 0 {
            encode::attribute(&mut scope, 3, DROPPED_SPANS, Value::Int(i64::try_from(lost).unwrap_or(i64::MAX)));
        }
        scope
    }

    /// Sends the request until it is answered for good, or until its time is over.
    fn export(&mut self, spans: u64) {
        let started = Instant::now();
        let mut delay = FIRST_RETRY_DELAY;
        loop {
            // Read before the attempt: one more is due after the shutdown began, and no more than one.
            let closing = self.closing();
            let why = match self.send() {
                Answer::Accepted { rejected } => {
                    let rejected = rejected.min(spans);
                    self.shared.exported.fetch_add(spans - rejected, Relaxed);
                    self.shared.rejected.fetch_add(rejected, Relaxed);
                    if self.outage.take().is_some() && !closing {
                        self.tell_losses();
                    }
                    return;
                }
                Answer::Refused { why } => why,
                Answer::NotNow { why, pause } => {
                    let pause = pause.unwrap_or(delay).min(MAX_RETRY_DELAY);
                    delay = delay.saturating_mul(2);
                    let in_time = self.config.export_timeout.is_none_or(|limit| started.elapsed() + pause <= limit);
                    if !closing && in_time && !self.shared.abandoned.load(Relaxed) {
                        self.begin_outage(why, "trying again");
                        self.pause(pause);
                        continue;
                    }
                    if closing {
                        self.give_up_pending();
                    }
                    why
                }
            };
            self.shared.failed.fetch_add(spans, Relaxed);
            if closing {
                self.outage = Some(why);
            } else {
                self.begin_outage(why, "those of this request are lost");
            }
            return;
        }
    }

    /// Counts what is pending as lost. At the end, a collector that fails once has failed: whoever waits for us is not to wait
    /// for every batch.
    fn give_up_pending(&mut self) {
        let left = self.pending.spans.len() - self.sent;
        self.shared.queued.sub(left, self.pending.bytes.len() - self.sent_bytes);
        self.shared.failed.fetch_add(left as u64, Relaxed);
        (self.sent, self.sent_bytes) = (self.pending.spans.len(), self.pending.bytes.len());
    }

    /// Waits, unless the end is near.
    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.closing() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    fn send(&self) -> Answer {
        let timeout = self.phase_timeout();
        // No total timeout, nor one for the name: ureq would start a thread per request to enforce it.
        let mut request = self
            .agent
            .post(&self.config.url)
            .config()
            .timeout_connect(timeout)
            .timeout_send_request(timeout)
            .timeout_send_body(timeout)
            .timeout_recv_response(timeout)
            .timeout_recv_body(timeout)
            .build()
            .header("content-type", "application/x-protobuf");
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let mut response = match request.send(self.request.as_slice()) {
            Ok(response) => response,
            Err(error) => return Answer::NotNow { why: error.to_string(), pause: None },
        };
        let status = response.status().as_u16();
        let pause =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
        // Read to its end, the connection can be used again. The status has decided already.
        let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().unwrap_or_default();
        match status {
            200..=299 => Answer::Accepted { rejected: encode::rejected_spans(&body) },
            // The statuses that OTLP says may be repeated.
            429 | 502 | 503 | 504 => Answer::NotNow { why: format!("status {status}"), pause },
            _ => Answer::Refused { why: format!("status {status}") },
        }
    }

    /// How long each phase of a request may take: at the end, not longer than somebody waits for it.
    fn phase_timeout(&self) -> Option<Duration> {
        let deadline = lock(&self.shared.end).deadline;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        match (self.config.request_timeout, left) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        }
    }

    /// Tells of the first failure of a row; the others follow from it.
    fn begin_outage(&mut self, why: String, consequence: &str) {
        if self.outage.is_none() {
            tell(&format!("cannot send spans to {}: {why}; {consequence}", self.config.url));
        }
        self.outage = Some(why);
    }

    /// Tells how many spans are lost, if that is news.
    fn tell_losses(&mut self) {
        let counts = self.shared.counts();
        let lost = counts.lost();
        if lost > self.told_lost {
            self.told_lost = lost;
            let full = if counts.queue_full > 0 { format!("; {} found the queue full", counts.queue_full) } else { String::new() };
            let why = self.outage.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            tell(&format!("{lost} of {} spans were lost on the way to {}{why}{full}", counts.emitted, self.config.url));
        }
    }
}

/// Where in the source a span is made, by OpenTelemetry's names, encoded once per place.
fn encode_place(metadata: &'static Metadata<'static>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut attribute = |key, value| encode::attribute(&mut out, encode::span::ATTRIBUTES, key, value);
    if let Some(file) = metadata.file() {
        attribute("code.file.path", Value::Str(file));
    }
    if let Some(line) = metadata.line() {
        attribute("code.line.number", Value::Int(i64::from(line)));
    }
    if let Some(module) = metadata.module_path() {
        attribute("code.module.name", Value::Str(module));
    }
    if metadata.module_path() != Some(metadata.target()) {
        attribute("target", Value::Str(metadata.target()));
    }
    out
}
