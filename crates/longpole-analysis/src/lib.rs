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
//! else. The modules below can be used alone. Of who wants no more than the answer, [`report::summary_spans`] takes what that does not need.
//!
//! Pure: no I/O, no clock, no threads, no third-party types, and no recursion, so a chain of ten thousand spans or stacks
//! of ten thousand frames are nothing special. Time is near linear in spans and samples; only the number of replays (one
//! for each candidate among the poles) multiplies it, and that number is bounded.
//!
//! It refuses to guess silently: what is inferred says so, what could be chance is a range, what is missing is a
//! [`Note`](note::Note).

#![forbid(unsafe_code)]

pub mod code;
pub(crate) mod intervals;
pub mod link;
pub mod note;
pub(crate) mod percent;
pub mod pulumi;
pub mod report;
pub mod schedule;
pub mod time;
pub mod tree;

pub use report::{Handle, Report};

// Where other crates still look for them.
pub use code::wall_profile;
pub use link::{journal, labels as label_links, never_arrived, samples as sample_links, waits};
pub use pulumi::{deployment, opentracing_bridge as bridge, plugins};
pub use report::{diff, summary_spans as outline};
pub use schedule::{critical_path, poles};
pub use time::{callees, states, threads};

/// What `pulumi::identity` and `pulumi::urn` hold.
pub mod resources {
    pub use crate::pulumi::identity::identify;
    pub use crate::pulumi::urn::{name_of_urn, title_of_urn, type_of_urn, urn_of};
}

/// What `schedule::replay` and `schedule::saving` hold.
pub mod savings {
    pub use crate::schedule::replay::Replay;
    pub use crate::schedule::saving::{Change, Saving};
}

/// What `code::call_tree` and `code::functions` hold.
pub mod call_tree {
    pub use crate::code::call_tree::CallTree;
    pub use crate::code::functions::{Frames, Function, FunctionWeight, Functions, LineWeight, Weight};
}

/// What `code::origin` holds.
pub mod own_code {
    pub use crate::code::origin::CodeOrigin as Whose;
}

/// What `time::usage` holds.
pub mod usage {
    pub use crate::time::usage::{UsageFinding as Notable, *};
}

/// What `tree::forest` and `note` hold.
pub mod trace_tree {
    pub use crate::note::Note;
    pub use crate::tree::forest::{Edge, Forest, Node, NodeSource};
}
