//! What every command that looks at a recording shares: the store, the name, the report, and where output goes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_capture::context::journal_dir;
use longpole_server::seal;
use longpole_server::source_file::SourceConsent;
use longpole_server::view::Chosen;
use longpole_store::{ErrorKind, Listing, RecordingName, Store, StoreError};

use super::import;
use super::run::say;
use crate::args::{Arguments, Color, SourceArguments, SpansArguments, TracingLevel};
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::screen;
pub(crate) use crate::screen::{print, print_json, print_line};
use crate::terminal::Style;

/// What the global flags say.
pub(crate) struct Setting {
    /// Where recordings are kept; `None` where nobody says and there is no home.
    store: Option<PathBuf>,
    /// Whether the command line or the environment names it.
    is_named: bool,
    pub(crate) color: Color,
    pub(crate) tracing_level: Option<TracingLevel>,
}

impl Setting {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        // What the environment says it says to the next command line, too.
        if let Some(store) =
            arguments.global.store.as_ref().filter(|store| std::env::var_os(env_vars::STORE).as_deref() != Some(store.as_os_str()))
        {
            let _ = NAMED_STORE.set(store.clone());
        }
        Setting {
            store: arguments.global.store.clone().or_else(env_vars::default_store),
            is_named: arguments.global.store.is_some(),
            color: arguments.global.color,
            tracing_level: arguments.global.tracing_level,
        }
    }

    /// Where recordings are kept.
    pub(crate) fn store(&self) -> Result<&Path> {
        let nowhere = || Failure::new(Kind::Usage, "failed to find a place for recordings: neither HOME nor XDG_DATA_HOME is set");
        Ok(self.store.as_deref().ok_or_else(|| nowhere().hint("name one: --store DIR, or LONGPOLE_STORE=DIR"))?)
    }

    pub(crate) fn open_store(&self) -> Result<Store> {
        open_store(self.store()?)
    }

    /// The store to record to. Where nobody named one and the usual one cannot be had, as in a container whose user has no home, it is a
    /// new folder that only this user can open, and that is said: what a command does once is worth more than where it is kept.
    pub(crate) fn open_store_to_record(&self) -> Result<Store> {
        let refused = match self.open_store() {
            Err(error) if !self.is_named && is_place_refused(&error) => error,
            opened => return opened,
        };
        let root = new_folder(RECORDED_PREFIX).with_context(|| format!("{refused:#}; failed to make a folder instead"))?;
        let store = open_store(&root).with_context(|| format!("{refused:#}"))?;
        say(format!("longpole: {refused:#}; this recording is kept in {}", root.display()));
        let _ = NAMED_STORE.set(root);
        Ok(store)
    }

    pub(crate) fn style(&self) -> Style {
        Style::stdout(self.color)
    }
}

fn open_store(root: &Path) -> Result<Store> {
    let store = Store::open(root).map_err(|error| match error.kind() {
        ErrorKind::NotOurs => Failure::new(Kind::NotPermitted, format!("failed to open the store {}: {error}", root.display())).into(),
        _ => anyhow::Error::new(error).context(format!("failed to open the store {}", root.display())),
    })?;
    if store.was_open() {
        say(format!("longpole: other users could read the store {}; now only its owner can", root.display()));
    }
    Ok(store)
}

/// Whether it is the place that cannot be had: there is none, it is another user's, or nothing may be written there.
fn is_place_refused(error: &anyhow::Error) -> bool {
    let is_refused = |kind: io::ErrorKind| matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    error.chain().any(|cause| cause.is::<Failure>() || cause.downcast_ref::<io::Error>().is_some_and(|it| is_refused(it.kind())))
}

/// What is in the store. Of rows that make no sense it is said on standard error.
pub(crate) fn list(store: &Store) -> Result<Listing, StoreError> {
    let listing = store.list()?;
    for damaged in &listing.damaged {
        say(format!("longpole: a row is left out: failed to {damaged}"));
    }
    Ok(listing)
}

