//! How the next command line has to be written: what this program is called, and words as a shell takes them.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::terminal::screen;

/// The store that the command line names.
static NAMED_STORE: OnceLock<PathBuf> = OnceLock::new();

/// From now on commands name this store.
pub(crate) fn name_store(store: PathBuf) {
    let _ = NAMED_STORE.set(store);
}

/// How the next command line has to call this program: by name where that finds it, else as it was called; with the store, where it is
/// another one than usual.
pub(crate) fn own_name() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let is_path = called.to_string_lossy().contains('/');
    let found = std::env::var_os("PATH").is_some_and(|path| {
        let here = std::env::current_exe().ok();
        std::env::split_paths(&path)
            .map(|dir| dir.join("longpole"))
            .find(|file| file.is_file())
            .is_some_and(|file| file.canonicalize().ok() == here)
    });
    let name = if is_path && !found { called.to_string_lossy().into_owned() } else { "longpole".to_owned() };
    match NAMED_STORE.get() {
        Some(store) => format!("{name} --store {}", quoted(&store.to_string_lossy())),
        None => name,
    }
}

/// A word as a shell takes it; where it holds what cannot be shown, as bash and zsh do, so that it can be typed or pasted.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    if word.contains(screen::is_unsafe) {
        let shown = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if screen::is_unsafe(c) => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
            c => c.to_string(),
        };
        return format!("$'{}'", word.chars().map(shown).collect::<String>());
    }
    if !word.is_empty() && word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
