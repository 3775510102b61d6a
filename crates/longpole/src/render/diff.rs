//! Why one run took longer than another.

use longpole_model::units::TimeUnit;
use longpole_recording::view::diff::{CodeDiffView, DiffView, FateView, OperationDiffView, StateDiffView};

use super::profile;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, column_widths, fit, fold, pad, right};

/// States of an operation that stand in one line.
const STATES_IN_A_LINE: usize = 2;

/// Columns of a function in them: two fit into a line.
const FUNCTION_WIDTH: usize = 24;

/// Width of the longest bar on either side of its axis.
const BAR_WIDTH: usize = 8;

pub(crate) fn diff(view: &DiffView, style: Style) -> Screen {
    if let Some(code) = &view.code {
        return code_diff(view, code, style);
    }
    let mut out = head(view, [view.a.wall_nanos, view.b.wall_nanos], "", style);
    out.push(String::new());
    if view.operations.is_empty() {
        let much = if view.truncated.operations > 0 {
            "No operation on the critical paths differs by a thousandth of the run or more."
        } else {
            "No operation on the critical paths differs."
        };
        out.push(much.to_owned());
    } else {
        rows(&mut out, view, style);
    }
    out.push(String::new());
    let rest = view.truncated;
    if rest.operations > 0 {
        let all = TimeUnit::of(rest.delta_nanos);
        out.push(style.faint(&format!("… {} more, together {} (--limit 0)", rest.operations, signed(all, rest.delta_nanos))));
    }
    out.push(style.faint("Δ is the change in time on the critical path; all Δ add up to the difference between the runs"));
    if view.operations.iter().any(|operation| operation.a.count.max(operation.b.count) > 1) {
        out.push(
            style.faint("× is the number of operations of a name; diff adds them up, even if the answer splits them into several poles"),
        );
    }
    if view.a.recording != view.b.recording {
        out.push(style.faint("even two runs of the same command differ: record it twice to see by how much"));
    }
    out.into_iter().collect()
}

/// Both recordings with their times, and what they differ in beside those.
fn head(view: &DiffView, [before, after]: [i64; 2], of: &str, style: Style) -> Vec<String> {
    let unit = TimeUnit::of(before.max(after));
    let delta = after.saturating_sub(before);
    let mut out = vec![format!(
        "{}  {} {} → {} {}{of}  {}",
        style.strong("longpole diff"),
        style.handle(&fit(&view.a.recording, 24)),
        unit.show(before),
        style.handle(&fit(&view.b.recording, 24)),
        unit.show(after),
        style.strong(&format!("{}{}", signed(unit, delta), share(delta, before))),
    )];
    out.extend(view.verdict.iter().flat_map(|verdict| fold(verdict, style.width())));
    out.extend(view.notes.iter().map(|note| style.warning(&format!("note: {note}"))));
    out
}

/// What changed in the samples of two recordings, if one of them has no critical path.
fn code_diff(view: &DiffView, code: &CodeDiffView, style: Style) -> Screen {
    let mut out = head(view, code.sampled_nanos, " in samples", style);
    out.push(String::new());
    if code.functions.is_empty() {
        out.push("No function differs.".to_owned());
    } else {
        out.extend(profile::changes(&code.functions, "nanoseconds", code.truncated, style));
        out.push(style.faint(profile::SHARE_CHANGE_IN_WORDS));
    }
    out.into_iter().collect()
}

fn rows(out: &mut Vec<String>, view: &DiffView, style: Style) {
    let largest = view.operations.iter().map(|o| o.delta_nanos.unsigned_abs()).max().unwrap_or(1).max(1);
    let unit = TimeUnit::of(largest.cast_signed());
    let path_unit = TimeUnit::of(view.operations.iter().map(|o| o.a.on_path_nanos.max(o.b.on_path_nanos)).max().unwrap_or_default());
    let cells: Vec<[String; 3]> = view
        .operations
        .iter()
        .map(|o| [signed(unit, o.delta_nanos), path_unit.show(o.a.on_path_nanos), path_unit.show(o.b.on_path_nanos)])
        .collect();
    let heads = ["Δ on path", "before", "after"];
    let widths = column_widths(&heads, &cells);
    let fixed = widths.iter().map(|width| width + 2).sum::<usize>() + 2 * BAR_WIDTH + 1 + 2;
    let name_width = style.width().saturating_sub(fixed).max(NAME_WIDTH_MIN);
    out.push(style.strong(&format!(
        "{}  {}  {}  {}",
        pad("OPERATION", name_width),
        right(heads[0], widths[0]),
        right(heads[1], widths[1]),
        right(heads[2], widths[2])
    )));
    // One name in two services would be gone and new.
    let is_ambiguous = |operation: &OperationDiffView| {
        let is_same = |other: &OperationDiffView| other.name == operation.name && other.resource == operation.resource;
        view.operations.iter().filter(|other| is_same(other)).count() > 1
    };
    for (operation, row) in view.operations.iter().zip(&cells) {
        out.push(format!(
            "{}  {}  {}  {}  {}",
            pad(&name(operation, is_ambiguous(operation)), name_width),
            style.strong(&right(&row[0], widths[0])),
            right(&row[1], widths[1]),
            right(&row[2], widths[2]),
            style.faint(bar(operation.delta_nanos, largest).trim_end())
        ));
        for why in why(&operation.states) {
            out.push(style.faint(&format!("  {}", fit(&why, style.width() - 2))));
        }
    }
}

