//! Commands about the store and the machine: `ls`, `tag`, `rm`, `prune`, `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Format, values};

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// Recordings (`r7`, `7`, `last` or a tag)
    #[arg(required = true)]
    pub(crate) recordings: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TagArguments {
    /// Recording (`r7`, `7`, `last` or a tag)
    pub(crate) recording: String,
    /// Tag; if another recording has this tag, the tag moves to this recording
    pub(crate) name: String,
    /// Remove the tag instead
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true)))]
pub(crate) struct PruneArguments {
    /// Keep the N newest recordings
    #[arg(long, value_name = "N", group = "limit", value_parser = values::number_of)]
    pub(crate) keep: Option<usize>,
    /// Remove recordings older than this: `30d`, `12h`
    #[arg(long, value_name = "AGE", group = "limit", value_parser = values::duration)]
    pub(crate) older_than: Option<Duration>,
    /// Keep the newest recordings that fit into this size: `2GB`, `500MiB`
    #[arg(long, value_name = "SIZE", group = "limit", value_parser = values::bytes)]
    pub(crate) max_size: Option<u64>,
    /// Print what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Also check this program for OpenTelemetry components that may hang at exit
    pub(crate) program: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
