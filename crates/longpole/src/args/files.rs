//! Commands that read and write files of other tools.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Format, values};

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Traces: OTLP (JSON lines, one JSON document, protobuf), AppDash (`up.trace`), Zipkin, Jaeger. Profiles: `perf.data`, pprof, OTLP,
    /// folded stacks. All of these may be gzipped. Recordings: `.lpole`. Traces of a server, by their addresses
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Import all files as one recording: traces of one run, such as Pulumi's two, and at most one profile (pprof or folded stacks), whose
    /// labels name the spans
    #[arg(long)]
    pub(crate) together: bool,
    /// Tag the recording; if there are several files, the last one gets the tag
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Formats that other tools read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One OTLP request as JSON
    OtlpJson,
    /// One OTLP request as protobuf
    OtlpProtobuf,
    /// Zipkin v2 JSON
    Zipkin,
    /// JSON that the Jaeger UI loads and saves
    Jaeger,
    /// AppDash, for `pulumi view-trace`
    Appdash,
    /// Chrome trace events, for Perfetto: spans and code
    Chrome,
    /// Firefox Profiler (profiler.firefox.com, profiler-cli): spans and code
    Firefox,
    /// speedscope: code, thread by thread
    Speedscope,
    /// Gzipped pprof, for `go tool pprof` and others: code or spans, see --of
    Pprof,
    /// Folded stacks, for flamegraph.pl and inferno: code or spans, see --of
    Folded,
    /// The whole recording as one file, for longpole
    Lpole,
}

/// Where a file goes, and its format.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Format [default: from the extension of the output file]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<ExportFormat>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// For pprof and folded: profile the code, or the wall time of spans [default: code if there is any]
    #[arg(long, value_enum)]
    pub(crate) of: Option<ProfileOf>,
    /// For profiles of spans: sampling interval
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    pub(crate) granularity: Duration,
    #[command(flatten)]
    pub(crate) code: CodeArguments,
}

/// What a profile shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileOf {
    /// Samples and waits
    Code,
    /// Wall time of spans, sampled at an interval
    Spans,
}

/// Which code to export.
#[derive(Debug, Args)]
pub(crate) struct CodeArguments {
    /// Only the code of a span and its descendants, or of a long pole: `s12`, `p1`
    #[arg(long, value_name = "HANDLE")]
    pub(crate) span: Option<String>,
    /// Only on-CPU time [default for folded]
    #[arg(long, conflicts_with_all = ["off_cpu", "wall"])]
    pub(crate) on_cpu: bool,
    /// Only off-CPU time: most waits of 5 ms or more, and a sample of the shorter ones
    #[arg(long, conflicts_with = "wall")]
    pub(crate) off_cpu: bool,
    /// On-CPU and off-CPU time [default for the other formats]
    #[arg(long)]
    pub(crate) wall: bool,
    /// For folded: include the waits of threads that are not working on any span, such as idle workers; other formats always mark and include them
    #[arg(long, conflicts_with = "span")]
    pub(crate) all_threads: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// File of traces or of a profile, in any format that `import` reads
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ViewTraceArguments {
    /// Trace file
    pub(crate) file: String,
    /// Port on 127.0.0.1 (0 = any free port)
    #[arg(short = 'P', long, default_value_t = 8008, value_parser = values::port)]
    pub(crate) port: u16,
    /// Print the URL without starting a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertTraceArguments {
    /// Trace file
    pub(crate) file: PathBuf,
    /// Send the spans to your OTLP endpoint instead of writing a profile
    #[arg(long)]
    pub(crate) otel: bool,
    /// Sampling interval of the profile
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    pub(crate) granularity: Duration,
    /// Leave out the spans of log calls
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) ignore_log_spans: bool,
}
