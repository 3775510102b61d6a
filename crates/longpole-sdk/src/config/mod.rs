//! What the environment asks for: OpenTelemetry's variables, read once. A value that cannot be used is replaced by the default
//! and told once; nothing here fails.

use std::str::FromStr;
use std::time::Duration;

use crate::context::{SAMPLED, SpanContext};
use crate::encode::{self, Value, attribute};
use crate::options::{Protocol, SpanProcessor};

/// Where a collector listens for HTTP, below its endpoint.
const TRACES_PATH: &str = "/v1/traces";

/// What we know of ourselves, for the resource.
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    /// Path of the executable.
    pub(crate) executable: Option<String>,
    pub(crate) host: Option<String>,
}

/// What the program says of itself. Its choices of how to send win over the environment, for they come from its own command
/// line; what it calls itself and where it sends by default gives way to it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Program {
    pub(crate) service: Option<String>,
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) endpoint: Option<String>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) processor: Option<SpanProcessor>,
}

/// The whole configuration of a layer.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `OTEL_SDK_DISABLED`: no ids, no record, no export.
    pub(crate) disabled: bool,
    /// `None`: nobody asked for spans.
    pub(crate) export: Option<ExportConfig>,
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code, reason = "there is one"))]
    pub(crate) processor: SpanProcessor,
    pub(crate) sampler: Sampler,
    /// `TRACEPARENT`: the parent of the spans that have none in this process.
    pub(crate) remote_parent: Option<SpanContext>,
    pub(crate) limits: Limits,
    /// Whom the spans are of, also where nobody asked for them.
    pub(crate) resource: Resource,
    /// What could not be used, for people.
    pub(crate) complaints: Vec<String>,
}

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
    /// Whom to trust, in place of whom the system trusts.
    pub(crate) certificate: Option<String>,
    pub(crate) client_certificate: Option<String>,
    pub(crate) client_key: Option<String>,
}

/// The revision of OTEP 4947 whose record and symbol we publish: the one that its text names until it is stable.
const THREAD_CONTEXT_SCHEMA: &str = "tlsdesc_v1_dev";

/// Whom the spans are of.
#[derive(Debug, Clone)]
pub(crate) struct Resource(pub(crate) Vec<(String, ResourceValue)>);

#[derive(Debug, Clone)]
pub(crate) enum ResourceValue {
    Text(String),
    Int(i64),
}

impl Resource {
    /// What OTEP 4719 publishes of a process: the resource, and that its threads follow OTEP 4947 without attributes of their own.
    pub(crate) fn process_context(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode::bytes(&mut out, 1, &self.encoded());
        attribute(&mut out, 2, "threadlocal.schema_version", Value::Str(THREAD_CONTEXT_SCHEMA));
        attribute(&mut out, 2, "threadlocal.attribute_key_map", Value::Texts(&[]));
        out
    }

    /// OTLP's `Resource` message.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in &self.0 {
            let value = match value {
                ResourceValue::Text(text) => Value::Str(text),
                ResourceValue::Int(number) => Value::Int(*number),
            };
            attribute(&mut out, 1, key, value);
        }
        out
    }
}

/// How much a span may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) attributes: u32,
    pub(crate) events: u32,
    pub(crate) links: u32,
    /// Bytes of a text; longer ones are cut at a character.
    pub(crate) value_bytes: usize,
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Follow the decision of the parent where there is one.
    pub(crate) parent_based: bool,
    /// Share of the traces that begin here, in units of 2^-63; all of them at 2^63.
    threshold: u64,
}

#[cfg(feature = "opentelemetry")]
impl Sampler {
    /// The share again, 0 to 1.
    pub(crate) fn ratio(&self) -> f64 {
        self.threshold as f64 / ALL_TRACES as f64
    }
}

const ALL_TRACES: u64 = 1 << 63;

impl Sampler {
    const DEFAULT: Self = Self { parent_based: true, threshold: ALL_TRACES };

