//! The verbs of longpole: numbers out of the nouns of `longpole-model`.
//!
//! You bring a [`Recording`](longpole_model::Recording) and get a [`Report`]: everything that views show. Floors, lowest first;
//! each knows those above it in this list, and none below:
//!
//! ```text
//! note, intervals, leaves, lists   what a reader must know; unions of intervals; sets and lists of ids
//! interval_index, running          intervals of each id, searched by time; which threads ran in a time
//! window     what a recording has of the time before it
//! profile    calls of many profiles of a server added up; two sums side by side
//! tree       spans and processes → one forest; clocks that disagree
//! pulumi     everything that knows Pulumi; the tree asks it through `tree::placement`
//! code       frames → functions → call tree; the origin of code
//! link       samples and waits → spans, by record, journal or inference
//! derive     what is inferred once, before a recording is written
//! schedule   what waited for what: critical path, replay, poles
//! time       where time went: states, threads, blockers, callees, usage
//! report     one recording and its answers: reasons, flame graphs; two recordings side by side
//! words      the home of English: facts → sentences
//! many_traces   the poles of many traces together
//! ```
//!
//! How they follow from each other:
//!
//! ```text
//! spans, processes ─► tree ─► schedule ─┬► critical path ─┬► poles ──┬► report ─► diff
//! pulumi ─────────────┘           ▲     └► replay ────────┘          │
//! pulumi::resources, pipelines ───┘         pulumi::deployment ──────┤
//! samples, journals ─► link ─► time::states, code::call_tree ────────┤
//! switch records, journals ─► time::timelines ─► time::states ───────┘
//! ```
//!
//! Start at [`Report`]; the command line and the server read nothing else of a finished recording. For a summary that needs no
//! attributes of spans, see [`report::summary_spans`].
//!
//! Pure: no I/O, no clock, no threads, no third-party types, and no recursion, so a chain of ten thousand spans or stacks
//! of ten thousand frames are nothing special. Time is near linear in spans and samples; only the number of replays (one
//! for each candidate among the poles) multiplies it, and that number is bounded.
//!
//! Nothing is guessed silently: inferred facts say so, what could be chance is a range, what is missing is a
//! [`Note`](note::Note).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod code;
mod derive;
mod interval_index;
mod intervals;
mod leaves;
pub mod link;
mod lists;
pub mod many_traces;
pub mod note;
pub mod profile;
pub mod pulumi;
pub mod report;
mod running;
pub mod schedule;
pub mod time;
pub mod tree;
mod window;
pub mod words;

pub use derive::derive;
pub use report::{Handle, Report};
