//! Serving the page on loopback.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use longpole_recording::source_file::SourceConsent;
use longpole_server::{Access, Page, PageClients};
use longpole_store::RecordingName;

use crate::env_vars;
use crate::input::temporary_store::TemporaryStore;
use crate::session::{host, owner_of_client};
use crate::terminal::screen::{self, Screen, print, print_line};

/// Always the same, so that links stay.
const USUAL_PORT: u16 = 4747;

/// How a page is served.
pub(crate) struct Serving<'a> {
    /// On 127.0.0.1; 0 for any free one, `None` for the usual one, or a free one if that is taken.
    pub(crate) port: Option<u16>,
    pub(crate) access: Access,
    /// Whether to start a browser.
    pub(crate) browser: bool,
    /// What stands before the address.
    pub(crate) label: &'a str,
    pub(crate) consent: SourceConsent,
}

/// Serves the page for a file, from a temporary store.
pub(crate) fn serve_file(path: &Path, serving: Serving<'_>) -> Result<()> {
    let (store, name) = TemporaryStore::of_file(path)?;
    serve(store.root(), name, serving)
}

/// Prints the address of a page that another server has, and opens it.
pub(crate) fn open_address(url: &str, browser: bool) -> Result<()> {
    print_line(url).context("failed to print the address")?;
    if browser && env_vars::has_display() {
        start_browser(url);
    }
    Ok(())
}

fn start_browser(url: &str) {
    Command::new("xdg-open").arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
}

/// How to reach the page from a machine with a display.
fn from_elsewhere(port: u16) -> String {
    let host = host();
    let host = if host.is_empty() { "HOST" } else { &host };
    format!("No display here. On a machine with one, run ssh -L {port}:127.0.0.1:{port} {host} and open the address there.")
}

/// Printed where the kernel does not tell connections of other users from our own.
const NOT_TOLD: &str =
    "warning: the kernel does not report who owns a connection, so every user of this machine who has the token can read the page";

/// Serves the page of this recording, or the list of all, until Ctrl-C or SIGTERM.
pub(crate) fn serve(
    store: &Path,
    name: impl Into<Option<RecordingName>>,
    Serving { port, access, browser, label, consent }: Serving<'_>,
) -> Result<()> {
    let name = name.into();
    let clients = PageClients { ask_owner: Some(owner_of_client), also: env_vars::sudo_uid() };
    let start = |port| Page::start(store, name, port, access, consent.clone(), clients);
    let page = match start(port.unwrap_or(USUAL_PORT)) {
        Err(error) if port.is_none() && error.kind() == io::ErrorKind::AddrInUse => start(0),
        started => started,
    };
    let page = page.with_context(|| format!("failed to listen on 127.0.0.1:{}", port.unwrap_or(USUAL_PORT)))?;
    let needs_token = access == Access::Token || !page.tells_users_apart();
    let url = if needs_token { page.url_of(name) } else { page.plain_url() };
    // The address is the output of this command, for people and scripts. It is printed before the page waits for requests.
    let no_display = browser && !env_vars::has_display();
    // In one write: a script may close the pipe after the first line.
    let mut said = Screen::of(format!("{label}  {url}"));
    said.extend(no_display.then(|| from_elsewhere(page.address().port())));
    said.line("Ctrl-C ends it.");
    print(&said).context("failed to print the address")?;
    if !page.tells_users_apart() {
        screen::say(NOT_TOLD);
    }
    // Every user can read the arguments of a process, so the browser gets a key that works once. Without such a key no browser starts;
    // the address is printed anyway.
    if browser
        && !no_display
        && let Some(url) = if needs_token { page.url_once_of(name).ok() } else { Some(url) }
    {
        start_browser(&url);
    }
    page.wait().context("failed to wait for the end")
}
