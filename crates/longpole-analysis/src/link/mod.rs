//! Whose a sample or a wait is: context records, journals, and what can be inferred where there are none.

pub mod current_spans;
pub mod labels;
pub mod never_arrived;
pub(crate) mod process_idle;
pub mod samples;
pub(crate) mod span_threads;
mod threads_at_ends;
pub(crate) mod wait_order;
pub mod waits;
