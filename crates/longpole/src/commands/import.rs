//! `import`: files that other tools wrote become recordings.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_server::import::{self, Contents, ImportError};
use longpole_server::view;

use super::recording::{Setting, print, print_json};
use super::summary;
use crate::args::{Format, ImportArguments};
use crate::failure::{Failure, Kind};

/// Keeps every file as a recording of its own, and says what is in it. The first file that cannot be read ends it; those before it
/// are kept.
pub(crate) fn import(setting: &Setting, arguments: &ImportArguments) -> Result<()> {
    let store = setting.open_store()?;
    let mut answers = Vec::new();
    let together = if arguments.together { Some(read_together(&arguments.files)?) } else { None };
    let files = if together.is_some() { &arguments.files[..1] } else { &arguments.files[..] };
    let mut together = together.into_iter();
    for path in files {
        let contents = together.next().map_or_else(|| read(path), Ok)?;
        let (name, report) = import::keep(&store, contents).with_context(|| format!("failed to keep {}", path.display()))?;
        if let Some(tag) = &arguments.tag {
            store.tag(name, tag)?;
        }
        let view = view::SummaryView::new(name, &report);
        match arguments.format {
            Format::Text => print(&summary::summary(&view, setting.style()))?,
            Format::Json => answers.push(view),
        }
        // It is not looked at again, and taking a million spans apart takes longer than the system needs to end this.
        std::mem::forget(report);
    }
    if arguments.format == Format::Json { print_json(&answers) } else { Ok(()) }
}

/// What all files hold, as one.
fn read_together(files: &[PathBuf]) -> Result<Contents> {
    let read = |path: &PathBuf| Ok((path.clone(), read(path)?));
    let contents = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    import::together(contents).map_err(|error| Failure::new(Kind::Usage, format!("failed to {error}")).into())
}

/// What a file holds.
pub(super) fn read(path: &Path) -> Result<Contents> {
    import::read(path).map_err(|error| {
        let (kind, hint) = match &error {
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => (Kind::NotFound, ""),
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => (Kind::NotPermitted, ""),
            ImportError::Unknown { .. } => (Kind::Usage, "each of them may be gzipped; also known is .lpole, as it is"),
            _ => (Kind::Failed, ""),
        };
        let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
        let cause: String = causes.map(|cause| format!(": {cause}")).collect();
        let failure = Failure::new(kind, format!("failed to {error}{cause}"));
        if hint.is_empty() { failure.into() } else { failure.hint(hint).into() }
    })
}

/// The report of a file that is looked at without being kept.
pub(super) fn report(path: &Path) -> Result<Report> {
    Ok(import::report(read(path)?.recording()))
}
