//! The kernel's performance events: which are opened, the ring buffers they fill, and their records.

pub(crate) mod attributes;
mod cpus;
pub(crate) mod event;
mod open_error;
pub mod options;
pub mod record;
pub(crate) mod ring;
pub(crate) mod settings;
pub(crate) mod stack_dump_size;