/// `on-CPU +1.20s in compress_bundle, blocked on the network -0.30s in read`.
///
/// What opposite changes leave unsaid would pass for nothing, so all are printed, two in a line.
fn why(states: &[StateDiffView]) -> Vec<String> {
    let said: Vec<String> = states
        .iter()
        .map(|state| {
            let function = state.function.as_ref().map(|function| format!(" in {}", fit(function, FUNCTION_WIDTH))).unwrap_or_default();
            format!("{} {}{function}", state.text, signed(TimeUnit::of(state.delta_nanos), state.delta_nanos))
        })
        .collect();
    said.chunks(STATES_IN_A_LINE).map(|line| line.join(", ")).collect()
}

/// `create db ×3 → ×4`, and whether it is new or gone; with its service where another one has an operation of this name.
fn name(operation: &OperationDiffView, is_ambiguous: bool) -> String {
    let resource = operation.resource.as_ref().map(|resource| format!(" {resource}")).unwrap_or_default();
    let service = if is_ambiguous && !operation.service.is_empty() { format!(" · {}", operation.service) } else { String::new() };
    let count = match (operation.a.count, operation.b.count) {
        (0, n) | (n, 0) if n > 1 => format!(" ×{n}"),
        (a, b) if a != b && a > 0 && b > 0 => format!(" ×{a} → ×{b}"),
        (n, _) if n > 1 => format!(" ×{n}"),
        _ => String::new(),
    };
    let fate = match operation.fate {
        FateView::Added => " [new]",
        FateView::Removed => " [gone]",
        _ => "",
    };
    format!("{}{resource}{service}{count}{fate}", operation.name)
}

/// Least columns of names beside wide numbers.
const NAME_WIDTH_MIN: usize = 12;

/// `+1.20s`, `-3ms`.
fn signed(unit: TimeUnit, nanos: i64) -> String {
    let sign = if nanos > 0 { "+" } else { "" };
    format!("{sign}{}", unit.show(nanos))
}

/// From this factor on, a share is printed as a factor.
const FACTOR_MIN: f64 = 10.0;

/// ` (-17.0%)` of the time before, ` (36× as long)`.
fn share(delta: i64, before: i64) -> String {
    if before <= 0 {
        return String::new();
    }
    let part = delta as f64 / before as f64;
    if part + 1.0 >= FACTOR_MIN { format!(" ({:.0}× as long)", part + 1.0) } else { format!(" ({:+.1}%)", part * 100.0) }
}

/// A bar to the left of its axis for less time, to the right for more.
fn bar(delta: i64, largest: u64) -> String {
    let cells = (delta.unsigned_abs() as f64 / largest as f64 * BAR_WIDTH as f64).ceil() as usize;
    let cells = cells.min(BAR_WIDTH);
    if delta < 0 {
        format!("{}{}│{}", " ".repeat(BAR_WIDTH - cells), "█".repeat(cells), " ".repeat(BAR_WIDTH))
    } else {
        format!("{}│{}", " ".repeat(BAR_WIDTH), "█".repeat(cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_their_side_of_the_axis() {
        assert_eq!(bar(-10, 10), "████████│        ");
        assert_eq!(bar(1, 10), "        │█");
        assert_eq!(bar(0, 10), "        │");
    }

    #[test]
    fn shares_have_a_sign() {
        assert_eq!(share(-17, 100), " (-17.0%)");
        assert_eq!(share(850, 100), " (+850.0%)");
        assert_eq!(share(3_500, 100), " (36× as long)");
        assert_eq!(share(5, 0), "");
        assert_eq!(signed(TimeUnit::Seconds, 1_200_000_000), "+1.20s");
    }
}
