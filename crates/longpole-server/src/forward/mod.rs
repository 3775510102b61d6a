//! Doors out: the user's own endpoints and files get what the command sends, several of them at once.
//!
//! ```text
//! ingest: a request is in the log ─ send ────────┬─ bounded queue ─► http      OTLP (gRPC, HTTP) and Zipkin; retried
//!                                                   ├─ bounded queue ─► appdash   one TCP connection; retried
//!                                                   └─ bounded queue ─► file      OTLP JSON lines, or an AppDash file at the end
//! ```
//!
//! Nothing here is ever waited for by the command: a request that finds its queue full is counted and forgotten,
//! what has to be converted is converted on threads that may block, and the queues have a thread of their own. What a target
//! did not get is counted in spans (data points, log records), with the reason.

mod account;
mod appdash;
pub(crate) mod client;
mod convert;
mod file;
mod forwarder;
mod http;
mod queue;
mod send;
pub mod target;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use forwarder::Forwarder;
pub use send::{NotSent, send_once};
pub use target::{ForwardProtocol, ForwardTarget, ForwardTls};
