//! `diff`: why one run took longer than another.

use anyhow::Result;
use longpole_recording::view::diff::DiffView;

use crate::args::{DiffArguments, Format};
use crate::input::load::load;
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints the difference, explained along the critical paths.
pub(crate) fn diff(invocation: &Invocation, arguments: &DiffArguments) -> Result<()> {
    let (a_name, a) = load(invocation, &arguments.before)?;
    let (b_name, b) = load(invocation, &arguments.after)?;
    let view = DiffView::new((&a_name, &a), (&b_name, &b), arguments.limit);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::diff::diff(&view, invocation.style())),
    }
}
