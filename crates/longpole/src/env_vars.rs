//! Every environment variable that longpole itself reads. `longpole_capture` sets those of the command.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use longpole_capture::launch::child;

/// Where recordings are kept; `--store` wins.
pub(crate) const STORE: &str = "LONGPOLE_STORE";

/// The token of the servers that a command asks or sends to.
pub(crate) const TOKEN: &str = "LONGPOLE_TOKEN";

/// How much longpole logs about itself; `--tracing-level` wins.
pub(crate) const TRACING_LEVEL: &str = "LONGPOLE_TRACING_LEVEL";

/// Any value switches colour off (no-color.org).
pub(crate) const NO_COLOR: &str = "NO_COLOR";

/// The trace that a run joins, if it is valid (W3C Trace Context).
pub(crate) const TRACEPARENT: &str = "TRACEPARENT";

/// The file that a setting of the span exporter names: `CERTIFICATE`, `CLIENT_CERTIFICATE`, `CLIENT_KEY`.
pub(crate) fn exporter_file(setting: &str) -> Option<PathBuf> {
    let file = |name: String| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    file(format!("OTEL_EXPORTER_OTLP_TRACES_{setting}")).or_else(|| file(format!("OTEL_EXPORTER_OTLP_{setting}")))
}

fn directory(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The token of servers, if the user gives one.
pub(crate) fn token() -> Option<String> {
    std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// Directories to resolve typed paths with: the current one, and the home that `~` stands for.
pub(crate) fn folders() -> (PathBuf, Option<PathBuf>) {
    (std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")), directory("HOME"))
}

/// The store when neither flag nor variable names one: `$XDG_DATA_HOME/longpole`, or `.local/share/longpole` in the home that `HOME` or
/// `/etc/passwd` names. Never a directory that others can write to.
pub(crate) fn default_store() -> Option<PathBuf> {
    of_user("XDG_DATA_HOME", ".local/share")
}

/// The user's own file of settings, which need not exist.
pub(crate) fn config_file() -> Option<PathBuf> {
    of_user("XDG_CONFIG_HOME", ".config").map(|config| config.join("config.toml"))
}

/// Our folder in the one that a variable of XDG names, or in this one of the home that `HOME` or `/etc/passwd` names.
fn of_user(variable: &str, in_home: &str) -> Option<PathBuf> {
    let home = || directory("HOME").or_else(home_of_user);
    directory(variable).or_else(|| Some(home()?.join(in_home))).map(|folder| folder.join("longpole"))
}

fn home_of_user() -> Option<PathBuf> {
    let user = longpole_store::users::Owner::current();
    // For users without a home `/etc/passwd` names a directory that does not exist or belongs to someone else.
    let is_own = |home: &PathBuf| std::fs::metadata(home).is_ok_and(|data| data.is_dir() && data.uid() == user.uid);
    longpole_store::users::home(user.uid).filter(is_own)
}

/// Whether the environment allows colour.
pub(crate) fn colour_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set(NO_COLOR) && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The user who started longpole through `sudo`, if somebody did.
pub(crate) fn sudo_uid() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// Whether there is a display to open a browser on.
pub(crate) fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Variables that make the standard library and errors take backtraces. Without memory for one, the process hangs instead of exiting.
const OF_BACKTRACES: [&str; 2] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"];

/// The default stack of Rust threads. It is meant for the command, and may be too small to read a request with.
const OF_STACKS: &str = "RUST_MIN_STACK";

/// The environment that longpole started with, in its order.
static INHERITED: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Removes from longpole's own environment what is meant for the command. Call it before starting a thread.
pub(crate) fn keep_for_the_command() {
    INHERITED.get_or_init(|| {
        let inherited = std::env::vars_os().collect();
        OF_BACKTRACES.iter().chain([&OF_STACKS]).for_each(|name| _ = child::take_variable(name));
        inherited
    });
}

/// Whether the user wants backtraces.
pub(crate) fn wants_backtraces() -> bool {
    INHERITED.get().is_some_and(|inherited| inherited.iter().any(|(name, value)| name == OF_BACKTRACES[0] && value != "0"))
}

/// The environment that longpole started with.
pub(crate) fn inherited() -> Vec<(OsString, OsString)> {
    INHERITED.get().cloned().unwrap_or_else(|| std::env::vars_os().collect())
}

/// All variables whose name and value are text.
pub(crate) fn all_text() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
