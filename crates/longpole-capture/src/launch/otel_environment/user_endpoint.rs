//! The user's own exporter endpoints, and how to forward requests to them.

use std::borrow::Cow;
use std::path::PathBuf;

use super::note::{Note, note};
use super::url::Url;
use super::variables::Environment;

const PREFIX: &str = "OTEL_EXPORTER_OTLP_";
const SIGNALS: [(&str, &str); 3] = [("TRACES_", "traces"), ("METRICS_", "metrics"), ("LOGS_", "logs")];
const TLS: [&str; 4] = ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY", "INSECURE"];

/// The user's own exporter endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserEndpoint {
    /// For spans.
    pub traces: Option<SignalEndpoint>,
    /// For metrics.
    pub metrics: Option<SignalEndpoint>,
    /// For log records.
    pub logs: Option<SignalEndpoint>,
}

/// Where one signal goes, and how. Each setting is the signal's own or, where that is unset, the general one.
#[derive(Clone, PartialEq, Eq)]
pub struct SignalEndpoint {
    /// For OTLP/HTTP: with the path.
    pub http_url: String,
    /// For OTLP/gRPC: scheme, host and port.
    pub grpc_url: String,
    /// The protocol that is set, or gRPC if the address has no scheme, which only gRPC allows; `None`: the protocol that the SDK used with us.
    pub protocol: Option<Protocol>,
    /// Headers, or gRPC metadata, to add; often secret.
    pub headers: Vec<(String, String)>,
    /// How long a request may take.
    pub timeout_millis: Option<u64>,
    /// How to compress bodies.
    pub compression: Compression,
    /// Certificates to trust, PEM.
    pub certificate: Option<PathBuf>,
    /// Certificate to show, PEM.
    pub client_certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub client_key: Option<PathBuf>,
}

/// Header values and what stands before an `@` are left out: this may end in a log.
impl std::fmt::Debug for SignalEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SignalEndpoint")
            .field("http_url", &without_password(&self.http_url))
            .field("grpc_url", &without_password(&self.grpc_url))
            .field("protocol", &self.protocol)
            .field("headers", &names)
            .field("timeout_millis", &self.timeout_millis)
            .field("compression", &self.compression)
            .field("certificate", &self.certificate)
            .field("client_certificate", &self.client_certificate)
            .field("client_key", &self.client_key)
            .finish()
    }
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

/// OTLP's protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `grpc`
    Grpc,
    /// `http/protobuf`
    HttpProtobuf,
    /// `http/json`
    HttpJson,
}

/// OTLP's compressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// `none`
    #[default]
    None,
    /// `gzip`
    Gzip,
}

/// Puts our endpoint in and takes the user's out.
pub(super) fn take_user_endpoint(env: &mut Environment, endpoint: &str, notes: &mut Vec<Note>) -> Option<UserEndpoint> {
    let general_name = format!("{PREFIX}ENDPOINT");
    let insecure = |env: &Environment, signal: &str| {
        let own = env.text(&format!("{PREFIX}{signal}INSECURE"));
        own.or_else(|| env.text(&format!("{PREFIX}INSECURE"))).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    };
    let general = env.text(&general_name);
    if general.as_deref().is_some_and(|general| Url::parse(general, insecure(env, "")).is_none()) {
        let text = format!("{general_name} is not an http or https URL: longpole left it unchanged, so spans do not reach longpole");
        notes.push(note("endpoint_unknown", text));
        return None;
    }
    let mut user = UserEndpoint::default();
    let mut hosts: Vec<String> = Vec::new();
    for (signal, name) in SIGNALS {
        let own_name = format!("{PREFIX}{signal}ENDPOINT");
        let own = env.text(&own_name);
        let url = match (&own, &general) {
            (Some(own), _) => Url::parse(own, insecure(env, signal)),
            (None, Some(general)) => Url::parse(general, insecure(env, signal)).map(|url| url.join(&format!("v1/{name}"))),
            (None, None) => continue,
        };
        let Some(url) = url else {
            let text = format!("{own_name} is not an http or https URL: longpole left it unchanged, so {name} do not reach longpole");
            notes.push(note("endpoint_unknown", text));
            continue;
        };
        if !hosts.contains(&url.host()) {
            hosts.push(url.host());
        }
        let found = Some(signal_endpoint(env, signal, &url, notes));
        match name {
            "traces" => user.traces = found,
            "metrics" => user.metrics = found,
            _ => user.logs = found,
        }
        env.remove(&own_name);
    }
    for signal in ["", "TRACES_", "METRICS_", "LOGS_"] {
        for setting in TLS {
            env.remove(&format!("{PREFIX}{signal}{setting}"));
        }
        let compression = format!("{PREFIX}{signal}COMPRESSION");
        if env.text(&compression).is_some_and(|value| value != "gzip" && value != "none") {
            env.remove(&compression);
        }
    }
    env.set(&general_name, endpoint);
    if hosts.is_empty() {
        return None;
    }
    let hosts = hosts.join(" and ");
    notes.push(note("forwarded", format!("longpole forwards the command's telemetry to {hosts}, as the environment configures")));
    Some(user)
}

fn signal_endpoint(env: &Environment, signal: &str, url: &Url, notes: &mut Vec<Note>) -> SignalEndpoint {
    let setting = |name: &str| env.text(&format!("{PREFIX}{signal}{name}")).or_else(|| env.text(&format!("{PREFIX}{name}")));
    let path = |name: &str| {
        let own = env.get(&format!("{PREFIX}{signal}{name}")).or_else(|| env.get(&format!("{PREFIX}{name}")));
        own.map(PathBuf::from)
    };
    let (headers, broken) = parse_headers(setting("HEADERS").as_deref().unwrap_or_default());
    if broken > 0 {
        let text = format!("{broken} entries of {PREFIX}HEADERS are not `name=value`, so longpole does not forward them");
        if !notes.iter().any(|known| known.text == text) {
            notes.push(note("headers_unreadable", text));
        }
    }
    SignalEndpoint {
        http_url: url.http(),
        grpc_url: url.grpc(),
        protocol: match setting("PROTOCOL").as_deref() {
            Some("grpc") => Some(Protocol::Grpc),
            Some("http/protobuf") => Some(Protocol::HttpProtobuf),
            Some("http/json") => Some(Protocol::HttpJson),
            _ => (!url.has_scheme).then_some(Protocol::Grpc),
        },
        headers,
        timeout_millis: setting("TIMEOUT").and_then(|value| value.parse().ok()),
        compression: if setting("COMPRESSION").as_deref() == Some("gzip") { Compression::Gzip } else { Compression::None },
        certificate: path("CERTIFICATE"),
        client_certificate: path("CLIENT_CERTIFICATE"),
        client_key: path("CLIENT_KEY"),
    }
}

/// `name=value,name=value`, percent-encoded as W3C Baggage; and how many entries are not that.
fn parse_headers(text: &str) -> (Vec<(String, String)>, usize) {
    let mut headers = Vec::new();
    let mut broken = 0;
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let pair = entry.split_once('=').and_then(|(name, value)| Some((percent_decoded(name.trim())?, percent_decoded(value.trim())?)));
        match pair {
            Some((name, value)) if is_header_name(&name) && !value.bytes().any(|byte| byte < b' ' || byte == 0x7f) => {
                headers.push((name.to_ascii_lowercase(), value));
            }
            _ => broken += 1,
        }
    }
    (headers, broken)
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Undoes percent-encoding (RFC 3986, 2.1); `None` if the result is no text. A `%` without two hex digits stands for itself: many people do
/// not encode their tokens.
fn percent_decoded(text: &str) -> Option<String> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}
