//! Pulumi's `view-trace`: a trace file in the browser.

use std::path::Path;

use anyhow::Result;

use crate::args::{SourceArguments, ViewTraceArguments};
use crate::input::source_access::source_consent;
use crate::page::serve_file;

/// Shows a trace file in the browser.
pub(crate) fn view_trace(arguments: &ViewTraceArguments) -> Result<()> {
    let consent = source_consent(&SourceArguments { allow_source: Vec::new() })?;
    serve_file(Path::new(&arguments.file), arguments.port, !arguments.no_browser, "Displaying trace at", consent)
}
