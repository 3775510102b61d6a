//! Everything that knows Pulumi.

pub mod deployment;
pub(crate) mod engine;
pub mod opentracing_bridge;
pub mod plugins;
pub mod resources;
pub(crate) mod span_pairing;
