//! `rm`: removes recordings.

use anyhow::Result;

use crate::args::RemoveArguments;
use crate::input::load::to_remove;
use crate::invocation::Invocation;
use crate::terminal::screen::print_line;

/// Removes recordings. All names are resolved before the first is removed.
pub(crate) fn rm(invocation: &Invocation, arguments: &RemoveArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let names = arguments.recordings.iter().map(|name| to_remove(&store, name)).collect::<Result<Vec<_>>>()?;
    for name in names {
        store.remove(name)?;
        print_line(format!("removed {name}"))?;
    }
    Ok(())
}
