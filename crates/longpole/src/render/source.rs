//! The source of a function, line by line.

use longpole_model::SumNanos;
use longpole_model::units::{TimeUnit, counted};
use longpole_recording::view;

use crate::terminal::screen::Screen;
use crate::terminal::{Style, cut, fit, right, width};

/// The source of a function, line by line.
pub(crate) fn source(view: &view::SourceView, style: Style) -> Screen {
    let function = fit(&view.function, 70);
    let mut out = Screen::of(format!("{}  {}  {}", style.handle(&view.handle), style.strong(&function), style.faint(&view.recording)));
    let path = view.path.as_deref().unwrap_or(&view.file);
    if !path.is_empty() {
        out.line(style.faint(path));
    }
    if let Some(detail) = &view.detail {
        let is_wrong = view.state != view::SourceStateView::Read;
        out.line(if is_wrong { style.warning(detail) } else { style.faint(detail) });
    }
    if view.lines.is_empty() {
        return out;
    }
    let unit = TimeUnit::of(view.lines.iter().map(|line| line.total_nanos.max(line.waited_nanos)).max().unwrap_or_default());
    let has_waits = view.lines.iter().any(|line| line.waited_nanos > 0);
    let waited = |text: String| if has_waits { format!("  {}", right(&text, 9)) } else { String::new() };
    out.line("");
    out.line(style.faint(&format!("{}  {}{}", right("self", 9), right("total", 9), waited("waited".to_owned()))));
    let show = |nanos: i64| if nanos > 0 { unit.show(nanos) } else { String::new() };
    let number_width = view.lines.iter().map(|line| line.line.to_string().len()).max().unwrap_or(1);
    let mut before = None;
    for line in &view.lines {
        if before.is_some_and(|before: u32| before + 1 < line.line) {
            out.line(style.faint("        ⋮"));
        }
        before = Some(line.line);
        let numbers =
            format!("{}  {}{}", right(&show(line.self_nanos), 9), right(&show(line.total_nanos), 9), waited(show(line.waited_nanos)));
        let text = line.text.as_deref().unwrap_or_default().replace('\t', "    ");
        let number = right(&line.line.to_string(), number_width);
        let room = style.width().saturating_sub(width(&numbers) + number_width + 4).max(20);
        let row = format!("{numbers}  {}  {}", style.faint(&number), cut(&text, room));
        out.line(row.trim_end());
    }
    if view.truncated > 0 {
        out.line(style.faint(&format!("… {} with less time hidden", counted(view.truncated as u64, "line", "lines"))));
    }
    let on_lines: i64 = view.lines.iter().map(|line| line.self_nanos).sum_nanos();
    let on_none = view.self_nanos.saturating_sub(on_lines);
    if view.truncated == 0 && on_none.saturating_mul(100) > view.self_nanos {
        out.line(style.faint(&format!("{}  self time on unknown lines", right(&unit.show(on_none), 9))));
    }
    let (what, limit) = if has_waits { ("total and waited", "; longpole samples few waits under 5 ms") } else { ("total", "") };
    out.line(style.faint(&format!("self: on-CPU time on the line itself; {what}: including what it calls{limit}")));
    out
}
