//! `agent`: profiles the processes of this machine, and sends the profiles to a server.
//!
//! ```text
//! supervisor ── starts, watches, starts again ──► worker
//!                                                  recorder ─ observations ─► HostProfiles ─ each window ─► pushes ─► server
//!                                                                                └─ while it is away ─► spool (files) ─► server, in order
//! ```
//!
//! Any process can hold up whoever reads its memory, for ever ([`left_out`](longpole_capture::procfs::left_out)). So the worker is a process of its own,
//! which the supervisor replaces when it stands still; the new one leaves out what held up the old one.

mod heart;
mod outbox;
mod spool;
mod supervisor;
mod worker;

use anyhow::Result;

use crate::args::AgentArguments;
use crate::invocation::Invocation;

/// Profiles until Ctrl-C or SIGTERM.
pub(crate) fn agent(invocation: &Invocation, arguments: &AgentArguments) -> Result<()> {
    match &arguments.left_out {
        Some(left_out) => worker::work(invocation, arguments, left_out),
        None => supervisor::supervise(),
    }
}
