//! Verbs of longpole.
#![forbid(unsafe_code)]

pub mod critical_path;
pub mod poles;
pub mod savings;
mod schedule;
mod slots;
pub mod trace_tree;
