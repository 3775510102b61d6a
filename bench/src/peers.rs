//! Where the peers are: on the path, or where `cargo xtask peers` put them.

use std::path::PathBuf;

/// The folder of `cargo xtask peers`: outside the repository, shared by checkouts.
fn cache() -> PathBuf {
    let base =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("longpole-peers/bin")
}

/// The program of this name, or `None` with a line that says how to have it.
pub(crate) fn find(name: &str) -> Option<String> {
    let mut dirs: Vec<PathBuf> = vec![cache()];
    dirs.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    let found = dirs.into_iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    if found.is_none() {
        println!("{name}: not installed, left out (cargo xtask peers {name})");
    }
    found.map(|path| path.to_string_lossy().into_owned())
}