/// The name of a recording that exists: `last` and `7` become `r7`.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<RecordingName> {
    found(text, store.resolve(text).and_then(|name| store.recording(name).map(|_| name)))
}

/// The same of one that is to go, which need not be readable.
pub(crate) fn to_remove(store: &Store, text: &str) -> Result<RecordingName> {
    let exists = |name| match store.recording(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error),
        _ => Ok(name),
    };
    found(text, store.resolve(text).and_then(exists))
}

fn found(text: &str, found: Result<RecordingName, StoreError>) -> Result<RecordingName> {
    found.map_err(|error| {
        let kind = if error.kind() == ErrorKind::NotFound { Kind::NotFound } else { Kind::Failed };
        let own = own_name();
        let hint = if text == "last" { format!("make a recording: {own} run -- CMD") } else { format!("{own} ls lists them") };
        Failure::new(kind, format!("failed to {error}")).hint(hint).into()
    })
}

/// The report of a recording, or of a file that is read and not kept; with what to call it in the next command.
pub(crate) fn load(setting: &Setting, text: &str) -> Result<(String, Report)> {
    match file_aloud(setting, text) {
        Some(path) => Ok((text.to_owned(), import::report(path)?)),
        None => load_stored(&setting.open_store()?, text),
    }
}

/// Endings of files of other tools, and of packed recordings: who writes one means a file, also where a tag ends so.
const FILE_ENDINGS: [&str; 14] =
    ["lpole", "trace", "json", "jsonl", "ndjson", "pb", "pprof", "prof", "data", "folded", "collapsed", "txt", "otlp-profiles", "gz"];

/// The file that a text names where a recording may stand: it has a `/`, or is there. Names of recordings win, and tags where the text does
/// not end like a file: a folder that holds a file `base` must not decide what `base` is. `./r7` is a file.
pub(crate) fn file<'a>(setting: &Setting, text: &'a str) -> Option<&'a Path> {
    named(setting, text).0
}

/// The same; where the text names a recording as well, it is said which of them was taken, and how the other is named.
pub(crate) fn file_aloud<'a>(setting: &Setting, text: &'a str) -> Option<&'a Path> {
    let (path, note) = named(setting, text);
    note.into_iter().for_each(say);
    path
}

fn named<'a>(setting: &Setting, text: &'a str) -> (Option<&'a Path>, Option<String>) {
    let Some(path) = possible_file(text) else { return (None, None) };
    let tagged = if text.contains('/') { None } else { tagged(setting, text) };
    let is_ended = path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| FILE_ENDINGS.contains(&ending));
    match tagged {
        None => (Some(path), None),
        Some(name) if is_ended => (
            Some(path),
            Some(format!("longpole: {text} is taken as the file of that name here; the recording that is tagged so is {name}")),
        ),
        Some(name) => (None, Some(format!("longpole: {text} is taken as the tag of {name}; the file of that name here is ./{text}"))),
    }
}

/// The recording that has this tag. Without a store there is none, and none is made.
fn tagged(setting: &Setting, text: &str) -> Option<RecordingName> {
    let is_there = setting.store.as_deref().is_some_and(Path::is_dir);
    is_there.then(|| setting.open_store().ok()?.resolve(text).ok()).flatten()
}

/// The file that a text names if no tag does.
fn possible_file(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    let is_name = text == "last" || RecordingName::parse(text).is_some();
    (!is_name && (text.contains('/') || path.is_file())).then_some(path)
}

/// The report of a recording; one whose recorder was killed is sealed first.
pub(crate) fn load_stored(store: &Store, text: &str) -> Result<(String, Report)> {
    let name = resolve(store, text)?;
    let report = seal::load(store, name, &|| false).map_err(|error| not_read(name, error))?;
    Ok((name.to_string(), report))
}

