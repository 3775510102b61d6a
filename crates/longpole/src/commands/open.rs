//! `open`: the page on loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use longpole_capture::socket_owner;
use longpole_server::receive::SocketOwner;
use longpole_server::source_file::SourceConsent;
use longpole_server::{Page, Visitors, seal};
use longpole_store::RecordingName;

use super::recording::{Setting, TemporaryStore, file_aloud, print, resolve, source_consent};
use super::run;
use crate::args::{OpenArguments, SourceArguments, ViewTraceArguments};
use crate::env_vars;
use crate::screen::{self, Screen};

/// Serves the page until Ctrl-C.
pub(crate) fn open(setting: &Setting, arguments: &OpenArguments) -> Result<()> {
    let browser = !arguments.no_browser;
    let consent = source_consent(&arguments.allow)?;
    if let Some(path) = file_aloud(setting, &arguments.recording) {
        return serve_file(path, arguments.port, browser, &arguments.recording, consent);
    }
    let store = setting.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    // Read it once before the browser asks: a recording that cannot be read is an error here, not on the page.
    seal::load(&store, name, &|| false).with_context(|| format!("failed to read {name}"))?;
    drop(store);
    serve(setting.store()?, name, arguments.port, browser, &name.to_string(), consent)
}

/// What a Pulumi user types: a trace file in the browser.
pub(crate) fn view_trace(arguments: &ViewTraceArguments) -> Result<()> {
    let consent = source_consent(&SourceArguments { allow_source: Vec::new() })?;
    serve_file(Path::new(&arguments.file), arguments.port, !arguments.no_browser, "Displaying trace at", consent)
}

/// Serves the page on a file, which is kept no longer than that takes.
fn serve_file(path: &Path, port: u16, browser: bool, label: &str, consent: SourceConsent) -> Result<()> {
    let (store, name) = TemporaryStore::of_file(path)?;
    serve(store.root(), name, port, browser, label, consent)
}

/// How the page is reached from a machine with a display.
fn from_elsewhere(port: u16) -> String {
    let host = run::host();
    let host = if host.is_empty() { "HOST" } else { &host };
    format!("There is no display here. Elsewhere: ssh -L {port}:127.0.0.1:{port} {host}, and open that address there.")
}

/// Said where nobody can tell other users' connections from our own.
const NOT_TOLD: &str =
    "warning: the kernel does not say whose connections are: every user of this machine who has the key can read the page";

/// Asks the kernel whose a connection to the page is.
fn owner_of_client(client: SocketAddr, server: SocketAddr) -> std::io::Result<Option<SocketOwner>> {
    let owner = socket_owner::owner_of_client(client, server)?;
    Ok(owner.map(|(uid, inode)| SocketOwner { uid, inode }))
}

/// Serves the page on this recording until the process is asked to end.
pub(crate) fn serve(store: &Path, name: RecordingName, port: u16, browser: bool, label: &str, consent: SourceConsent) -> Result<()> {
    let visitors = Visitors { ask_owner: Some(owner_of_client), also: env_vars::sudo_uid() };
    let page = Page::start(store, name, port, consent, visitors).with_context(|| format!("failed to listen on 127.0.0.1:{port}"))?;
    let url = page.url_of(name);
    // The address is this command's output: it is what a script or a person needs, and it stands before anyone waits for it.
    let no_display = browser && !env_vars::has_display();
    // In one piece: who reads the first line may be gone before there is another.
    let mut said = Screen::of(format!("{label}  {url}"));
    said.extend(no_display.then(|| from_elsewhere(page.address().port())));
    said.line("Ctrl-C ends it.");
    print(&said).context("failed to print the address")?;
    if !page.tells_users_apart() {
        screen::say(NOT_TOLD);
    }
    // Every user can read the arguments of a process, so a browser gets a key that nobody else can use. Without one it is not started:
    // the address is printed.
    if browser
        && !no_display
        && let Ok(url) = page.url_once_of(name)
    {
        Command::new("xdg-open").arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
    }
    page.wait().context("failed to wait for the end")
}
