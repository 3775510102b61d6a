//! A function, and the spans it ran in.

use longpole_model::units::{TimeUnit, count, counted, duration, percent};
use longpole_recording::view;

use super::service::service_column;
use super::waits::waits_section;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, function_words, right};

/// Spans listed for a function.
const SPANS_SHOWN: usize = 20;

/// The heads of the columns of shares.
const SHARE_OF_CPU: &str = "% of CPU time";
const SHARE_OF_WAITS: &str = "% of waits";

/// Lines listed for a function.
const LINES_SHOWN: usize = 3;

pub(crate) fn frame(view: &view::FrameView, style: Style) -> Screen {
    let unit = TimeUnit::of(view.total_nanos);
    let mut out = Screen::of(format!(
        "{}  {}  {}",
        style.handle(&view.handle),
        style.strong(&function_words(&view.function, view.runtime)),
        style.faint(&view.recording)
    ));
    if !view.file.is_empty() {
        out.line(style.faint(&format!("{}{}", view.file, lines_words(view))));
    }
    if view.samples == 0 && view.waits > 0 {
        out.line("no on-CPU samples: it only waited");
    } else {
        out.line(format!(
            "{} on-CPU in total, {} self, {}",
            unit.show(view.total_nanos),
            unit.show(view.self_nanos),
            counted(view.samples, "sample", "samples")
        ));
    }
    if view.waits > 0 {
        let waited = duration(view.waited_nanos);
        out.line(format!("{waited} blocked in total, {}", counted(view.waits, "wait", "waits")));
    }
    out.line("");
    out.extend(waits_section(&view.waited_for, "", style));
    if view.spans.is_empty() {
        out.append(&unlinked(view));
        return out;
    }
    let has_waits = view.waited_nanos > 0;
    let waited = |time: &str, share: &str| match has_waits {
        true => format!("  {}  {}", right(time, 9), right(share, SHARE_OF_WAITS.len())),
        false => String::new(),
    };
    let shares = |share: f64| format!("{:.0}%", share * 100.0);
    if view.operations.iter().any(|operation| operation.spans > 1) {
        out.line(style.strong("OPERATIONS IN WHICH IT RAN OR WAITED"));
        let unit = TimeUnit::of(view.operations.iter().map(|it| it.total_nanos.max(it.waited_nanos)).max().unwrap_or_default());
        let waits = waited("blocked", SHARE_OF_WAITS);
        out.line(style.faint(&format!("{}  {SHARE_OF_CPU}{waits}  {}  operation", right("on-CPU", 9), right("spans", 6))));
        for operation in view.operations.iter().take(SPANS_SHOWN) {
            out.line(format!(
                "{}  {}{}  {}  {}{}",
                right(&unit.show(operation.total_nanos), 9),
                right(&shares(operation.share), SHARE_OF_CPU.len()),
                waited(&unit.show(operation.waited_nanos), &shares(operation.waited_share)),
                right(&count(operation.spans), 6),
                fit(&operation.name, 40),
                style.faint(&fit(&service_column(&operation.service), 22))
            ));
        }
        let more = view.operations.len().saturating_sub(SPANS_SHOWN);
        if more > 0 {
            out.line(style.faint(&format!("… {more} more (--format json)")));
        }
        out.line("");
    }
    out.line(style.strong("SPANS AND PROCESSES IN WHICH IT RAN OR WAITED"));
    let unit = TimeUnit::of(view.spans.iter().map(|span| span.total_nanos.max(span.waited_nanos)).max().unwrap_or_default());
    let waits = waited("blocked", SHARE_OF_WAITS);
    out.line(style.faint(&format!("{}  {SHARE_OF_CPU}{waits}  name", right("on-CPU", 9))));
    for span in view.spans.iter().take(SPANS_SHOWN) {
        out.line(format!(
            "{}  {}{}  {} {}{}",
            right(&unit.show(span.total_nanos), 9),
            right(&shares(span.share), SHARE_OF_CPU.len()),
            waited(&unit.show(span.waited_nanos), &shares(span.waited_share)),
            style.handle(&span.handle),
            fit(&span.name, 50),
            style.faint(&fit(&service_column(&span.service), 22))
        ));
    }
    out.line(style.faint("shares are of the CPU time and waits of the span or process itself, without its children"));
    let more = view.spans.len().saturating_sub(SPANS_SHOWN) + view.truncated.spans;
    if more > 0 {
        out.line(style.faint(&format!("… {more} more (--format json)")));
    }
    out.append(&unlinked(view));
    out
}

/// `:12 (80%), :14 (20%)`: the lines at which it runs or waits.
fn lines_words(view: &view::FrameView) -> String {
    let time = |line: &view::LineView| line.total_nanos.saturating_add(line.waited_nanos);
    let all = view.total_nanos.saturating_add(view.waited_nanos);
    let words: Vec<String> =
        view.lines.iter().take(LINES_SHOWN).map(|line| format!(":{} ({})", line.line, percent(time(line), all))).collect();
    let more = view.lines.len().saturating_sub(LINES_SHOWN);
    let more = if more > 0 { format!(" and {} (--source)", counted(more as u64, "more line", "more lines")) } else { String::new() };
    words.join(", ") + &more
}

/// The time of a function that belongs to no known span.
fn unlinked(view: &view::FrameView) -> Screen {
    let mut out = Screen::default();
    if view.unlinked_samples > 0 {
        let ambiguous = match view.ambiguous_samples {
            0 => String::new(),
            some => format!(", {} of them because several spans are possible", count(some)),
        };
        out.line(format!("{} belong to no span{ambiguous}", counted(view.unlinked_samples, "sample", "samples")));
    }
    if view.unlinked_waited_nanos > 0 {
        out.line(format!("{} of its blocked time belongs to no span", duration(view.unlinked_waited_nanos)));
    }
    out
}
