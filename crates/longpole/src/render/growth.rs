//! What grows in the services of a server.

use longpole_model::units::{counted, duration, percent};
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
        "resident" => "resident memory grows",
        "goroutine" | "goroutines" => "goroutines grow",
        "threads" => "threads grow",
        _ => "objects in use grow",
    }
}

/// All that grow. `command` shows profiles of the last `since`; `is_cut` says that there may be earlier ones.
pub(crate) fn growth(view: &ServiceGrowthView, command: &str, since: &str, is_cut: bool, style: Style) -> Screen {
    let mut out = Screen::default();
    let begins = is_cut.then_some(view.from_unix_nano.as_str());
    for (place, state) in view.growing.iter().enumerate() {
        if place > 0 {
            out.line("");
        }
        one(state, begins, style).into_iter().for_each(|line| out.line(line));
    }
    out.line("");
    if view.truncated > 0 {
        out.line(style.faint(&format!("… {} less", counted(view.truncated as u64, "other gauge grows", "other gauges grow"))));
    }
    if view.steady + view.too_short > 0 {
        out.line(style.faint(&others(view)));
    }
    if let Some(first) = view.growing.first() {
        out.line(format!("next      {command} {} --since {since} --flame", quoted(&first.query)));
    }
    out
}

/// How many do not grow.
pub(crate) fn others(view: &ServiceGrowthView) -> String {
    let other = if view.growing.is_empty() { "" } else { "other " };
    let steady = counted(view.steady as u64, &format!("{other}gauge does"), &format!("{other}gauges do"));
    let range = format!("{} to {}", when(&view.from_unix_nano), when(&view.to_unix_nano));
    let too_short = match view.too_short {
        0 => String::new(),
        count => format!("; {} too few profiles to tell", counted(count as u64, "has", "have")),
    };
    format!("{steady} not grow from {range}{too_short}.")
}

/// Units of a rate, the longest first: none is longer than the time that it is of.
const RATES: [(i64, &str); 3] = [(86_400_000_000_000, "a day"), (3_600_000_000_000, "an hour"), (60_000_000_000, "a minute")];

fn one(state: &GrowingStateView, begins: Option<&str>, style: Style) -> Vec<String> {
    let grows = grows(&state.sample_type);
    let amount = |amount: f64| amount_in_words(amount, &state.unit);
    let (nanos, rate) = RATES.into_iter().find(|(nanos, _)| state.over_nanos >= *nanos).unwrap_or(RATES[RATES.len() - 1]);
    let of_rate = |per_day: f64| per_day * nanos as f64 / RATES[0].0 as f64;
    let [before, after] = state.values;
    let part = if before > 0.0 { format!(" ({:.1}%)", of_rate(state.per_day) / before * 100.0) } else { String::new() };
    let each = if state.processes > 1 { format!(" in each of {} processes", state.processes) } else { String::new() };
    let until = if state.is_taken_back { " until a restart takes it back" } else { "" };
    let function = state.functions.first();
    let holds = function.map_or_else(String::new, |it| format!(": {} holds {} of the growth", style.strong(&it.function), share(it.share)));
    let mut lines =
        vec![format!("{}  {grows} by {} {rate}{part}{each}{until}{holds}", style.handle(&state.service), amount(of_rate(state.per_day)))];
    let indent = " ".repeat(width(&state.service) + 2);
    let begin = match (&state.since_unix_nano, &state.version, begins) {
        (Some(since), Some(version), _) => format!(" since {}, when the first profiles of {version} came", when(since)),
        (Some(since), None, _) => format!(" since about {} (within {})", when(since), duration(state.since_within_nanos)),
        (None, _, Some(from)) => format!(" since before {}, where this range begins; a longer --since shows more", when(from)),
        (None, _, None) => format!(" since the first profile, {}", when(&state.first_unix_nano)),
    };
    let [low, high] = state.per_day_range.map(|per_day| amount(of_rate(per_day)));
    let range = if low == high { String::new() } else { format!("; by {low} to {high} {rate} (95%)") };
    let now = if state.is_taken_back { format!("; now {}", amount(state.now)) } else { String::new() };
    lines.push(format!("{indent}{} → {}{begin}{range}{now}", amount(before), amount(after)));
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
