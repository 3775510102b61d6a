//! The one home of English: facts in, sentences out.
//!
//! ```text
//! Reason, BlockedBySummary, CalleeSummary …  ─► Words ─┬► the whole sentence       JSON `text`
//!                                                      ├► cut to a width           the terminal
//!                                                      └► pieces                   links on the page
//! Note, StateKind, UsageFinding               ─► String
//! ```
//!
//! Sentences are lower-case fragments without a full stop. Nobody edits or splits one: whoever needs a part of it, or a shorter one, asks
//! the [`Words`].

mod blocker;
mod difference;
mod file;
mod loss;
mod note;
mod phrase;
mod pole;
mod reason;
mod state;
mod usage;
mod wait;

pub use self::blocker::{blocked_by, blocker, callee, thread};
pub use self::difference::{commands_differ, fixed_pole, kinds_differ, machines_differ, no_difference, rates_differ, took_no_time};
pub use self::loss::{loss, sentence, title, titled};
pub use self::note::{note, why_ranges};
pub use self::phrase::{Measure, Piece, Words};
pub use self::pole::{
    NOTHING_MORE, between_poles, fixing, idle_on_path, limit, more_poles, name_of_pole, other_side, part, pole, saves_after,
    saves_less_after,
};
pub use self::reason::{reason, wait_of};
pub use self::state::state;
pub use self::usage::usage;
