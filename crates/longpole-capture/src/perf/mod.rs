//! The kernel's performance events: what is asked for, the memory it comes in, the records.

pub(crate) mod deeper;
pub(crate) mod event;
pub mod record;
pub(crate) mod ring;
