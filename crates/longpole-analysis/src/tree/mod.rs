//! Spans and processes → one forest.

pub(crate) mod clock_skew;
pub(crate) mod emitters;
pub mod forest;
pub(crate) mod span_list;
