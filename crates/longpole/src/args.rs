//! Every command and flag, with its help.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use longpole_analysis::report::FlameTime;
use longpole_server::forward::ForwardTarget;
use longpole_server::forward::target::{self, Folders, TargetError};

const EXAMPLES: &str = "Examples:
  longpole run -- cargo build          record a command and say what to fix first
  longpole run -F 199 -- ./server      fewer samples
  longpole open last                   see it in the browser
  longpole span p1                     the first long pole: states, savings, code
  longpole poles ./up.trace            the same of a file that another tool wrote
  longpole diff r6 r7                  what changed, and where on the critical path
  longpole sql 'SELECT name, count(*) FROM spans GROUP BY name'";

/// Far above what builds and deployments make: what grows beyond it is more often a mistake than wanted, and fills the disk.
const RECORDING_BYTES_MAX: &str = "16GiB";

/// What do I fix first, and what do I gain? Traces and profiles of any command, joined.
#[derive(Debug, Parser)]
#[command(name = "longpole", version, about, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Parses the command line.
    pub(crate) fn of_command_line() -> Result<Self, clap::Error> {
        let may_be_quick = std::env::args_os().any(|word| IN_FRONT.iter().any(|name| word == *name));
        // Errors and help come from the whole.
        let Some(Ok(InFrontOfACommand { global, command })) = may_be_quick.then(InFrontOfACommand::try_parse) else {
            return Arguments::try_parse();
        };
        let command = match command {
            CommandInFront::Run(run) => Command::Run(run),
            CommandInFront::Exec(exec) => Command::Exec(exec),
        };
        Ok(Arguments { global, command })
    }
}

/// Names of [`CommandInFront`].
const IN_FRONT: [&str; 3] = ["run", "record", "exec"];

/// The part of [`Arguments`] for `run` and `exec`, whose commands wait for it: building the flags of all subcommands takes as long as starting a
/// small program.
#[derive(Debug, Parser)]
#[command(name = "longpole", disable_help_subcommand = true)]
struct InFrontOfACommand {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: CommandInFront,
}

#[derive(Debug, Subcommand)]
enum CommandInFront {
    #[command(alias = "record")]
    Run(RunArguments),
    Exec(ExecArguments),
}

#[derive(Debug, Args)]
pub(crate) struct GlobalArguments {
    /// Where recordings are kept [default: $XDG_DATA_HOME/longpole]
    #[arg(long, global = true, value_name = "DIR", env = crate::env_vars::STORE)]
    pub(crate) store: Option<PathBuf>,
    /// Colour in the terminal
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// What longpole itself does: logs on standard error, spans to the endpoint of the environment
    #[arg(long, global = true, value_enum, value_name = "LEVEL", env = crate::env_vars::TRACING_LEVEL, hide_short_help = true)]
    pub(crate) tracing_level: Option<TracingLevel>,
    /// How those spans are sent; both are one plain thread here, and both are taken so that command lines can stay as they are
    #[arg(long, global = true, value_enum, value_name = "NAME", default_value_t = SpanProcessor::BatchSpanProcessor, hide_short_help = true)]
    pub(crate) tracing_span_processor: SpanProcessor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// How much of what longpole itself does is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracingLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl TracingLevel {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TracingLevel::Off => "off",
            TracingLevel::Error => "error",
            TracingLevel::Warn => "warn",
            TracingLevel::Info => "info",
            TracingLevel::Debug => "debug",
            TracingLevel::Trace => "trace",
        }
    }
}

