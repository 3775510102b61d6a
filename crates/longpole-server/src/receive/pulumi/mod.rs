//! What is Pulumi's own: the event stream of its engine, and its two tracers.

pub(super) mod event_stream;
pub(super) mod span_dedup;
mod span_pool;
