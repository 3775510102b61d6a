//! The thread that sends: sweeps the shards, makes requests out of spans, and hands them to a connection.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use tracing_core::Metadata;
use tracing_core::callsite::Identifier;

use super::queue::{MAX_KEPT_BYTES, SpanBuffer, SpanQueue, Waiting};
use super::retry::Connection;
use crate::config::ExportConfig;
use crate::encode::{self, Value};
use crate::locks::lock;
use crate::span_context::ContextWords;
use crate::{own_threads, thread_context};

/// Most bytes of spans in a request: the default limit of many collectors. A larger span goes alone.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Instrumentation scope of all spans.
const SCOPE_NAME: &str = env!("CARGO_PKG_NAME");
const SCOPE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Attribute of the scope once spans were lost: how many so far, for the receiver to keep with the data.
const DROPPED_SPANS: &str = "longpole.dropped_spans";

/// The far end of the exporter: lives on its own thread.
pub(crate) struct Worker {
    config: Arc<ExportConfig>,
    shared: Arc<SpanQueue>,
    connections: Connections,
    /// The `Resource` message.
    resource: Vec<u8>,
    /// Swept, not yet sent; `sent` spans of it, up to byte `sent_bytes`, are gone.
    pending: SpanBuffer,
    sent: usize,
    sent_bytes: usize,
    /// Empty buffer that replaces a swept one.
    spare: SpanBuffer,
    request: Vec<u8>,
    /// `code.*` and `target` of each place that made a span, encoded.
    places: HashMap<Identifier, Vec<u8>>,
}

/// The connections that take requests to the collector.
enum Connections {
    /// This thread, one after the other.
    Own(Box<Connection>),
    /// Threads with a connection each, where `OTEL_BSP_MAX_CONCURRENT_EXPORTS` asks for more than one. A request is handed over
    /// when one of them is free.
    Threads { door: SyncSender<(Vec<u8>, u64)>, threads: Vec<JoinHandle<()>> },
}

impl Connections {
    fn new(config: &Arc<ExportConfig>, shared: &Arc<SpanQueue>) -> Self {
        let own = || Self::Own(Box::new(Connection::new(Arc::clone(config), Arc::clone(shared))));
        if config.max_concurrent_exports <= 1 {
            return own();
        }
        let (door, requests) = std::sync::mpsc::sync_channel(0);
        let requests = Arc::new(Mutex::new(requests));
        let threads = (0..config.max_concurrent_exports).map_while(|_| {
            let (config, shared, requests) = (Arc::clone(config), Arc::clone(shared), Arc::clone(&requests));
            let run = move || {
                begin_own_thread();
                let mut connection = Connection::new(config, shared);
                let next = || lock::<Receiver<(Vec<u8>, u64)>>(&requests).recv();
                while let Ok((request, spans)) = next() {
                    connection.deliver(&request, spans);
                }
            };
            own_threads::builder().spawn(run).ok()
        });
        let threads: Vec<_> = threads.collect();
        // A machine that has no more threads has this one.
        if threads.is_empty() { own() } else { Self::Threads { door, threads } }
    }

    fn deliver(&mut self, request: &mut Vec<u8>, spans: u64) {
        match self {
            Self::Own(connection) => connection.deliver(request, spans),
            Self::Threads { door, .. } => {
                // They end when the door is gone, not before.
                let _ = door.send((std::mem::take(request), spans));
            }
        }
    }

    /// Returns when nothing is on its way.
    fn finish(self) {
        if let Self::Threads { door, threads } = self {
            drop(door);
            for thread in threads {
                // A panic of theirs is a bug of ours; the program ends all the same.
                let _ = thread.join();
            }
        }
    }
}

/// To the profiler, this thread works for no span; to our layer, what it does is not the program's.
fn begin_own_thread() {
    thread_context::publish(ContextWords::NONE);
    own_threads::mark();
}

impl Worker {
    /// On the thread that it stays on.
    pub(crate) fn begin(config: ExportConfig, shared: Arc<SpanQueue>) -> Self {
        begin_own_thread();
        let config = Arc::new(config);
        Self {
            connections: Connections::new(&config, &shared),
            resource: config.resource.encoded(),
            config,
            shared,
            pending: SpanBuffer::default(),
            sent: 0,
            sent_bytes: 0,
            spare: SpanBuffer::default(),
            request: Vec::new(),
            places: HashMap::new(),
        }
    }

    pub(crate) fn run(mut self) {
        loop {
            self.wait_for_work();
            let closing = self.closing();
            self.sweep(closing);
            while self.take_batch() {
                let spans = self.encode_batch();
                self.connections.deliver(&mut self.request, spans);
            }
            if closing {
                break;
            }
        }
        self.connections.finish();
        let shared = self.shared;
        // Whoever gave up has told.
        if !shared.abandoned.load(Relaxed) {
            lock(&shared.outage).tell_losses(&self.config.url, &shared.counts());
        }
        lock(&shared.end).reached = true;
        shared.ended.notify_all();
    }

    fn closing(&self) -> bool {
        self.shared.closing.load(Acquire)
    }

    /// Returns when a batch is full, when the delay is over, or when the end is near.
    fn wait_for_work(&self) {
        let due = Instant::now() + self.config.schedule_delay;
        while !self.closing() && !self.has_work_now() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// A batch is full, or somebody waits for what there is.
    fn has_work_now(&self) -> bool {
        let spans = self.shared.queued.spans();
        spans >= self.config.max_batch_spans || (spans > 0 && self.shared.is_wanted())
    }

    /// Takes what the program's threads have left; the last time, it closes the door behind.
    fn sweep(&mut self, close: bool) {
        self.pending.clear();
        (self.sent, self.sent_bytes) = (0, 0);
        for shard in &self.shared.shards {
            let mut state = lock(&shard.state);
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

    /// Whether there is another batch to send. After the shutdown was given up, what is left counts as lost; so it does at the
    /// end after an attempt that failed: whoever waits for us is not to wait for every batch.
    fn take_batch(&mut self) -> bool {
        if self.shared.abandoned.load(Relaxed) || self.shared.gave_up.load(Relaxed) {
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
        let resource_spans_len = encode::message_len(1, self.resource.len()) + encode::message_len(2, scope_spans_len);
        let out = &mut self.request;
        out.clear();
        out.shrink_to(MAX_KEPT_BYTES);
        encode::message(out, 1, resource_spans_len);
        encode::bytes(out, 1, &self.resource);
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

    /// Counts what is pending as lost.
    fn give_up_pending(&mut self) {
        let left = self.pending.spans.len() - self.sent;
        self.shared.queued.sub(left, self.pending.bytes.len() - self.sent_bytes);
        self.shared.failed.fetch_add(left as u64, Relaxed);
        (self.sent, self.sent_bytes) = (self.pending.spans.len(), self.pending.bytes.len());
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
