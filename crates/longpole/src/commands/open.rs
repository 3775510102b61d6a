//! `open`: the page on loopback.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use longpole_server::Page;
use longpole_server::seal;
use longpole_store::RecordingName;

use super::recording::{Setting, resolve};
use crate::args::OpenArguments;
use crate::env_vars;

/// Serves the page until Ctrl-C.
pub(crate) fn open(setting: &Setting, arguments: &OpenArguments) -> Result<()> {
    let store = setting.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    // Read it once before the browser asks: a recording that cannot be read is an error here, not on the page.
    seal::load(&store, name, &|| false).with_context(|| format!("failed to read {name}"))?;
    drop(store);
    serve(setting, name, arguments.port, !arguments.no_browser)
}

/// Serves the page on this recording until the process is asked to end.
pub(crate) fn serve(setting: &Setting, name: RecordingName, port: u16, browser: bool) -> Result<()> {
    let page = Page::start(&setting.store, name, port).with_context(|| format!("failed to listen on 127.0.0.1:{port}"))?;
    let url = page.url_of(name);
    // The address is this command's output: it is what a script or a person needs, and it stands before anyone waits for it.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{name}  {url}\nCtrl-C ends it.").and_then(|()| out.flush()).context("failed to print the address")?;
    drop(out);
    if browser && env_vars::has_display() {
        Command::new("xdg-open").arg(&url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
    }
    page.wait().context("failed to wait for the end")
}
