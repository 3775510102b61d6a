//! A collector of some lines: takes OTLP over HTTP on a port of its own, answers by script, decodes with the generated
//! messages, and prints spans as a person would draw them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// What to do with the next request; past the script, requests are accepted.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    Accept,
    /// Accepts the request and rejects some of its spans.
    Reject(i64),
    Status(u16),
    /// Reads the request and never answers.
    Stall,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// Head and body of each request that was accepted.
    accepted: Vec<(String, ExportTraceServiceRequest)>,
    stalled: Vec<TcpStream>,
    requests: usize,
}

/// The collector; its threads end with the test process.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Collector {
    pub(crate) fn start(script: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new((Mutex::new(State { script: script.iter().copied().collect(), ..State::default() }), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { endpoint, state }
    }

    /// Waits until this many requests have been read.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let (state, changed) = &*self.state;
        let _state = changed.wait_while(state.lock().unwrap(), |state| state.requests < count).unwrap();
    }

    pub(crate) fn requests(&self) -> Vec<(String, ExportTraceServiceRequest)> {
        self.state.0.lock().unwrap().accepted.clone()
    }

    /// All spans that were accepted.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let resource_spans = requests.into_iter().flat_map(|(_, request)| request.resource_spans);
        resource_spans.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The layer that sends here, with more variables.
    pub(crate) fn layer(&self, more: &[(&'static str, &str)]) -> longpole_sdk::Layer {
        let mut vars: Vec<(&str, String)> = more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        vars.push(("OTEL_EXPORTER_OTLP_ENDPOINT", self.endpoint.clone()));
        longpole_sdk::layer_from(move |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone()))
    }
}

fn serve(stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut reader) {
        let (state, changed) = shared;
        let mut state = state.lock().unwrap();
        state.requests += 1;
        let reply = state.script.pop_front().unwrap_or(Reply::Accept);
        let (status, answer) = match reply {
            Reply::Stall => {
                state.stalled.push(writer);
                changed.notify_all();
                return;
            }
            Reply::Status(status) => (status, Vec::new()),
            Reply::Accept => (200, Vec::new()),
            Reply::Reject(rejected_spans) => {
                let partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message: "not these".into() });
                (200, ExportTraceServiceResponse { partial_success }.encode_to_vec())
            }
        };
        if status == 200 {
            state.accepted.push((head, ExportTraceServiceRequest::decode(body.as_slice()).unwrap()));
        }
        changed.notify_all();
        drop(state);
        let head = format!("HTTP/1.1 {status} So\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n", answer.len());
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&answer)).is_err() {
            return;
        }
    }
}

/// Head (request line and header lines, names in lower case) and body; `None` at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':').filter(|_| !head.is_empty()) {
            let name = name.to_ascii_lowercase();
            if name == "content-length" {
                length = value.trim().parse().unwrap();
            }
            writeln!(head, "{name}: {}", value.trim()).unwrap();
        } else {
            writeln!(head, "{}", line.trim()).unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// An address that nobody listens on. One that was bound and given back would be another test's collector soon.
pub(crate) fn dead_endpoint() -> String {
    "http://127.0.0.1:1".to_owned()
}

/// Spans as an indented tree, in order of their start; below each its events (`*`) and links (`~`).
/// Where a span is in the source and on which thread it began is left out.
pub(crate) fn tree(spans: &[Span]) -> String {
    let mut spans: Vec<&Span> = spans.iter().collect();
    spans.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
    let ids: Vec<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    let roots = spans.iter().filter(|span| !ids.contains(&span.parent_span_id.as_slice()));
    let mut out = String::new();
    for root in roots {
        print(root, &spans, 0, &mut out);
    }
    out
}

fn print(span: &Span, all: &[&Span], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let kind = ["?", "", " server", " client", " producer", " consumer"][span.kind as usize];
    let status = match &span.status {
        None => String::new(),
        Some(status) => format!(" {} {:?}", ["unset", "ok", "error"][status.code as usize], status.message),
    };
    writeln!(out, "{indent}{}{kind}{}{status}", span.name, attributes(&span.attributes)).unwrap();
    for event in &span.events {
        assert!((span.start_time_unix_nano..=span.end_time_unix_nano).contains(&event.time_unix_nano), "an event outside of its span");
        writeln!(out, "{indent}  * {}{}", event.name, attributes(&event.attributes)).unwrap();
    }
    for link in &span.links {
        let name = all.iter().find(|other| other.span_id == link.span_id).map_or("elsewhere", |other| &other.name);
        writeln!(out, "{indent}  ~ {name}").unwrap();
    }
    for dropped in
        [("attributes", span.dropped_attributes_count), ("events", span.dropped_events_count), ("links", span.dropped_links_count)]
    {
        if dropped.1 > 0 {
            writeln!(out, "{indent}  - {} {} dropped", dropped.1, dropped.0).unwrap();
        }
    }
    for child in all.iter().filter(|child| child.parent_span_id == span.span_id && child.trace_id == span.trace_id) {
        print(child, all, depth + 1, out);
    }
}

fn attributes(pairs: &[KeyValue]) -> String {
    let keys: Vec<&str> = pairs.iter().map(|pair| pair.key.as_str()).collect();
    for key in &keys {
        assert_eq!(keys.iter().filter(|other| *other == key).count(), 1, "{key} stands twice");
    }
    let shown = pairs.iter().filter(|pair| !["code.", "thread."].iter().any(|hidden| pair.key.starts_with(hidden)));
    shown.map(|pair| format!(" {}={}", pair.key, value(pair.value.as_ref().unwrap()))).collect()
}

fn value(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Value::StringValue(text) => format!("{text:?}"),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(truth) => truth.to_string(),
        Value::DoubleValue(number) => format!("{number:?}"),
        Value::BytesValue(bytes) => format!("{bytes:02x?}"),
        Value::ArrayValue(array) => format!("[{}]", array.values.iter().map(self::value).collect::<Vec<_>>().join(", ")),
        other => panic!("{other:?}"),
    }
}

/// Attributes by key, for those that the tree leaves out.
pub(crate) fn attribute_map(pairs: &[KeyValue]) -> BTreeMap<&str, String> {
    pairs.iter().map(|pair| (pair.key.as_str(), value(pair.value.as_ref().unwrap()))).collect()
}