    /// Whether a trace that begins here is recorded. Decides by the id alone, so that all processes of a trace agree.
    pub(crate) fn samples(&self, trace_id: &[u8; 16]) -> bool {
        let random = trace_id[8..].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)) >> 1;
        random < self.threshold
    }

    /// Flags of a span of this trace with this parent.
    pub(crate) fn flags(&self, trace_id: &[u8; 16], parent: Option<&SpanContext>) -> u8 {
        let sampled = match parent {
            Some(parent) if self.parent_based => parent.sampled(),
            _ => self.samples(trace_id),
        };
        if sampled { SAMPLED } else { 0 }
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    complaints: Vec<String>,
}

impl Reader<'_> {
    /// A variable that is set to nothing is not set, as OpenTelemetry has it.
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set, with its name.
    fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        names.iter().find_map(|name| self.text(name).map(|value| (*name, value)))
    }

    fn parsed<T: FromStr + ToString>(&mut self, names: &[&str], default: T, is_valid: impl Fn(&T) -> bool) -> T {
        let Some((name, value)) = self.first(names) else { return default };
        match value.parse() {
            Ok(number) if is_valid(&number) => number,
            _ => {
                self.complaints.push(format!("{name}={value} is not usable, the default {} is used", default.to_string()));
                default
            }
        }
    }

    /// Milliseconds; zero means no limit.
    fn timeout(&mut self, names: &[&str], default_millis: u64) -> Option<Duration> {
        let millis = self.parsed(names, default_millis, |_| true);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.text(name) {
            None => false,
            Some(value) if value.eq_ignore_ascii_case("true") => true,
            Some(value) if value.eq_ignore_ascii_case("false") => false,
            Some(value) => {
                self.complaints.push(format!("{name}={value} is neither true nor false, false is used"));
                false
            }
        }
    }
}

impl Config {
    /// Reads the variables through `get`.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>, facts: &ProcessFacts, program: &Program) -> Self {
        let mut reader = Reader { get, complaints: Vec::new() };
        let disabled = reader.flag("OTEL_SDK_DISABLED");
        let remote_parent = reader.text("TRACEPARENT").and_then(|text| match SpanContext::from_traceparent(&text) {
            Ok(context) => Some(context),
            Err(error) => {
                reader.complaints.push(format!("TRACEPARENT={text} is ignored: {error}"));
                None
            }
        });
        let processor = read_processor(&mut reader, program);
        let resource = if disabled { Resource(Vec::new()) } else { read_resource(&mut reader, facts, program) };
        let export = if disabled { None } else { read_export(&mut reader, program, processor, &resource) };
        let sampler = read_sampler(&mut reader);
        let limits = Limits {
            attributes: reader.parsed(&["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"], 128, |_| true),
            events: reader.parsed(&["OTEL_SPAN_EVENT_COUNT_LIMIT"], 128, |_| true),
            links: reader.parsed(&["OTEL_SPAN_LINK_COUNT_LIMIT"], 128, |_| true),
            value_bytes: reader.parsed(
                &["OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"],
                usize::MAX,
                |_| true,
            ),
        };
        Self { disabled, export, processor, sampler, remote_parent, limits, resource, complaints: reader.complaints }
    }
}

/// Largest queue and batch that can be asked for: enough for any burst, and sums of it cannot overflow.
const MAX_SPANS: usize = 1 << 24;

/// OpenTelemetry's default of 2,048 is a few milliseconds of a busy program; a queue of this length is some 5 MB when full.
const DEFAULT_QUEUE_SPANS: usize = 16_384;

/// What the standard processors take where nobody says.
const STANDARD_QUEUE_SPANS: usize = 2_048;

/// Each request that is on its way has a thread and a connection of its own.
const MAX_CONCURRENT_EXPORTS: usize = 64;

