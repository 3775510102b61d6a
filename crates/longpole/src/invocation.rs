//! What holds for every command of one invocation: the store, colours, logs.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longpole_store::Store;

use crate::args::{Arguments, Color, Origin, TracingLevel};
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::next_command;
use crate::store::{new_folder, open_store};
use crate::terminal::Style;
use crate::terminal::stderr::note;

/// Global flags and their environment variables.
pub(crate) struct Invocation {
    /// The store; `None` without a flag, a variable and a home.
    store: Option<PathBuf>,
    /// Whether a flag or a variable named it.
    is_named: bool,
    pub(crate) color: Color,
    pub(crate) tracing_level: Option<TracingLevel>,
}

impl Invocation {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        // The next command inherits the variable, but not the flag.
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

    /// The directory of the store.
    pub(crate) fn store(&self) -> Result<&Path> {
        let nowhere = || Failure::new(Kind::Usage, "failed to find a directory for recordings: neither HOME nor XDG_DATA_HOME is set");
        Ok(self.store.as_deref().ok_or_else(|| nowhere().hint("name one: --store DIR, or LONGPOLE_STORE=DIR"))?)
    }

    /// Whether a flag or a variable named it.
    pub(crate) fn is_store_named(&self) -> bool {
        self.is_named
    }

    /// Where the name of the store comes from.
    pub(crate) fn store_origin(&self) -> Origin {
        let of_variable = self.store.as_deref().map(Path::as_os_str) == std::env::var_os(env_vars::STORE).as_deref();
        match (self.is_named, of_variable) {
            (true, true) => Origin::Variable(env_vars::STORE.to_owned()),
            (true, false) => Origin::Option("--store"),
            (false, _) => Origin::Default,
        }
    }

    /// Whether the directory of the store exists.
    pub(crate) fn has_store(&self) -> bool {
        self.store.as_deref().is_some_and(Path::is_dir)
    }

    pub(crate) fn open_store(&self) -> Result<Store> {
        open_store(self.store()?)
    }

    /// The store to record to. If the default one cannot be used, as in a container whose user has no home, it is a new directory that
    /// only this user can open, and a line says so: losing the recording would be worse.
    pub(crate) fn open_store_to_record(&self) -> Result<Store> {
        let refused = match self.open_store() {
            Err(error) if !self.is_named && is_place_refused(&error) => error,
            opened => return opened,
        };
        let root = new_folder(RECORDED_PREFIX).with_context(|| format!("{refused:#}; failed to create a directory instead"))?;
        let store = open_store(&root).with_context(|| format!("{refused:#}"))?;
        note(format!("{refused:#}; this recording is kept in {}", root.display()));
        next_command::name_store(root);
        Ok(store)
    }

    pub(crate) fn style(&self) -> Style {
        Style::stdout(self.color)
    }
}

/// Prefix of the directories of such recordings. longpole never removes them.
const RECORDED_PREFIX: &str = "longpole-store-";

/// Whether the directory is the problem: there is none, it belongs to another user, or is read-only.
fn is_place_refused(error: &anyhow::Error) -> bool {
    let is_refused = |kind: io::ErrorKind| matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    error.chain().any(|cause| cause.is::<Failure>() || cause.downcast_ref::<io::Error>().is_some_and(|it| is_refused(it.kind())))
}
