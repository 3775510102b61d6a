//! Commands that run or record something: `run`, `attach`, `exec`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use longpole_capture::procfs::left_out::LeftOut;
use longpole_server::forward::ForwardTarget;

use super::{Format, values};

/// Far more than builds and deployments need: what grows beyond it is more often a mistake, and fills the disk.
const RECORDING_BYTES_MAX: &str = "16GiB";

#[derive(Debug, Args)]
#[command(override_usage = "longpole run [OPTIONS] [--] [NAME=VALUE]... <CMD>...")]
pub(crate) struct RunArguments {
    /// Samples per second of CPU time of each thread
    #[arg(short = 'F', long, short_alias = 'r', value_name = "HZ", default_value_t = 999, value_parser = values::rate)]
    pub(crate) rate: u32,
    /// What triggers samples: the kernel's timer, or the CPU's cycle counter if it has one
    #[arg(long, value_enum, default_value_t = SampleClock::CpuClock)]
    pub(crate) clock: SampleClock,
    /// Do not sample code or waits; record only spans, and the wall and CPU time of the command
    #[arg(long)]
    pub(crate) no_profile: bool,
    /// Where to write the answer (what to fix first, and what that saves): `stderr`, `none` or a file (`./none` is a file)
    #[arg(long, value_name = "WHERE", default_value = "stderr", value_parser = OsStringValueParser::new().map(SummaryTarget::from))]
    pub(crate) summary: SummaryTarget,
    /// Format of that answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) summary_format: Format,
    /// Set the OpenTelemetry variables in the command's environment (`auto`), or leave it unchanged (`none`)
    #[arg(long, value_enum, default_value_t = EnvInject::Auto)]
    pub(crate) env_inject: EnvInject,
    /// Show the names of functions that these runtimes compile just in time. longpole sets NODE_OPTIONS and JAVA_TOOL_OPTIONS for this.
    /// The options slow the runtimes down a little, and Java prints them on standard error. Python, Node 18 to 24, and Java 17 and
    /// 25 on x86-64 need no option
    #[arg(long, value_enum, value_name = "RUNTIME", value_delimiter = ',')]
    pub(crate) jit: Vec<Jit>,
    /// Before storing anything, remove values whose name or format looks like a credential
    #[arg(long, value_enum, default_value_t = Redact::On)]
    pub(crate) redact: Redact,
    /// Also send all spans as OTLP to `file:PATH` (JSON lines), `grpc://HOST:PORT`, `grpcs://…`, `http://HOST[:PORT][/PATH]` or
    /// `https://…`. `?name=value` adds a header; OTEL_EXPORTER_OTLP_CERTIFICATE names the certificates that TLS trusts. May be repeated
    #[arg(long, value_name = "URL", value_parser = values::otel_traces_target)]
    pub(crate) otel_traces: Vec<ForwardTarget>,
    /// Also send all spans in the formats of Pulumi's older tracing: to `file:PATH` (AppDash), `tcp://HOST:PORT` (AppDash) or
    /// `http://HOST:9411/api/v1/spans` (Zipkin). May be repeated
    #[arg(long, value_name = "URL", value_parser = values::tracing_target)]
    pub(crate) tracing: Vec<ForwardTarget>,
    /// Send the recording to this `longpole serve` afterwards, with its profile, and print the address of its page
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Maximum size of the recording: `500MiB`, `2GB`. Beyond it longpole drops data and counts what it drops, and the command goes on
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = values::bytes)]
    pub(crate) max_recording_bytes: u64,
    /// Exit with 125 if the recording failed and the command succeeded
    #[arg(long)]
    pub(crate) strict: bool,
    /// Open the recording in the browser afterwards
    #[arg(long)]
    pub(crate) open: bool,
    /// Command and arguments; NAME=VALUE before the command sets variables in its environment
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    words: Vec<OsString>,
}

impl RunArguments {
    /// The command and its arguments. `--` may stand in front of the variables or between them and the command.
    pub(crate) fn argv(&self) -> &[OsString] {
        match &self.words[self.assignments().count()..] {
            [dashes, command @ ..] if dashes == "--" && !command.is_empty() => command,
            command => command,
        }
    }

