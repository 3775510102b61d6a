//! The command's environment, which makes its OpenTelemetry SDKs export to us.
//!
//! A pure function of the inherited environment. It keeps the user's settings wherever possible. If the user names an exporter endpoint, the
//! command gets ours, and we forward every request to the user's ([`UserEndpoint`]). A [`Note`] reports a setting that keeps spans from us.
//!
//! | variable | value for the command |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | ours; the user's goes into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_{TRACES,METRICS,LOGS}_ENDPOINT` | removed, because they override ours; the user's go into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]{CERTIFICATE,CLIENT_CERTIFICATE,CLIENT_KEY,INSECURE}` | removed, because ours speaks no TLS; they go into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]COMPRESSION` | removed unless `gzip` or `none`; it goes into [`UserEndpoint`] |
//! | `OTEL_EXPORTER_OTLP_[…_]{HEADERS,PROTOCOL,TIMEOUT}` | kept, and they go into [`UserEndpoint`]: our one port speaks every protocol |
//! | `OTEL_TRACES_EXPORTER` | `otlp` where unset; else kept, with a note where it is not OTLP |
//! | `OTEL_BSP_SCHEDULE_DELAY` | [`BATCH_DELAY_MILLIS`] where unset, so that little is lost when a command just exits |
//! | `OTEL_BSP_MAX_QUEUE_SIZE` | [`BATCH_QUEUE_SPANS`] where unset: SDKs drop what does not fit, and do not say so |
//! | `OTEL_TRACES_SAMPLER` | `always_off`, `parentbased_always_off`: `parentbased_always_on` unless an endpoint of the user would then get more than requested; else kept, with a note |
//! | `OTEL_RESOURCE_ATTRIBUTES` | `longpole.run.id=…` appended |
//! | `TRACEPARENT` | the run's root span, in the user's own trace if there is one; always sampled |
//! | `TRACESTATE` | kept with a valid `TRACEPARENT` of the user, else removed: it belongs to a trace that is not continued |
//! | `BAGGAGE` | kept |
//! | `PULUMI_OPTION_OTEL_TRACES`, `PULUMI_OPTION_TRACING` | ours: Pulumi (3.208 and later) does not read the general variables. The user's go into [`PulumiTargets`] where the command is `pulumi` itself, else they are kept, with a note. Flags of the command win over them: a file that one names is read when the command ended |
//! | `PULUMI_TRACING_NO_PAYLOADS` | kept. Where unset Pulumi sends payloads, and only they say which resource waits for which; what else they hold is dropped on decoding |
//! | `PULUMI_OPTION_EVENT_LOG` | ours where unset, with `PULUMI_DEBUG_COMMANDS`, without which it does not exist |
//! | `LONGPOLE_RUN_ID` | the run's id, for programs that want to know that they are recorded. A secret: whoever knows it may send to the run |
//! | `LONGPOLE_JOURNAL_DIR` | where threads of programs with `longpole-sdk` put their journals of spans; kept if nobody here reads them |
//! | `NO_PROXY`, `no_proxy`, `no_grpc_proxy` | our address appended, where a proxy variable is set |
//! | `OTEL_SDK_DISABLED`, `OTEL_PROPAGATORS`, `OTEL_CONFIG_FILE`, `OTEL_EXPERIMENTAL_CONFIG_FILE` | kept, with a note where they silence or cut spans |
//!
//! An empty variable counts as unset, as OpenTelemetry has it.

mod note;
mod pulumi;
#[cfg(test)]
mod tests;
mod url;
mod user_endpoint;
mod variables;

use std::ffi::{OsStr, OsString};
use std::path::Path;

pub use self::note::Note;
use self::note::note;
use self::pulumi::set_pulumi;
pub use self::pulumi::{PulumiTargets, TraceFile, file_of_url};
use self::user_endpoint::take_user_endpoint;
pub use self::user_endpoint::{Compression, Protocol, SignalEndpoint, UserEndpoint};
use self::variables::Environment;

/// How long a standard batch processor delays spans, in milliseconds; the specification's default is 5,000. A full batch is exported earlier, so
/// this does not slow down a busy program, and wakes an idle one five times a second.
pub const BATCH_DELAY_MILLIS: u32 = 200;

/// How many spans a standard batch processor queues before it drops some; the specification's default is 2,048, which 20,000 spans a second fill in
/// a tenth of a second.
pub const BATCH_QUEUE_SPANS: u32 = 65_536;

/// How much of the environment to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All that is in the table above.
    Auto,
    /// Nothing.
    None,
}

/// What the environment is made from.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The inherited environment.
    pub env: &'a [(OsString, OsString)],
    /// The command and its arguments.
    pub argv: &'a [OsString],
    /// Where we receive OTLP and Pulumi's events: `http://127.0.0.1:41234`, without a path.
    pub endpoint: &'a str,
    /// Where we receive AppDash: `tcp://127.0.0.1:41235`.
    pub appdash: &'a str,
    /// Version 00: the trace of the run, which is the user's if `TRACEPARENT` is valid, and the run's root span.
    pub traceparent: &'a str,
    /// The run's id, which nobody else may know.
    pub run_id: &'a str,
    /// The directory in which we read journals of spans.
    pub journals: Option<&'a Path>,
    /// How much to change.
    pub mode: Mode,
}

/// What the command gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Its environment: the inherited variables in their order, new ones after them.
    pub env: Vec<(OsString, OsString)>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// Where to forward requests.
    pub forward: Option<UserEndpoint>,
    /// Where to forward spans besides.
    pub pulumi: PulumiTargets,
}

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
    let pulumi = set_pulumi(&mut env, request.argv, authority, request.appdash, &mut notes);
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    bypass_proxies(&mut env, host);
    Injection { env: env.0, notes, forward, pulumi }
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

/// Replaces a sampler that drops every span, unless an endpoint of the user would then get those spans.
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
    let text = format!("{NAME}={sampler} drops every span: longpole set parentbased_always_on for the command instead");
    notes.push(note("sampler_replaced", text));
}

/// Puts the command under our root span.
fn set_trace_context(env: &mut Environment, traceparent: &str, notes: &mut Vec<Note>) {
    // 00-<trace id>-<span id>-<flags>
    let trace_id = |text: &str| text.split('-').nth(1).map(str::to_owned);
    match env.text("TRACEPARENT") {
        Some(user) if trace_id(&user) == trace_id(traceparent) => {
            let flags = user.split('-').nth(3).and_then(|flags| u8::from_str_radix(flags, 16).ok());
            if flags.is_some_and(|flags| flags & 1 == 0) {
                let text =
                    "TRACEPARENT marks its trace as not sampled; longpole gives the command one marked as sampled, to receive its spans";
                notes.push(note("trace_was_not_sampled", text));
            }
        }
        Some(_) => {
            notes.push(note("traceparent_invalid", "TRACEPARENT is not valid: the run is a trace of its own"));
            env.remove("TRACESTATE");
        }
        None => env.remove("TRACESTATE"),
    }
    // Every trace is marked as sampled: otherwise a program exports nothing, or a part.
    let sampled = traceparent.rsplit_once('-').map(|(head, _)| format!("{head}-01"));
    env.set("TRACEPARENT", sampled.unwrap_or_else(|| traceparent.to_owned()));
}

/// The user's attributes with the run's id at their end, which replaces that of an outer run.
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
