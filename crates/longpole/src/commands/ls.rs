//! `ls`: the recordings of the store.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, ListArguments};
use crate::input::load::list;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};

/// Lists recordings, newest first, each with its answer.
pub(crate) fn ls(invocation: &Invocation, arguments: &ListArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let view = view::RecordingsView::new(&list(&store)?);
    if arguments.format == Format::Json {
        return print_json(&view);
    }
    if view.recordings.is_empty() {
        return print_line("No recordings yet. Make one: longpole run -- CMD");
    }
    print(&render::recordings::recordings(&view, invocation.style()))
}
