//! Traces of a server: what can be searched for, and what a search finds.

use longpole_store::live::{FoundPage, Operations, TraceSummary};
use serde::Serialize;

use super::shared::{nanos, unix_nano};

/// What the server of a page has.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ServerView {
    /// Whether it has traces of services and takes files, as `longpole serve`; `longpole open` has recordings only.
    pub traces: bool,
    /// A port that takes OTLP over HTTP; null if the server has recordings only.
    pub otlp_http_port: Option<u32>,
    /// A port that takes OTLP over gRPC; null if the server has recordings only.
    pub otlp_grpc_port: Option<u32>,
    /// A port that takes spans of Zipkin; null if the server has recordings only.
    pub zipkin_port: Option<u32>,
    /// A port that takes profiles of Pyroscope's clients; null if the server has recordings only.
    pub pyroscope_port: Option<u32>,
    /// Whether programs need a token to send.
    pub needs_token: bool,
}

/// What a link to a page of `longpole open` needs beside its address.
#[derive(Debug, Clone, Serialize)]
pub struct LinkView {
    /// The token that opens the page in any browser of the same user.
    pub token: String,
}

/// The services of a server.
#[derive(Debug, Clone, Serialize)]
pub struct ServicesView {
    /// The services, by name.
    pub services: Vec<ServiceView>,
    /// Whether there are more services or operations: a server lists about 8 MB of names.
    pub truncated: bool,
}

/// A service.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceView {
    /// Its name.
    pub name: String,
    /// Names of its operations.
    pub operations: Vec<String>,
}

/// The traces of a recording that the server has received as well, from the recorded processes and from others.
#[derive(Debug, Clone, Serialize)]
pub struct TracesOfRecordingView {
    /// The traces, by their ids.
    pub traces: Vec<ReceivedTraceView>,
    /// Whether the recording has more traces than this answer is about.
    pub truncated: bool,
}

/// A trace that a server received.
#[derive(Debug, Clone, Serialize)]
pub struct ReceivedTraceView {
    /// Its id.
    pub trace_id: String,
    /// Spans received.
    pub spans: u64,
}

/// What a search finds.
#[derive(Debug, Clone, Serialize)]
pub struct TracesView {
    /// The traces, the newest first.
    pub traces: Vec<TraceRowView>,
    /// Whether older traces may match as well.
    pub truncated: bool,
    /// The parameter `after` of a request for them; `null` if there are none, or if the server is another one.
    pub next: Option<String>,
}

/// A trace in a list.
#[derive(Debug, Clone, Serialize)]
pub struct TraceRowView {
    /// Its id.
    pub trace_id: String,
    /// Service of its root, or of its first span if no root came.
    pub service: String,
    /// Operation of that span.
    pub name: String,
    /// First start, in nanoseconds since 1970.
    pub start_unix_nano: String,
    /// From the first start to the last end.
    pub wall_nanos: i64,
    /// Spans received.
    pub spans: u32,
    /// Spans that failed.
    pub errors: u32,
    /// Services of its spans.
    pub services: Vec<ServiceSpansView>,
}

/// A service in a trace.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceSpansView {
    /// Its name.
    pub name: String,
    /// Its spans.
    pub spans: u32,
}

impl ServicesView {
    /// The view of services, operations and kinds, in the order of the alphabet.
    pub fn new(operations: Operations) -> Self {
        let truncated = operations.is_cut();
        let mut services: Vec<ServiceView> = Vec::new();
        for (service, name, _) in operations {
            if services.last().is_none_or(|last| last.name != service) {
                services.push(ServiceView { name: service, operations: Vec::new() });
            }
            if let Some(last) = services.last_mut().filter(|last| last.operations.last() != Some(&name)) {
                last.operations.push(name);
            }
        }
        ServicesView { services, truncated }
    }
}

impl TracesView {
    /// The view of what a search found.
    pub fn new(FoundPage { traces, next }: &FoundPage) -> Self {
        let next = next.map(|next| format!("{},{}", unix_nano(next.start), next.trace_id));
        TracesView { traces: traces.iter().map(TraceRowView::new).collect(), truncated: next.is_some(), next }
    }
}

impl TraceRowView {
    fn new(trace: &TraceSummary) -> Self {
        TraceRowView {
            trace_id: trace.trace_id.to_string(),
            service: trace.root_service.to_string(),
            name: trace.root_name.to_string(),
            start_unix_nano: unix_nano(trace.start),
            wall_nanos: nanos(trace.nanos()),
            spans: trace.spans,
            errors: trace.errors,
            services: trace.services.iter().map(|(name, spans)| ServiceSpansView { name: name.to_string(), spans: *spans }).collect(),
        }
    }
}
