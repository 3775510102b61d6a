//! One command a file: it loads what it needs, and prints a view as text or JSON.

pub(crate) mod attach;
pub(crate) mod convert;
pub(crate) mod convert_trace;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod flame;
pub(crate) mod frame;
pub(crate) mod import;
pub(crate) mod ls;
pub(crate) mod open;
pub(crate) mod poles;
pub(crate) mod processes;
pub(crate) mod prune;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod span;
#[cfg(feature = "sql")]
pub(crate) mod sql;
pub(crate) mod tag;
pub(crate) mod threads;
pub(crate) mod top;
pub(crate) mod tree;
pub(crate) mod view_trace;
