//! `threads`: how each thread spent its time.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, ThreadsArguments};
use crate::input::excerpt::range;
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints how each thread spent its time.
pub(crate) fn threads(invocation: &Invocation, arguments: &ThreadsArguments) -> Result<()> {
    let (name, report) = load(invocation, &arguments.recording)?;
    let view = view::ThreadsView::new(&name, &report, range(&arguments.range, &report)?);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::threads::threads(&view, arguments.limit, invocation.style())),
    }
}
