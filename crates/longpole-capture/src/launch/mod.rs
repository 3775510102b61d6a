//! Start the command with its environment, hand signals on to it, and end as it ended.

pub mod child;
pub mod error;
pub mod otel_environment;
pub mod runtime_options;
mod signal_witness;
pub mod signals;