/// What can be asked for beyond what is always there.
const HAS_STANDARD_STACK: bool = cfg!(feature = "opentelemetry");
const HAS_TLS: bool = cfg!(feature = "tls");
const HAS_GRPC_TLS: bool = cfg!(feature = "grpc-tls");

/// Our own variable: OpenTelemetry has none for this.
const PROCESSOR_VARIABLE: &str = "LONGPOLE_SPAN_PROCESSOR";

fn read_processor(reader: &mut Reader<'_>, program: &Program) -> SpanProcessor {
    let (processor, whence) = match (program.processor, reader.text(PROCESSOR_VARIABLE)) {
        (Some(processor), _) => (processor, processor.to_string()),
        (None, None) => return SpanProcessor::default(),
        (None, Some(name)) => match name.parse() {
            Ok(processor) => (processor, format!("{PROCESSOR_VARIABLE}={name}")),
            Err(error) => {
                reader.complaints.push(format!("{PROCESSOR_VARIABLE}={name}: {error}, longpole is used"));
                return SpanProcessor::default();
            }
        },
    };
    if processor != SpanProcessor::Longpole && !HAS_STANDARD_STACK {
        let feature = "the feature `opentelemetry` of longpole-sdk";
        reader.complaints.push(format!("{whence}: this program is built without {feature}, longpole is used"));
        return SpanProcessor::Longpole;
    }
    processor
}

fn read_protocol(reader: &mut Reader<'_>, program: &Program) -> Protocol {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let (whence, protocol) = match (program.protocol, reader.first(&variables)) {
        (Some(protocol), _) => (protocol.to_string(), protocol),
        (None, None) => return Protocol::HttpProtobuf,
        (None, Some((name, value))) => match value.parse() {
            Ok(protocol) => (format!("{name}={value}"), protocol),
            Err(_) => {
                reader.complaints.push(format!("{name}={value} is not spoken here, http/protobuf is used"));
                return Protocol::HttpProtobuf;
            }
        },
    };
    match protocol {
        Protocol::Grpc if !HAS_STANDARD_STACK => {
            let feature = "the feature `opentelemetry` of longpole-sdk";
            reader.complaints.push(format!("{whence}: this program is built without {feature}, http/protobuf is used"));
            Protocol::HttpProtobuf
        }
        Protocol::HttpJson => {
            reader.complaints.push(format!("{whence} is not spoken here, http/protobuf is used, which the same port takes"));
            Protocol::HttpProtobuf
        }
        spoken => spoken,
    }
}

