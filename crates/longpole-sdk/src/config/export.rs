//! How and where spans are sent.

use std::str::FromStr;
use std::time::Duration;

use super::program::Program;
use super::reader::{Variables, parse_pairs};
use super::resource::Resource;
use crate::options::{Protocol, SpanProcessor};

/// Where a collector listens for HTTP, below its endpoint.
const TRACES_PATH: &str = "/v1/traces";

/// How spans are sent.
#[derive(Debug, Clone)]
pub(crate) struct ExportConfig {
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code, reason = "there is one"))]
    pub(crate) protocol: Protocol,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// For each phase of a request; `None` = no limit.
    pub(crate) request_timeout: Option<Duration>,
    /// For a batch with its repetitions; `None` = no limit.
    pub(crate) export_timeout: Option<Duration>,
    pub(crate) schedule_delay: Duration,
    pub(crate) max_queue_spans: usize,
    pub(crate) max_batch_spans: usize,
    /// Requests that may be on their way at a time.
    pub(crate) max_concurrent_exports: usize,
    /// Where the address begins with `https`.
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "there is no TLS"))]
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) resource: Resource,
}

/// Paths of what TLS needs; none of them need be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Certificates to trust instead of the system's.
    pub(crate) certificate: Option<String>,
    pub(crate) client_certificate: Option<String>,
    pub(crate) client_key: Option<String>,
}

/// Largest queue and batch that a program can choose: enough for any burst, and sums of it cannot overflow.
const MAX_SPANS: usize = 1 << 24;

/// OpenTelemetry's default of 2,048 is a few milliseconds of a busy program; a queue of this length is some 5 MB when full.
const DEFAULT_QUEUE_SPANS: usize = 16_384;

/// What the standard processors take where nobody says.
const STANDARD_QUEUE_SPANS: usize = 2_048;

/// Each request that is on its way has a thread and a connection of its own.
const MAX_CONCURRENT_EXPORTS: usize = 64;

/// Whether this build has what features add.
pub(super) const HAS_STANDARD_STACK: bool = cfg!(feature = "opentelemetry");
pub(super) const HAS_TLS: bool = cfg!(feature = "tls");
pub(super) const HAS_GRPC_TLS: bool = cfg!(feature = "grpc-tls");

/// Our own variable: OpenTelemetry has none for this.
const PROCESSOR_VARIABLE: &str = "LONGPOLE_SPAN_PROCESSOR";

pub(super) fn read_processor(reader: &mut Variables<'_>, program: &Program) -> SpanProcessor {
    let (processor, whence) = match (program.processor, reader.text(PROCESSOR_VARIABLE)) {
        (Some(processor), _) => (processor, processor.to_string()),
        (None, None) => return SpanProcessor::default(),
        (None, Some(name)) => match name.parse() {
            Ok(processor) => (processor, format!("{PROCESSOR_VARIABLE}={name}")),
            Err(error) => {
                reader.complaints.push(format!("{PROCESSOR_VARIABLE}={name}: {error}; using longpole"));
                return SpanProcessor::default();
            }
        },
    };
    if processor != SpanProcessor::Longpole && !HAS_STANDARD_STACK {
        let feature = "the feature `opentelemetry` of longpole-sdk";
        reader.complaints.push(format!("{whence}: this program is built without {feature}; using longpole"));
        return SpanProcessor::Longpole;
    }
    processor
}

fn read_protocol(reader: &mut Variables<'_>, program: &Program) -> Protocol {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let (whence, protocol) = match (program.protocol, reader.first(&variables)) {
        (Some(protocol), _) => (protocol.to_string(), protocol),
        (None, None) => return Protocol::HttpProtobuf,
        (None, Some((name, value))) => match value.parse() {
            Ok(protocol) => (format!("{name}={value}"), protocol),
            Err(_) => {
                reader.complaints.push(format!("{name}={value} is not supported; using http/protobuf"));
                return Protocol::HttpProtobuf;
            }
        },
    };
    match protocol {
        Protocol::Grpc if !HAS_STANDARD_STACK => {
            let feature = "the feature `opentelemetry` of longpole-sdk";
            reader.complaints.push(format!("{whence}: this program is built without {feature}; using http/protobuf"));
            Protocol::HttpProtobuf
        }
        Protocol::HttpJson => {
            reader.complaints.push(format!("{whence} is not supported; using http/protobuf, which the same port accepts"));
            Protocol::HttpProtobuf
        }
        spoken => spoken,
    }
}

