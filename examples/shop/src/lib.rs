//! The checkout of a small shop to record with longpole: long-running services, and a request that goes through all of them.
//!
//! ```text
//!   shop ──checkout──→ shop-gateway ──→ shop-cart        adds up the cart: burns CPU
//!   customers                └────────→ shop-payment     signs a receipt, and calls
//!                                           └──────────→ shop-bank    a third party: slow, and sends no spans
//! ```
//!
//! They speak HTTP over loopback and forward the `traceparent`, as services do. `shop` starts them, lets its customers buy, and stops
//! them again, so that you can record it like any command. [`timing`] has all durations; the README shows the result.

#![forbid(unsafe_code)]

pub mod bank;
pub mod cart;
pub mod gateway;
pub mod http;
pub mod payment;
pub mod shopper;
pub mod timing;

use std::process::ExitCode;

/// Any failure; its text names the failed action.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Result of most functions here.
pub type Result<T> = std::result::Result<T, Error>;

/// The exit status of a program; prints a failure to stderr.
pub fn exit_code(program: &str, result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The address of another service, from the starter of this one.
fn address_of(variable: &str) -> Result<std::net::SocketAddr> {
    let text = std::env::var(variable).map_err(|_| format!("{variable} is not set: services are started by shop"))?;
    text.parse().map_err(|error| format!("{variable} is {text}: {error}").into())
}
