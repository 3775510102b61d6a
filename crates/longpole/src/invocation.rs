//! What the global flags and the environment say: the store, colours, logs.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longpole_store::Store;

use crate::args::{Arguments, Color, TracingLevel};
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::next_command;
use crate::store::{new_folder, open_store};
use crate::terminal::Style;
use crate::terminal::stderr::note;

/// What the global flags say.
pub(crate) struct Invocation {
    /// Where recordings are kept; `None` where nobody says and there is no home.
    store: Option<PathBuf>,
    /// Whether the command line or the environment names it.
    is_named: bool,
    pub(crate) color: Color,
    pub(crate) tracing_level: Option<TracingLevel>,
}

impl Invocation {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        // What the environment says it says to the next command line, too.
        if let Some(store) =
            arguments.global.store.as_ref().filter(|store| std::env::var_os(env_vars::STORE).as_deref() != Some(store.as_os_str()))
        {
            next_command::name_store(store.clone());
        }
        Invocation {
            store: arguments.global.store.clone().or_else(env_vars::default_store),
            is_named: arguments.global.store.is_some(),
            color: arguments.global.color,
            tracing_level: arguments.global.tracing_level,
        }
    }

    /// Where recordings are kept.
    pub(crate) fn store(&self) -> Result<&Path> {
        let nowhere = || Failure::new(Kind::Usage, "failed to find a directory for recordings: neither HOME nor XDG_DATA_HOME is set");
        Ok(self.store.as_deref().ok_or_else(|| nowhere().hint("name one: --store DIR, or LONGPOLE_STORE=DIR"))?)
    }

    /// Whether the directory of the store exists.
    pub(crate) fn has_store(&self) -> bool {
        self.store.as_deref().is_some_and(Path::is_dir)
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
        note(format!("{refused:#}; this recording is kept in {}", root.display()));
        next_command::name_store(root);
        Ok(store)
    }

    pub(crate) fn style(&self) -> Style {
        Style::stdout(self.color)
    }
}

/// Stores of recordings that had no other place. They stay.
const RECORDED_PREFIX: &str = "longpole-store-";

/// Whether it is the place that cannot be had: there is none, it is another user's, or nothing may be written there.
fn is_place_refused(error: &anyhow::Error) -> bool {
    let is_refused = |kind: io::ErrorKind| matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    error.chain().any(|cause| cause.is::<Failure>() || cause.downcast_ref::<io::Error>().is_some_and(|it| is_refused(it.kind())))
}
