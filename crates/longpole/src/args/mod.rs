//! Every command and flag, with its help: a file for each group of commands.

mod at_a_server;
mod files;
mod manage_recordings;
mod record;
mod serve;
mod settings;
mod show_recordings;
mod values;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use self::at_a_server::{
    DEFAULT_AT, GrowthArguments, ProfileArguments, PushArguments, SearchArguments, ServicesArguments, TraceArguments,
};
pub(crate) use self::files::{
    CodeArguments, ConvertArguments, ConvertTraceArguments, ExportArguments, ExportFormat, ImportArguments, OutputArguments, ProfileOf,
    ViewTraceArguments,
};
pub(crate) use self::manage_recordings::{DoctorArguments, ListArguments, PruneArguments, RemoveArguments, TagArguments};
pub(crate) use self::record::{
    AgentArguments, AttachArguments, EnvInject, ExecArguments, Jit, Kind, Redact, RunArguments, SampleClock, SummaryTarget,
};
pub(crate) use self::serve::{ALL, ConfigArguments, ServeArguments};
pub(crate) use self::settings::{Origin, Setting, Settings, is_switch, options};
pub(crate) use self::show_recordings::{
    DiffArguments, ExcerptArguments, FlameArguments, FlameFormat, FrameArguments, OpenArguments, PolesArguments, RangeArguments,
    RecordingArguments, ShowArguments, SourceArguments, SpanArguments, SpansArguments, SqlArguments, ThreadsArguments, TopArguments,
    TreeArguments,
};
pub(crate) use self::values::{otel_traces_target, tracing_target};

const EXAMPLES: &str = "Examples:
  longpole run -- cargo build          record a command and report what to fix first
  longpole run -F 199 -- ./server      sample at 199 Hz
  longpole open last                   open the last recording in the browser
  longpole span p1                     show the first long pole: states, savings, hot functions
  longpole poles ./up.trace            list the long poles in a file from another tool
  longpole diff r6 r7                  compare two recordings along their critical paths
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
        // The full parser reports errors and prints help.
        let Some(Ok(InFrontOfACommand { global, command })) = may_be_quick.then(InFrontOfACommand::try_parse) else {
            return Arguments::with_settings(&std::env::args_os().collect::<Vec<_>>());
        };
        let command = match command {
            CommandInFront::Run(run) => Command::Run(run),
            CommandInFront::Exec(exec) => Command::Exec(exec),
        };
        Ok(Arguments { global, command })
    }

    /// Parses a command line; in front of the options of `serve` stand the settings of its file and of variables.
    fn with_settings(words: &[OsString]) -> Result<Self, clap::Error> {
        let arguments = Arguments::try_parse_from(words)?;
        let Command::Serve(serve) = &arguments.command else { return Ok(arguments) };
        let settings = Settings::read(serve.config.as_deref());
        let settings = settings.map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}\n")))?;
        // The first word of this name that is not the value of an option.
        let is_command = |place: &usize| words[*place] == *SERVE && Arguments::try_parse_from(&words[..=*place]).is_ok();
        let Some(place) = (1..words.len()).find(is_command) else { return Ok(arguments) };
        let words = settings.in_front_of(words, place, arguments.global.store.is_some());
        let matches = Arguments::command().args_override_self(true).try_get_matches_from(words)?;
        Arguments::from_arg_matches(&matches)
    }
}

/// Name of the command whose options are settings as well.
const SERVE: &str = "serve";

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

/// Heading of the options that every command has: between those of a command they would break up its help.
const GLOBAL: &str = "Global options";

