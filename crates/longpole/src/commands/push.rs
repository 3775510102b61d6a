//! `push`: sends a recording to a server.

use std::fmt;

use anyhow::{Context, Result};
use longpole_store::{RecordingName, Store};

use crate::args::PushArguments;
use crate::input::load::{load_stored, resolve};
use crate::input::server::Server;
use crate::invocation::Invocation;
use crate::terminal::screen::{self, print_line};

/// Sends a recording and prints the address of its page.
pub(crate) fn push(invocation: &Invocation, arguments: &PushArguments) -> Result<()> {
    let store = invocation.open_store()?;
    // Loading seals a recording whose recorder was killed.
    load_stored(&store, &arguments.recording)?;
    let name = resolve(&store, &arguments.recording)?;
    print_line(&to_server(&store, name, &arguments.to)?)
}

/// Sends it. Returns the address of its page.
pub(crate) fn to_server(store: &Store, name: RecordingName, server: &str) -> Result<String> {
    let mut archive = Vec::new();
    store.recording(name)?.write_archive(&mut archive).with_context(|| format!("failed to pack {name}"))?;
    Server::new(server).push(archive)
}

/// Sends a recording that has just ended, and says where its page is.
///
/// # Errors
///
/// [`NotSent`], and why.
pub(crate) fn send_after(store: &Store, name: RecordingName, server: &str) -> Result<()> {
    let page = to_server(store, name, server).with_context(|| NotSent { name: name.to_string(), server: server.to_owned() })?;
    screen::say(format!("sent to {page}"));
    Ok(())
}

/// The recording is whole, and the server does not have it.
#[derive(Debug)]
pub(crate) struct NotSent {
    name: String,
    server: String,
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotSent { name, server } = self;
        write!(f, "the server does not have {name} (longpole push {name} --to {server} sends it again)")
    }
}
