//! `serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use longpole_server::receive::Scrapes;
use longpole_server::serve::Door;

use super::values;

const SETTINGS: &str = "Every option is also a setting: `keep = \"7d\"` in the table [serve] of the file, LONGPOLE_SERVE_KEEP=7d in the \
                        environment. Options win over variables, and variables over the file; `longpole config` shows the result.";

#[derive(Debug, Args)]
#[command(after_help = SETTINGS)]
pub(crate) struct ServeArguments {
    /// Read settings from this file (TOML) [default: $XDG_CONFIG_HOME/longpole/config.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Listen at this address instead of the loopback addresses; an address that other machines can reach needs --token-file or --insecure
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<IpAddr>,
    /// Let anyone who can reach the --listen address send and read spans
    #[arg(long, requires = "listen")]
    pub(crate) insecure: bool,
    /// Only clients with a token from this file may send and read spans
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        long_help = "Only clients with a token from this file may send and read spans. The file has one token per line; `send` or `read` after a token allows \
                     only that. Clients send it as `Authorization: Bearer TOKEN`; longpole's own commands read it from LONGPOLE_TOKEN"
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// How long to keep spans, profiles and uploaded recordings after receiving them
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = values::duration)]
    pub(crate) keep: Duration,
    /// Maximum size of all spans, profiles and uploaded recordings; beyond it longpole removes the oldest
    #[arg(long, value_name = "SIZE", default_value = "20GB", value_parser = values::bytes)]
    pub(crate) keep_bytes: u64,
    /// Write received spans to column files at least this often
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::duration)]
    pub(crate) segment_every: Duration,
    /// Keep credentials in spans instead of redacting them
    #[arg(long)]
    pub(crate) keep_credentials: bool,
    /// Let web pages of this origin send spans; `*` stands for any text. May be repeated
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        long_help = "Let web pages of this origin send spans: https://shop.example, http://localhost:* (any port), * (every page). May be repeated"
    )]
    pub(crate) allow_origins: Vec<String>,
    /// Fetch the profiles of a service from its /debug/pprof (Go's net/http/pprof): cart=http://localhost:6060. May be repeated
    #[arg(
        long = "scrape",
        value_name = "SERVICE=URL",
        long_help = "Fetch the profiles of a service from its /debug/pprof (Go's net/http/pprof): CPU, memory, goroutines, locks. For example \
                     cart=http://localhost:6060; cart{env=prod}=https://user:password@host/internal/pprof adds labels, and names another path. May be \
                     repeated"
    )]
    pub(crate) scrapes: Vec<String>,
    /// How often to fetch each of these profiles; profiles of CPU time cover all but one second of it
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = scrape_every)]
    pub(crate) scrape_every: Duration,
    /// Serve the sampling strategies in this file (Jaeger's format) to Jaeger clients; without it, they sample every trace
    #[arg(long, value_name = "FILE")]
    pub(crate) sampling_strategies: Option<PathBuf>,
    /// Change a port or close it: page=8080, zipkin=off, all=0 (0 = any free port). May be repeated
    #[arg(long = "port", value_name = "NAME=PORT", value_parser = port, long_help = port_help())]
    pub(crate) ports: Vec<PortSetting>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Also print the source of each value, in a comment
    #[arg(long)]
    pub(crate) origin: bool,
    /// Read settings from this file (TOML) [default: $XDG_CONFIG_HOME/longpole/config.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The name that stands for all ports.
pub(crate) const ALL: &str = "all";

/// A port as the user sets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortSetting {
    /// Which; `None` for all.
    pub(crate) door: Option<Door>,
    /// `None` where it stays closed.
    pub(crate) port: Option<u16>,
}

fn port(text: &str) -> Result<PortSetting, String> {
    let (name, port) = text.split_once('=').ok_or("expected NAME=PORT, such as page=8080")?;
    let door = match name {
        ALL => None,
        name => Some(Door::named(name).ok_or_else(|| {
            let names = Door::ALL.map(Door::name).join(", ");
            format!("no port is called {name}: expected all, {names}")
        })?),
    };
    let port = match port {
        "off" => None,
        port => Some(port.parse().map_err(|_| format!("port {port}: expected a number up to 65535, or off"))?),
    };
    Ok(PortSetting { door, port })
}

fn scrape_every(text: &str) -> Result<Duration, String> {
    let every = values::duration(text)?;
    if every < Scrapes::EVERY_MIN { Err(format!("expected at least {} s", Scrapes::EVERY_MIN.as_secs())) } else { Ok(every) }
}

fn port_help() -> String {
    let ports = Door::ALL.map(|door| format!("{} {}", door.name(), door.usual_port())).join(", ");
    format!("Change a port or close it: page=8080, zipkin=off, all=0 (0 = any free port). May be repeated. The ports are: {ports}")
}
