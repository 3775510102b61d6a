//! Finding the recording or file that the user named, and loading its report.

use std::path::Path;

use anyhow::Result;
use longpole_analysis::Report;
use longpole_recording::kept::{self, KeptView};
use longpole_recording::seal;
use longpole_store::{ErrorKind, Listing, RecordingName, Store, StoreError};

use crate::failure::{Failure, Kind};
use crate::input::{import_file, server};
use crate::invocation::Invocation;
use crate::next_command::own_name;
use crate::terminal::stderr::note;

/// Lists the store. Reports damaged rows on standard error.
pub(crate) fn list(store: &Store) -> Result<Listing, StoreError> {
    let listing = store.list()?;
    for damaged in &listing.damaged {
        note(format!("one recording cannot be listed: failed to {damaged}"));
    }
    Ok(listing)
}

/// The name of an existing recording: `last`, `7` and the id of a trace in it become `r7`.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<RecordingName> {
    found(store, text, store.resolve_or_trace(text).and_then(|name| store.recording(name).map(|_| name)))
}

/// The same for a recording to remove, which need not be readable.
pub(crate) fn to_remove(store: &Store, text: &str) -> Result<RecordingName> {
    let exists = |name| match store.recording(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error),
        _ => Ok(name),
    };
    found(store, text, store.resolve(text).and_then(exists))
}

fn found(store: &Store, text: &str, found: Result<RecordingName, StoreError>) -> Result<RecordingName> {
    found.map_err(|error| {
        let (kind, message) = match &error {
            StoreError::Empty { root } => (Kind::NotFound, format!("there is no recording yet in {}", root.display())),
            StoreError::NotFound { name, root } => (Kind::NotFound, format!("there is no recording {name} in {}", root.display())),
            StoreError::Name { text } => (
                Kind::NotFound,
                format!("there is no recording `{text}`: name one by its number (r7 or 7), last, its tag, or the id of a trace in it"),
            ),
            _ if error.kind() == ErrorKind::NotFound => (Kind::NotFound, format!("failed to {error}")),
            _ => (Kind::Failed, format!("failed to {error}")),
        };
        let is_empty = text == "last" || store.list().is_ok_and(|list| list.recordings.is_empty());
        let own = own_name();
        let hint = if is_empty { format!("make a recording: {own} run -- CMD") } else { format!("{own} ls lists them") };
        Failure::new(kind, message).hint(hint).into()
    })
}

/// Loads the report of a recording, a file or a trace of a server; returns its name for the next command as well.
pub(crate) fn load(invocation: &Invocation, text: &str) -> Result<(String, Report)> {
    if server::is_address(text) {
        return Ok((text.to_owned(), import_file::report(Path::new(text))?));
    }
    match file_aloud(invocation, text) {
        Some(path) => Ok((text.to_owned(), import_file::report(path)?)),
        None => load_stored(&invocation.open_store()?, text),
    }
}

/// File name endings of other tools and of packed recordings. A name with one of them means a file, even if there is such a tag.
const FILE_ENDINGS: [&str; 14] =
    ["lpole", "trace", "json", "jsonl", "ndjson", "pb", "pprof", "prof", "data", "folded", "collapsed", "txt", "otlp-profiles", "gz"];

/// The file that the user named, if it is one: the text contains a `/`, or such a file exists. Names of recordings win, and so do tags
/// without a file name ending: a file `base` in the current directory must not hide the tag `base`. `./r7` is a file.
pub(crate) fn file<'a>(invocation: &Invocation, text: &'a str) -> Option<&'a Path> {
    named(invocation, text).0
}

/// The same; if the text names a recording as well, prints which of them was chosen and how to name the other.
pub(crate) fn file_aloud<'a>(invocation: &Invocation, text: &'a str) -> Option<&'a Path> {
    let (path, ambiguity) = named(invocation, text);
    ambiguity.into_iter().for_each(note);
    path
}

fn named<'a>(invocation: &Invocation, text: &'a str) -> (Option<&'a Path>, Option<String>) {
    let Some(path) = possible_file(text) else { return (None, None) };
    let tagged = if text.contains('/') { None } else { tagged(invocation, text) };
    let is_ended = path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| FILE_ENDINGS.contains(&ending));
    match tagged {
        None => (Some(path), None),
        Some(name) if is_ended => (Some(path), Some(format!("{text} is both a file and the tag of {name}; longpole reads the file"))),
        Some(name) => {
            (None, Some(format!("{text} is both a file and the tag of {name}; longpole reads the recording; the file is ./{text}")))
        }
    }
}

/// The recording with this tag. Does not create a store.
fn tagged(invocation: &Invocation, text: &str) -> Option<RecordingName> {
    invocation.has_store().then(|| invocation.open_store().ok()?.resolve(text).ok()).flatten()
}

/// The file that a text names, tags aside.
pub(crate) fn possible_file(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    let is_name = text == "last" || RecordingName::parse(text).is_some();
    (!is_name && (text.contains('/') || path.is_file())).then_some(path)
}

/// A view of a recording, a file or a trace of a server. That of a recording is kept for the next time.
pub(crate) fn view<V: KeptView>(invocation: &Invocation, text: &str, make: impl FnOnce(&str, &Report) -> V) -> Result<V> {
    if let Some((server, recording)) = server::recording_at(text) {
        return server.view::<V>(&format!("/api/recordings/{recording}{}", V::PATH)).map(|view| view.called(text));
    }
    if server::is_address(text) {
        return Ok(make(text, &import_file::report(Path::new(text))?));
    }
    if let Some(path) = file_aloud(invocation, text) {
        return Ok(make(text, &import_file::report(path)?));
    }
    let store = invocation.open_store()?;
    let name = resolve(&store, text)?;
    if let Some(view) = kept::kept(&store, name) {
        return Ok(view);
    }
    let report = load_named(&store, name)?;
    let view = make(&name.to_string(), &report);
    kept::keep(&store, name, &view);
    // Not needed any more, and dropping a million spans takes longer than letting the process end.
    std::mem::forget(report);
    Ok(view)
}

/// Loads the report of a recording. Seals it first if its recorder was killed.
pub(crate) fn load_stored(store: &Store, text: &str) -> Result<(String, Report)> {
    let name = resolve(store, text)?;
    Ok((name.to_string(), load_named(store, name)?))
}

fn load_named(store: &Store, name: RecordingName) -> Result<Report> {
    seal::load(store, name, &|| false).map_err(|error| not_read(name, error))
}

fn not_read(name: RecordingName, error: seal::SealError) -> anyhow::Error {
    match &error {
        seal::SealError::Store(damaged @ StoreError::Corrupt { .. }) => {
            Failure::new(Kind::Failed, format!("failed to read {name}: {damaged}"))
                .hint(format!("{} rm {name} removes it; its other tables are Parquet files that other tools read", own_name()))
                .into()
        }
        // The recording is intact, but needs more memory than the reader allows: removing it would be wrong.
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
