//! Spans and processes as an indented tree.

use longpole_analysis::pulumi::urn::name_of_title;
use longpole_analysis::tree::labels::method_of_call;
use longpole_model::units::TimeUnit;
use longpole_recording::view;

use super::service::named_service;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, right, width};

/// Deepest indentation that leaves room for names; deeper rows print their level instead.
const INDENT_MAX: usize = 20;

/// Fewer columns than this say nothing about a service.
const SERVICE_WIDTH_MIN: usize = 4;

pub(crate) fn tree(view: &view::TreeView, depth_max: usize, limit: usize, style: Style) -> Screen {
    let spans = &view.spans;
    let unit = TimeUnit::of(view.wall_nanos);
    let mut out = Screen::default();
    let numbers = |start: &str, duration: &str, path: &str| format!("{}  {}  {}", right(start, 9), right(duration, 9), right(path, 9));
    let handle_width = spans.parent.len().to_string().len() + 1;
    let left = style.width() - 3 * 9 - 2 * 2 - 2;
    out.line(style.strong(&format!("{}  {}", crate::terminal::pad("SPAN OR PROCESS", left), numbers("start", "duration", "on path"))));
    let mut shown = 0;
    let mut hidden = 0;
    for row in 0..spans.parent.len() {
        let depth = spans.depth[row] as usize;
        if (depth_max > 0 && depth >= depth_max) || (limit > 0 && shown >= limit) {
            hidden += 1;
            continue;
        }
        shown += 1;
        let indent = if depth > INDENT_MAX { format!("{}({depth}) ", "  ".repeat(INDENT_MAX)) } else { "  ".repeat(depth) };
        let service = named_service(&view.services[spans.service[row] as usize]);
        let name = &view.names[spans.name[row] as usize];
        let marks = marks(spans.flags[row], if row == 0 { root_word(view.of) } else { PROCESS });
        let handle = format!("{:handle_width$}", format!("s{}", row + 1));
        let title = usize::try_from(spans.resource[row]).ok().and_then(|place| view.resources.get(place));
        let room = left - handle_width - 1;
        let text = format!("{indent}{}", operation(name, &marks, title.map(String::as_str), room.saturating_sub(width(&indent))));
        let service_room = room.saturating_sub(width(&text) + 2);
        let says_service = service_room >= SERVICE_WIDTH_MIN && !service.is_empty();
        let named = if says_service { format!("{text}  {}", fit(service, service_room)) } else { fit(&text, room) };
        let padding = " ".repeat(left.saturating_sub(handle_width + 1 + width(&named)));
        let path = if spans.on_path_nanos[row] > 0 { unit.show(spans.on_path_nanos[row]) } else { String::new() };
        out.line(format!(
            "{} {named}{padding}  {}",
            style.handle(&handle),
            numbers(&unit.show(spans.start_nanos[row]), &unit.show(spans.duration_nanos[row]), &path)
        ));
    }
    if hidden > 0 {
        out.line(format!("… {hidden} more rows (--limit 0 --depth 0)"));
    }
    for note in &view.notes {
        out.line(style.warning(&format!("note: {}", note.sentence(0))));
    }
    out
}

/// Operation, marks and resource; in shorter forms where the whole names take more than `room` columns.
fn operation(name: &str, marks: &str, title: Option<&str>, room: usize) -> String {
    let Some(title) = title else { return format!("{name}{marks}") };
    let (method, resource) = (method_of_call(name).unwrap_or(name), name_of_title(title));
    let forms = [(name, title), (method, title), (method, resource)].map(|(name, resource)| format!("{name}{marks}  {resource}"));
    let [.., shortest] = &forms;
    forms.iter().find(|form| width(form) <= room).unwrap_or(shortest).clone()
}

const PROCESS: &str = "process";

/// What the first row stands for.
fn root_word(of: view::SummarisedView) -> &'static str {
    match of {
        view::SummarisedView::Trace => "trace",
        view::SummarisedView::File | view::SummarisedView::Profile => "file",
        view::SummarisedView::Command | view::SummarisedView::CommandAlone | view::SummarisedView::Attached => PROCESS,
    }
}

/// The flags of a row in words; `process` is the one for a row that was made from a process.
fn marks(flags: u32, process: &'static str) -> String {
    let words: Vec<&str> = [(1, "error"), (4, process), (8, "orphan"), (16, "times clamped"), (32, "cycle broken")]
        .into_iter()
        .filter_map(|(bit, word)| (flags & bit != 0).then_some(word))
        .collect();
    if words.is_empty() { String::new() } else { format!(" [{}]", words.join(", ")) }
}
