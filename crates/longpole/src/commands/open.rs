//! `open`: serves the page on loopback.

use anyhow::Result;
use longpole_recording::view::SummaryView;
use longpole_server::Access;

use crate::args::OpenArguments;
use crate::input::load::{self, file_aloud, resolve};
use crate::input::server::{recording_at, trace_at};
use crate::input::source_access::source_consent;
use crate::invocation::Invocation;
use crate::page::{Serving, open_address, serve, serve_file};

/// Serves the page until Ctrl-C.
pub(crate) fn open(invocation: &Invocation, arguments: &OpenArguments) -> Result<()> {
    let browser = !arguments.no_browser;
    if let Some((server, id)) = trace_at(&arguments.recording) {
        return open_address(&server.page_of(id), browser);
    }
    if recording_at(&arguments.recording).is_some() {
        return open_address(&arguments.recording, browser);
    }
    let consent = source_consent(&arguments.allow)?;
    if let Some(path) = file_aloud(invocation, &arguments.recording) {
        return serve_file(path, Serving { port: arguments.port, access: Access::Token, browser, label: &arguments.recording, consent });
    }
    let store = invocation.open_store()?;
    if arguments.recording == "last" && store.list()?.recordings.is_empty() {
        // The list says how to make one, and shows it as soon as it is there.
        drop(store);
        let label = "no recording yet";
        return serve(invocation.store()?, None, Serving { port: arguments.port, access: Access::Token, browser, label, consent });
    }
    let name = resolve(&store, &arguments.recording)?;
    // Load it once before the browser does: if it cannot be read, the error belongs here, not on the page.
    load::view(invocation, &name.to_string(), |name, report| SummaryView::new(name, report))?;
    drop(store);
    let label = name.to_string();
    serve(invocation.store()?, name, Serving { port: arguments.port, access: Access::Token, browser, label: &label, consent })
}
