//! What grows in the services of a server.

use longpole_model::units::{counted, percent};
use longpole_recording::view::{GrowingStateView, ServiceGrowthView};

use super::profile::value;
use super::recordings::when;
use crate::next_command::quoted;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, width};

/// What a state does.
fn grows(sample_type: &str) -> &'static str {
    match sample_type {
        "inuse_space" | "space" => "memory in use grows",
        "goroutine" | "goroutines" => "goroutines grow",
        "threads" => "threads grow",
        _ => "objects in use grow",
    }
}

/// All that grow. `command` shows profiles of the last `since`.
pub(crate) fn growth(view: &ServiceGrowthView, command: &str, since: &str, style: Style) -> Screen {
    let mut out = Screen::default();
    for state in &view.growing {
        one(state, style).into_iter().for_each(|line| out.line(line));
        out.line("");
    }
    if view.truncated > 0 {
        out.line(style.faint(&format!("… {} less", counted(view.truncated as u64, "other state grows", "other states grow"))));
    }
    out.line(style.faint(&others(view)));
    if let Some(first) = view.growing.first() {
        out.line("");
        out.line(format!("next      {command} {} --since {since} --flame", quoted(&first.query)));
    }
    out
}

/// How many do not grow.
pub(crate) fn others(view: &ServiceGrowthView) -> String {
    let steady = counted(view.steady as u64, "state is", "states are");
    let range = format!("{} to {}", when(&view.from_unix_nano), when(&view.to_unix_nano));
    let too_short = match view.too_short {
        0 => String::new(),
        count => format!("; {} too few profiles to tell", counted(count as u64, "has", "have")),
    };
    format!("{steady} steady from {range}{too_short}.")
}

fn one(state: &GrowingStateView, style: Style) -> Vec<String> {
    let grows = grows(&state.sample_type);
    let amount = |amount: f64| amount_in_words(amount, &state.unit);
    let [before, after] = state.values;
    let part = if before > 0.0 { format!(" ({})", a_day(state.per_day / before)) } else { String::new() };
    let function = state.functions.first();
    let holds = function.map_or_else(String::new, |it| format!(": {} holds {} of the growth", style.strong(&it.function), share(it.share)));
    let each = if state.processes > 1 { format!(" in each of {} processes", state.processes) } else { String::new() };
    let mut lines = vec![format!("{}  {grows} by {} a day{part}{each}{holds}", style.handle(&state.service), amount(state.per_day))];
    let indent = " ".repeat(width(&state.service) + 2);
    let begin = match (&state.since_unix_nano, &state.version) {
        (Some(since), Some(version)) => format!(" since {}, when the first profiles of {version} came", when(since)),
        (Some(since), None) => format!(" since {}", when(since)),
        (None, _) => " since the first profile".to_owned(),
    };
    let [low, high] = state.per_day_range.map(amount);
    let range = if low == high { String::new() } else { format!("; by {low} to {high} a day (95%)") };
    lines.push(format!("{indent}{} → {}{begin}{range}", amount(before), amount(after)));
    if let Some(function) = function.filter(|it| !it.callers.is_empty()) {
        let path = format!("{} › {}", function.callers.join(" › "), function.function);
        lines.push(format!("{indent}{}", style.faint(&fit(&path, style.width().saturating_sub(width(&indent)).max(PATH_WIDTH_MIN)))));
    }
    for other in state.functions.iter().skip(1).take_while(|it| it.share >= OTHER_SHARE_MIN) {
        lines.push(format!("{indent}{} holds {}", other.function, share(other.share)));
    }
    lines
}

/// Columns of a call path that are always there.
const PATH_WIDTH_MIN: usize = 20;

/// Functions that hold less of the growth are left out.
const OTHER_SHARE_MIN: f64 = 0.1;

/// `1.0% a day`.
fn a_day(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// A part from 0 to 1.
fn share(part: f64) -> String {
    percent((part * SHARE_STEPS as f64) as i64, SHARE_STEPS)
}

const SHARE_STEPS: i64 = 1_000_000;

/// Counts below this have a decimal.
const WHOLE_MIN: f64 = 100.0;

fn amount_in_words(amount: f64, unit: &str) -> String {
    if unit == "count" && amount.abs() < WHOLE_MIN { format!("{amount:.1}") } else { value(amount.round() as i64, unit) }
}
