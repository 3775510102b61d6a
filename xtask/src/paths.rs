//! The folders that the tasks read and write.

use std::path::PathBuf;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // Cargo says at run time where it is; what was compiled in is wrong once a checkout has moved with its target folder.
    let mut dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()));
    dir.pop();
    dir
}

/// Where cargo builds to.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// `$XDG_CACHE_HOME/longpole-peers`: outside the repository, shared by checkouts.
pub(crate) fn peers_dir() -> PathBuf {
    let base =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("longpole-peers")
}
