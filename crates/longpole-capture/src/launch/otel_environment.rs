//! The environment that the command gets, so that its OpenTelemetry SDKs send to us.
//!
//! A pure function of the inherited environment. What the user set is kept wherever it can be, and what he would have
//! received he still receives: where he names an exporter endpoint, the command gets ours and every request is handed on
//! to his ([`UserEndpoint`]). What keeps spans from us is said in a [`Note`].
//!
//! | variable | what becomes of it |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | ours; the user's goes into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_{TRACES,METRICS,LOGS}_ENDPOINT` | removed, because they win over ours; the user's go into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]{CERTIFICATE,CLIENT_CERTIFICATE,CLIENT_KEY,INSECURE}` | removed, because ours speaks no TLS; they go into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]COMPRESSION` | removed unless `gzip` or `none`; it goes into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]{HEADERS,PROTOCOL,TIMEOUT}` | kept, and they go into [`UserEndpoint`]: our one port speaks every protocol |
//! | `OTEL_TRACES_EXPORTER` | `otlp` where unset; else kept, with a note where it is not OTLP |
//! | `OTEL_BSP_SCHEDULE_DELAY` | [`BATCH_DELAY_MILLIS`] where unset, so that little is lost when a command just exits |
//! | `OTEL_BSP_MAX_QUEUE_SIZE` | [`BATCH_QUEUE_SPANS`] where unset: SDKs drop what does not fit, and do not say so |
//! | `OTEL_TRACES_SAMPLER` | `always_off`, `parentbased_always_off`: `parentbased_always_on` where no endpoint of the user's would get more than he asked for; else kept, with a note |
//! | `OTEL_RESOURCE_ATTRIBUTES` | `longpole.run.id=…` appended |
//! | `TRACEPARENT` | the run's root span, in the user's own trace where he has one; always sampled |
//! | `TRACESTATE` | kept with a valid `TRACEPARENT` of the user, else removed: it belongs to a trace that is not continued |
//! | `BAGGAGE` | kept |
//! | `PULUMI_OPTION_OTEL_TRACES`, `PULUMI_OPTION_TRACING` | ours: Pulumi (3.208 and later) does not read the general variables. The user's go into [`PulumiTargets`] where the command is `pulumi` itself, else they are kept, with a note |
//! | `PULUMI_TRACING_NO_PAYLOADS` | kept. Where unset Pulumi sends payloads, and only they say which resource waits for which; what else they hold is dropped on decoding |
//! | `PULUMI_OPTION_EVENT_LOG` | ours where unset, with `PULUMI_DEBUG_COMMANDS`, without which it does not exist |
//! | `LONGPOLE_RUN_ID` | the run's id, for programs that want to know that they are recorded. A secret: who knows it may send to the run |
//! | `LONGPOLE_JOURNAL_DIR` | where threads of programs with `longpole-sdk` put their journals of spans; kept where nobody here reads them |
//! | `NO_PROXY`, `no_proxy`, `no_grpc_proxy` | our address appended, where a proxy variable is set |
//! | `OTEL_SDK_DISABLED`, `OTEL_PROPAGATORS`, `OTEL_CONFIG_FILE`, `OTEL_EXPERIMENTAL_CONFIG_FILE` | kept, with a note where they silence or cut spans |
//!
//! An empty variable counts as unset, as OpenTelemetry has it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How long a stock batch processor holds spans back, in milliseconds; the specification's default is 5,000. A batch
/// that is full goes earlier, so a busy program is not slowed down by this, and an idle one wakes five times a second.
pub const BATCH_DELAY_MILLIS: u32 = 200;

/// How many spans a stock batch processor holds before it drops; the specification's default is 2,048, which a program that
/// emits 20,000 spans a second fills in a tenth of a second of a busy machine.
pub const BATCH_QUEUE_SPANS: u32 = 65_536;

/// How much of the environment is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All that the table above says.
    Auto,
    /// Nothing.
    None,
}

/// What the environment is made from.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What we inherited.
    pub env: &'a [(OsString, OsString)],
    /// The command and its arguments.
    pub argv: &'a [OsString],
    /// Where we receive OTLP and Pulumi's events: `http://127.0.0.1:41234`, without a path.
    pub endpoint: &'a str,
    /// Where we receive AppDash: `tcp://127.0.0.1:41235`.
    pub appdash: &'a str,
    /// Version 00: the trace of the run, which is the user's where his `TRACEPARENT` is valid, and the run's root span.
    pub traceparent: &'a str,
    /// The run's id, which nobody else may know.
    pub run_id: &'a str,
    /// Where journals of spans are read.
    pub journals: Option<&'a Path>,
    /// How much is touched.
    pub mode: Mode,
}

