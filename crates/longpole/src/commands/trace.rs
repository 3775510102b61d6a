//! `trace`: the answer of a trace on a server.

use anyhow::Result;

use crate::args::{RecordingArguments, ShowArguments, TraceArguments};
use crate::commands::show;
use crate::input::server::Server;
use crate::invocation::Invocation;

/// Prints the answer. Every command that takes a recording takes the address of the trace as well.
pub(crate) fn trace(invocation: &Invocation, arguments: &TraceArguments) -> Result<()> {
    let recording = Server::new(&arguments.at.at).page_of(&arguments.trace_id);
    let recording = RecordingArguments { recording, format: arguments.at.format };
    show::show(invocation, &ShowArguments { recording, quality: arguments.quality })
}
