//! Commands that ask a server: `longpole serve`, or a Jaeger.

use std::time::Duration;

use clap::Args;

use super::{Format, values};

/// Where a server of this machine is.
pub(crate) const DEFAULT_AT: &str = "http://localhost:16686";

#[derive(Debug, Args)]
pub(crate) struct ServicesArguments {
    #[command(flatten)]
    pub(crate) at: AtArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    #[command(flatten)]
    pub(crate) at: AtArguments,
    /// Only traces with a span of this service; all conditions must hold for one span
    #[arg(long)]
    pub(crate) service: Option<String>,
    /// Only traces with a span of this operation
    #[arg(long)]
    pub(crate) operation: Option<String>,
    /// Only traces with a span that has this attribute; repeat for a span that has several
    #[arg(long = "attribute", alias = "tag", value_name = "KEY=VALUE", value_parser = values::pair)]
    pub(crate) attributes: Vec<(String, String)>,
    /// Only traces with a span that failed
    #[arg(long)]
    pub(crate) errors: bool,
    /// Only traces with a span of at least this duration
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) min: Option<Duration>,
    /// Only traces with a span of at most this duration
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) max: Option<Duration>,
    /// How far back to search
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::duration)]
    pub(crate) since: Duration,
    /// Maximum number of traces [default: 20, with --poles 2000]
    #[arg(long, value_name = "LIMIT", value_parser = values::number_of)]
    pub(crate) limit: Option<usize>,
    /// The longest traces, longest first
    #[arg(long)]
    pub(crate) longest: bool,
    /// Print what to fix first in the matching traces together: their long poles, and what each operation would gain
    #[arg(long, conflicts_with = "longest")]
    pub(crate) poles: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Id of the trace
    #[arg(value_name = "ID")]
    pub(crate) trace_id: String,
    #[command(flatten)]
    pub(crate) at: AtArguments,
    /// Print everything that is missing from the numbers or makes them uncertain, not only what matters most
    #[arg(long)]
    pub(crate) quality: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArguments {
    /// Service, or a profile type with a selector: `cart`, `memory:inuse_space{service_name="cart"}`; `{}` is all services. Lists the types and
    /// services of the server if omitted
    #[arg(value_name = "QUERY")]
    pub(crate) query: Option<String>,
    #[command(flatten)]
    pub(crate) at: AtArguments,
    /// Profile type of a service [default: CPU time]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) profile_type: Option<String>,
    /// How far back to read
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::duration)]
    pub(crate) since: Duration,
    /// Compare with an equally long range that ended this much earlier
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) diff: Option<Duration>,
    /// Print the calls as a tree instead of a list of functions
    #[arg(long, conflicts_with = "diff")]
    pub(crate) flame: bool,
    /// Sort functions by total time instead of self time
    #[arg(long, conflicts_with_all = ["diff", "flame"])]
    pub(crate) total: bool,
    /// Maximum number of functions
    #[arg(long, default_value_t = 20, conflicts_with = "flame", value_parser = values::number_of)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct GrowthArguments {
    /// Only this service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,
    #[command(flatten)]
    pub(crate) at: AtArguments,
    /// How far back to read
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = values::duration)]
    pub(crate) since: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct PushArguments {
    /// Recording (`r7`, `7`, `last`, a tag or a trace id)
    #[arg(default_value = "last")]
    pub(crate) recording: String,
    /// Address of `longpole serve`
    #[arg(long, value_name = "URL", default_value = "http://localhost:16686")]
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct AtArguments {
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = DEFAULT_AT)]
    pub(crate) at: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