/// What the command gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Its environment: the inherited variables in their order, new ones after them.
    pub env: Vec<(OsString, OsString)>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// Where requests are to be handed on to.
    pub forward: Option<UserEndpoint>,
    /// Where spans are to be handed on to besides.
    pub pulumi: PulumiTargets,
}

/// Where the user told Pulumi by its own variables to send its spans, in Pulumi's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PulumiTargets {
    /// `PULUMI_OPTION_OTEL_TRACES`.
    pub otel_traces: Option<String>,
    /// `PULUMI_OPTION_TRACING`.
    pub tracing: Option<String>,
}

/// Something about the user's environment that shows in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable, for machines.
    pub code: &'static str,
    /// Lower-case fragment, for people; without any value that may be secret.
    pub text: String,
}

/// The exporter endpoints that the user set himself.
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
    /// The protocol he set, or gRPC where the address has no scheme, which only gRPC allows; `None`: the protocol in which
    /// the SDK sent to us, for that is what it would have spoken to him.
    pub protocol: Option<Protocol>,
    /// Headers, or metadata, to send along; often secret.
    pub headers: Vec<(String, String)>,
    /// How long a request may take.
    pub timeout_millis: Option<u64>,
    /// How bodies are to be compressed.
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

const PREFIX: &str = "OTEL_EXPORTER_OTLP_";
const SIGNALS: [(&str, &str); 3] = [("TRACES_", "traces"), ("METRICS_", "metrics"), ("LOGS_", "logs")];
const TLS: [&str; 4] = ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY", "INSECURE"];
const PROXIES: [&str; 8] = ["http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY"];
const RUN_ID_ATTRIBUTE: &str = "longpole.run.id";

/// The environment of the command.
pub fn environment(request: &Request<'_>) -> Injection {
    let mut env = Environment(request.env.to_vec());
    let mut notes = Vec::new();
    if request.mode == Mode::None {
        return Injection { env: env.0, notes, forward: None, pulumi: PulumiTargets::default() };
    }
    note_silencers(&env, &mut notes);
    let forward = take_user_endpoint(&mut env, request.endpoint, &mut notes);
    wake_sampler(&mut env, forward.is_some(), &mut notes);
    set_trace_context(&mut env, request.traceparent, &mut notes);
    env.set_where_unset("OTEL_TRACES_EXPORTER", "otlp");
    env.set_where_unset("OTEL_BSP_SCHEDULE_DELAY", &BATCH_DELAY_MILLIS.to_string());
    env.set_where_unset("OTEL_BSP_MAX_QUEUE_SIZE", &BATCH_QUEUE_SPANS.to_string());
    let attributes = with_run_id(env.get("OTEL_RESOURCE_ATTRIBUTES"), request.run_id);
    env.set("OTEL_RESOURCE_ATTRIBUTES", attributes);
    env.set("LONGPOLE_RUN_ID", request.run_id);
    if let Some(journals) = request.journals {
        env.set("LONGPOLE_JOURNAL_DIR", journals);
    }
    let authority = request.endpoint.split_once("://").map_or(request.endpoint, |(_, rest)| rest);
    let pulumi = set_pulumi(&mut env, request, authority, &mut notes);
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    bypass_proxies(&mut env, host);
    Injection { env: env.0, notes, forward, pulumi }
}

/// Variables in their order. Only the last of several of one name would be seen by `getenv` of some libraries and the
/// first by that of others, so setting one removes all.
struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// As text; bytes that are no text become replacement characters, and then nothing that they could be taken for.
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string_lossy().trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        let value = value.into();
        match self.0.iter().position(|(key, _)| key == name) {
            Some(at) => {
                self.0[at].1 = value;
                let mut index = 0;
                self.0.retain(|(key, _)| {
                    index += 1;
                    index - 1 <= at || key != name
                });
            }
            None => self.0.push((name.into(), value)),
        }
    }

    fn set_where_unset(&mut self, name: &str, value: &str) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

fn note(code: &'static str, text: impl Into<String>) -> Note {
    Note { code, text: text.into() }
}