/// Where requests go, by protocol.
fn read_url(reader: &mut Variables<'_>, program: &Program, protocol: Protocol) -> Option<String> {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    let given = reader.first(&variables).or_else(|| program.endpoint.clone().map(|endpoint| ("endpoint", endpoint)));
    let (variable, endpoint) = given?;
    let uri = endpoint.parse::<ureq::http::Uri>().ok();
    let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    let missing = if protocol == Protocol::Grpc { (!HAS_GRPC_TLS).then_some("grpc-tls") } else { (!HAS_TLS).then_some("tls") };
    let refused = match uri.as_ref().and_then(|uri| uri.scheme_str()) {
        Some("http") => None,
        Some("https") => missing.map(|feature| format!("this program is built without the feature `{feature}` of longpole-sdk")),
        _ => Some(format!("{endpoint} is not an http:// or https:// address")),
    };
    if let Some(why) = refused {
        reader.complaints.push(format!("{variable}: {why}; sending no spans"));
        return None;
    }
    let uri = uri?;
    Some(match protocol {
        // The path is that of the service.
        Protocol::Grpc => format!("{}://{}", uri.scheme_str()?, uri.authority()?),
        _ if variable == variables[0] => endpoint,
        _ => format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/')),
    })
}

pub(super) fn read_export(
    reader: &mut Variables<'_>,
    program: &Program,
    processor: SpanProcessor,
    resource: &Resource,
) -> Option<ExportConfig> {
    let exporters = reader.text("OTEL_TRACES_EXPORTER").unwrap_or("otlp".into());
    if !exporters.split(',').any(|name| name.trim() == "otlp") {
        if exporters != "none" {
            reader.complaints.push(format!("OTEL_TRACES_EXPORTER={exporters} is not supported (otlp, none); sending no spans"));
        }
        return None;
    }
    let protocol = read_protocol(reader, program);
    let url = read_url(reader, program, protocol)?;
    let compression = reader.first(&["OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"]);
    if let Some((name, value)) = compression.filter(|(_, value)| value != "none") {
        reader.complaints.push(format!("{name}={value} is not supported; sending requests uncompressed"));
    }
    let default_queue_spans = match processor {
        SpanProcessor::Longpole => DEFAULT_QUEUE_SPANS,
        _ => STANDARD_QUEUE_SPANS,
    };
    let max_queue_spans = reader.parsed(&["OTEL_BSP_MAX_QUEUE_SIZE"], default_queue_spans, |spans| (1..=MAX_SPANS).contains(spans));
    let max_batch_spans = reader.parsed(&["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], 512, |spans| (1..=MAX_SPANS).contains(spans));
    let delay_millis = reader.parsed(&["OTEL_BSP_SCHEDULE_DELAY"], 5_000, |_| true);
    let is_concurrency = |exports: &usize| (1..=MAX_CONCURRENT_EXPORTS).contains(exports);
    let max_concurrent_exports = reader.parsed(&["OTEL_BSP_MAX_CONCURRENT_EXPORTS"], 1, is_concurrency);
    if max_concurrent_exports > 1 && matches!(processor, SpanProcessor::Batch | SpanProcessor::Simple) {
        reader
            .complaints
            .push(format!("OTEL_BSP_MAX_CONCURRENT_EXPORTS={max_concurrent_exports}: {processor} sends one request at a time"));
    }
    Some(ExportConfig {
        protocol,
        tls: url.starts_with("https://").then(|| read_tls_files(reader)),
        url,
        headers: read_headers(reader, &["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]),
        request_timeout: reader.timeout(&["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"], 10_000),
        export_timeout: reader.timeout(&["OTEL_BSP_EXPORT_TIMEOUT"], 30_000),
        // A delay of nothing would keep a core busy with looking.
        schedule_delay: Duration::from_millis(delay_millis.max(1)),
        max_queue_spans,
        max_batch_spans: max_batch_spans.min(max_queue_spans),
        max_concurrent_exports,
        resource: resource.clone(),
    })
}

pub(super) fn read_tls_files(reader: &Variables<'_>) -> TlsFiles {
    let file = |kind: &str| {
        let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{kind}"), format!("OTEL_EXPORTER_OTLP_{kind}")];
        reader.first(&names.each_ref().map(String::as_str)).map(|(_, path)| path)
    };
    TlsFiles { certificate: file("CERTIFICATE"), client_certificate: file("CLIENT_CERTIFICATE"), client_key: file("CLIENT_KEY") }
}

pub(super) fn read_headers(reader: &mut Variables<'_>, names: &[&str]) -> Vec<(String, String)> {
    let Some((variable, text)) = reader.first(names) else { return Vec::new() };
    let headers = parse_pairs(&text).filter(|pairs| {
        pairs.iter().all(|(name, value)| ureq::http::HeaderName::from_str(name).is_ok() && ureq::http::HeaderValue::from_str(value).is_ok())
    });
    headers.unwrap_or_else(|| {
        // Headers hold credentials: the text itself is not told.
        reader.complaints.push(format!("{variable} is not a list of key=value pairs; ignoring it"));
        Vec::new()
    })
}
