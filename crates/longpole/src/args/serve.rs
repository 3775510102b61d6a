//! `serve`.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;

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
    /// Keep credentials in spans instead of redacting them
    #[arg(long)]
    pub(crate) keep_credentials: bool,
    /// Port of the page and of Jaeger's API (0 = any free port, as for the others)
    #[arg(long, value_name = "PORT", default_value_t = 16686)]
    pub(crate) page_port: u16,
    /// Port of OTLP over gRPC
    #[arg(long, value_name = "PORT", default_value_t = 4317)]
    pub(crate) otlp_grpc_port: u16,
    /// Port of OTLP over HTTP
    #[arg(long, value_name = "PORT", default_value_t = 4318)]
    pub(crate) otlp_http_port: u16,
    /// Port of Zipkin
    #[arg(long, value_name = "PORT", default_value_t = 9411)]
    pub(crate) zipkin_port: u16,
    /// Port of health and metrics
    #[arg(long, value_name = "PORT", default_value_t = 14269)]
    pub(crate) admin_port: u16,
}
