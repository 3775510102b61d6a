//! `top`, `frame`, `threads`: the code of a recording, by function and by thread.

use anyhow::Result;
use longpole_server::view;

use super::recording::{Setting, chosen, in_order, load, print, print_json};
use super::span::none_chosen;
use crate::args::{Format, FrameArguments, ThreadsArguments, TopArguments};
use crate::failure::{Failure, Kind};
use crate::terminal::{Style, TimeUnit, WIDTH, count, counted, fit, function_words, pad, percent, right};

/// Spans listed for a function.
const SPANS_SHOWN: usize = 20;

/// Kinds of waits named for a thread.
const KINDS_SHOWN: usize = 3;

/// Prints the functions with the most time in themselves.
pub(crate) fn top(setting: &Setting, arguments: &TopArguments) -> Result<()> {
    let (chosen, recording) = chosen(&arguments.spans, &arguments.recording);
    let (name, report) = load(setting, recording)?;
    let order = (arguments.total, arguments.limit);
    let none = || none_chosen(&name, chosen.unwrap_or(view::Chosen::Handle("")));
    let view = view::TopView::new(&name, &report, chosen, order).ok_or_else(none)?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&top_text(&view, setting.style())),
    }
}

fn top_text(view: &view::TopView, style: Style) -> String {
    let what = [&view.span, &view.name, &view.trace_id].into_iter().flatten().next();
    let what = what.map_or_else(String::new, |what| format!("{}  ", fit(what, 60)));
    let mut out = format!("{}{}  {}\n", style.handle(&what), counted(view.samples, "sample", "samples"), style.faint(&view.recording));
    if view.functions.is_empty() {
        out.push_str(
            "No sample of a CPU fell into it: it waited, it was shorter than the sampling period, or its process was not sampled.\n",
        );
        return out;
    }
    let unit = TimeUnit::of(view.functions.iter().map(|f| f.total_nanos).max().unwrap_or_default());
    out.push_str(&style.faint(&format!("{}  {}  {}  function\n", right("self", 9), right("share", 5), right("total", 9))));
    for function in &view.functions {
        let place = place(&function.file, function.line);
        let room = WIDTH.saturating_sub(30 + function.handle.len() + place.chars().count()).max(20);
        out.push_str(&format!(
            "{}  {}  {}  {} {}{}\n",
            right(&unit.show(function.self_nanos), 9),
            right(&percent(function.self_nanos, view.weight_nanos), 5),
            right(&unit.show(function.total_nanos), 9),
            style.handle(&function.handle),
            fit(&function_words(&function.function, function.runtime), room),
            style.faint(&place)
        ));
    }
    if view.truncated > 0 {
        out.push_str(&style.faint(&format!("… {} more (--limit 0)\n", view.truncated)));
    }
    out
}

fn place(file: &str, line: u32) -> String {
    if file.is_empty() { String::new() } else { format!("  {}:{line}", file.rsplit('/').next().unwrap_or_default()) }
}

/// Prints a function and the spans it ran in.
pub(crate) fn frame(setting: &Setting, arguments: &FrameArguments) -> Result<()> {
    let (handle, recording) = in_order(&arguments.handle, &arguments.recording);
    let (name, report) = load(setting, recording)?;
    let view = view::FrameView::new(&name, &report, handle).ok_or_else(|| {
        let hint = format!("`longpole top {name}` lists functions with their handles");
        Failure::new(Kind::NotFound, format!("there is no function {handle} in {name}")).hint(hint)
    })?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&frame_text(&view, setting.style())),
    }
}

