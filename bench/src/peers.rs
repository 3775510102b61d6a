//! Where the peers are: on the path, to which `cargo xtask bench` adds the folder of `cargo xtask peers`.

/// The program of this name, or `None` with a line that says how to have it.
pub(crate) fn find(name: &str) -> Option<String> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs).map(|dir| dir.join(name)).find(|path| path.is_file());
    if found.is_none() {
        println!("{name}: not installed, left out (cargo xtask peers {})", name.trim_end_matches(".jar"));
    }
    found.map(|path| path.to_string_lossy().into_owned())
}