/// Names that other programs give to how spans are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpanProcessor {
    BatchSpanProcessor,
    BatchSpanProcessorExperimentalAsyncRuntime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, record it, and say what to fix first
    #[command(visible_alias = "record")]
    Run(RunArguments),
    /// Look at a process that runs already, and all that it starts, for a while
    Attach(AttachArguments),
    /// Show a recording in the browser
    #[command(visible_aliases = ["view", "load"])]
    Open(OpenArguments),
    /// The answer of a recording: its long poles and what each would save
    Show(RecordingArguments),
    /// All long poles of a recording
    Poles(PolesArguments),
    /// The spans of a recording as a tree
    Tree(TreeArguments),
    /// One span: its states, its savings, its code
    Span(SpanArguments),
    /// The flame graph of a recording or of one span: text, JSON, folded stacks, a picture
    Flame(FlameArguments),
    /// The functions with the most time in themselves
    Top(TopArguments),
    /// One function, and the spans it ran in
    Frame(FrameArguments),
    /// Where the life of each thread went
    Threads(ThreadsArguments),
    /// Each process: its end, CPU time, peak memory, bytes read and written
    #[command(visible_alias = "ps")]
    Processes(RecordingArguments),
    /// Ask in SQL (read-only)
    Sql(SqlArguments),
    /// What changed between two recordings, and where on the critical path
    Diff(DiffArguments),
    /// Make recordings of files that other tools wrote
    Import(ImportArguments),
    /// Write the spans and the code of a recording as a file for another tool
    Export(ExportArguments),
    /// Write a file of one tool as a file for another
    Convert(ConvertArguments),
    /// List recordings
    Ls(ListArguments),
    /// Give a recording a name
    Tag(TagArguments),
    /// Remove recordings
    Rm(RemoveArguments),
    /// Remove old recordings; those with a name stay
    Prune(PruneArguments),
    /// Run a command as one span, sent to the endpoint of the environment; no recording
    Exec(ExecArguments),
    /// Say what on this machine keeps longpole from seeing all there is
    Doctor(DoctorArguments),
    /// Show a trace file in the browser, as `pulumi view-trace` does
    #[command(hide = true)]
    ViewTrace(ViewTraceArguments),
    /// Write a trace file as a profile of wall time, as `pulumi convert-trace` does
    #[command(hide = true)]
    ConvertTrace(ConvertTraceArguments),
}

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
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = crate::units::bytes)]
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
pub(crate) struct OpenArguments {
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Port of the page on 127.0.0.1; 0 takes a free one
    #[arg(short = 'P', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Print the URL only
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) allow: SourceArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingArguments {
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadsArguments {
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// How many at the most, those that work in long poles, run, wait for locks or wait long before others; 0 for all
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// The process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: u32,
    /// For how long; without it until Ctrl-C, or until the process ends
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<f64>,
    /// Samples per second per CPU
    #[arg(short = 'F', long, short_alias = 'r', value_name = "HZ", default_value_t = 999, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
    /// What a recording may grow to, `500MiB` or `2GB`: what comes then is counted and not kept
    #[arg(long, value_name = "SIZE", default_value = RECORDING_BYTES_MAX, value_parser = crate::units::bytes)]
    pub(crate) max_recording_bytes: u64,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// A time of a millisecond and longer, a year at most.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=31_536_000.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds such as 10 or 0.5".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct PolesArguments {
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// How many at the most; 0 for all
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArguments {
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// How many levels at the most; 0 for all
    #[arg(long, default_value_t = 0)]
    pub(crate) depth: usize,
    /// How many rows at the most; 0 for all
    #[arg(long, default_value_t = 200)]
    pub(crate) limit: usize,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SpanArguments {
    /// Handle: `s12`, or `p1` for the span of a pole; or a name, for all spans of that name
    #[arg(value_name = "HANDLE|NAME")]
    pub(crate) handle: String,
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Which spans are looked at; without any, the whole run.
#[derive(Debug, Args)]
pub(crate) struct SpansArguments {
    /// Only this span and its descendants: `s12`, or `p1`; a name means all spans of that name
    #[arg(long, value_name = "HANDLE|NAME", conflicts_with_all = ["name", "trace"])]
    pub(crate) span: Option<String>,
    /// Only the spans of this name, all together, with their descendants
    #[arg(long, value_name = "NAME", conflicts_with = "trace")]
    pub(crate) name: Option<String>,
    /// Only the spans of this trace: its id, or so much of its beginning that no other has it
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
}

/// Which time of threads is meant.
#[derive(Debug, Args)]
pub(crate) struct TimeArguments {
    /// Blocked time in place of time on a CPU: where threads waited, for 5 ms and longer and now and then for less
    #[arg(long, conflicts_with = "wall")]
    off_cpu: bool,
    /// Both: time on a CPU and blocked time
    #[arg(long)]
    wall: bool,
    /// Of the whole run: also what threads wait for that work for no span, idle workers among them
    #[arg(long, conflicts_with_all = ["span", "name", "trace"])]
    pub(crate) all_threads: bool,
}

impl TimeArguments {
    pub(crate) fn time(&self) -> FlameTime {
        match (self.off_cpu, self.wall) {
            (true, _) => FlameTime::OffCpu,
            (_, true) => FlameTime::Wall,
            _ => FlameTime::OnCpu,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FlameArguments {
    /// Recording: `r7`, `7`, `last` or a tag; a file: `./up.trace`; or the handle of a span of the last one
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) spans: SpansArguments,
    #[command(flatten)]
    pub(crate) time: TimeArguments,
    /// Leave out boxes below this share of the whole, in percent; 0.5 in text, in a picture what is too narrow to be seen
    #[arg(long, value_name = "PERCENT")]
    pub(crate) min: Option<f64>,
    /// Form; without it, by the name of the output: `.svg`, `.folded`, `.json`, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<FlameFormat>,
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Forms of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameFormat {
    /// An indented tree
    Text,
    Json,
    /// Stacks with nanoseconds, for flamegraph.pl and inferno
    Folded,
    /// A picture for browsers, with what a box is where the mouse is
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Recording: `r7`, `7`, `last` or a tag; a file: `./up.trace`; or the handle of a span of the last one
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) spans: SpansArguments,
    /// By the time in them and what they call, in place of that in themselves
    #[arg(long)]
    pub(crate) total: bool,
    #[command(flatten)]
    pub(crate) time: TimeArguments,
    /// Also functions that only start the program or a thread and call it, and the loops of interpreters
    #[arg(long)]
    pub(crate) all_functions: bool,
    /// How many at the most; 0 for all
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct FrameArguments {
    /// Handle: `f12`; or a name, or its end: `shop::index_words`, `index_words`; or a line of it: `work.py:23`
    #[arg(value_name = "HANDLE|NAME|FILE:LINE")]
    pub(crate) handle: String,
    /// Recording: `r7`, `7`, `last` or a tag; or a file: `./up.trace`
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Its source, line by line: time on CPUs and waits of each
    #[arg(long)]
    pub(crate) source: bool,
    /// With --source --format json: the text of the lines as well, not only their numbers
    #[arg(long, requires = "source")]
    pub(crate) source_text: bool,
    #[command(flatten)]
    pub(crate) allow: SourceArguments,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Which source files may be read.
#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// Read source files below this folder also for a recording that was not made here; without it only those below the working
    /// directory. May be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_source: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArguments {
    /// The query; tables and columns: docs/formats/sql-schema.md
    pub(crate) query: String,
    /// Recording: `r7`, `7`, `last` or a tag
    #[arg(long, default_value = "last")]
    pub(crate) recording: String,
    /// How long the answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::units::duration)]
    pub(crate) timeout: Duration,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Answer in this process, and end it when standard input ends: how `sql` calls itself
    #[arg(long, hide = true)]
    pub(crate) is_worker: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// Recordings: `r7`, `7` or `last`
    #[arg(required = true)]
    pub(crate) recordings: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// Before: a recording or a file
    pub(crate) before: String,
    /// After: a recording or a file
    #[arg(default_value = "last")]
    pub(crate) after: String,
    /// How many rows at the most; 0 for all
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Traces: OTLP JSON (lines or one document) or protobuf, AppDash (`up.trace`), Zipkin, Jaeger. Profiles: `perf.data`, pprof, OTLP,
    /// folded stacks: each of them also gzipped. And `.lpole`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// One recording of all files: traces, and one profile (pprof) whose labels name their spans
    #[arg(long)]
    pub(crate) together: bool,
    /// Give the recording a name; with several files, the last one has it
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What another tool reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One OTLP request as JSON
    OtlpJson,
    /// One OTLP request as protobuf
    OtlpProtobuf,
    /// Zipkin v2 JSON
    Zipkin,
    /// What the page of Jaeger loads and saves
    Jaeger,
    /// AppDash, which `pulumi view-trace` reads
    Appdash,
    /// Chrome's trace events, which Perfetto reads: spans and code
    Chrome,
    /// What the Firefox Profiler loads (profiler.firefox.com, profiler-cli): spans and code
    Firefox,
    /// Code for speedscope, thread by thread
    Speedscope,
    /// A profile for `go tool pprof` and others, gzipped: of code, see --of
    Pprof,
    /// Folded stacks for flamegraph.pl and inferno: of code, see --of
    Folded,
    /// The whole recording in one file, for longpole
    Lpole,
}

/// Where a file goes, and what it is.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Format; without it, by the name of the output
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<ExportFormat>,
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// pprof and folded: of the code that ran, or of the wall time of spans; without it, of code where there is some
    #[arg(long, value_enum)]
    pub(crate) of: Option<ProfileOf>,
    /// Profiles of spans: time between two ticks
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = crate::units::duration)]
    pub(crate) granularity: Duration,
    #[command(flatten)]
    pub(crate) code: CodeArguments,
}

/// What a profile is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileOf {
    /// Samples and waits
    Code,
    /// Names of spans, ticking
    Spans,
}

/// Which code goes into a file.
#[derive(Debug, Args)]
pub(crate) struct CodeArguments {
    /// Code of this span and its descendants only: `s12`, or `p1`
    #[arg(long, value_name = "HANDLE")]
    pub(crate) span: Option<String>,
    /// Time on a CPU only: what folded has where nothing is said
    #[arg(long, conflicts_with_all = ["off_cpu", "wall"])]
    pub(crate) on_cpu: bool,
    /// Blocked time only: where threads waited, for 5 ms and longer and now and then for less
    #[arg(long, conflicts_with = "wall")]
    pub(crate) off_cpu: bool,
    /// Both: what the other formats have where nothing is said
    #[arg(long)]
    pub(crate) wall: bool,
    /// Folded: also what threads wait for that work for no span, idle workers among them; the other formats have it, and say so
    #[arg(long, conflicts_with = "span")]
    pub(crate) all_threads: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Recording: `r7`, `7`, `last` or a tag
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// A trace file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TagArguments {
    /// Recording: `r7`, `7`, `last` or a tag
    pub(crate) recording: String,
    /// The name; where another recording has it, it moves
    pub(crate) name: String,
    /// Take the name away instead
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true)))]
pub(crate) struct PruneArguments {
    /// Keep so many of the newest
    #[arg(long, value_name = "N", group = "limit")]
    pub(crate) keep: Option<usize>,
    /// Remove what is older: `30d`, `12h`
    #[arg(long, value_name = "AGE", group = "limit", value_parser = crate::units::duration)]
    pub(crate) older_than: Option<Duration>,
    /// Keep the newest that fit: `2GB`, `500MiB`
    #[arg(long, value_name = "SIZE", group = "limit", value_parser = crate::units::bytes)]
    pub(crate) max_size: Option<u64>,
    /// Say what would go, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
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
    #[arg(short, long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = crate::units::pair)]
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

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// A program to look at as well: whether it has parts that can keep it from ending
    pub(crate) program: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ViewTraceArguments {
    /// A trace file
    pub(crate) file: String,
    /// Port of the page on 127.0.0.1; 0 takes a free one
    #[arg(short = 'P', long, default_value_t = 8008)]
    pub(crate) port: u16,
    /// Print the URL only
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertTraceArguments {
    /// A trace file
    pub(crate) file: PathBuf,
    /// Send the spans to the OTLP endpoint of the environment instead of writing a profile
    #[arg(long)]
    pub(crate) otel: bool,
    /// Time between two ticks of the profile
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = crate::units::duration)]
    pub(crate) granularity: Duration,
    /// Leave out the spans of log calls
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) ignore_log_spans: bool,
}
