//! Writing the next command line: the name of this program, and quoting for the shell.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::args::DEFAULT_AT;
use crate::terminal::screen;

/// The store, if the next command has to name it.
static NAMED_STORE: OnceLock<PathBuf> = OnceLock::new();

/// Makes all suggested commands name this store.
pub(crate) fn name_store(store: PathBuf) {
    let _ = NAMED_STORE.set(store);
}

/// This program in a suggested command: its name if `PATH` finds it, else the path it was started with; and `--store` if it is not the
/// default one.
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
    let name = if is_path && !found { quoted(&called.to_string_lossy()) } else { "longpole".to_owned() };
    match NAMED_STORE.get() {
        Some(store) => format!("{name} --store {}", quoted(&store.to_string_lossy())),
        None => name,
    }
}

/// A command of this binary at the server of `--at`.
pub(crate) fn at_server(command: &str, at: &str) -> String {
    let at = if at == DEFAULT_AT { String::new() } else { format!(" --at {}", quoted(at)) };
    format!("{} {command}{at}", own_name())
}

/// A word quoted for the shell. With characters that cannot be shown it uses `$'…'` of bash and zsh, so that it can be pasted.
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
