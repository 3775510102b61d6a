//! What every command that looks at a recording shares: the store, the name, the report, and where output goes.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_server::seal;
use longpole_server::source_file::SourceConsent;
use longpole_server::view::Chosen;
use longpole_store::{ErrorKind, RecordingName, Store};

use super::import;
use crate::args::{Arguments, Color, SourceArguments, SpansArguments, TracingLevel};
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::screen;
pub(crate) use crate::screen::{print, print_json, print_line};
use crate::terminal::Style;

/// What the global flags say.
pub(crate) struct Setting {
    pub(crate) store: PathBuf,
    pub(crate) color: Color,
    pub(crate) tracing_level: Option<TracingLevel>,
}

impl Setting {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        // What the environment says it says to the next command line, too.
        if let Some(store) =
            arguments.store.as_ref().filter(|store| std::env::var_os(env_vars::STORE).as_deref() != Some(store.as_os_str()))
        {
            let _ = NAMED_STORE.set(store.clone());
        }
        Setting {
            store: arguments.store.clone().unwrap_or_else(env_vars::default_store),
            color: arguments.color,
            tracing_level: arguments.tracing_level,
        }
    }

    pub(crate) fn open_store(&self) -> Result<Store> {
        Store::open(&self.store).with_context(|| format!("failed to open the store {}", self.store.display()))
    }

    pub(crate) fn style(&self) -> Style {
        Style::stdout(self.color)
    }
}

/// The name of a recording that exists: `last` and `7` become `r7`.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<RecordingName> {
    store.resolve(text).and_then(|name| store.recording(name).map(|_| name)).map_err(|error| {
        let kind = if error.kind() == ErrorKind::NotFound { Kind::NotFound } else { Kind::Failed };
        let own = own_name();
        let hint = if text == "last" { format!("make a recording: {own} run -- CMD") } else { format!("{own} ls lists them") };
        Failure::new(kind, format!("failed to {error}")).hint(hint).into()
    })
}

/// The report of a recording, or of a file that is read and not kept; with what to call it in the next command.
pub(crate) fn load(setting: &Setting, text: &str) -> Result<(String, Report)> {
    match file(text) {
        Some(path) => Ok((text.to_owned(), import::report(path)?)),
        None => load_stored(&setting.open_store()?, text),
    }
}

/// The file that a text names where a recording may stand: it has a `/`, or is there. Names of recordings win; `./r7` is a file.
pub(crate) fn file(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    let is_name = text == "last" || RecordingName::parse(text).is_some();
    (!is_name && (text.contains('/') || path.is_file())).then_some(path)
}

/// The report of a recording; one whose recorder was killed is sealed first.
pub(crate) fn load_stored(store: &Store, text: &str) -> Result<(String, Report)> {
    let name = resolve(store, text)?;
    let report = seal::load(store, name, &|| false).with_context(|| format!("failed to read {name}"))?;
    Ok((name.to_string(), report))
}

/// A handle or a name and a recording as they were typed, in either order: `p1 r7`, `r7 p1`, `r7 nap`.
pub(crate) fn in_order<'a>(handle: &'a str, recording: &'a str) -> (&'a str, &'a str) {
    let is_swapped = !is_handle(handle) && (is_handle(recording) || (is_recording(handle) && !is_recording(recording)));
    if is_swapped { (recording, handle) } else { (handle, recording) }
}

/// Whether a text can only mean a recording: no tag, which may be the name of a span as well.
fn is_recording(text: &str) -> bool {
    text == "last" || RecordingName::parse(text).is_some() || file(text).is_some()
}

/// Which spans are meant, if any, and in which recording: `flame p1` means what `flame --span p1` does.
pub(crate) fn chosen<'a>(spans: &'a SpansArguments, recording: &'a str) -> (Option<Chosen<'a>>, &'a str) {
    let handle = spans.span.as_deref().map(handle_or_name);
    let name = spans.name.as_deref().map(Chosen::Name);
    let trace = spans.trace.as_deref().map(Chosen::Trace);
    match handle.or(name).or(trace) {
        None if is_handle(recording) => (Some(Chosen::Handle(recording)), "last"),
        chosen => (chosen, recording),
    }
}

/// Spans by a handle, or by their name.
pub(crate) fn handle_or_name(text: &str) -> Chosen<'_> {
    if is_handle(text) { Chosen::Handle(text) } else { Chosen::Name(text) }
}

/// `s12`, `p1`, `f3`; no recording is called so.
pub(crate) fn is_handle(text: &str) -> bool {
    text.parse::<longpole_analysis::Handle>().is_ok()
}

/// The store that the command line names.
static NAMED_STORE: OnceLock<PathBuf> = OnceLock::new();

/// Which source files the user lets recordings of others have.
pub(crate) fn source_consent(allow: &SourceArguments) -> Result<SourceConsent> {
    let (current, _) = env_vars::folders();
    SourceConsent::new(&current, &allow.allow_source).map_err(|(folder, error)| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Usage };
        Failure::new(kind, format!("failed to allow source files below {}: {error}", folder.display())).into()
    })
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

/// A store for the time of one command, with one file in it.
pub(crate) struct TemporaryStore {
    root: PathBuf,
}

impl TemporaryStore {
    /// Keeps this file as a recording in a new store.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, RecordingName)> {
        let contents = import::read(path)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"))?;
        let root = std::env::temp_dir().join(format!("longpole-{:016x}", u64::from_ne_bytes(random)));
        let store = TemporaryStore { root };
        let (name, _) = longpole_server::import::keep(&store.open()?, contents).context("failed to keep the file for a while")?;
        Ok((store, name))
    }

    pub(crate) fn open(&self) -> Result<Store> {
        Store::open(&self.root).with_context(|| format!("failed to open the store {}", self.root.display()))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        // What stays is in the folder that the system empties.
        std::fs::remove_dir_all(&self.root).ok();
    }
}
