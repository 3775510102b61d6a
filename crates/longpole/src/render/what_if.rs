//! A run without some of its poles.

use longpole_model::units::{TimeUnit, range};
use longpole_recording::view::WhatIfView;

use super::line;
use super::poles::named;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fold};

/// `p1`, `p1 and p3`, `p1, p2 and p3`.
fn listed(handles: &[String]) -> String {
    match handles {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What the run would take, and what to fix next.
pub(crate) fn what_if(view: &WhatIfView, style: Style) -> Screen {
    let unit = TimeUnit::of(view.wall_nanos);
    let mut out = Screen::default();
    let answer = format!(
        "without {} the run would take {} instead of {}: it saves {}",
        listed(&view.without),
        range(unit, view.wall_after_nanos),
        unit.show(view.wall_nanos),
        range(unit, view.saves_nanos)
    );
    for text in fold(&answer, style.width()) {
        line(&mut out, &style.strong(&text));
    }
    let next = match &view.next {
        Some(next) => format!(
            "next {}  {}: saves {} more",
            next.handle,
            named(next.context.as_deref(), &next.name, next.count, next.part.as_deref()),
            range(unit, next.saves_more_nanos)
        ),
        None => "no other of the long poles would save more".to_owned(),
    };
    for text in fold(&next, style.width()) {
        line(&mut out, &text);
    }
    out
}
