//! The verbs of longpole: numbers out of the nouns of `longpole-model`.
//!
//! You bring a [`Recording`](longpole_model::Recording). What you get, in the order in which it is made:
//!
//! ```text
//! spans ─► bridge ─┬► trace_tree ─► schedule ─┬► critical_path ─┬► poles ─┬► report ─► diff
//! processes, skew ─┘                 ▲        └► savings ───────┘         │
//! resources, pipeline ───────────────┘           deployment ──────────────┤
//! process usage ─► usage ─────────────────────────────────────────────────┤
//! samples, journals ─► sample_links ─► states, call_tree ─────────────────┤
//! switch records, journals ─► timelines ─► states ────────────────────────┘
//! ```
//!
//! Start at [`Report`]: it owns a recording and everything known about it, and the command line and the server ask nothing
//! else. The modules below can be used alone. Of who wants no more than the answer, [`outline`] takes what that does not need.
//!
//! Pure: no I/O, no clock, no threads, no third-party types, and no recursion, so a chain of ten thousand spans or stacks
//! of ten thousand frames are nothing special. Time is near linear in spans and samples; only the number of replays (one
//! for each candidate among the poles) multiplies it, and that number is bounded.
//!
//! It refuses to guess silently: what is inferred says so, what could be chance is a range, what is missing is a
//! [`Note`](trace_tree::Note).

#![forbid(unsafe_code)]

pub mod blockers;
pub mod bridge;
pub mod call_tree;
pub mod callees;
pub mod critical_path;
pub mod deployment;
pub mod diff;
mod emitters;
mod engine;
pub mod journal;
pub mod label_links;
pub mod machine;
pub mod never_arrived;
pub mod outline;
pub mod own_code;
mod pairing;
mod pipeline;
pub mod plugins;
pub mod poles;
pub mod report;
pub mod resources;
mod rest;
pub mod sample_links;
pub mod savings;
mod schedule;
mod skew;
pub mod slots;
mod span_list;
pub mod states;
pub mod threads;
mod threads_of_spans;
mod timelines;
pub mod trace_tree;
mod unawaited;
pub mod usage;
pub mod waits;
pub mod wall_profile;

use longpole_model::quick;
pub use report::{Handle, Report};
