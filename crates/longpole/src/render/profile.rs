//! Continuous profiles in the terminal.

use longpole_model::units::{bytes, count, counted, duration, percent};
use longpole_recording::view::{FunctionChangeView, ProfileDiffView, ProfileFunctionView, ProfileTypesView, ProfileView};

use super::folded_calls::{CallLine, FoldedCalls, folded_in_words};
use super::recordings::when;
use crate::next_command::quoted;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, column_widths, cut, fit, pad, right, width};

/// Columns of names that are always there.
const NAMES_WIDTH_MIN: usize = 20;

/// Calls of a tree that have less than this part of the whole, in thousandths, are left out.
const CALL_PER_MILLE_MIN: i64 = 5;

/// Deepest indentation that still leaves room for names.
const INDENT_MAX: usize = 40;

/// A value in its unit.
pub(super) fn value(value: i64, unit: &str) -> String {
    match unit {
        "nanoseconds" => duration(value),
        "bytes" => bytes(value.max(0).cast_unsigned()),
        _ => count(value.max(0).cast_unsigned()),
    }
}

/// `+3.20s`, `-1.2 MB`.
fn change(before: i64, after: i64, unit: &str) -> String {
    let sign = if after < before { "-" } else { "+" };
    format!("{sign}{}", value(after.saturating_sub(before).saturating_abs(), unit))
}

/// Why there is nothing to compare with.
pub(crate) fn nothing_before(view: &ProfileDiffView) -> String {
    let range = times(&view.before.from_unix_nano, &view.before.to_unix_nano);
    format!("No values of {} from {range}, so there is nothing to compare with.", view.query)
}

/// The types of profiles, each with its services, and the services by CPU time. `command` shows one of them.
pub(crate) fn types(view: &ProfileTypesView, by_cpu: &[(String, i64)], command: &str, style: Style) -> Screen {
    let type_width = view.types.iter().map(|it| width(&it.profile_type)).max().unwrap_or_default().max(width("type"));
    let names_width = style.width().saturating_sub(type_width + 2).max(NAMES_WIDTH_MIN);
    let mut out = Screen::of(style.strong(&format!("{}  services", pad("type", type_width))));
    for it in &view.types {
        out.line(format!("{}  {}", style.handle(&pad(&it.profile_type, type_width)), cut(&it.services.join(", "), names_width)));
    }
    if !by_cpu.is_empty() {
        out.line("");
        let times: Vec<[String; 1]> = by_cpu.iter().map(|(_, nanos)| [value(*nanos, "nanoseconds")]).collect();
        let time_width = column_widths(&["CPU time"], &times)[0];
        out.line(style.strong(&format!("{}  service", right("CPU time", time_width))));
        for ((service, _), [time]) in by_cpu.iter().zip(&times) {
            out.line(format!("{}  {}", right(time, time_width), fit(service, names_width)));
        }
    }
    let first = by_cpu.first().map(|(service, _)| service).or_else(|| view.types.iter().flat_map(|it| &it.services).next());
    if let Some(service) = first {
        out.line("");
        out.line(format!("next      {command} {}", quoted(service)));
    }
    out
}

/// What a sum is: `cpu 41.2s`, of states their average.
fn sum_in_words(sample_type: &str, total: i64, unit: &str, is_state: bool) -> String {
    let average = if is_state { " in all processes together, averaged over time" } else { "" };
    format!("{sample_type} {}{average}", value(total, unit))
}

/// Hot functions.
pub(crate) fn functions(view: &ProfileView, by_total: bool, style: Style) -> Screen {
    let mut out = Screen::of(head(view, style));
    out.line("");
    let rows = view.functions.iter().map(|it| (cells(it, view), with_file(it))).collect();
    function_table(["self", "", "total", ""], rows, view.truncated, style).into_iter().for_each(|line| out.line(line));
    if !by_total {
        out.line(style.faint("self: in the function itself; total: with what it called"));
    }
    out
}

/// `parse_rules (rules.py)`
fn with_file(function: &ProfileFunctionView) -> String {
    match function.file.rsplit('/').next() {
        Some(file) if !file.is_empty() => format!("{} ({file})", function.function),
        _ => function.function.clone(),
    }
}

/// Functions behind columns of numbers, and how many are left out.
fn function_table(heads: [&str; 4], rows: Vec<([String; 4], String)>, truncated: usize, style: Style) -> Vec<String> {
    let (cells, names): (Vec<[String; 4]>, Vec<String>) = rows.into_iter().unzip();
    let widths = column_widths(&heads, &cells);
    let names_width = style.width().saturating_sub(widths.iter().map(|width| width + 2).sum()).max(NAMES_WIDTH_MIN);
    let columns = |row: [&str; 4]| (0..4).map(|column| right(row[column], widths[column]) + "  ").collect::<String>();
    let mut lines = vec![style.strong(&format!("{}function", columns(heads)))];
    let line = |(row, name): (&[String; 4], &String)| format!("{}{}", columns(row.each_ref().map(String::as_str)), fit(name, names_width));
    lines.extend(cells.iter().zip(&names).map(line));
    if truncated > 0 {
        let more = counted(truncated as u64, "more function", "more functions");
        lines.push(style.faint(&format!("… {more} (--limit {})", names.len() + truncated)));
    }
    lines
}