#[derive(Debug, Args)]
pub(crate) struct GlobalArguments {
    /// Directory of the recordings [default: $XDG_DATA_HOME/longpole]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR", env = crate::env_vars::STORE)]
    pub(crate) store: Option<PathBuf>,
    /// When to use colour
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// For debugging longpole itself: log its work to standard error, and send its own spans to your OTLP endpoint
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, value_name = "LEVEL", env = crate::env_vars::TRACING_LEVEL, hide_short_help = true)]
    pub(crate) tracing_level: Option<TracingLevel>,
    /// Ignored; accepted only for compatibility. One background thread always sends longpole's own spans
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, value_name = "NAME")]
    #[arg(default_value_t = SpanProcessor::BatchSpanProcessor, hide = true)]
    pub(crate) tracing_span_processor: SpanProcessor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// How much longpole logs about itself.
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

/// Names by which other programs choose their span processor.
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
    /// Record a command and report what to fix first
    #[command(visible_alias = "record")]
    Run(RunArguments),
    /// Record a running process of your user and everything it starts; as root, of any user
    Attach(AttachArguments),
    /// Profile the processes of this machine until Ctrl-C, and send the profiles to a server. Without root: those of your user
    Agent(AgentArguments),
    /// Receive the spans and profiles of all services, keep them, and answer the queries of Jaeger, Zipkin and Pyroscope
    Serve(ServeArguments),
    /// Print the settings that `serve` would use, as a file of settings
    Config(ConfigArguments),
    /// List matching traces of a server, newest or longest first
    Search(SearchArguments),
    /// Print the long poles of a trace on a server, and what fixing each would save
    Trace(TraceArguments),
    /// List the services and operations of a server
    Services(ServicesArguments),
    /// Show the continuous profiles of a service on a server: its hot functions, and what changed
    Profile(ProfileArguments),
    /// Show what grows in the services of a server: memory in use, goroutines; how fast, since when, and in which function
    Growth(GrowthArguments),
    /// Open a recording in the browser
    #[command(visible_aliases = ["view", "load"])]
    Open(OpenArguments),
    /// Print the long poles of a recording again, and what fixing each would save
    Show(ShowArguments),
    /// List the long poles of a recording, including those that `show` omits
    Poles(PolesArguments),
    /// Show the spans of a recording as a tree
    Tree(TreeArguments),
    /// Show one span: its states, waits, savings and hot functions
    Span(SpanArguments),
    /// Show a flame graph of a recording or of some spans: text, JSON, folded stacks or SVG
    Flame(FlameArguments),
    /// List the functions with the most self time
    Top(TopArguments),
    /// Show one function and the spans it ran in
    Frame(FrameArguments),
    /// Show how each thread spent its time
    ///
    /// The column `poles` names the long poles whose code the thread runs, or waits in, while they are on the critical path (only for the whole run).
    Threads(ThreadsArguments),
    /// List processes: exit status, CPU time, peak memory, bytes read and written
    #[command(visible_alias = "ps")]
    Processes(RecordingArguments),
    /// Query a recording in SQL (read-only)
    Sql(SqlArguments),
    /// Compare two recordings along their critical paths
    Diff(DiffArguments),
    /// Import traces and profiles from other tools
    Import(ImportArguments),
    /// Export the spans and samples of a recording for another tool
    Export(ExportArguments),
    /// Convert a file from one tool to the format of another
    Convert(ConvertArguments),
    /// Send a recording to a server, with its profile
    Push(PushArguments),
    /// List recordings
    Ls(ListArguments),
    /// Tag a recording with a name
    Tag(TagArguments),
    /// Remove recordings
    Rm(RemoveArguments),
    /// Remove old recordings, except those with a tag
    Prune(PruneArguments),
    /// Run a command as one span and send the span to your OTLP endpoint; record nothing
    Exec(ExecArguments),
    /// Show what longpole can record on this machine, and how to make it record more
    Doctor(DoctorArguments),
    /// Show a trace file in the browser, as `pulumi view-trace` does
    #[command(hide = true)]
    ViewTrace(ViewTraceArguments),
    /// Convert a trace file to a profile of wall time, as `pulumi convert-trace` does
    #[command(hide = true)]
    ConvertTrace(ConvertTraceArguments),
}
