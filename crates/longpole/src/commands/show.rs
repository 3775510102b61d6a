//! `show`: the answer of a recording.

use anyhow::Result;
use longpole_server::view;

use crate::args::{Format, RecordingArguments};
use crate::input::load::load;
use crate::render::answer;
use crate::setting::Setting;
use crate::terminal::screen::{print, print_json};

/// The answer of a recording.
pub(crate) fn show(setting: &Setting, arguments: &RecordingArguments) -> Result<()> {
    let (name, report) = load(setting, &arguments.recording)?;
    let view = view::SummaryView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&answer::answer(&view, setting.style())),
    }
}
