//! The SDK from outside: what a collector receives, what a profiler reads, and what happens when nobody listens.

#![allow(clippy::print_stderr, reason = "programs that log, and a figure to look at")]

mod allocations;
mod builder;
mod collector;
mod delivery;
#[cfg(feature = "opentelemetry")]
mod grpc_collector;
#[cfg(feature = "opentelemetry")]
mod hang;
mod propagation;
mod record;
mod shutdown;
mod stack_record;
#[cfg(feature = "opentelemetry")]
mod standard;
mod trees;
