//! Commands that read and write files of other tools.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Format, values};

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
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
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
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    pub(crate) granularity: Duration,
    /// Leave out the spans of log calls
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) ignore_log_spans: bool,
}
