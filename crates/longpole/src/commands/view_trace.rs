//! Pulumi's `view-trace`: a trace file in the browser.

use std::path::Path;

use anyhow::Result;
use longpole_server::Access;

use crate::args::{SourceArguments, ViewTraceArguments};
use crate::input::source_access::source_consent;
use crate::page::{Serving, serve_file};

/// Shows a trace file in the browser. Pulumi's users type its address, which they know before it starts: it needs no token, unless
/// longpole chose the port.
pub(crate) fn view_trace(arguments: &ViewTraceArguments) -> Result<()> {
    let consent = source_consent(&SourceArguments { allow_source: Vec::new() })?;
    let (port, browser) = (arguments.port, !arguments.no_browser);
    let access = if port == 0 { Access::Token } else { Access::OwnUser };
    serve_file(Path::new(&arguments.file), Serving { port: Some(port), access, browser, label: "Displaying trace at", consent })
}
