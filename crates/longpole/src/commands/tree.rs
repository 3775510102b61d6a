//! `tree`: the spans of a recording, indented.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, TreeArguments};
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints the tree.
pub(crate) fn tree(invocation: &Invocation, arguments: &TreeArguments) -> Result<()> {
    let (name, report) = load(invocation, &arguments.recording)?;
    let view = view::TreeView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::tree::tree(&view, arguments.depth, arguments.limit, invocation.style())),
    }
}
