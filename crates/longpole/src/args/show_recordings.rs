//! Commands that show a recording, or a file of another tool.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use longpole_analysis::report::FlameTime;

use super::{Format, values};

#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Port on 127.0.0.1 (0 = any free port) [default: 4747, or a free one if that is taken]
    #[arg(short = 'P', long, value_parser = values::port)]
    pub(crate) port: Option<u16>,
    /// Print the URL without starting a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) allow: SourceArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) recording: RecordingArguments,
    /// Print everything that is missing from the numbers or makes them uncertain, not only what matters most
    #[arg(long)]
    pub(crate) quality: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolesArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Show what the run would take without these poles, and which would be next: `p1,p3`
    #[arg(long, value_name = "HANDLE,…", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Maximum number of rows (0 = all)
    #[arg(long, default_value_t = 20, value_parser = values::number_of)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Maximum depth (0 = all)
    #[arg(long, default_value_t = 0, value_parser = values::number_of)]
    pub(crate) depth: usize,
    /// Maximum number of rows (0 = all)
    #[arg(long, default_value_t = 200, value_parser = values::number_of)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SpanArguments {
    /// Handle of a span (`s12`) or of a long pole (`p1`), or the id of a span; or a name, for all spans of that name
    #[arg(value_name = "HANDLE|ID|NAME")]
    pub(crate) handle: String,
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Which spans to show; without any, the whole run.
#[derive(Debug, Args)]
pub(crate) struct SpansArguments {
    /// Only a span and its descendants, or a long pole: a handle (`s12`, `p1`), or a name for all spans of that name
    #[arg(long, value_name = "HANDLE|NAME", conflicts_with_all = ["name", "trace"])]
    pub(crate) span: Option<String>,
    /// Like --span NAME, but never read the value as a handle such as `p1`
    #[arg(long, value_name = "NAME", conflicts_with = "trace")]
    pub(crate) name: Option<String>,
    /// Only the spans of this trace: its id, or an unambiguous prefix of it
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
}

/// Which time of threads to show.
#[derive(Debug, Args)]
pub(crate) struct TimeArguments {
    /// Show off-CPU time: most waits of 5 ms or more, and a sample of the shorter ones
    #[arg(long, conflicts_with = "wall")]
    off_cpu: bool,
    /// Show on-CPU and off-CPU time together
    #[arg(long)]
    wall: bool,
    /// Include the waits of threads that are not working on any span, such as idle workers
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

/// A range of time.
#[derive(Debug, Args)]
pub(crate) struct RangeArguments {
    /// Only from this time after the start of the run, such as `1.2s`
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) from: Option<Duration>,
    /// Only until this time after the start of the run
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) to: Option<Duration>,
}

/// A range of time, or a thread.
#[derive(Debug, Args)]
pub(crate) struct ExcerptArguments {
    #[command(flatten)]
    pub(crate) range: RangeArguments,
    /// Only this thread, by its number in `threads`
    #[arg(long, value_name = "TID", value_parser = values::id)]
    pub(crate) thread: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct FlameArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`), trace of a server (its address), or a span or long pole of the last
    /// recording (`s12`, `p1`; same as --span)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) spans: SpansArguments,
    #[command(flatten)]
    pub(crate) time: TimeArguments,
    #[command(flatten)]
    pub(crate) excerpt: ExcerptArguments,
    /// Hide boxes below this share of the total, in percent [default: 0.5 in text; SVG hides boxes too narrow to see]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) min: Option<f64>,
    /// Output format [default: from the extension of the output file: `.svg`, `.folded`, `.json` or `.txt`; else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FlameFormat>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Formats of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameFormat {
    /// Indented tree
    Text,
    Json,
    /// Folded stacks with nanoseconds, for flamegraph.pl and inferno
    Folded,
    /// Picture for browsers, with details on hover
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`), trace of a server (its address), or a span or long pole of the last
    /// recording (`s12`, `p1`; same as --span)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) spans: SpansArguments,
    /// Sort by total time instead of self time
    #[arg(long)]
    pub(crate) total: bool,
    #[command(flatten)]
    pub(crate) time: TimeArguments,
    #[command(flatten)]
    pub(crate) excerpt: ExcerptArguments,
    /// Include runtime entry points and functions that only run the interpreter's loop
    #[arg(long)]
    pub(crate) all_functions: bool,
    /// Maximum number of rows (0 = all)
    #[arg(long, default_value_t = 20, value_parser = values::number_of)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct FrameArguments {
    /// Handle (`f12`), name or end of a name (`shop::index_words`, `index_words`), or source line (`work.py:23`)
    #[arg(value_name = "HANDLE|NAME|FILE:LINE")]
    pub(crate) handle: String,
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Show its source with the on-CPU time and the waits of each line
    #[arg(long)]
    pub(crate) source: bool,
    /// With --source --format json: include the text of the lines, not only their numbers
    #[arg(long, requires = "source")]
    pub(crate) source_text: bool,
    #[command(flatten)]
    pub(crate) allow: SourceArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Which source files may be read.
#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// For recordings from a file or another machine, also read source files in this directory; by default, longpole reads only those in
    /// the working directory. May be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_source: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadsArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id), file (`./up.trace`) or trace of a server (its address)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) excerpt: ExcerptArguments,
    /// Maximum number of threads, most relevant first: by time in long poles, CPU time, locks and waits (0 = all)
    #[arg(long, default_value_t = 20, value_parser = values::number_of)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArguments {
    /// SQL query; the queries `SHOW TABLES` and `DESCRIBE spans` list tables and columns
    pub(crate) query: String,
    /// Recording (`r7`, `7`, `last`, a tag or a trace id)
    #[arg(long, default_value = "last")]
    pub(crate) recording: String,
    /// Time limit of the query
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::duration)]
    pub(crate) timeout: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Answer in this process, and end it when standard input ends: `sql` starts itself so
    #[arg(long, hide = true)]
    pub(crate) is_worker: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// Recording, file or trace of a server (its address) before the change
    pub(crate) before: String,
    /// Recording, file or trace of a server (its address) after the change
    pub(crate) after: String,
    /// Maximum number of rows (0 = all)
    #[arg(long, default_value_t = 20, value_parser = values::number_of)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
