//! The SDK from outside: what a collector receives, what a profiler reads, and what happens when nobody listens.

mod allocations;
mod collector;
mod delivery;
mod propagation;
mod record;
mod shutdown;
mod stack_record;
mod trees;
