//! Spans and processes → one forest.

pub(crate) mod build;
pub(crate) mod clock_skew;
pub(crate) mod emitters;
pub mod forest;
pub mod labels;
pub mod placement;
pub(crate) mod span_list;
