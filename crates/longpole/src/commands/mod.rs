//! One command per file, thin.

mod alarm;
pub(crate) mod attach;
pub(crate) mod code;
pub(crate) mod diff;
pub(crate) mod doctor;
mod doctor_program;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod flame;
mod flame_svg;
pub(crate) mod import;
pub(crate) mod ls;
pub(crate) mod open;
pub(crate) mod processes;
pub(crate) mod recording;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod span;
#[cfg(feature = "sql")]
pub(crate) mod sql;
#[cfg(not(feature = "sql"))]
pub(crate) mod sql_left_out;
pub(crate) mod summary;
pub(crate) mod tree;
