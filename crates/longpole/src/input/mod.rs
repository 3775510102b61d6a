//! What a command reads: recordings, files and traces of servers, by the names that people type.

pub(crate) mod excerpt;
pub(crate) mod import_file;
pub(crate) mod load;
pub(crate) mod select;
pub(crate) mod server;
pub(crate) mod source_access;
pub(crate) mod temporary_store;
