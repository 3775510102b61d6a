//! `processes`: each process of a recording with what it used and how it ended.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, RecordingArguments};
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints the processes.
pub(crate) fn processes(invocation: &Invocation, arguments: &RecordingArguments) -> Result<()> {
    let (name, report) = load(invocation, &arguments.recording)?;
    let view = view::ProcessesView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::processes::processes(&view, invocation.style())),
    }
}
