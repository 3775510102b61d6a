//! `poles`: the long poles of a recording, more than `show` does.

use anyhow::Result;
use longpole_recording::view;

use crate::args::{Format, PolesArguments};
use crate::failure::{Failure, Kind};
use crate::input::load;
use crate::invocation::Invocation;
use crate::next_command::{own_name, quoted};
use crate::render::{poles, what_if};
use crate::terminal::screen::{Screen, print, print_json};

/// All long poles.
pub(crate) fn poles(invocation: &Invocation, arguments: &PolesArguments) -> Result<()> {
    if !arguments.without.is_empty() {
        return without(invocation, arguments);
    }
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
        out.line(poles::none(view.of));
    } else {
        poles::pole_table(&mut out, &view.poles, view.poles.len(), invocation.style());
    }
    // A profile has no path.
    if view.of != view::SummarisedView::Profile {
        let times = (view.between_nanos, view.idle_nanos, view.wall_nanos);
        poles::path_rest(&mut out, view.truncated, "--limit 0", times, invocation.style());
    }
    poles::legend(&mut out, &view.poles, invocation.style());
    print(&out)
}

/// What the run would take without some poles.
fn without(invocation: &Invocation, arguments: &PolesArguments) -> Result<()> {
    let (name, report) = load::load(invocation, &arguments.recording)?;
    let handles: Vec<&str> = arguments.without.iter().map(String::as_str).collect();
    let view = view::WhatIfView::new(&name, &report, &handles).map_err(|handle| no_pole(&name, &handle))?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&what_if::what_if(&view, invocation.style())),
    }
}

fn no_pole(recording: &str, handle: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("{recording} has no long pole {handle}")).hint(format!(
        "{} poles {} lists p1, p2, …",
        own_name(),
        quoted(recording)
    ))
}
