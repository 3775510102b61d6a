//! Commands that run or record something: `run`, `attach`, `exec`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Args, ValueEnum};
use longpole_server::forward::ForwardTarget;
use longpole_server::forward::target::{self, Folders, TargetError};

use super::{Format, values};

/// Far above what builds and deployments make: what grows beyond it is more often a mistake than wanted, and fills the disk.
const RECORDING_BYTES_MAX: &str = "16GiB";

#[derive(Debug, Args)]
#[command(override_usage = "longpole run [OPTIONS] [--] [NAME=VALUE]... COMMAND [ARGUMENT]...")]
pub(crate) struct RunArguments {
    /// Samples per second per CPU
    #[arg(short = 'F', long, short_alias = 'r', value_name = "HZ", default_value_t = 999, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
    /// The clock that samples: the kernel's timer, or the CPU's cycle counter where there is one
    #[arg(long, value_enum, default_value_t = SampleClock::CpuClock)]
    pub(crate) clock: SampleClock,
    /// Record spans only, no samples
    #[arg(long)]
    pub(crate) no_profile: bool,
    /// Where the answer goes: `stderr`, `none`, or a file
    #[arg(long, value_name = "WHERE", default_value = "stderr")]
    pub(crate) summary: String,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) summary_format: Format,
    /// What the command's environment gets: `auto` sets the OpenTelemetry variables, `none` leaves all alone
    #[arg(long, value_enum, default_value_t = EnvInject::Auto)]
    pub(crate) env_inject: EnvInject,
    /// Ask these runtimes for the names of the code they compile, by NODE_OPTIONS and JAVA_TOOL_OPTIONS: it costs them some speed, and
    /// java says on standard error that it was asked. Python needs no asking
    #[arg(long, value_enum, value_name = "RUNTIME", value_delimiter = ',')]
    pub(crate) jit: Vec<Jit>,
    /// Take out what is named or looks like a credential before it is stored (docs/formats/redaction.md)
    #[arg(long, value_enum, default_value_t = Redact::On)]
    pub(crate) redact: Redact,
    /// Hand all spans on as well, as OTLP: `file:PATH` (JSON lines), `grpc://HOST:PORT`, `grpcs://…`, `http://HOST[:PORT][/PATH]`,
    /// `https://…`; `?name=value` adds a header, OTEL_EXPORTER_OTLP_CERTIFICATE names whom TLS trusts. May be given several times
    #[arg(long, value_name = "URL", value_parser = otel_traces_target)]
    pub(crate) otel_traces: Vec<ForwardTarget>,
    /// Hand all spans on as well, as Pulumi's old tracing does: `file:PATH` (AppDash), `tcp://HOST:PORT` (AppDash),
    /// `http://HOST:9411/api/v1/spans` (Zipkin). May be given several times
    #[arg(long, value_name = "URL", value_parser = tracing_target)]
    pub(crate) tracing: Vec<ForwardTarget>,
    /// What a recording may grow to, `500MiB` or `2GB`: what comes then is counted and not kept, and the command goes on
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = values::bytes)]
    pub(crate) max_recording_bytes: u64,
    /// Exit with 125 where recording failed and the command did not
    #[arg(long)]
    pub(crate) strict: bool,
    /// Open the browser on the recording afterwards
    #[arg(long)]
    pub(crate) open: bool,
    /// The command and its arguments; before it, variables of its environment as NAME=VALUE
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    words: Vec<OsString>,
}

impl RunArguments {
    /// The command and its arguments.
    pub(crate) fn argv(&self) -> &[OsString] {
        &self.words[self.assignments().count()..]
    }

    /// What the command's environment gets besides, as in a shell: `NAME=VALUE` before the command. The last word is the command
    /// in any case.
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

/// A runtime that tells the names of its code if it is asked.
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

/// A value of `--otel-traces`, as Pulumi spells it.
pub(crate) fn otel_traces_target(text: &str) -> Result<ForwardTarget, TargetError> {
    let (current, home) = crate::env_vars::folders();
    target::otel_traces(text, Folders { current: &current, home: home.as_deref() })
}

/// A value of `--tracing`, as Pulumi spells it.
pub(crate) fn tracing_target(text: &str) -> Result<ForwardTarget, TargetError> {
    let (current, home) = crate::env_vars::folders();
    target::tracing(text, Folders { current: &current, home: home.as_deref() })
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
pub(crate) struct AttachArguments {
    /// The process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: u32,
    /// For how long; without it until Ctrl-C, or until the process ends
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) duration: Option<f64>,
    /// Samples per second per CPU
    #[arg(short = 'F', long, short_alias = 'r', value_name = "HZ", default_value_t = 999, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
    /// What a recording may grow to, `500MiB` or `2GB`: what comes then is counted and not kept
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = values::bytes)]
    pub(crate) max_recording_bytes: u64,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// Name of the service
    #[arg(short, long, value_name = "NAME", env = "OTEL_SERVICE_NAME", default_value = "longpole-exec")]
    pub(crate) service: String,
    /// Name of the span; without it, the command's
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Role of the span
    #[arg(short, long, value_enum, default_value_t = Kind::Client)]
    pub(crate) kind: Kind,
    /// Attributes of the span
    #[arg(short, long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = values::pair)]
    pub(crate) attrs: Vec<(String, String)>,
    /// The command and its arguments; `{{traceparent}}` in them becomes the span's
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(crate) argv: Vec<OsString>,
}

/// Role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}
