//! `import`: makes recordings of other tools' files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use longpole_recording::import::{self, Contents};
use longpole_recording::{kept, view};

use crate::args::{Format, ImportArguments};
use crate::failure::{Failure, Kind};
use crate::input::import_file::read;
use crate::invocation::Invocation;
use crate::render::answer;
use crate::terminal::screen::{print, print_json};

/// Stores each file as a recording and prints its answer. Stops at the first file that it cannot read, and keeps those before it.
pub(crate) fn import(invocation: &Invocation, arguments: &ImportArguments) -> Result<()> {
    let store = invocation.open_store()?;
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
        kept::keep(&store, name, &view);
        match arguments.format {
            Format::Text => print(&answer::answer(&view, invocation.style()))?,
            Format::Json => answers.push(view),
        }
        // Not needed any more, and dropping a million spans takes longer than letting the process end.
        std::mem::forget(report);
    }
    if arguments.format == Format::Json { print_json(&answers) } else { Ok(()) }
}

/// Reads all files as one recording.
fn read_together(files: &[PathBuf]) -> Result<Contents> {
    let read = |path: &PathBuf| Ok((path.clone(), read(path)?));
    let contents = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    import::together(contents).map_err(|error| Failure::new(Kind::Usage, format!("failed to {error}")).into())
}
