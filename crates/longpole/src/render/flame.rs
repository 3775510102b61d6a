//! A flame graph as an indented tree of functions.

use longpole_model::units::{TimeUnit, count, counted};
use longpole_recording::view;

use super::folded_calls::{CallLine, FoldedCalls, folded_in_words};
use super::functions::{kernel_line, no_samples};
use super::next_steps::{part_line, same_name_line};
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, function_words, right};

/// Deepest indentation that still leaves room for names.
const INDENT_MAX: usize = 30;

pub(crate) fn flame(view: &view::FlameView, min_percent: f64, style: Style) -> Screen {
    let nodes = &view.nodes;
    let off_cpu = view.time == view::FlameTimeView::OffCpu;
    let samples = match view.time {
        view::FlameTimeView::OffCpu => counted(view.samples, "wait", "waits"),
        view::FlameTimeView::Wall => counted(view.samples, "sample or wait", "samples and waits"),
        view::FlameTimeView::OnCpu => counted(view.samples, "sample", "samples"),
    };
    let mut head = format!("{}  {samples}  {}", style.strong(&view.title), style.faint(&view.recording));
    let links = &view.links;
    let is_of_spans = view.span.is_some() || view.name.is_some() || view.trace_id.is_some();
    if is_of_spans && links.inferred > 0 {
        head.push_str(&format!("  ({} exact, {} inferred)", count(links.record + links.journal + links.label), count(links.inferred)));
    }
    if view.few_samples && view.samples > 0 {
        head.push_str(&style.warning("  fewer than 20: a hint, not a measurement"));
    }
    let mut out = Screen::of(head);
    if let Some(part_of) = &view.part_of {
        out.line(style.faint(&part_line("flame", &view.recording, part_of, view.time)));
    }
    if let Some(line) = view.same_name.as_ref().map(|all| same_name_line(&view.recording, all)) {
        out.line(line);
    }
    if view.samples == 0 && off_cpu {
        out.line("No sampled waits, not counting idle workers.");
        out.extend(left_out(view, style));
        if is_of_spans {
            let all = format!("{} flame {} --off-cpu --all-threads", own_name(), quoted(&view.recording));
            out.line(style.faint(&format!("Waits of threads without a span: {all}")));
        }
        return out;
    }
    if view.samples == 0 {
        out.line(no_samples(view.unsampled));
        return out;
    }
    let whole = view.weight_nanos.max(1);
    let unit = TimeUnit::of(whole);
    let bar_head = " ".repeat(BAR_WIDTH);
    out.line(style.faint(&format!("{}  {}  {} {bar_head}  function", right("total", 9), right("self", 9), right("share", 6))));
    let share = |nanos: i64| nanos as f64 / whole as f64 * 100.0;
    let shown = FoldedCalls::new(
        nodes.parent.iter().map(|parent| usize::try_from(*parent).unwrap_or(0)).collect(),
        (0..nodes.parent.len()).map(|row| how_well_named(view, row)).collect(),
        |row| share(nodes.total_nanos[row]) >= min_percent,
        |row| share(nodes.self_nanos[row]) < min_percent,
    );
    for line in shown.lines() {
        let (row, depth) = match line {
            CallLine::Row { row, depth } => (row, depth),
            CallLine::Folded { frames, depth } => {
                let indent = " ".repeat(9 + 2 + 9 + 2 + 6 + 1 + BAR_WIDTH + 2 + depth.min(INDENT_MAX));
                out.line(style.faint(&format!("{indent}{}", folded_in_words(frames, depth))));
                continue;
            }
        };
        let indent = " ".repeat(depth.min(INDENT_MAX));
        let Ok(frame) = usize::try_from(nodes.frame[row]) else { continue };
        let frame = &view.frames[frame];
        let room = style.width().saturating_sub(9 + 2 + 9 + 2 + 6 + 1 + BAR_WIDTH + 2 + indent.len() + frame.handle.len() + 1);
        let own = if nodes.self_nanos[row] > 0 { unit.show(nodes.self_nanos[row]) } else { String::new() };
        let percent = share(nodes.total_nanos[row]);
        out.line(format!(
            "{}  {}  {} {}  {indent}{} {}",
            right(&unit.show(nodes.total_nanos[row]), 9),
            right(&own, 9),
            right(&format!("{percent:.1}%"), 6),
            bar(percent),
            style.handle(&frame.handle),
            fit(&label(frame, nodes.line[row]), room.max(10)),
        ));
    }
    if shown.hidden > 0 {
        out.line(style.faint(&format!("… {} boxes below {min_percent}% hidden (--min 0)", shown.hidden)));
    }
    out.extend(kernel_line(view.frames.iter().map(|frame| frame.runtime), style));
    out.extend(left_out(view, style));
    if view.cut_samples > 0 {
        let samples = counted(view.cut_samples, "sample", "samples");
        out.line(style.faint(&format!("… {samples} cut short at their innermost functions: more than 2,097,152 different paths")));
    }
    out
}

/// Waits that the graph hides, and how to see them.
fn left_out(view: &view::FlameView, style: Style) -> Option<String> {
    let waits = || counted(view.left_out_waits, "wait", "waits");
    (view.left_out_waits > 0).then(|| style.faint(&format!("… {} hidden: threads without a span (--all-threads)", waits())))
}

/// The name of a function, with file and line for scripts, whose names alone say little.
fn label(frame: &view::FlameFrameView, line: u32) -> String {
    let function = function_words(&frame.function, frame.runtime);
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    match (frame.runtime, file, line) {
        (None, ..) | (_, "", _) => function,
        (Some(_), file, 0) => format!("{function} ({file})"),
        (Some(_), file, line) => format!("{function} ({file}:{line})"),
    }
}

/// How well the frame of a row describes a chain of calls: 0 not at all, 1 a function of the program, 2 a function of an interpreted program,
/// which says more than its interpreter.
fn how_well_named(view: &view::FlameView, row: usize) -> u8 {
    let frame = usize::try_from(view.nodes.frame[row]).ok().and_then(|frame| view.frames.get(frame));
    match frame {
        Some(frame) if frame.reason.is_none() && frame.whose == view::WhoseView::Program => 1 + u8::from(frame.runtime.is_some()),
        _ => 0,
    }
}

/// Columns of a full bar.
const BAR_WIDTH: usize = 8;

/// A share as a bar, in eighths of a character.
fn bar(percent: f64) -> String {
    let eighths = ((percent / 100.0 * (BAR_WIDTH * 8) as f64).round().clamp(0.0, (BAR_WIDTH * 8) as f64)) as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let text = "█".repeat(eighths / 8) + part;
    let missing = BAR_WIDTH - text.chars().count();
    text + &" ".repeat(missing)
}