fn cells(function: &ProfileFunctionView, view: &ProfileView) -> [String; 4] {
    let part = |nanos: i64| percent(nanos, view.total);
    [value(function.own, &view.unit), part(function.own), value(function.total, &view.unit), part(function.total)]
}

fn head(view: &ProfileView, style: Style) -> String {
    let sum = sum_in_words(&view.sample_type, view.total, &view.unit, view.is_state);
    format!("{}  {sum}  {}", style.strong(&view.query), style.faint(&times(&view.from_unix_nano, &view.to_unix_nano)))
}

fn times(from: &str, to: &str) -> String {
    format!("{} to {}", when(from), when(to))
}

/// Calls as a tree.
pub(crate) fn calls(view: &ProfileView, style: Style) -> Screen {
    let mut out = Screen::of(head(view, style));
    out.line("");
    let columns = &view.calls;
    let share = |value: i64| i128::from(value) * 1000 / i128::from(view.total.max(1));
    // The tree has no root of its own.
    let (parents, of) = (parents(&columns.depth), |row: usize| row - 1);
    let names = vec![1; parents.len()];
    let shown = FoldedCalls::new(
        parents,
        names,
        |row| share(columns.total[of(row)]) >= i128::from(CALL_PER_MILLE_MIN),
        |row| share(columns.own[of(row)]) < i128::from(CALL_PER_MILLE_MIN),
    );
    let total_width = columns.total.iter().map(|total| width(&value(*total, &view.unit))).max().unwrap_or_default();
    for line in shown.lines() {
        match line {
            CallLine::Row { row, depth } => {
                let total = columns.total[of(row)];
                let indent = " ".repeat((depth * 2).min(INDENT_MAX));
                let before =
                    format!("{}  {}  {indent}", right(&value(total, &view.unit), total_width), right(&percent(total, view.total), 4));
                let room = style.width().saturating_sub(width(&before)).max(NAMES_WIDTH_MIN);
                let function = columns.names.get(columns.name[of(row)] as usize).map_or("", String::as_str);
                out.line(format!("{before}{}", fit(function, room)));
            }
            CallLine::Folded { frames, depth } => {
                let indent = " ".repeat(total_width + 2 + 4 + 2 + (depth * 2).min(INDENT_MAX));
                out.line(style.faint(&format!("{indent}{}", folded_in_words(frames, depth))));
            }
        }
    }
    if shown.hidden > 0 {
        let calls = counted(shown.hidden as u64, "call", "calls");
        out.line(style.faint(&format!("… {calls} with less than 0.5% each (--format json)")));
    }
    out
}

/// The row above each row, from their depths; row 0 is above those that nothing called.
fn parents(depths: &[u32]) -> Vec<usize> {
    let mut open: Vec<usize> = Vec::new();
    let mut parents = vec![0];
    for (place, depth) in depths.iter().enumerate() {
        open.truncate(*depth as usize);
        parents.push(open.last().copied().unwrap_or(0));
        open.push(place + 1);
    }
    parents
}

/// What changed between two ranges of time.
pub(crate) fn diff(view: &ProfileDiffView, style: Style) -> Screen {
    let (before, after) = (view.before.total, view.after.total);
    let share = if before > 0 { format!(" ({:+.1}%)", (after as f64 / before as f64 - 1.0) * 100.0) } else { String::new() };
    let mut out = Screen::of(format!(
        "{}  {}  {} → {}  {}",
        style.strong(&view.query),
        view.sample_type,
        value(before, &view.unit),
        value(after, &view.unit),
        style.strong(&format!("{}{share}", change(before, after, &view.unit)))
    ));
    for (what, side) in [("before", &view.before), ("after", &view.after)] {
        out.line(style.faint(&format!("{}  {}", pad(what, 6), times(&side.from_unix_nano, &side.to_unix_nano))));
    }
    out.line("");
    changes(&view.functions, &view.unit, view.truncated, style).into_iter().for_each(|line| out.line(line));
    out.line(style.faint(SHARE_CHANGE_IN_WORDS));
    out
}

/// What a change of the share says.
pub(super) const SHARE_CHANGE_IN_WORDS: &str =
    "Δ share: change of the function's part of the total, in percentage points; more load alone does not change it";

/// What changed, function by function.
pub(super) fn changes(functions: &[FunctionChangeView], unit: &str, truncated: usize, style: Style) -> Vec<String> {
    let rows = functions.iter().map(|it| (changed_cells(it, unit), it.function.clone())).collect();
    function_table(["Δ share", "Δ self", "before", "after"], rows, truncated, style)
}

fn changed_cells(function: &FunctionChangeView, unit: &str) -> [String; 4] {
    let [before, after] = function.own;
    let points = (function.own_share[1] - function.own_share[0]) * 100.0;
    [format!("{points:+.1}"), change(before, after, unit), value(before, unit), value(after, unit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stand_below_their_callers() {
        assert_eq!(parents(&[0, 1, 2, 1, 0]), [0, 0, 1, 2, 1, 0]);
        assert_eq!(parents(&[]), [0]);
    }

    #[test]
    fn values_have_their_unit() {
        assert_eq!(
            [value(1_500_000_000, "nanoseconds"), value(2_500_000, "bytes"), value(12_345, "count")],
            ["1.50s", "2.5MB", "12,345"].map(str::to_owned)
        );
        assert_eq!([change(5, 2, "count"), change(0, 2_000_000, "nanoseconds")], ["-3", "+2.0ms"].map(str::to_owned));
    }
}
