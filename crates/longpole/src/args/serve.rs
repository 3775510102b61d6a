//! `serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use longpole_server::serve::Door;

use super::values;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Listen at this address instead of the loopback addresses; an address that others reach needs --insecure
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<IpAddr>,
    /// Let everybody who reaches --listen send and read spans
    #[arg(long, requires = "listen")]
    pub(crate) insecure: bool,
    /// Remove spans this long after they were received
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = values::duration)]
    pub(crate) keep: Duration,
    /// Remove the oldest spans while all take more than this
    #[arg(long, value_name = "SIZE", default_value = "20GB", value_parser = values::bytes)]
    pub(crate) keep_bytes: u64,
    /// Move spans from the log into a segment at least this often
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::duration)]
    pub(crate) segment_every: Duration,
    /// Keep credentials in spans instead of redacting them
    #[arg(long)]
    pub(crate) keep_credentials: bool,
    /// Let web pages of this origin send spans; repeat for more
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        long_help = "Let web pages of this origin send spans, such as https://shop.example or http://localhost:* (repeat for more, * = every page)"
    )]
    pub(crate) allow_origins: Vec<String>,
    /// Answer Jaeger's samplers from this file, in Jaeger's format; without it they keep each trace
    #[arg(long, value_name = "FILE")]
    pub(crate) sampling_strategies: Option<PathBuf>,
    /// Another port for what comes there, or none: page=8080, zipkin=off, all=0 (0 = any free port; repeat for more)
    #[arg(long = "port", value_name = "NAME=PORT", value_parser = port, long_help = port_help())]
    pub(crate) ports: Vec<PortSetting>,
}

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
        "all" => None,
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

fn port_help() -> String {
    let ports = Door::ALL.map(|door| format!("{} {}", door.name(), door.usual_port())).join(", ");
    format!(
        "Another port for what comes there, or none: page=8080, zipkin=off, all=0 (0 = any free port; repeat for more). The ports are: {ports}"
    )
}
