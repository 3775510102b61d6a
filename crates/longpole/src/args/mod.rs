//! Every command and flag, with its help: a file for each group of commands.

mod files;
mod look;
mod record;
mod shelf;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::files::{
    CodeArguments, ConvertArguments, ConvertTraceArguments, ExportArguments, ExportFormat, ImportArguments, OutputArguments, ProfileOf,
    ViewTraceArguments,
};
pub(crate) use self::look::{
    DiffArguments, FlameArguments, FlameFormat, FrameArguments, OpenArguments, PolesArguments, RecordingArguments, SourceArguments,
    SpanArguments, SpansArguments, SqlArguments, ThreadsArguments, TopArguments, TreeArguments,
};
pub(crate) use self::record::{
    AttachArguments, EnvInject, ExecArguments, Jit, Kind, Redact, RunArguments, SampleClock, otel_traces_target, tracing_target,
};
pub(crate) use self::shelf::{DoctorArguments, ListArguments, PruneArguments, RemoveArguments, TagArguments};

const EXAMPLES: &str = "Examples:
  longpole run -- cargo build          record a command and say what to fix first
  longpole run -F 199 -- ./server      fewer samples
  longpole open last                   see it in the browser
  longpole span p1                     the first long pole: states, savings, code
  longpole poles ./up.trace            the same of a file that another tool wrote
  longpole diff r6 r7                  what changed, and where on the critical path
  longpole sql 'SELECT name, count(*) FROM spans GROUP BY name'";

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
