//! The span context that SDKs publish: records in thread-local storage, journals in shared memory.

pub mod journal;
pub mod journal_dir;
pub(crate) mod journal_reader;
pub mod otel;
pub mod record;
