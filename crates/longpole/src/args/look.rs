//! Commands that show a recording, or a file of another tool.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use longpole_analysis::report::FlameTime;

use super::{Format, values};

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
pub(crate) struct SqlArguments {
    /// The query; tables and columns: docs/formats/sql-schema.md
    pub(crate) query: String,
    /// Recording: `r7`, `7`, `last` or a tag
    #[arg(long, default_value = "last")]
    pub(crate) recording: String,
    /// How long the answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::duration)]
    pub(crate) timeout: Duration,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Answer in this process, and end it when standard input ends: how `sql` calls itself
    #[arg(long, hide = true)]
    pub(crate) is_worker: bool,
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
