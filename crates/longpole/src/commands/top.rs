//! `top`: the functions of a recording with the most self time.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, TopArguments};
use crate::input::excerpt::excerpt;
use crate::input::load::load;
use crate::input::select::{chosen, none_chosen};
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints the functions with the most self time.
pub(crate) fn top(invocation: &Invocation, arguments: &TopArguments) -> Result<()> {
    let (chosen, recording) = chosen(&arguments.spans, &arguments.recording);
    let (name, report) = load(invocation, recording)?;
    let options = view::TopOptions {
        by_total: arguments.total,
        limit: arguments.limit,
        time: arguments.time.time(),
        all_threads: arguments.time.all_threads,
        excerpt: excerpt(&arguments.excerpt, &name, &report)?,
        all_functions: arguments.all_functions,
    };
    let none = || none_chosen(&name, &report, chosen.unwrap_or(view::Chosen::Handle("")));
    let view = view::TopView::new(&name, &report, chosen, options).ok_or_else(none)?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::top::top(&view, invocation.style())),
    }
}
