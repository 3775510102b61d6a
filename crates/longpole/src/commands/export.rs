//! `export`: writes a recording as a file for another tool.

use anyhow::Result;

use crate::args::{ExportArguments, ExportFormat};
use crate::export::export_file::{format_of, pack, write};
use crate::input::load::load_stored;
use crate::invocation::Invocation;

/// Writes a recording as a file.
pub(crate) fn export(invocation: &Invocation, arguments: &ExportArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let format = format_of(&arguments.output)?;
    if format == ExportFormat::Lpole {
        // Loading seals a recording whose recorder was killed.
        load_stored(&store, &arguments.recording)?;
        return pack(&store, &arguments.recording, arguments.output.output.as_deref());
    }
    let (name, report) = load_stored(&store, &arguments.recording)?;
    write(&name, &report, format, &arguments.output)
}