/// Settings of the user that keep spans from every exporter.
fn note_silencers(env: &Environment, notes: &mut Vec<Note>) {
    if env.text("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        notes.push(note("sdk_disabled", "OTEL_SDK_DISABLED=true: OpenTelemetry SDKs in the command record no spans"));
    }
    if let Some(exporter) = env.text("OTEL_TRACES_EXPORTER")
        && !exporter.split(',').any(|name| name.trim() == "otlp")
    {
        let text = format!("OTEL_TRACES_EXPORTER={exporter}: SDKs that read it do not send spans by OTLP; unset it, or add otlp");
        notes.push(note("exporter_not_otlp", text));
    }
    if let Some(sampler) = env.text("OTEL_TRACES_SAMPLER") {
        let share = env.text("OTEL_TRACES_SAMPLER_ARG");
        match sampler.as_str() {
            "traceidratio" | "parentbased_traceidratio" => {
                // Without an argument the share is 1.
                if let Some(share) = share.filter(|share| share.parse::<f64>().is_ok_and(|share| share < 1.0)) {
                    let text =
                        format!("OTEL_TRACES_SAMPLER={sampler}, {share}: SDKs in the command record only that share of their traces");
                    notes.push(note("sampled", text));
                }
            }
            _ => {}
        }
    }
    if let Some(propagators) = env.text("OTEL_PROPAGATORS")
        && !propagators.split(',').any(|name| name.trim() == "tracecontext")
    {
        let text =
            format!("OTEL_PROPAGATORS={propagators}: without tracecontext, processes of the command may not continue each other's traces");
        notes.push(note("no_trace_context", text));
    }
    for name in ["OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"] {
        if env.get(name).is_some() {
            notes.push(note(
                "config_file",
                format!("{name} is set: SDKs that read it take their exporters from that file, not from the environment"),
            ));
        }
    }
}

/// A sampler that records nothing is set aside, unless an endpoint of the user's would get what it keeps from it.
fn wake_sampler(env: &mut Environment, forwarded: bool, notes: &mut Vec<Note>) {
    const NAME: &str = "OTEL_TRACES_SAMPLER";
    let Some(sampler) = env.text(NAME).filter(|sampler| matches!(sampler.as_str(), "always_off" | "parentbased_always_off")) else {
        return;
    };
    if forwarded {
        let text = format!("{NAME}={sampler}: SDKs in the command record no traces of their own; unset it to record them");
        notes.push(note("sampled_out", text));
        return;
    }
    env.set(NAME, "parentbased_always_on");
    env.remove("OTEL_TRACES_SAMPLER_ARG");
    let text = format!("{NAME}={sampler} would keep every span away: the command got parentbased_always_on in its place");
    notes.push(note("sampler_replaced", text));
}

/// Pulumi reads its options from variables since 3.208. It knows the general ones of OpenTelemetry not at all; and only its event
/// stream says which resource a span is about.
fn set_pulumi(env: &mut Environment, request: &Request<'_>, authority: &str, notes: &mut Vec<Note>) -> PulumiTargets {
    let program = request.argv.first().and_then(|program| Path::new(program).file_name());
    let is_pulumi = program.is_some_and(|name| name == "pulumi");
    let is_typed = |flag: &str| {
        let is_flag =
            |word: &OsString| word.to_str().is_some_and(|word| word == flag || word.split_once('=').is_some_and(|(name, _)| name == flag));
        is_pulumi && request.argv.iter().any(is_flag)
    };
    let mut targets = PulumiTargets::default();
    let options = [
        ("--otel-traces", "PULUMI_OPTION_OTEL_TRACES", format!("grpc://{authority}"), &mut targets.otel_traces),
        ("--tracing", "PULUMI_OPTION_TRACING", request.appdash.to_owned(), &mut targets.tracing),
    ];
    for (flag, name, ours, target) in options {
        if is_typed(flag) {
            let text =
                format!("{flag} of pulumi wins over its environment: those spans go there, not here; give it to longpole run instead");
            notes.push(note("pulumi_elsewhere", text));
            continue;
        }
        match env.text(name) {
            // What another program that starts pulumi would have sent there is not what this command sends.
            Some(_) if !is_pulumi => {
                notes.push(note("pulumi_elsewhere", format!("{name} is set: a pulumi command sends its spans there, not here")));
                continue;
            }
            user => *target = user,
        }
        env.set(name, ours);
    }
    if is_typed("--event-log") || env.get("PULUMI_OPTION_EVENT_LOG").is_some() {
        let text = "pulumi writes its events somewhere else, as it was told: its spans do not say which resource they are about";
        notes.push(note("pulumi_events_elsewhere", text));
    } else {
        env.set("PULUMI_OPTION_EVENT_LOG", format!("tcp://{authority}"));
        env.set_where_unset("PULUMI_DEBUG_COMMANDS", "true");
    }
    targets
}

