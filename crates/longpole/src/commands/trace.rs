//! `trace`: the answer of a trace on a server.

use anyhow::Result;
use longpole_wire::jaeger;

use crate::args::{RecordingArguments, ShowArguments, TraceArguments};
use crate::commands::show;
use crate::failure::{Failure, Kind};
use crate::input::server::Server;
use crate::invocation::Invocation;
use crate::next_command::own_name;

/// Prints the answer. Every command that takes a recording takes the address of the trace as well.
pub(crate) fn trace(invocation: &Invocation, arguments: &TraceArguments) -> Result<()> {
    if jaeger::trace_id(&arguments.trace_id).is_none() {
        let failure = Failure::new(Kind::Usage, format!("{} is not a trace id (32 hex digits)", arguments.trace_id));
        return Err(failure.hint(format!("{} search lists traces", own_name())).into());
    }
    let recording = Server::new(&arguments.at.at).page_of(&arguments.trace_id);
    let recording = RecordingArguments { recording, format: arguments.at.format };
    show::show(invocation, &ShowArguments { recording, quality: arguments.quality })
}
