//! Which span a thread was in, as SDKs publish it: records beside the stack, journals in shared memory.

pub mod journal;
pub mod journal_dir;
pub(crate) mod journal_reader;
pub mod otel;
pub mod record;