fn frame_text(view: &view::FrameView, style: Style) -> String {
    let unit = TimeUnit::of(view.total_nanos);
    let mut out = format!(
        "{}  {}  {}\n",
        style.handle(&view.handle),
        style.strong(&function_words(&view.function, view.runtime)),
        style.faint(&view.recording)
    );
    if !view.file.is_empty() {
        out.push_str(&style.faint(&format!("{}\n", view.file)));
    }
    out.push_str(&format!(
        "{} on a CPU in it and what it calls, {} in itself, {}\n\n",
        unit.show(view.total_nanos),
        unit.show(view.self_nanos),
        counted(view.samples, "sample", "samples")
    ));
    if view.spans.is_empty() {
        return out + &unlinked(view);
    }
    if view.operations.iter().any(|operation| operation.spans > 1) {
        out.push_str(&style.strong("OPERATIONS IT RAN IN\n"));
        let unit = TimeUnit::of(view.operations.iter().map(|it| it.total_nanos).max().unwrap_or_default());
        out.push_str(&style.faint(&format!(
            "{}  {}  {}  {}  operation\n",
            right("time", 9),
            right("of it", 5),
            right("of its own", 10),
            right("spans", 6)
        )));
        for operation in view.operations.iter().take(SPANS_SHOWN) {
            out.push_str(&format!(
                "{}  {}  {}  {}  {}  {}\n",
                right(&unit.show(operation.total_nanos), 9),
                right(&percent(operation.total_nanos, view.total_nanos), 5),
                right(&format!("{:.0}%", operation.share * 100.0), 10),
                right(&count(operation.spans), 6),
                fit(&operation.name, 40),
                style.faint(&fit(&operation.service, 20))
            ));
        }
        let more = view.operations.len().saturating_sub(SPANS_SHOWN);
        if more > 0 {
            out.push_str(&style.faint(&format!("… {more} more (--format json)\n")));
        }
        out.push('\n');
    }
    out.push_str(&style.strong("SPANS IT RAN IN\n"));
    let unit = TimeUnit::of(view.spans.iter().map(|span| span.total_nanos).max().unwrap_or_default());
    out.push_str(&style.faint(&format!("{}  of its own  span\n", right("time", 9))));
    for span in view.spans.iter().take(SPANS_SHOWN) {
        out.push_str(&format!(
            "{}  {}  {} {}  {}\n",
            right(&unit.show(span.total_nanos), 9),
            right(&format!("{:.0}%", span.share * 100.0), 10),
            style.handle(&span.handle),
            fit(&span.name, 50),
            style.faint(&fit(&span.service, 20))
        ));
    }
    let more = view.spans.len().saturating_sub(SPANS_SHOWN) + view.truncated.spans;
    if more > 0 {
        out.push_str(&style.faint(&format!("… {more} more (--format json)\n")));
    }
    if view.unlinked_samples > 0 {
        out.push_str(&unlinked(view));
    }
    out
}

/// What of a function belongs to no span, or nobody can say to which.
fn unlinked(view: &view::FrameView) -> String {
    let ambiguous = match view.ambiguous_samples {
        0 => String::new(),
        some => format!(", of which {} could belong to several", count(some)),
    };
    format!("{} of it belong to no span{ambiguous}\n", counted(view.unlinked_samples, "sample", "samples"))
}

/// Prints where the life of each thread went.
pub(crate) fn threads(setting: &Setting, arguments: &ThreadsArguments) -> Result<()> {
    let (name, report) = load(setting, &arguments.recording)?;
    let view = view::ThreadsView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&threads_text(&view, arguments.limit, setting.style())),
    }
}

fn threads_text(view: &view::ThreadsView, limit: usize, style: Style) -> String {
    if view.threads.is_empty() {
        return format!("{} has no threads: they come with the profile\n", view.recording);
    }
    let unit = TimeUnit::of(view.threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let mut out = style.strong(&format!(
        "{}  {}  {}  {}  {}  blocked for\n",
        pad("THREAD", 30),
        right("lived", 9),
        right("on-CPU", 9),
        right("runnable", 9),
        right("blocked", 9)
    ));
    let (shown, hidden) = view.threads.split_at(if limit == 0 { view.threads.len() } else { limit.min(view.threads.len()) });
    for thread in shown {
        let name = if thread.name == thread.process || thread.name.is_empty() {
            thread.process.clone()
        } else {
            format!("{} › {}", thread.process, thread.name)
        };
        let blocked = thread.blocked_nanos.sum() + thread.blocked_unseen_nanos;
        let mut kinds: Vec<String> = thread
            .blocked_nanos
            .parts()
            .into_iter()
            .take(KINDS_SHOWN)
            .map(|(kind, nanos)| format!("{kind} {}", percent(nanos, blocked)))
            .collect();
        if thread.blocked_unseen_nanos * 10 > blocked {
            kinds.push(format!("not seen {}", percent(thread.blocked_unseen_nanos, blocked)));
        }
        let id = format!(" {}", thread.tid);
        let named = format!("{}{id}", fit(&name, 30 - id.len()));
        out.push_str(&format!(
            "{}  {}  {}  {}  {}  {}\n",
            pad(&named, 30),
            right(&unit.show(thread.nanos), 9),
            right(&unit.show(thread.on_cpu_nanos), 9),
            right(&unit.show(thread.ready_nanos), 9),
            right(&unit.show(blocked), 9),
            style.faint(&kinds.join(", "))
        ));
    }
    if !hidden.is_empty() {
        let on_cpu = unit.show(hidden.iter().map(|thread| thread.on_cpu_nanos).sum());
        out.push_str(&style.faint(&format!("… {} more, together {on_cpu} on-CPU (--limit 0)\n", count(hidden.len() as u64))));
    }
    out
}
