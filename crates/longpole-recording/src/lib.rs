//! What a recording becomes between the log and the reader.
//!
//! You bring a store or a file. This crate turns a log into a sealed recording ([`seal`]), a file of another tool into one
//! ([`import`]) and a recording into such a file ([`export`]), and gives the numbers of a report their outside form ([`view`]).
//! This crate opens no socket, prints nothing, and computes no number that `longpole-analysis` does not compute.

#![forbid(unsafe_code)]

pub mod export;
pub mod host_profiles;
pub mod import;
pub mod kept;
pub mod loss_counters;
pub mod memory;
pub mod redact_observations;
pub mod seal;
mod shared_text;
pub mod source_file;
pub mod view;
