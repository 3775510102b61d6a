//! `flame`: a flame graph as an indented tree of functions.

use anyhow::Result;
use longpole_server::view;

use super::recording::{Setting, load, print, print_json};
use super::span::not_found;
use crate::args::{FlameArguments, Format};
use crate::terminal::{Style, TimeUnit, WIDTH, count, counted, fit, right};

/// Deepest indentation that still leaves room for names.
const INDENT_MAX: usize = 30;

/// Prints the flame graph of the recording, or of a span with its descendants.
pub(crate) fn flame(setting: &Setting, arguments: &FlameArguments) -> Result<()> {
    let (name, report) = load(setting, &arguments.recording)?;
    let view = match &arguments.span {
        None => view::FlameView::of_run(&name, &report),
        Some(handle) => view::FlameView::of_span(&name, &report, handle).ok_or_else(|| not_found(&name, handle))?,
    };
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&text(&view, arguments.min, setting.style())),
    }
}

fn text(view: &view::FlameView, min_percent: f64, style: Style) -> String {
    let nodes = &view.nodes;
    let mut out = format!("{}  {}", style.strong(&view.title), counted(view.samples, "sample", "samples"));
    let links = &view.links;
    if view.span.is_some() && links.inferred > 0 {
        out.push_str(&format!("  ({} exact, {} inferred)", count(links.record), count(links.inferred)));
    }
    if view.few_samples {
        out.push_str(&style.warning("  fewer than 20: a hint, not a measurement"));
    }
    out.push('\n');
    if view.samples == 0 {
        out.push_str(
            "No sample of a CPU fell into it: it waited, it was shorter than the sampling period, or its process was not sampled.\n",
        );
        return out;
    }
    let whole = view.weight_nanos.max(1);
    let unit = TimeUnit::of(whole);
    out.push_str(&style.faint(&format!("{}  {}  {}  function\n", right("total", 9), right("self", 9), right("share", 6))));
    let mut hidden = 0;
    for row in 1..nodes.parent.len() {
        let share = nodes.total_nanos[row] as f64 / whole as f64 * 100.0;
        if share < min_percent {
            hidden += 1;
            continue;
        }
        let depth = nodes.depth[row] as usize - 1;
        let indent = " ".repeat(depth.min(INDENT_MAX));
        let Ok(frame) = usize::try_from(nodes.frame[row]) else { continue };
        let frame = &view.frames[frame];
        let room = WIDTH - 9 - 2 - 9 - 2 - 6 - 2 - indent.len() - frame.handle.len() - 1;
        let own = if nodes.self_nanos[row] > 0 { unit.show(nodes.self_nanos[row]) } else { String::new() };
        out.push_str(&format!(
            "{}  {}  {}  {indent}{} {}\n",
            right(&unit.show(nodes.total_nanos[row]), 9),
            right(&own, 9),
            right(&format!("{share:.1}%"), 6),
            style.handle(&frame.handle),
            fit(&frame.function, room.max(10)),
        ));
    }
    if hidden > 0 {
        out.push_str(&style.faint(&format!("… {hidden} boxes below {min_percent} % (--min 0)\n")));
    }
    out
}