    /// Variables for the command's environment, as in a shell: `NAME=VALUE` before the command. The last word is always the command.
    pub(crate) fn assignments(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let words = self.words.split_last().map_or(&[][..], |(_, words)| words);
        words.iter().map_while(|word| assignment(word))
    }
}

/// `NAME=VALUE`, where the name is one that a shell takes.
fn assignment(word: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = word.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b'=')?;
    let is_name = |name: &[u8]| name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') && !name[0].is_ascii_digit();
    (end > 0 && is_name(&bytes[..end])).then(|| (OsStr::from_bytes(&bytes[..end]), OsStr::from_bytes(&bytes[end + 1..])))
}

/// Where the summary of a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SummaryTarget {
    Stderr,
    Nowhere,
    File(PathBuf),
}

impl From<OsString> for SummaryTarget {
    fn from(text: OsString) -> Self {
        match text.to_str() {
            Some("stderr") => SummaryTarget::Stderr,
            Some("none") => SummaryTarget::Nowhere,
            _ => SummaryTarget::File(text.into()),
        }
    }
}

/// A runtime that writes down the names of the code it compiles if an option says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jit {
    Node,
    Java,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Redact {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleClock {
    CpuClock,
    Cycles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvInject {
    Auto,
    None,
}

#[derive(Debug, Args)]
#[command(override_usage = "longpole attach [OPTIONS] <PID | --pid PID>")]
pub(crate) struct AttachArguments {
    /// ID of the process to record, here or with --pid
    #[arg(value_name = "PID", value_parser = values::id, required_unless_present = "option")]
    pid: Option<u32>,
    /// Same as PID
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = values::id, conflicts_with = "pid")]
    option: Option<u32>,
    /// How long to record [default: until Ctrl-C, or until the process ends]
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) duration: Option<f64>,
    /// Samples per second of CPU time of each thread
    #[arg(short = 'F', long, short_alias = 'r', value_name = "HZ", default_value_t = 999, value_parser = values::rate)]
    pub(crate) rate: u32,
    /// Send the recording to this `longpole serve` afterwards, with its profile, and print the address of its page
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Maximum size of the recording: `500MiB`, `2GB`. Beyond it longpole drops data and counts what it drops
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = values::bytes)]
    pub(crate) max_recording_bytes: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl AttachArguments {
    /// The process to record.
    pub(crate) fn pid(&self) -> u32 {
        // The parser requires one of them.
        self.pid.or(self.option).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// The server's port for profiles: `longpole serve`, or a Pyroscope. LONGPOLE_TOKEN is sent along if it is set
    #[arg(long, value_name = "URL", default_value = "http://localhost:4040")]
    pub(crate) to: String,
    /// Samples per second of each CPU while it is busy
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 19, value_parser = values::rate)]
    pub(crate) rate: u32,
    /// How often to send profiles
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = values::duration)]
    pub(crate) every: Duration,
    /// A label of all profiles; may be repeated. longpole adds `service_name`, `host` and `container` itself
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Maximum size of the profiles that wait in the store while the server is away. Beyond it longpole drops the oldest ones and says so
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::bytes)]
    pub(crate) spool_bytes: u64,
    /// Processes that the worker of an agent leaves out; its supervisor names them
    #[arg(long, hide = true)]
    pub(crate) left_out: Option<LeftOut>,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// Service name
    #[arg(short, long, value_name = "NAME", env = "OTEL_SERVICE_NAME", default_value = "longpole-exec")]
    pub(crate) service: String,
    /// Span name [default: the command's name]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Span kind
    #[arg(short, long, value_enum, default_value_t = Kind::Client)]
    pub(crate) kind: Kind,
    /// Span attributes
    #[arg(short, long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = values::pair)]
    pub(crate) attrs: Vec<(String, String)>,
    /// Command and arguments; `{{traceparent}}` in an argument becomes the traceparent of the span (if an OTLP endpoint is set)
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) argv: Vec<OsString>,
}

/// Kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}