/// Where requests go, by protocol.
fn read_url(reader: &mut Reader<'_>, program: &Program, protocol: Protocol) -> Option<String> {
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
        reader.complaints.push(format!("{variable}: {why}, no spans are sent"));
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

fn read_export(reader: &mut Reader<'_>, program: &Program, processor: SpanProcessor, resource: &Resource) -> Option<ExportConfig> {
    let exporters = reader.text("OTEL_TRACES_EXPORTER").unwrap_or("otlp".into());
    if !exporters.split(',').any(|name| name.trim() == "otlp") {
        if exporters != "none" {
            reader.complaints.push(format!("OTEL_TRACES_EXPORTER={exporters} is not known here (otlp, none), no spans are sent"));
        }
        return None;
    }
    let protocol = read_protocol(reader, program);
    let url = read_url(reader, program, protocol)?;
    let compression = reader.first(&["OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"]);
    if let Some((name, value)) = compression.filter(|(_, value)| value != "none") {
        reader.complaints.push(format!("{name}={value} is not done here, requests are sent as they are"));
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
    let file = |kind: &str| {
        let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{kind}"), format!("OTEL_EXPORTER_OTLP_{kind}")];
        reader.first(&names.each_ref().map(String::as_str)).map(|(_, path)| path)
    };
    let files =
        TlsFiles { certificate: file("CERTIFICATE"), client_certificate: file("CLIENT_CERTIFICATE"), client_key: file("CLIENT_KEY") };
    Some(ExportConfig {
        protocol,
        tls: url.starts_with("https://").then_some(files),
        url,
        headers: read_headers(reader),
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

fn read_sampler(reader: &mut Reader<'_>) -> Sampler {
    let Some(name) = reader.text("OTEL_TRACES_SAMPLER") else { return Sampler::DEFAULT };
    let (parent_based, root) = match name.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, name.as_str()),
    };
    let threshold = match root {
        "always_on" => ALL_TRACES,
        "always_off" => 0,
        "traceidratio" => {
            let ratio = reader.parsed(&["OTEL_TRACES_SAMPLER_ARG"], 1.0_f64, |ratio| (0.0..=1.0).contains(ratio));
            (ratio * ALL_TRACES as f64) as u64
        }
        _ => {
            reader.complaints.push(format!("OTEL_TRACES_SAMPLER={name} is not known here, parentbased_always_on is used"));
            return Sampler::DEFAULT;
        }
    };
    Sampler { parent_based, threshold }
}

fn read_headers(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
    let Some((variable, text)) = reader.first(&names) else { return Vec::new() };
    let headers = parse_pairs(&text).filter(|pairs| {
        pairs.iter().all(|(name, value)| ureq::http::HeaderName::from_str(name).is_ok() && ureq::http::HeaderValue::from_str(value).is_ok())
    });
    headers.unwrap_or_else(|| {
        // Headers hold credentials: the text itself is not told.
        reader.complaints.push(format!("{variable} is not a list of key=value pairs, it is ignored"));
        Vec::new()
    })
}

/// The later of the sources wins: what we know, what the program says, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`.
fn read_resource(reader: &mut Reader<'_>, facts: &ProcessFacts, program: &Program) -> Resource {
    use ResourceValue::{Int, Text};
    let mut given = match reader.text("OTEL_RESOURCE_ATTRIBUTES") {
        None => Vec::new(),
        Some(text) => parse_pairs(&text).unwrap_or_else(|| {
            reader.complaints.push(format!("OTEL_RESOURCE_ATTRIBUTES={text} is not a list of key=value pairs, it is ignored"));
            Vec::new()
        }),
    };
    given.splice(0..0, program.resource.iter().cloned());
    // The later of two pairs of one key counts.
    let mut seen = Vec::new();
    given.reverse();
    given.retain(|(key, _)| {
        !seen.contains(key) && {
            seen.push(key.clone());
            true
        }
    });
    given.reverse();
    let executable_name = facts.executable.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
    if let Some(name) = reader.text("OTEL_SERVICE_NAME") {
        given.retain(|(key, _)| key != "service.name");
        given.insert(0, ("service.name".into(), name));
    } else if !given.iter().any(|(key, _)| key == "service.name") {
        let unknown = || executable_name.map_or("unknown_service".into(), |executable| format!("unknown_service:{executable}"));
        let name = program.service.clone().unwrap_or_else(unknown);
        given.insert(0, ("service.name".into(), name));
    }
    let own: [(&str, Option<ResourceValue>); 9] = [
        ("telemetry.sdk.name", Some(Text("longpole".into()))),
        ("telemetry.sdk.language", Some(Text("rust".into()))),
        ("telemetry.sdk.version", Some(Text(env!("CARGO_PKG_VERSION").into()))),
        ("process.pid", Some(Int(i64::from(facts.pid)))),
        ("process.executable.name", executable_name.map(|name| Text(name.into()))),
        ("process.executable.path", facts.executable.clone().map(Text)),
        ("host.name", facts.host.clone().map(Text)),
        ("host.arch", Some(Text(host_arch().into()))),
        ("os.type", Some(Text(std::env::consts::OS.into()))),
    ];
    let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let known = own.filter(|(key, _)| !seen.contains(key)).collect::<Vec<_>>();
    Resource(given.into_iter().map(|(key, value)| (key, Text(value))).chain(known).collect())
}

/// OpenTelemetry's word for the machine's instruction set.
fn host_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `a=1,b=2`, values percent-decoded, as W3C Baggage; `None` where a member is no pair.
fn parse_pairs(text: &str) -> Option<Vec<(String, String)>> {
    let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
    members
        .map(|member| {
            let (key, value) = member.split_once('=')?;
            let (key, value) = (percent_decoded(key.trim())?, percent_decoded(value.trim())?);
            (!key.is_empty()).then_some((key, value))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use prost::Message;

    use super::*;

    /// Reads `NAME=value` lines.
    fn read(lines: &str) -> Config {
        read_as(None, lines)
    }

    fn read_as(service: Option<&str>, lines: &str) -> Config {
        let vars: Vec<(&str, &str)> = lines.lines().filter_map(|line| line.trim().split_once('=')).collect();
        let program = Program { service: service.map(Into::into), ..Program::default() };
        read_program(&program, &vars)
    }

    fn read_program(program: &Program, vars: &[(&str, &str)]) -> Config {
        let facts = ProcessFacts { pid: 42, executable: Some("/bin/app".into()), host: Some("box".into()) };
        Config::read(&|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()), &facts, program)
    }

    fn resource(lines: &str) -> String {
        resource_as(None, lines)
    }

    fn resource_as(service: Option<&str>, lines: &str) -> String {
        let config = read_as(service, &format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n{lines}"));
        resource_text(&config)
    }

    fn resource_text(config: &Config) -> String {
        let encoded = config.export.as_ref().unwrap().resource.encoded();
        let resource = opentelemetry_proto::tonic::resource::v1::Resource::decode(encoded.as_slice()).unwrap();
        // What is the machine's is left out.
        let shown = resource
            .attributes
            .iter()
            .filter(|attribute| !["telemetry.sdk.", "host.arch", "os."].iter().any(|start| attribute.key.starts_with(start)));
        let pairs = shown.map(|attribute| match attribute.value.clone().unwrap().value.unwrap() {
            Any::StringValue(text) => format!("{}={text}", attribute.key),
            Any::IntValue(number) => format!("{}={number}", attribute.key),
            other => panic!("{other:?}"),
        });
        pairs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nobody_asks_for_spans_without_an_endpoint() {
        let config = read("");
        assert!(config.export.is_none() && !config.disabled && config.complaints.is_empty());
        assert!(read("OTEL_EXPORTER_OTLP_ENDPOINT= ").export.is_none());
        assert!(read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_TRACES_EXPORTER=none").export.is_none());
        let disabled = read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_SDK_DISABLED=TRUE");
        assert!(disabled.disabled && disabled.export.is_none());
    }

    #[test]
    fn the_general_endpoint_gets_a_path_and_the_one_for_traces_is_taken_as_it_is() {
        let url = |lines| read(lines).export.unwrap().url;
        assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1"), "http://h:1/v1/traces");
        assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1/otlp/"), "http://h:1/otlp/v1/traces");
        assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://t:2/in"), "http://t:2/in");
    }

    #[test]
    fn unusable_values_are_replaced_and_told_once_each() {
        let config = read(
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1
             OTEL_EXPORTER_OTLP_PROTOCOL=smoke
             OTEL_EXPORTER_OTLP_COMPRESSION=gzip
             OTEL_EXPORTER_OTLP_HEADERS=secret
             OTEL_EXPORTER_OTLP_TIMEOUT=-1
             OTEL_BSP_SCHEDULE_DELAY=soon
             OTEL_BSP_MAX_QUEUE_SIZE=0
             OTEL_BSP_MAX_EXPORT_BATCH_SIZE=99999999999999999999
             OTEL_BSP_EXPORT_TIMEOUT=0
             OTEL_BSP_MAX_CONCURRENT_EXPORTS=0
             LONGPOLE_SPAN_PROCESSOR=best
             OTEL_TRACES_SAMPLER=sometimes
             OTEL_RESOURCE_ATTRIBUTES=a=%zz
             OTEL_SDK_DISABLED=maybe
             TRACEPARENT=00-1-1-1",
        );
        let complaints = config.complaints.join("\n");
        assert_eq!(config.complaints.len(), 13, "{complaints}");
        assert!(!complaints.contains("secret"));
        let export = config.export.unwrap();
        assert_eq!(export.request_timeout, Some(Duration::from_secs(10)));
        assert_eq!(export.export_timeout, None);
        assert_eq!(export.schedule_delay, Duration::from_secs(5));
        assert_eq!((export.max_queue_spans, export.max_batch_spans), (16_384, 512));
        assert_eq!(config.sampler, Sampler::DEFAULT);
        assert_eq!(config.remote_parent, None);
        for endpoint in ["ftp://h:1", "h:1", "unix:///x", "http://", "http:// h"] {
            let config = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}"));
            assert!(config.export.is_none() && config.complaints.len() == 1, "{endpoint}: {:?}", config.complaints);
        }
    }

    #[test]
    fn what_needs_the_standard_stack_is_told_where_it_is_not_built_in() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1/otlp");
        let asked = [endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("LONGPOLE_SPAN_PROCESSOR", "batch-span-processor")];
        let config = read_program(&Program::default(), &asked);
        let export = config.export.unwrap();
        if HAS_STANDARD_STACK {
            assert_eq!(config.complaints, [""; 0]);
            assert_eq!((config.processor, export.protocol), (SpanProcessor::Batch, Protocol::Grpc));
            assert_eq!((export.url.as_str(), export.max_queue_spans), ("http://h:1", 2_048));
        } else {
            assert_eq!(config.complaints.len(), 2, "{:?}", config.complaints);
            assert_eq!((config.processor, export.protocol), (SpanProcessor::Longpole, Protocol::HttpProtobuf));
            assert_eq!((export.url.as_str(), export.max_queue_spans), ("http://h:1/otlp/v1/traces", 16_384));
        }
    }

    #[test]
    fn the_program_decides_how_to_send_and_the_environment_where_and_as_whom() {
        let program = Program {
            service: Some("shop".into()),
            resource: vec![("team".into(), "red".into()), ("host.name".into(), "mine".into())],
            endpoint: Some("http://default:1".into()),
            protocol: Some(Protocol::HttpJson),
            processor: Some(SpanProcessor::Longpole),
        };
        let config = read_program(&program, &[("LONGPOLE_SPAN_PROCESSOR", "simple")]);
        assert_eq!(config.processor, SpanProcessor::Longpole);
        assert_eq!(config.complaints.len(), 1, "{:?}", config.complaints);
        assert_eq!(config.export.as_ref().unwrap().url, "http://default:1/v1/traces");
        let known = "process.pid=42 process.executable.name=app process.executable.path=/bin/app";
        assert_eq!(resource_text(&config), format!("service.name=shop team=red host.name=mine {known}"));
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1"), ("OTEL_RESOURCE_ATTRIBUTES", "team=blue,service.name=web")];
        let config = read_program(&program, &vars);
        assert_eq!(config.export.as_ref().unwrap().url, "http://h:1/v1/traces");
        assert_eq!(resource_text(&config), format!("host.name=mine team=blue service.name=web {known}"));
    }

    #[test]
    fn tls_is_told_where_it_is_not_built_in() {
        let files = "OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem\nOTEL_EXPORTER_OTLP_CLIENT_KEY=a\nOTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=b";
        let config = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT=https://h:1\n{files}"));
        if HAS_TLS {
            let export = config.export.unwrap();
            let expected = TlsFiles { certificate: Some("ca.pem".into()), client_certificate: None, client_key: Some("b".into()) };
            assert_eq!((export.url.as_str(), export.tls), ("https://h:1/v1/traces", Some(expected)));
        } else {
            assert!(
                config.export.is_none() && config.complaints[0].contains("the feature `tls` of longpole-sdk"),
                "{:?}",
                config.complaints
            );
        }
        let plain = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\n{files}"));
        assert_eq!(plain.export.unwrap().tls, None);
        let grpc = read("OTEL_EXPORTER_OTLP_ENDPOINT=https://h:1/x\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc");
        assert_eq!(
            grpc.export.map(|export| export.url),
            HAS_GRPC_TLS
                .then(|| "https://h:1".into())
                .or(HAS_TLS.then(|| "https://h:1/x/v1/traces".into()).filter(|_| !HAS_STANDARD_STACK))
        );
    }

    #[test]
    fn a_batch_is_never_larger_than_the_queue() {
        let export = read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_BSP_MAX_QUEUE_SIZE=10").export.unwrap();
        assert_eq!((export.max_queue_spans, export.max_batch_spans), (10, 10));
    }

    #[test]
    fn the_resource_is_what_the_user_said_then_what_we_know() {
        let own = "process.pid=42 process.executable.name=app process.executable.path=/bin/app host.name=box";
        assert_eq!(resource(""), format!("service.name=unknown_service:app {own}"));
        assert_eq!(resource("OTEL_SERVICE_NAME=web"), format!("service.name=web {own}"));
        assert_eq!(resource_as(Some("shop"), ""), format!("service.name=shop {own}"));
        assert_eq!(resource_as(Some("shop"), "OTEL_SERVICE_NAME=web"), format!("service.name=web {own}"));
        assert_eq!(resource_as(Some("shop"), "OTEL_RESOURCE_ATTRIBUTES=service.name=web"), format!("service.name=web {own}"));
        assert_eq!(
            resource("OTEL_RESOURCE_ATTRIBUTES=a=1, service.name=from%20list ,a=%C3%A4,host.name=given"),
            "service.name=from list a=ä host.name=given process.pid=42 process.executable.name=app process.executable.path=/bin/app"
        );
        assert_eq!(resource("OTEL_SERVICE_NAME=web\nOTEL_RESOURCE_ATTRIBUTES=service.name=x"), format!("service.name=web {own}"));
    }

    #[test]
    fn headers_are_decoded() {
        let lines = "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_EXPORTER_OTLP_HEADERS=api-key=a%3Db, x-tenant = me";
        let headers = read(lines).export.unwrap().headers;
        assert_eq!(headers, [("api-key".into(), "a=b".into()), ("x-tenant".into(), "me".into())]);
    }

    #[test]
    fn samplers_decide_by_parent_or_by_id() {
        let sampler = |lines: &str| read(lines).sampler;
        let low = [0; 16];
        let high = [0xff; 16];
        let unsampled_parent = SpanContext { trace_id: low, span_id: [1; 8], flags: 0 };
        assert_eq!(sampler("").flags(&low, None), 1);
        assert_eq!(sampler("").flags(&high, None), 1);
        assert_eq!(sampler("").flags(&low, Some(&unsampled_parent)), 0);
        assert_eq!(sampler("OTEL_TRACES_SAMPLER=always_on").flags(&low, Some(&unsampled_parent)), 1);
        assert_eq!(sampler("OTEL_TRACES_SAMPLER=always_off").flags(&low, None), 0);
        let half = sampler("OTEL_TRACES_SAMPLER=parentbased_traceidratio\nOTEL_TRACES_SAMPLER_ARG=0.5");
        assert_eq!((half.flags(&low, None), half.flags(&high, None), half.flags(&low, Some(&unsampled_parent))), (1, 0, 0));
        assert_eq!(sampler("OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=2").flags(&high, None), 1);
        assert_eq!(sampler("OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=NaN").flags(&high, None), 1);
    }
}
