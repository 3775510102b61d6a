//! `poles`: the long poles of a recording, more than `show` does.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, PolesArguments};
use crate::input::load;
use crate::invocation::Invocation;
use crate::render::poles;
use crate::terminal::screen::{Screen, print, print_json};

/// All long poles.
pub(crate) fn poles(invocation: &Invocation, arguments: &PolesArguments) -> Result<()> {
    let mut view = load::view(invocation, &arguments.recording, |name, report| view::PolesView::new(name, report))?;
    if arguments.limit > 0 && view.poles.len() > arguments.limit {
        view.truncated.poles += view.poles.len() - arguments.limit;
        view.truncated.on_path_nanos += view.poles[arguments.limit..].iter().map(|pole| pole.on_path_nanos).sum::<i64>();
        view.poles.truncate(arguments.limit);
    }
    if arguments.format == Format::Json {
        return print_json(&view);
    }
    let mut out = Screen::default();
    if view.poles.is_empty() {
        let of = if view.attached { view::SummarisedView::Attached } else { view::SummarisedView::Command };
        out.line(poles::none(of));
    } else {
        poles::pole_table(&mut out, &view.poles, view.poles.len(), invocation.style());
    }
    poles::path_rest(&mut out, view.truncated, "--limit 0", (view.between_nanos, view.idle_nanos, view.wall_nanos), invocation.style());
    poles::legend(&mut out, &view.poles, invocation.style());
    print(&out)
}
