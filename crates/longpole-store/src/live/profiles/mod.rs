//! Profiles of a server, beside its spans: in the same logs, generations and segments.
//!
//! ```text
//! request ─► log ─► head: stack tables, series, values ─ generation ends ─► profile_series, profile_values, stacks … of the segment
//!
//! query: head and segments, each by itself ─► parts: how much each stack of each series had ─► whoever asks adds them up
//! ```
//!
//! Stacks have numbers of their own in each head and each segment. There is no table of symbols beside the segments, so a segment goes as one folder.

mod head;
mod head_values;
mod named_stacks;
mod query;
mod segment;
mod stack_tables;
#[cfg(test)]
mod tests;

pub use self::head::OVERFLOW_LABEL;
pub(super) use self::head::ProfileHead;
pub(super) use self::head_values::HeadSnapshot;
pub(super) use self::named_stacks::{NamedStacks, stacks_of};
pub(super) use self::query::{GrowingSums, overlaps};
pub use self::query::{ProfileFilter, ProfilePart, ProfileStacks, ProfileSums, SeriesList};
pub(super) use self::segment::{OpenProfiles, is_there, write};