/// Puts our endpoint in and takes the user's out.
fn take_user_endpoint(env: &mut Environment, endpoint: &str, notes: &mut Vec<Note>) -> Option<UserEndpoint> {
    let general_name = format!("{PREFIX}ENDPOINT");
    let insecure = |env: &Environment, signal: &str| {
        let own = env.text(&format!("{PREFIX}{signal}INSECURE"));
        own.or_else(|| env.text(&format!("{PREFIX}INSECURE"))).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    };
    let general = env.text(&general_name);
    if general.as_deref().is_some_and(|general| Url::parse(general, insecure(env, "")).is_none()) {
        let text = format!("{general_name} is not an address of http or https: it was left as it is, so spans go there and not here");
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
            let text = format!("{own_name} is not an address of http or https: it was left as it is, so {name} go there and not here");
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
    notes.push(note("forwarded", format!("what the command sends goes on to {}, as the environment asks", hosts.join(" and "))));
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
        let text = format!("{broken} entries of {PREFIX}HEADERS are not `name=value` and are not handed on");
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

/// An address as the OTLP exporter specification allows it.
struct Url {
    scheme: &'static str,
    has_scheme: bool,
    authority: String,
    /// With the leading slash.
    path: String,
    /// With the `?`, or empty.
    query: String,
}

impl Url {
    /// `insecure` decides for gRPC's `host:port`, which has no scheme.
    fn parse(text: &str, insecure: bool) -> Option<Url> {
        let (scheme, has_scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", true, rest),
            Some(_) => return None,
            None => {
                let (_, port) = text.rsplit_once(':')?;
                port.parse::<u16>().ok()?;
                (if insecure { "http" } else { "https" }, false, text)
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').map_or((rest, String::new()), |(rest, query)| (rest, format!("?{query}")));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || host.starts_with(':') || !is_clean(authority) || !is_clean(path) || !is_clean(&query) {
            return None;
        }
        // A port that is none would be left out by who connects, and the headers would go to whoever listens on port 80.
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.is_empty() && !port.ends_with(']'));
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return None;
        }
        Some(Url { scheme, has_scheme, authority: authority.to_owned(), path: format!("/{path}"), query })
    }

    /// The address of `relative` below this one.
    fn join(self, relative: &str) -> Url {
        let slash = if self.path.ends_with('/') { "" } else { "/" };
        Url { path: format!("{}{slash}{relative}", self.path), ..self }
    }

    fn http(&self) -> String {
        format!("{}://{}{}{}", self.scheme, self.authority, self.path, self.query)
    }

    fn grpc(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Without a user name or password.
    fn host(&self) -> String {
        self.authority.rsplit_once('@').map_or(self.authority.as_str(), |(_, host)| host).to_owned()
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

/// A `%` that no two hex digits follow stands for itself: many people do not encode their tokens.
fn percent_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |offset: usize| bytes.get(at + offset).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).ok()?);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

/// Puts the command under our root span.
fn set_trace_context(env: &mut Environment, traceparent: &str, notes: &mut Vec<Note>) {
    // 00-<trace id>-<span id>-<flags>
    let trace_id = |text: &str| text.split('-').nth(1).map(str::to_owned);
    match env.text("TRACEPARENT") {
        Some(user) if trace_id(&user) == trace_id(traceparent) => {
            let flags = user.split('-').nth(3).and_then(|flags| u8::from_str_radix(flags, 16).ok());
            if flags.is_some_and(|flags| flags & 1 == 0) {
                let text = "TRACEPARENT says that its trace is not sampled; the command was told that it is, so that there are spans";
                notes.push(note("trace_was_not_sampled", text));
            }
        }
        Some(_) => {
            notes.push(note("traceparent_invalid", "TRACEPARENT is not valid: the run is a trace of its own"));
            env.remove("TRACESTATE");
        }
        None => env.remove("TRACESTATE"),
    }
    // Everything is said to be sampled: a program that believes otherwise sends nothing, or a part.
    let sampled = traceparent.rsplit_once('-').map(|(head, _)| format!("{head}-01"));
    env.set("TRACEPARENT", sampled.unwrap_or_else(|| traceparent.to_owned()));
}

/// The user's attributes with the run's id at their end, in place of that of an outer run.
fn with_run_id(user: Option<&OsStr>, run_id: &str) -> OsString {
    let own = format!("{RUN_ID_ATTRIBUTE}={run_id}");
    let Some(user) = user else { return own.into() };
    let Some(user) = user.to_str() else {
        let mut all = user.to_owned();
        all.push(",");
        all.push(own);
        return all;
    };
    let is_run_id = |entry: &str| entry.split_once('=').is_some_and(|(key, _)| key.trim() == RUN_ID_ATTRIBUTE);
    let kept = user.split(',').filter(|entry| !entry.trim().is_empty() && !is_run_id(entry));
    kept.chain([own.as_str()]).collect::<Vec<_>>().join(",").into()
}

/// Proxies do not know our loopback address. Clients read one of the two spellings and fall back to the other: so only
/// the ones that are there are extended, and a new one does not hide the user's.
fn bypass_proxies(env: &mut Environment, host: &str) {
    if !PROXIES.iter().any(|name| env.get(name).is_some()) {
        return;
    }
    let mut found = false;
    for name in ["NO_PROXY", "no_proxy", "no_grpc_proxy"] {
        let Some(value) = env.get(name) else { continue };
        found |= name != "no_grpc_proxy";
        let covered = value.to_str().is_some_and(|value| value.split(',').any(|entry| entry.trim() == host || entry.trim() == "*"));
        if !covered {
            let mut value = value.to_owned();
            value.push(",");
            value.push(host);
            env.set(name, value);
        }
    }
    if !found {
        env.set("NO_PROXY", host);
        env.set("no_proxy", host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn pairs(text: &str) -> Vec<(OsString, OsString)> {
        text.split_whitespace().filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn inject(env: &str, mode: Mode) -> Injection {
        inject_into("make deploy", env, mode)
    }

    fn inject_into(command: &str, env: &str, mode: Mode) -> Injection {
        let (env, argv): (_, Vec<OsString>) = (pairs(env), command.split(' ').map(OsString::from).collect());
        let (endpoint, appdash) = ("http://127.0.0.1:41234", "tcp://127.0.0.1:41235");
        let journals = Some(Path::new("/dev/shm/journals"));
        environment(&Request { env: &env, argv: &argv, endpoint, appdash, traceparent: TRACEPARENT, run_id: "7f3a", journals, mode })
    }

    /// What the command's environment says of these names, and the codes of the notes.
    #[track_caller]
    fn check(env: &str, expected: &str, notes: &[&str]) {
        check_injection(&inject(env, Mode::Auto), env, expected, notes);
    }

    #[track_caller]
    fn check_injection(injection: &Injection, env: &str, expected: &str, notes: &[&str]) {
        for (name, value) in expected.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            let found: Vec<_> = injection.env.iter().filter(|(key, _)| key == name).map(|(_, value)| value.to_str().unwrap()).collect();
            assert_eq!(found, if value == "-" { vec![] } else { vec![value] }, "{name} with {env}");
        }
        assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), notes, "{env}");
    }

    #[test]
    fn an_empty_environment_gets_all_that_an_sdk_needs() {
        let injection = inject("", Mode::Auto);
        let expected =
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:41234 TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
            OTEL_TRACES_EXPORTER=otlp OTEL_BSP_SCHEDULE_DELAY=200 OTEL_BSP_MAX_QUEUE_SIZE=65536
            OTEL_RESOURCE_ATTRIBUTES=longpole.run.id=7f3a LONGPOLE_RUN_ID=7f3a LONGPOLE_JOURNAL_DIR=/dev/shm/journals
            PULUMI_OPTION_OTEL_TRACES=grpc://127.0.0.1:41234 PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235
            PULUMI_OPTION_EVENT_LOG=tcp://127.0.0.1:41234 PULUMI_DEBUG_COMMANDS=true";
        assert_eq!(injection, Injection { env: pairs(expected), notes: vec![], forward: None, pulumi: PulumiTargets::default() });
    }

    #[test]
    fn nothing_is_touched_where_nothing_shall_be() {
        let env = "A=1 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true A=2";
        let untouched = Injection { env: pairs(env), notes: vec![], forward: None, pulumi: PulumiTargets::default() };
        assert_eq!(inject(env, Mode::None), untouched);
    }

    #[test]
    fn each_variable_becomes_what_the_table_says() {
        // The user's own settings stay where they can.
        check("HOME=/h PATH=/bin", "HOME=/h PATH=/bin OTEL_EXPORTER_OTLP_PROTOCOL=- NO_PROXY=-", &[]);
        check(
            "OTEL_BSP_SCHEDULE_DELAY=5000 OTEL_TRACES_EXPORTER=console,otlp",
            "OTEL_BSP_SCHEDULE_DELAY=5000 OTEL_TRACES_EXPORTER=console,otlp",
            &[],
        );
        check("OTEL_BSP_SCHEDULE_DELAY= OTEL_TRACES_EXPORTER=", "OTEL_BSP_SCHEDULE_DELAY=200 OTEL_TRACES_EXPORTER=otlp", &[]);
        check("OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", &[]);
        check("BAGGAGE=a=1", "BAGGAGE=a=1", &[]);
        check(
            "OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=zstd",
            "OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=-",
            &[],
        );
        check(
            "OTEL_EXPORTER_OTLP_INSECURE=false OTEL_EXPORTER_OTLP_CERTIFICATE=/ca",
            "OTEL_EXPORTER_OTLP_INSECURE=- OTEL_EXPORTER_OTLP_CERTIFICATE=-",
            &[],
        );
        check("LONGPOLE_RUN_ID=outer LONGPOLE_RUN_ID=twice", "LONGPOLE_RUN_ID=7f3a", &[]);

        check(
            "OTEL_RESOURCE_ATTRIBUTES=service.name=web,team=a",
            "OTEL_RESOURCE_ATTRIBUTES=service.name=web,team=a,longpole.run.id=7f3a",
            &[],
        );
        check("OTEL_RESOURCE_ATTRIBUTES=team=a,longpole.run.id=outer,", "OTEL_RESOURCE_ATTRIBUTES=team=a,longpole.run.id=7f3a", &[]);

        // What keeps spans from us is said.
        check("OTEL_SDK_DISABLED=TRUE", "OTEL_SDK_DISABLED=TRUE", &["sdk_disabled"]);
        check("OTEL_SDK_DISABLED=false", "", &[]);
        check("OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_EXPORTER=none", &["exporter_not_otlp"]);
        for sampler in ["always_off", "parentbased_always_off"] {
            let off = format!("OTEL_TRACES_SAMPLER={sampler}");
            check(
                &format!("{off} OTEL_TRACES_SAMPLER_ARG=1"),
                "OTEL_TRACES_SAMPLER=parentbased_always_on OTEL_TRACES_SAMPLER_ARG=-",
                &["sampler_replaced"],
            );
            // The user's own collector does not get what he did not want it to get.
            check(&format!("{off} OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"), &off, &["forwarded", "sampled_out"]);
        }
        check("OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.1", "", &["sampled"]);
        check("OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=1", "", &[]);
        check("OTEL_TRACES_SAMPLER=traceidratio", "", &[]);
        check("OTEL_TRACES_SAMPLER=parentbased_always_on", "", &[]);
        check("OTEL_PROPAGATORS=b3,jaeger", "OTEL_PROPAGATORS=b3,jaeger", &["no_trace_context"]);
        check("OTEL_PROPAGATORS=tracecontext,baggage", "", &[]);
        check("OTEL_CONFIG_FILE=/o.yaml", "OTEL_CONFIG_FILE=/o.yaml", &["config_file"]);
        check("OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_QUEUE_SIZE=10", &[]);

        // The trace of the user is joined; another is not, and its state goes with it.
        let joined = "TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01 TRACESTATE=k=v";
        check(joined, &format!("TRACEPARENT={TRACEPARENT} TRACESTATE=k=v"), &[]);
        let not_sampled = "TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-00";
        check(not_sampled, &format!("TRACEPARENT={TRACEPARENT}"), &["trace_was_not_sampled"]);
        check("TRACEPARENT=nonsense TRACESTATE=k=v", &format!("TRACEPARENT={TRACEPARENT} TRACESTATE=-"), &["traceparent_invalid"]);
        check("TRACESTATE=k=v", "TRACESTATE=-", &[]);
    }

    #[test]
    fn what_pulumi_was_told_is_kept_or_handed_on() {
        let ours = "PULUMI_OPTION_OTEL_TRACES=grpc://127.0.0.1:41234 PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235";
        // Set by the user: by pulumi itself we know all that goes there, of another command we do not.
        let set = "PULUMI_OPTION_OTEL_TRACES=file:///t.json PULUMI_OPTION_TRACING=file:up.trace";
        let injection = inject_into("/usr/bin/pulumi up --yes", set, Mode::Auto);
        check_injection(&injection, set, ours, &[]);
        let targets = PulumiTargets { otel_traces: Some("file:///t.json".into()), tracing: Some("file:up.trace".into()) };
        assert_eq!(injection.pulumi, targets);
        check(set, set, &["pulumi_elsewhere", "pulumi_elsewhere"]);
        assert_eq!(inject(set, Mode::Auto).pulumi, PulumiTargets::default());

        // Typed by the user: a flag wins over the environment.
        for typed in ["pulumi up --otel-traces file://t", "pulumi --otel-traces=file://t up"] {
            let injection = inject_into(typed, "", Mode::Auto);
            check_injection(
                &injection,
                "",
                "PULUMI_OPTION_OTEL_TRACES=- PULUMI_OPTION_TRACING=tcp://127.0.0.1:41235",
                &["pulumi_elsewhere"],
            );
        }
        check_injection(&inject_into("make --tracing=x", "", Mode::Auto), "", ours, &[]);

        check("PULUMI_TRACING_NO_PAYLOADS=true", "PULUMI_TRACING_NO_PAYLOADS=true", &[]);
        let events = "PULUMI_OPTION_EVENT_LOG=/tmp/events PULUMI_DEBUG_COMMANDS=-";
        check("PULUMI_OPTION_EVENT_LOG=/tmp/events", events, &["pulumi_events_elsewhere"]);
        let typed = inject_into("pulumi up --event-log e.json", "", Mode::Auto);
        check_injection(&typed, "", "PULUMI_OPTION_EVENT_LOG=-", &["pulumi_events_elsewhere"]);
    }

    #[test]
    fn the_trace_is_always_sampled() {
        let traceparent = TRACEPARENT.replace("-01", "-00");
        let (endpoint, appdash) = ("http://127.0.0.1:1", "tcp://127.0.0.1:2");
        let (traceparent, journals, mode) = (&traceparent, None, Mode::Auto);
        let injection = environment(&Request { env: &[], argv: &[], endpoint, appdash, traceparent, run_id: "7f3a", journals, mode });
        check_injection(&injection, "", &format!("TRACEPARENT={TRACEPARENT}"), &[]);
    }

    #[test]
    fn our_address_is_kept_from_proxies() {
        check("http_proxy=http://p:1", "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1", &[]);
        check("HTTPS_PROXY=http://p:1 NO_PROXY=corp", "NO_PROXY=corp,127.0.0.1 no_proxy=-", &[]);
        check("all_proxy=http://p:1 no_proxy=a,*", "no_proxy=a,* NO_PROXY=-", &[]);
        check("all_proxy=http://p:1 no_proxy=127.0.0.1", "no_proxy=127.0.0.1", &[]);
        check("grpc_proxy=http://p:1 no_grpc_proxy=a", "no_grpc_proxy=a,127.0.0.1 NO_PROXY=127.0.0.1", &[]);
        check("http_proxy= NO_PROXY=corp", "NO_PROXY=corp no_proxy=-", &[]);
    }

    fn endpoint(http_url: &str, grpc_url: &str) -> SignalEndpoint {
        SignalEndpoint {
            http_url: http_url.into(),
            grpc_url: grpc_url.into(),
            protocol: None,
            headers: vec![],
            timeout_millis: None,
            compression: Compression::None,
            certificate: None,
            client_certificate: None,
            client_key: None,
        }
    }

    #[test]
    fn the_users_own_endpoint_is_found_for_each_signal() {
        let check = |env: &str, traces: Option<(&str, &str)>, metrics: Option<(&str, &str)>| {
            let injection = inject(env, Mode::Auto);
            let user = injection.forward.unwrap_or_default();
            let protocol = (!env.contains("://")).then_some(Protocol::Grpc);
            let expected = traces.map(|(http, grpc)| SignalEndpoint { protocol, ..endpoint(http, grpc) });
            assert_eq!(user.traces, expected, "{env}");
            assert_eq!(user.metrics, metrics.map(|(http, grpc)| endpoint(http, grpc)), "{env}");
            let left: Vec<_> = injection.env.iter().filter(|(name, _)| name.to_str().is_some_and(|n| n.ends_with("_ENDPOINT"))).collect();
            assert_eq!(left, [&("OTEL_EXPORTER_OTLP_ENDPOINT".into(), "http://127.0.0.1:41234".into())], "{env}");
            assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), ["forwarded"], "{env}");
        };
        check(
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318",
            Some(("http://c:4318/v1/traces", "http://c:4318")),
            Some(("http://c:4318/v1/metrics", "http://c:4318")),
        );
        check(
            "OTEL_EXPORTER_OTLP_ENDPOINT=HTTPS://c/otlp/?k=1",
            Some(("https://c/otlp/v1/traces?k=1", "https://c")),
            Some(("https://c/otlp/v1/metrics?k=1", "https://c")),
        );
        check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:9/in", Some(("http://c:9/in", "http://c:9")), None);
        check(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:9 OTEL_EXPORTER_OTLP_ENDPOINT=http://d",
            Some(("http://c:9/", "http://c:9")),
            Some(("http://d/v1/metrics", "http://d")),
        );
        check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c:4317", Some(("https://c:4317/", "https://c:4317")), None);
        check(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c:4317 OTEL_EXPORTER_OTLP_INSECURE=true",
            Some(("http://c:4317/", "http://c:4317")),
            None,
        );
        check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://[::1]/in", Some(("http://[::1]/in", "http://[::1]")), None);
        check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://me:pw@c/in", Some(("http://me:pw@c/in", "http://me:pw@c")), None);
        check("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://[::1]:9", None, Some(("http://[::1]:9/", "http://[::1]:9")));
    }

    #[test]
    fn settings_of_a_signal_win_over_general_ones_and_secrets_are_not_said() {
        let injection = inject(
            "OTEL_EXPORTER_OTLP_ENDPOINT=https://me:pass@c OTEL_EXPORTER_OTLP_HEADERS=api-key=se%3Dcret,X-B=2,broken
             OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Bearer%20t OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc
             OTEL_EXPORTER_OTLP_PROTOCOL=http/json OTEL_EXPORTER_OTLP_TIMEOUT=2500 OTEL_EXPORTER_OTLP_COMPRESSION=gzip
             OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none OTEL_EXPORTER_OTLP_CERTIFICATE=/ca OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY=/key",
            Mode::Auto,
        );
        assert_eq!(injection.notes.iter().map(|n| n.code).collect::<Vec<_>>(), ["headers_unreadable", "forwarded"]);
        let said = format!("{:?} {:?}", injection.notes, injection.forward.as_ref().unwrap().logs.as_ref().unwrap().headers.len());
        assert!(!said.contains("cret") && !said.contains("pass"), "{said}");
        let user = injection.forward.unwrap();
        let said = format!("{user:?}");
        assert!(!said.contains("cret") && !said.contains("pass"), "{said}");
        let common = SignalEndpoint {
            timeout_millis: Some(2500),
            certificate: Some("/ca".into()),
            ..endpoint("https://me:pass@c/v1/traces", "https://me:pass@c")
        };
        let authorization = vec![("authorization".to_owned(), "Bearer t".to_owned())];
        assert_eq!(user.traces, Some(SignalEndpoint { protocol: Some(Protocol::Grpc), headers: authorization, ..common.clone() }));
        let general = vec![("api-key".to_owned(), "se=cret".to_owned()), ("x-b".to_owned(), "2".to_owned())];
        let logs = SignalEndpoint {
            http_url: "https://me:pass@c/v1/logs".into(),
            protocol: Some(Protocol::HttpJson),
            headers: general,
            compression: Compression::Gzip,
            client_key: Some("/key".into()),
            ..common
        };
        assert_eq!(user.logs, Some(logs));
    }

    #[test]
    fn an_endpoint_that_is_not_understood_is_left_alone() {
        for unknown in [
            "unix:///run/c.sock",
            "ftp://c",
            "http://",
            "http://:4318",
            "collector",
            "dns:///c:4317",
            "http://127.0.0.1:99999",
            "https://c:4318x/otlp",
            "http://me:pass@c:-1",
            "http://[::1]:65536",
            "c:65536",
        ] {
            let general = format!("OTEL_EXPORTER_OTLP_ENDPOINT={unknown}");
            check(&general, &general, &["endpoint_unknown"]);
            let own = format!("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT={unknown}");
            check(&own, &format!("{own} OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:41234"), &["endpoint_unknown"]);
        }
    }
}
