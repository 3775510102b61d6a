//! `show`: the answer of a recording.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, ShowArguments};
use crate::input::load;
use crate::invocation::Invocation;
use crate::render::{answer, quality};
use crate::terminal::screen::{print, print_json};

/// The answer of a recording.
pub(crate) fn show(invocation: &Invocation, arguments: &ShowArguments) -> Result<()> {
    let ShowArguments { recording, quality } = arguments;
    let view = load::view(invocation, &recording.recording, |name, report| view::SummaryView::new(name, report))?;
    match (recording.format, quality) {
        (Format::Json, _) => print_json(&view),
        (Format::Text, true) => print(&quality::all(&view, invocation.style())),
        (Format::Text, false) => print(&answer::answer(&view, invocation.style())),
    }
}
