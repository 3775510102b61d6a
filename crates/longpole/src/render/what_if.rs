//! A run without some of its poles.

use longpole_analysis::words;
use longpole_model::units::{TimeUnit, range};
use longpole_recording::view::WhatIfView;

use super::line;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fold};

/// What the run would take, and what to fix next.
pub(crate) fn what_if(view: &WhatIfView, style: Style) -> Screen {
    let unit = TimeUnit::of(view.wall_nanos);
    let mut out = Screen::default();
    let answer = words::fixing(&view.without, view.saves_nanos, view.wall_nanos, view.wall_after_nanos);
    for text in fold(&answer, style.width()) {
        line(&mut out, &style.strong(&text));
    }
    let next = match &view.next {
        Some(next) => format!(
            "next {}  {}: saves {} more",
            next.handle,
            words::name_of_pole(next.context.as_deref(), &next.name, next.count, next.part.as_deref()),
            range(unit, next.saves_more_nanos)
        ),
        None => words::NOTHING_MORE.to_owned(),
    };
    for text in fold(&next, style.width()) {
        line(&mut out, &text);
    }
    out
}
