//! Files that commands write.

pub(crate) mod export_file;
pub(crate) mod output;