fn not_read(name: RecordingName, error: seal::SealError) -> anyhow::Error {
    match &error {
        seal::SealError::Store(damaged @ StoreError::Corrupt { .. }) => {
            Failure::new(Kind::Failed, format!("failed to read {name}: {damaged}"))
                .hint(format!("{} rm {name} removes it; its other tables are Parquet files that other tools read", own_name()))
                .into()
        }
        // It is whole, and takes more memory than its reader allows: to remove it would be wrong.
        seal::SealError::Store(large @ StoreError::TooLarge { .. }) => {
            Failure::new(Kind::Failed, format!("failed to read {name}: {large}"))
                .hint(format!(
                    "{} sql --recording {name} reads its tables one by one; they are Parquet files that other tools read, too",
                    own_name()
                ))
                .into()
        }
        _ => anyhow::Error::from(error).context(format!("failed to read {name}")),
    }
}

/// A handle or a name and a recording as they were typed, in either order: `p1 r7`, `r7 p1`, `r7 nap`.
pub(crate) fn in_order<'a>(handle: &'a str, recording: &'a str) -> (&'a str, &'a str) {
    let is_swapped = !is_handle(handle) && (is_handle(recording) || (is_recording(handle) && !is_recording(recording)));
    if is_swapped { (recording, handle) } else { (handle, recording) }
}

/// Whether a text can only mean a recording: no tag, which may be the name of a span as well. Where there is a file of that name, it is
/// one of the two.
fn is_recording(text: &str) -> bool {
    text == "last" || RecordingName::parse(text).is_some() || possible_file(text).is_some()
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

/// Stores for the time of one command, in the temporary folder.
const TEMPORARY_PREFIX: &str = "longpole-open-";

/// Stores of recordings that had no other place. They stay.
const RECORDED_PREFIX: &str = "longpole-store-";

/// Held while a temporary store is in use.
const LOCK: &str = "in-use";

/// A temporary store without a lock is one that is being made, unless it is older than this.
const UNLOCKED_MAX: Duration = Duration::from_secs(60);

/// A new folder in the temporary one that only this user can open.
fn new_folder(prefix: &str) -> Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"))?;
    let path = std::env::temp_dir().join(format!("{prefix}{:016x}", u64::from_ne_bytes(random)));
    DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    Ok(path)
}

/// A store for the time of one command, with one file in it.
pub(crate) struct TemporaryStore {
    root: PathBuf,
    // The kernel lets go of it however this process ends: then the next one removes the store.
    _lock: File,
}

impl TemporaryStore {
    /// Keeps this file as a recording in a new store.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, RecordingName)> {
        remove_stale_stores();
        let contents = import::read(path)?;
        let store = TemporaryStore::new()?;
        let (name, _) = longpole_server::import::keep(&store.open()?, contents).context("failed to keep the file for a while")?;
        Ok((store, name))
    }

    fn new() -> Result<Self> {
        let root = new_folder(TEMPORARY_PREFIX)?;
        let path = root.join(LOCK);
        let locked =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).and_then(|lock| Ok((lock.try_lock()?, lock).1));
        let lock = locked.with_context(|| format!("failed to lock {}", path.display())).inspect_err(|_| {
            fs::remove_dir_all(&root).ok();
        })?;
        Ok(TemporaryStore { root, _lock: lock })
    }

    pub(crate) fn open(&self) -> Result<Store> {
        open_store(&self.root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        // What stays is removed by the next one.
        fs::remove_dir_all(&self.root).ok();
    }
}

/// Removes the temporary stores of processes that were killed: they hold copies of files that others may not read.
pub(crate) fn remove_stale_stores() {
    let own = longpole_store::users::Owner::current();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
        // Of the link itself, where it is one.
        let is_own = || entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == own.uid);
        if is_named && is_own() && is_stale(&entry.path()) {
            // Somebody else may be at it; what stays is found again.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn is_stale(store: &Path) -> bool {
    match journal_dir::is_locked(&store.join(LOCK)) {
        Ok(Some(is_locked)) => !is_locked,
        Ok(None) => {
            let made = fs::metadata(store).and_then(|data| data.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNLOCKED_MAX))
        }
        Err(_) => false,
    }
}
