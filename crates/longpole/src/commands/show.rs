//! `show`: the answer of a recording.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, RecordingArguments};
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render::answer;
use crate::terminal::screen::{print, print_json};

/// The answer of a recording.
pub(crate) fn show(invocation: &Invocation, arguments: &RecordingArguments) -> Result<()> {
    let (name, report) = load(invocation, &arguments.recording)?;
    let view = view::SummaryView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&answer::answer(&view, invocation.style())),
    }
}
