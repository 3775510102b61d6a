//! Lists of what a server has.

use longpole_model::units::{count, duration};
use longpole_recording::view::{ServicesView, TracesView};

use super::recordings::when;
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, column_widths, cut, pad, right, width};

/// Operations of a service that are named.
const OPERATIONS_MAX: usize = 8;

/// Columns of names that are always there.
const NAMES_WIDTH_MIN: usize = 20;

/// Services and their operations. `poles` is the command that prints what to fix first in all of them.
pub(crate) fn services(view: &ServicesView, poles: &str, style: Style) -> Screen {
    let name_width = view.services.iter().map(|service| width(&service.name)).max().unwrap_or_default().max(width("service"));
    let names_width = style.width().saturating_sub(name_width + 2).max(NAMES_WIDTH_MIN);
    let mut out = Screen::of(style.strong(&format!("{}  operations", pad("service", name_width))));
    for service in &view.services {
        let named: Vec<&str> = service.operations.iter().take(OPERATIONS_MAX).map(String::as_str).collect();
        let more = service.operations.len().saturating_sub(OPERATIONS_MAX);
        let more = if more > 0 { format!(" … {more} more") } else { String::new() };
        let names = cut(&(named.join(", ") + &more), names_width);
        out.line(format!("{}  {names}", style.handle(&pad(&service.name, name_width))).trim_end());
    }
    out.line("");
    out.line(format!("next      {poles}   # what to fix first"));
    out
}

/// Traces, each with its root. `address` names the page of a trace; `poles` is the command that prints the long poles of all.
pub(crate) fn traces(view: &TracesView, address: impl Fn(&str) -> String, poles: &str, style: Style) -> Screen {
    let heads = ["trace", "started", "duration", "spans", "failed"];
    let rows: Vec<[String; 5]> = view
        .traces
        .iter()
        .map(|trace| {
            let failed = if trace.errors > 0 { count(trace.errors.into()) } else { String::new() };
            let spans = count(trace.spans.into());
            [trace.trace_id.clone(), when(&trace.start_unix_nano), duration(trace.wall_nanos), spans, failed]
        })
        .collect();
    let widths = column_widths(&heads, &rows);
    let cell = |column: usize, text: &str| if column < 2 { pad(text, widths[column]) } else { right(text, widths[column]) };
    let names_width = style.width().saturating_sub(widths.iter().map(|width| width + 2).sum()).max(NAMES_WIDTH_MIN);
    let head: String = heads.iter().enumerate().map(|(column, head)| cell(column, head) + "  ").collect();
    let mut out = Screen::of(style.strong(&(head + "root")));
    for (trace, texts) in view.traces.iter().zip(&rows) {
        let cells: Vec<String> = texts.iter().enumerate().map(|(column, text)| cell(column, text)).collect();
        let rest = cells[2..].join("  ");
        let root = cut(&format!("{} {}", trace.service, trace.name), names_width);
        out.line(format!("{}  {}  {rest}  {root}", style.handle(&cells[0]), style.faint(&cells[1])).trim_end());
    }
    if view.truncated {
        out.line(style.faint("older traces may match as well: --limit, --since"));
    }
    if let Some(first) = view.traces.first() {
        out.line("");
        out.line(format!("next      {} show {}", own_name(), quoted(&address(&first.trace_id))));
        if view.traces.len() > 1 {
            out.line(format!("          {poles}   # what to fix first in all of them"));
        }
    }
    out
}
