//! `threads`: how each thread spent its time.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, ThreadsArguments};
use crate::input::excerpt::excerpt;
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints how each thread spent its time.
pub(crate) fn threads(invocation: &Invocation, arguments: &ThreadsArguments) -> Result<()> {
    let (name, report) = load(invocation, &arguments.recording)?;
    let excerpt = excerpt(&arguments.excerpt, &name, &report)?;
    let mut view = view::ThreadsView::new(&name, &report, excerpt.range);
    if let Some(tid) = excerpt.tid {
        view.threads.retain(|thread| thread.tid == tid);
    }
    // The one that the user chose is shown wherever it ranks.
    let limit = if excerpt.tid.is_some() { 0 } else { arguments.limit };
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text if view.threads.is_empty() => print(&render::threads::none(&name, !report.recording().samples.is_empty())),
        Format::Text => print(&render::threads::threads(&view, limit, invocation.style())),
    }
}
