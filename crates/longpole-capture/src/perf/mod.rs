//! The kernel's performance events: which are opened, the ring buffers they fill, and their records.

pub(crate) mod event;
pub mod record;
pub(crate) mod ring;
pub(crate) mod stack_dump_size;
