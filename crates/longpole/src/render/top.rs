//! The answer of `top`.

use longpole_model::units::{counted, duration};
use longpole_recording::view;

use super::functions::{function_rows, kernel_line, no_samples};
use super::next_steps::part_line;
use super::quality::missing_lines;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit};

pub(crate) fn top(view: &view::TopView, style: Style) -> Screen {
    let what = [&view.span, &view.name, &view.trace_id].into_iter().flatten().next();
    let what = what.map_or_else(String::new, |what| format!("{}  ", fit(what, 60)));
    let (counted_words, of) = match view.time {
        view::FlameTimeView::OffCpu => (counted(view.samples, "wait", "waits"), "blocked"),
        view::FlameTimeView::Wall => (counted(view.samples, "sample or wait", "samples and waits"), "on-CPU and blocked"),
        view::FlameTimeView::OnCpu => (counted(view.samples, "sample", "samples"), "on-CPU"),
    };
    let threads = if view.tid.is_some() { "" } else { ", all threads together" };
    let all = format!("{} {of}{threads}", duration(view.weight_nanos));
    let excerpt = view.excerpt_in_words().map_or_else(String::new, |excerpt| format!("{excerpt}  "));
    let mut out =
        Screen::of(format!("{}{excerpt}{counted_words}  {}  {}", style.handle(&what), style.faint(&all), style.faint(&view.recording)));
    if let Some(part_of) = &view.part_of {
        out.line(style.faint(&part_line("top", &view.recording, part_of, view.time)));
    }
    // Times of functions are as complete as the samples.
    let is_part = view.span.is_some() || view.name.is_some() || view.trace_id.is_some() || view.excerpt_in_words().is_some();
    let missing = |out: &mut Screen| {
        if is_part && !view.quality.is_empty() {
            out.line(style.faint(&format!("of the whole {}:", view.recording)));
        }
        out.extend(missing_lines(&view.quality, view.all_samples, &view.recording, style));
    };
    if view.functions.is_empty() {
        out.line(if view.time == view::FlameTimeView::OffCpu {
            "No sampled waits, not counting idle workers."
        } else {
            no_samples(view.unsampled)
        });
        out.extend(left_out(view, style));
        missing(&mut out);
        return out;
    }
    let meaning = match view.time {
        view::FlameTimeView::OnCpu => None,
        view::FlameTimeView::OffCpu => Some("self: blocked in a library or system call that this function makes"),
        view::FlameTimeView::Wall => Some("self: on-CPU in the function itself, or blocked in a library or system call that it makes"),
    };
    let (shown, short) = of_any_length(view);
    function_rows(shown, view.weight_nanos, view.by_total, style).iter().for_each(|row| out.line(row));
    meaning.iter().for_each(|text| out.line(style.faint(text)));
    out.extend(kernel_line(shown.iter().map(|function| function.runtime), style));
    if let Some(text) = more_functions(short as u64, view) {
        out.line(style.faint(&text));
    }
    if view.hidden > 0 {
        let hidden = counted(view.hidden as u64, "function", "functions");
        out.line(style.faint(&format!(
            "… {hidden} hidden: runtime entry points and functions that only run the interpreter's loop (--all-functions)"
        )));
    }
    out.extend(left_out(view, style));
    missing(&mut out);
    out
}

/// Functions that wait: those before the ones with hardly any time in the column that the table is sorted by, and the number of the others.
fn of_any_length(view: &view::TopView) -> (&[view::TopFrameView], usize) {
    let time = |function: &view::TopFrameView| if view.by_total { function.total_nanos } else { function.self_nanos };
    if view.time != view::FlameTimeView::OffCpu {
        return (&view.functions, 0);
    }
    let least = view.functions.first().map_or(0, time) / SHORT_PART;
    let shown = view.functions.partition_point(|function| time(function) >= least);
    (&view.functions[..shown], view.functions.len() - shown)
}

/// Functions that the table leaves out. Once it is down to the short ones, a larger limit shows no more.
fn more_functions(short: u64, view: &view::TopView) -> Option<String> {
    let truncated = view.truncated as u64;
    let more = |number: u64| counted(number, "function", "functions").replacen(' ', " more ", 1);
    match (short, truncated) {
        (0, 0) => None,
        (0, _) => Some(format!("… {} (--limit 0)", more(truncated))),
        (..) => Some(format!("… {}, each below a thousandth of the first (--format json)", more(short + truncated))),
    }
}

/// Functions with less than this part of the time of the first one are only counted.
const SHORT_PART: i64 = 1000;

/// Waits that the table hides, and how to see them.
fn left_out(view: &view::TopView, style: Style) -> Option<String> {
    (view.left_out_waits > 0).then(|| {
        style.faint(&format!(
            "… {} hidden: idle workers and threads without a span (--all-threads)",
            counted(view.left_out_waits, "wait", "waits")
        ))
    })
}
